"""The formula language: text in, a small tree out. Nothing is ever executed."""

from heedful.claims.functions import FUNCTIONS, Arity, Function, describe_functions
from heedful.claims.language.notation import show, tex
from heedful.claims.language.parser import canonical_name, parse, parse_value
from heedful.claims.language.reader import LIMITS, Limits
from heedful.claims.language.rewrite import constant, instantiate, replace, substitute
from heedful.claims.language.tokens import with_letters
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    bound_names,
    children,
    free_names,
    mentions,
    names_in,
    walk,
)

__all__ = [
    "FUNCTIONS",
    "LIMITS",
    "Arity",
    "Binary",
    "Call",
    "Compare",
    "Entry",
    "Expression",
    "ForAll",
    "Function",
    "Limits",
    "Logic",
    "Name",
    "Number",
    "Unary",
    "bound_names",
    "canonical_name",
    "children",
    "constant",
    "describe_functions",
    "free_names",
    "instantiate",
    "mentions",
    "names_in",
    "parse",
    "parse_value",
    "replace",
    "show",
    "substitute",
    "tex",
    "walk",
    "with_letters",
]
