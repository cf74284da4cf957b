"""The phrasebook: French and English sentences, written by a grammar, at any size.

`phrasebook(size, seed=...)` gives training pairs and held-out sets; `monolingual(language,
sentences, seed)` gives text in one language from the same words.
"""

from __future__ import annotations

from heedful.data.synthetic.phrasebook.corpus import Pair, Phrasebook, monolingual, phrasebook
from heedful.data.synthetic.phrasebook.words import keyboard, typeset

__all__ = ["Pair", "Phrasebook", "keyboard", "monolingual", "phrasebook", "typeset"]
