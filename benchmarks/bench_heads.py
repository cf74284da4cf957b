"""How long does it take to study the heads of a 135-million model, and what does a trace cost?

    python benchmarks/bench_heads.py [--model smollm2]

Without --model, a decoder of SmolLM2's shape with random weights reads random tokens: the time is
the same. Prints a table, then one JSON line, and stores benchmarks/results/heads.json. Times are
medians of interleaved repeats, so that a busy moment meets all of them alike.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from surroundings import surroundings

from heedful.model import Decoder, preset
from heedful.studies.heads.heads_study import Effort, study_subject
from heedful.studies.heads.sample import Amount, Row, Sample, StudiedModel, open_subject

RESULTS = Path(__file__).parent / "results" / "heads.json"
TOKENS = 256
LIMIT = 30.0
TRACE_LIMIT = 2.0
REPEATS = 5


def subject_of(model: str | None) -> StudiedModel:
    """Return SmolLM2, or a decoder of its shape."""
    if model is not None:
        return open_subject(model, amount=Amount(rows=1, tokens=TOKENS))
    decoder = Decoder(preset("smollm2"), seed=0).eval()
    drawn = np.random.default_rng(0).integers(0, decoder.config.vocabulary, TOKENS)
    sample = Sample(name="random tokens", rows=(Row(tokens=tuple(map(int, drawn))),))
    return StudiedModel(name="the shape of smollm2", decoder=decoder, tokenizer=None, sample=sample)


def interleaved(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median seconds of each way, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(REPEATS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:  # the first turn warms up
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def main() -> None:
    """Time a pass, a trace and the whole study; print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", help="a model that is at hand, such as smollm2")
    subject = subject_of(parser.parse_args().model)
    tokens = subject.sample.rows[0].tensor()
    with torch.no_grad():
        passes = interleaved(
            {
                "plain forward": lambda: subject.decoder(tokens),
                "trace, kept": lambda: subject.decoder.trace(tokens),
                "trace, layer by layer": lambda: subject.decoder.visit(tokens, lambda *_: None),
            }
        )
    plain = passes["plain forward"]
    for name, seconds in passes.items():
        print(f"{name:<24}{seconds:>8.2f} s{seconds / plain:>8.2f} x", flush=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    record = study_subject(subject, effort=Effort())
    total = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    heads = sum(value for name, value in record.seconds.items() if name != "tokens")
    for name, seconds in record.seconds.items():
        print(f"{name:<24}{seconds:>8.2f} s")
    print(f"{'the heads, in all':<24}{heads:>8.2f} s   (limit {LIMIT:.0f} s)")
    stored = {
        "benchmark": "heads",
        "machine": surroundings("torch"),
        "model": subject.name,
        "tokens": TOKENS,
        "passes_seconds": {name: round(seconds, 3) for name, seconds in passes.items()},
        "trace_over_plain": round(passes["trace, layer by layer"] / plain, 2),
        "parts_seconds": record.seconds,
        "heads_seconds": round(heads, 2),
        "total_seconds": round(total, 2),
        "peak_megabytes": round(peak / 1000),
        "megabytes_before_study": round(before / 1000),
        "predictable": record.to_dict()["predictable"]["statement"],
        "within_limits": heads < LIMIT and passes["trace, layer by layer"] < TRACE_LIMIT * plain,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(stored, ensure_ascii=False))


if __name__ == "__main__":
    main()
