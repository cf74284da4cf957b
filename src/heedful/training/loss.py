"""The loss of a decoder: in training with its gradient found on the way, and on held-out batches.

For one token with logits z over V ids, target t and label smoothing ε:

    loss = log Σ exp z − (1 − ε) z_t − ε mean z        d loss / d z = softmax z − (1 − ε) 1_t − ε/V

The gradient needs nothing that the loss has not already computed. So logits are made for a few
hundred tokens at a time, in memory that is used again and again, and turned into their own
gradient in place. torch's way asks the system for arrays of all tokens × V in every step, and
with a vocabulary of thousands the fresh pages cost a sixth of the step of a small model.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.model import Decoder
from heedful.training.feed import IGNORE, Feed, rows_of
from heedful.training.hooks import Evaluate

CHUNK = 512
"""Tokens whose logits are in memory at the same time."""


def summed_loss(
    hidden: Float[Tensor, "tokens width"],
    head: Float[Tensor, "vocabulary width"],
    targets: Int[Tensor, " tokens"],
    smoothing: float = 0.0,
    precision: torch.dtype | None = None,
) -> Float[Tensor, ""]:
    """Return Σ loss over the tokens; products are made in `precision`, sums never below float32."""
    if len(targets) and int(targets.max()) >= len(head):
        raise IndexError("a target is beyond the vocabulary")
    loss: Tensor = _SummedLoss.apply(  # type: ignore[no-untyped-call]
        hidden, head, targets, smoothing, precision or hidden.dtype
    )
    return loss


class _SummedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        head: Tensor,
        targets: Tensor,
        smoothing: float,
        precision: torch.dtype,
    ) -> Tensor:
        rows, columns = hidden.to(precision), head.to(precision)
        wide = torch.float32 if precision.itemsize < 4 else precision
        of_hidden = torch.empty_like(rows)
        of_head = torch.zeros(head.shape, dtype=wide, device=head.device)
        room = torch.empty(min(CHUNK, len(rows)), len(columns), dtype=wide, device=head.device)
        total = torch.zeros((), dtype=wide, device=head.device)
        for first in range(0, len(rows), CHUNK):
            part = slice(first, first + CHUNK)
            logits = room[: len(rows[part])]
            logits.copy_(rows[part] @ columns.T)
            total += _into_gradient(logits, targets[part], smoothing)
            gradient = logits.to(precision)
            torch.mm(gradient, columns, out=of_hidden[part])
            of_head += gradient.T @ rows[part]
        context.save_for_backward(of_hidden, of_head)
        context.kinds = hidden.dtype, head.dtype, precision
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        of_hidden, of_head = context.saved_tensors
        hidden_kind, head_kind, precision = context.kinds
        # Rounded as a product is, so that a head kept in float32 gets what a rounded one gets.
        of_head = (of_head * scale).to(precision).to(head_kind)
        return (of_hidden * scale).to(hidden_kind), of_head, None, None, None


def _into_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Write the gradient of each row over its logits; return the sum of their losses."""
    places = targets.unsqueeze(1)
    logits -= logits.amax(dim=1, keepdim=True)
    loss = logits.gather(1, places).mul_(smoothing - 1.0)
    if smoothing:
        loss -= smoothing * logits.mean(dim=1, keepdim=True)
    sums = logits.exp_().sum(dim=1, keepdim=True)
    loss += sums.log()
    logits /= sums
    if smoothing:
        logits -= smoothing / logits.shape[1]
    logits.scatter_add_(1, places, torch.full_like(loss, smoothing - 1.0))
    return loss.sum()


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
            targets = targets.flatten()
            learned = (targets != IGNORE).nonzero().flatten()
            if len(learned) < len(targets):
                targets = targets[learned]
                hidden = self.decoder.hidden(tokens, documents=documents, places=learned)
            else:
                hidden = self.decoder.hidden(tokens, documents=documents).flatten(0, 1)
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


def held_out_loss(feed: Feed, batches: int | None = None) -> Evaluate:
    """Return a callable that gives `loss` and `perplexity` over the first batches of a feed.

    `batches` of None: one whole epoch. Every learned token counts the same.
    """
    count = len(feed) if batches is None else min(batches, len(feed))

    def evaluate(decoder: Decoder, _step: int) -> dict[str, float]:
        objective = Objective(decoder, smoothing=0.0, precision="float32").eval()
        total, learned = 0.0, 0
        with torch.no_grad():
            for index in range(count):
                rows = rows_of(feed.batch(index)).to(decoder.embedding.weight.device)
                total += float(objective(rows.tokens, rows.targets, rows.documents))
                learned += rows.learned
        loss = total / max(learned, 1)
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    return evaluate
