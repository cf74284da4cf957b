"""The gradient of one step: the same numbers however the work is laid on the machine.

    loss = Σ over learned tokens of −log p(target) / number of learned tokens

The sum runs over the whole step: over accumulated batches, lanes and machines. Dividing once,
by the number of the whole step, makes the gradient that of one large batch, whatever the parts
are; parts are added in a fixed order, so that it is the same in every run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.training.dropout import draw_from
from heedful.training.feed import IGNORE, Rows
from heedful.training.randomness import Stream

FEW_LEARNED = 0.9
"""Below this share of learned tokens, the logits of the others are not computed."""


class Objective(nn.Module):
    """The summed loss of some rows: what wrappers of many machines and the compiler see."""

    def __init__(self, decoder: Decoder, smoothing: float, precision: str) -> None:
        super().__init__()
        self.decoder = decoder
        self.smoothing = smoothing
        self.precision = precision

    def forward(self, tokens: Tensor, targets: Tensor, documents: Tensor | None = None) -> Tensor:
        """Return Σ −log p(target) over the learned tokens."""
        with self._cast(tokens.device.type):
            hidden = self.decoder.hidden(tokens, documents=documents).flatten(0, 1)
            targets = targets.flatten()
            learned = targets != IGNORE
            if int(learned.sum()) < FEW_LEARNED * len(targets):
                hidden, targets = hidden[learned], targets[learned]
            logits = self.decoder.logits(hidden)
        return functional.cross_entropy(
            logits.float(),
            targets,
            ignore_index=IGNORE,
            label_smoothing=self.smoothing,
            reduction="sum",
        )

    def _cast(self, device: str) -> AbstractContextManager[Any]:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(device, dtype=torch.bfloat16)


class Lane:
    """One worker: an objective, and the gradients that it leaves on its parameters."""

    def __init__(self, objective: Any) -> None:
        self.objective = objective

    def run(self, pieces: Sequence[Rows], scale: float) -> float:
        """Add the gradients of some rows to this lane's; return their summed loss."""
        total = 0.0
        for piece in pieces:
            try:
                loss = self.objective(piece.tokens, piece.targets, piece.documents)
            except IndexError:
                raise InputError(
                    "data",
                    f"holds the target {int(piece.targets.max())}",
                    expected="ids of the vocabulary of the model",
                ) from None
            (loss * scale).backward()
            total += float(loss.detach())
        return total


class Lanes:
    """Several threads of one process, each with one core and a fixed part of every batch.

    Weights are shared; each lane has gradients of its own, which are added in the order of the
    lanes. torch lets go of Python's lock inside its operators, so the threads do run at once.
    """

    def __init__(
        self, objective: Objective, streams: Sequence[Stream], *, micro_rows: int | None
    ) -> None:
        self.micro_rows = micro_rows
        self.lanes = [Lane(objective)]
        self.parameters = [list(objective.parameters())]
        draw_from(objective.decoder, streams[0])
        for stream in streams[1:]:
            twin = copy.deepcopy(objective)
            own = list(twin.parameters())
            for mine, shared in zip(own, self.parameters[0], strict=True):
                mine.data = shared.data
            draw_from(twin.decoder, stream)
            self.lanes.append(Lane(twin))
            self.parameters.append(own)
        self._pool = None
        if len(self.lanes) > 1:
            # The number of threads belongs to the thread that sets it: lanes get one each.
            self._pool = ThreadPoolExecutor(
                len(self.lanes), "lane", initializer=torch.set_num_threads, initargs=(1,)
            )

    def gradients(self, batches: Sequence[Rows], count: int) -> float:
        """Leave the gradient of a step on the parameters; return its summed loss."""
        for parameters in self.parameters:
            for parameter in parameters:
                parameter.grad = None
        parts: list[list[Rows]] = [[] for _ in self.lanes]
        for batch in batches:
            for part, pieces in zip(
                parts, batch.split(len(self.lanes), self.micro_rows), strict=True
            ):
                part.extend(pieces)
        scale = 1.0 / max(count, 1)
        if self._pool is None:
            return self.lanes[0].run(parts[0], scale)
        futures = [
            self._pool.submit(lane.run, part, scale)
            for lane, part in zip(self.lanes, parts, strict=True)
        ]
        total = sum(future.result() for future in futures)
        self._add_up()
        return total

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        for lane in self.lanes:
            lane.objective.train(mode)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _add_up(self) -> None:
        first = self.parameters[0]
        for other in self.parameters[1:]:
            for mine, theirs in zip(first, other, strict=True):
                if theirs.grad is None:
                    continue
                if mine.grad is None:
                    mine.grad = theirs.grad
                else:
                    mine.grad.add_(theirs.grad)


class Single:
    """One objective, compiled or not: on a GPU, or on one of many machines."""

    def __init__(
        self,
        objective: Any,
        *,
        micro_rows: int | None = None,
        ranks: int = 1,
        exchange: Callable[[bool], None] | None = None,
    ) -> None:
        self.lane = Lane(objective)
        self.micro_rows = micro_rows
        self.ranks = ranks
        self.exchange = exchange

    def gradients(self, batches: Sequence[Rows], count: int) -> float:
        """Leave the gradient of a step on the parameters; return its summed loss here."""
        for parameter in self.lane.objective.parameters():
            parameter.grad = None
        pieces = [piece for batch in batches for piece in batch.split(1, self.micro_rows)[0]]
        # Machines average their gradients where we want their sum.
        scale = self.ranks / max(count, 1)
        if self.exchange is None:
            return self.lane.run(pieces, scale)
        self.exchange(False)
        total = self.lane.run(pieces[:-1], scale)
        self.exchange(True)
        return total + self.lane.run(pieces[-1:], scale)

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        self.lane.objective.train(mode)

    def close(self) -> None:
        """There is nothing to end."""
