"""How much memory do the cache and a training step take, against the formulas?

    python benchmarks/bench_memory.py

Each figure comes from a process of its own: the most memory it ever held (VmHWM), less what it
held before. The formulas are `heedful.model.cache_bytes` and `training_memory`; sizes are those
of bench_training.py and bench_decode.py. Stores benchmarks/results/memory.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from surroundings import surroundings
from torch.nn import functional

from heedful.model import Cache, Decoder, DecoderConfig, cache_bytes, preset, training_memory
from heedful.model.config import Attention, FeedForward, Norm
from heedful.positions.encodings import Learned

RESULTS = Path(__file__).parent / "results" / "memory.json"
MEGABYTE = 2**20
GPT2: dict[str, Any] = {
    "attention": Attention(heads=8, qkv_bias=True, output_bias=True),
    "feed_forward": FeedForward(activation="gelu_tanh", bias=True),
    "norm": Norm(kind="layer"),
    "positions": Learned(),
}
SIZES: dict[str, tuple[DecoderConfig, int, int]] = {
    "S, 64 x 128 tokens": (preset("a5"), 64, 128),
    "M, GPT-2 shape, 16 x 128 tokens": (preset("small").changed(**GPT2), 16, 128),
    "M, Llama shape, 16 x 128 tokens": (preset("small"), 16, 128),
}
CACHE_ROWS, CACHE_LENGTH = 32, 144


def held(name: str = "VmRSS") -> int:
    """Return the bytes that this process holds, or ever held (VmHWM)."""
    for line in Path("/proc/self/status").read_text().split("\n"):
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise SystemExit("this benchmark reads /proc/self/status, which Linux has")


def cache_growth(config: DecoderConfig) -> int:
    """Fill a cache; return what it took."""
    before = held()
    cache = Cache(config, CACHE_ROWS, capacity=CACHE_LENGTH)
    cache.keys.fill_(1.0)
    cache.values.fill_(1.0)
    return held("VmHWM") - before


def step_growth(config: DecoderConfig, rows: int, length: int) -> int:
    """Take two steps; return what they took at most, weights included."""
    before = held()
    decoder = Decoder(config, seed=0).train()
    optimiser = torch.optim.AdamW(decoder.parameters(), lr=1e-4)
    tokens = torch.randint(0, config.vocabulary, (rows, length))
    for _ in range(2):
        loss = functional.cross_entropy(decoder(tokens).flatten(0, 1), tokens.flatten())
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        optimiser.step()
    return held("VmHWM") - before


def child(what: str, name: str) -> int:
    """Measure in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, what, name], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1])


def measure(name: str) -> list[dict[str, Any]]:
    """Return both figures of one size with their formulas."""
    config, rows, length = SIZES[name]
    memory = training_memory(config, rows * length)
    made = []
    for what, formula in (
        ("cache", cache_bytes(config, CACHE_LENGTH, batch=CACHE_ROWS)),
        ("training", memory.total),
    ):
        found = child(what, name)
        made.append(
            {
                "what": what,
                "size": name,
                "formula MB": formula / MEGABYTE,
                "held MB": found / MEGABYTE,
                "held / formula": found / formula,
            }
        )
    made[-1]["parts MB"] = {
        part: value / MEGABYTE for part, value in memory.to_dict().items() if isinstance(value, int)
    }
    return made


def main() -> None:
    """Measure everything, or in a child one thing."""
    if len(sys.argv) == 3:
        config, rows, length = SIZES[sys.argv[2]]
        print(cache_growth(config) if sys.argv[1] == "cache" else step_growth(config, rows, length))
        return
    records = [record for name in SIZES for record in measure(name)]
    print(f"{'what':<10}{'size':<34}{'formula MB':>12}{'held MB':>10}{'ratio':>8}")
    for one in records:
        print(
            f"{one['what']:<10}{one['size']:<34}{one['formula MB']:>12.1f}{one['held MB']:>10.1f}"
            f"{one['held / formula']:>8.2f}"
        )
    result = {
        "benchmark": "memory",
        "machine": surroundings("torch"),
        "records": records,
    }
    print(json.dumps(result))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
