"""What interventions do to a model's predictions: effects, lens, attribution, paths, circuits.

An effect is measured on several texts, with and without the intervention, and said with the
interval of the paired differences over texts. Everything else here takes a model apart:

    logit_lens           what each layer would predict if it were the last
    direct_attribution   which head or feed-forward part writes a logit: the parts add up to it
    composition          how strongly a later head reads what an earlier head writes, from weights
    path_effect          the effect of one head through another alone
    smallest_circuit     few heads that keep a share of what all heads do, checked on other texts

Layers, heads and positions are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import (
    Decoder,
    Intervention,
    patch,
    replace,
    value_at,
)
from heedful.model.decoder import TransformerBlock
from heedful.records import Record, Word
from heedful.stats import Estimate
from heedful.tokenization import Tokenizer

Head = tuple[int, int]
"""Layer and head."""


# Effects


@dataclass(frozen=True, eq=False, kw_only=True)
class Effect(Record):
    """What interventions do to the loss, over several texts."""

    interventions: tuple[str, ...]
    """In words."""
    texts: int
    """How many."""
    tokens: int
    """Predicted tokens in all texts."""
    loss: Estimate
    """Mean −ln p of the next token without the interventions; the interval is over texts."""
    change: Estimate
    """Loss with the interventions minus loss without: paired differences over texts."""
    changed_tokens: float
    """Share of positions at which another token becomes the likeliest."""
    divergence: float
    """Mean Kullback–Leibler divergence of the predictions from those without interventions."""

    def judge(self, at_least: float) -> CausalVerdict:
        """Say whether the loss rises by at least so much, on texts like these."""
        low, high = self.change.low, self.change.high
        word: Word = "undecided"
        if low >= at_least:
            word = "supported"
        elif high < at_least:
            word = "refuted"
        return CausalVerdict(
            statement=f"{' and '.join(self.interventions)}: "
            f"the loss rises by at least {at_least:g}",
            verdict=word,
            reason=f"over {self.texts} texts it changes by {self.change.value:+.4f}, "
            f"95 % interval {low:+.4f} to {high:+.4f}",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalVerdict(Record):
    """A statement about an effect, judged by its interval over texts."""

    statement: str
    """What was judged."""
    verdict: Word
    """`supported` where the whole interval agrees, `refuted` where none of it does."""
    reason: str
    """The interval that decides."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction(Record):
    """The likeliest next tokens after a prompt, with and without interventions."""

    prompt: str
    """The text before."""
    tokens: tuple[str, ...]
    """As text: the likeliest of both, the likeliest without interventions first."""
    before: tuple[float, ...]
    """Their probabilities without interventions."""
    after: tuple[float, ...]
    """And with them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InterventionReport(Record):
    """What `heed intervene` measured."""

    model: str
    """As it was called."""
    sample: str
    """Where the texts come from."""
    effect: Effect
    """On the loss of the texts."""
    verdict: CausalVerdict | None
    """On the statement that was asked about, if one was."""
    prediction: Prediction | None
    """After the prompt, if one was given."""


@torch.no_grad()
def compare_predictions(
    decoder: Decoder,
    tokenizer: Tokenizer,
    prompt: str,
    interventions: Sequence[Intervention],
    *,
    top: int = 5,
) -> Prediction:
    """Return the likeliest next tokens after a prompt, with and without interventions."""
    tokens = torch.tensor([tokenizer.encode_opened(prompt)])
    plain = decoder(tokens)[0, -1].double().softmax(-1)
    with decoder.intervene(*interventions, strict=False):
        changed = decoder(tokens)[0, -1].double().softmax(-1)
    ids = list(
        dict.fromkeys([*plain.topk(top).indices.tolist(), *changed.topk(top).indices.tolist()])
    )
    return Prediction(
        prompt=prompt,
        tokens=tuple(tokenizer.decode([one]) for one in ids),
        before=tuple(float(plain[one]) for one in ids),
        after=tuple(float(changed[one]) for one in ids),
    )


@torch.no_grad()
def measure_effect(
    decoder: Decoder, texts: Sequence[Tensor], interventions: Sequence[Intervention]
) -> Effect:
    """Return what interventions do to the loss of texts, rows of token ids of shape (1, time)."""
    if len(texts) < 2:
        raise InputError(
            "texts", f"are {len(texts)}", expected="at least two, for an interval over texts"
        )
    plain = [decoder(row) for row in texts]
    with decoder.intervene(*interventions):
        changed = [decoder(row) for row in texts]
    return _effect(tuple(one.what for one in interventions), texts, plain, changed)


def _effect(
    words: tuple[str, ...],
    texts: Sequence[Tensor],
    plain: Sequence[Float[Tensor, "1 time vocabulary"]],
    changed: Sequence[Float[Tensor, "1 time vocabulary"]],
) -> Effect:
    before = np.array([_loss(*pair) for pair in zip(plain, texts, strict=True)])
    after = np.array([_loss(*pair) for pair in zip(changed, texts, strict=True)])
    pairs = list(zip(plain, changed, strict=True))
    moved = torch.cat([(x.argmax(-1) != y.argmax(-1)).flatten() for x, y in pairs])
    divergences = torch.cat([_divergence(x, y).flatten() for x, y in pairs])
    return Effect(
        interventions=words,
        texts=len(texts),
        tokens=sum(row.shape[1] - 1 for row in texts),
        loss=Estimate.of(before),
        change=Estimate.of(after - before),
        changed_tokens=float(moved.double().mean()),
        divergence=float(divergences.mean()),
    )


def _loss(logits: Float[Tensor, "1 time vocabulary"], row: Tensor) -> float:
    return float(functional.cross_entropy(logits[0, :-1].double(), row[0, 1:]))


def _divergence(plain: Tensor, changed: Tensor) -> Tensor:
    """Return KL(plain ‖ changed) at every position."""
    p, q = plain.double().log_softmax(-1), changed.double().log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1)


# The logit lens


@dataclass(frozen=True, eq=False, kw_only=True)
class LogitLens(Record):
    """What each layer would predict at each position, if it were the last."""

    tokens: tuple[int, ...]
    """The text."""
    likeliest: tuple[tuple[int, ...], ...]
    """Token ids: before the first layer, then after each; one row a depth."""
    probability: Float[np.ndarray, "depths time"]
    """Of the token that the whole model finds likeliest."""
    loss: Float[np.ndarray, " depths"]
    """Mean −ln p of the next token of the text; the last is that of the model."""


@torch.no_grad()
def logit_lens(decoder: Decoder, tokens: Tensor) -> LogitLens:
    """Read the stream after every layer through the last norm and the output matrix."""
    trace = decoder.trace(tokens)
    streams = [trace.embedded, *(layer.after for layer in trace.layers)]
    norm: Callable[[Tensor], Tensor] = nn.Identity() if decoder.norm is None else decoder.norm
    logits = [decoder.logits(norm(stream))[0].double() for stream in streams]
    final = logits[-1].argmax(-1)
    return LogitLens(
        tokens=tuple(tokens[0].tolist()),
        likeliest=tuple(tuple(one.argmax(-1).tolist()) for one in logits),
        probability=np.stack(
            [one.softmax(-1).gather(1, final[:, None])[:, 0].numpy() for one in logits]
        ),
        loss=np.array([_loss(one[None], tokens) for one in logits]),
    )


# Direct logit attribution


@dataclass(frozen=True, eq=False, kw_only=True)
class DirectAttribution(Record):
    """What each part writes into one logit, or into the difference of two, directly.

    The parts and `rest` add up to `total`: the last norm is linear once its scale is known.
    """

    position: int
    """Where the logit was taken."""
    token: int
    """Whose logit."""
    against: int | None
    """The other token of a difference."""
    embedding: float
    """What the embedding of the token wrote."""
    heads: Float[np.ndarray, "layers heads"]
    """What each head wrote."""
    feed_forward: Float[np.ndarray, " layers"]
    """What each feed-forward part wrote."""
    rest: float
    """Biases of output projections and of the last norm."""
    total: float
    """The logit, or the difference."""


@torch.no_grad()
def direct_attribution(
    decoder: Decoder, tokens: Tensor, token: int, *, against: int | None = None, position: int = -1
) -> DirectAttribution:
    """Take one logit (or a difference of two) apart into what each part wrote."""
    if decoder.norm is None:
        raise InputError(
            "decoder",
            "normalises after each part, so that no logit is a sum of parts",
            expected="a model with norms before its parts (pre-norm)",
        )
    column = position % tokens.shape[1]
    trace = decoder.trace(tokens)
    row = decoder.head_weight[token].double()
    if against is not None:
        row = row - decoder.head_weight[against].double()
    read = _linear_norm(decoder.norm, trace.layers[-1].after[0, column].double())
    heads, feed_forward, rest = [], [], float(row @ read.shift)
    for block, layer in zip(decoder.blocks, trace.layers, strict=True):
        assert isinstance(block, TransformerBlock)
        output = block.attention.output
        weight = output.weight.double()
        parts = layer.head_outputs[0, :, column].double()
        width = parts.shape[1]
        heads.append(
            [
                float(row @ read(weight[:, head * width : (head + 1) * width] @ part))
                for head, part in enumerate(parts)
            ]
        )
        if output.bias is not None:
            rest += float(row @ read(output.bias.double()))
        feed_forward.append(float(row @ read(layer.transformed[0, column].double())))
    total = trace.logits[0, column].double()
    return DirectAttribution(
        position=column,
        token=token,
        against=against,
        embedding=float(row @ read(trace.embedded[0, column].double())),
        heads=np.array(heads),
        feed_forward=np.array(feed_forward),
        rest=rest,
        total=float(total[token] - (0.0 if against is None else total[against])),
    )


@dataclass(frozen=True, eq=False)
class _LinearNorm:
    """A norm with its scale held: part ↦ g ⊙ (part − mean part) r, and the bias apart."""

    gain: Tensor
    shift: Tensor
    centred: bool

    def __call__(self, part: Tensor) -> Tensor:
        return self.gain * (part - part.mean() if self.centred else part)


def _linear_norm(norm: nn.Module, stream: Tensor) -> _LinearNorm:
    weight, eps = norm.get_parameter("weight").double(), norm.eps
    assert isinstance(eps, float)
    centred = isinstance(norm, nn.LayerNorm)
    middle = stream - stream.mean() if centred else stream
    factor = (middle.square().mean() + eps).rsqrt()
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    shift = torch.zeros_like(stream) if bias is None else bias.double()
    return _LinearNorm(weight * factor, shift, centred)


# Composition of heads


@dataclass(frozen=True, eq=False, kw_only=True)
class Composition(Record):
    """How strongly later heads read what earlier heads write: ‖A B‖ / (‖A‖ ‖B‖), Frobenius norms.

    B is what the earlier head writes, W_O W_V; A is W_QKᵀ for `queries`, W_QK for `keys`, and
    W_O W_V of the later head for `values`. `chance` is the mean over random matrices of these
    shapes and ranks. NaN where the first head is not in an earlier layer.
    """

    queries: Float[np.ndarray, "layers heads layers heads"]
    """[earlier layer, earlier head, later layer, later head]."""
    keys: Float[np.ndarray, "layers heads layers heads"]
    """The same, read by keys."""
    values: Float[np.ndarray, "layers heads layers heads"]
    """The same, read by values."""
    chance: float
    """What random matrices give."""


@torch.no_grad()
def composition(decoder: Decoder, *, seed: int = 0) -> Composition:
    """Return the composition scores of every pair of heads; gains of pre-norms are folded in."""
    config = decoder.config
    layers, count = config.layers, config.attention.heads
    matrices = [_head_matrices(block, head) for block in decoder.blocks for head in range(count)]
    size = layers * count
    scores = np.full((3, size, size), np.nan)
    for first in range(size):
        for second in range((first // count + 1) * count, size):
            written = matrices[first][1]
            matching, moved = matrices[second]
            for kind, reads in enumerate((matching.T, matching, moved)):
                scores[kind, first, second] = _relative_norm(reads, written)
    generator = torch.Generator().manual_seed(seed)
    shape = (config.width, config.head_width)
    draws = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(64)]
    chance = [
        _relative_norm(draws[i] @ draws[i + 1].T, draws[i + 2] @ draws[i + 3].T)
        for i in range(0, 64, 4)
    ]
    four = scores.reshape(3, layers, count, layers, count)
    return Composition(queries=four[0], keys=four[1], values=four[2], chance=float(np.mean(chance)))


def _head_matrices(block: nn.Module, head: int) -> tuple[Tensor, Tensor]:
    """Return W_Qᵀ W_K and W_O W_V of one head, as they act on the stream."""
    assert isinstance(block, TransformerBlock)
    attention = block.attention
    heads, kv_heads, width = attention.heads, attention.kv_heads, attention.head_width
    gain = block.attention_norm.get_parameter("weight").double() if block.pre_norm else 1.0
    vectors = attention.qkv.weight.double().view(heads + 2 * kv_heads, width, -1) * gain
    kv_head = head // (heads // kv_heads)
    query, key = vectors[head], vectors[heads + kv_head]
    value = vectors[heads + kv_heads + kv_head]
    output = attention.output.weight.double()[:, head * width : (head + 1) * width]
    return query.T @ key, output @ value


def _relative_norm(reads: Tensor, written: Tensor) -> float:
    size = float(reads.norm() * written.norm())
    return float((reads @ written).norm()) / size if size > 0 else 0.0


# Path patching


@torch.no_grad()
def path_effect(
    decoder: Decoder, tokens: Tensor, source: Tensor, sender: Head, receiver: Head
) -> Effect:
    """Return the effect of one head on another text, through another head alone.

    Every row of `tokens` has its row in `source`, of the same length. First the sender's output is
    taken from the source while all other heads and feed-forward parts between the two keep what
    they had; this gives the receiver's queries, keys and values. Then only these are patched.
    """
    if sender[0] >= receiver[0]:
        raise InputError(
            "receiver",
            f"is in layer {receiver[0]}, the sender in layer {sender[0]}",
            expected="a later layer than the sender's",
        )
    if tokens.shape != source.shape:
        raise InputError(
            "source",
            f"has shape {tuple(source.shape)}",
            expected=f"the shape of the texts, {tuple(tokens.shape)}",
        )
    count = decoder.config.attention.heads
    held = [patch("head_outputs", source, layer=sender[0], head=sender[1])]
    between = range(sender[0], receiver[0])
    for layer in between:
        others = [head for head in range(count) if (layer, head) != sender]
        if others:
            outputs = value_at(decoder, tokens, "head_outputs", layer)
            held.append(replace("head_outputs", outputs, layer=layer, head=others))
        transformed = value_at(decoder, tokens, "transformed", layer)
        held.append(replace("transformed", transformed, layer=layer))
    reached = _reached(decoder, tokens, held, receiver)
    changed = [one for one in reached if one is not None]
    if not changed:
        raise InputError("path", "carries nothing: the receiver reads the same either way")
    plain = decoder(tokens)
    with decoder.intervene(*changed):
        after = decoder(tokens)
    words = (f"path {sender[0]}.{sender[1]} → {receiver[0]}.{receiver[1]}",)
    return _effect(words, *([x[i : i + 1] for i in range(len(x))] for x in (tokens, plain, after)))


def _reached(
    decoder: Decoder, tokens: Tensor, held: Sequence[Intervention], receiver: Head
) -> list[Intervention | None]:
    """Return patches of what the receiver's queries, keys and values become."""
    layer, head = receiver
    kv_head = head // (decoder.config.attention.heads // decoder.config.kv_heads)
    with decoder.intervene(*held, strict=False):
        trace = decoder.trace(tokens)
    patches: list[Intervention | None] = []
    for place, number in (("queries", head), ("keys", kv_head), ("values", kv_head)):
        reached = getattr(trace.layers[layer], place)
        if torch.equal(reached[:, number], value_at(decoder, tokens, place, layer)[:, number]):
            patches.append(None)
            continue
        patches.append(replace(place, reached, layer=layer, head=number))
    return patches


# Circuits


@dataclass(frozen=True, eq=False, kw_only=True)
class Circuit(Record):
    """Few heads that keep a share of what all heads do, the others replaced by their means.

    kept = (loss with none − loss with these) / (loss with none − loss with all)
    """

    heads: tuple[Head, ...]
    """Layer and head of each."""
    of: int
    """Heads in the model."""
    wanted: float
    """The share that was asked for."""
    kept: float
    """On the texts of the search."""
    checked: Estimate
    """On other texts, with its interval over them."""
    passes: int
    """How many sets of heads were tried."""


def smallest_circuit(
    decoder: Decoder,
    texts: Sequence[Tensor],
    others: Sequence[Tensor],
    *,
    share: float = 0.9,
    budget: int = 400,
) -> Circuit:
    """Search for few heads that keep a share of the effect; then check them on other texts.

    Heads are added greedily, the one that lowers the loss most first, then taken away again where
    the share holds without them. `budget` bounds the sets that are tried. The set is small, not
    proved to be the smallest: that would take all subsets.
    """
    search = _HeadSets(decoder, texts)
    everything = frozenset(search.all)
    none, full = search.loss(frozenset()), search.loss(everything)
    if none <= full:
        raise InputError("texts", "are predicted no better with heads than with their means")

    def kept(chosen: frozenset[Head]) -> float:
        return (none - search.loss(chosen)) / (none - full)

    chosen: frozenset[Head] = frozenset()
    while kept(chosen) < share and chosen != everything:
        left = sorted(everything - chosen)
        if search.passes + len(left) > budget:
            raise InputError(
                "budget",
                f"of {budget} sets is used up with {len(chosen)} heads, "
                f"which keep {kept(chosen):.0%}",
                expected=f"about {len(search.all) ** 2 // 2} would do for certain",
            )
        chosen = max((chosen | {head} for head in left), key=kept)
    for head in sorted(chosen):
        if search.passes < budget and kept(chosen - {head}) >= share:
            chosen -= {head}
    check = _HeadSets(decoder, others, means=search.means)
    losses = [check.losses(heads) for heads in (frozenset(), chosen, everything)]
    ratios = (losses[0] - losses[1]) / (losses[0] - losses[2])
    return Circuit(
        heads=tuple(sorted(chosen)),
        of=len(search.all),
        wanted=share,
        kept=kept(chosen),
        checked=Estimate.of(ratios),
        passes=search.passes,
    )


class _HeadSets:
    """Losses of texts when only some heads read; the others give their mean over the texts."""

    def __init__(
        self, decoder: Decoder, texts: Sequence[Tensor], means: Sequence[Tensor] | None = None
    ) -> None:
        self.decoder, self.texts, self.passes = decoder, texts, 0
        config = decoder.config
        layers, heads = range(config.layers), range(config.attention.heads)
        self.all = [(layer, head) for layer in layers for head in heads]
        self.means = [self._mean(layer) for layer in layers] if means is None else means
        self._known: dict[frozenset[Head], np.ndarray] = {}

    def _mean(self, layer: int) -> Tensor:
        values = [value_at(self.decoder, row, "head_outputs", layer) for row in self.texts]
        return torch.cat([one[0] for one in values], dim=1).mean(dim=1)[None, :, None]

    @torch.no_grad()
    def losses(self, chosen: frozenset[Head]) -> np.ndarray:
        """Return the loss of each text."""
        if chosen not in self._known:
            self.passes += 1
            silenced: dict[int, list[int]] = {}
            for layer, head in self.all:
                if (layer, head) not in chosen:
                    silenced.setdefault(layer, []).append(head)
            changes = [
                replace("head_outputs", self.means[layer], layer=layer, head=heads)
                for layer, heads in silenced.items()
            ]
            if changes:
                with self.decoder.intervene(*changes, strict=False):
                    losses = [_loss(self.decoder(row), row) for row in self.texts]
            else:
                losses = [_loss(self.decoder(row), row) for row in self.texts]
            self._known[chosen] = np.array(losses)
        return self._known[chosen]

    def loss(self, chosen: frozenset[Head]) -> float:
        """Return the mean loss over the texts."""
        return float(self.losses(chosen).mean())
