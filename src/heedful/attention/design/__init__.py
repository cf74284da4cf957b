"""Queries made to order, with a certificate: copy a value, average some, give any weights.

Pure functions of arrays. What is returned was verified in float64 first.
"""
