"""The formula language: text in, a small tree out. Nothing is ever executed."""
