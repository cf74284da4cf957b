"""Bounds of linear forms of a model's letters over all texts, or for one text.

A form such as alpha(1, 3)[t, t-1] − alpha(1, 3)[t, 1] is taken apart into groups that share a
head and a query. In the first layer a group over all texts is exact, with the text that attains
it; elsewhere, and for everything but weights, boxes give a bound that holds but may be wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from heedful.model import Decoder
from heedful.model_claims.bounds import TextBounds
from heedful.model_claims.first_layer import FirstLayer, least_combination
from heedful.model_claims.intervals import Box, Floats, down, up
from heedful.model_claims.statements import Atom, LinearForm


class Bounded(NamedTuple):
    """What is known of a linear form over all texts in question."""

    low: float
    """No text gives less."""
    tokens: tuple[int, ...] | None = None
    """A text that attains `low`, up to rounding; None where only the bound is known."""
    attained: float | None = None
    """What that text gives at most."""


class Prover:
    """Bounds over every text of up to `length` tokens, or of the one text `tokens`."""

    def __init__(
        self,
        decoder: Decoder,
        length: int,
        *,
        begin: int | None = None,
        tokens: Sequence[int] | None = None,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> None:
        self.decoder, self.length, self.begin, self.tokens = decoder, length, begin, tokens
        self.out_of_time = out_of_time
        self._known: dict[object, Bounded] = {}
        self._bounds: dict[int, TextBounds] = {}

    def least(self, form: LinearForm) -> Bounded:
        """Return what the form is at least."""
        key = (frozenset(form.terms.items()), form.constant)
        if key not in self._known:
            self._known[key] = self._least(form)
        return self._known[key]

    def _least(self, form: LinearForm) -> Bounded:
        groups: dict[tuple[object, ...], dict[Atom, Fraction]] = {}
        for atom, c in form.terms.items():
            key: tuple[object, ...] = (atom.letter, *atom.arguments, *atom.places[:1])
            if atom.letter == "logit":
                key = ("logit", atom.places[0])
            groups.setdefault(key, {})[atom] = c
        total = form.constant
        for key, terms in groups.items():
            shared = _shared_by_all_places(terms)
            total += shared  # weights add up to 1
            groups[key] = {atom: c - shared for atom, c in terms.items() if c != shared}
        parts = [self._group(terms) for terms in groups.values() if terms]
        constant = _ends(total)
        low = _sum_down([constant[0], *(part.low for part in parts)])
        if len(parts) == 1 and parts[0].attained is not None:
            attained = -_sum_down([-constant[1], -parts[0].attained])
            return Bounded(low, parts[0].tokens, attained)
        return Bounded(low)

    def greatest(self, form: LinearForm) -> float:
        """Return a number that the form is never above."""
        return -self.least(form.scaled(Fraction(-1))).low

    def _group(self, terms: dict[Atom, Fraction]) -> Bounded:
        atom = next(iter(terms))
        if atom.letter == "alpha":
            return self._weights(terms)
        if atom.letter == "logit":
            return self._logits(terms)
        (c,) = terms.values()
        box = self._single(atom)
        low, high = _ends(c)
        products = (
            (Box(np.array(low), np.array(high)) * box) if low != high else box.times(np.array(low))
        )
        return Bounded(float(products.low.min()))

    def _weights(self, terms: dict[Atom, Fraction]) -> Bounded:
        atom = next(iter(terms))
        (layer, head), t = atom.arguments, atom.places[0] - 1
        exact = [Fraction(0)] * (t + 1)
        for one, factor in terms.items():
            exact[one.places[1] - 1] += factor
        c = np.array([float(number) for number in exact])
        # Weights add up to 1, so rounding the coefficients changes the sum by no more than this.
        loose = 0.0 if _are_floats(exact) else float(np.abs(c).max()) * 2.0**-52
        if layer == 1 and self.tokens is None:
            found = least_combination(self._head(head - 1), t, c.tolist())
            return Bounded(found.low - loose, found.tokens, found.high + loose)
        bounds = self._boxes(layer - 1)
        chosen = np.flatnonzero(c)
        if len(set(c[chosen])) == 1:  # a sum of weights keeps its digits near 0
            box = bounds.weights(layer - 1, head - 1, t, list(chosen)).times(np.array(c[chosen[0]]))
        else:
            box = bounds.combination(layer - 1, head - 1, t, c)
        return Bounded(float(box.low.min()) - loose)

    def _logits(self, terms: dict[Atom, Fraction]) -> Bounded:
        t = next(iter(terms)).places[0] - 1
        bounds = self._boxes(self.decoder.config.layers)
        rows = np.zeros((len(terms), self.decoder.config.vocabulary))
        for number, (atom, c) in enumerate(terms.items()):
            rows[number, atom.arguments[0]] = float(c)
        if _are_floats(terms.values()):
            box = bounds.logits(t, rows.sum(0, keepdims=True))
            return Bounded(float(box.low.min()))
        box = bounds.logits(t, rows)
        loose = 2.0**-52 * np.maximum(np.abs(box.low), np.abs(box.high))
        room = 2.0**-50 * len(terms) * (np.abs(box.low) + np.abs(box.high)).sum(1)
        return Bounded(float(((box.low - loose).sum(1) - room).min()))

    def _single(self, atom: Atom) -> Box:
        layers = self.decoder.config.layers
        if atom.letter in ("prob", "loss", "mean loss"):
            mean_of = atom.letter == "mean loss"
            places = range(2, atom.arguments[0] + 1) if mean_of else atom.places
            boxes = [self._probability(atom, place) for place in places]
            mean = Box(
                np.array(np.mean([box.low for box in boxes])),
                np.array(np.mean([box.high for box in boxes])),
            )
            return Box(mean.low - 1e-13 * np.abs(mean.low), mean.high + 1e-13 * np.abs(mean.high))
        t = atom.places[0] - 1
        if atom.letter == "residual_norm":
            return _lengths(self._boxes(layers).streams[atom.arguments[0]][t])
        kind = atom.letter.removesuffix("_norm")
        layer, head = atom.arguments
        return _lengths(self._boxes(layer - 1).vectors(kind, layer - 1, head - 1, t))

    def _probability(self, atom: Atom, place: int) -> Box:
        """Return prob(v)[place], or the loss of the token at a place, from the one before it."""
        bounds = self._boxes(self.decoder.config.layers)
        t = place - 1 if atom.letter == "prob" else place - 2
        logits = bounds.logits(t)
        named = atom.letter == "prob"
        numbers = np.array([atom.arguments[0]]) if named else bounds.ids[place - 1]
        top = logits.high.max(1, keepdims=True)
        small, large = np.exp(logits.low - top), np.exp(logits.high - top)
        others_large = large.sum(1, keepdims=True) - large[:, numbers]
        others_small = small.sum(1, keepdims=True) - small[:, numbers]
        slack = 1e-12
        low = small[:, numbers] / (small[:, numbers] + others_large * (1 + slack) + slack * 1e-3)
        high = large[:, numbers] / (large[:, numbers] + np.maximum(others_small, 0) * (1 - slack))
        low, high = low * (1 - slack), np.minimum(high * (1 + slack), 1.0)
        if atom.letter == "prob":
            return Box(np.array(low.min()), np.array(high.max()))
        with np.errstate(divide="ignore"):
            return Box(np.array(-np.log(high.max())) - 1e-14, np.array(-np.log(low.min())) + 1e-14)

    def _head(self, head: int) -> FirstLayer:
        return _first_layer(self.decoder, head, self.begin)

    def _boxes(self, layers: int) -> TextBounds:
        """Return boxes that reach through this many layers."""
        known = [depth for depth in self._bounds if depth >= layers]
        if known:
            return self._bounds[min(known)]
        self._bounds[layers] = TextBounds(
            self.decoder,
            self.length,
            layers=layers,
            begin=self.begin,
            tokens=self.tokens,
            out_of_time=self.out_of_time,
        )
        return self._bounds[layers]


@lru_cache(maxsize=16)
def _first_layer(decoder: Decoder, head: int, begin: int | None) -> FirstLayer:
    """Return a head with the scores that were worked out for claims before: they are dear."""
    return FirstLayer(decoder, head, begin=begin)


def _shared_by_all_places(terms: dict[Atom, Fraction]) -> Fraction:
    """Return the least coefficient of the weights of a query, if they all occur; otherwise 0."""
    atom = next(iter(terms))
    if atom.letter != "alpha" or len(terms) < atom.places[0]:
        return Fraction(0)
    return min(terms.values())


def _lengths(vectors: Box) -> Box:
    """Return the Euclidean lengths of boxes of vectors."""
    straddles = (vectors.low <= 0) & (vectors.high >= 0)
    near = np.where(straddles, 0.0, np.minimum(np.abs(vectors.low), np.abs(vectors.high)))
    far = np.maximum(np.abs(vectors.low), np.abs(vectors.high))
    slack = 4 * vectors.low.shape[-1] * 2.0**-53
    low: Floats = np.sqrt((near**2).sum(-1)) * (1 - slack)
    high: Floats = np.sqrt((far**2).sum(-1)) * (1 + slack)
    return Box(down(low), up(high))


def _ends(number: Fraction) -> tuple[float, float]:
    """Return the nearest float64 numbers below and above a fraction, or the number itself."""
    near = float(number)
    if Fraction(near) == number:
        return near, near
    return float(np.nextafter(near, -np.inf)), float(np.nextafter(near, np.inf))


def _are_floats(numbers: Iterable[Fraction]) -> bool:
    return all(Fraction(float(number)) == number for number in numbers)


def _sum_down(numbers: list[float]) -> float:
    """Return a number that is not above the exact sum."""
    total = numbers[0]
    for number in numbers[1:]:
        total = float(np.nextafter(total + number, -np.inf)) if number and total else total + number
    return total
