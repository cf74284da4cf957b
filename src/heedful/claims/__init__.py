"""Statements about attention, and what a machine can say about them."""
