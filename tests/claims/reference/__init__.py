"""The reference meaning of the claim language: docs/reference/semantics.md, word by word."""
