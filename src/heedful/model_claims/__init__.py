"""Statements about trained models: proved for every text, or refuted by one.

It may use `claims`, `model`, `data`, `training`, `tokenization` and the base modules; studies,
views and the command line use it. Begin with `first_layer`, then `statements` and `judge`.
"""

# Where torch is missing, this says so, with the command that brings it.
from heedful import model as _model  # noqa: F401
