"""The first layer, exactly: the least and the greatest weight of a head over all texts.

In the first layer a key is a function of its own token (and place), a query of its own. So the
score of two places depends on two tokens and on where they stand:

    s(t, a; p, b) = q(a, t) · k(b, p) / √d + bias(t − p)

Fix the query's place t and token a. The key at t is then known; every other token is free, and
each occurs in one score only. The weight of a set of places S is A / (A + B), with A the sum of
e^s over S and B that over the others: it grows with every score in S and falls with every other.
So its least value takes the least score at each place of S and the greatest at each other, each
found by itself among all tokens, and these tokens together are a text that attains it. What
remains is the least over a and t: |vocabulary|² scores for each distance instead of
|vocabulary|^n texts.

With rotary positions the score depends on the distance only. Queries are taken in the order of a
cheap bound that holds for many distances at once, and those that can no longer be extreme are
never looked at.

Numbers are float64 with a bound on all rounding errors, from the embedding to the weight, so the
interval of each result is a theorem about the model with these weights in exact arithmetic.
Odds log A/B are kept instead of weights: they lose nothing near 0 and near 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.model_claims.intervals import (
    UNIT,
    Box,
    Floats,
    centred,
    down,
    linear,
    product_error,
    unit_mean_square,
    up,
)
from heedful.records import Record
from heedful.tokenization import Tokenizer

Kind = Literal["least", "greatest"]
BLOCK = 512
"""Queries looked at together: 512 rows of scores of 50,000 tokens are 200 MB."""
COLUMNS = 4096
"""Keys whose bounds are worked out together: with a block of queries they stay in the cache."""
SINGLE_ERROR = 2.0**-22
"""Rounding of one float32 operation, with a factor 4 to spare."""
PRUNED_FROM = 4096
"""Tokens from which it pays to bound queries for many distances at once, and to skip most."""
WANTED = 32
"""Queries that each question may send to a closer look in one round."""
CERTAIN = 1e300
"""The log odds of a weight that is 1 whatever the text, because there is no other place."""
_SIGN: dict[Kind, int] = {"least": 1, "greatest": -1}


class KeyPlaces(NamedTuple):
    """The places whose weights are added up, as seen from a query."""

    back: tuple[int, ...] = ()
    """By distance from the query: 0 is the query itself, 1 the token before it."""
    absolute: tuple[int, ...] = ()
    """By number from the beginning: 0 is the first token."""
    since: int = 0
    """The first place of a query that counts."""

    def of(self, t: int) -> tuple[int, ...] | None:
        """Return the places that a query at t reads; None where one of them does not exist."""
        places = {t - k for k in self.back} | set(self.absolute)
        there = t >= self.since and all(0 <= p <= t for p in places)
        return tuple(sorted(places)) if there else None


NAMED = {
    "previous": KeyPlaces(back=(1,)),
    "first": KeyPlaces(absolute=(0,), since=1),
    "self": KeyPlaces(back=(0,), since=1),
}
"""Places that people have a word for. A first token reads only itself: queries begin at 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Extreme(Record):
    """The least or the greatest weight over all texts of up to `length` tokens."""

    places: str
    """Which places: the name of the question."""
    kind: Kind
    length: int
    weight: float
    """What the witness gives, in float64."""
    certified: tuple[float, float]
    """The extreme over all texts lies in here, whatever was rounded."""
    log_odds: float
    """log w / (1 − w) of the witness: tells apart what float64 rounds to 0 or 1."""
    query: int
    """The place of the query in the witness, from 0."""
    tokens: tuple[int, ...]
    """The witness: a text that attains the weight, up to its query."""
    text: str | None
    """The witness as text; None without a tokenizer."""
    produced: bool | None
    """Whether the tokenizer makes these very tokens of that text; None without a tokenizer."""


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Queries and keys of every token at one place, before rotation, with their errors."""

    queries: Floats
    keys: Floats
    query_error: Floats
    """Length of the error of each query."""
    key_error: float
    """Greatest length of the error of a key."""
    key_length: float
    """Greatest length of a key."""


class FirstLayer:
    """The scores of one head of the first layer, for every pair of tokens.

    `allowed` are the ids that texts are made of (all of them if None). With `begin`, every text
    begins with that id, as the tokenizers of many models arrange it.
    """

    def __init__(
        self,
        decoder: Decoder,
        head: int,
        *,
        allowed: Sequence[int] | None = None,
        begin: int | None = None,
    ) -> None:
        config = decoder.config
        if not 0 <= head < config.attention.heads:
            raise InputError(
                "head",
                f"there is no head {head}",
                expected=f"heads 0 to {config.attention.heads - 1} of this model",
            )
        ids = range(config.vocabulary) if allowed is None else sorted(set(allowed))
        strange = [
            number
            for number in [*ids[:1], *ids[-1:], *([] if begin is None else [begin])]
            if not 0 <= number < config.vocabulary
        ]
        if strange or not ids:
            raise InputError(
                "tokens",
                f"holds the id {strange[0]}" if strange else "is empty",
                expected=f"ids 0 to {config.vocabulary - 1} were expected",
            )
        self.config, self.head, self.begin = config, head, begin
        self.ids = np.array(ids, dtype=np.int64)
        self._decoder = decoder
        self._table = position_table(decoder)
        self._by_place: dict[int, _Vectors] = {}
        self._ranges: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._bounded: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._scale = 1.0 / math.sqrt(config.head_width)

    @property
    def relative(self) -> bool:
        """Whether a score depends on two tokens and their distance only."""
        return self._table is None

    @property
    def rotated(self) -> int:
        """How many entries of a query are rotated."""
        return self.config.positions.rotated_width(self.config.head_width)

    def vectors(self, place: int) -> _Vectors:
        """Return queries and keys at a place; where no table is added, all places are alike."""
        key = 0 if self.relative else place
        if key not in self._by_place:
            self._by_place[key] = self._project(key)
        return self._by_place[key]

    def scores(self, rows: np.ndarray, t: int, p: int, columns: np.ndarray | None = None) -> Floats:
        """Return the scores of queries at t, one row each, with the keys at p, one column each.

        Rows and columns are numbers of `ids` (or, beyond them, the opening token).
        """
        queries = self.rotate(self.vectors(t).queries[rows], t - p)
        keys = self.vectors(p).keys
        keys = keys[: len(self.ids)] if columns is None else keys[columns]
        scores: Floats = (queries @ keys.T) * self._scale + self.bias(t - p)
        return scores

    def own_scores(self, rows: np.ndarray, t: int) -> Floats:
        """Return the score of each query with its own key."""
        at = self.vectors(t)
        own: Floats = (at.queries[rows] * at.keys[rows]).sum(-1) * self._scale + self.bias(0)
        return own

    def error(self, rows: np.ndarray, length: int) -> Floats:
        """Return how far a score of these queries, at any distance, may be from the true one."""
        worst = np.zeros(len(rows))
        places = [0] if self.relative else range(length)
        length_of_keys = max(self.vectors(p).key_length for p in places)
        error_of_keys = max(self.vectors(p).key_error for p in places)
        width = self.config.head_width
        # Angles t·ω are known to 32 units (a power, a quotient), each cosine and sine to two more.
        turned = 32 * UNIT * (length + 1) if self.rotated else 0.0
        for p in places:
            at = self.vectors(p)
            size = np.sqrt((at.queries[rows] ** 2).sum(-1)) * (1 + product_error(width))
            wrong = at.query_error[rows]
            bound = wrong * (length_of_keys + error_of_keys) + size * error_of_keys
            bound += size * length_of_keys * (product_error(2 * width + 40) + turned)
            worst = np.maximum(worst, bound)
        bias = max(abs(self.bias(k)) for k in (0, length))
        return up(worst * self._scale * (1 + 16 * UNIT) + 8 * UNIT * bias)

    def free_range_of_scores(self, rows: np.ndarray, t: int, p: int) -> tuple[Floats, Floats]:
        """Return the least and the greatest score of each query at t with any token at p."""
        scores = self.scores(rows, t, p)
        return scores.min(1), scores.max(1)

    def range_of_scores(self, rows: np.ndarray, t: int, p: int) -> tuple[Floats, Floats]:
        """Return the same with the tokens that may stand at p: the opening one at the beginning."""
        if p or self.begin is None:
            return self.free_range_of_scores(rows, t, p)
        only = self.scores(rows, t, p, np.array([self._begin_column]))[:, 0]
        return only, only

    def ranges(self, t: int) -> tuple[Floats, Floats]:
        """Return the least and the greatest scores of all queries at t, a column a place before.

        What was worked out once is kept: by distance where only that counts, else by places.
        """
        rows = self.queries_at(t)
        columns = []
        for p in range(t):
            opening = p == 0 and self.begin is not None
            key = (t - p, -1) if self.relative and not opening else (t, p)
            if key not in self._ranges:
                parts = [
                    self.range_of_scores(block, t, p)
                    for block in np.array_split(rows, -(-len(rows) // BLOCK))
                ]
                low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
                self._ranges[key] = low, high
            columns.append(self._ranges[key])
        if not columns:
            return np.zeros((len(rows), 0)), np.zeros((len(rows), 0))
        low, high = (np.stack(ends, axis=1) for ends in zip(*columns, strict=True))
        return low, high

    def ranges_of(self, rows: np.ndarray, t: int) -> tuple[Floats, Floats]:
        """Return the same for some queries, without keeping it."""
        found = [self.range_of_scores(rows, t, p) for p in range(t)]
        low, high = (np.stack(ends, axis=1) for ends in zip(*found, strict=True))
        return low, high

    def bounded_ranges(self, t: int) -> tuple[Floats, Floats]:
        """Return bounds of `ranges`, worked out for many distances at once."""
        columns: list[tuple[Floats, Floats]] = []
        for group in _groups(self.config.context):
            if len(columns) >= t:
                break
            if group not in self._bounded:
                blocks = np.array_split(np.arange(len(self.ids)), -(-len(self.ids) // BLOCK))
                parts = [self.distance_bounds(block, *group) for block in blocks]
                low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
                self._bounded[group] = low, high
            columns += [self._bounded[group]] * (group[1] - group[0] + 1)
        low, high = (np.stack(ends, axis=1) for ends in zip(*columns[:t][::-1], strict=True))
        return low, high

    def extreme_token(self, row: int, t: int, p: int, *, lowest: bool) -> int:
        """Return the id at p with the lowest or the highest score for a query at t."""
        if p == 0 and self.begin is not None:
            return self.begin
        scores = self.scores(np.array([row]), t, p)[0]
        return int(self.ids[scores.argmin() if lowest else scores.argmax()])

    def queries_at(self, t: int) -> np.ndarray:
        """Return the rows that may stand at t: all, or the opening token alone at the beginning."""
        if t == 0 and self.begin is not None:
            return np.array([self._begin_column])
        return np.arange(len(self.ids))

    def id_of(self, row: int) -> int:
        """Return the token id of a row."""
        return int(self.ids[row]) if row < len(self.ids) else int(self.begin or 0)

    @property
    def _begin_column(self) -> int:
        assert self.begin is not None
        return len(self.ids)  # `_project` puts the opening token behind all others

    def _project(self, place: int) -> _Vectors:
        decoder, config = self._decoder, self.config
        ids = self.ids if self.begin is None else np.append(self.ids, self.begin)
        stream = embedded(decoder, ids, None if self._table is None else self._table[place])
        block: Any = decoder.blocks[0]
        if config.norm.placement == "pre":
            stream = normed(stream, block.attention_norm, config.norm.kind)
        d, heads, kv_heads = config.head_width, config.attention.heads, config.kv_heads
        group = self.head * kv_heads // heads
        query = project(stream, block.attention, self.head)
        key = project(stream, block.attention, heads + group)
        if block.attention.query_norm is not None:
            query = normed(query, block.attention.query_norm, "rms")
            key = normed(key, block.attention.key_norm, "rms")
        error = [
            np.sqrt((part.radius**2).sum(-1)) * (1 + product_error(d)) for part in (query, key)
        ]
        lengths = np.sqrt((key.middle**2).sum(-1)) * (1 + product_error(d))
        return _Vectors(
            query.middle, key.middle, error[0], float(error[1].max()), float(lengths.max())
        )

    def rotate(self, queries: Floats, distance: int) -> Floats:
        """Return queries turned by the angles of a distance."""
        if not self.rotated or distance == 0:
            return queries
        rotation = self.config.positions.rotation(distance + 1, self.config.head_width)
        assert rotation is not None
        cos, sin = np.cos(rotation.angles[-1]), np.sin(rotation.angles[-1])
        first, second = self._pairs()
        turned = queries.copy()
        turned[:, first] = queries[:, first] * cos - queries[:, second] * sin
        turned[:, second] = queries[:, first] * sin + queries[:, second] * cos
        return turned

    def rotate_box(self, queries: Box, distance: int) -> Box:
        """Return the same for intervals."""
        if not self.rotated or distance == 0:
            return queries
        rotation = self.config.positions.rotation(distance + 1, self.config.head_width)
        assert rotation is not None
        cos, sin = np.abs(np.cos(rotation.angles[-1])), np.abs(np.sin(rotation.angles[-1]))
        first, second = self._pairs()
        middle, radius = queries.middle, queries.radius.copy()
        one, two = radius[:, first].copy(), radius[:, second].copy()
        radius[:, first], radius[:, second] = cos * one + sin * two, sin * one + cos * two
        # The angle, its cosine and sine, and the sums: see `error`.
        size = np.abs(middle[:, first]) + np.abs(middle[:, second]) + one + two
        loose = 40 * UNIT * (distance + 2) * size
        radius[:, first] += loose
        radius[:, second] += loose
        turned = self.rotate(middle, distance)
        return Box(down(turned - radius), up(turned + radius))

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the second entry of every rotary pair."""
        half = self.rotated // 2
        rotation = self.config.positions.rotation(1, self.config.head_width)
        assert rotation is not None
        if rotation.layout == "interleaved":
            return np.arange(0, self.rotated, 2), np.arange(1, self.rotated, 2)
        return np.arange(half), np.arange(half, self.rotated)

    def bias(self, distance: int) -> float:
        """Return what the position scheme adds to the scores of this head."""
        bias = self.config.positions.bias(self.config.attention.heads, np.array([float(distance)]))
        return 0.0 if bias is None else float(bias[self.head, 0])

    def distance_bounds(
        self, rows: np.ndarray, nearest: int, farthest: int
    ) -> tuple[Floats, Floats]:
        """Return bounds of the scores of each query with any token at these distances.

        Slow rotary pairs hardly turn from one distance of the group to another: they are taken
        in the middle, and may differ by 2 sin(ω w / 2) of their size with w the half-width. Fast
        pairs add at most |q_i| |k_i|. In float32, with its rounding errors added.
        """
        at = self.vectors(0)
        rotation = self.config.positions.rotation(2, self.config.head_width)
        assert rotation is not None
        omega, (first, second) = rotation.angles[1], self._pairs()
        middle, reach = (nearest + farthest) / 2, (farthest - nearest) / 2
        moves = 2 * np.sin(np.minimum(omega * reach / 2, math.pi / 2))
        slow = moves < 1
        cos, sin = np.cos(omega * middle) * slow, np.sin(omega * middle) * slow
        q, turned = at.queries[rows], at.queries[rows].copy()
        turned[:, first] = q[:, first] * cos - q[:, second] * sin
        turned[:, second] = q[:, first] * sin + q[:, second] * cos

        def single(x: Floats) -> torch.Tensor:
            return torch.from_numpy(x).float()

        centres, spreads = single(turned), single(np.where(slow, moves, 1.0) * self._sizes(q))
        keys, key_sizes = single(at.keys), single(self._sizes(at.keys))
        low = torch.full((len(rows),), torch.inf)
        high = -low
        for part in range(0, len(keys), COLUMNS):
            centre = centres @ keys[part : part + COLUMNS].T
            spread = spreads @ key_sizes[part : part + COLUMNS].T
            high = torch.maximum(high, (centre + spread).amax(1))
            low = torch.minimum(low, centre.sub_(spread).amin(1))
        lengths = np.sqrt((q**2).sum(-1)) * at.key_length
        slack = SINGLE_ERROR * (self.config.head_width + 64) * lengths
        return (
            (low.double().numpy() - slack) * self._scale,
            (high.double().numpy() + slack) * self._scale,
        )

    def _sizes(self, vectors: Floats) -> Floats:
        """Return the length of every rotary pair."""
        first, second = self._pairs()
        sizes: Floats = np.sqrt(vectors[:, first] ** 2 + vectors[:, second] ** 2)
        return sizes


def embedded(decoder: Decoder, ids: np.ndarray, position: Box | None) -> Box:
    """Return what enters the first layer for each token, at a place with this position vector."""
    weight = decoder.embedding.weight.detach()
    stream = Box.exactly(weight[torch.from_numpy(ids)].double().numpy())
    if decoder.config.embedding_scale != 1.0:
        stream = stream.times(np.array(decoder.config.embedding_scale))
    return stream if position is None else stream + position


def normed(x: Box, norm: Any, kind: str) -> Box:
    """Return LayerNorm or RMSNorm of the last axis."""
    gains = norm.weight.detach().double().numpy()
    if kind == "rms":
        return unit_mean_square(x, norm.eps).times(gains)
    scaled = unit_mean_square(centred(x), norm.eps).times(gains)
    bias = norm.bias
    return scaled if bias is None else scaled + Box.exactly(bias.detach().double().numpy())


def project(x: Box, attention: Any, number: int) -> Box:
    """Return one vector of the joint product: queries of all heads, then keys, then values."""
    d = attention.head_width
    rows = slice(number * d, (number + 1) * d)
    weight = attention.qkv.weight.detach()[rows].double().numpy()
    bias = attention.qkv.bias
    return linear(x, weight, None if bias is None else bias.detach()[rows].double().numpy())


def position_table(decoder: Decoder) -> Box | None:
    """Return what is added to the embeddings at each place; a formula is known to a few units."""
    config = decoder.config
    if decoder.positions is not None:
        return Box.exactly(decoder.positions.weight.detach().double().numpy())
    table = config.positions.embedding_table(config.context, config.width)
    if table is None:
        return None
    error = 34 * UNIT * (1 + np.arange(config.context, dtype=float))[:, None]
    return Box(table - error, table + error)


class _Best(NamedTuple):
    """The extreme so far of one question at one place of the query."""

    odds: float
    error: float
    row: int


def extremes(
    layer: FirstLayer,
    questions: Mapping[str, KeyPlaces],
    lengths: Sequence[int],
    *,
    kinds: Sequence[Kind] = ("least", "greatest"),
    tokenizer: Tokenizer | None = None,
) -> list[Extreme]:
    """Return the least and the greatest total weight of some places, for each length.

    Texts have up to `length` tokens; the query may stand at every place from which all these
    places exist. A weight does not depend on what comes after the query.
    """
    shortest, longest = min(lengths), max(lengths)
    if shortest < 1 or longest > layer.config.context:
        raise InputError(
            "length",
            f"is {shortest if shortest < 1 else longest}",
            expected=f"1 to {layer.config.context} tokens, the context of the model",
        )
    for name, places in questions.items():
        if not any(places.of(t) for t in range(shortest)):
            raise InputError(
                f"places {name!r}",
                f"do not all exist in a text of {shortest} tokens",
                expected="a length that reaches them",
            )
    search = _Search(layer, questions, lengths, kinds)
    search.run()
    return [
        search.witness(name, kind, length, tokenizer)
        for name in questions
        for kind in kinds
        for length in lengths
    ]


class _Search:
    """The extremes of some questions at every place of the query."""

    def __init__(
        self,
        layer: FirstLayer,
        questions: Mapping[str, KeyPlaces],
        lengths: Sequence[int],
        kinds: Sequence[Kind],
    ) -> None:
        self.layer, self.questions, self.lengths, self.kinds = layer, questions, lengths, kinds
        self.found: dict[tuple[str, Kind, int], _Best] = {}
        self.looked_at = 0
        """How many queries were looked at closely."""

    def run(self) -> None:
        """Look at queries until none of the rest can be extreme."""
        layer, longest = self.layer, max(self.lengths)
        first = 1 if layer.begin is not None else 0
        if first:
            self._look(0, layer.queries_at(0), [])
        if not layer.relative:
            for t in range(first, longest):
                rows = layer.queries_at(t)
                self._look(t, rows, [layer.range_of_scores(rows, t, p) for p in range(t)])
            return
        for rows in self._blocks():
            self.looked_at += len(rows)
            free = [layer.free_range_of_scores(rows, k, 0) for k in range(1, longest)]
            for t in range(first, longest):
                ranges = [free[t - p - 1] for p in range(t)]
                if t and layer.begin is not None:
                    ranges[0] = layer.range_of_scores(rows, t, 0)
                self._look(t, rows, ranges)

    def best(self, name: str, kind: Kind, length: int) -> tuple[int, _Best, float] | None:
        """Return where the extreme is, what it is, and a bound beyond which none can be."""
        sign = _SIGN[kind]
        known = [
            (t, self.found[name, kind, t]) for t in range(length) if (name, kind, t) in self.found
        ]
        if not known:
            return None
        t, best = min(known, key=lambda item: sign * item[1].odds)
        return t, best, sign * min(sign * one.odds - one.error for _, one in known)

    def _look(self, t: int, rows: np.ndarray, ranges: list[tuple[Floats, Floats]]) -> None:
        """Bring the extremes at t up to date with some queries."""
        own = self.layer.own_scores(rows, t)
        slack = _odds_error(self.layer.error(rows, t + 1), ranges, own)
        for name, places in self.questions.items():
            chosen = places.of(t)
            if chosen is None:
                continue
            for kind in self.kinds:
                signed = _SIGN[kind] * _log_odds(ranges, own, chosen, kind)
                self._keep((name, kind, t), signed, slack, rows)

    def _keep(
        self, key: tuple[str, Kind, int], signed: Floats, slack: Floats, rows: np.ndarray
    ) -> None:
        sign, number = _SIGN[key[1]], int(np.argmin(signed))
        odds, edge, row = float(signed[number]), float((signed - slack).min()), int(rows[number])
        before = self.found.get(key)
        if before is not None:
            edge = min(edge, sign * before.odds - before.error)
            if sign * before.odds <= odds:
                odds, row = sign * before.odds, before.row
        self.found[key] = _Best(sign * odds, odds - edge, row)

    def _blocks(self) -> Iterator[np.ndarray]:
        """Yield blocks of queries until none of the rest can be extreme."""
        rows = np.arange(len(self.layer.ids))
        if len(rows) <= BLOCK or not self.layer.rotated:
            yield from np.array_split(rows, -(-len(rows) // BLOCK))
            return
        bounds = self._bounds(rows)
        left = np.ones(len(rows), dtype=bool)
        while True:
            wanted = []
            for (name, kind, length), bound in bounds.items():
                best = self.best(name, kind, length)
                limit = math.inf if best is None else _SIGN[kind] * best[1].odds
                still = rows[left & (bound < limit)]
                wanted.append(still[np.argsort(bound[still])][:WANTED])
            block = np.unique(np.concatenate(wanted))
            if not len(block):
                return
            left[block] = False
            yield block

    def _bounds(self, rows: np.ndarray) -> dict[tuple[str, Kind, int], Floats]:
        """Return for each question a number that its signed odds cannot fall below, a query."""
        bounds = {
            (name, kind, length): np.full(len(rows), math.inf)
            for name in self.questions
            for kind in self.kinds
            for length in self.lengths
        }
        for block in np.array_split(rows, -(-len(rows) // BLOCK)):
            own = self.layer.own_scores(block, 0)
            by_distance = []
            for nearest, farthest in _groups(max(self.lengths) - 1):
                group = self.layer.distance_bounds(block, nearest, farthest)
                by_distance += [group] * (farthest - nearest + 1)
            for t in range(max(self.lengths)):
                ranges = [by_distance[t - p - 1] for p in range(t)]
                slack = _odds_error(self.layer.error(block, t + 1), ranges, own)
                for name, kind, length in bounds:
                    chosen = self.questions[name].of(t)
                    if chosen is None or t >= length:
                        continue
                    signed = _SIGN[kind] * _log_odds(ranges, own, chosen, kind) - 2 * slack
                    bound = bounds[name, kind, length]
                    bound[block] = np.minimum(bound[block], signed)
        return bounds

    def witness(self, name: str, kind: Kind, length: int, tokenizer: Tokenizer | None) -> Extreme:
        """Return the extreme with the text that attains it."""
        found = self.best(name, kind, length)
        assert found is not None
        t, best, edge = found
        layer, chosen = self.layer, self.questions[name].of(t)
        assert chosen is not None
        tokens = []
        for p in range(t):
            lowest = (p in chosen) == (kind == "least")
            tokens.append(layer.extreme_token(best.row, t, p, lowest=lowest))
        tokens.append(layer.id_of(best.row))
        ends = sorted((edge, best.odds + _SIGN[kind] * best.error))
        text, produced = as_text(tokens, tokenizer)
        return Extreme(
            places=name,
            kind=kind,
            length=length,
            weight=weight_of(best.odds),
            certified=(_below(weight_of(ends[0])), _above(weight_of(ends[1]))),
            log_odds=best.odds,
            query=t,
            tokens=tuple(tokens),
            text=text,
            produced=produced,
        )


def _groups(longest: int) -> Iterator[tuple[int, int]]:
    """Yield groups of distances, wider and wider: 1, 2 to 7, 8 to 25, 26 to 79, …"""
    nearest = 1
    while nearest <= longest:
        farthest = min(nearest if nearest == 1 else 3 * nearest + 1, longest)
        yield nearest, farthest
        nearest = farthest + 1


def _log_odds(
    ranges: list[tuple[Floats, Floats]], own: Floats, chosen: tuple[int, ...], kind: Kind
) -> Floats:
    """Return the extreme log A/B of each query; ±CERTAIN where one of the two sums is empty."""
    t = len(ranges)
    inside, outside = [], []
    for p in range(t + 1):
        low, high = (own, own) if p == t else ranges[p]
        if p in chosen:
            inside.append(low if kind == "least" else high)
        else:
            outside.append(high if kind == "least" else low)
    return _log_sum(inside, own) - _log_sum(outside, own)


def _log_sum(scores: list[Floats], like: Floats) -> Floats:
    if not scores:
        return np.full(like.shape, -CERTAIN)
    stacked = np.stack(scores)
    top = stacked.max(0)
    total: Floats = top + np.log(np.exp(stacked - top).sum(0))
    return total


def _odds_error(error: Floats, ranges: list[tuple[Floats, Floats]], own: Floats) -> Floats:
    """Return how far the odds may be off: each sum by the error of a score, and by rounding."""
    size = np.abs(own)
    for low, high in ranges:
        size = np.maximum(size, np.maximum(np.abs(low), np.abs(high)))
    return 2 * error + 2 * (len(ranges) + 81) * UNIT * (1 + size)


class LeastCombination(NamedTuple):
    """The least value of Σ_p c_p α[t, p] over all texts with a query at t."""

    value: float
    """What the witness gives, in float64."""
    low: float
    """No text gives less."""
    high: float
    """The witness gives no more."""
    tokens: tuple[int, ...]
    """The witness, up to its query."""


def least_combination(layer: FirstLayer, t: int, coefficients: Sequence[float]) -> LeastCombination:
    """Return the least Σ_p c_p α[t, p] over all texts, for places p = 0 … t.

    For one query token, each x_p = e^{s_p} may be anything between its ends (attained by tokens).
    Σ c_p x_p / Σ x_p is least where x_p is at its upper end for the smallest coefficients and at
    its lower end for the others: the best cut in the order of the coefficients is the answer.
    """
    c = np.asarray(coefficients, dtype=np.float64)
    order = np.argsort(c[:t], kind="stable")
    rows = layer.queries_at(t)
    blocks, bound = [rows], np.full(len(rows), -math.inf)
    pruned = len(rows) > PRUNED_FROM and layer.relative and layer.rotated > 0
    if pruned:
        values, errors = _cuts(layer, t, c, order, (rows, *layer.bounded_ranges(t)))
        bound = (values - 2 * errors).min(1)
        blocks = np.array_split(np.argsort(bound), -(-len(rows) // BLOCK))
    best: tuple[float, float, int, int] | None = None  # value, error, row, cut
    least = math.inf
    for block in blocks:
        # Queries whose bound is not below the best so far cannot give less.
        chosen = block if best is None else block[bound[block] < best[0]]
        if not len(chosen):
            break
        ranges = layer.ranges_of(chosen, t) if pruned else layer.ranges(t)
        values, errors = _cuts(layer, t, c, order, (chosen, *ranges))
        number, cut = np.unravel_index(int(np.argmin(values)), values.shape)
        least = min(least, float((values - errors).min()))
        if best is None or values[number, cut] < best[0]:
            value, slack = float(values[number, cut]), float(errors[number, cut])
            best = (value, slack, int(chosen[number]), int(cut))
    assert best is not None
    value, slack, row, place = best
    upper = set(order[:place].tolist())
    tokens = [layer.extreme_token(row, t, p, lowest=p not in upper) for p in range(t)]
    return LeastCombination(
        value=value,
        low=least,
        high=value + slack,
        tokens=(*tokens, layer.id_of(row)),
    )


def _cuts(
    layer: FirstLayer,
    t: int,
    c: Floats,
    order: np.ndarray,
    ranges: tuple[np.ndarray, Floats, Floats],
) -> tuple[Floats, Floats]:
    """Return Σ c α for every query and cut (upper ends before it, lower after), and its error.

    `ranges` are queries, and the least and greatest score of each, a column a place before t.
    """
    rows, low, high = ranges
    own = layer.own_scores(rows, t)
    top = np.maximum(high.max(1), own) if t else own
    large, small = np.exp(high[:, order] - top[:, None]), np.exp(low[:, order] - top[:, None])
    self_mass, ranked = np.exp(own - top), c[:t][order]

    def cut(weights: Floats) -> Floats:
        zero = np.zeros((len(rows), 1))
        before = np.concatenate([zero, np.cumsum(large * weights, 1)], 1)
        after = np.concatenate([np.cumsum((small * weights)[:, ::-1], 1)[:, ::-1], zero], 1)
        total: Floats = before + after
        return total

    mass = cut(np.ones(t)) + self_mass[:, None]
    values = (cut(ranked) + (c[t] * self_mass)[:, None]) / mass
    sizes = (cut(np.abs(ranked)) + (abs(c[t]) * self_mass)[:, None]) / mass
    spread = np.abs(np.concatenate([high, low, own[:, None]], 1)).max(1)
    error = 2 * layer.error(rows, t + 1) + 4 * UNIT * (1 + spread) + 2 * product_error(t + 80)
    return values, 1.1 * error[:, None] * sizes + 1e-300


def weight_of(log_odds: float) -> float:
    """Return 1 / (1 + e^−x)."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    return math.exp(log_odds) / (1.0 + math.exp(log_odds))


def _below(weight: float) -> float:
    return max(weight * (1 - 8 * UNIT), 0.0)


def _above(weight: float) -> float:
    return min(weight * (1 + 8 * UNIT) + 5e-324, 1.0)


def as_text(tokens: Sequence[int], tokenizer: Tokenizer | None) -> tuple[str | None, bool | None]:
    """Return tokens as text, and whether the tokenizer makes these very tokens of it."""
    if tokenizer is None:
        return None, None
    known = [number for number in tokens if 0 <= number < tokenizer.size]
    body = list(tokens)
    if tokenizer.begin is not None and body and body[0] == tokenizer.begin:
        body = body[1:]
    if len(known) < len(tokens):
        return tokenizer.decode(known, special=True), False
    text = tokenizer.decode(body, special=True)
    try:
        return text, tokenizer.encode(text) == body
    except InputError:
        return text, False
