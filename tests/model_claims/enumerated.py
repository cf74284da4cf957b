"""Models so small that every text can be tried: the oracle of all statements about all texts."""

from __future__ import annotations

import itertools
import random

import torch
from torch.nn import functional

from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.trace import Trace
from heedful.positions.schemes import Alibi, Learned, NoPositions, PartialRotary, Rotary, Sinusoidal

SCHEMES = (
    Rotary(),
    Learned(),
    PartialRotary(share=0.5),
    Alibi(),
    Sinusoidal(),
    NoPositions(),
    Rotary(base=50.0, layout="half"),
)


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
    rows = rows.view(-1, free)
    if begin is None:
        return rows
    return torch.cat([torch.full((len(rows), 1), begin), rows], dim=1)


@torch.no_grad()
def traced(decoder: Decoder, rows: torch.Tensor) -> Trace:
    """Return what happens inside, for every row."""
    return decoder.trace(rows)
