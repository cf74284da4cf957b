"""How much of what people say about models can be decided? And does `transformers` agree?

    python benchmarks/bench_model_claims.py --stories stories260K.bin [--smollm2] [--seconds 60]

Judges the statements of `model_claims/statements.toml` about a model of our own (made here, from a
seed, in about a minute), stories260K and SmolLM2. Every refutation by a text is then computed once
more with plain `transformers` in float64, from a folder that Heedful exported, and must give the
number shown. Prints a table, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from heedful.claims.judge import judge_claim
from heedful.claims.sheet import load_sheet
from heedful.claims.sheet.claim import Claim
from heedful.claims.verdict import Verdict
from heedful.data.synthetic.phrasebook import monolingual
from heedful.model import Decoder, preset, write_folder
from heedful.model.config import Attention
from heedful.model_claims.models import open_model
from heedful.positions.schemes import Rotary
from heedful.tokenization import characters

SHEET = Path(__file__).parent / "model_claims" / "statements.toml"
STEPS = 150
ENGLISH = (
    "Once upon a time there was a little girl named Lily.",
    "The dog ran in the park and saw a big red ball.",
    "Tom and his mom went to the store to buy some food.",
    "One day, a bird sat on a tree and sang a song.",
    "Lily was sad because her toy was lost.",
    "The cat and the mouse were good friends.",
    "He wanted to play with his new red car.",
    "The sun was hot and the kids ran to the sea.",
)


def own_model(folder: Path) -> list[str]:
    """Write a small Llama of French letters, trained a little; return the texts it did not see."""
    texts = list(monolingual("fr", 400, seed=0))
    tokenizer = characters("".join(sorted(set("".join(texts)))))
    config = preset("tiny").changed(
        vocabulary=tokenizer.size,
        attention=Attention(heads=4, kv_heads=2),
        positions=Rotary(layout="half"),
    )
    decoder = Decoder(config, seed=0)
    joined = torch.tensor(tokenizer.encode("\n".join(texts[50:]).replace("\n", " ")))
    noise = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(decoder.parameters(), lr=3e-3)
    for _ in range(STEPS):
        places = torch.randint(len(joined) - 65, (16,), generator=noise)
        rows = torch.stack([joined[place : place + 65] for place in places.tolist()])
        logits = decoder(rows[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    write_folder(decoder.eval(), folder, tokenizer=tokenizer)
    return texts[:50]


def with_transformers(folder: Path, claim: Claim, verdict: Verdict) -> float | None:
    """Return the left side of a refutation, computed by `transformers` in float64.

    For a single weight α[t, s], the kind that most statements are about.
    """
    import transformers

    case = verdict.counterexample
    match = re.match(r"\s*alpha\((\d+), (\d+)\)\[([^,]+), ([^\]]+)\] [<>]", claim.expect[0])
    if case is None or match is None or "tokens" not in case.symbols:
        return None
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float64
    )
    tokens = torch.tensor([case.symbols["tokens"]])
    with torch.no_grad():
        attentions = model(tokens, output_attentions=True).attentions
    indices = {name: value for name, value in case.symbols.items() if isinstance(value, int)}
    t, s = (_place(text, indices) for text in match.group(3, 4))
    layer, head = int(match[1]) - 1, int(match[2]) - 1
    return float(attentions[layer][0, head, t - 1, s - 1])


def _place(text: str, indices: dict[str, int]) -> int:
    """Return the place that "t", "t-1" or "1" stands for."""
    name, _, back = text.replace(" ", "").partition("-")
    return (int(name) if name.isdigit() else indices[name]) - int(back or 0)


def main() -> None:
    """Judge every statement, and compute the refutations again."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stories", type=Path)
    options.add_argument("--smollm2", action="store_true")
    options.add_argument("--seconds", type=float, default=60.0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(_run(Path(scratch), chosen)))


def _run(scratch: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    french = own_model(scratch / "own")
    names = {"OWN": str(scratch / "own")}
    corpora = {"OWN": french, "STORIES": list(ENGLISH), "SMOLLM2": list(ENGLISH)}
    if chosen.stories is not None:
        names["STORIES"] = str(chosen.stories)
    if chosen.smollm2:
        names["SMOLLM2"] = "smollm2"
    folders = {"OWN": scratch / "own"}
    counts: dict[str, int] = {}
    wrong = decided = agreed = compared = 0
    start, total = time.perf_counter(), 0
    for claim in load_sheet(SHEET.read_text("utf-8")).claims:
        model = str(claim.model)
        if model not in names:
            continue
        if model not in folders:
            folders[model] = scratch / model.lower()
            opened = open_model(names[model])
            write_folder(opened.decoder, folders[model], tokenizer=opened.tokenizer)
        corpus = scratch / f"{model}.txt"
        corpus.write_text("\n\n".join(corpora[model]), encoding="utf-8")
        verdict = judge_claim(
            claim.changed(model=names[model], corpus=str(corpus)), seconds=chosen.seconds
        )
        total += 1
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
        decided += verdict.verdict != "undecided"
        wrong += verdict.verdict != "undecided" and verdict.holds != (claim.says == "true")
        note = ""
        if verdict.verdict == "refuted" and verdict.counterexample is not None:
            again = with_transformers(folders[model], claim, verdict)
            if again is not None:
                compared += 1
                same = abs(again - verdict.counterexample.left) <= 1e-6
                agreed += same
                note = f"{verdict.counterexample.left:.6g}, transformers {again:.6g}"
        print(f"{claim.id:24} {claim.says:6} {verdict.verdict:10} {verdict.seconds:7.2f} s  {note}")
    return {
        "statements": total,
        **counts,
        "decided": decided,
        "against what is true": wrong,
        "refutations compared with transformers": compared,
        "agreeing": agreed,
        "seconds": round(time.perf_counter() - start, 1),
    }


if __name__ == "__main__":
    main()
