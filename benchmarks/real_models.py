"""Two real models, to show that weights and tokenizers are read right.

    heed model get smollm2
    python benchmarks/real_models.py [--stories PATH/stories260K.bin]

SmolLM2-135M-Instruct (GGUF, Q4_1) must complete "The capital of France is" with Paris;
stories260K (llama2.c) must tell its story. For each: the same tokens with and without cache,
and the logits of `transformers` on the converted folder. Stores results/real_models.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import transformers

from heedful.model import Decoder, Pretrained, load, parameter_count, write_folder

RESULTS = Path(__file__).parent / "results" / "real_models.json"
SMOLLM2_PROMPTS = (
    "The capital of France is",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nWrite one sentence about the sea.<|im_end|>\n<|im_start|>assistant\n",
)


def greedy(
    decoder: Decoder, prompt: Sequence[int], length: int, ends: Sequence[int], *, cached: bool
) -> list[int]:
    """Return the likeliest token, again and again."""
    cache = decoder.new_cache(capacity=len(prompt) + length) if cached else None
    tokens, made = list(prompt), []
    with torch.inference_mode():
        for _ in range(length):
            given = tokens[-1:] if made and cached else tokens
            hidden = decoder.hidden(torch.tensor([given]), cache=cache)
            token = int(decoder.logits(hidden[0, -1]).argmax())
            if token in ends:
                break
            made.append(token)
            tokens.append(token)
    return made


def against_transformers(model: Pretrained, tokens: Sequence[int]) -> dict[str, float]:
    """Return the largest logit, and its difference from `transformers` on the converted folder."""
    with tempfile.TemporaryDirectory() as place:
        write_folder(model.decoder, Path(place) / "model", tokenizer=model.tokenizer)
        peer = transformers.AutoModelForCausalLM.from_pretrained(Path(place) / "model").eval()
        given = torch.tensor([list(tokens)])
        with torch.inference_mode():
            ours, theirs = model.decoder(given), peer(input_ids=given).logits
    return {
        "largest logit": float(theirs.abs().max()),
        "largest difference": float((ours - theirs).abs().max()),
    }


def examine(name: str, path: str, prompts: Sequence[str], length: int) -> dict[str, Any]:
    """Load a model, let it answer, compare."""
    started = time.perf_counter()
    model = load(path)
    seconds = time.perf_counter() - started
    assert model.tokenizer is not None
    start = [] if model.tokenizer.begin is None else [model.tokenizer.begin]
    answers, same, fed = [], True, 0
    started = time.perf_counter()
    for prompt in prompts:
        tokens = start + (model.tokenizer.encode(prompt) if prompt else [])
        made = greedy(model.decoder, tokens, length, model.ends, cached=True)
        fed += len(made)
        answers.append({"prompt": prompt, "answer": model.tokenizer.decode(made)})
    rate = fed / (time.perf_counter() - started)
    tokens = start + (model.tokenizer.encode(prompts[0]) if prompts[0] else [])
    made = greedy(model.decoder, tokens, 24, model.ends, cached=True)
    same = made == greedy(model.decoder, tokens, 24, model.ends, cached=False)
    return {
        "model": name,
        "parameters": parameter_count(model.decoder.config),
        "seconds to load": round(seconds, 2),
        "answers": answers,
        "tokens a second, cached": round(rate, 1),
        "cached and uncached tokens agree": same,
        "logits against transformers": against_transformers(model, tokens + made),
    }


def main() -> None:
    """Examine both models, print and store what they say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stories", help="stories260K.bin, with tok512.bin beside it")
    chosen = parser.parse_args()
    transformers.logging.disable_progress_bar()
    records = [examine("SmolLM2-135M-Instruct, Q4_1", "smollm2", SMOLLM2_PROMPTS, 40)]
    assert "Paris" in records[0]["answers"][0]["answer"]
    if chosen.stories:
        records.append(examine("stories260K", chosen.stories, ("", "Tom had a red boat"), 160))
        assert records[1]["answers"][0]["answer"].startswith("Once upon a time, there was a")
    for record in records:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    stored = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "models": records,
    }
    RESULTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
