"""Greedy decoding and sampling, token by token, for many rows at once.

Rows that have ended are dropped from the cache as soon as they are a quarter of it: a batch
with one long text costs little more than that text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.generation.fast_step import FastStep
from heedful.generation.filters import draw, filtered, log_probabilities
from heedful.generation.methods import Greedy, Sampling
from heedful.generation.prompts import Prompts
from heedful.generation.records import Step
from heedful.model import Cache, Decoder

CROWDED = 0.75
"""The cache is made smaller when at most this share of its rows still runs."""


def steps(
    decoder: Decoder, prompts: Prompts, method: Greedy | Sampling, step: FastStep
) -> Iterator[Step]:
    """Yield the new tokens of all running rows, until every row has ended."""
    samples = method.samples if isinstance(method, Sampling) else 1
    chance = _chances(method, len(prompts.rows), prompts.limit)
    logits, cache = _begin(decoder, prompts, samples)
    kept = list(range(len(logits)))  # the row that each row of the cache belongs to
    running = set(kept)
    limits = [limit for limit in prompts.limits for _ in range(samples)]
    for number in range(prompts.limit):
        numbers = None if chance is None else chance[kept, number]
        tokens, values = _choose(logits, method, numbers)
        made = _step(kept, running, tokens, values, prompts.ends)
        running -= {row for row, ended in zip(made.rows, made.finished, strict=True) if ended}
        running -= {row for row in running if limits[row] == number + 1}
        yield made
        if not running:
            return
        # A row that has ended is carried along for a while, but not beyond the context.
        longest = max(len(prompts.rows[row // samples]) for row in kept) + number + 1
        if len(running) <= CROWDED * len(kept) or longest > decoder.config.context:
            chosen = [place for place, row in enumerate(kept) if row in running]
            tokens, kept = _shrink(cache, tokens, chosen), [kept[place] for place in chosen]
        logits = step(tokens, cache)


@torch.inference_mode()
def _begin(decoder: Decoder, prompts: Prompts, samples: int) -> tuple[Tensor, Cache]:
    logits, cache = prompts.read(decoder)
    if samples > 1:
        rows = torch.arange(len(logits), device=logits.device).repeat_interleave(samples)
        cache.select(rows)
        logits = logits[rows]
    return logits, cache


@torch.inference_mode()
def _choose(
    logits: Float[Tensor, "rows vocabulary"],
    method: Greedy | Sampling,
    chance: Float[Tensor, " rows"] | None,
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    own = log_probabilities(logits)
    if chance is None or not isinstance(method, Sampling):
        best = own.max(dim=-1)
        return best.indices, best.values
    tokens = draw(filtered(logits, method), chance.to(logits.device))
    return tokens, own.gather(1, tokens.unsqueeze(1)).squeeze(1)


@torch.inference_mode()
def _shrink(cache: Cache, tokens: Tensor, chosen: Sequence[int]) -> Tensor:
    rows = torch.tensor(chosen, device=tokens.device)
    cache.select(rows)
    return tokens[rows]


def _step(
    kept: Sequence[int], running: set[int], tokens: Tensor, values: Tensor, ends: frozenset[int]
) -> Step:
    made = [
        (row, token, value)
        for row, token, value in zip(kept, tokens.tolist(), values.tolist(), strict=True)
        if row in running
    ]
    return Step(
        rows=tuple(row for row, _, _ in made),
        tokens=tuple(token for _, token, _ in made),
        log_probabilities=tuple(value for _, _, value in made),
        finished=tuple(token in ends for _, token, _ in made),
    )


def _chances(
    method: Greedy | Sampling, prompts: int, limit: int
) -> Float[Tensor, "rows limit"] | None:
    """Return the random numbers of each row, from a generator of its own.

    A sample depends on the seed, on the place of its prompt and on its own number, not on how
    many others run beside it.
    """
    if not isinstance(method, Sampling):
        return None
    rows = []
    for prompt in range(prompts):
        for sample in range(method.samples):
            state = np.random.SeedSequence((method.seed, prompt, sample)).generate_state(2)
            generator = torch.Generator().manual_seed(int(state[0]) << 32 | int(state[1]))
            rows.append(torch.rand(limit, generator=generator, dtype=torch.float64))
    return torch.stack(rows)
