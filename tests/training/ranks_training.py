"""What torchrun starts in the tests: the small training, on one rank or on several.

torchrun --nproc-per-node 2 tests/training/ranks_training.py RUN STRATEGY [without dropout]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from small_training import Numbers, small_config

from heedful.errors import HeedfulError
from heedful.model.config import Dropout
from heedful.training import Hooks, TrainingConfig, TrainingResult, held_out_loss, resume, train


def configured(*, dropout: bool) -> TrainingConfig:
    """Return a training whose batches do not divide evenly among ranks."""
    config = small_config(steps=12, save_every=3, accumulate=2)
    if dropout:
        return config
    return config.changed(model=config.model.changed(dropout=Dropout()))


def go_on(folder: Path, strategy: str, *, dropout: bool = True) -> TrainingResult:
    """Train, or resume a run that is there."""
    feed, hooks = Numbers(rows=5), Hooks(evaluate=held_out_loss(Numbers(seed=9), 1))
    if (folder / "config.json").is_file():
        return resume(folder, feed, hooks=hooks, strategy=strategy)  # type: ignore[arg-type]
    config = configured(dropout=dropout)
    return train(config, feed, folder, hooks=hooks, strategy=strategy)  # type: ignore[arg-type]


if __name__ == "__main__":
    try:
        result = go_on(Path(sys.argv[1]), sys.argv[2], dropout=len(sys.argv) < 4)
    except HeedfulError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    if result.weights_sha256:
        told = {"hash": result.weights_sha256, "resumed_from": result.resumed_from}
        print(json.dumps({**told, "notes": list(result.notes)}))
