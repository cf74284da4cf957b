"""What torchrun does, with ranks that are forked and so need not import torch once more.

    python tests/training/forked_ranks.py RUN STRATEGY RESTARTS

`torchrun` is this launcher with a command in the place of a function.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ranks_training import go_on
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def rank(folder: Path, strategy: str) -> dict[str, Any]:
    """Train as one of the ranks; return what there is to tell."""
    result = go_on(folder, strategy, dropout=False)
    return {"resumed_from": result.resumed_from, "notes": list(result.notes)}


if __name__ == "__main__":
    settings = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        max_restarts=int(sys.argv[3]),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        start_method="fork",
    )
    print(json.dumps(elastic_launch(settings, rank)(Path(sys.argv[1]), sys.argv[2])[0]))
