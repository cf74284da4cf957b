"""How fast is greedy decoding, against Hugging Face `generate` and CTranslate2?

    python benchmarks/bench_decode.py [--quick] [--rounds 7] [--batches 1 32] [--ctranslate2 FOLDER]

6 layers × 8 heads × 512, vocabulary 8,000, prompts of 16 tokens, 128 new tokens, batches of 1
and 32, for the GPT-2 and the Llama shape, the same weights everywhere. Each way is timed from
token ids to token ids, prompt included, in interleaved rounds; medians are compared. Ours is
`heedful.generation.generate`, with log-probabilities and records; like the others, it may
prepare its weights before the clock starts.

float32 answers must be the same tokens as Hugging Face gives, or their texts must be equally
likely up to rounding; int8 is reported by itself.

CTranslate2 is optional: install it with `pip install --target FOLDER ctranslate2` and give
FOLDER. Prints a table, then one line of JSON, and stores benchmarks/results/decode.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import transformers
from surroundings import store, surroundings
from tokenizers import Tokenizer, models

from heedful.generation import FastStep, Stops, generate
from heedful.model import Decoder, load, preset
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model.weights.huggingface import write_folder
from heedful.positions.encodings import Learned

RESULTS = Path(__file__).parent / "results" / "decode.json"
VOCABULARY, PROMPT, NEW, BATCHES = 8_000, 16, 128, (1, 32)
SHAPES = {
    "gpt2": preset("small").changed(
        attention=Attention(heads=8, qkv_bias=True, output_bias=True),
        feed_forward=FeedForward(activation="gelu_tanh", bias=True),
        norm=Norm(kind="layer"),
        positions=Learned(),
    ),
    "llama": preset("small"),
}

Way = Callable[[], list[list[int]]]
"""Decodes the batch; returns the new tokens of each row."""


def prompts(batch: int) -> list[list[int]]:
    """Return random ids, the same for every way."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randint(2, VOCABULARY, (batch, PROMPT), generator=generator).tolist()


def ours(decoder: Decoder, batch: int, precision: Any = "float32") -> Way:
    """Decode with room generation."""
    rows, stops, step = prompts(batch), Stops(tokens=NEW), FastStep(decoder, precision)

    def run() -> list[list[int]]:
        result = generate(decoder, rows, stops=stops, step=step)
        return [list(found.tokens) for (found,) in result.continuations]

    return run


def hugging_face(model: Any, batch: int) -> Way:
    """Decode with the real `generate` and its default cache."""
    tokens = torch.tensor(prompts(batch))

    def run() -> list[list[int]]:
        with torch.inference_mode():
            made = model.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                do_sample=False,
                max_new_tokens=NEW,
                pad_token_id=0,
                eos_token_id=None,
            )
        found: list[list[int]] = made[:, PROMPT:].tolist()
        return found

    return run


def ctranslate2_ways(folder: Path, converted: Path, batch: int) -> dict[str, Way]:
    """Decode with CTranslate2, float32 and int8, in a process of its own.

    Beside torch in one process, its threads slowed everybody down by a quarter and more.
    """
    if not converted.exists():
        run = [sys.executable, __file__, "--convert", str(folder), str(converted)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run(run, check=True, capture_output=True, env=environment)

    def way(kind: str) -> Way:
        ours_, theirs = multiprocessing.get_context("spawn").Pipe()
        multiprocessing.get_context("spawn").Process(
            target=ctranslate2_process,
            args=(theirs, sys.path, str(converted), kind, batch, torch.get_num_threads()),
            daemon=True,
        ).start()
        ours_.recv()

        def run() -> list[list[int]]:
            ours_.send("go")
            found: list[list[int]] = ours_.recv()
            return found

        return run

    return {f"CTranslate2 {kind}": way(kind) for kind in ("float32", "int8")}


def ctranslate2_process(
    pipe: Any, path: list[str], converted: str, kind: str, batch: int, threads: int
) -> None:
    """Answer every message with the tokens of one decoding."""
    sys.path[:] = path
    import ctranslate2

    words = [[f"t{token}" for token in row] for row in prompts(batch)]
    engine = ctranslate2.Generator(converted, compute_type=kind, intra_threads=threads)
    pipe.send("ready")
    while _asked(pipe):
        made = engine.generate_batch(
            words,
            max_length=NEW,
            min_length=NEW,
            sampling_topk=1,
            include_prompt_in_result=False,
            end_token=[],
            max_batch_size=batch,
        )
        pipe.send([list(one.sequences_ids[0]) for one in made])


def _asked(pipe: Any) -> bool:
    try:
        return bool(pipe.recv())
    except EOFError:  # the benchmark has ended
        return False


def ways_of(
    shape: str, place: Path, batch: int, peer: bool
) -> tuple[Decoder, dict[str, Way], dict[str, str]]:
    """Return every way to decode one shape of model, and why a peer is missing."""
    folder = place / shape
    if not folder.exists():
        write_folder(Decoder(SHAPES[shape], seed=0), folder)
        words = Tokenizer(models.WordLevel({f"t{n}": n for n in range(VOCABULARY)}, "t0"))
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=words, unk_token="t0", bos_token="t0", eos_token="t1"
        ).save_pretrained(folder)
    decoder = load(folder).decoder
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    ways = {
        "Hugging Face float32": hugging_face(model, batch),
        "Heedful float32": ours(decoder, batch),
        "Heedful bfloat16": ours(decoder, batch, "bfloat16"),
        "Heedful int8": ours(decoder, batch, "int8"),
    }
    missing = {}
    try:
        if peer:
            ways |= ctranslate2_ways(folder, place / f"{shape}-ctranslate2", batch)
        else:
            missing["CTranslate2"] = "give --ctranslate2 FOLDER to compare with it"
    except (subprocess.CalledProcessError, OSError, EOFError) as error:
        missing["CTranslate2"] = f"{type(error).__name__}: {error}"[:200]
    return decoder, ways, missing


def rounds(ways: dict[str, Way], count: int) -> dict[str, list[float]]:
    """Time the ways in turn, again and again; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(count + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if number:
                times[name].append(time.perf_counter() - start)
    return times


@torch.inference_mode()
def same_texts(decoder: Decoder, batch: int, found: list[list[int]], peer: list[list[int]]) -> bool:
    """Tell whether both made the same tokens, but for ties within rounding."""
    for row, ours_, theirs in zip(prompts(batch), found, peer, strict=True):
        pairs = zip(ours_, theirs, strict=True)
        first = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
        if first is not None:
            logits = decoder(torch.tensor([row + ours_[:first]]))[0, -1]
            if abs(float(logits[ours_[first]] - logits[theirs[first]])) > 1e-4:
                return False
    return True


def measure(shape: str, batch: int, place: Path, count: int, peer: bool) -> dict[str, Any]:
    """Time one shape at one batch size."""
    decoder, ways, missing = ways_of(shape, place, batch, peer)
    theirs = ways["Hugging Face float32"]()
    assert same_texts(decoder, batch, ways["Heedful float32"](), theirs), (shape, batch)
    times = rounds(ways, count)
    medians = {name: statistics.median(each) for name, each in times.items()}
    base = medians["Hugging Face float32"]
    return {
        "shape": shape,
        "batch": batch,
        "missing": missing,
        "seconds": medians,
        "best": {name: min(each) for name, each in times.items()},
        "tokens a second": {name: batch * NEW / each for name, each in medians.items()},
        "ratio to Hugging Face": {name: base / each for name, each in medians.items()},
    }


def show(records: list[dict[str, Any]]) -> None:
    """Print the table."""
    for record in records:
        print(f"\n{record['shape']}, batch {record['batch']}: {PROMPT} + {NEW} tokens")
        print(f"{'way':<24}{'seconds':>10}{'best':>10}{'tokens/s':>10}{'ratio':>8}")
        for name, seconds in record["seconds"].items():
            speed = record["tokens a second"][name]
            ratio = record["ratio to Hugging Face"][name]
            best = record["best"][name]
            print(f"{name:<24}{seconds:>10.3f}{best:>10.3f}{speed:>10.0f}{ratio:>8.2f}")
        for name, reason in record["missing"].items():
            print(f"{name:<24}missing: {reason}")


def versions(peer: bool) -> dict[str, Any]:
    """Return where and with what this ran."""
    found = surroundings("torch", "transformers") | {"threads": torch.get_num_threads()}
    if peer:
        # Not imported: its threads would slow this process down.
        path = [folder for folder in sys.path if (Path(folder) / "ctranslate2").is_dir()]
        known = [one.version for one in metadata.distributions(name="ctranslate2", path=path)]
        found["ctranslate2"] = known[0] if known else None
    return found


def main() -> None:
    """Run everything; `--quick` runs two rounds and stores nothing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two rounds; results not stored")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--ctranslate2", help="folder that `pip install --target` filled")
    parser.add_argument("--convert", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.convert:
        import ctranslate2

        source, converted = chosen.convert
        ctranslate2.converters.TransformersConverter(source).convert(converted)
        return
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    peer = chosen.ctranslate2 is not None
    if peer:
        sys.path.append(chosen.ctranslate2)
    machine = versions(peer)
    with tempfile.TemporaryDirectory() as place:
        records = [
            measure(shape, batch, Path(place), 2 if chosen.quick else chosen.rounds, peer)
            for shape in SHAPES
            for batch in chosen.batches
        ]
    show(records)
    result = {"benchmark": "decode", "machine": machine, "records": records}
    print(json.dumps(result))
    if not chosen.quick:
        store(RESULTS, result, compared)


def compared(result: dict[str, Any]) -> dict[str, float | None]:
    """Return how many times as fast as Hugging Face each way is, by shape and rows."""
    return {
        f"{one['shape']}, rows {one['batch']}: {way}": ratio
        for one in result["records"]
        for way, ratio in one["ratio to Hugging Face"].items()
        if ratio != 1
    }


if __name__ == "__main__":
    main()
