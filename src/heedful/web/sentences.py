"""A sentence as a model reads it: its tokens, and for a translator the source and the target.

begin source                     any model
begin source between target end  a translator that is shown a translation too
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from heedful.errors import InputError
from heedful.web.shelves import Shelves

if TYPE_CHECKING:
    from heedful.model import Decoder
    from heedful.tokenization import Tokenizer


class Sentence(NamedTuple):
    """What is read, and by whom."""

    decoder: Decoder
    tokenizer: Tokenizer
    ids: tuple[int, ...]
    source: tuple[int, int] | None
    """With a translation: first position of the source, and the position after its last."""


def sentence(shelves: Shelves, model: str, text: str, target: Sequence[int], most: int) -> Sentence:
    """Return a sentence of at most so many tokens; `target` has the tokens of a translation."""
    loaded = shelves.load(model)
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        raise InputError("model", "has no tokenizer", expected="a model that can read text")
    source = None
    if target:
        path = shelves.path(model)
        if not shelves.translates(path):
            raise InputError("target", "was given", expected="only a translator reads one")
        from heedful.studies.translation import TranslationFormat

        written = TranslationFormat.read(path)
        marks = written.marks(tokenizer)
        prompt = marks.around(tokenizer.encode(written.written(text)))
        source = (0 if marks.begin is None else 1, len(prompt) - 1)
        if max(target) >= loaded.decoder.config.vocabulary:
            raise InputError("target", "holds an unknown token", expected="tokens of this model")
        # The last token of a translation is written, never read: a full context has one more.
        ids = [*prompt, *target][: max(loaded.decoder.config.context, len(prompt))]
    else:
        opening = [] if tokenizer.begin is None else [tokenizer.begin]
        ids = [*opening, *tokenizer.encode(text)]
    most = min(most, loaded.decoder.config.context)
    if not 1 <= len(ids) <= most:
        raise InputError(
            "text", f"has {len(ids)} tokens", expected=f"1 to {most} tokens were expected"
        )
    return Sentence(loaded.decoder, tokenizer, tuple(ids), source)
