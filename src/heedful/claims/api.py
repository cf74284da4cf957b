"""Claims from Python: one line in, a verdict out.

>>> from heedful.claims import claim, orthonormal
>>> claim("c ≈ (v_a + v_b)/2", query="k_a + k_b", keys=orthonormal(n=10)).verdict
'refuted'
>>> claim("c ≈ (v_a + v_b)/2 within 0.01", query="6 (k_a + k_b)", keys=orthonormal(n=10)).verdict
'proved'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.claims.judge import judge_claim
from heedful.claims.sheet.claim import Claim
from heedful.claims.verdict import Verdict


@dataclass(frozen=True)
class KeySetting:
    """Which keys a claim is about, and their sizes."""

    keys: Any
    where: dict[str, Any] = field(default_factory=dict)
    covariance: dict[str, str] = field(default_factory=dict)


def orthonormal(n: Any = None, d: Any = None) -> KeySetting:
    """Perpendicular keys of norm 1; n is a number, a list of numbers, or "2..64"."""
    return KeySetting("orthonormal", _sizes(n, d))


def unit(n: Any = None, d: Any = None) -> KeySetting:
    """Arbitrary keys of norm 1."""
    return KeySetting("unit", _sizes(n, d))


def arbitrary(n: Any = None, d: Any = None) -> KeySetting:
    """Arbitrary keys."""
    return KeySetting("any", _sizes(n, d))


def gaussian(n: Any = None, d: Any = None, **covariance: str) -> KeySetting:
    """Keys k_i ~ N(μ_i, Σ_i) with perpendicular unit means: gaussian(10, a="1/2 mu_a mu_a^T")."""
    return KeySetting("gaussian", _sizes(n, d), dict(covariance))


def claim(
    expect: str | Sequence[str],
    *,
    keys: KeySetting | Any = None,
    query: str | None = None,
    heads: Sequence[str] = (),
    where: dict[str, Any] | None = None,
    **fields: Any,
) -> Verdict:
    """Judge one claim; `fields` are those of `Claim`: given, let, scale, sequence, …"""
    setting = keys if isinstance(keys, KeySetting) else KeySetting(keys)
    formulas = (expect,) if isinstance(expect, str) else tuple(expect)
    written = Claim(
        id=fields.pop("id", "claim"),
        expect=formulas,
        keys=setting.keys,
        query=query,
        heads=tuple(heads),
        where={**setting.where, **(where or {})},
        covariance={**setting.covariance, **fields.pop("covariance", {})},
        **fields,
    )
    return judge_claim(written)


def _sizes(n: Any, d: Any) -> dict[str, Any]:
    return {name: size for name, size in (("n", n), ("d", d)) if size is not None}
