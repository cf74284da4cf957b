"""The study of translation: a translator, and what it takes to make and to judge one."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.studies.translation.format import TranslationFormat
    from heedful.studies.translation.translator import Hypothesis, Translation, Translator
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.studies.translation", str(_error.name), "models") from None

__all__ = ["Hypothesis", "Translation", "TranslationFormat", "Translator"]
