"""Every layer, soundly: intervals that hold for all texts up to a length.

The first layer is exact because a key depends on one token. From the second layer on a key depends
on all tokens before it, so we keep, for each place and each token that may stand there, a box that
holds the residual stream of every text with that token at that place. A box goes through

- norms, linear maps and activations, entry by entry (`intervals`);
- scores, query box times key box, over all tokens of a place;
- attention, by the exact range of a softmax-weighted mean over boxes of scores and values.

Every bound is a theorem; how tight it is nobody promises. Boxes forget that entries move
together, so they widen with each layer, and a statement may stay undecided that is true.

`Prover` bounds linear forms of the letters over all texts, or for one text. A form such as
alpha(1, 3)[t, t-1] − alpha(1, 3)[t, 1] is taken apart into groups that share a head and a query. In
the first layer a group over all texts is exact, with the text that attains it; elsewhere, and for
everything but weights, boxes give a bound that holds but may be wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.model_claims.first_layer import (
    FirstLayer,
    KeyPlaces,
    embedded,
    least_combination,
    normed,
    position_table,
    project,
)
from heedful.model_claims.intervals import (
    UNIT,
    Box,
    Floats,
    activated,
    down,
    linear,
    product_error,
    up,
    weighted_mean,
)
from heedful.model_claims.statements import Atom, LinearForm

# Boxes around streams, weights and logits ----------------------------------------------------

MOST_WORK = 2e10
"""Products of scores that are worth the wait: tokens² × places² × width × layers."""


class TextBounds:
    """Boxes around everything a decoder computes, for all texts of up to `length` tokens.

    `allowed` are the ids that texts are made of (all if None); with `begin`, every text begins
    with that id. With `tokens`, there is only this text, and the boxes hold rounding errors.

    `streams[l][t]` has a row for each token of `ids[t]`: the stream before layer l at place t
    (after the last layer for l = layers).
    """

    def __init__(
        self,
        decoder: Decoder,
        length: int,
        *,
        layers: int | None = None,
        allowed: Sequence[int] | None = None,
        begin: int | None = None,
        tokens: Sequence[int] | None = None,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> None:
        config = decoder.config
        self.decoder, self.config, self.length = decoder, config, length
        self.out_of_time = out_of_time
        layers = config.layers if layers is None else layers
        free = np.array(range(config.vocabulary) if allowed is None else sorted(set(allowed)))
        self._check(length, 1 if tokens is not None else len(free), layers)
        first = free if begin is None else np.array([begin])
        self.ids = [first if t == 0 else free for t in range(length)]
        if tokens is not None:
            self.ids = [np.array([number]) for number in tokens]
        table = position_table(decoder)
        self.streams = [
            [
                embedded(decoder, ids, None if table is None else table[t])
                for t, ids in enumerate(self.ids)
            ]
        ]
        self._scores: dict[tuple[int, int, int], tuple[Box, Box]] = {}
        for layer in range(layers):
            self.streams.append(self._through(layer))

    def _check(self, length: int, tokens: int, layers: int) -> None:
        if not 1 <= length <= self.config.context:
            raise InputError(
                "length", f"is {length}", expected=f"1 to {self.config.context}, the context"
            )
        work = float(tokens) ** 2 * length**2 / 2 * self.config.query_width * max(layers, 1)
        if work > MOST_WORK:
            raise InputError(
                "length",
                f"is {length}: bounds for {tokens:,} tokens and {layers} layers take "
                f"{work:.0e} products",
                expected=f"at most {MOST_WORK:.0e}",
                hint="ask about shorter texts, fewer tokens, or the first layer",
            )

    def scores(self, layer: int, head: int, t: int) -> tuple[Box, Box]:
        """Return the scores of each query at t: with any token at each place before, and its own.

        Shapes (tokens at t, places before t) and (tokens at t).
        """
        key = (layer, head, t)
        if key not in self._scores:
            self._scores[key] = self._score_boxes(layer, head, t)
        return self._scores[key]

    def weights(self, layer: int, head: int, t: int, chosen: Sequence[int]) -> Box:
        """Return bounds of the total weight of some places, for each token of the query at t."""
        before, own = self.scores(layer, head, t)
        low, high = np.column_stack([before.low, own.low]), np.column_stack([before.high, own.high])
        inside = np.zeros(t + 1, dtype=bool)
        inside[list(chosen)] = True
        least = _share(low[:, inside], high[:, ~inside])
        greatest = _share(high[:, inside], low[:, ~inside])
        slack = 8 * product_error(t + 40)
        return Box(
            np.maximum(least * (1 - slack) - 1e-300, 0.0),
            np.minimum(greatest * (1 + slack) + 1e-300, 1.0),
        )

    def combination(self, layer: int, head: int, t: int, coefficients: Floats) -> Box:
        """Return bounds of Σ_p c_p α[t, p] for each token of the query at t, places 0 … t."""
        before, own = self.scores(layer, head, t)
        scores = Box(
            np.column_stack([before.low, own.low]), np.column_stack([before.high, own.high])
        )
        shape = (len(self.ids[t]), t + 1, 1)
        values = np.broadcast_to(np.asarray(coefficients)[None, :, None], shape)
        return weighted_mean(scores, Box.exactly(values))[..., 0]

    def vectors(self, kind: str, layer: int, head: int, t: int) -> Box:
        """Return the queries or keys of a head for each token at t, before rotation."""
        attention: Any = self.decoder.blocks[layer]
        attention = attention.attention
        heads, kv_heads = self.config.attention.heads, self.config.kv_heads
        if kind == "query":
            return self._vectors(layer, head, t, attention.query_norm)
        return self._vectors(layer, heads + head * kv_heads // heads, t, attention.key_norm)

    def total_weight(self, layer: int, head: int, places: KeyPlaces) -> tuple[float, float]:
        """Return bounds of the total weight of some places, for all texts and all queries."""
        found = [
            self.weights(layer, head, t, chosen)
            for t in range(self.length)
            if (chosen := places.of(t)) is not None
        ]
        return min(float(box.low.min()) for box in found), max(
            float(box.high.max()) for box in found
        )

    def logits(self, t: int, combinations: Floats | None = None) -> Box:
        """Return the logits after each token at t: all, or combinations of them (one a row)."""
        decoder = self.decoder
        stream = self.streams[self.config.layers][t]
        if decoder.norm is not None:
            stream = normed(stream, decoder.norm, self.config.norm.kind)
        weight = decoder.head_weight.detach().double().numpy()
        if combinations is None:
            return linear(stream, weight)
        # Combining the rows first keeps what they have in common out of the bound.
        rows = linear(Box.exactly(combinations), weight.T)
        result, loose = linear(stream, rows.middle), rows.radius
        size = np.maximum(np.abs(stream.low), np.abs(stream.high)) @ loose.T * (1 + 1e-12)
        return Box(result.low - size, result.high + size)

    def _check_time(self) -> None:
        """Stop where the time is over: boxes of many tokens and places take long to build."""
        if self.out_of_time():
            raise InputError(
                "texts",
                f"of up to {self.length} tokens take longer to bound than there was time",
                expected="shorter texts, or more seconds",
            )

    def _through(self, layer: int) -> list[Box]:
        block: Any = self.decoder.blocks[layer]
        pre, kind = self.config.norm.placement == "pre", self.config.norm.kind
        after = []
        for t in range(self.length):
            stream = self.streams[layer][t] + self._attended(layer, t)
            if not pre:
                stream = normed(stream, block.attention_norm, kind)
            x = normed(stream, block.feed_forward_norm, kind) if pre else stream
            stream = stream + _feed_forward(x, block.feed_forward)
            after.append(stream if pre else normed(stream, block.feed_forward_norm, kind))
        return after

    def _inputs(self, layer: int, t: int) -> Box:
        """Return what the attention of a layer reads at a place."""
        stream = self.streams[layer][t]
        if self.config.norm.placement == "post":
            return stream
        block: Any = self.decoder.blocks[layer]
        return normed(stream, block.attention_norm, self.config.norm.kind)

    def _vectors(self, layer: int, number: int, t: int, norm: Any) -> Box:
        block: Any = self.decoder.blocks[layer]
        vectors = project(self._inputs(layer, t), block.attention, number)
        return vectors if norm is None else normed(vectors, norm, "rms")

    def _score_boxes(self, layer: int, head: int, t: int) -> tuple[Box, Box]:
        config = self.config
        attention: Any = self.decoder.blocks[layer]
        attention = attention.attention
        rotations = FirstLayer(self.decoder, head)  # only its rotations and biases are used
        queries = self._vectors(layer, head, t, attention.query_norm)
        number = config.attention.heads + head * config.kv_heads // config.attention.heads
        before, own = [], None
        for p in range(t + 1):
            self._check_time()
            keys = self._vectors(layer, number, p, attention.key_norm)
            turned = rotations.rotate_box(queries, t - p)
            box = _products(turned, keys, paired=p == t)
            box = box.times(np.array(1.0 / np.sqrt(config.head_width)))
            bias = rotations.bias(t - p)
            # The root and the bias are themselves rounded.
            slack = 8 * UNIT * (np.maximum(np.abs(box.low), np.abs(box.high)) + abs(bias))
            box = Box(box.low + bias - slack, box.high + bias + slack)
            if p == t:
                own = box
            else:
                before.append((box.low.min(1), box.high.max(1)))
        assert own is not None
        shape = (len(self.ids[t]), 0)
        if not before:
            return Box(np.zeros(shape), np.zeros(shape)), own
        low, high = (np.stack(ends, axis=1) for ends in zip(*before, strict=True))
        return Box(low, high), own

    def _attended(self, layer: int, t: int) -> Box:
        """Return what attention adds to the stream of each token at t."""
        config = self.config
        attention: Any = self.decoder.blocks[layer]
        attention = attention.attention
        weight = attention.output.weight.detach().double().numpy()
        bias, d = attention.output.bias, config.head_width
        zero = np.zeros(config.width)
        total = Box.exactly(zero if bias is None else bias.detach().double().numpy())
        for head in range(config.attention.heads):
            group = head * config.kv_heads // config.attention.heads
            number = config.attention.heads + config.kv_heads + group
            part = weight[:, head * d : (head + 1) * d]
            # Values in the directions of the stream: there a sum over heads loses nothing more.
            values = [linear(self._vectors(layer, number, p, None), part) for p in range(t + 1)]
            before, own = self.scores(layer, head, t)
            total = total + _mean_of(before, own, values)
        return total


def _mean_of(before: Box, own: Box, values: list[Box]) -> Box:
    """Return the mean of values by weights: any token at the places before, its own at the last."""
    rows = len(own.low)
    hulls = [box.hull(0) for box in values[:-1]]

    def stacked(end: str) -> Floats:
        parts = [
            np.broadcast_to(getattr(box, end), (rows, values[-1].low.shape[1])) for box in hulls
        ]
        return np.stack([*parts, getattr(values[-1], end)], axis=1)

    scores = Box(np.column_stack([before.low, own.low]), np.column_stack([before.high, own.high]))
    return weighted_mean(scores, Box(stacked("low"), stacked("high")))


def _products(queries: Box, keys: Box, *, paired: bool) -> Box:
    """Return the scalar products of all queries with all keys, or of each with its own."""
    q, r, k, s = queries.middle, queries.radius, keys.middle, keys.radius
    size_q, size_k = np.abs(q), np.abs(k)
    slack = product_error(q.shape[1] + 4)
    if paired:
        middle = (q * k).sum(1)
        radius = (r * size_k).sum(1) + (size_q * s).sum(1) + (r * s).sum(1)
        radius += slack * (size_q * size_k).sum(1)
    else:
        middle = q @ k.T
        radius = r @ (size_k + s).T + size_q @ (s + slack * size_k).T
    radius = radius * (1 + slack) + 1e-300
    return Box(middle - radius - UNIT * np.abs(middle), middle + radius + UNIT * np.abs(middle))


def _share(inside: Floats, outside: Floats) -> Floats:
    """Return Σ e^inside / (Σ e^inside + Σ e^outside), row by row."""
    if not outside.shape[1]:
        return np.ones(len(inside))
    top = np.maximum(inside.max(1), outside.max(1))[:, None]
    a, b = np.exp(inside - top).sum(1), np.exp(outside - top).sum(1)
    share: Floats = a / (a + b)
    return share


def _feed_forward(x: Box, part: Any) -> Box:
    up_bias, down_bias = (
        None if layer.bias is None else layer.bias.detach().double().numpy()
        for layer in (part.up, part.down)
    )
    inner = linear(x, part.up.weight.detach().double().numpy(), up_bias)
    if part.activation_name == "swiglu":
        half = inner.low.shape[-1] // 2
        inner = activated(inner[..., :half], "silu") * inner[..., half:]
    else:
        inner = activated(inner, part.activation_name)
    return linear(inner, part.down.weight.detach().double().numpy(), down_bias)


# Linear forms of the letters -----------------------------------------------------------------


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
