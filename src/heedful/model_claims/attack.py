"""Looking for a text that breaks a statement: tokens exchanged, guided by gradients.

A statement comes as a margin: a number for each text, below 0 where the statement fails. From some
seeded texts we go down: the gradient of the margin with respect to the embeddings says, to first
order, what each exchange of one token would change (HotFlip); the most promising exchanges and
some drawn blindly are tried, and the best one is made. A text that breaks the statement is then
shrunk: tokens are left out as long as it still breaks. The decoder computes in float64 here, and
what counts is only what it gives for whole texts; gradients merely propose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.model import Decoder
from heedful.model.trace import Trace

Margin = Callable[[Trace, Tensor], Tensor]
"""From a traced batch and its tokens to one margin for each row; below 0, the statement fails."""
CANDIDATES = 24
"""Exchanges that the gradient proposes, and as many drawn blindly, in each round."""
MOST_ENUMERATED = 20_000
"""Where there are no more texts than this, all of them are tried."""
ROUNDS = 40
"""Exchanges in one descent; it ends earlier where none helps."""


class Attacked(NamedTuple):
    """The text found: the smallest margin, or the shortest text that breaks."""

    tokens: tuple[int, ...]
    margin: float
    tried: int
    """Texts that were computed."""


class Attacker:
    """Searches texts of some lengths for one that breaks a statement."""

    def __init__(
        self,
        decoder: Decoder,
        margin: Margin,
        *,
        allowed: Sequence[int] | None = None,
        begin: int | None = None,
        seed: int = 0,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> None:
        self.decoder, self.margin, self.begin = decoder, margin, begin
        ids = range(decoder.config.vocabulary) if allowed is None else sorted(set(allowed))
        self.allowed = torch.tensor(list(ids))
        self.noise = torch.Generator().manual_seed(seed)
        self.out_of_time = out_of_time
        self.tried = 0
        self._fixed = 0 if begin is None else 1

    def can_enumerate(self, length: int) -> bool:
        """Tell whether there are few enough texts of a length to try them all."""
        free = length - self._fixed
        return free >= 0 and len(self.allowed) ** free <= MOST_ENUMERATED

    def enumerated(self, length: int) -> Attacked | None:
        """Return the least margin of all texts of a length; None where there are too many."""
        if not self.can_enumerate(length):
            return None
        free = length - self._fixed
        digits = torch.arange(len(self.allowed) ** free).unsqueeze(1)
        powers = len(self.allowed) ** torch.arange(free - 1, -1, -1)
        rows = self.allowed[(digits // powers) % len(self.allowed)]
        if self.begin is not None:
            rows = torch.cat([torch.full((len(rows), 1), self.begin), rows], dim=1)
        best: Attacked | None = None
        for part in torch.split(rows, 1024):
            margins = self.margins(part).nan_to_num(torch.inf)
            least = int(margins.argmin())
            if best is None or float(margins[least]) < best.margin:
                best = Attacked(tuple(part[least].tolist()), float(margins[least]), self.tried)
        return best

    def search(self, lengths: Sequence[int], *, starts: int = 4, below: float = 0.0) -> Attacked:
        """Return the first text whose margin is below a number, shrunk; else the least margin."""
        best: Attacked | None = None
        for length in sorted(lengths):
            tried = self.enumerated(length)
            if tried is not None:
                if tried.margin < below:
                    return self._shrunk(torch.tensor(tried.tokens), tried.margin, below)
                best = tried if best is None or tried.margin < best.margin else best
                continue
            for rows in self._starts(length, starts):
                tokens, margin = self._descend(rows, below)
                if best is None or margin < best.margin:
                    best = Attacked(tuple(tokens.tolist()), margin, self.tried)
                if margin < below:
                    return self._shrunk(tokens, margin, below)
                if self.out_of_time():
                    return best
        assert best is not None
        return best

    def margins(self, rows: Tensor) -> Tensor:
        """Return the margin of each row of tokens."""
        self.tried += len(rows)
        with torch.no_grad():
            return self.margin(self.decoder.trace(rows), rows).double()

    def _starts(self, length: int, count: int) -> list[Tensor]:
        """Return texts to begin with: one token repeated, and tokens drawn at random."""
        texts = []
        for number in range(count):
            chosen = torch.randint(len(self.allowed), (length,), generator=self.noise)
            text = self.allowed[chosen]
            if number % 2 == 0:
                text = text[:1].repeat(length)
            if self.begin is not None:
                text[0] = self.begin
            texts.append(text)
        return texts

    def _descend(self, text: Tensor, below: float) -> tuple[Tensor, float]:
        margin = float(self.margins(text[None])[0])
        for _ in range(ROUNDS):
            if margin < below or len(text) <= self._fixed or self.out_of_time():
                break
            rows = self._exchanged(text)
            margins = self.margins(rows)
            least = int(margins.nan_to_num(torch.inf).argmin())
            if not float(margins[least]) < margin:
                break
            text, margin = rows[least], float(margins[least])
        return text, margin

    def _exchanged(self, text: Tensor) -> Tensor:
        """Return texts that differ in one token: by the gradient, and by chance."""
        gain = self._gains(text)
        count = min(CANDIDATES, gain.numel())
        best = gain.flatten().topk(count, largest=False).indices
        chance = torch.randint(gain.numel(), (CANDIDATES,), generator=self.noise)
        chosen = torch.cat([best, chance])
        places = self._fixed + chosen // len(self.allowed)
        rows = text.repeat(len(chosen), 1)
        rows[torch.arange(len(chosen)), places] = self.allowed[chosen % len(self.allowed)]
        return rows

    def _gains(self, text: Tensor) -> Tensor:
        """Return what each exchange changes to first order: (free places, allowed tokens)."""
        with torch.enable_grad():
            trace = self.decoder.trace(text[None])
            margin = self.margin(trace, text[None])
            if not margin.requires_grad:
                return torch.zeros(len(text) - self._fixed, len(self.allowed))
            slopes: Sequence[Tensor | None] = torch.autograd.grad(
                margin.sum(), trace.embedded, allow_unused=True
            )
        slope = slopes[0]
        if slope is None:
            return torch.zeros(len(text) - self._fixed, len(self.allowed))
        embedding = self.decoder.embedding.weight.detach()
        slope = slope[0, self._fixed :].to(embedding.dtype)
        now = (slope * embedding[text[self._fixed :]]).sum(-1, keepdim=True)
        change: Tensor = slope @ embedding[self.allowed].mT - now
        return change.nan_to_num(0.0)

    def _shrunk(self, text: Tensor, margin: float, below: float) -> Attacked:
        """Leave tokens out as long as the statement still fails."""
        smaller = True
        while smaller and len(text) > 1 + self._fixed and not self.out_of_time():
            rows = torch.stack(
                [torch.cat([text[:p], text[p + 1 :]]) for p in range(self._fixed, len(text))]
            )
            margins = self.margins(rows).nan_to_num(torch.inf)
            least = int(margins.argmin())
            smaller = float(margins[least]) < below
            if smaller:
                text, margin = rows[least], float(margins[least])
        return Attacked(tuple(text.tolist()), margin, self.tried)
