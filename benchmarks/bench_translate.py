"""How fast are 1,000 sentences translated, against Hugging Face `generate` and CTranslate2?

    python benchmarks/bench_translate.py [--quick] [--rounds 3] [--ctranslate2 FOLDER]
    python benchmarks/bench_translate.py --run RUN --corpus french.txt

From text to text, greedy, with the same weights: tokenizing, decoding and everything between are
on the clock; opening the model is not. Hugging Face gets the model that `heed export` writes, and
is run as a careful user would: padded on the left, under inference_mode, with its own cache, at
every batch size of a list, in the order of the sentences and sorted by length; the ratio is to the
fastest of these. CTranslate2 sorts and batches by itself (`max_batch_size`, examples).

Without --run, a decoder is trained on the phrasebook for a minute first (4 layers × 256), and the
sentences are its held-out ones. Every way must give the same sentences as Hugging Face; where two
differ, the first tokens that differ must be equally likely up to rounding. int8 and CTranslate2's
int8 are rounded, and their share of equal sentences is reported instead.

CTranslate2 is optional: install it with `pip install --target FOLDER ctranslate2` and give FOLDER.
Prints a table, then one line of JSON, and stores benchmarks/results/translate.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from surroundings import surroundings

from heedful.data.synthetic.phrasebook import phrasebook
from heedful.model import parameter_count, write_folder
from heedful.studies.exporting import export
from heedful.studies.text_training import prepare
from heedful.studies.translation import Translator
from heedful.studies.translation.translator import format_of
from heedful.training import train
from heedful.training.runs import trained_decoder

RESULTS = Path(__file__).parent / "results" / "translate.json"
SENTENCES, MOST = 1_000, 64
BATCHES = (32, 64, 128)
SETTINGS: dict[str, Any] = {
    "steps": 250,
    "tensorboard": False,
    "model": {
        "preset": "small",
        "width": 256,
        "layers": 4,
        "feed_forward": {"activation": "swiglu", "width": 704},
    },
    "schedule": {"warmup": 50},
    "optimiser": {"kind": "muon", "learning_rate": 2e-3},
    "data": {
        "source": "phrasebook",
        "size": 20_000,
        "tokenizer": "bpe",
        "vocabulary": 4_000,
        "rows": 16,
    },
}

Way = Callable[[], list[str]]
"""Translates all sentences."""


def trained(place: Path, steps: int) -> Path:
    """Train a decoder on the phrasebook, so that it ends its sentences where they end."""
    made = prepare({**SETTINGS, "steps": steps})
    result = train(made.config, made.batches, place, data=made.hashes)
    model = place / "model"
    write_folder(trained_decoder(Path(result.checkpoint)), model, tokenizer=made.tokenizer)
    pairs = format_of(made)
    assert pairs is not None
    pairs.write(model)
    return place


def hugging_face(
    folder: Path, translator: Translator, sentences: list[str], batch: int, ordered: bool
) -> Way:
    """Translate with the real `generate`; `ordered` sorts the sentences by length first."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    marks = translator.format

    def run() -> list[str]:
        prompts = [marks.written(sentence) + marks.between for sentence in sentences]
        rows = list(range(len(prompts)))
        if ordered:
            lengths = [len(ids) for ids in tokenizer(prompts)["input_ids"]]
            rows.sort(key=lambda row: lengths[row])
        found = [""] * len(prompts)
        for first in range(0, len(rows), batch):
            chosen = rows[first : first + batch]
            asked = tokenizer([prompts[row] for row in chosen], return_tensors="pt", padding=True)
            with torch.inference_mode():
                made = model.generate(
                    asked["input_ids"],
                    attention_mask=asked["attention_mask"],
                    max_new_tokens=MOST,
                    max_length=None,
                )
            new = made[:, asked["input_ids"].shape[1] :]
            texts = tokenizer.batch_decode(new, skip_special_tokens=True)
            for row, text in zip(chosen, texts, strict=True):
                found[row] = text.strip()
        return found

    return run


def ours(translator: Translator, sentences: list[str]) -> Way:
    """Translate with Heedful's translator, its defaults but for the limit of tokens."""
    return lambda: [one.text for one in translator.translate(sentences, max_tokens=MOST)]


def ctranslate2_ways(
    folder: Path, converted: Path, translator: Translator, sentences: list[str]
) -> dict[str, Way]:
    """Translate with CTranslate2, float32 and int8."""
    import ctranslate2

    with contextlib.redirect_stderr(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ctranslate2.converters.TransformersConverter(str(folder)).convert(str(converted))
    tokenizer, end = translator.tokenizer, translator.format.end

    def way(kind: str) -> Way:
        engine = ctranslate2.Generator(
            str(converted), compute_type=kind, intra_threads=torch.get_num_threads()
        )

        def run() -> list[str]:
            prompts = [tokens for tokens, _ in translator._prompts(sentences)]
            made = engine.generate_batch(
                [[str(tokenizer.token(token)) for token in row] for row in prompts],
                max_length=MOST,
                sampling_topk=1,
                include_prompt_in_result=False,
                end_token=end,
                max_batch_size=128,
            )
            rows = [one.sequences_ids[0] for one in made]
            return [text.strip() for text in tokenizer.decode_batch(rows)]

        return run

    return {f"CTranslate2 {kind}": way(kind) for kind in ("float32", "int8")}


def rounds(ways: dict[str, Way], count: int) -> tuple[dict[str, list[float]], dict[str, list[str]]]:
    """Time the ways in turn, again and again; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    texts: dict[str, list[str]] = {}
    for number in range(count + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            texts[name] = way()
            if number:
                times[name].append(time.perf_counter() - start)
    return times, texts


@torch.inference_mode()
def equally_likely(translator: Translator, source: str, first: str, second: str) -> bool:
    """Tell whether two translations part at tokens whose logits differ by rounding only."""
    prompt, _ = translator.prompt(source)
    rows = [[*translator.tokenizer.encode(text), translator.marks.end] for text in (first, second)]
    place = next(n for n, (a, b) in enumerate(zip(*rows, strict=False)) if a != b)
    logits = translator.decoder(torch.tensor([prompt + rows[0][:place]]))[0, -1]
    return abs(float(logits[rows[0][place]] - logits[rows[1][place]])) < 1e-3


def compared(
    translator: Translator, sentences: list[str], texts: dict[str, list[str]], base: str
) -> dict[str, float]:
    """Return the share of sentences equal to the base's; exact ways must be equal but for ties."""
    equal = {}
    for name, found in texts.items():
        pairs = list(zip(sentences, found, texts[base], strict=True))
        different = [pair for pair in pairs if pair[1] != pair[2]]
        equal[name] = 1 - len(different) / len(pairs)
        if "int8" not in name:
            unlike = [pair for pair in different if not equally_likely(translator, *pair)]
            assert not unlike, (name, unlike[:3])
    return equal


def ways_of(
    translator: Translator, run: Path, sentences: list[str], place: Path, peer: bool
) -> dict[str, Way]:
    """Return every way to translate."""
    folder = place / "exported"
    export(run, folder)
    rounded = Translator(
        translator.decoder, translator.tokenizer, translator.format, precision="int8"
    )
    ways = {
        f"Hugging Face, batch {batch}{', sorted' if ordered else ''}": hugging_face(
            folder, translator, sentences, batch, ordered
        )
        for ordered in (False, True)
        for batch in BATCHES
    }
    ways |= {"Heedful": ours(translator, sentences), "Heedful int8": ours(rounded, sentences)}
    if peer:
        ways |= ctranslate2_ways(folder, place / "converted", translator, sentences)
    return ways


def measure(run: Path, sentences: list[str], place: Path, count: int, peer: bool) -> dict[str, Any]:
    """Time every way on one model."""
    translator = Translator.open(run)
    ways = ways_of(translator, run, sentences, place, peer)
    times, texts = rounds(ways, count)
    medians = {name: statistics.median(each) for name, each in times.items()}
    theirs = [name for name in ways if name.startswith("Hugging Face")]
    unsorted = [name for name in theirs if not name.endswith("sorted")]
    best = min(theirs, key=lambda name: medians[name])
    plain = min(unsorted, key=lambda name: medians[name])
    config = translator.decoder.config
    tokens = sum(len(translator.tokenizer.encode(text)) + 1 for text in texts["Heedful"])
    return {
        "model": f"{config.layers} layers × {config.width}, vocabulary {config.vocabulary:,}",
        "parameters": parameter_count(config),
        "sentences": len(sentences),
        "new tokens": tokens,
        "seconds": medians,
        "best": {name: min(each) for name, each in times.items()},
        "fastest of Hugging Face": best,
        "ratio to the fastest of Hugging Face": {n: medians[best] / t for n, t in medians.items()},
        "ratio to the fastest unsorted": {n: medians[plain] / t for n, t in medians.items()},
        "equal sentences": compared(translator, sentences, texts, best),
    }


def show(record: dict[str, Any]) -> None:
    """Print the table."""
    print(
        f"\n{record['sentences']:,} sentences, {record['new tokens']:,} new tokens; "
        f"{record['model']}, {record['parameters']:,} parameters"
    )
    print(f"{'way':<32}{'seconds':>9}{'a second':>10}{'ratio':>8}{'to unsorted':>13}{'equal':>8}")
    for name, seconds in record["seconds"].items():
        ratio = record["ratio to the fastest of Hugging Face"][name]
        other = record["ratio to the fastest unsorted"][name]
        speed, equal = record["sentences"] / seconds, record["equal sentences"][name]
        print(f"{name:<32}{seconds:>9.2f}{speed:>10.0f}{ratio:>8.2f}{other:>13.2f}{equal:>8.1%}")


def sentences_of(corpus: Path | None, count: int) -> list[str]:
    """Return different lines of a corpus (the first column of a TSV), or held-out phrases."""
    if corpus is None:
        held_out = phrasebook(1_000, seed=0, held_out=2 * count).dev
        return list(dict.fromkeys(pair.french for pair in held_out))[:count]
    lines: Iterable[str] = corpus.read_text(encoding="utf-8").split("\n")
    texts = [line.split("\t")[0].strip() for line in lines]
    return list(dict.fromkeys(text for text in texts if text))[:count]


def main() -> None:
    """Run everything; `--quick` takes 100 sentences, one round, and stores nothing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100 sentences; results not stored")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", type=Path, help="a run trained on pairs")
    parser.add_argument("--corpus", type=Path, help="sentences, one a line")
    parser.add_argument("--ctranslate2", help="folder that `pip install --target` filled")
    chosen = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    peer = chosen.ctranslate2 is not None
    if peer:
        sys.path.append(chosen.ctranslate2)
    else:
        print("CTranslate2 is left out: give --ctranslate2 FOLDER to compare with it")
    sentences = sentences_of(chosen.corpus, 100 if chosen.quick else SENTENCES)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run = chosen.run or trained(place / "run", 60 if chosen.quick else SETTINGS["steps"])
        record = measure(run, sentences, place, 1 if chosen.quick else chosen.rounds, peer)
    show(record)
    result = {
        "benchmark": "translate",
        "machine": surroundings("torch", "transformers", *["ctranslate2"] * peer),
        "record": record,
    }
    print(json.dumps(result))
    if not chosen.quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
