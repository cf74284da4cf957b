"""The real `transformers`, both ways: its models open here, and ours open there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from reference_decoder import random_tokens
from torch.nn import functional

from heedful.model import Decoder, DecoderConfig, load, open_checkpoint, preset, write_folder
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.weights.families import FAMILIES, family_for, tensor_map, with_rotary_layout
from heedful.positions.encodings import PartialRotary, Rotary
from heedful.tokenization import bytes_of_utf8

transformers.logging.disable_progress_bar()

SIZES = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32,
         "initializer_range": 0.1, "bos_token_id": 0, "eos_token_id": 1}  # fmt: skip
THEIRS: dict[str, Any] = {
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=61, n_positions=32, n_embd=24, n_layer=2, n_head=4, initializer_range=0.1,
        bos_token_id=0, eos_token_id=1,
    ),
    "gpt2-relu-untied": lambda: transformers.GPT2Config(
        vocab_size=61, n_positions=32, n_embd=24, n_layer=2, n_head=4, n_inner=30,
        activation_function="relu", tie_word_embeddings=False, bos_token_id=0, eos_token_id=1,
    ),
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "llama-biases-tied": lambda: transformers.LlamaConfig(
        **SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=10
    ),
    "smollm2": lambda: transformers.LlamaConfig(
        **SIZES, tie_word_embeddings=True, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    ),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=8),
    "stablelm": lambda: transformers.StableLmConfig(
        **{**SIZES, "hidden_size": 32}, use_qkv_bias=True, partial_rotary_factor=0.5
    ),
}  # fmt: skip

LLAMA_LIKE = {
    "vocabulary": 256, "context": 32, "width": 24, "layers": 2, "initial_std": 0.1,
    "feed_forward": FeedForward(activation="swiglu", width=40), "norm": Norm(kind="rms"),
}  # fmt: skip
OURS = {
    "gpt2": preset("a5", width=24, layers=2, context=32, initial_std=0.1),
    "llama": DecoderConfig(
        **LLAMA_LIKE, attention=Attention(heads=4, kv_heads=2), positions=Rotary()
    ),
    "qwen2": DecoderConfig(
        **LLAMA_LIKE, attention=Attention(heads=4, qkv_bias=True), positions=Rotary(base=500.0)
    ),
    "qwen3": DecoderConfig(
        **LLAMA_LIKE, attention=Attention(heads=4, qk_norm=True), positions=Rotary(layout="half")
    ),
    "stablelm": DecoderConfig(
        **{**LLAMA_LIKE, "width": 32, "norm": Norm(kind="layer")},
        attention=Attention(heads=4, kv_heads=2),
        positions=PartialRotary(share=0.25),
    ),
}


def loss_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


@pytest.mark.parametrize("name", list(THEIRS))
def test_their_models_open_here(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    peer = transformers.AutoModelForCausalLM.from_config(THEIRS[name]()).eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    peer.save_pretrained(tmp_path / "model")
    decoder = load(tmp_path / "model").decoder
    tokens = random_tokens(decoder.config, 2, 20)
    ours, theirs = decoder(tokens), peer(input_ids=tokens).logits
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)

    loss_of(ours, tokens).backward()
    loss_of(theirs, tokens).backward()
    parameters, expected = dict(decoder.named_parameters()), dict(peer.named_parameters())
    family = FAMILIES[open_checkpoint(tmp_path / "model").family]
    for theirs_name, part in tensor_map(decoder.config, family.names).items():
        gradient = parameters[part.name].grad
        assert gradient is not None
        torch.testing.assert_close(
            part.of(gradient), expected[theirs_name].grad, rtol=0, atol=1e-5, msg=theirs_name
        )


@pytest.mark.parametrize("family", list(OURS))
def test_our_models_open_there(family: str, tmp_path: Path) -> None:
    decoder = Decoder(OURS[family], seed=0).eval()
    assert family_for(decoder.config).name == family
    tokenizer = bytes_of_utf8()
    tokenizer.end = 10
    assert write_folder(decoder, tmp_path / "model", tokenizer=tokenizer) == "huggingface"
    peer = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert type(peer).__name__ == FAMILIES[family].architecture
    tokens = random_tokens(decoder.config, 2, 20)
    with torch.no_grad():
        torch.testing.assert_close(
            decoder(tokens), peer(input_ids=tokens).logits, rtol=0, atol=1e-5
        )
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert theirs("déjà vu").input_ids == tokenizer.encode("déjà vu")
    assert theirs.eos_token_id == peer.config.eos_token_id == 10


def test_an_opening_mark_is_put_before_texts_there_too(tmp_path: Path) -> None:
    tokenizer = bytes_of_utf8()
    tokenizer.begin = 7
    write_folder(Decoder(OURS["llama"]), tmp_path / "model", tokenizer=tokenizer)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert theirs("ab").input_ids == [7, *tokenizer.encode("ab")]
    assert theirs.bos_token_id == 7
    back = load(tmp_path / "model").tokenizer
    assert back is not None
    assert back.begin == 7


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "stablelm"])
def test_the_order_of_rotary_pairs_can_be_changed(family: str) -> None:
    config = OURS[family]
    decoder = Decoder(config, seed=0).double()
    other = "half" if config.positions.layout == "interleaved" else "interleaved"
    changed, state = with_rotary_layout(config, decoder.state_dict(), other)
    moved = Decoder(changed).double()
    moved.load_state_dict(state)
    tokens = random_tokens(config, 1, 12)
    torch.testing.assert_close(moved(tokens), decoder(tokens), rtol=0, atol=1e-12)
    back, returned = with_rotary_layout(changed, state, config.positions.layout)
    assert back == config
    assert all(torch.equal(returned[name], value) for name, value in decoder.state_dict().items())
