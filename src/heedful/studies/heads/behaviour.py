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

The names are held to a truth: decoders whose heads do what we built them to do. A stream holds,
side by side, the code of its token, the code of its position (learned positions) or a constant
(rotary), and room for the token before. All codes are orthonormal, in a random basis without a
mean, so that the norm of a layer only scales them. Each head then matches codes:

    previous    position t − 1            self    position t          first    position 0
    duplicate   the token's code, and not the own position
    induction   the token's code with that of the token before, which the layer below wrote
    averages    the positions t − 1 to t − 4      diffuse    nothing      copies    position t − 3
    source      the place in the source that answers to this one in the target, which is as long

With rotary positions the first pairs of a head tell distances, Σ cos θᵢ(t − s − Δ), and the last
ones, which hardly rotate over a short text, hold the codes of tokens. Noise on all weights makes
heads less sure of what they do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.model import Decoder, DecoderConfig, LayerTrace
from heedful.model.config import Attention, FeedForward, Norm, head_name
from heedful.model.decoder import TransformerBlock
from heedful.positions.encodings import Learned, Rotary
from heedful.progress import Step
from heedful.records import Record
from heedful.stats import Estimate, wilson
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


Shape = Literal["gpt2", "llama"]
TOKENS, LENGTH = 16, 48
"""Size of the vocabulary (id 0 begins a text) and of the texts."""
HEAD_WIDTH = 64
PAIRS = HEAD_WIDTH // 2
DISTANCE_PAIRS = 6
"""Rotary pairs that tell distances; with `BASE` their angles are 1 down to 0.06."""
BASE = 1e8
SHARPNESS = 24.0
"""Difference of logits between the key that is meant and the others."""
DISTANCES = {"previous": (1,), "self": (0,), "copies": (3,), "averages": (1, 2, 3, 4),
             "source": (LENGTH // 2,)}  # fmt: skip
"""How far back heads look that look at places. Texts are read as translations: their first half is
the source, so that half a text back is where the target came from."""
ROLES = (
    *("previous", "self", "first", "duplicate", "induction", "source"),
    *("averages", "diffuse", "copies"),
)
LAYERS = (
    ("previous", "first", "averages", "diffuse", "duplicate", "self", "copies", "source"),
    ("induction", "diffuse", "previous", "duplicate", "first", "averages", "copies", "source"),
)
"""The role of each head; a model gets them in an order of its own within a layer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstructedModel:
    """A decoder and what its heads were built to do."""

    shape: Shape
    decoder: Decoder
    roles: tuple[tuple[str, ...], ...]
    """Layer by layer."""


def construct(shape: Shape, seed: int, *, noise: float = 0.0) -> ConstructedModel:
    """Build a decoder; `noise` is the standard deviation of what is added to every weight,
    relative to the largest column of its matrix."""
    random = np.random.default_rng(seed)
    # The induction head reads what the first previous-token head of layer 0 wrote.
    roles = tuple(tuple(random.permutation(layer).tolist()) for layer in LAYERS)
    features = _Features(shape, random)
    decoder = Decoder(_config(shape, features.width), seed=seed).double().eval()
    with torch.no_grad():
        _write_embeddings(decoder, features)
        for block, names in zip(decoder.blocks, roles, strict=True):
            assert isinstance(block, TransformerBlock)
            _write_heads(block, names, features)
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in decoder.named_parameters():
            if parameter.ndim == 2 and noise > 0 and "feed_forward" not in name:
                size = float(parameter.norm(dim=0).max()) / math.sqrt(len(parameter))
                drawn = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                parameter.add_(drawn, alpha=noise * size)
    return ConstructedModel(shape=shape, decoder=decoder, roles=roles)


class _Features:
    """Where each code lies in the stream: columns of a random orthogonal basis without a mean."""

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        self.places = LENGTH if shape == "gpt2" else 1
        count = 2 * TOKENS + self.places
        self.width = count + 1 + (count + 1) % 2
        drawn = random.standard_normal((self.width, self.width))
        drawn[:, 0] = 1.0  # the mean of every stream is 0: a LayerNorm only scales it
        basis = torch.tensor(np.linalg.qr(drawn)[0])
        self.token = basis[:, 1 : 1 + TOKENS]
        self.before = basis[:, 1 + TOKENS : 1 + 2 * TOKENS]
        self.place = basis[:, 1 + 2 * TOKENS : 1 + count]
        # Norms of a stream: √2 (token and place), so a norm multiplies it by √(width / 2).
        self.gain = math.sqrt(self.width / 2)


def _config(shape: Shape, width: int) -> DecoderConfig:
    heads = len(LAYERS[0])
    return DecoderConfig(
        vocabulary=TOKENS,
        context=2 * LENGTH,
        width=width,
        layers=len(LAYERS),
        attention=Attention(heads=heads, head_width=HEAD_WIDTH),
        feed_forward=FeedForward(activation="relu", width=8),
        norm=Norm(kind="layer" if shape == "gpt2" else "rms"),
        positions=Learned() if shape == "gpt2" else Rotary(base=BASE),
    )


def _write_embeddings(decoder: Decoder, features: _Features) -> None:
    decoder.embedding.weight.copy_(features.token.T)
    if decoder.positions is None:
        decoder.embedding.weight.add_(features.place.T)
    else:
        decoder.positions.weight.zero_()
        decoder.positions.weight[:LENGTH] = features.place.T
        decoder.positions.weight[LENGTH:] = features.place.T


def _write_heads(block: TransformerBlock, roles: tuple[str, ...], features: _Features) -> None:
    attention = block.attention
    heads = attention.heads
    parts = attention.qkv.weight.view(3, heads, HEAD_WIDTH, -1)
    output = attention.output.weight.view(-1, heads, HEAD_WIDTH)
    parts.zero_()
    output.zero_()
    for parameter in block.feed_forward.parameters():
        parameter.zero_()
    scale = math.sqrt(SHARPNESS * math.sqrt(HEAD_WIDTH)) / features.gain
    rotary = features.places == 1
    for head, role in enumerate(roles):
        match = _rotary_match if rotary else _learned_match
        query, key = match(role, features)
        parts[0, head], parts[1, head] = scale * query, scale * key
        if role == "previous" and attention.layer == 0:
            parts[2, head, :TOKENS] = features.token.T / features.gain
            output[:, head, :TOKENS] = features.before


def _learned_match(role: str, features: _Features) -> tuple[Tensor, Tensor]:
    """Return what queries and keys pick from the stream, with positions as codes."""
    query, key = torch.zeros(2, HEAD_WIDTH, features.width, dtype=torch.float64)
    place, token = slice(0, LENGTH), slice(LENGTH, LENGTH + TOKENS)
    if role != "diffuse":
        key[place] = features.place.T
    for distance in DISTANCES.get(role, ()):
        query[: LENGTH - distance] += features.place.T[distance:]
    if role == "first":
        query[0] = features.place.sum(dim=1)
    if role == "duplicate":
        query[place] = -features.place.T
    if role in ("duplicate", "induction"):
        query[token] = features.token.T
        key[token] = (features.token if role == "duplicate" else features.before).T
    return query, key


def _rotary_match(role: str, features: _Features) -> tuple[Tensor, Tensor]:
    """Return the same with distances told by rotations."""
    query, key = torch.zeros(2, HEAD_WIDTH, features.width, dtype=torch.float64)
    angles = BASE ** -(torch.arange(DISTANCE_PAIRS, dtype=torch.float64) / PAIRS)
    constant = features.place[:, 0]
    # Σ cos θᵢ(t − s − Δ) over the pairs; two neighbours differ by half a unit at most.
    size = 2.5 / math.sqrt(DISTANCE_PAIRS)
    distances = (0,) if role == "duplicate" else DISTANCES.get(role)
    if distances is not None:
        shift = sum(distances) / len(distances)
        sign = -1.0 if role == "duplicate" else 1.0
        strength = size * (0.5 if role == "averages" else 1.0)
        for pair, angle in enumerate(angles):
            query[2 * pair] = sign * strength * constant
            key[2 * pair] = strength * math.cos(shift * float(angle)) * constant
            key[2 * pair + 1] = strength * math.sin(shift * float(angle)) * constant
    token = slice(HEAD_WIDTH - TOKENS, HEAD_WIDTH)
    if role in ("duplicate", "induction"):
        query[token] = 1.5 * features.token.T
        key[token] = 1.5 * (features.token if role == "duplicate" else features.before).T
    if role == "first":
        query[-1] = constant
        key[-1] = features.token[:, 0]
    return query, key


# Names against the truth


@dataclass(frozen=True, eq=False, kw_only=True)
class NameScore(Record):
    """How often a name is right, and how often it is found."""

    name: str
    built: int
    """Heads that were built for it."""
    does: int
    """Heads that do it on other texts, whatever they were built for: noise takes roles away."""
    given: int
    """Heads that were given the name."""
    right: int
    """Heads that were given the name, and do it."""

    @property
    def precision(self) -> tuple[float, float, float]:
        """Share of the names given that are right, with Wilson's interval."""
        return _share(self.right, self.given)

    @property
    def recall(self) -> tuple[float, float, float]:
        """Share of the heads that do it that are found, with Wilson's interval."""
        return _share(self.right, self.does)


def _share(right: int, of: int) -> tuple[float, float, float]:
    return (right / of if of else math.nan, *wilson(right, of))


def score_names(models: list[ConstructedModel], *, seed: int = 0) -> tuple[NameScore, ...]:
    """Name every head of some models as `heed study heads` does, and count against the truth."""
    found: list[tuple[str, str, str]] = []
    for number, model in enumerate(models):
        names, truth = names_of(model, seed + number), roles_done(model, seed + number)
        found += [
            (role, truth[layer][head], names[layer][head])
            for layer, roles in enumerate(model.roles)
            for head, role in enumerate(roles)
        ]
    return tuple(
        NameScore(
            name=name,
            built=sum(role == name for role, _, _ in found),
            does=sum(truth == name for _, truth, _ in found),
            given=sum(given == name for _, _, given in found),
            right=sum(given == truth == name for _, truth, given in found),
        )
        for name in ROLES
    )


def names_of(model: ConstructedModel, seed: int) -> list[list[str]]:
    """Return the name of every head, as the study gives it after four texts."""
    watch = _watched(model, seed, texts=4)
    heads = watch.behaviour().heads
    count = model.decoder.config.attention.heads
    return [[head.label for head in heads[i : i + count]] for i in range(0, len(heads), count)]


NEAR = 2
"""How far from the place that answers to it a head may read that follows the source."""
TRUE_TEXTS = 24
"""Texts that tell it, none of which the names come from."""


def roles_done(model: ConstructedModel, seed: int) -> list[list[str]]:
    """Return what every head does, by the keys that roles speak of, on texts of its own.

    A head does what a role says if so much of its reading is there as the name promises, over all
    queries for which there is such a key. Where it does none of it, it is called by how it spreads
    its reading.
    """
    watch = _watched(model, 1_000 + seed, texts=TRUE_TEXTS)
    count = model.decoder.config.attention.heads
    kinds = [head.kind for head in watch.behaviour().heads]
    done = []
    for head, masses in enumerate(_role_masses(model, 2_000 + seed)):
        best = max(masses, key=lambda role: masses[role])
        done.append(best if masses[best] >= CHOSEN else kinds[head])
    return [done[first : first + count] for first in range(0, len(done), count)]


def _role_masses(model: ConstructedModel, seed: int) -> list[dict[str, float]]:
    """Return the mean mass of every head on the keys that each role speaks of."""
    random = np.random.default_rng(seed)
    sums: dict[str, Tensor] = {}

    def add(role: str, weights: Tensor, asking: Tensor, keys: Tensor) -> None:
        mass = weights[:, asking, keys].mean(dim=1)
        sums[role] = sums.get(role, torch.zeros_like(mass)) + mass / TRUE_TEXTS

    for _ in range(TRUE_TEXTS):
        weights = _all_weights(model.decoder, _text(random).tokens)
        for role in ("previous", "self"):
            (distance,) = DISTANCES[role]
            asking = torch.arange(IN_SIGHT, LENGTH)
            add(role, weights, asking, asking - distance)
        for aside in range(-NEAR, NEAR + 1):
            asking = torch.arange(LENGTH // 2 + 1 + max(0, -aside), LENGTH - max(0, aside))
            add("source", weights, asking, asking - LENGTH // 2 + aside)
        asking = torch.arange(IN_SIGHT, LENGTH)
        add("first", weights, asking, torch.zeros_like(asking))
        drawn = random.permutation(np.arange(1, TOKENS)).tolist()
        weights = _all_weights(model.decoder, (0, *drawn, *drawn))
        asking = torch.arange(1 + len(drawn), 1 + 2 * len(drawn))
        add("duplicate", weights, asking, asking - len(drawn))
        add("induction", weights, asking, asking - len(drawn) + 1)
    heads = len(next(iter(sums.values())))
    return [{role: float(mass[head]) for role, mass in sums.items()} for head in range(heads)]


def _all_weights(decoder: Decoder, tokens: tuple[int, ...]) -> Tensor:
    """Return the weights of all heads, layer after layer: (heads, queries, keys)."""
    with torch.no_grad():
        trace = decoder.trace(torch.tensor([tokens]))
    return torch.cat([layer.weights[0] for layer in trace.layers])


def _text(random: np.random.Generator) -> Row:
    tokens = (0, *(int(one) for one in random.integers(1, TOKENS, LENGTH - 1)))
    return Row(tokens=tokens, source=(1, LENGTH // 2))


def _watched(model: ConstructedModel, seed: int, *, texts: int) -> Watch:
    random = np.random.default_rng(seed)
    rows = tuple(_text(random) for _ in range(texts))
    watch = Watch(model.decoder)
    with torch.no_grad():
        for row in rows:
            model.decoder.visit(row.tensor(), partial(watch.see, row=row))
    watch_repeats(model.decoder, Sample(name="random tokens", rows=rows), watch, seed)
    return watch
