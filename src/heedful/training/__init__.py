"""Training that loses nothing: the loop, optimisers, checkpoints, and many machines.

It uses `model` and the base modules; batches come in as a `Feed`. Studies and `heed train` use it,
and call `runs`, never `loop` itself. Begin with `config`, then `loop` and `session`.
"""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.training.config import Compute, Optimiser, Schedule, TrainingConfig, read_config
    from heedful.training.feed import Feed
    from heedful.training.hooks import Evaluation, Hooks, Progress, TrainingResult, no_better
    from heedful.training.loop import resume, train
    from heedful.training.loss import held_out_loss
    from heedful.training.runs import (
        FinishedRun,
        RunComparison,
        RunStoppedError,
        RunSummary,
        begin_or_resume,
        compare_runs,
        finished_run,
        is_finished,
        list_runs,
        run_path,
        train_to_end,
        trained_decoder,
    )
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.training", str(_error.name), "models") from None

__all__ = [
    "Compute",
    "Evaluation",
    "Feed",
    "FinishedRun",
    "Hooks",
    "Optimiser",
    "Progress",
    "RunComparison",
    "RunStoppedError",
    "RunSummary",
    "Schedule",
    "TrainingConfig",
    "TrainingResult",
    "begin_or_resume",
    "compare_runs",
    "finished_run",
    "held_out_loss",
    "is_finished",
    "list_runs",
    "no_better",
    "read_config",
    "resume",
    "run_path",
    "train",
    "train_to_end",
    "trained_decoder",
]
