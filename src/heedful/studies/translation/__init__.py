"""The study of translation: a translator, and what it takes to make and to judge one."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.studies.translation.attribution import AligningHead, Alignment, align
    from heedful.studies.translation.model_card import write_card
    from heedful.studies.translation.translator import (
        Hypothesis,
        Translation,
        TranslationFormat,
        Translator,
    )
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.studies.translation", str(_error.name), "models") from None

__all__ = [
    "AligningHead",
    "Alignment",
    "Hypothesis",
    "Translation",
    "TranslationFormat",
    "Translator",
    "align",
    "write_card",
]
