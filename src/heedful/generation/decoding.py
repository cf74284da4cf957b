"""Continue prompts by any method, at once or token by token.

Prompts may have any lengths. Shorter ones are padded on the left, so that all rows get their next
token in one column. Prompts of one length that begin alike, as questions after the same examples
do, have their common beginning read once.

Greedy decoding and sampling run many rows side by side. A row that has ended leaves the cache at
once: a batch with one long text costs little more than that text.

In beam search every running continuation is extended by every token at each step, and the best
candidates go on. Those that end are set aside with the score Σ log p / n^penalty; the best of
these, as many as there are beams, are the answer. Rules, scores and the three ways to stop are
those of `transformers` (its `early_stopping` False, True and "never"), against which tests compare.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.generation.fast import FastStep
from heedful.generation.methods import (
    DEFAULT_TOKENS,
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
    without,
)
from heedful.model import Cache, Decoder, DecoderConfig

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
        tokens, values = _choose(logits, method, numbers, prompts.suppressed)
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
    suppressed: frozenset[int],
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    own = log_probabilities(logits)
    if chance is None or not isinstance(method, Sampling):
        best = without(own, suppressed).max(dim=-1)
        return best.indices, best.values
    tokens = draw(filtered(without(logits, suppressed), method), chance.to(logits.device))
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


WORTH_SHARING = 16
"""Tokens in common from which reading them once saves more than copying what was read."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """Rows of token ids that fit a model, and how far each may go on."""

    rows: tuple[tuple[int, ...], ...]
    limits: tuple[int, ...]
    """New tokens of each row at most; its prompt leaves room for them."""
    ends: frozenset[int]
    """Ids that end a text."""
    suppressed: frozenset[int] = frozenset()
    """Ids that never come."""

    @classmethod
    def of(cls, config: DecoderConfig, prompts: Any, stops: Stops) -> Prompts:
        """Check everything that a user can get wrong, before any work."""
        rows = tuple(_row(config, number, row) for number, row in enumerate(_rows(prompts)))
        _check_ids(config, "stops.ends", stops.ends)
        _check_suppressed(config, stops.suppressed, stops.ends)
        longest = max(map(len, rows))
        # The last new token is never read again, so it needs no place in the context.
        room = config.context - longest + 1
        if stops.tokens is not None and stops.tokens > room:
            raise InputError(
                "tokens",
                f"{stops.tokens} new tokens do not fit after a prompt of {longest}",
                expected=f"the context of this model is {config.context}",
                hint=f"ask for at most {room}, or shorten the prompt",
            )
        limit = stops.tokens or min(DEFAULT_TOKENS, room)
        return cls(rows, (limit,) * len(rows), frozenset(stops.ends), frozenset(stops.suppressed))

    @classmethod
    def limited(
        cls,
        config: DecoderConfig,
        prompts: Any,
        limits: Sequence[int],
        ends: Iterable[int],
        suppressed: Iterable[int] = (),
    ) -> Prompts:
        """Check prompts that may each go on as far as its own limit says."""
        rows = tuple(_row(config, number, row) for number, row in enumerate(_rows(prompts)))
        ends, suppressed = frozenset(ends), frozenset(suppressed)
        _check_ids(config, "stops.ends", ends)
        _check_suppressed(config, suppressed, ends)
        if len(limits) != len(rows):
            raise InputError(
                "limits", f"are {len(limits)}", expected=f"one for each of {len(rows)} prompts"
            )
        for number, (row, limit) in enumerate(zip(rows, limits, strict=True)):
            room = config.context - len(row) + 1
            if not 1 <= limit <= room:
                raise InputError(
                    f"limits[{number}]",
                    f"is {limit}, after a prompt of {len(row)} tokens",
                    expected=f"1 to {room} new tokens fit into the context of {config.context}",
                )
        return cls(rows, tuple(limits), ends, suppressed)

    @property
    def limit(self) -> int:
        """New tokens of any row at most."""
        return max(self.limits)

    def read(self, step: FastStep) -> tuple[Tensor, Cache]:
        """Let a model read the prompts; return the logits of the next token, and the cache."""
        longest = max(map(len, self.rows))
        padding = [longest - len(row) for row in self.rows]
        tokens: Int[Tensor, "rows longest"] = torch.tensor(
            [[0] * count + list(row) for count, row in zip(padding, self.rows, strict=True)],
            device=step.embedding.device,
        )
        capacity = longest + self.limit - 1
        shared = 0 if any(padding) or step.precision != "float32" else _common_start(self.rows)
        if shared >= WORTH_SHARING:
            cache = step.decoder.new_cache(1, capacity=capacity)
            step.read_prompts(tokens[:1, :shared], cache)
            cache.select(torch.zeros(len(self.rows), dtype=torch.long, device=tokens.device))
            return step.read_prompts(tokens[:, shared:], cache), cache
        cache = step.decoder.new_cache(len(self.rows), capacity=capacity, padding=padding)
        if step.precision == "float32":
            return step.read_prompts(tokens, cache), cache
        # Rounded maps share one scale among all rows they are given: with whole prompts that
        # costs too much, and it is the new tokens that come one by one.
        with torch.inference_mode():
            return step.decoder.logits(step.decoder.hidden(tokens, cache=cache)[:, -1]), cache


def _common_start(rows: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all rows begin with alike, short of the whole; 0 for one row."""
    if len(rows) < 2:
        return 0
    columns = zip(*(row[:-1] for row in rows), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _check_ids(config: DecoderConfig, where: str, ids: Iterable[int]) -> None:
    for one in ids:
        if not 0 <= one < config.vocabulary:
            raise InputError(
                where,
                f"holds the id {one}",
                expected=f"ids 0 to {config.vocabulary - 1} were expected",
            )


def _check_suppressed(
    config: DecoderConfig, suppressed: Iterable[int], ends: Iterable[int]
) -> None:
    _check_ids(config, "stops.suppressed", suppressed)
    both = sorted({*suppressed} & {*ends})
    if both or len({*suppressed}) == config.vocabulary:
        raise InputError(
            "stops.suppressed",
            f"holds the id {both[0]}, which ends a text" if both else "holds every id",
            expected="ids that may never come",
        )


def _rows(prompts: Any) -> Sequence[Any]:
    rows = prompts.tolist() if hasattr(prompts, "tolist") else prompts
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise InputError(
            "prompts",
            f"is {prompts!r:.60}",
            expected="at least one row of token ids was expected",
        )
    return rows


def _row(config: DecoderConfig, number: int, row: Any) -> tuple[int, ...]:
    where = f"prompts[{number}]"
    row = row.tolist() if hasattr(row, "tolist") else row
    if not isinstance(row, Sequence) or isinstance(row, str):
        raise InputError(where, f"is {row!r:.60}", expected="a row of token ids was expected")
    if not row:
        raise InputError(where, "is empty", expected="at least one token was expected")
    for token in row:
        if isinstance(token, bool) or not isinstance(token, int):
            raise InputError(where, f"holds {token!r:.40}", expected="whole numbers were expected")
        if not 0 <= token < config.vocabulary:
            raise InputError(
                where,
                f"holds the id {token}",
                expected=f"ids 0 to {config.vocabulary - 1} were expected",
                hint="use the tokenizer that belongs to this model",
            )
    if len(row) > config.context:
        raise InputError(
            where,
            f"has {len(row)} tokens",
            expected=f"the context of this model is {config.context}",
            hint="shorten the prompt",
        )
    return tuple(row)


@dataclass(frozen=True, eq=False)
class Link:
    """The newest token of a running continuation, and what came before it."""

    token: int
    total: float
    """Σ log p up to here."""
    beam: int
    """The place of the continuation that it extends."""
    before: Link | None


@dataclass(eq=False)
class Search:
    """The search that continues one prompt."""

    method: Beams
    limit: int
    ends: frozenset[int]
    running: list[Link | None] = field(default_factory=lambda: [None])
    """What goes on, best first; at the start the bare prompt."""
    ended: list[Continuation] = field(default_factory=list)
    """What was set aside, best first."""
    length: int = 0
    """New tokens of each running continuation."""
    open: bool = True
    """Whether something better can still come."""

    @property
    def totals(self) -> list[float]:
        """Σ log p of each beam; −∞ where no continuation runs."""
        running = [0.0 if link is None else link.total for link in self.running]
        return running + [-math.inf] * (self.method.beams - len(running))

    @property
    def full(self) -> bool:
        """Whether as many continuations have ended as there are beams."""
        return len(self.ended) == self.method.beams

    def advance(self, totals: list[float], places: list[int], vocabulary: int) -> None:
        """Take the best candidates of a step: running ones go on, ended ones are set aside."""
        self.length += 1
        last = self.length == self.limit
        running: list[Link | None] = []
        for rank, (total, place) in enumerate(zip(totals, places, strict=True)):
            if total == -math.inf:
                break
            beam, token = divmod(place, vocabulary)
            link = Link(token, total, beam, self.running[beam])
            if not last and token not in self.ends:
                running.append(link)
            elif rank < self.method.beams:
                # Candidates beyond the beams only stand in for those that ended.
                self.ended.append(self._set_aside(link))
        self.ended = sorted(self.ended, key=lambda one: -one.score)[: self.method.beams]
        self.running = running[: self.method.beams]
        self.open = bool(self.running) and not self._settled()

    def _set_aside(self, link: Link) -> Continuation:
        links, step = [], link
        while True:
            links.append(step)
            if step.before is None:
                break
            step = step.before
        links.reverse()
        totals = [0.0, *(each.total for each in links)]
        return Continuation(
            tokens=tuple(each.token for each in links),
            log_probabilities=tuple(b - a for a, b in itertools.pairwise(totals)),
            score=self._score(link.total, self.length),
            finished=link.token in self.ends,
        )

    def _settled(self) -> bool:
        if not self.full:
            return False
        early, penalty = self.method.early_stopping, self.method.length_penalty
        if early is True:
            return True
        longest = self.limit if early == "never" and penalty > 0 else self.length
        best = self.running[0]
        assert best is not None
        return self._score(best.total, longest) <= self.ended[-1].score

    def _score(self, total: float, length: int) -> float:
        return float(total / length**self.method.length_penalty)


@torch.inference_mode()
def beam_search(
    prompts: Prompts, method: Beams, step: FastStep
) -> tuple[tuple[Continuation, ...], ...]:
    """Return the best continuations of each prompt."""
    searches = [Search(method, limit, prompts.ends) for limit in prompts.limits]
    logits, cache = prompts.read(step)
    beams, vocabulary = method.beams, logits.shape[-1]
    # The prompt is read once; its beams share what was read.
    rows = torch.arange(len(searches), device=logits.device).repeat_interleave(beams)
    cache.select(rows)
    logits = logits[rows]
    running, prompt = searches, cache.length
    while True:
        count = max(2, 1 + len(prompts.ends)) * beams
        totals, places = _candidates(logits, running, count, prompts.suppressed)
        for search, total, place in zip(running, totals, places, strict=True):
            search.advance(total, place, vocabulary)
        tokens, parents = _next(running, beams)
        still = [search for search in running if search.open]
        if not still:
            break
        # While no search ends, every row keeps its prompt.
        shared = prompt if len(still) == len(running) else 0
        cache.select(torch.tensor(parents, device=logits.device), since=shared)
        running = still
        logits = step(torch.tensor(tokens, device=logits.device), cache)
    return tuple(tuple(search.ended[: method.nbest]) for search in searches)


def _candidates(
    logits: Tensor, searches: list[Search], count: int, suppressed: frozenset[int]
) -> tuple[list[list[float]], list[list[int]]]:
    """Return the best extensions of each search: Σ log p, and beam × vocabulary + token."""
    before = torch.tensor(
        [search.totals for search in searches], dtype=torch.float64, device=logits.device
    )
    own = without(log_probabilities(logits), suppressed)
    own = own.view(len(searches), before.shape[1], -1)
    totals = (own + before.unsqueeze(2)).flatten(1)
    best = totals.topk(min(count, totals.shape[1]), dim=1)
    return best.values.tolist(), best.indices.tolist()


def _next(searches: list[Search], beams: int) -> tuple[list[int], list[int]]:
    """Return, for each row that goes on, the token it reads and the row it comes from."""
    tokens, parents = [], []
    for number, search in enumerate(searches):
        if not search.open:
            continue
        links = [link for link in search.running if link is not None]
        for beam in range(beams):
            link = links[beam] if beam < len(links) else None
            tokens.append(0 if link is None else link.token)
            parents.append(number * beams + (0 if link is None else link.beam))
    return tokens, parents
