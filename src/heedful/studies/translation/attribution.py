"""What each token of a translation owes to the source: five methods that give different answers.

The decoder reads `begin source between target`; p_t is the probability that it gives to target
token t. A method scores every source token s for every target token t; scores are not negative.

    attention       α_ts, the mean over the heads that align (see `alignment`)
    value norm      α_ts ‖W_O v_s‖, made to sum to 1 over all keys, the mean over such heads: a
                    weight on a value near zero moves nothing (Kobayashi et al., 2020)
    gradient        ‖e_s ⊙ ∂ log p_t / ∂ e_s‖, with e_s the embedding of the token
    integrated      ‖(e_s − m) ⊙ ∫ ∂ log p_t / ∂ e_s da‖ along m + a (e − m), a from 0 to 1, for all
                    source tokens at once (Sundararajan et al., 2017). m is the mean embedding: from
                    zero, a norm before the first layer would make the whole path one point
    erasure         how much log p_t falls when the word of s is taken out of the source

Which of them is right is a question for an experiment: `attribution_study` puts them on trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.generation.decoding import evaluating
from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.model.trace import TraceRecorder

Method: TypeAlias = Literal["attention", "value norm", "gradient", "integrated", "erasure"]
METHODS: tuple[Method, ...] = get_args(Method)
BEST_METHOD: Method = "erasure"
"""What alignments are made with unless another is asked for: the method with the least alignment
error on the phrasebook, whose words the translation also needs most (`heed study attribution`; the
figures are in docs/inside.md)."""
STEPS = 16
"""Points of the path of integrated gradients (Gauss and Legendre). Where a norm bends the path near
its start the sum is off by some tenths of a nat; which word scores highest hardly ever changes."""

Scores = Float[np.ndarray, "targets sources"]
HeadWeights = Float[np.ndarray, "heads targets sources"]


@dataclass(frozen=True, eq=False)
class ForcedTranslation:
    """A source and its translation as a decoder reads them."""

    decoder: Decoder
    prompt: tuple[int, ...]
    """`begin source between`, as token ids."""
    opening: int
    """Tokens before the source: 1 with a mark that begins, else 0."""
    target: tuple[int, ...]
    owners: tuple[int, ...]
    """The word that each source token belongs to."""

    @property
    def sources(self) -> slice:
        """Where the source tokens stand."""
        return slice(self.opening, len(self.prompt) - 1)

    def row(self, removed: Iterable[int] = ()) -> list[int]:
        """Return what is read, without some words of the source."""
        gone = frozenset(removed)
        source = self.prompt[self.sources]
        kept = [token for token, word in zip(source, self.owners, strict=True) if word not in gone]
        return [*self.prompt[: self.opening], *kept, self.prompt[-1], *self.target[:-1]]

    def log_probabilities(
        self, removed: Sequence[frozenset[int]]
    ) -> dict[frozenset[int], Float[np.ndarray, " targets"]]:
        """Return log p of every target token without some words, for each such set of words."""
        lengths: dict[int, list[frozenset[int]]] = {}
        for words in dict.fromkeys(removed):
            lengths.setdefault(len(self.row(words)), []).append(words)
        found: dict[frozenset[int], Float[np.ndarray, " targets"]] = {}
        with torch.inference_mode(), evaluating(self.decoder):
            for sets in lengths.values():
                rows = torch.tensor([self.row(words) for words in sets])
                chosen = _target_log_probabilities(self.decoder, rows, self.target, None)
                found.update(zip(sets, chosen.numpy(), strict=True))
        return found


def scores(reading: ForcedTranslation, method: Method) -> Scores:
    """Return the score of every source token for every target token.

    Of the two methods that look at heads, this is the mean over all of them; `head_weights` has
    them one by one.
    """
    if method in ("attention", "value norm"):
        mean: Scores = head_weights(reading, norms=method == "value norm").mean(axis=0)
        return mean
    if method == "erasure":
        return _erasure(reading)
    products = gradient_products if method == "gradient" else integrated_products
    found: Scores = products(reading).norm(dim=-1).numpy()
    return found


def head_weights(reading: ForcedTranslation, *, norms: bool = False) -> HeadWeights:
    """Return the weights of all heads, layer after layer; with `norms`, times ‖W_O v‖."""
    decoder = reading.decoder
    with torch.inference_mode(), evaluating(decoder):
        trace = decoder.trace(torch.tensor([reading.row()], device=decoder.embedding.weight.device))
    asking = slice(len(reading.prompt) - 1, None)  # token t is predicted from the position before
    found = []
    for layer, block in zip(trace.layers, decoder.blocks, strict=True):
        weights = layer.weights[0]
        if norms:
            assert isinstance(block, TransformerBlock)
            heads, width = weights.shape[0], layer.values.shape[-1]
            values = layer.values[0].repeat_interleave(heads // layer.values.shape[1], dim=0)
            output = block.attention.output.weight.detach().reshape(-1, heads, width)
            written = torch.einsum("hsw,ohw->hso", values.double(), output.double())
            weights = weights * written.norm(dim=-1).unsqueeze(1)
            weights = weights / weights.sum(dim=-1, keepdim=True)
        found.append(weights[:, asking, reading.sources].cpu().numpy())
    return np.concatenate(found)


def _erasure(reading: ForcedTranslation) -> Scores:
    words = sorted(set(reading.owners))
    sets = [frozenset[int]()] + [frozenset([word]) for word in words]
    found = reading.log_probabilities(sets)
    fallen = {word: found[sets[0]] - found[frozenset([word])] for word in words}
    counts = {word: reading.owners.count(word) for word in words}
    # A word falls as a whole: its tokens share it, so that the sum over them is the word's score.
    rows = [np.maximum(fallen[word], 0.0) / counts[word] for word in reading.owners]
    return np.stack(rows, axis=1)


Products: TypeAlias = Float[Tensor, "targets sources width"]


def gradient_products(reading: ForcedTranslation) -> Products:
    """Return e ⊙ ∂ log p_t / ∂ e for every target and source token."""
    width = reading.decoder.config.width
    return _products(reading, torch.zeros(width), [(1.0, 1.0)])


def integrated_products(reading: ForcedTranslation, steps: int = STEPS) -> Products:
    """Return (e − m) ⊙ the mean gradient along the path from the mean embedding m.

    The sum over source tokens is the difference of log p_t between the ends of the path.
    """
    places, weights = np.polynomial.legendre.leggauss(steps)
    points = [(float(x + 1) / 2, float(w) / 2) for x, w in zip(places, weights, strict=True)]
    return _products(reading, reading.decoder.embedding.weight.detach().mean(dim=0), points)


def _products(
    reading: ForcedTranslation, baseline: Tensor, points: list[tuple[float, float]]
) -> Products:
    decoder, count = reading.decoder, len(reading.target)
    rows = torch.tensor([reading.row()]).expand(count, -1)
    path = _Path(decoder, rows.shape[1], reading.sources, baseline)
    total = torch.zeros(())
    with torch.enable_grad(), evaluating(decoder):
        for point, weight in points:
            path.point = point
            # Row t asks for token t alone, so that one pass back serves all of them.
            asked = _target_log_probabilities(decoder, rows, reading.target, path)
            (gradient,) = torch.autograd.grad(asked.diagonal().sum(), path.tokens)
            total = total + weight * gradient
    return (path.way * total).detach().double()


class _Path(TraceRecorder):
    """Puts embeddings of the source somewhere between a baseline and their own place."""

    def __init__(self, decoder: Decoder, time: int, sources: slice, baseline: Tensor) -> None:
        super().__init__(keep=())
        self.point, self.sources = 1.0, sources
        weight = decoder.embedding.weight
        with torch.no_grad():
            positions = torch.arange(time, device=weight.device).expand(1, -1)
            nothing = torch.zeros(1, time, decoder.config.width).to(weight)
            self._positions = decoder.add_positions(nothing, positions)
            start = decoder.add_positions(nothing + baseline.to(weight), positions)
            self._baseline = (start - self._positions)[:, sources]
        self.way = self.tokens = torch.zeros(())

    def change(self, place: str, tensor: Tensor) -> Tensor:
        """Replace what comes from the tokens of the source; positions stay."""
        if place != "embedded":
            return tensor
        stream = tensor.detach().clone()
        positions = self._positions[:, self.sources]
        self.way = stream[:, self.sources] - positions - self._baseline
        self.tokens = (self._baseline + self.point * self.way).requires_grad_()
        stream[:, self.sources] = positions + self.tokens
        return stream


def _target_log_probabilities(
    decoder: Decoder, rows: Tensor, target: Sequence[int], recorder: TraceRecorder | None
) -> Float[Tensor, "rows targets"]:
    hidden = decoder.hidden(rows.to(decoder.embedding.weight.device), recorder=recorder)
    logits = decoder.logits(hidden[:, -len(target) :]).double()
    chosen = torch.tensor(target, device=logits.device).expand(len(rows), -1).unsqueeze(-1)
    return logits.log_softmax(dim=-1).gather(-1, chosen).squeeze(-1).cpu()
