"""What a study says in words: what is not equal between the arms, and who beats whom.

The sentences are made from what was measured; nothing here computes a score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heedful.studies.translation.arms import PublicModel
from heedful.studies.translation.corpus import StudyCorpus
from heedful.studies.translation.recipe import StudySettings
from heedful.studies.translation.results import (
    ELSEWHERE,
    HERE,
    LABELS,
    LONGER,
    SCRATCH,
    ArmResult,
    Comparison,
)

SIGNIFICANT = 0.05
CEILING = 0.8
"""A share of exact matches above which there is little left to gain."""


def unequal(
    settings: StudySettings,
    corpus: StudyCorpus,
    results: Sequence[ArmResult],
    vocabulary: int,
    model: PublicModel | None,
) -> tuple[str, ...]:
    """Say what is not equal between the arms."""
    sentences = list(_here(settings, corpus, results))
    sentences.append(
        f"The tokenizer of the arms trained here ({vocabulary:,} ids) was learned from all "
        f"{len(corpus.train):,} training pairs"
        + (" and the monolingual text" if corpus.has_text else "")
        + ": scratch at a small size reads with byte pairs that its own pairs could not give it."
    )
    if model is not None:
        sentences += _elsewhere(settings, results, model)
    return tuple(sentences)


def verdicts(
    settings: StudySettings, results: Sequence[ArmResult], comparisons: Sequence[Comparison]
) -> tuple[str, ...]:
    """Say for each size whether a pretrained arm beats scratch, or what speaks against it."""
    return tuple(_verdict(pairs, results, comparisons) for pairs in settings.sizes)


def _here(
    settings: StudySettings, corpus: StudyCorpus, results: Sequence[ArmResult]
) -> Iterator[str]:
    tuned = [result for result in results if result.arm == HERE]
    if not tuned:
        yield "There is no arm pretrained here: no monolingual text was given (--monolingual)."
        return
    assert corpus.source_text is not None
    assert corpus.target_text is not None
    count = len(corpus.source_text) + len(corpus.target_text)
    yield (
        f"The arm {LABELS[HERE]} has read {count:,} texts in one language or the other for "
        f"{tuned[0].minutes_before:.2f} minutes before it saw a pair; the one "
        f"{LABELS[SCRATCH]} has not. The minutes of the first count both."
    )
    if settings.restoring:
        yield (
            f"Half of that text, in {corpus.train.languages[1]}, was not only continued: the "
            "arm restored sentences whose words were left out or moved, so that it knew how to "
            "write after a source before it had seen one."
        )
    if any(result.arm == LONGER for result in results):
        yield f"Once more {LABELS[LONGER]}: it spends that time on more passes over the pairs."
    if settings.scratch != settings.fine_tuning:
        one, two = settings.scratch.model_dump(), settings.fine_tuning.model_dump()
        changed = [
            f"{name.replace('_', ' ')} {one[name]:g} and {two[name]:g}"
            for name in one
            if one[name] != two[name]
        ]
        yield (
            f"On the pairs, {LABELS[SCRATCH]} and {LABELS[HERE]} have settings of their own, each "
            f"chosen for it: {'; '.join(changed)}."
        )


def _elsewhere(
    settings: StudySettings, results: Sequence[ArmResult], model: PublicModel
) -> Iterator[str]:
    own = next(result for result in results if result.arm == SCRATCH)
    public = next(result for result in results if result.arm == ELSEWHERE)
    yield (
        f"What was {LABELS[ELSEWHERE]} is {model.name}: {public.parameters:,} parameters against "
        f"{own.parameters:,}, and what it has read before, and for how long, was never on this "
        "clock."
    )
    kinds = sorted({entry.dtype for entry in model.checkpoint.source.entries.values()})
    coarse = [kind for kind in kinds if kind.startswith(("Q", "I"))]
    if coarse:
        yield f"Its weights were rounded to few bits ({', '.join(coarse)}) before it came here."
    if "instruct" in model.name.lower() or "instruct" in str(model.checkpoint.path).lower():
        yield "It is tuned to follow instructions, and is asked for something else here."
    if "smollm2" in f"{model.name} {settings.elsewhere.model}".lower():
        yield "It was pretrained on English almost alone: French it has seen by accident."
    yield (
        f"It has a tokenizer of its own ({model.tokenizer.size:,} ids), {public.steps:,} steps "
        f"instead of {own.steps:,}, and "
        + (
            f"trains {public.trained:,} of its parameters (LoRA of rank {settings.elsewhere.rank})"
            if settings.elsewhere.tuning == "lora"
            else "trains all of its parameters"
        )
        + f"; it was judged on the first {public.sentences:,} test sentences, and compared with "
        "scratch on these alone."
    )


def _verdict(pairs: int, results: Sequence[ArmResult], comparisons: Sequence[Comparison]) -> str:
    tried = [
        c for c in comparisons if c.pairs == pairs and c.against == SCRATCH and c.arm != LONGER
    ]
    won = [c for c in tried if c.gain > 0 and c.p_value < SIGNIFICANT]
    shown = "; ".join(f"{LABELS[c.arm]} {c.gain:+.1f} BLEU, {_p(c.p_value)}" for c in won or tried)
    if won:
        said = f"With {pairs:,} pairs, pretraining beats scratch ({shown})."
    elif not tried:
        said = f"With {pairs:,} pairs there was no pretrained arm."
    else:
        said = f"With {pairs:,} pairs, no pretrained arm beats scratch ({shown}). "
        said += _reason(pairs, results)
    fair = [c for c in comparisons if c.pairs == pairs and (c.arm, c.against) == (HERE, LONGER)]
    if fair:
        said += " " + _same_clock(fair[0])
    return said


def _same_clock(found: Comparison) -> str:
    clock = f"{found.minutes_against:.1f} minutes each"
    sure = f"{found.gain:+.1f} BLEU, {_p(found.p_value)}"
    if found.p_value >= SIGNIFICANT:
        return f"Given the same time ({clock}), the two cannot be told apart ({sure})."
    if found.gain > 0:
        return f"Given the same time ({clock}), pretraining is still ahead ({sure})."
    return (
        f"Given the same time ({clock}), scratch is ahead ({sure}): here the time is better "
        "spent on the pairs."
    )


def _p(value: float) -> str:
    """Write a p-value; a bootstrap of 1,000 cannot tell less than one in a thousand.

    >>> _p(0.000999), _p(0.04)
    ('p < 0.002', 'p = 0.040')
    """
    return "p < 0.002" if value < 0.002 else f"p = {value:.3f}"


def _reason(pairs: int, results: Sequence[ArmResult]) -> str:
    """Give the evidence that there is for why pretraining did not help."""
    own = next(r for r in results if (r.arm, r.pairs) == (SCRATCH, pairs))
    if own.exact >= CEILING:
        return f"Scratch translates {own.exact:.0%} of the test exactly: little is left to gain."
    losses = [f"{r.arm} {r.curve[-1].loss:.2f}" for r in results if r.pairs == pairs and r.curve]
    return f"Loss of a development token at the end: {', '.join(losses)}."
