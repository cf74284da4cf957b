"""Readers: what comes from files, checked completely before anyone computes with it."""
