"""Data: corpora and arrays from files, checked completely before anyone computes with them.

`readers` is the door for texts, `arrays` for numbers; `splits` and `batches` make of a corpus what
a training needs; `synthetic` writes corpora. This room sees files and records, never a model.
"""
