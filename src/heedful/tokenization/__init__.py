"""Text to token ids and back: characters, bytes, and byte-pair encoding.

`tokenizer` has the one class, makes new ones and reads those inside weight files. This room sees
no other room: it knows texts and ids, not models.
"""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.tokenization.tokenizer import (
        Tokenizer,
        bytes_of_utf8,
        characters,
        from_gguf,
        from_llama2c,
        learn_tokenizer,
        train_bpe,
    )
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.tokenization", str(_error.name), "models") from None

__all__ = [
    "Tokenizer",
    "bytes_of_utf8",
    "characters",
    "from_gguf",
    "from_llama2c",
    "learn_tokenizer",
    "train_bpe",
]
