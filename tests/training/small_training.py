"""A training small enough to be repeated many times, and its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.model import preset
from heedful.model.config import Dropout
from heedful.training import Compute, Schedule, TrainingConfig

VOCABULARY = 32


@dataclass(frozen=True)
class Arrays:
    """One batch."""

    tokens: Any
    targets: Any
    documents: Any


class Numbers:
    """Rows of counting numbers with a random start and stride; two documents in some rows."""

    def __init__(self, *, batches: int = 5, rows: int = 6, width: int = 12, seed: int = 0) -> None:
        self.batches, self.rows, self.width, self.seed = batches, rows, width, seed

    def __len__(self) -> int:
        return self.batches

    def batch(self, index: int) -> Arrays:
        """Return a batch that depends on the epoch and the place alone."""
        draw = np.random.default_rng([self.seed, *divmod(index, self.batches)])
        starts = draw.integers(0, VOCABULARY, (self.rows, 1))
        strides = draw.integers(1, 4, (self.rows, 1))
        values = (starts + strides * np.arange(self.width + 1)) % VOCABULARY
        tokens, targets = values[:, :-1].copy(), values[:, 1:].copy()
        documents = np.zeros_like(tokens)
        half = self.width // 2
        documents[0, half:] = 1
        targets[0, half - 1] = -100
        documents[1, -2:] = -1
        targets[1, -3:] = -100
        return Arrays(tokens, targets, documents)


def small_config(**changes: Any) -> TrainingConfig:
    """Return a training of some steps over more than two epochs, with dropout everywhere."""
    dropout = Dropout(embedding=0.1, attention=0.1, residual=0.1)
    model = preset("tiny", vocabulary=VOCABULARY, context=12, width=16, layers=2, dropout=dropout)
    settings: dict[str, Any] = {
        "model": model,
        "steps": 14,
        "save_every": 4,
        "evaluate_every": 5,
        "log_every": 1,
        "tensorboard": False,
        "schedule": Schedule(warmup=3),
        "compute": Compute(lanes=1, precision="float32", compile=False),
    }
    return TrainingConfig(**{**settings, **changes})
