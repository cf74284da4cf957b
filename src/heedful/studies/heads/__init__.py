"""The heads of a trained model, studied with the mathematics of room `attention`.

sample       the model, and what it reads
behaviour    what each head does; keys, robustness, order and predictable measure the rest
comparisons  what small_models, trained for the purpose, say of the course's statements
heads_study  all of it, which ends in one record
"""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.studies.heads.heads_study import (
        QUICK_EFFORT,
        Effort,
        HeadsStudy,
        lab_study,
        study_heads,
        study_subject,
    )
    from heedful.studies.heads.sample import Amount, Row, Sample, StudiedModel, open_subject
    from heedful.studies.heads.small_models import QUICK, Plan
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.studies.heads", str(_error.name), "models") from None

__all__ = [
    "QUICK",
    "QUICK_EFFORT",
    "Amount",
    "Effort",
    "HeadsStudy",
    "Plan",
    "Row",
    "Sample",
    "StudiedModel",
    "lab_study",
    "open_subject",
    "study_heads",
    "study_subject",
]
