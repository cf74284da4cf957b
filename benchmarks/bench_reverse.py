"""What does a model for the way back bring to a translator, and how much should it count?

    python benchmarks/bench_reverse.py FORWARD REVERSE --tatoeba fra.txt.gz [--write]

Held-out sentences of Tatoeba, which neither model was trained on, and all the longer ones among
them (11 words and more). The translations that 5, 8 and 16 beams find are ranked by

    log p(target | source) / tokens + λ log p(source | target) / tokens + γ content words

for several λ and γ, each content word of a text counted once (γ only where the target is English).
Chosen are, at the number of beams of `heed translate`, of the λ and γ within a point of the highest
BLEU those that drop a content word in the fewest of the longer sentences (of equals those
of the highest chrF). A reward for content words helps a rule that counts them, so the rows also
have which share of the content words of the nearest reference a text has (recall), and which share
of its own are there (precision). With --write λ and γ are kept beside the weights
of FORWARD, together with the name of REVERSE. *best of them* ranks by the reference itself: no
ranking can do better with these texts. Stores benchmarks/results/reverse.json.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import sacrebleu
from score_translation import scored, words
from surroundings import surroundings
from translation_table import RECIPE, part, sampled

from heedful.cli.translate import DEFAULT_BEAMS
from heedful.data.corpus import Pairs
from heedful.data.languages import GRAMMAR, content_words
from heedful.data.splits import References, references
from heedful.files import SHIPPED, write_json
from heedful.studies.text_training import TextData, read_parts
from heedful.studies.translation import TranslationFormat, Translator
from heedful.studies.translation.quality import count_faults
from heedful.studies.translation.translator import Hypothesis

RESULTS = Path(__file__).parent / "results" / "reverse.json"
LONGER = 11
"""Words from which a held-out sentence counts as longer: of 15 and more there are too few."""
OTHER_BEAMS = (5, 8)
"""Numbers of beams for which only what was chosen is measured."""
TOLD_APART = 1.0
"""Points of BLEU: the paired intervals of these sentences are as wide, to either side."""
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
REWARDS = (0.0, 0.04, 0.08, 0.12, 0.16)

Candidates = list[tuple[Hypothesis, float]]
"""The translations of one sentence, each with log p of the sentence given it, per token."""


def held_out(file: Path, language: str, most: int) -> References:
    """Return held-out sentences of a language at even distances, and every longer one."""
    values = tomllib.loads(RECIPE.read_text("utf-8"))["data"] | {"files": [str(file)]}
    values |= {"translate_from": language}  # the division is the same in both directions
    values.pop("added_files", None)
    kept = read_parts(TextData.of(values)).held_out
    assert isinstance(kept, Pairs)
    whole = references(kept)
    chosen = set(sampled(whole, most).sources)
    return part(whole, (one in chosen or _longer(one) for one in whole.sources))


def _longer(source: str) -> bool:
    return len(words(source)) >= LONGER


def candidates(
    forward: Translator, reverse: Translator, sources: Sequence[str], beams: int
) -> list[Candidates]:
    """Return what the beams find for each sentence, and what the way back says of it."""
    found = [one.hypotheses for one in forward.translate(sources, beam=beams, nbest=beams)]
    texts = [one.text for several in found for one in several]
    given = [s for s, several in zip(sources, found, strict=True) for _ in several]
    logs = iter(reverse.log_probabilities(texts, given))
    return [[(one, next(logs)) for one in several] for several in found]


def measured(wanted: References, texts: Sequence[str]) -> dict[str, Any]:
    """Score all translations, and those of longer sentences by themselves."""
    figures: dict[str, Any] = {}
    longer = [place for place, source in enumerate(wanted.sources) if _longer(source)]
    for kind, places in (("all", range(len(texts))), ("longer", longer)):
        made = [texts[place] for place in places]
        targets = [wanted.targets[place] for place in places]
        faults = count_faults([wanted.sources[place] for place in places], made, targets)
        shares = {"dropped": round(faults.dropped, 4), "loops": round(faults.loops, 4)}
        figures[kind] = scored(made, targets) | shares | content_shared(made, targets)
    return figures


def content_shared(texts: Sequence[str], targets: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return recall and precision of content words, against the reference that shares most."""
    shared = wanted = written = 0
    for text, known in zip(texts, targets, strict=True):
        own = Counter(content_words(text))
        several = [Counter(content_words(one)) for one in known]
        nearest = max(several, key=lambda one: (own & one).total() / max(one.total(), 1))
        shared, wanted = shared + (own & nearest).total(), wanted + nearest.total()
        written += own.total()
    return {
        "content_recall": round(shared / max(wanted, 1), 4),
        "content_precision": round(shared / max(written, 1), 4),
    }


def row(name: str, wanted: References, texts: Sequence[str]) -> dict[str, Any]:
    """Return the scores of one ranking, and print them."""
    figures = {"ranked by": name} | measured(wanted, texts)
    print(
        f"{name:22}"
        + "  ".join(
            f"{kind}: BLEU {figures[kind]['bleu']:.1f} chrF {figures[kind]['chrf']:.1f} dropped "
            f"{figures[kind]['dropped']:.1%} loops {figures[kind]['loops']:.1%} content "
            f"{figures[kind]['content_recall']:.1%}, {figures[kind]['content_precision']:.1%}"
            for kind in ("all", "longer")
        ),
        flush=True,
    )
    return figures


def ranked(found: Sequence[Candidates], by: TranslationFormat) -> list[str]:
    """Return the best text of each sentence, by the λ and γ of a format."""

    def score(each: tuple[Hypothesis, float]) -> float:
        one, back = each
        # 0 · −∞ is no number: without the way back its answer does not matter.
        return one.score + by.ranking(one.text, back if by.reverse_weight else 0.0)

    return [max(several, key=score)[0].text for several in found]


def by_reference(found: Sequence[Candidates], wanted: References) -> list[str]:
    """Return the text of each sentence that is nearest to a reference."""

    def near(text: str, targets: Sequence[str]) -> float:
        return sacrebleu.sentence_bleu(text, list(targets)).score

    return [
        max((one.text for one, _ in several), key=lambda text: near(text, targets))
        for several, targets in zip(found, wanted.targets, strict=True)
    ]


def chosen_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row that drops the fewest words, of those whose BLEU cannot be told apart."""
    highest = max(one["all"]["bleu"] for one in rows)
    alike = [one for one in rows if one["all"]["bleu"] >= highest - TOLD_APART]
    return min(alike, key=lambda one: (one["longer"]["dropped"], -one["all"]["chrf"]))


def table(
    models: tuple[Translator, Translator],
    wanted: References,
    beams: int,
    weights: Iterable[tuple[float, float]],
) -> dict[str, Any]:
    """Search with a number of beams, and rank by each of several weights λ and γ."""
    began = time.process_time()
    found = candidates(*models, wanted.sources, beams)
    seconds = time.process_time() - began
    print(f"{beams} beams, {len(wanted.sources)} sentences, {seconds:.0f} processor seconds")
    rows = []
    for weight, reward in weights:
        update = {"reverse_weight": weight, "content_reward": reward}
        texts = ranked(found, models[0].format.model_copy(update=update))
        name = f"λ = {weight}, γ = {reward}"
        rows.append(row(name, wanted, texts) | {"weight": weight, "reward": reward})
    rows.append(row("best of them", wanted, by_reference(found, wanted)))
    return {"beams": beams, "processor_seconds": round(seconds, 1), "rows": rows}


def main() -> None:
    """Rank with every weight, and keep the best ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forward")
    parser.add_argument("reverse")
    parser.add_argument("--tatoeba", type=Path, required=True)
    parser.add_argument("--most", type=int, default=600, help="held-out sentences, and the longer")
    parser.add_argument("--write", action="store_true", help="keep the weights beside FORWARD")
    given = parser.parse_args()
    forward = Translator.open(given.forward, reverse=False)
    models = forward, Translator.open(given.reverse, reverse=False)
    wanted = held_out(given.tatoeba, forward.format.languages[0], given.most)
    rewards = REWARDS if forward.format.languages[1] in GRAMMAR else REWARDS[:1]
    usual = table(models, wanted, DEFAULT_BEAMS, product(WEIGHTS, rewards))
    best = chosen_row(usual["rows"][:-1])
    both = best["weight"], best["reward"]
    print(f"chosen: {best['ranked by']}")
    few = sorted({(0.0, 0.0), (both[0], 0.0), both})
    tables = [*(table(models, wanted, beams, few) for beams in OTHER_BEAMS), usual]
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    name = Path(given.forward).name
    kept = [one for one in stored.get("models", []) if one["forward"] != name]
    made = {
        "forward": name,
        "reverse": Path(given.reverse).name,
        "machine": surroundings("torch"),
        "chosen": both[0],
        "chosen_reward": both[1],
        "tables": tables,
    }
    write_json(RESULTS, {"question": __doc__.splitlines()[0], "models": [*kept, made]})
    if given.write:
        folder = SHIPPED.get(given.forward, Path(given.forward))
        update = {
            "reverse": made["reverse"],
            "reverse_weight": both[0],
            "content_reward": both[1],
        }
        TranslationFormat.read(folder).model_copy(update=update).write(folder)


if __name__ == "__main__":
    main()
