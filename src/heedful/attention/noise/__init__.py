"""Noisy keys: the distribution of weights and outputs, and heads that withstand the noise.

Pure functions of arrays. Exact answers carry a certified error, sampled ones standard errors.
"""
