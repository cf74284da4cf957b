"""Interventions beside TransformerLens: the same logits after the same change, and what it costs.

    pip install --target LENS 'transformer-lens<3'
    PYTHONPATH=LENS python benchmarks/bench_interventions.py

TransformerLens is installed apart: it asks for other versions of libraries that we need. Without
it, its columns stay empty. A random model of the GPT-2 and of the Llama shape (grouped heads) is
written as a Hugging Face folder and given to both. Shown is the largest difference of logits in
float64, then the time of a pass with a trace or an intervention over that of a plain pass,
each the best of several in float32.

Prints a table and one JSON line; stores benchmarks/results/interventions.json.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from surroundings import surroundings
from torch import Tensor

from heedful.model import (
    Decoder,
    Intervention,
    ablate,
    freeze,
    knock_out,
    load,
    patch,
    replace,
    scale,
    steer,
)
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "interventions.json"
LAYERS, HEADS, KV_HEADS, WIDTH, VOCABULARY, CONTEXT = 3, 6, 2, 48, 101, 32
Hook = Callable[..., Any]


def peer_model(shape: str) -> Any:
    """Return a random `transformers` model in float64."""
    torch.manual_seed(0)
    if shape == "gpt2":
        config: Any = transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS,
            n_head=HEADS, initializer_range=0.2, bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
    else:
        config = transformers.LlamaConfig(
            vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_size=WIDTH,
            intermediate_size=80, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            num_key_value_heads=KV_HEADS, initializer_range=0.2,
        )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config).double().eval()


def lens_model(shape: str, peer: Any, dtype: torch.dtype) -> Any:
    """Return the same model as a HookedTransformer, its weights as they are; None without it."""
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
        from transformer_lens.pretrained import weight_conversions
    except ImportError:
        return None
    shared = {
        "n_layers": LAYERS, "d_model": WIDTH, "n_ctx": CONTEXT, "d_head": WIDTH // HEADS,
        "n_heads": HEADS, "d_vocab": VOCABULARY, "dtype": dtype, "device": "cpu",
        "eps": 1e-5 if shape == "gpt2" else peer.config.rms_norm_eps,
    }  # fmt: skip
    if shape == "gpt2":
        config = HookedTransformerConfig(
            **shared, d_mlp=4 * WIDTH, act_fn="gelu_new", normalization_type="LN"
        )
        weights = weight_conversions.convert_gpt2_weights(peer, config)
    else:
        config = HookedTransformerConfig(
            **shared, d_mlp=80, act_fn="silu", normalization_type="RMS", gated_mlp=True,
            n_key_value_heads=KV_HEADS, positional_embedding_type="rotary", final_rms=True,
            rotary_dim=WIDTH // HEADS,
        )  # fmt: skip
        weights = weight_conversions.convert_llama_weights(peer, config)
    model = HookedTransformer(config)
    model.load_state_dict(weights, strict=False)
    return model.to(dtype).eval()


def changes(
    text: Tensor, other: Tensor, lens: Any
) -> dict[str, tuple[Intervention, list[tuple[str, Hook]]]]:
    """Return each kind of intervention in our words and as hooks of TransformerLens."""
    cache: Any = {}
    if lens is not None:
        _, cache = lens.run_with_cache(other)
    direction = torch.linspace(-1, 1, WIDTH, dtype=torch.float64)

    def put(value: float, index: Any) -> Hook:
        def hook(tensor: Tensor, hook: Any) -> Tensor:
            tensor[index] = value
            return tensor

        return hook

    def times(factor: float, tensor: Tensor, hook: Any) -> Tensor:
        return tensor * factor

    def add(tensor: Tensor, hook: Any) -> Tensor:
        return tensor + direction

    def from_other(index: Any, tensor: Tensor, hook: Any) -> Tensor:
        tensor[index] = cache[hook.name][index]
        return tensor

    def mean_of_other(tensor: Tensor, hook: Any) -> Tensor:
        tensor[:, :, 2] = cache[hook.name][:, :, 2].mean(dim=(0, 1))
        return tensor

    every = slice(None)
    z, pattern = "blocks.1.attn.hook_z", "blocks.1.attn.hook_pattern"
    return {
        "zero a head": (
            ablate("head_outputs", layer=1, head=2), [(z, put(0.0, (every, every, 2)))]),
        "mean of a head": (
            ablate("head_outputs", layer=1, head=2, method="mean", reference=other),
            [(z, mean_of_other)]),
        "zero a feed-forward": (
            ablate("transformed", layer=0), [("blocks.0.hook_mlp_out", put(0.0, every))]),
        "patch a stream at one token": (
            patch("after", other, layer=0, positions=3),
            [("blocks.0.hook_resid_post", partial(from_other, (every, 3)))]),
        "patch a head": (
            patch("head_outputs", other, layer=1, head=4),
            [(z, partial(from_other, (every, every, 4)))]),
        "scale attention": (
            scale("attended", 0.5, layer=2), [("blocks.2.hook_attn_out", partial(times, 0.5))]),
        "steer": (
            steer("before", direction, layer=1), [("blocks.1.hook_resid_pre", add)]),
        "knock out a key": (
            knock_out(0, layer=1, head=1, queries=range(2, text.shape[1])),
            [("blocks.1.attn.hook_attn_scores",
              put(-torch.inf, (every, 1, slice(2, None), 0)))]),
        "freeze a pattern": (
            freeze(other, layer=1), [(pattern, partial(from_other, every))]),
        "zero neurons": (
            replace("neurons", lambda x, _: torch.cat([x[..., :1] * 0, x[..., 1:]], -1), layer=2),
            [("blocks.2.mlp.hook_post", put(0.0, (..., 0)))]),
        "values of a key-value head": (
            ablate("values", layer=0, head=1),
            [("blocks.0.attn.hook_v", put(0.0, (every, every, 1)))]),
    }  # fmt: skip


def best(work: Callable[[], object], rounds: int = 30) -> float:
    """Return the shortest of several times, in seconds."""
    work()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def costs(decoder: Decoder, lens: Any, tokens: Tensor) -> dict[str, float | None]:
    """Return how many plain passes a traced and a changed one take, for both libraries."""
    decoder.float()
    head = ablate("head_outputs", layer=1, head=2)

    def changed() -> None:
        with decoder.intervene(head):
            decoder(tokens)

    plain = best(lambda: decoder(tokens))
    measured: dict[str, float | None] = {
        "trace": best(lambda: decoder.trace(tokens)) / plain,
        "intervention": best(changed) / plain,
        "TransformerLens: cache": None,
        "TransformerLens: hook": None,
        "TransformerLens: plain pass": None,
    }
    if lens is not None:
        theirs = best(lambda: lens(tokens))

        def zero(tensor: Tensor, hook: Any) -> Tensor:
            tensor[:, :, 2] = 0
            return tensor

        hooks = [("blocks.1.attn.hook_z", zero)]
        measured |= {
            "TransformerLens: cache": best(lambda: lens.run_with_cache(tokens)) / theirs,
            "TransformerLens: hook": best(lambda: lens.run_with_hooks(tokens, fwd_hooks=hooks))
            / theirs,
            "TransformerLens: plain pass": theirs / plain,
        }
    return measured


@torch.no_grad()
def measure(shape: str) -> dict[str, Any]:
    """Return the differences and the costs of one shape."""
    peer = peer_model(shape)
    with tempfile.TemporaryDirectory() as folder:
        peer.save_pretrained(folder)
        decoder = load(folder).decoder.double().eval()
    lens = lens_model(shape, peer, torch.float64)
    generator = torch.Generator().manual_seed(1)
    text, other = torch.randint(VOCABULARY, (2, 1, 16), generator=generator)
    differences: dict[str, float | None] = {}
    plain = decoder(text)
    differences["no change"] = None if lens is None else float((lens(text) - plain).abs().max())
    for name, (intervention, hooks) in changes(text, other, lens).items():
        with decoder.intervene(intervention):
            ours = decoder(text)
        assert not torch.equal(ours, plain)
        theirs = None if lens is None else lens.run_with_hooks(text, fwd_hooks=hooks)
        differences[name] = None if theirs is None else float((theirs - ours).abs().max())
    cost = costs(decoder, lens_model(shape, peer, torch.float32), text)
    return {"largest difference of logits": differences, "cost": cost}


def main() -> None:
    """Measure, print and store."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    shapes = {shape: measure(shape) for shape in ("gpt2", "llama")}
    for part in ("largest difference of logits", "cost"):
        shown = table(part, "", *shapes)
        for name in shapes["gpt2"][part]:
            numbers = [shapes[shape][part][name] for shape in shapes]
            shown.row(name, *("–" if one is None else f"{one:.3g}" for one in numbers))
        print_blocks([shown])
    record = {
        "machine": surroundings("torch"),
        "shapes": shapes,
    }
    print(json.dumps(record))
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
