"""Files as others write them: GGUF by the `gguf` package, llama2.c by its description."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from reference_decoder import random_decoder
from torch import Tensor

from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.weights.families import GGUF_GPT2, GGUF_LLAMA, LLAMA, tensor_map
from heedful.positions.encodings import Learned, Rotary
from heedful.tokenization import Tokenizer

WIDTH = 64


def gguf_config(family: str) -> DecoderConfig:
    """Return a config of a family that GGUF files hold."""
    if family == "gpt2":
        return DecoderConfig(
            vocabulary=270,
            context=32,
            width=WIDTH,
            layers=2,
            attention=Attention(heads=4, kv_heads=4, qkv_bias=True, output_bias=True),
            feed_forward=FeedForward(activation="gelu_tanh", width=96, bias=True),
            norm=Norm(kind="layer"),
            positions=Learned(),
        )
    return DecoderConfig(
        vocabulary=270,
        context=32,
        width=WIDTH,
        layers=2,
        attention=Attention(
            heads=4, kv_heads=2, qkv_bias=family == "qwen2", qk_norm=family == "qwen3"
        ),
        feed_forward=FeedForward(activation="swiglu", width=96),
        norm=Norm(kind="rms", eps=1e-5),
        positions=Rotary(base=5000.0, layout="interleaved" if family == "llama" else "half"),
        tied=family != "qwen2",
    )


def write_gguf(
    path: Path, decoder: Decoder, tokenizer: Tokenizer, family: str, kind: Kind = Kind.F32
) -> None:
    """Write a decoder and a byte-level tokenizer as a GGUF file; matrices packed as `kind`."""
    config = decoder.config
    writer = gguf.GGUFWriter(path, family)
    writer.add_name("a small model")
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.hidden_width)
    writer.add_head_count(config.attention.heads)
    writer.add_head_count_kv(config.kv_heads)
    if family == "gpt2":
        writer.add_layer_norm_eps(config.norm.eps)
    else:
        writer.add_layer_norm_rms_eps(config.norm.eps)
    if isinstance(config.positions, Rotary):
        writer.add_rope_freq_base(config.positions.base)
    vocabulary = sorted(tokenizer.core.get_vocab(), key=tokenizer.core.get_vocab().__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in merges_of(tokenizer)])
    writer.add_eos_token_id(0)
    state = decoder.state_dict()
    for name, part in tensor_map(config, GGUF_GPT2 if family == "gpt2" else GGUF_LLAMA).items():
        array = part.of(state[part.name]).float().numpy()
        packed = Kind.F32 if array.ndim == 1 else kind
        writer.add_tensor(name, gguf.quants.quantize(array, packed), raw_dtype=packed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def merges_of(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """Return the merges of a byte-pair encoding."""
    import json

    merges = json.loads(tokenizer.core.to_str())["model"]["merges"]
    return [tuple(merge) for merge in merges]


def llama2c_decoder(tied: bool = True) -> Decoder:
    """Return a decoder of the shape that llama2.c can hold."""
    config = DecoderConfig(
        vocabulary=270,
        context=32,
        width=24,
        layers=2,
        attention=Attention(heads=4, kv_heads=2),
        feed_forward=FeedForward(activation="swiglu", width=20),
        norm=Norm(kind="rms", eps=1e-5),
        positions=Rotary(),
        tied=tied,
    )
    return random_decoder(config).float()


def write_llama2c(path: Path, decoder: Decoder) -> None:
    """Write a decoder as llama2.c does."""
    config, state = decoder.config, decoder.state_dict()
    named: dict[str, Tensor] = {
        name: part.of(state[part.name]) for name, part in tensor_map(config, LLAMA).items()
    }
    parts = [named["model.embed_tokens.weight"]]
    for part in ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                 "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj",
                 "mlp.down_proj", "mlp.up_proj"):  # fmt: skip
        parts += [named[f"model.layers.{layer}.{part}.weight"] for layer in range(config.layers)]
    arrays = [part.numpy() for part in [*parts, named["model.norm.weight"]]]
    arrays.append(np.zeros((config.context, config.head_width), dtype=np.float32))
    if not config.tied:
        arrays.append(named["lm_head.weight"].numpy())
    header = struct.pack(
        "<7i", config.width, config.hidden_width, config.layers, config.attention.heads,
        config.kv_heads, config.vocabulary if config.tied else -config.vocabulary, config.context,
    )  # fmt: skip
    path.write_bytes(header + b"".join(array.astype("<f4").tobytes() for array in arrays))


def write_llama2c_tokenizer(path: Path, words: list[str]) -> list[tuple[str, float]]:
    """Write words, best first, after the marks and the bytes; return every token and score."""
    tokens = [("<unk>", 0.0), ("\n<s>\n", 0.0), ("\n</s>\n", 0.0)]
    tokens += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    tokens += [(word, -float(number)) for number, word in enumerate(words)]
    content = struct.pack("<i", max(len(token.encode()) for token, _ in tokens))
    for token, score in tokens:
        encoded = token.encode()
        content += struct.pack("<fi", score, len(encoded)) + encoded
    path.write_bytes(content)
    return tokens
