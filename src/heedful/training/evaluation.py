"""The loss on held-out batches, as an `evaluate` callable."""

from __future__ import annotations

import math

import torch

from heedful.model import Decoder
from heedful.training.engine import Objective
from heedful.training.feed import Feed, rows_of
from heedful.training.hooks import Evaluate


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
