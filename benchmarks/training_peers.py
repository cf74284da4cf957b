"""The same training step with the models of other libraries, for `bench_training.py`.

Each function builds a model of the shape of ours and returns one step: forward, backward,
clipping, AdamW. litgpt and x-transformers are optional: `pip install --target FOLDER litgpt
x-transformers`, and `bench_training.py --peers FOLDER`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch.nn import functional

from heedful.model import DecoderConfig

Step = Callable[[], object]


def hugging_face_gpt2(config: DecoderConfig, tokens: Any, targets: Any) -> Step:
    """Return the step of `transformers`' GPT-2."""
    rate = config.dropout.residual
    peer = transformers.GPT2Config(
        vocab_size=config.vocabulary,
        n_positions=config.context,
        n_embd=config.width,
        n_layer=config.layers,
        n_head=config.attention.heads,
        resid_pdrop=rate,
        embd_pdrop=rate,
        attn_pdrop=rate,
        attn_implementation="sdpa",
    )
    return _hugging_face(peer, tokens, targets)


def hugging_face_llama(config: DecoderConfig, tokens: Any, targets: Any) -> Step:
    """Return the step of `transformers`' Llama, which has dropout in attention only."""
    peer = transformers.LlamaConfig(
        vocab_size=config.vocabulary,
        hidden_size=config.width,
        intermediate_size=config.hidden_width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.attention.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        attention_dropout=config.dropout.attention,
        attn_implementation="sdpa",
    )
    return _hugging_face(peer, tokens, targets)


def litgpt(config: DecoderConfig, tokens: Any, targets: Any) -> Step:
    """Return the step of litgpt, in the shape of Llama; it has no dropout."""
    library: Any = importlib.import_module("litgpt")
    model = library.GPT(
        library.Config(
            block_size=config.context,
            n_layer=config.layers,
            n_embd=config.width,
            n_head=config.attention.heads,
            vocab_size=config.vocabulary,
            padded_vocab_size=config.vocabulary,
            norm_class_name="RMSNorm",
            mlp_class_name="LLaMAMLP",
            intermediate_size=config.hidden_width,
            rotary_percentage=1.0,
            parallel_residual=False,
            bias=False,
        )
    )
    model.lm_head.weight = model.transformer.wte.weight
    return _step(model, lambda: model(tokens), targets)


def x_transformers(config: DecoderConfig, tokens: Any, targets: Any) -> Step:
    """Return the step of x-transformers with flash attention, in the shape of Llama."""
    library: Any = importlib.import_module("x_transformers")
    model = library.TransformerWrapper(
        num_tokens=config.vocabulary,
        max_seq_len=config.context,
        use_abs_pos_emb=False,
        tie_embedding=True,
        emb_dropout=config.dropout.embedding,
        attn_layers=library.Decoder(
            dim=config.width,
            depth=config.layers,
            heads=config.attention.heads,
            attn_dim_head=config.width // config.attention.heads,
            attn_flash=True,
            rotary_pos_emb=True,
            use_rmsnorm=True,
            ff_glu=True,
            ff_swish=True,
            ff_no_bias=True,
            ff_mult=config.hidden_width / config.width,
            attn_dropout=config.dropout.attention,
            ff_dropout=config.dropout.residual,
        ),
    )
    return _step(model, lambda: model(tokens), targets)


def _hugging_face(peer: Any, tokens: Any, targets: Any) -> Step:
    model: Any = transformers.AutoModelForCausalLM.from_config(peer)
    return _step(model, lambda: model(input_ids=tokens, use_cache=False).logits, targets)


def _step(model: Any, logits_of: Callable[[], Any], targets: Any) -> Step:
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))

    def step() -> float:
        optimiser.zero_grad()
        loss = functional.cross_entropy(logits_of().flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return float(loss.detach())

    return step
