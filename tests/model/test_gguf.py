"""GGUF files: every number as the `gguf` package reads it, and no damage believed."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import random_decoder, random_tokens
from weight_files import gguf_config, write_gguf

from heedful.errors import InputError
from heedful.model import Decoder, load, open_checkpoint
from heedful.model.weights.gguf import GgufFile
from heedful.tokenization import Tokenizer, train_bpe

FAMILIES = ("llama", "qwen2", "qwen3", "gpt2")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(["a story of a little girl"] * 9, 270, marks=["<|end|>"])


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return random_decoder(gguf_config("llama")).float()


@pytest.fixture(scope="module")
def model(decoder: Decoder, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write_gguf(path, decoder, tokenizer, "llama")
    return path


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_comes_back_exactly(family: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    decoder = random_decoder(gguf_config(family)).float().eval()
    write_gguf(tmp_path / "m.gguf", decoder, tokenizer, family)
    loaded = load(tmp_path / "m.gguf")
    assert loaded.decoder.config.explicit() == decoder.config.changed(initial_std=0.02).explicit()
    tokens = random_tokens(decoder.config, 2, 9)
    with torch.no_grad():
        assert torch.equal(loaded.decoder(tokens), decoder(tokens))
    assert loaded.ends == (0,)


@pytest.mark.parametrize("kind", [Kind.F16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.BF16])
def test_packed_numbers_are_those_of_the_gguf_package(
    kind: Kind, decoder: Decoder, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path, decoder, tokenizer, "llama", kind)
    ours, theirs = GgufFile(path), gguf.GGUFReader(path)
    assert len(theirs.tensors) == len(ours.entries)
    for tensor in theirs.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert ours.entries[tensor.name].dtype == tensor.tensor_type.name
        np.testing.assert_array_equal(ours.read(tensor.name).numpy(), expected)
    plain = {name: field.contents() for name, field in theirs.fields.items()}
    assert ours.metadata == {k: v for k, v in plain.items() if not k.startswith("GGUF.")}
    exact = dict(decoder.named_parameters())["embedding.weight"].detach()
    packed = load(path).decoder.embedding.weight.detach()
    # Four bits split the range of a block of 32 into 16 steps, of which half one may be lost.
    assert float((packed - exact).abs().max()) <= float(exact.abs().max()) / 7


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K])
def test_k_quants_are_unpacked_by_the_package(kind: Kind, tmp_path: Path) -> None:
    _, bytes_of_block = gguf.GGML_QUANT_SIZES[kind]
    # Random bits, except in the half-precision scales, which small bytes keep finite.
    blocks = np.random.default_rng(0).integers(0, 48, (3, 2 * bytes_of_block), dtype=np.uint8)
    path = tmp_path / "k.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("x", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GgufFile(path)
    assert file.entries["x"].shape == (3, 512)
    np.testing.assert_array_equal(file.read("x").numpy(), gguf.quants.dequantize(blocks, kind))


def test_the_tokenizer_comes_along(model: Path, tokenizer: Tokenizer) -> None:
    inside = open_checkpoint(model).tokenizer
    assert inside is not None
    for text in ("a little story", "é 日本 \n\n x", "<|end|>a girl"):
        assert inside.decode(inside.encode(text), special=True) == text
    assert inside.encode("a little girl") == tokenizer.encode("a little girl")
    assert inside.encode("<|end|>") == [0]
    assert inside.end == 0
    # The rule "smollm" takes digits one by one.
    assert len(inside.encode("1234")) == 4


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_refused_in_one_line(model: Path, data: st.DataObject) -> None:
    content = bytearray(model.read_bytes())
    header = 3000
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 8))):
        place = data.draw(st.integers(0, min(header, len(content)) - 1)) if content else 0
        content[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
    damaged = model.with_name("damaged.gguf")
    damaged.write_bytes(content)
    try:
        load(damaged)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (0, b"GGML", "begins with b'GGML', version 3"),
        (4, b"\x09\0\0\0", "version 9; a GGUF file of version 2 or 3"),
        (8, b"\xff" * 8, "announces 18,446,744,073,709,551,615 tensors; at most 65,536"),
        (16, b"\0\0\x10\0\0\0\0\0", "announces 1,048,576 entries"),
        (24, b"\xff" * 8, "announces a list of 18,446,744,073,709,551,615 items"),
    ],
)
def test_counts_are_not_believed(model: Path, place: int, value: bytes, problem: str) -> None:
    content = bytearray(model.read_bytes())
    content[place : place + len(value)] = value
    damaged = model.with_name("counts.gguf")
    damaged.write_bytes(content)
    with pytest.raises(InputError) as error:
        open_checkpoint(damaged)
    assert problem in str(error.value)


def test_a_file_cut_in_its_weights_is_refused_before_loading(model: Path) -> None:
    short = model.with_name("short.gguf")
    short.write_bytes(model.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"ends at byte [\d,]+, before the end of"):
        open_checkpoint(short)


def test_other_families_are_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    decoder = random_decoder(gguf_config("llama")).float()
    write_gguf(tmp_path / "m.gguf", decoder, tokenizer, "mamba")
    with pytest.raises(InputError, match="the family 'mamba' is unknown; one of gpt2, llama"):
        open_checkpoint(tmp_path / "m.gguf")


def test_nan_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    decoder = random_decoder(gguf_config("llama")).float()
    with torch.no_grad():
        decoder.blocks[1].feed_forward.down.weight[0, 0] = torch.nan
    write_gguf(tmp_path / "m.gguf", decoder, tokenizer, "llama")
    with pytest.raises(InputError, match=r"blk\.1\.ffn_down\.weight holds 1 entries that are NaN"):
        load(tmp_path / "m.gguf")
