"""View 3, Positions: what an encoding gives each position, and what order does to a sentence."""

from __future__ import annotations

import threading
import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from heedful.attention import attend, causal, permutation_equivariance
from heedful.errors import InputError
from heedful.positions import SCHEMES, SchemeKind, positions_study, sinusoidal
from heedful.positions.encodings import RotaryScheme
from heedful.web.answers import Desk, Question, packed

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
