"""How closely the decoder agrees with the installed `transformers`, both ways.

    python benchmarks/parity.py

For each family a small model is drawn at random. "theirs → ours": `transformers` saves it, we
load the folder. "ours → theirs": we save a decoder, `AutoModelForCausalLM` loads the folder.
Shown is the largest difference of logits, loss and gradients on the same tokens.

`transformers` works out RMSNorm, rotary angles and its loss in float32 even when the model is
float64. The float64 rows therefore give its model float64 norms and angles, and take the loss
of its logits in float64; the rows "float64, as it comes" show what is left without that.

Prints a table and one JSON line; stores benchmarks/results/parity.json.
"""

from __future__ import annotations

import json
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from heedful.model import Decoder, load, write_folder
from heedful.model.weights.families import FAMILIES, tensor_map
from heedful.model.weights.huggingface import read_json
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "parity.json"
SMALL = {"vocab_size": 101, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
         "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 64,
         "initializer_range": 0.1}  # fmt: skip
PEERS: dict[str, Any] = {
    "gpt2": transformers.GPT2Config(
        vocab_size=101, n_positions=64, n_embd=48, n_layer=3, n_head=6, initializer_range=0.1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    ),
    "llama": transformers.LlamaConfig(**SMALL),
    "llama, biases, tied": transformers.LlamaConfig(
        **SMALL, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=10
    ),
    "smollm2": transformers.LlamaConfig(
        **{**SMALL, "rms_norm_eps": 1e-5, "tie_word_embeddings": True},
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    ),
    "qwen2": transformers.Qwen2Config(**SMALL),
    "qwen3": transformers.Qwen3Config(**SMALL, head_dim=12),
}  # fmt: skip


class ExactRotary(nn.Module):
    """Rotary angles in float64."""

    def __init__(self, base: float, width: int) -> None:
        super().__init__()
        self.frequencies = base ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines, each pair's angle twice."""
        angles = position_ids[..., None].double() * self.frequencies
        return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def exact(model: Any) -> Any:
    """Give a float64 model of `transformers` float64 norms and angles."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__.endswith("RMSNorm"):
                width = child.weight.shape[0]
                norm = nn.RMSNorm(width, eps=child.variance_epsilon, dtype=torch.float64)
                norm.weight = child.weight
                setattr(parent, name, norm)
            elif type(child).__name__.endswith("RotaryEmbedding"):
                config = model.config
                width = (
                    getattr(config, "head_dim", None)
                    or config.hidden_size // config.num_attention_heads
                )
                base = config.rope_parameters["rope_theta"]
                setattr(parent, name, ExactRotary(base, width))
    return model


def random_peer(config: Any, seed: int) -> Any:
    """Return a random model of `transformers`, biases and gains included."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def differences(
    decoder: Decoder, peer: Any, folder: Path, seed: int, *, as_it_comes: bool
) -> dict[str, float]:
    """Return the largest difference of logits, loss and gradients."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, decoder.config.vocabulary, (3, 48), generator=generator)
    decoder.eval().zero_grad()
    peer.eval().zero_grad()
    ours = decoder(tokens)
    loss = next_token_loss(ours, tokens)
    loss.backward()
    answer = peer(input_ids=tokens, labels=tokens)
    theirs = answer.logits
    expected_loss = answer.loss if as_it_comes else next_token_loss(theirs, tokens)
    expected_loss.backward()
    family = FAMILIES[read_json(folder / "config.json")["model_type"]]
    parameters = dict(decoder.named_parameters())
    expected = dict(peer.named_parameters())
    gradients = max(
        float((part.of(parameters[part.name].grad) - expected[name].grad).abs().max())
        for name, part in tensor_map(decoder.config, family.names).items()
    )
    return {
        "largest logit": float(theirs.detach().abs().max()),
        "logits": float((ours - theirs).detach().abs().max()),
        "loss": abs(float(loss.detach()) - float(expected_loss.detach())),
        "gradients": gradients,
    }


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross-entropy of each next token."""
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def both_ways(config: Any, dtype: torch.dtype, *, as_it_comes: bool) -> dict[str, dict[str, float]]:
    """Send a model each way and compare."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        there, back = Path(place) / "theirs", Path(place) / "ours"
        peer = random_peer(config, seed=0).to(dtype)
        peer.save_pretrained(there)
        decoder = load(there, dtype=dtype).decoder
        peer = peer if as_it_comes or dtype != torch.float64 else exact(peer)
        found["theirs → ours"] = differences(decoder, peer, there, 1, as_it_comes=as_it_comes)

        write_folder(decoder, back)
        opened = transformers.AutoModelForCausalLM.from_pretrained(back, dtype=dtype)
        opened = opened if as_it_comes or dtype != torch.float64 else exact(opened)
        found["ours → theirs"] = differences(decoder, opened, back, 2, as_it_comes=as_it_comes)
    return found


def main() -> None:
    """Print the table and store it."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shown = table(
        f"Largest difference from transformers {transformers.__version__}",
        "family",
        "dtype",
        "direction",
        *("largest logit", "logits", "loss", "gradients"),
        left=(0, 1, 2),
    )
    rows = []
    for name, config in PEERS.items():
        kinds = [("float32", torch.float32, False), ("float64", torch.float64, False)]
        if name != "gpt2":
            kinds.append(("float64, as it comes", torch.float64, True))
        for kind, dtype, as_it_comes in kinds:
            for way, errors in both_ways(config, dtype, as_it_comes=as_it_comes).items():
                shown.row(name, kind, way, *(f"{error:.2g}" for error in errors.values()))
                rows.append({"family": name, "dtype": kind, "direction": way, **errors})
    print_blocks([shown], width=110)
    record = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({"worst float32 logits": max(
        row["logits"] for row in rows if row["dtype"] == "float32"
    )}))  # fmt: skip


if __name__ == "__main__":
    main()
