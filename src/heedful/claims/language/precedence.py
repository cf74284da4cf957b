"""How tightly each construct binds, from loose to tight: shared by reading and printing."""

from __future__ import annotations

from enum import IntEnum


class Precedence(IntEnum):
    """The levels of the language; an operand must bind at least as tightly as its place asks."""

    CLAUSE = 0
    """`… for all i`, `… given that …`"""
    IMPLIES = 1
    OR = 2
    AND = 3
    NOT = 4
    RELATION = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    POWER = 9
    """`x^2`, `x^T`"""
    ATOM = 10
    """Names, numbers, brackets, calls, entries."""
