"""Models so small that every text can be tried: the oracle of all statements about all texts.

    python tests/model_claims/enumerated.py --models 50 [--record FILE.json]

tries all texts of up to five tokens with that many models of up to 12 tokens and two layers, half
of them trained, with every position scheme. It compares each extreme of the first layer with the
brute force, and every bound of every layer with every text.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from heedful.files import write_json
from heedful.machine import cpu_name, load
from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.trace import Trace
from heedful.model_claims.bounds import TextBounds
from heedful.model_claims.first_layer import (
    NAMED,
    Extreme,
    FirstLayer,
    KeyPlaces,
    extremes,
    least_combination,
)
from heedful.model_claims.intervals import Box
from heedful.positions.encodings import (
    Alibi,
    Learned,
    NoPositions,
    PartialRotary,
    Rotary,
    Sinusoidal,
)

SCHEMES = (
    Rotary(),
    Learned(),
    PartialRotary(share=0.5),
    Alibi(),
    Sinusoidal(),
    NoPositions(),
    Rotary(base=50.0, layout="half"),
)
QUESTIONS = {
    **NAMED,
    "two back": KeyPlaces(back=(2,)),
    "second": KeyPlaces(absolute=(1,), since=2),
    "previous and first": KeyPlaces(back=(1,), absolute=(0,), since=2),
    "all but itself": KeyPlaces(back=(1, 2), since=2),
}
CHUNK = 4096
"""Texts that are computed at once."""
ROOM = 1e-12
"""What the decoder's own rounding may put beyond a bound, relative to 1 and the number."""
EXACT = 1e-9
"""How near to the brute force an extreme must be."""


def small_model(seed: int, *, vocabulary: int | None = None, length: int = 5) -> Decoder:
    """Return a decoder of two layers in float64: random, and trained a little for odd seeds."""
    draw = random.Random(seed)
    heads, kv_heads = draw.choice([(4, 2), (2, 2), (4, 1), (3, 3)])
    activation = draw.choice(["gelu", "gelu_tanh", "relu", "swiglu"])
    config = DecoderConfig(
        vocabulary=vocabulary or draw.randint(4, 12),
        context=length + draw.randint(0, 3),
        width=12,
        layers=2,
        attention=Attention(
            heads=heads,
            kv_heads=kv_heads,
            head_width=4,
            qkv_bias=draw.random() < 0.5,
            output_bias=draw.random() < 0.5,
            qk_norm=draw.random() < 0.3,
        ),
        feed_forward=FeedForward(activation=activation, width=8, bias=draw.random() < 0.5),  # type: ignore[arg-type]
        norm=Norm(
            kind=draw.choice(["layer", "rms"]),
            placement="post" if draw.random() < 0.25 else "pre",
            bias=draw.random() < 0.7,
        ),
        positions=SCHEMES[seed % len(SCHEMES)],
        embedding_scale=draw.choice([1.0, 2.5]),
        initial_std=draw.choice([0.2, 0.6]),
        tied=draw.random() < 0.5,
    )
    decoder = Decoder(config, seed=seed).double()
    with torch.no_grad():  # gains and biases that are not all 1 and 0
        for number, parameter in enumerate(decoder.parameters()):
            noise = torch.Generator().manual_seed(1000 * seed + number)
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=noise).double() * 0.3)
    if seed % 2:
        _train(decoder, seed, length)
    return decoder.eval()


def _train(decoder: Decoder, seed: int, length: int) -> None:
    """Teach it to repeat the token before the last one, which needs sharp attention."""
    noise = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(decoder.parameters(), lr=0.02)
    for _ in range(60):
        rows = torch.randint(decoder.config.vocabulary, (32, length), generator=noise)
        logits = decoder(rows)[:, 1:]
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, :-1].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()


def every_text(vocabulary: int, length: int, begin: int | None = None) -> torch.Tensor:
    """Return all rows of this many tokens; with `begin`, those that begin with it."""
    free = length if begin is None else length - 1
    rows = torch.tensor(list(itertools.product(range(vocabulary), repeat=free)), dtype=torch.long)
    rows = rows.view(vocabulary**free, free)
    if begin is None:
        return rows
    return torch.cat([torch.full((len(rows), 1), begin), rows], dim=1)


@torch.no_grad()
def traced(decoder: Decoder, rows: torch.Tensor) -> Trace:
    """Return what happens inside, for every row."""
    return decoder.trace(rows)


@dataclass
class Agreement:
    """What trying every text says about the extremes and bounds of a model."""

    texts: int = 0
    extremes: int = 0
    """Extremes of the first layer compared with the brute force, combinations included."""
    difference: float = 0.0
    """The greatest difference between the two."""
    inexact: int = 0
    """Extremes that are not the brute force's, not in their interval, or not attained."""
    bounds: int = 0
    """Numbers of single texts compared with their bounds."""
    violations: int = 0
    """Numbers outside of their bounds."""

    def add(self, other: Agreement) -> None:
        """Count another model too."""
        self.texts += other.texts
        self.extremes += other.extremes
        self.difference = max(self.difference, other.difference)
        self.inexact += other.inexact
        self.bounds += other.bounds
        self.violations += other.violations


class BruteForce:
    """Every text of a length, tried in the decoder itself."""

    def __init__(self, decoder: Decoder, length: int, begin: int | None = None) -> None:
        self.decoder, self.length, self.begin = decoder, length, begin
        self.texts = every_text(decoder.config.vocabulary, length, begin)
        self.heads = decoder.config.attention.heads
        rng = np.random.default_rng(decoder.config.vocabulary)
        self.coefficients = [rng.normal(size=t + 1).round(3) for t in range(length)]
        self.agreement = Agreement(texts=len(self.texts))

    def run(self, *, bounds: bool = True) -> Agreement:
        """Compare extremes with all texts and, if wanted, all texts with the bounds."""
        seen: dict[tuple[Any, ...], float] = {}
        boxes = TextBounds(self.decoder, self.length, begin=self.begin) if bounds else None
        for rows in torch.split(self.texts, CHUNK):
            trace = traced(self.decoder, rows)
            for key, numbers in self._weights(trace):
                least, greatest = float(numbers.min()), float(numbers.max())
                seen[(*key, "least")] = min(least, seen.get((*key, "least"), least))
                seen[(*key, "greatest")] = max(greatest, seen.get((*key, "greatest"), greatest))
            if boxes is not None:
                self._inside(boxes, trace, rows)
        self._compare(seen)
        return self.agreement

    def _weights(self, trace: Trace) -> Iterator[tuple[tuple[Any, ...], torch.Tensor]]:
        """Yield what the first layer gives to the places of each question, text by text."""
        weights = trace.layers[0].weights
        for t in range(self.length):
            for name, places in QUESTIONS.items():
                chosen = places.of(t)
                if chosen is not None:
                    totals = weights[:, :, t, list(chosen)].sum(-1)
                    for head in range(self.heads):
                        yield (name, head, t), totals[:, head]
            combined = weights[:, :, t, : t + 1] @ torch.from_numpy(self.coefficients[t])
            for head in range(self.heads):
                yield ("combination", head, t), combined[:, head]

    def _compare(self, seen: dict[tuple[Any, ...], float]) -> None:
        for head in range(self.heads):
            layer = FirstLayer(self.decoder, head, begin=self.begin)
            found = extremes(layer, QUESTIONS, [3, self.length])
            for one, attained in zip(found, self._attained(head, found), strict=True):
                pick = min if one.kind == "least" else max
                expected = pick(
                    seen[one.places, head, t, one.kind]
                    for t in range(one.length)
                    if QUESTIONS[one.places].of(t) is not None
                )
                self._extreme(one, attained, expected)
            for t, c in enumerate(self.coefficients):
                for sign, kind in ((1.0, "least"), (-1.0, "greatest")):
                    combined = least_combination(layer, t, (sign * c).tolist())
                    expected = sign * seen["combination", head, t, kind]
                    right = combined.low - ROOM <= expected <= combined.high + ROOM
                    self._count(abs(combined.value - expected), right=right)

    def _attained(self, head: int, found: list[Extreme]) -> list[float]:
        """Return what each witness gives in the decoder itself."""
        longest = max(len(one.tokens) for one in found)
        rows = torch.tensor([[*one.tokens, *[0] * (longest - len(one.tokens))] for one in found])
        weights = traced(self.decoder, rows).layers[0].weights[:, head]
        return [
            float(row[one.query, list(QUESTIONS[one.places].of(one.query) or ())].sum())
            for row, one in zip(weights, found, strict=True)
        ]

    def _extreme(self, found: Extreme, attained: float, expected: float) -> None:
        """Compare one extreme with all texts, and with its own text in the decoder."""
        low, high = found.certified
        right = low - 0.1 * ROOM <= expected <= high + 0.1 * ROOM
        right = right and len(found.tokens) == found.query + 1 <= found.length
        off = max(abs(found.weight - expected), abs(attained - expected))
        # Small weights must be right in their digits, too.
        self._count(off, right=right and off <= 1e-6 * expected + 1e-15)

    def _count(self, off: float, *, right: bool) -> None:
        self.agreement.extremes += 1
        self.agreement.difference = max(self.agreement.difference, off)
        self.agreement.inexact += not (right and off <= EXACT)

    def _inside(self, boxes: TextBounds, trace: Trace, texts: torch.Tensor) -> None:
        """Compare streams, weights and logits of every text with their bounds."""
        for t in range(self.length):
            place = {int(number): row for row, number in enumerate(boxes.ids[t])}
            rows = [place[int(number)] for number in texts[:, t]]
            for number, layer in enumerate(trace.layers):
                self._held(boxes.streams[number + 1][t][rows], layer.after[:, t])
                for head in range(self.heads):
                    weights = layer.weights[:, head, t, : t + 1]
                    for places in QUESTIONS.values():
                        chosen = places.of(t)
                        if chosen is not None:
                            box = boxes.weights(number, head, t, chosen)
                            self._held(box[rows], weights[:, list(chosen)].sum(-1))
                    box = boxes.combination(number, head, t, self.coefficients[t])
                    self._held(box[rows], weights @ torch.from_numpy(self.coefficients[t]))
            self._held(boxes.logits(t)[rows], trace.logits[:, t])

    def _held(self, box: Box, seen: torch.Tensor) -> None:
        numbers = seen.numpy()
        room = ROOM * (1 + np.abs(numbers))
        self.agreement.bounds += numbers.size
        outside = (numbers < box.low - room) | (numbers > box.high + room)
        self.agreement.violations += int(outside.sum())


def main() -> None:
    """Try all texts of many models, and say what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=int, default=50)
    options.add_argument("--first", type=int, default=100, help="the first seed")
    options.add_argument("--record", type=Path)
    chosen = options.parse_args()
    total, kinds = Agreement(), dict[str, int]()
    start, before = time.process_time(), load()
    for seed in range(chosen.first, chosen.first + chosen.models):
        decoder = small_model(seed)
        found = BruteForce(decoder, 5).run()
        found.add(BruteForce(decoder, 5, begin=1).run())
        total.add(found)
        config = decoder.config
        grouped = config.kv_heads < config.attention.heads
        described = (
            config.positions.kind,
            "grouped heads" if grouped else "one key for each head",
            "trained" if seed % 2 else "random",
        )
        for word in described:
            kinds[word] = kinds.get(word, 0) + 1
        print(f"{seed}: {config.vocabulary} tokens, {', '.join(described)}: {found}", flush=True)
    record = {
        "models": chosen.models,
        "of each kind": kinds,
        **vars(total),
        "processor seconds": round(time.process_time() - start, 1),
        "load before": before,
        "cpu": cpu_name(),
    }
    print(record)
    if chosen.record is not None:
        write_json(chosen.record, record)


if __name__ == "__main__":
    main()
