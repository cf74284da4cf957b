"""Decoders whose heads do what we built them to do: the truth that names of heads are held to.

A stream holds, side by side, the code of its token, the code of its position (learned positions)
or a constant (rotary), and room for the token before. All codes are orthonormal, in a random basis
without a mean, so that the norm of a layer only scales them. Each head then matches codes:

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
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.decoder import TransformerBlock
from heedful.positions.encodings import Learned, Rotary
from heedful.records import Record
from heedful.stats import wilson
from heedful.studies.heads.behaviour import CHOSEN, IN_SIGHT, Watch, watch_repeats
from heedful.studies.heads.sample import Row, Sample

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
