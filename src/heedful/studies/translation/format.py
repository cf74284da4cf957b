"""How a decoder was taught to translate: the marks around a source, and how it is written.

    begin  source tokens  between  target tokens  end

A file `translation.json` beside the weights says so. Without it nobody can tell a model that
translates from one that only continues texts: their tokenizers may have the same marks.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Literal

from heedful.data.synthetic.phrasebook import keyboard
from heedful.errors import ConfigError, InputError, RunError
from heedful.files import write_json
from heedful.model.weights.huggingface import read_json
from heedful.settings import Settings
from heedful.studies.text_training import BEGIN, BETWEEN, END
from heedful.tokenization import Tokenizer

FILE = "translation.json"
_BREAKS = re.compile(r"[\r\n]+")


class TranslationFormat(Settings):
    """What a translator must know beside weights and tokenizer.

    >>> TranslationFormat(normalise="keyboard").written("Où est l’hôtel\\u202f? ")
    "Où est l'hôtel ?"
    """

    begin: str | None = BEGIN
    """The token that opens a source, as the vocabulary writes it; None where there is none."""
    between: str = BETWEEN
    """The token after which the translation begins."""
    end: str = END
    """The token that ends it."""
    languages: tuple[str, str] = ("fr", "en")
    """From which language into which."""
    normalise: Literal["nfc", "keyboard", "none"] = "nfc"
    """How a source is written before it is read: in NFC; as the phrasebook writes French; or
    left as it is. In any case it becomes one line, without white space at its ends."""

    def written(self, text: str) -> str:
        """Return a source as the model was taught to read it."""
        text = _BREAKS.sub(" ", text)
        if self.normalise != "none":
            text = unicodedata.normalize("NFC", text)
        return (keyboard(text) if self.normalise == "keyboard" else text).strip()

    def marks(self, tokenizer: Tokenizer, where: str = "tokenizer") -> Marks:
        """Return the ids of the marks, or say which one the tokenizer does not have."""
        begin = None if self.begin is None else self._id(tokenizer, "begin", where)
        between, end = (self._id(tokenizer, name, where) for name in ("between", "end"))
        return Marks(begin=begin, between=between, end=end)

    def _id(self, tokenizer: Tokenizer, name: str, where: str) -> int:
        mark = getattr(self, name)
        found = tokenizer.id_of(mark)
        if found is None:
            raise ConfigError(
                where,
                f"has no token {mark!r}, the mark `{name}` of {FILE}",
                expected="the tokenizer with which the model was trained",
            )
        return found

    def write(self, folder: Path) -> None:
        """Write it beside the weights."""
        try:
            write_json(folder / FILE, self.model_dump(mode="json"))
        except OSError as error:
            raise RunError(str(folder / FILE), f"could not be written ({error.strerror})") from None

    @classmethod
    def read(cls, folder: Path) -> TranslationFormat:
        """Read it from beside the weights."""
        try:
            return cls.of(read_json(folder / FILE))
        except ConfigError as error:
            raise InputError(
                f"{folder / FILE}: {error.where}",
                error.problem,
                expected=error.expected,
                way_out=error.way_out,
            ) from None


class Marks(Settings):
    """The ids of the marks."""

    begin: int | None
    between: int
    end: int

    def around(self, source: list[int]) -> list[int]:
        """Return the prompt that asks for the translation of a source."""
        opening = [] if self.begin is None else [self.begin]
        return [*opening, *source, self.between]

    @property
    def all(self) -> frozenset[int]:
        """Every id that no source may hold itself."""
        opening = [] if self.begin is None else [self.begin]
        return frozenset([*opening, self.between, self.end])
