"""The phrasebook: French and English sentences, written by a grammar, at any size.

`phrasebook(size, seed=...)` gives training pairs and held-out sets; `monolingual(language,
sentences, seed)` gives text in one language from the same words.
"""

from __future__ import annotations

from heedful.data.phrasebook.corpus import Phrasebook, phrasebook
from heedful.data.phrasebook.orthography import keyboard, typeset
from heedful.data.phrasebook.paragraphs import monolingual
from heedful.data.phrasebook.templates import Pair

__all__ = ["Pair", "Phrasebook", "keyboard", "monolingual", "phrasebook", "typeset"]
