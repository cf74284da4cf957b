"""Small decoders of every kind, and the same model opened by `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from heedful.model import Decoder, DecoderConfig, write_folder
from heedful.model.config import Attention, FeedForward, Norm
from heedful.positions.encodings import (
    Alibi,
    Learned,
    NoPositions,
    PartialRotary,
    Rotary,
    Sinusoidal,
)

VOCABULARY = 29


def config(**changes: Any) -> DecoderConfig:
    """Return a config whose odd vocabulary fits no block size."""
    settings: dict[str, Any] = {
        "vocabulary": VOCABULARY,
        "context": 24,
        "width": 24,
        "layers": 2,
        "attention": Attention(heads=6, kv_heads=2),
        "feed_forward": FeedForward(activation="swiglu", width=20),
        "norm": Norm(kind="rms"),
        "positions": Rotary(),
        "initial_std": 0.3,
    }
    return DecoderConfig(**{**settings, **changes})


GPT2 = config(
    attention=Attention(heads=4, qkv_bias=True, output_bias=True),
    feed_forward=FeedForward(activation="gelu_tanh", bias=True),
    norm=Norm(kind="layer"),
    positions=Learned(),
)
KINDS = {
    "llama": config(),
    "gpt2": GPT2,
    "half": config(positions=Rotary(base=500.0, layout="half"), tied=False),
    "partial rotary": config(
        attention=Attention(heads=2, head_width=10), positions=PartialRotary(share=0.4)
    ),
    "half of the head": config(
        attention=Attention(heads=4, kv_heads=2, head_width=16),
        positions=PartialRotary(share=0.5, layout="half"),
    ),
    "alibi": config(positions=Alibi()),
    "sinusoidal": config(positions=Sinusoidal(), embedding_scale=2.0),
    "no positions": config(positions=NoPositions(), feed_forward=FeedForward(activation="relu")),
    "post-norm": config(norm=Norm(kind="layer", placement="post")),
    "post-rms": config(norm=Norm(kind="rms", placement="post")),
    "qk-norm": config(attention=Attention(heads=4, head_width=10, qk_norm=True, qkv_bias=True)),
    "gelu": config(feed_forward=FeedForward(activation="gelu", bias=True, width=37)),
    "tiny vocabulary": config(vocabulary=5),
}


def random_decoder(kind: str, seed: int = 0, dtype: torch.dtype = torch.float64) -> Decoder:
    """Return a decoder whose biases and gains are random too."""
    decoder = Decoder(KINDS[kind], seed=seed).to(dtype).eval()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return decoder


def random_rows(decoder: Decoder, lengths: list[int], seed: int = 0) -> list[list[int]]:
    """Return prompts of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = decoder.config.vocabulary
    return [torch.randint(0, vocabulary, (n,), generator=generator).tolist() for n in lengths]


def in_transformers(decoder: Decoder, folder: Path) -> Any:
    """Return the same model as the real `transformers` opens it."""
    write_folder(decoder, folder)
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    return model


def padded(rows: list[list[int]]) -> dict[str, torch.Tensor]:
    """Return rows padded on the left, as `transformers` takes them."""
    longest = max(map(len, rows))
    tokens = [[0] * (longest - len(row)) + row for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(mask)}
