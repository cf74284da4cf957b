"""A claim as it is written: a setting, a construction, and what is expected of it.

This is the sheet's own content, checked for its form only. `judge` finds out whether it is
true. The same fields serve the TOML sheet and the Python API.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about attention."""

    id: str
    """Short name inside its sheet, such as "1.2b"."""
    says: str = ""
    """The statement in words."""
    expect: tuple[str, ...]
    """One or more formulas that must all hold."""
    given: str | None = None
    """A condition under which they must hold."""
    source: str = ""
    """Where the statement comes from."""

    keys: Any = None
    """"orthonormal", "unit", "any", "gaussian", rows of numbers, or formulas; None: no keys."""
    means: Any = "orthonormal"
    """Means of Gaussian keys."""
    covariance: dict[str, str] = field(default_factory=dict)
    """Covariance formulas of Gaussian keys by index, with `others` for the rest."""
    values: Any = "arbitrary"
    """"arbitrary", "keys", rows of numbers, or formulas."""
    scale: Any = 1
    """What multiplies k·q: a number, or "sqrt_d"."""
    query: str | None = None
    """The query of a single head."""
    heads: tuple[str, ...] = ()
    """The queries of several heads, whose outputs are averaged."""
    sequence: tuple[str, ...] = ()
    """The vectors x_1 … x_n of self-attention."""
    matrices: dict[str, str] = field(default_factory=dict)
    """K, Q and V of self-attention; the identity where left out."""
    positions: dict[str, Any] = field(default_factory=dict)
    """Parameters of φ: kind, width, base."""

    where: dict[str, Any] = field(default_factory=dict)
    """The free symbols and their ranges: n = [2, 3, 10], beta = "large", X = "matrix T x d"."""
    let: dict[str, str] = field(default_factory=dict)
    """Names for expressions, and functions: "f(X)" = "relu(X W)"."""
    tolerance: float = 0.05
    """What ≈ means when no `within` is written."""
    draws: int = 20_000
    """Draws for what can only be sampled."""
    seed: int = 0
    """Seed of every draw."""
    disagrees_with: tuple[str, ...] = ()
    """Claims of other sheets that say otherwise, as "sheet/id": shown side by side."""

    def changed(self, **changes: Any) -> Claim:
        """Return the claim with some fields replaced (how a repair is applied)."""
        current = {item.name: getattr(self, item.name) for item in fields(self)}
        return Claim(**{**current, **changes})
