"""The formula language: text in, a small tree out. Nothing is ever executed.

Nodes and what can be asked of them are in `tree`; what functions mean is in `claims.functions`.
"""

from heedful.claims.language.notation import show, tex
from heedful.claims.language.parser import canonical_name, parse, parse_value
from heedful.claims.language.tokens import with_letters
from heedful.claims.language.tree import constant, instantiate, substitute

__all__ = [
    "canonical_name",
    "constant",
    "instantiate",
    "parse",
    "parse_value",
    "show",
    "substitute",
    "tex",
    "with_letters",
]
