"""The heads of a trained model, studied with the mathematics of room `attention`."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.stats import Estimate
    from heedful.studies.heads.behaviour import Behaviour, HeadBehaviour
    from heedful.studies.heads.comparisons import (
        Finding,
        HeadCounts,
        PreNorm,
        Schemes,
        compare_heads,
        compare_norms,
        compare_schemes,
    )
    from heedful.studies.heads.heads_study import (
        QUICK_EFFORT,
        Effort,
        HeadsStudy,
        study_heads,
        study_subject,
    )
    from heedful.studies.heads.keys import Keys
    from heedful.studies.heads.order import OrderTest, Probe, order_tests, probe_positions
    from heedful.studies.heads.predictable import Predictable, predictable_tokens
    from heedful.studies.heads.robustness import Robustness
    from heedful.studies.heads.sample import Amount, Row, Sample, Subject, open_subject
    from heedful.studies.heads.small_models import QUICK, Plan, train_all
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.studies.heads", str(_error.name), "models") from None

__all__ = [
    "QUICK",
    "QUICK_EFFORT",
    "Amount",
    "Behaviour",
    "Effort",
    "Estimate",
    "Finding",
    "HeadBehaviour",
    "HeadCounts",
    "HeadsStudy",
    "Keys",
    "OrderTest",
    "Plan",
    "PreNorm",
    "Predictable",
    "Probe",
    "Robustness",
    "Row",
    "Sample",
    "Schemes",
    "Subject",
    "compare_heads",
    "compare_norms",
    "compare_schemes",
    "open_subject",
    "order_tests",
    "predictable_tokens",
    "probe_positions",
    "study_heads",
    "study_subject",
    "train_all",
]
