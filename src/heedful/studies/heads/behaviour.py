"""What each head does: copies, averages or reads diffusely; and which key it looks for.

For the query at position t, with weights α over the n keys in sight:

    copies      max α ≥ 0.9                        one key gives nearly everything
    averages    exp(H) ≤ min(8, n/2), H = −Σ α ln α: the mass is on few keys
    diffuse     otherwise

Which key is told by the mass on a set of keys that depends on the text:

    previous    t − 1               self    t               first    0
    duplicate   earlier positions with the same token
    induction   positions that follow an earlier occurrence of this token
    source      in a translation: the source sentence, for queries in the target

A head that reads evenly puts some mass on every set, most of it on large ones. Where several sets
get enough mass, the head is named by the one that gets most above that chance:

    lift = (mass − chance) / (1 − chance)

The source is named only where what is read there goes along with the target: over target places,
the mean place that is read in the source has a correlation with the place in the target, and
moves, as a share of the source, at least so far for each share of the target.

Duplicate and induction are measured on random tokens written twice, where every token has
exactly one earlier occurrence and content gives no other reason to look there; the same masses
on the text are kept beside them. Queries with few keys in sight say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.model import Decoder, LayerTrace
from heedful.model.config import head_name
from heedful.progress import Step
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.sample import Row, Sample

Kind = Literal["copies", "averages", "diffuse"]
KINDS: tuple[Kind, ...] = ("copies", "averages", "diffuse")
PATTERNS = ("previous", "self", "first", "duplicate", "induction", "source")
REPEATED = {"duplicate": 0, "induction": 1}
"""What is measured on tokens written twice, and how far behind the earlier copy it lies."""
WORDS = {
    "previous": "previous token",
    "self": "itself",
    "first": "first token",
    "duplicate": "same token before",
    "induction": "induction",
    "source": "follows the source",
    "copies": "copies, elsewhere",
    "averages": "averages few",
    "diffuse": "diffuse",
}
"""What a head with each label does."""

COPIED = 0.9
"""The mass on one key from which a query copies it."""
FEW = 8.0
"""The largest effective number of keys that counts as an average of few."""
IN_SIGHT = 4
"""Queries that see fewer keys are left out."""
CHOSEN = 0.4
"""The mass from which a head is said to look for a set of keys."""
FOLLOWS = 0.5
"""The correlation from which a head is said to follow the source."""
MOVES = 0.25
"""How far the place that it reads must move with the target: 1 is from one end to the other. A head
that reads nearly evenly has a correlation too, with a place that hardly moves."""
BLOCK = 16
"""Neighbouring positions that make one observation for the intervals."""
REPEATS = 4
"""Rows of random tokens written twice."""
LONGEST_REPEAT = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadBehaviour(Record):
    """One head over the whole sample."""

    layer: int
    head: int
    name: str
    """As it is called everywhere."""
    kinds: dict[str, float]
    """Share of the queries that copy, average, or read diffusely."""
    kind: Kind
    """The most frequent of these."""
    top_mass: Estimate
    """Mass on the one key with the most."""
    effective_keys: Estimate
    """exp(H): over how many keys a query spreads its reading."""
    masses: dict[str, Estimate]
    """Mean mass on each set of keys; sets that do not occur are left out."""
    follows: Estimate | None
    """For translations: the correlation between the place in the target and the mean place that
    is read in the source, over sentences."""
    moves: Estimate | None
    """For translations: how far that place moves, as a share of the source, while the target goes
    from its beginning to its end."""
    looks_for: str
    """The set with the most mass above chance, of those with enough; otherwise empty."""
    by_position: str
    """For each position of the first row: c, a, d, or a dot where too little is in sight."""

    @property
    def label(self) -> str:
        """What the head is called on the map."""
        return self.looks_for or self.kind


@dataclass(frozen=True, eq=False, kw_only=True)
class Behaviour(Record):
    """Every head."""

    heads: tuple[HeadBehaviour, ...]
    """Layer by layer."""
    counts: dict[str, int]
    """How many heads have each label."""
    chance: dict[str, float]
    """The mass on each set of a head that reads evenly."""
    thresholds: dict[str, float]
    """What the words mean here."""
    repeated: int
    """Tokens that were written twice, for duplicate and induction."""

    @property
    def words(self) -> dict[str, str]:
        """What a head with each label does."""
        return WORDS


@runtime_checkable
class Seeing(Protocol):
    """Whatever looks at each layer while a model reads."""

    def see(self, layer: int, trace: LayerTrace, row: Row, /) -> None:
        """Look at one layer."""


class Watch:
    """Collects what the heads do while the model reads; a few numbers a query are kept."""

    def __init__(self, decoder: Decoder) -> None:
        self.layers, self.heads = decoder.config.layers, decoder.config.attention.heads
        self._text: list[dict[str, list[Float[np.ndarray, "heads queries"]]]] = [
            {} for _ in range(self.layers)
        ]
        self._repeated: list[dict[str, list[Float[np.ndarray, "heads queries"]]]] = [
            {} for _ in range(self.layers)
        ]
        self._follows: list[list[Float[np.ndarray, "2 heads"]]] = [[] for _ in range(self.layers)]
        self._chance: dict[str, list[Float[np.ndarray, " queries"]]] = {}
        self._letters: list[list[str]] = [[] for _ in range(self.layers)]
        self._repeats = 0

    def see(self, layer: int, trace: LayerTrace, row: Row) -> None:
        """Note what the heads of one layer do on a row of the sample."""
        weights = trace.weights[0].detach()
        sets = key_sets(row)
        top = weights.max(dim=-1).values
        effective = torch.special.entr(weights).sum(dim=-1).exp()
        in_sight = torch.arange(1, weights.shape[-1] + 1, dtype=torch.float64)
        codes = _codes(top, effective, in_sight)
        chosen = slice(IN_SIGHT - 1, None)
        noted = self._text[layer]
        for name, value in (("top", top), ("effective", effective), ("code", codes)):
            noted.setdefault(name, []).append(value[:, chosen].numpy().astype(np.float64))
        for name, members in sets.items():
            defined = members.any(dim=-1)
            defined[: IN_SIGHT - 1] = False
            if bool(defined.any()):
                mass = (weights * members).sum(dim=-1)[:, defined]
                noted.setdefault(name, []).append(mass.numpy())
                if layer == 0 and name not in REPEATED:
                    even = (members.sum(dim=-1) / in_sight)[defined]
                    self._chance.setdefault(name, []).append(even.numpy())
        if row.source is not None:
            self._follows[layer].append(_following(weights, row.source))
        if not self._letters[layer]:
            self._letters[layer] = [
                "." * (IN_SIGHT - 1) + "".join("cad"[int(code)] for code in head[chosen])
                for head in codes
            ]

    def see_repeated(self, layer: int, trace: LayerTrace, length: int, first: int) -> None:
        """Note how much mass goes to the earlier copy, and to what follows it."""
        weights = trace.weights[0].detach()
        queries = torch.arange(first + length, first + 2 * length)
        noted = self._repeated[layer]
        for name, shift in REPEATED.items():
            mass = weights[:, queries, queries - length + shift]
            noted.setdefault(name, []).append(mass.numpy())
            if layer == 0:
                self._chance.setdefault(name, []).append((1.0 / (queries + 1)).double().numpy())
        self._repeats = length

    def behaviour(self) -> Behaviour:
        """Return what was seen."""
        chances = {
            name: float(np.concatenate(parts).mean()) for name, parts in self._chance.items()
        }
        heads = tuple(
            self._head(layer, head, chances)
            for layer in range(self.layers)
            for head in range(self.heads)
        )
        labels = [head.label for head in heads]
        return Behaviour(
            heads=heads,
            counts={label: labels.count(label) for label in (*PATTERNS, *KINDS) if label in labels},
            chance=chances,
            thresholds={
                "copied": COPIED,
                "few": FEW,
                "chosen": CHOSEN,
                "follows": FOLLOWS,
                "moves": MOVES,
            },
            repeated=self._repeats,
        )

    def _head(self, layer: int, head: int, chances: dict[str, float]) -> HeadBehaviour:
        noted = {
            name: np.concatenate([part[head] for part in parts])
            for name, parts in self._text[layer].items()
        }
        masses = {
            (f"{name} in text" if name in REPEATED else name): _estimate(values)
            for name, values in noted.items()
            if name in PATTERNS
        }
        masses |= {
            name: Estimate.of([float(part[head].mean()) for part in parts])
            for name, parts in self._repeated[layer].items()
        }
        shares: dict[str, float] = {
            kind: float((noted["code"] == code).mean()) for code, kind in enumerate(KINDS)
        }
        follows = moves = None
        if self._follows[layer]:
            follows, moves = (
                Estimate.of([row[kind, head] for row in self._follows[layer]]) for kind in (0, 1)
            )
        enough = {name: one.value for name, one in masses.items() if name in PATTERNS}
        if follows is None or moves is None or follows.value < FOLLOWS or moves.value < MOVES:
            enough.pop("source", None)
        return HeadBehaviour(
            layer=layer,
            head=head,
            name=head_name(layer, head),
            kinds=shares,
            kind=max(KINDS, key=lambda kind: shares[kind]),
            top_mass=_estimate(noted["top"]),
            effective_keys=_estimate(noted["effective"]),
            masses=masses,
            follows=follows,
            moves=moves,
            looks_for=_looks_for(enough, chances),
            by_position=self._letters[layer][head],
        )


def observe(decoder: Decoder, sample: Sample, progress: Step | None = None) -> Behaviour:
    """Return what each head does: the one answer of report, terminal and page.

    The model reads the sample once, then random tokens written twice.
    """
    watch = Watch(decoder)
    read_by(decoder, sample.rows, watch, progress=progress, more=1)
    watch_repeats(decoder, sample, watch)
    return watch.behaviour()


def read_by(
    decoder: Decoder,
    rows: Sequence[Row],
    watch: Seeing,
    *,
    progress: Step | None = None,
    more: int = 0,
) -> None:
    """Let the model read rows while someone looks at each layer, none of which is kept.

    `more`: pieces of work that follow, for the progress.
    """
    for done, row in enumerate(rows, start=1):

        def see(layer: int, trace: LayerTrace, row: Row = row) -> None:
            watch.see(layer, trace, row)

        with torch.no_grad():
            decoder.visit(row.tensor(), see)
        if progress is not None:
            progress(done, len(rows) + more)


def watch_repeats(decoder: Decoder, sample: Sample, watch: Watch, seed: int = 0) -> None:
    """Let the model read random tokens of the sample, written twice, and note what heads do."""
    known = sorted({token for row in sample.rows for token in row.tokens[1:]})
    opening = sample.rows[0].tokens[:1]
    length = min(LONGEST_REPEAT, (decoder.config.context - 1) // 2, len(known))
    random = np.random.default_rng(seed)
    for _ in range(REPEATS):
        drawn = tuple(int(token) for token in random.choice(known, size=length, replace=False))
        tokens = torch.tensor([(*opening, *drawn, *drawn)])
        with torch.no_grad():
            decoder.visit(tokens, lambda layer, trace: watch.see_repeated(layer, trace, length, 1))


def key_sets(row: Row) -> dict[str, Bool[Tensor, "queries keys"]]:
    """Return, for each name, which keys each query would look at; queries without any: none."""
    count = len(row.tokens)
    tokens = torch.tensor(row.tokens)
    query, key = torch.arange(count).view(-1, 1), torch.arange(count)
    same = tokens.view(-1, 1) == tokens
    followed = torch.zeros(count, count, dtype=torch.bool)
    followed[:, 1:] = same[:, :-1]
    sets = {
        "previous": key == query - 1,
        "self": key == query,
        "first": (key == 0).expand(count, count) & (query > 0),
        "duplicate": same & (key < query),
        "induction": followed & (key < query),
    }
    if row.source is not None:
        begin, end = row.source
        sets["source"] = ((key >= begin) & (key < end) & (query >= end)).expand(count, count)
    return sets


def _codes(
    top: Float[Tensor, "heads queries"],
    effective: Float[Tensor, "heads queries"],
    in_sight: Float[Tensor, " queries"],
) -> Int[Tensor, "heads queries"]:
    few = torch.clamp(in_sight / 2, max=FEW)
    return torch.where(top >= COPIED, 0, torch.where(effective <= few, 1, 2))


def _following(
    weights: Float[Tensor, "heads queries keys"], source: tuple[int, int]
) -> Float[np.ndarray, "2 heads"]:
    """Return how the mean place read in the source goes with the place in the target: their
    correlation, and how far the one moves with the other, as shares of source and target."""
    begin, end = source
    read = weights[:, end:, begin:end]
    places = (torch.arange(end - begin, dtype=weights.dtype) + 0.5) / (end - begin)
    centre = (read @ places) / read.sum(dim=-1).clamp(min=1e-300)
    centre = centre - centre.mean(dim=1, keepdim=True)
    target = (torch.arange(centre.shape[1], dtype=weights.dtype) + 0.5) / max(1, centre.shape[1])
    target = target - target.mean()
    together = centre @ target
    spread = centre.norm(dim=1) * target.norm()
    correlation = torch.where(spread > 1e-12, together / spread.clamp(min=1e-300), 0.0)
    slope = together / target.square().sum().clamp(min=1e-300)
    return np.asarray(torch.stack([correlation, slope]).numpy())


def _looks_for(masses: dict[str, float], chances: dict[str, float]) -> str:
    """Return the set with the most mass above chance, of those with enough."""
    lifts = {
        name: (mass - chances[name]) / (1 - chances[name])
        for name, mass in masses.items()
        if mass >= CHOSEN and chances[name] < 1
    }
    return max(lifts, key=lambda name: lifts[name], default="")


def _estimate(values: Float[np.ndarray, " queries"]) -> Estimate:
    return Estimate.over_blocks(values, BLOCK)
