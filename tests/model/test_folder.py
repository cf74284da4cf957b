"""Folders in and out: whole or not at all, and one clear line for everything that is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from reference_decoder import configs, random_decoder, random_tokens, small_config
from safetensors.torch import load_file, save_file

from heedful.errors import HeedfulError, InputError, RunError
from heedful.model import Checkpoint, Decoder, DecoderConfig, load, open_checkpoint, write_folder
from heedful.model.config import Attention, Dropout
from heedful.model.weights.huggingface import Form
from heedful.tokenization import bytes_of_utf8, characters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(random_decoder(small_config()).float(), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "config", [pytest.param(config, id=name) for name, config in configs().items()]
)
@pytest.mark.parametrize("form", [None, "heedful"])
def test_every_decoder_comes_back(config: DecoderConfig, form: Form | None, tmp_path: Path) -> None:
    decoder = random_decoder(config).eval()
    write_folder(decoder, tmp_path / "model", form=form)
    back = load(tmp_path / "model", dtype=torch.float64).decoder
    tokens = random_tokens(config, 2, 9)
    with torch.no_grad():
        torch.testing.assert_close(back(tokens), decoder(tokens), rtol=1e-12, atol=1e-12)
    if form == "heedful":
        assert back.config == config
        state = back.state_dict()
        assert all(torch.equal(state[name], old) for name, old in decoder.state_dict().items())


@pytest.mark.parametrize("form", [None, "heedful"])
def test_shards_hold_the_same_model(form: Form | None, tmp_path: Path) -> None:
    decoder = random_decoder(small_config()).eval()
    write_folder(decoder, tmp_path / "one", form=form)
    write_folder(decoder, tmp_path / "many", form=form, shard_bytes=4000)
    assert len(list((tmp_path / "many").glob("model-0*.safetensors"))) > 3
    tokens = random_tokens(decoder.config, 1, 5)
    one, many = (load(tmp_path / name).decoder for name in ("one", "many"))
    with torch.no_grad():
        assert torch.equal(one(tokens), many(tokens))


def test_matrices_can_be_written_in_8_bits(tmp_path: Path) -> None:
    decoder = random_decoder(small_config()).float()
    write_folder(decoder, tmp_path / "model", form="heedful", dtype=torch.int8)
    back = load(tmp_path / "model").decoder.state_dict()
    files = load_file(tmp_path / "model" / "model.safetensors")
    for name, old in decoder.state_dict().items():
        if old.ndim < 2:
            assert torch.equal(back[name], old)
        else:  # half a step of each row, and the rounding of float32
            step = files[f"{name}.scale"].float()
            assert ((back[name] - old).abs() <= 0.5001 * step).all()
            torch.testing.assert_close(
                step, old.abs().amax(dim=-1, keepdim=True) / 127, rtol=2**-8, atol=0
            )
    stored = open_checkpoint(tmp_path / "model").source.entries
    assert {entry.dtype for entry in stored.values()} == {"I8", "F32"}
    assert not any(name.endswith(".scale") for name in stored)
    with pytest.raises(InputError, match="8 bits"):
        write_folder(decoder, tmp_path / "other", form="huggingface", dtype=torch.int8)


def test_scales_in_float32_are_read_as_before(tmp_path: Path) -> None:
    decoder = random_decoder(small_config()).float()
    write_folder(decoder, tmp_path / "model", form="heedful", dtype=torch.int8)
    expected = load(tmp_path / "model").decoder.state_dict()
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    wide = {name: one.float() for name, one in tensors.items() if name.endswith(".scale")}
    save_file(tensors | wide, path)
    back = load(tmp_path / "model").decoder.state_dict()
    assert all(torch.equal(back[name], one) for name, one in expected.items())


def test_8_bits_without_scales_are_refused(tmp_path: Path) -> None:
    decoder = random_decoder(small_config()).float()
    write_folder(decoder, tmp_path / "model", form="heedful", dtype=torch.int8)
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    del tensors["embedding.weight.scale"]
    save_file(tensors, path)
    with pytest.raises(InputError, match="has 8 bits and no scales"):
        open_checkpoint(tmp_path / "model")


def test_numbers_can_be_written_shorter(tmp_path: Path) -> None:
    decoder = random_decoder(small_config())
    write_folder(decoder, tmp_path / "model", dtype=torch.bfloat16)
    assert {
        entry.dtype for entry in open_checkpoint(tmp_path / "model").source.entries.values()
    } == {"BF16"}
    assert json.loads((tmp_path / "model" / "config.json").read_text())["dtype"] == "bfloat16"
    assert load(tmp_path / "model").decoder.embedding.weight.dtype == torch.float32


def test_the_tokenizer_and_its_ends_come_along(tmp_path: Path) -> None:
    decoder = Decoder(small_config(vocabulary=300))
    tokenizer = bytes_of_utf8(marks=["<end>"])
    tokenizer.end = 256
    write_folder(decoder, tmp_path / "model", tokenizer=tokenizer)
    back = load(tmp_path / "model")
    assert back.tokenizer is not None
    assert back.tokenizer.encode("é<end>") == [0xC3, 0xA9, 256]
    assert back.ends == (256,)
    (tmp_path / "model" / "generation_config.json").write_text('{"eos_token_id": [7, 256]}')
    assert load(tmp_path / "model").ends == (7, 256)


def test_dropout_does_not_keep_a_model_from_hugging_face(tmp_path: Path) -> None:
    decoder = Decoder(small_config(dropout=Dropout(residual=0.1)))
    assert write_folder(decoder, tmp_path / "model") == "huggingface"


def test_what_no_family_holds_is_said(tmp_path: Path) -> None:
    decoder = Decoder(small_config("alibi"))
    assert write_folder(decoder, tmp_path / "own") == "heedful"
    with pytest.raises(InputError, match=r"the nearest, llama, has positions\.kind = 'rotary'"):
        write_folder(decoder, tmp_path / "theirs", form="huggingface")
    assert not (tmp_path / "theirs").exists()


def test_partial_rotary_is_refused_where_llama_cannot_say_it(tmp_path: Path) -> None:
    decoder = Decoder(small_config("partial"))  # RMSNorm: StableLM has LayerNorm
    with pytest.raises(InputError, match=r"positions\.kind is 'partial_rotary'"):
        write_folder(decoder, tmp_path / "theirs", form="huggingface")
    assert write_folder(decoder, tmp_path / "own") == "heedful"
    assert load(tmp_path / "own").decoder.config == decoder.config


def test_nothing_is_overwritten_and_nothing_is_left_behind(folder: Path) -> None:
    decoder = Decoder(small_config())
    before = sorted(path.name for path in folder.parent.iterdir())
    with pytest.raises(InputError, match="exists already"):
        write_folder(decoder, folder)
    with pytest.raises(InputError, match="does not exist"):
        write_folder(decoder, folder / "no" / "where")
    with pytest.raises(InputError, match="has 25 ids; the embedding has 23"):
        write_folder(
            decoder, folder.with_name("new"), tokenizer=characters("abcdefghijklmnopqrstuvwxy")
        )
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_old_names_and_copies_are_understood(tmp_path: Path) -> None:
    decoder = random_decoder(
        small_config(
            "learned",
            attention=Attention(heads=3, qkv_bias=True, output_bias=True),
            feed_forward={"activation": "gelu_tanh", "bias": True},
            norm={"kind": "layer"},
        )
    ).float()
    assert write_folder(decoder, tmp_path / "model") == "huggingface"
    path = tmp_path / "model" / "model.safetensors"
    tensors = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 16, 16)
    save_file(tensors, path)
    tokens = random_tokens(decoder.config, 1, 5)
    with torch.no_grad():
        ours = load(tmp_path / "model").decoder(tokens)
        torch.testing.assert_close(ours, decoder.eval()(tokens))


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    kept = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in kept.items() if value != "drop"}))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model_type": "bert"}, "the family 'bert' is unknown; one of gpt2, llama, qwen2, qwen3"),
        ({"model_type": None}, "the family None is unknown"),
        ({"model_type": [1]}, "the family [1] is unknown"),
        ({"hidden_size": "drop"}, "hidden_size: is missing"),
        ({"hidden_size": -4}, "width: is -4; input should be greater than 0"),
        ({"hidden_size": 48}, "has shape"),
        ({"num_hidden_layers": 3}, "model.layers.2.input_layernorm.weight, "),
        ({"num_hidden_layers": 1}, "are not part of this model"),
        ({"num_hidden_layers": 10**9}, "its config has 1,000,000,000 layers and"),
        ({"hidden_size": 6 * 10**9}, "its config has 2 layers and 1,656,000,000,000 numbers"),
        ({"num_attention_heads": 5}, "5 heads cannot share 2 key-value heads"),
        ({"vocab_size": 24}, "has shape (23, 24); (24, 24) follows from its config"),
        ({"hidden_act": "gelu"}, "hidden_act: is 'gelu'; only 'silu' is read"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type: is 'yarn'; plain rotary"),
        ({"rope_parameters": 3}, "rope_parameters: is no table"),
        ({"use_sliding_window": True}, "use_sliding_window: is True; only False"),
        ({"tie_word_embeddings": False}, "lm_head.weight is missing"),
        ({"tie_word_embeddings": "maybe"}, "tied: is 'maybe'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(
    folder: Path, changes: dict[str, Any], problem: str
) -> None:
    change_config(folder, **changes)
    with pytest.raises(InputError) as error:
        open_checkpoint(folder)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "is not valid JSON"), ("[]", "holds a list"), ("[" * 100_000, "is not valid JSON")],
)
def test_a_config_that_is_no_json_is_refused(folder: Path, text: str, problem: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(InputError, match=problem):
        open_checkpoint(folder)


def test_a_folder_without_a_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json: there is no such file"):
        open_checkpoint(folder)


@pytest.mark.parametrize("length", [0, 4, 8, 200, -1])
def test_cut_weights_are_refused(folder: Path, length: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="is damaged or cut short"):
        open_checkpoint(folder)


def test_a_header_that_lies_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes((2**62).to_bytes(8, "little") + content[8:])
    with pytest.raises(InputError, match="is damaged or cut short"):
        open_checkpoint(folder)


def rewrite(folder: Path, **changes: torch.Tensor) -> None:
    path = folder / "model.safetensors"
    save_file({**load_file(path), **changes}, path)


def test_nan_and_whole_numbers_are_refused(folder: Path) -> None:
    name = "model.norm.weight"
    rewrite(folder, **{name: torch.full((24,), torch.nan)})
    open_checkpoint(folder)
    with pytest.raises(InputError, match=r"model\.norm\.weight holds 24 entries that are NaN"):
        load(folder)
    rewrite(folder, **{name: torch.ones(24, dtype=torch.int64)})
    with pytest.raises(InputError, match=r"model\.norm\.weight has dtype I64"):
        open_checkpoint(folder)


def test_strange_tensors_are_refused(folder: Path) -> None:
    rewrite(folder, backdoor=torch.ones(1))
    with pytest.raises(InputError, match="backdoor is not part of this model"):
        open_checkpoint(folder)
    rewrite(folder, **{"two\nlines": torch.ones(1)})
    with pytest.raises(InputError, match=r"a tensor is called 'two\\nlines', 9 characters long"):
        open_checkpoint(folder)


def shard(folder: Path, **changes: str) -> Path:
    index = folder / "model.safetensors.index.json"
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    names = load_file(folder / "a.safetensors")
    index.write_text(
        json.dumps({"weight_map": {**dict.fromkeys(names, "a.safetensors"), **changes}})
    )
    return index


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model.norm.weight": "../a.safetensors"}, "names the file '../a.safetensors'"),
        ({"model.norm.weight": "/etc/passwd"}, "names the file '/etc/passwd'"),
        ({"model.norm.weight": "sub/a.safetensors"}, "in the same folder"),
        ({"model.norm.weight": "weights.bin"}, "names the file 'weights.bin'"),
        ({"model.norm.weight": "b.safetensors"}, "names b.safetensors, which is not there"),
        ({"more": "a.safetensors"}, "'more' is not in a.safetensors, where the index puts it"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(
    folder: Path, changes: dict[str, str], problem: str
) -> None:
    shard(folder, **changes)
    with pytest.raises(InputError) as error:
        open_checkpoint(folder)
    assert problem in str(error.value)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {}}', '{"weight_map": 3}', "?"])
def test_an_index_without_a_map_is_refused(folder: Path, content: str) -> None:
    shard(folder).write_text(content)
    with pytest.raises(InputError):
        open_checkpoint(folder)


def test_pickled_weights_are_refused_with_a_way_out(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pickled weights \(pytorch_model\.bin\).*safetensors"):
        open_checkpoint(folder)
    for name, content in (("m.pt", b"PK\x03\x04"), ("m.pkl", b"\x80\x04"), ("m.bin", b"\x80")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="looks pickled"):
            open_checkpoint(tmp_path / name)


def test_other_files_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without their config; give the folder"):
        open_checkpoint(folder / "model.safetensors")
    with pytest.raises(InputError, match="is no kind of model"):
        open_checkpoint(folder / "config.json")
    with pytest.raises(InputError, match="there is no such file or folder"):
        open_checkpoint(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no such file"):
        open_checkpoint(tmp_path / "empty")


def test_a_model_that_no_memory_holds_is_an_error_of_ours(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    # 2**60 numbers: more than any machine can give.
    vast = replace_without_checks(checkpoint, checkpoint.config.changed(vocabulary=2**60 // 24))
    with pytest.raises(RunError, match="there is no memory for"):
        vast.decoder()


def replace_without_checks(checkpoint: Checkpoint, config: DecoderConfig) -> Checkpoint:
    vast = copy.copy(checkpoint)
    object.__setattr__(vast, "config", config)
    return vast


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"model": {"type": "BPE"}}', "\0"])
def test_a_broken_tokenizer_is_refused(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(InputError, match="is no tokenizer"):
        open_checkpoint(folder)


def test_a_tokenizer_larger_than_the_embedding_is_refused(folder: Path) -> None:
    bytes_of_utf8().save(folder / "tokenizer.json")
    with pytest.raises(InputError, match="its tokenizer has 256 ids; the embedding has 23"):
        open_checkpoint(folder)


def test_flipped_bits_of_a_header_are_errors_of_ours(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    for place in torch.randint(0, 1500, (150,), generator=generator).tolist():
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        try:
            load(folder)
        except HeedfulError as error:
            assert "\n" not in str(error)  # noqa: PT017
