"""Greedy decoding and sampling, token by token, for many rows at once.

A row that has ended leaves the cache at once: a batch with one long text costs little more than
that text.
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
from heedful.model import Cache


def steps(prompts: Prompts, method: Greedy | Sampling, step: FastStep) -> Iterator[Step]:
    """Yield the new tokens of all running rows, until every row has ended."""
    samples = method.samples if isinstance(method, Sampling) else 1
    chance = _chances(method, len(prompts.rows), prompts.limit)
    logits, cache = _begin(step, prompts, samples)
    kept = list(range(len(logits)))  # the row that each row of the cache belongs to
    limits = [limit for limit in prompts.limits for _ in range(samples)]
    for number in range(prompts.limit):
        numbers = None if chance is None else chance[kept, number]
        tokens, values = _choose(logits, method, numbers)
        made = _step(kept, tokens, values, prompts.ends)
        yield made
        running = [
            place
            for place, (row, ended) in enumerate(zip(kept, made.finished, strict=True))
            if not ended and limits[row] > number + 1
        ]
        if not running:
            return
        if len(running) < len(kept):
            tokens, order = _shrink(cache, tokens, running)
            kept = [kept[place] for place in order]
        logits = step(tokens, cache)


@torch.inference_mode()
def _begin(step: FastStep, prompts: Prompts, samples: int) -> tuple[Tensor, Cache]:
    logits, cache = prompts.read(step)
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
def _shrink(cache: Cache, tokens: Tensor, running: Sequence[int]) -> tuple[Tensor, list[int]]:
    order = cache.keep(running)
    return tokens[torch.tensor(order, device=tokens.device)], order


def _step(kept: Sequence[int], tokens: Tensor, values: Tensor, ends: frozenset[int]) -> Step:
    chosen = tokens.tolist()
    return Step(
        rows=tuple(kept),
        tokens=tuple(chosen),
        log_probabilities=tuple(values.tolist()),
        finished=tuple(token in ends for token in chosen),
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
