"""The format of llama2.c: taken when its length is exactly what its header says."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch
from reference_decoder import random_tokens
from weight_files import llama2c_decoder, write_llama2c, write_llama2c_tokenizer

from heedful.errors import InputError
from heedful.model import load, open_checkpoint

WORDS = [" t", "he", " the", "a", "b", "c", "d", "e", "h", "t", " "]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", [None, "llama2c"])
def test_a_model_comes_back_exactly(tied: bool, kind: str | None, tmp_path: Path) -> None:
    decoder = llama2c_decoder(tied).eval()
    write_llama2c(tmp_path / "model.bin", decoder)
    write_llama2c_tokenizer(tmp_path / "tok270.bin", WORDS)
    loaded = load(tmp_path / "model.bin", kind=kind)  # type: ignore[arg-type]
    tokens = random_tokens(decoder.config, 2, 9)
    with torch.no_grad():
        assert torch.equal(loaded.decoder(tokens), decoder(tokens))
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.begin == 1


def test_a_tokenizer_may_be_absent_or_named(tmp_path: Path) -> None:
    write_llama2c(tmp_path / "model.bin", llama2c_decoder())
    assert open_checkpoint(tmp_path / "model.bin").tokenizer is None
    write_llama2c_tokenizer(tmp_path / "words.bin", WORDS)
    named = open_checkpoint(
        tmp_path / "model.bin", kind="llama2c", tokenizer=tmp_path / "words.bin"
    )
    assert named.tokenizer is not None
    with pytest.raises(InputError, match="there is no such file"):
        open_checkpoint(tmp_path / "model.bin", kind="llama2c", tokenizer=tmp_path / "no.bin")


@pytest.mark.parametrize("change", ["shorter", "longer", "header", "huge", "empty"])
def test_another_length_is_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    write_llama2c(path, llama2c_decoder())
    content = path.read_bytes()
    path.write_bytes(
        {
            "shorter": content[:-4],
            "longer": content + b"\0\0\0\0",
            "header": struct.pack("<7i", 24, 20, 2, 5, 2, 270, 32) + content[28:],
            "huge": struct.pack("<7i", 24, 20, 2**31 - 1, 4, 2, 270, 32) + content[28:],
            "empty": b"",
        }[change]
    )
    with pytest.raises(InputError, match=r"pickled \.bin files are never opened"):
        load(path, kind="llama2c")
    with pytest.raises(InputError, match="looks pickled"):
        load(path)


def test_a_tokenizer_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    write_llama2c(tmp_path / "model.bin", llama2c_decoder())
    write_llama2c_tokenizer(tmp_path / "tok270.bin", [*WORDS, "x"])
    with pytest.raises(InputError, match="bytes follow the last of 270 tokens"):
        open_checkpoint(tmp_path / "model.bin", kind="llama2c")
    write_llama2c_tokenizer(tmp_path / "tok270.bin", WORDS[:-1])
    with pytest.raises(InputError, match="breaks off in token 269"):
        open_checkpoint(tmp_path / "model.bin", kind="llama2c")


def test_nan_is_refused(tmp_path: Path) -> None:
    decoder = llama2c_decoder()
    with torch.no_grad():
        decoder.embedding.weight[3] = torch.inf
    write_llama2c(tmp_path / "model.bin", decoder)
    with pytest.raises(InputError, match=r"embed_tokens\.weight holds 24 entries that are NaN or"):
        load(tmp_path / "model.bin")
