"""Views 1 and 3, Attention and Positions: what needs no claim and no trained model.

View 1 has keys in the plane, noisy keys studied, queries designed. The page works out weights and
outputs itself while something is dragged, by the same equations (a test holds both sides against
one file of numbers). Everything else is asked for here.

View 3 shows what an encoding gives each position, and what order does to a sentence.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from functools import lru_cache
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
    attend,
    causal,
    copyable,
    design_average,
    design_copy,
    design_heads,
    permutation_equivariance,
    standard_keys,
    study_noise,
)
from heedful.attention.keys import PlaneKind, circle, plane_of
from heedful.errors import InputError
from heedful.positions import SCHEMES, SchemeKind, positions_study, sinusoidal
from heedful.positions.encodings import RotaryScheme
from heedful.records import Record
from heedful.web.answers import Desk, Question, packed

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


MOST_LENGTH, MOST_WIDTH, MOST_WORDS = 1024, 256, 12
DISTANCES_SHOWN = 192
"""Positions of the distance matrix, at most."""
WORD_WIDTH = 16
"""Dimensions of the words in the sentence demonstration."""

LABELS = {"alibi": "ALiBi", "learned": "learned, untrained"}
"""What the page calls an encoding, where that is not its name."""
FORMULAS = {
    "sinusoidal": r"\Phi_{t,2i} = \sin\!\left(t\,b^{-2i/d}\right),\quad "
    r"\Phi_{t,2i+1} = \cos\!\left(t\,b^{-2i/d}\right)",
    "rotary": r"(x_a, x_b) \mapsto (x_a \cos t\omega_i - x_b \sin t\omega_i,\; "
    r"x_a \sin t\omega_i + x_b \cos t\omega_i)",
    "alibi": r"\text{score}(s, t) - m_h\,|s - t|,\quad m_h = 2^{-8h/H}",
    "learned": r"\Phi_t = \text{row } t \text{ of a table}",
    "none": r"\Phi_t = 0",
}
ENCODINGS = [
    {
        "name": kind,
        "label": LABELS.get(kind, kind.replace("_", " ")),
        "formula": FORMULAS.get("rotary" if issubclass(scheme, RotaryScheme) else kind, ""),
        "has_base": "base" in scheme.model_fields,
    }
    for kind, scheme in SCHEMES.items()
]
"""Every encoding, as the page offers it."""

# Proofs about distances set python-flint's precision, which all threads share.
_one_at_a_time = threading.Lock()


class StudyQuestion(Question):
    """Which encoding to look at."""

    kind: SchemeKind = "sinusoidal"
    length: int = Field(default=128, ge=2, le=MOST_LENGTH)
    width: int = Field(default=64, ge=1, le=MOST_WIDTH)
    base: float = Field(default=10_000.0, gt=0, le=1e9)
    heads: int = Field(default=8, ge=1, le=64)


class OrderQuestion(Question):
    """Two sentences of the same words, read by one layer."""

    first: str = Field(default="dog bites man", max_length=200)
    second: str = Field(default="man bites dog", max_length=200)
    positions: bool = False
    mask: bool = False
    seed: int = Field(default=0, ge=0, le=2**31)


def positions_routes(desk: Desk) -> APIRouter:
    """Return the routes of this view."""
    routes = APIRouter(prefix="/api/positions")

    @routes.post("/study")
    async def study(question: StudyQuestion) -> Response:
        return await desk.answer(_study, question)

    @routes.post("/order")
    async def order(question: OrderQuestion) -> Response:
        return await desk.answer(_order, question)

    return routes


@lru_cache(maxsize=32)
def _study(question: StudyQuestion) -> dict[str, Any]:
    with _one_at_a_time:
        found = positions_study(
            question.kind, question.length, question.width, question.base, heads=question.heads
        )
    content = found.to_dict()
    del content["table"]
    shift = content.pop("shift")
    if shift is not None:
        content["shift"] = {"statement": shift["statement"], "error": shift["error"]}
    table = found.table
    return {
        **content,
        "table": None if table is None else packed(table),
        "distances": None if table is None else packed(_distances(table)),
    }


def _distances(table: Any) -> Any:
    """Return |φ(s) − φ(t)| for the first positions, pair by pair."""
    rows = np.asarray(table)[:DISTANCES_SHOWN]
    squares = (rows**2).sum(axis=1)
    return np.sqrt(np.clip(squares[:, None] + squares[None, :] - 2.0 * rows @ rows.T, 0.0, None))


def _order(question: OrderQuestion) -> dict[str, Any]:
    """Read two sentences with the same layer, and compare what each word becomes."""
    first, second = question.first.split(), question.second.split()
    for name, words in (("first", first), ("second", second)):
        if not 1 <= len(words) <= MOST_WORDS:
            raise InputError(
                name, f"has {len(words)} words", expected=f"1 to {MOST_WORDS} words were expected"
            )
    layer = _Layer(question)
    read = [layer.read(words) for words in (first, second)]
    same_words = sorted(first) == sorted(second)
    changes = []
    if same_words:
        places = _matched(first, second)
        apart = [
            float(np.linalg.norm(read[0].output[s] - read[1].output[t]))
            for s, t in enumerate(places)
        ]
        size = float(np.linalg.norm(read[0].output, axis=1).max())
        changes = [
            {"word": word, "from": s, "to": t, "change": change, "relative": change / size}
            for (s, word), t, change in zip(enumerate(first), places, apart, strict=True)
        ]
    law = permutation_equivariance(layer, width=WORD_WIDTH, trials=4, seed=question.seed)
    means = [reading.output.mean(axis=0) for reading in read]
    return {
        "sentences": [
            {"words": words, "weights": reading.weights}
            for words, reading in zip((first, second), read, strict=True)
        ],
        "same_words": same_words,
        "changes": changes,
        "mean_change": float(np.linalg.norm(means[0] - means[1])) if same_words else None,
        "law": {"holds": law.holds, "statement": law.statement, "law": law.law},
    }


class _Layer:
    """One head of self-attention with fixed random weights, with or without positions and mask."""

    def __init__(self, question: OrderQuestion) -> None:
        self.question = question
        rng = np.random.default_rng(question.seed)
        self.W = rng.standard_normal((3, WORD_WIDTH, WORD_WIDTH)) / np.sqrt(WORD_WIDTH)

    def __call__(self, X: Any) -> Any:
        return self._attend(np.asarray(X, dtype=float)).output

    def read(self, words: list[str]) -> Any:
        """Return what the layer makes of a sentence; a word is the same vector everywhere."""
        return self._attend(np.stack([self._word(word) for word in words]))

    def _attend(self, X: Any) -> Any:
        if self.question.positions:
            X = X + sinusoidal(len(X), WORD_WIDTH)
        Q, K, V = (X @ W for W in self.W)
        mask = causal(len(X)) if self.question.mask else None
        return attend(Q, K, V, scale="sqrt_d", mask=mask)

    def _word(self, word: str) -> Any:
        seed = [self.question.seed, zlib.crc32(word.encode("utf-8", "replace"))]
        return np.random.default_rng(seed).standard_normal(WORD_WIDTH)


def _matched(first: list[str], second: list[str]) -> list[int]:
    """Return where each word of the first sentence stands in the second one."""
    free: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        free.setdefault(word, []).append(place)
    return [free[word].pop(0) for word in first]
