"""Beam search: several continuations side by side, the best kept.

At each step every running continuation is extended by every token, and the best candidates
go on. Those that end are set aside with the score Σ log p / n^penalty; the best of these,
as many as there are beams, are the answer. Rules, scores and the three ways to stop are those
of `transformers` (its `early_stopping` False, True and "never"), against which tests compare.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from heedful.generation.fast import FastStep
from heedful.generation.methods import Beams, Continuation, log_probabilities
from heedful.generation.prompts import Prompts


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
        totals, places = _candidates(logits, running, max(2, 1 + len(prompts.ends)) * beams)
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
    logits: Tensor, searches: list[Search], count: int
) -> tuple[list[list[float]], list[list[int]]]:
    """Return the best extensions of each search: Σ log p, and beam × vocabulary + token."""
    before = torch.tensor(
        [search.totals for search in searches], dtype=torch.float64, device=logits.device
    )
    own = log_probabilities(logits).view(len(searches), before.shape[1], -1)
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
