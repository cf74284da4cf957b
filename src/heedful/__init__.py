"""Heedful: a laboratory in which every statement about attention is an experiment you can run."""

__version__ = "0.1.0"
