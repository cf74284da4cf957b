"""Which signal tells a retrieved answer from an invented one, and what does LM-Polygraph tell?

    heed study knowledge                                   the embedded study, in study-knowledge
    pip install --no-deps --target polygraph lm-polygraph==0.7.0
    python benchmarks/bench_signals.py --study study-knowledge --polygraph polygraph
    python benchmarks/bench_signals.py --polygraph polygraph --model smollm2

The estimators of LM-Polygraph are functions of statistics: log-probabilities, entropies, drawn
answers. They get ours, of the very answers that our signals are about, since LM-Polygraph itself
runs models of Transformers only. Where an estimator asks which answers mean the same, answers with
the same words do (a model that judges entailment is not used). Samples: 16 at temperature 1.

Stores benchmarks/results/signals.json; either half of it may be made alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
from surroundings import surroundings

from heedful.files import write_json
from heedful.generation import FastStep, Sampling, Stops, generate
from heedful.model import Decoder
from heedful.studies.knowledge import pretrained
from heedful.studies.knowledge.answers import Answerer
from heedful.studies.knowledge.confidence import separations
from heedful.studies.knowledge.findings import RECORD
from heedful.studies.knowledge.judgement import SAMPLES, Judgement, judge, retrieved_or_made_up
from heedful.studies.knowledge.plans import ROTARY, plan_for
from heedful.studies.knowledge.questions import normalised, questions_of
from heedful.studies.knowledge.training import prepare
from heedful.training.runs import trained_decoder

RESULTS = Path(__file__).parent / "results" / "signals.json"
ANSWERS = Path(__file__).parent / "results" / "ask.json"
ESTIMATORS = {
    "max_probability": ("MaximumSequenceProbability", {}),
    "perplexity": ("Perplexity", {}),
    "token_entropy": ("MeanTokenEntropy", {}),
    "renyi_neg": ("RenyiNeg", {}),
    "fisher_rao": ("FisherRao", {}),
    "self_certainty": ("SelfCertainty", {}),
    "monte_carlo_sequence_entropy": ("MonteCarloSequenceEntropy", {}),
    "monte_carlo_normalized_sequence_entropy": ("MonteCarloNormalizedSequenceEntropy", {}),
    "semantic_entropy": ("SemanticEntropy", {}),
    "deg_mat": ("DegMat", {"similarity_score": "Jaccard_score"}),
    "eccentricity": ("Eccentricity", {"similarity_score": "Jaccard_score"}),
    "eig_val_laplacian": ("EigValLaplacian", {"similarity_score": "Jaccard_score"}),
}
"""By module. Those that read hidden states, ask the model about itself or need another model are
left out."""
PACKAGES = ("lm_polygraph", "lm_polygraph.estimators", "lm_polygraph.utils")
Scores = dict[str, np.ndarray]


def estimators(folder: Path) -> dict[str, Any]:
    """Return the estimators, imported without what their package asks for but they do not."""
    for name in PACKAGES:
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[name] = package
    found = {}
    for module, (name, settings) in ESTIMATORS.items():
        kind = getattr(importlib.import_module(f"lm_polygraph.estimators.{module}"), name)
        found[name] = kind(**settings)
    return found


def statistics(
    logs: list[np.ndarray], tokens: list[tuple[int, ...]], drawn: list[list[Any]], texts: Any
) -> dict[str, Any]:
    """Return what the estimators ask for; `logs` are log-probabilities of the answers' tokens."""
    sampled = [[texts(one) for one in row] for row in drawn]
    classes = [list(dict.fromkeys(row)) for row in sampled]
    return {
        "greedy_log_probs": logs,
        "greedy_log_likelihoods": [
            row[np.arange(len(row)), list(said)] for row, said in zip(logs, tokens, strict=True)
        ],
        "entropy": [-(np.exp(row) * row).sum(axis=1) for row in logs],
        "sample_texts": sampled,
        "sample_tokens": [[list(one.tokens) for one in row] for row in drawn],
        "sample_log_probs": [[float(sum(one.log_probabilities)) for one in row] for row in drawn],
        "semantic_classes_entail": {
            "sample_to_class": [
                {place: names.index(one) for place, one in enumerate(row)}
                for row, names in zip(sampled, classes, strict=True)
            ],
            "class_to_sample": [
                [[p for p, one in enumerate(row) if one == name] for name in names]
                for row, names in zip(sampled, classes, strict=True)
            ],
        },
    }


def scores(found: dict[str, Any], stats: dict[str, Any]) -> Scores:
    """Return how sure each estimator is; they measure how unsure."""
    return {name: -np.asarray(one(stats), dtype=np.float64) for name, one in found.items()}


def embedded(folder: Path, polygraph: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the table of the embedded study, for each of its seeds."""
    corpus, plan = plan_for()
    material = prepare(corpus, plan.recipe, seed=plan.seed)
    study = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    rows = []
    for seed in study["arms"][0]["seeds"]:
        (run,) = folder.glob(f"runs/{ROTARY.folder}-finetune-{seed}-*")
        answerer = Answerer.of(trained_decoder(run), material)
        judged = judge(answerer, corpus, wanted_error=plan.wanted_error, seed=plan.seed)
        replies = answerer.replies_to(corpus.test)
        asked = [one.question for one in corpus.test]
        logits = [row.astype(np.float64) for row in answerer.read_again(asked, replies)]
        logs = [row - np.logaddexp.reduce(row, axis=1, keepdims=True) for row in logits]
        drawn = generate(
            answerer.decoder,
            answerer.prompts(asked),
            method=Sampling(samples=SAMPLES, seed=plan.seed),
            stops=Stops(tokens=answerer.longest_answer, ends=(answerer.end,)),
            step=answerer.step,
        ).continuations

        def text(one: Any, answerer: Answerer = answerer) -> str:
            kept = [token for token in one.tokens if token != answerer.end]
            return answerer.tokenizer.decode(kept).strip()

        stats = statistics(logs, [one.tokens for one in replies], list(drawn), text)
        others = separations(
            scores(polygraph, stats), *retrieved_or_made_up(judged.answers), seed=plan.seed
        )
        rows.append(_told(int(seed), judged, others))
    return rows


def _told(seed: int, judged: Judgement, others: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "ours": [one.to_dict() for one in judged.auroc],
        "by names": {
            name: [one.to_dict() for one in some] for name, some in judged.auroc_by_names.items()
        },
        "LM-Polygraph": [one.to_dict() for one in others],
        "promises": [one.to_dict() for one in judged.promises],
    }


@torch.no_grad()
def log_probabilities(decoder: Decoder, rows: list[list[int]], said: list[list[int]]) -> Any:
    """Return the log-probabilities of every token at each place of an answer."""
    found = []
    for row, tokens in zip(rows, said, strict=True):
        stream = decoder.hidden(torch.tensor([[*row, *tokens[:-1]]]))[0, len(row) - 1 :]
        found.append(decoder.logits(stream).double().log_softmax(-1).numpy())
    return found


def published(model: str, polygraph: dict[str, Any]) -> dict[str, Any]:
    """Return the table of a model that others have trained, on the test half of our questions."""
    asker = pretrained.PretrainedAsker(model)
    decoder = asker.checkpoint.decoder()
    step = FastStep(decoder)
    questions = questions_of("test")
    rows = [asker.tokenizer.encode_opened(pretrained._prompt(0, one.text)) for one in questions]
    stops = Stops(tokens=pretrained.LONGEST_ANSWER, ends=asker._ends)
    answers, drawn = [], []
    for first in range(0, len(rows), 8):
        part = rows[first : first + 8]
        answers += [one for (one,) in generate(decoder, part, stops=stops, step=step).continuations]
        method = Sampling(samples=PUBLISHED_SAMPLES, seed=first)
        drawn += list(generate(decoder, part, method=method, stops=stops, step=step).continuations)
        print(f"{first + len(part)} of {len(rows)}", file=sys.stderr, flush=True)

    def text(one: Any) -> str:
        kept = one.tokens[:-1] if one.finished else one.tokens
        return normalised(str(asker.tokenizer.core.decode(list(kept), skip_special_tokens=True)))

    logs = log_probabilities(decoder, rows, [list(one.tokens) for one in answers])
    stats = statistics(logs, [one.tokens for one in answers], drawn, text)
    right = np.array(
        [one.accepts(text(said)) for one, said in zip(questions, answers, strict=True)]
    )
    exists = np.array([one.exists for one in questions])
    measured = scores(polygraph, stats)
    stored = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return {
        "model": model,
        "samples": PUBLISHED_SAMPLES,
        "right": int(right.sum()),
        "ours": {name: stored[name] for name in ("right_or_wrong", "real_or_invented")},
        "right_or_wrong": [one.to_dict() for one in separations(measured, right, ~right)],
        "real_or_invented": [one.to_dict() for one in separations(measured, right, ~exists)],
    }


PUBLISHED_SAMPLES = 8
"""Fewer, since each costs a reading of 135 million numbers."""


def main() -> None:
    """Measure what was asked for, print it, and store it beside what is stored already."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--study", type=Path, help="folder of the embedded study")
    parser.add_argument("--model", help="a model that others have trained")
    parser.add_argument("--polygraph", type=Path, required=True, help="where LM-Polygraph lies")
    chosen = parser.parse_args()
    found = estimators(chosen.polygraph)
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    stored["question"] = "Which signal tells a retrieved answer from an invented one?"
    if chosen.study:
        stored["embedded"] = embedded(chosen.study, found)
        for one in stored["embedded"]:
            for row in (*one["ours"], *one["LM-Polygraph"]):
                print(one["seed"], row["signal"], f"{row['auroc']:.3f}")
    if chosen.model:
        stored["published"] = published(chosen.model, found)
        for row in stored["published"]["right_or_wrong"]:
            print(row["signal"], f"{row['auroc']:.3f}")
    stored["machine"] = surroundings("torch")
    write_json(RESULTS, stored)


if __name__ == "__main__":
    main()
