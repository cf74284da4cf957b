"""Continue prompts by any method, at once or token by token.

Greedy decoding and sampling run many rows side by side. A row that has ended leaves the cache at
once: a batch with one long text costs little more than that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.generation.beam import beam_search
from heedful.generation.fast import FastStep
from heedful.generation.methods import (
    GREEDY,
    Beams,
    Continuation,
    GenerationResult,
    Greedy,
    Method,
    Sampling,
    Step,
    Stops,
    draw,
    filtered,
    log_probabilities,
)
from heedful.generation.prompts import Prompts
from heedful.model import Cache, Decoder

DEFAULT_STOPS = Stops()


def generate(
    decoder: Decoder,
    prompts: Any,
    *,
    method: Method = GREEDY,
    stops: Stops = DEFAULT_STOPS,
    step: FastStep | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> GenerationResult:
    """Continue every prompt, a row of token ids each; rows may differ in length.

    `step` keeps prepared weights between calls, and `FastStep(decoder, "int8")` rounds them;
    without it they are prepared anew. `on_step` is called with each new token of greedy
    decoding and sampling.

    >>> from heedful.model import preset
    >>> result = generate(Decoder(preset("tiny"), seed=0), [[72, 105], [7]], stops=Stops(tokens=3))
    >>> [len(best.tokens) for (best,) in result.continuations]
    [3, 3]
    """
    checked = Prompts.of(decoder.config, prompts, stops)
    step = _prepared(decoder, step)
    results = continuations(decoder, checked, method, step, on_step)
    return GenerationResult(
        method=method.model_dump(),
        limit=checked.limit,
        precision=step.precision,
        prompts=checked.rows,
        continuations=results,
    )


def continuations(
    decoder: Decoder,
    prompts: Prompts,
    method: Method,
    step: FastStep,
    on_step: Callable[[Step], None] | None = None,
) -> tuple[tuple[Continuation, ...], ...]:
    """Return the continuations of prompts that were checked, each up to its own limit."""
    with evaluating(decoder):
        if not isinstance(method, Beams):
            return _collect(prompts, method, step, on_step)
        if on_step is not None:
            raise _no_stream()
        return beam_search(prompts, method, step)


def stream(
    decoder: Decoder,
    prompts: Any,
    *,
    method: Method = GREEDY,
    stops: Stops = DEFAULT_STOPS,
    step: FastStep | None = None,
) -> Iterator[Step]:
    """Return an iterator over the new tokens; what is wrong is said before the first.

    >>> from heedful.model import preset
    >>> decoder = Decoder(preset("tiny"), seed=0).eval()
    >>> sum(len(step.tokens) for step in stream(decoder, [[1], [2, 3]], stops=Stops(tokens=4)))
    8
    """
    checked = Prompts.of(decoder.config, prompts, stops)
    if isinstance(method, Beams):
        raise _no_stream()
    if decoder.training:
        raise InputError(
            "decoder", "is in training mode, where dropout is active", hint="call decoder.eval()"
        )
    return steps(checked, method, _prepared(decoder, step))


def _collect(
    prompts: Prompts,
    method: Greedy | Sampling,
    step: FastStep,
    on_step: Callable[[Step], None] | None,
) -> tuple[tuple[Continuation, ...], ...]:
    samples = method.samples if isinstance(method, Sampling) else 1
    count = len(prompts.rows) * samples
    tokens: list[list[int]] = [[] for _ in range(count)]
    values: list[list[float]] = [[] for _ in range(count)]
    for new in steps(prompts, method, step):
        for row, token, value in zip(new.rows, new.tokens, new.log_probabilities, strict=True):
            tokens[row].append(token)
            values[row].append(value)
        if on_step is not None:
            on_step(new)
    results = [
        Continuation(
            tokens=tuple(row),
            log_probabilities=tuple(chosen),
            score=sum(chosen),
            finished=row[-1] in prompts.ends,
        )
        for row, chosen in zip(tokens, values, strict=True)
    ]
    return tuple(tuple(results[first : first + samples]) for first in range(0, count, samples))


def _prepared(decoder: Decoder, step: FastStep | None) -> FastStep:
    if step is not None and step.decoder is not decoder:
        raise InputError(
            "step", "was made from another decoder", hint="use FastStep(decoder) of this one"
        )
    return FastStep(decoder) if step is None else step


@contextmanager
def evaluating(decoder: Decoder) -> Iterator[None]:
    """Switch dropout off, and back to what it was."""
    training = decoder.training
    decoder.eval()
    try:
        yield
    finally:
        decoder.train(training)


def _no_stream() -> InputError:
    return InputError(
        "method",
        "beam search changes its mind until the end, so that it cannot be streamed",
        hint="stream greedy decoding or sampling",
    )


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
        new = _step(kept, tokens, values, prompts.ends)
        yield new
        running = [
            place
            for place, (row, ended) in enumerate(zip(kept, new.finished, strict=True))
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
