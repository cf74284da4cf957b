"""Training that loses nothing: the loop, optimisers, checkpoints, and many machines."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.training.comparison import RunComparison, RunSummary, compare_runs, list_runs
    from heedful.training.config import Compute, Optimiser, Schedule, TrainingConfig, read_config
    from heedful.training.evaluation import held_out_loss
    from heedful.training.feed import Feed
    from heedful.training.hooks import Evaluation, Hooks, Progress, TrainingResult, no_better
    from heedful.training.loop import resume, train
    from heedful.training.trained import trained_decoder
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.training", str(_error.name), "models") from None

__all__ = [
    "Compute",
    "Evaluation",
    "Feed",
    "Hooks",
    "Optimiser",
    "Progress",
    "RunComparison",
    "RunSummary",
    "Schedule",
    "TrainingConfig",
    "TrainingResult",
    "compare_runs",
    "held_out_loss",
    "list_runs",
    "no_better",
    "read_config",
    "resume",
    "train",
    "trained_decoder",
]
