"""View 1, Attention: keys in the plane, noisy keys studied, queries designed.

The page works out weights and outputs itself while something is dragged, by the same equations
(a test holds both sides against one file of numbers). Everything else is asked for here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from jaxtyping import Float
from pydantic import Field

from heedful.arrays import matrix, numpy64
from heedful.attention import (
    GaussianKeys,
    NoiseStudy,
    copyable,
    design_average,
    design_copy,
    design_heads,
    standard_keys,
    study_noise,
)
from heedful.attention.keys import PlaneKind, circle, plane_of
from heedful.errors import InputError
from heedful.records import Record
from heedful.web.answers import Desk, Question

MOST_KEYS, MOST_DIMENSIONS, MOST_HEADS = 128, 64, 8

Row = list[float]


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(Record):
    """Keys, their values, and the plane in which both are drawn."""

    keys: Float[np.ndarray, "n d"]
    """One row a key, in all its dimensions."""
    values: Float[np.ndarray, "n 2"]
    """What each key holds: a point of the plane."""
    plane: Float[np.ndarray, "2 d"]
    """P: a key k is drawn at P k."""
    shown: float
    """The share of the keys' squared length that lies in the plane."""


def scene(
    keys: Any, *, values: Any = "keys", plane: PlaneKind = "auto", through: Any = ()
) -> Scene:
    """Return keys with values in the plane, and the plane.

    `values` is "keys" (each value lies where its key is drawn), "circle" (evenly on the unit
    circle), or one row of two numbers a key.

    >>> round(scene(np.eye(4), plane="round").shown, 12)
    0.5
    """
    keys = matrix("keys", keys)
    P = plane_of(keys, plane, through)
    total = float((keys**2).sum())
    return Scene(
        keys=keys,
        values=_values(values, keys, P),
        plane=P,
        shown=float(((keys @ P.T) ** 2).sum()) / total if total else 1.0,
    )


def _values(
    values: Any, keys: Float[np.ndarray, "n d"], P: Float[np.ndarray, "2 d"]
) -> Float[np.ndarray, "n 2"]:
    if isinstance(values, str):
        if values not in ("keys", "circle"):
            raise InputError("values", f"{values!r} is unknown", expected="keys, circle, or rows")
        return keys @ P.T if values == "keys" else circle(len(keys))
    given = matrix("values", values, columns=2)
    if len(given) != len(keys):
        raise InputError(
            "values", f"has {len(given)} rows", expected=f"one for each of the {len(keys)} keys"
        )
    return np.asarray(given)


class SceneQuestion(Question):
    """Which keys and values to draw."""

    kind: str = "circle"
    """The name of a standard set (`heedful.attention.STANDARD_KEYS`), or "rows"."""
    rows: list[Row] | None = Field(default=None, max_length=MOST_KEYS)
    """Keys of your own."""
    n: int = Field(default=8, ge=1, le=MOST_KEYS)
    d: int = Field(default=2, ge=1, le=MOST_DIMENSIONS)
    seed: int = Field(default=0, ge=0, le=2**31)
    values: Literal["keys", "circle"] | list[Row] = "keys"
    plane: PlaneKind = "auto"
    through: list[int] = Field(default=[], max_length=2)


class KeysQuestion(Question):
    """Keys with their values and their noise."""

    keys: list[Row] = Field(max_length=MOST_KEYS)
    values: list[Row] | None = Field(default=None, max_length=MOST_KEYS)
    scale: float | Literal["sqrt_d"] = 1.0
    noisy: int | None = None
    """The key that is noisy along itself."""
    variance: float = 0.0
    """v of Σ = σ²I + v μμᵀ."""
    isotropic: float = 0.0
    """σ² of every key."""

    def means(self) -> Any:
        """Return the keys as an array, within the limits of the page."""
        rows = matrix("keys", self.keys)
        if rows.shape[1] > MOST_DIMENSIONS:
            raise InputError(
                "keys", f"have {rows.shape[1]} dimensions", expected=f"at most {MOST_DIMENSIONS}"
            )
        return rows

    def gaussian(self) -> GaussianKeys:
        """Return the keys with their noise."""
        noisy = {} if self.noisy is None else {self.noisy: self.variance}
        return GaussianKeys.of(self.means(), isotropic=self.isotropic, noisy=noisy)


class NoiseQuestion(KeysQuestion):
    """What noise does to some layers, side by side."""

    layers: list[list[Row]] = Field(min_length=1, max_length=2)
    """Each layer is a list of heads, each head a query."""
    of: list[int] = Field(default=[], max_length=MOST_KEYS)
    """The keys whose average value is wanted; none: the output without noise."""
    radius: float = 0.1
    draws: int = Field(default=4_000, ge=100, le=50_000)
    seed: int = Field(default=0, ge=0, le=2**31)


class DesignQuestion(KeysQuestion):
    """A query made to order."""

    kind: Literal["copy", "average", "robust"]
    of: list[int] = Field(min_length=1, max_length=MOST_KEYS)
    tolerance: float = 0.01
    heads: int = Field(default=2, ge=1, le=MOST_HEADS)
    norm: float = 50.0
    """How long a query of a robust design may be."""


def attention_routes(desk: Desk) -> APIRouter:
    """Return the routes of this view."""
    routes = APIRouter(prefix="/api/attention")

    @routes.post("/scene")
    async def draw(question: SceneQuestion) -> Response:
        return await desk.answer(_scene, question)

    @routes.post("/noise")
    async def noise(question: NoiseQuestion) -> Response:
        return await desk.answer(_noise, question)

    @routes.post("/design")
    async def design(question: DesignQuestion) -> Response:
        return await desk.answer(_design, question)

    return routes


def _scene(question: SceneQuestion) -> dict[str, Any]:
    if question.rows is not None:
        keys = KeysQuestion(keys=question.rows).means()
    else:
        keys = standard_keys(question.kind, question.n, question.d, question.seed)
    made = scene(keys, values=question.values, plane=question.plane, through=question.through)
    # Which keys can be copied at all: the others lie inside the hull and are drawn hollow.
    return {**made.to_dict(), "copyable": copyable(made.keys).copyable}


def _noise(question: NoiseQuestion) -> dict[str, Any]:
    keys = question.gaussian()
    values = None if question.values is None else matrix("values", question.values)
    studies = [
        study_noise(
            keys,
            numpy64("layers", heads, rank=2),
            values=values,
            of=question.of or None,
            radius=question.radius,
            draws=question.draws,
            seed=question.seed,
            scale=question.scale,
        )
        for heads in question.layers
    ]
    return {"layers": [_layer(study, values) for study in studies]}


def _layer(study: NoiseStudy, values: Any) -> dict[str, Any]:
    """Return what is drawn over the cloud: the exact figures, or the sampled ones."""
    best = study.sampled if study.exact is None else study.exact
    V = np.eye(study.keys) if values is None else values
    spread = None if best.covariance is None else V.T @ best.covariance @ V
    limit = study.limit
    return {
        "method": "sampled" if study.exact is None else "exact",
        "reason": study.exact_reason,
        "draws": study.sampled.draws,
        "weights_mean": best.mean,
        "weights_std": best.std,
        "mean": best.output_mean,
        "covariance": spread,
        "target": study.target,
        "radius": study.radius,
        "failure": best.failure_probability,
        "failure_low": best.failure_low,
        "failure_high": best.failure_high,
        "sampled_failure": study.sampled.failure_probability,
        "error": best.mean_squared_error,
        "squared_bias": best.squared_bias,
        "agreement": study.agreement,
        "limit_failure": None if limit is None else limit.failure_probability,
    }


def _design(question: DesignQuestion) -> dict[str, Any]:
    keys, scale = question.means(), question.scale
    if question.kind == "robust":
        made = design_heads(
            question.gaussian(),
            of=question.of,
            heads=question.heads,
            norm=question.norm,
            values=question.values,
            scale=scale,
            starts=4,
        )
        return {"kind": "robust", "heads": made}
    if question.kind == "copy":
        if len(question.of) != 1:
            raise InputError(
                "of", f"names {len(question.of)} keys", expected="one key can be copied at a time"
            )
        order = design_copy(keys, question.of[0], tolerance=question.tolerance, scale=scale)
    else:
        order = design_average(keys, question.of, tolerance=question.tolerance, scale=scale)
    return {"kind": question.kind, "design": order}
