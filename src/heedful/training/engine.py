"""The gradient of one step: the same numbers however the work is laid on the machine.

    loss = Σ over learned tokens of −log p(target) / number of learned tokens

The sum runs over the whole step: over accumulated batches, lanes and machines. Dividing once,
by the number of the whole step, makes the gradient that of one large batch, whatever the parts
are; parts are added in a fixed order, so that it is the same in every run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from heedful.training.loss import summed_loss
from heedful.training.randomness import Stream


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
            if int(learned.sum()) < len(targets):
                hidden, targets = hidden[learned], targets[learned]
            if self._by_hand(hidden):
                return summed_loss(hidden, self._head(), targets, self.smoothing, self._kind())
            logits = self.decoder.logits(hidden)
        return functional.cross_entropy(
            logits.float(), targets, label_smoothing=self.smoothing, reduction="sum"
        )

    def _by_hand(self, hidden: Tensor) -> bool:
        """Whether the loss finds its own gradient: on a CPU, while learning, uncompiled."""
        learning = torch.is_grad_enabled() and hidden.requires_grad
        return learning and hidden.device.type == "cpu" and not torch.compiler.is_compiling()

    def _head(self) -> Tensor:
        head = self.decoder.embedding if self.decoder.head is None else self.decoder.head
        return head.weight

    def _kind(self) -> torch.dtype | None:
        return None if self.precision == "float32" else torch.bfloat16

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

    def forget(self) -> None:
        """Let go of the gradients of the step before."""
        for parameter in self.objective.parameters():
            parameter.grad = None

    def gradients(self) -> Iterator[Tensor | None]:
        """Yield the gradient of each parameter."""
        for parameter in self.objective.parameters():
            yield parameter.grad


class RoundedLane(Lane):
    """A worker whose matrices are bfloat16, rounded once a step for all pieces and lanes.

    Gradients of several pieces are added in float32: in bfloat16 the later ones would vanish.
    """

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        rounded = [p for p in objective.parameters() if p.dtype == torch.bfloat16]
        self.rounded = rounded
        self.sums: list[Tensor | None] = [None] * len(rounded)

    def run(self, pieces: Sequence[Rows], scale: float) -> float:
        """Add the gradients of some rows to this lane's; return their summed loss."""
        self.sums = [None] * len(self.rounded)
        total = 0.0
        for piece in pieces:
            total += super().run([piece], scale)
            if len(pieces) > 1:
                self._take_over()
        return total

    def gradients(self) -> Iterator[Tensor | None]:
        """Yield the gradient of each parameter."""
        sums = dict(zip(self.rounded, self.sums, strict=True))
        for parameter in self.objective.parameters():
            wide = sums.get(parameter)
            yield parameter.grad if wide is None else wide

    def _take_over(self) -> None:
        for place, parameter in enumerate(self.rounded):
            gradient, kept = parameter.grad, self.sums[place]
            if gradient is not None:
                self.sums[place] = gradient.float() if kept is None else kept.add_(gradient)
            parameter.grad = None


class Lanes:
    """Several threads of one process, each with one core and a fixed part of every batch.

    Weights are shared; each lane has gradients of its own, which are added in the order of the
    lanes. torch lets go of Python's lock inside its operators, so the threads do run at once.
    In bfloat16 every lane is a twin whose matrices are rounded; the float32 ones are stepped.
    """

    def __init__(
        self, objective: Objective, streams: Sequence[Stream], *, micro_rows: int | None
    ) -> None:
        self.micro_rows = micro_rows
        self.objective = objective
        self.parameters = list(objective.parameters())
        self.matrices, self.rounded = _rounded(objective)
        draw_from(objective.decoder, streams[0])
        self.lanes: list[Lane] = [] if self.rounded else [Lane(objective)]
        for stream in streams[len(self.lanes) :]:
            twin = _twin(objective, self.rounded)
            draw_from(twin.decoder, stream)
            self.lanes.append(RoundedLane(twin) if self.rounded else Lane(twin))
        self._pool = None
        if len(self.lanes) > 1:
            # The number of threads belongs to the thread that sets it: lanes get one each.
            self._pool = ThreadPoolExecutor(
                len(self.lanes),
                "lane",
                initializer=torch.set_num_threads,
                initargs=(1,),
            )

    def gradients(self, batches: Sequence[Rows], count: int) -> float:
        """Leave the gradient of a step on the parameters; return its summed loss."""
        for parameter in self.parameters:
            parameter.grad = None
        for lane in self.lanes:
            lane.forget()
        if self.rounded:
            torch._foreach_copy_(list(self.rounded.values()), self.matrices)
        parts: list[list[Rows]] = [[] for _ in self.lanes]
        for batch in batches:
            for part, pieces in zip(
                parts, batch.split(len(self.lanes), self.micro_rows), strict=True
            ):
                part.extend(pieces)
        scale = 1.0 / max(count, 1)
        if self._pool is None:
            total = self.lanes[0].run(parts[0], scale)
        else:
            futures = [
                self._pool.submit(lane.run, part, scale)
                for lane, part in zip(self.lanes, parts, strict=True)
            ]
            total = sum(future.result() for future in futures)
        self._add_up()
        return total

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        self.objective.train(mode)
        for lane in self.lanes:
            lane.objective.train(mode)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _add_up(self) -> None:
        for lane in self.lanes:
            if lane.objective is self.objective:
                continue
            for parameter, gradient in zip(self.parameters, lane.gradients(), strict=True):
                if gradient is None:
                    continue
                if parameter.grad is None:
                    parameter.grad = gradient.to(parameter.dtype)
                else:
                    parameter.grad.add_(gradient)


def _rounded(objective: Objective) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return the matrices that products take in bfloat16, and room for them, by name."""
    if objective.precision == "float32":
        return [], {}
    found = {
        f"{name}.weight": module.weight.detach()
        for name, module in objective.named_modules()
        if isinstance(module, nn.Linear)
    }
    room = {name: torch.empty_like(value, dtype=torch.bfloat16) for name, value in found.items()}
    return list(found.values()), room


def _twin(objective: Objective, rounded: Mapping[str, Tensor]) -> Objective:
    """Return a copy that shares its weights, some of them rounded, and has its own gradients."""
    twin = copy.deepcopy(objective)
    for (name, own), shared in zip(twin.named_parameters(), objective.parameters(), strict=True):
        own.data = rounded.get(name, shared.data)
    return twin


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
