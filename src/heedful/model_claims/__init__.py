"""Statements about trained models: proved for every text, or refuted by one.

It may use `claims`, `model`, `data`, `tokenization` and the base modules; studies, views and the
command line use it. Begin with `first_layer`.
"""
