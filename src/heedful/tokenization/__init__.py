"""Text to token ids and back: characters, bytes, and byte-pair encoding."""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.tokenization.build import bytes_of_utf8, characters, train_bpe
    from heedful.tokenization.convert import from_gguf, from_llama2c
    from heedful.tokenization.tokenizer import Tokenizer
    from heedful.tokenization.training import learn_tokenizer
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
