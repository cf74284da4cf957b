"""How many steps fit into a time: measured once, and kept, so that a study can go on.

The gradient of one real batch is timed in every way that the training itself would consider. What
it takes beside the gradient is added as a share.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from heedful.files import sha256, write_json
from heedful.training import TrainingConfig
from heedful.training.feed import Feed
from heedful.training.session import measured
from heedful.training.trial import choose

BESIDE = 1.25
"""What a whole step takes, in gradients: the optimiser, batches, saving."""
MANY = 100_000


def steps_within(minutes: float, config: TrainingConfig, feed: Feed, place: Path) -> int:
    """Return about how many steps take so many minutes; ask again and it is the same."""
    asked = {**config.to_dict(), "steps": 0, "schedule": {}, "minutes": minutes}
    digest = sha256(json.dumps(asked, sort_keys=True))[:8]
    path = place.with_name(f"{place.name}-steps-{digest}.json")
    try:
        known = json.loads(path.read_text(encoding="utf-8"))["steps"]
    except (OSError, ValueError, KeyError, TypeError):
        known = None
    if isinstance(known, int) and known > 0:
        return known
    trial = choose(
        config.compute,
        MANY,
        torch.get_num_threads(),
        lambda choice: measured(config, feed, choice),
        lanes_possible=not torch.cuda.is_available(),
    )
    seconds = trial.seconds.get(trial.chosen.name) or measured(config, feed, trial.chosen)
    steps = max(int(60 * minutes / (BESIDE * seconds)), 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"steps": steps, "seconds": seconds, "minutes": minutes})
    return steps
