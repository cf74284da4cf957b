"""Every answer of one arm judged: label, signals, calibration, abstention, and unseen names.

    person   answer                        label
    seen     right, not what the name says retrieved
    seen     right, and what the name says retrieved or guessed
    any      wrong, but what the name says guessed from the name
    unseen   right, and what the name says guessed from the name
    any      anything else                 made up   (an unseen plain name may be right by luck)

"Seen" means that the pretraining text has the person. "What the name says" is known on the
biographies; elsewhere it is what a guesser that knows only the letters of the name says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64
from scipy.special import expit

from heedful.data.synthetic.biographies import QUESTION
from heedful.studies.knowledge.answers import (
    Answerer,
    Reply,
    Signals,
    correct,
    sequence_probability,
)
from heedful.studies.knowledge.confidence import (
    CHOOSING,
    NEVER,
    PROMISING,
    Combination,
    best_temperature,
    calibration,
    promise,
    risk_coverage,
    separations,
)
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus
from heedful.studies.knowledge.findings import (
    AnswerRecord,
    Calibration,
    Confusion,
    LabelCount,
    NameStudy,
    PromiseTested,
    RiskCoverage,
    SignalSeparation,
    UnseenName,
)
from heedful.studies.knowledge.names import (
    NameGuesser,
    Neighbours,
    edit_distances,
    following,
    follows,
    group_effect,
    unseen_names,
)

RETRIEVED = "retrieved"
EITHER = "retrieved or guessed"
GUESSED = "guessed from the name"
MADE_UP = "made up"
LABELS = (RETRIEVED, EITHER, GUESSED, MADE_UP)
SAMPLES = 16
"""Answers drawn for each question."""
EXAMPLES = 12
"""Unseen names that are shown."""
COMBINED = "all, combined"
PROMISED_ERRORS = (0.1, 0.2, 0.3, 0.5)
"""Shares of wrong answers for which a promise is tried."""
PROBE = "probe of hidden states"
IN_TEXT = "nearest name in the text"
"""Two more, outside of the combination: a ridge regression on the hidden states, fitted on held-out
answers, and minus the edits to the nearest name, for which the text must be at hand."""
RIDGE_OF_PROBE = 1.0
"""There are more hidden states than held-out answers."""


def label_of(*, seen: bool, right: bool, said: str, pointed: str | None) -> str:
    """Return the label of one answer.

    >>> label_of(seen=True, right=True, said="Rome", pointed=None)
    'retrieved'
    >>> label_of(seen=False, right=False, said="Rome", pointed=None)
    'made up'
    """
    by_name = pointed is not None and said == pointed
    if seen and right:
        return EITHER if by_name else RETRIEVED
    return GUESSED if by_name else MADE_UP


def label_counts(answers: Sequence[AnswerRecord], threshold: float) -> tuple[LabelCount, ...]:
    """Return how many answers of each group and outcome have which label, sure or not."""
    counted: Counter[tuple[str, bool, str, bool]] = Counter(
        (one.group, one.right, one.label, one.confidence >= threshold) for one in answers
    )
    keys = sorted(
        {key[:3] for key in counted}, key=lambda key: (key[0], not key[1], LABELS.index(key[2]))
    )
    return tuple(
        LabelCount(
            group=group,
            right=right,
            label=label,
            confident=counted[group, right, label, True],
            unsure=counted[group, right, label, False],
        )
        for group, right, label in keys
    )


def confusion(answers: Sequence[AnswerRecord], threshold: float) -> tuple[Confusion, ...]:
    """Return what the threshold does with the answers of each label."""
    return tuple(
        Confusion(
            label=label,
            answered=sum(one.label == label and one.confidence >= threshold for one in answers),
            withheld=sum(one.label == label and one.confidence < threshold for one in answers),
        )
        for label in LABELS
    )


def retrieved_or_made_up(
    answers: Sequence[AnswerRecord],
) -> tuple[Bool[np.ndarray, " answers"], Bool[np.ndarray, " answers"]]:
    """Return which answers were surely retrieved, and which were made up."""
    labels = np.array([one.label for one in answers])
    return labels == RETRIEVED, labels == MADE_UP


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """What is found out about the answers of one arm."""

    answers: tuple[AnswerRecord, ...]
    auroc: tuple[SignalSeparation, ...]
    auroc_by_names: dict[str, tuple[SignalSeparation, ...]]
    """The same where names hint at a place, and where they do not; empty where nobody knows."""
    before: Calibration
    after: Calibration
    risk_coverage: RiskCoverage
    promises: tuple[PromiseTested, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Heard:
    """Answers to one part of the questions."""

    asked: Sequence[Asked]
    replies: list[Reply]
    signals: Signals
    right: Bool[np.ndarray, " questions"]

    @classmethod
    def of(cls, answerer: Answerer, asked: Sequence[Asked], seed: int) -> _Heard:
        replies = answerer.replies_to(asked)
        return cls(
            asked=asked,
            replies=replies,
            signals=answerer.signals(asked, replies, samples=SAMPLES, seed=seed),
            right=correct(asked, replies),
        )

    def confidence(self, temperature: float) -> Float64[np.ndarray, " questions"]:
        return sequence_probability(self.signals.logits, self.replies, temperature)


def judge(
    answerer: Answerer,
    corpus: KnowledgeCorpus,
    *,
    wanted_error: float,
    seed: int,
    studied: int = 0,
) -> Judgement:
    """Ask held-out and test questions, choose on the first, and measure on the second.

    So many names that nobody has are left for `study_names`.
    """
    held_out = _Heard.of(answerer, corpus.held_out, seed)
    test = _Heard.of(answerer, corpus.test, seed)
    temperature = best_temperature(
        held_out.signals.logits[CHOOSING], held_out.replies[CHOOSING], held_out.right[CHOOSING]
    )
    guesser = None if corpus.known_truth else NameGuesser(corpus.train)
    answers = _records(test, temperature, guesser)
    others = _records(held_out, temperature, guesser)
    columns = _columns(answers) | _learned_columns(answerer, corpus, others, answers)
    return Judgement(
        answers=answers,
        auroc=separations(columns, *retrieved_or_made_up(answers), seed=seed),
        auroc_by_names=_by_names(columns, corpus, answers, seed),
        before=calibration(test.confidence(1.0), test.right, 1.0),
        after=calibration(test.confidence(temperature), test.right, temperature),
        risk_coverage=risk_coverage(
            (held_out.confidence(temperature), held_out.right),
            (test.confidence(temperature), test.right),
            wanted_error,
            _invented_confidence(answerer, corpus, temperature, studied=studied, seed=seed),
        ),
        promises=_promises(held_out, test, temperature),
    )


def _promises(held_out: _Heard, test: _Heard, temperature: float) -> tuple[PromiseTested, ...]:
    """Promise by each score at each error rate, and count what comes of it on the test.

    One half of the held-out answers fits scores and fixes the order of thresholds, the other tests.
    """
    right = held_out.right
    scores = {"probability": (held_out.confidence(temperature), test.confidence(temperature))}
    values, chosen = held_out.signals.values, np.zeros(len(right), dtype=bool)
    chosen[CHOOSING] = True
    if (right & chosen).any() and (~right & chosen).any():
        joined = Combination(values, right & chosen, ~right & chosen)
        scores[COMBINED] = (expit(joined.scores(values)), expit(joined.scores(test.signals.values)))
    found = []
    for name, (before, now) in scores.items():
        choosing, testing = ((before[half], right[half]) for half in (CHOOSING, PROMISING))
        for error in PROMISED_ERRORS:
            made = promise(choosing, testing, error)
            answered = now >= (NEVER if made.threshold is None else made.threshold)
            found.append(
                PromiseTested(
                    score=name,
                    promise=made,
                    answered=int(answered.sum()),
                    wrong=int((answered & ~test.right).sum()),
                )
            )
    return tuple(found)


def study_names(
    answerer: Answerer,
    corpus: KnowledgeCorpus,
    judged: Judgement,
    *,
    count: int,
    seed: int,
) -> NameStudy | None:
    """Ask about names that nobody has, and look for whose answers the model gives."""
    names, origin = unseen_names(corpus, count, seed)
    if len(names) < 2:
        return None
    asked = [Asked.about(name) for name in names]
    replies = answerer.replies_to(asked)
    logits = answerer.read_again([one.question for one in asked], replies)
    confidence = sequence_probability(logits, replies, judged.after.temperature)
    said = [reply.text for reply in replies]
    known = corpus.known_people
    neighbours = Neighbours(
        list(known),
        list(known.values()),
        answerer.tokenizer.encode_batch,
        lambda some: answerer.name_states([Asked.about(name) for name in some]),
    )
    nearest = neighbours.nearest(names)
    followed = following(said, nearest, corpus.places[0])
    hinting = [place for place, one in enumerate(asked) if one.pointed is not None]
    if hinting:
        pointed = [asked[place].pointed or "" for place in hinting]
        followed = (follows("pointed", [said[place] for place in hinting], pointed), *followed)
    order = np.argsort(-confidence, kind="stable")[:EXAMPLES]
    seen = [one.confidence for one in judged.answers if one.group.startswith("seen")]
    return NameStudy(
        made=origin,
        examples=tuple(
            UnseenName(
                name=names[place],
                answer=said[place],
                confidence=float(confidence[place]),
                pointed=asked[place].pointed,
                nearest=nearest[place],
            )
            for place in order.tolist()
        ),
        following=followed,
        effect=group_effect(names, said, corpus, seed=seed),
        mean_confidence=float(confidence.mean()),
        mean_confidence_seen=float(np.mean(seen)) if seen else 0.0,
        answered=float((confidence >= judged.risk_coverage.threshold).mean()),
    )


def _invented_confidence(
    answerer: Answerer, corpus: KnowledgeCorpus, temperature: float, *, studied: int, seed: int
) -> Float64[np.ndarray, " names"] | None:
    """Return how sure the model is about as many invented names as questions are held out.

    None where people whom no text has are held out: then those stand for such names.
    """
    if not all(one.seen for one in corpus.held_out):
        return None
    left = set(unseen_names(corpus, studied, seed)[0])
    names, _ = unseen_names(corpus, studied + len(corpus.held_out), seed)
    asked = [QUESTION.format(n=name) for name in names if name not in left]
    if not asked:
        return None
    replies = answerer.replies(asked)
    return sequence_probability(answerer.read_again(asked, replies), replies, temperature)


def _records(
    heard: _Heard, temperature: float, guesser: NameGuesser | None
) -> tuple[AnswerRecord, ...]:
    confidence = heard.confidence(temperature)
    records = []
    for place, (one, reply) in enumerate(zip(heard.asked, heard.replies, strict=True)):
        pointed = one.pointed if guesser is None else guesser.guess(one.name)
        right = bool(heard.right[place])
        records.append(
            AnswerRecord(
                question=one.question,
                name=one.name,
                right_answer=one.answer,
                answer=reply.text,
                right=right,
                group=one.group,
                label=label_of(seen=one.seen, right=right, said=reply.text, pointed=pointed),
                confidence=float(confidence[place]),
                signals={
                    name: float(values[place]) for name, values in heard.signals.values.items()
                },
            )
        )
    return tuple(records)


def _learned_columns(
    answerer: Answerer,
    corpus: KnowledgeCorpus,
    held_out: Sequence[AnswerRecord],
    test: Sequence[AnswerRecord],
) -> dict[str, Float64[np.ndarray, " answers"]]:
    """Return what held-out answers teach, or the text tells, about the test answers."""
    known = list(corpus.known_people)
    columns = {IN_TEXT: np.array([-float(edit_distances(one.name, known).min()) for one in test])}
    retrieved, made_up = retrieved_or_made_up(held_out)
    if retrieved.any() and made_up.any():
        columns[PROBE] = probe(
            answerer.states(corpus.held_out), retrieved, made_up, answerer.states(corpus.test)
        )
        joined = Combination(_columns(held_out), retrieved, made_up)
        columns[COMBINED] = joined.scores(_columns(test))
    return columns


def probe(
    states: Float64[np.ndarray, "answers features"],
    positive: Bool[np.ndarray, " answers"],
    negative: Bool[np.ndarray, " answers"],
    others: Float64[np.ndarray, "others features"],
) -> Float64[np.ndarray, " others"]:
    """Return the scores of other states by a ridge regression: 1 for positives, −1 for negatives.

    Both kinds weigh the same, however many there are.
    """
    used = positive | negative
    mean, scale = states[used].mean(axis=0), states[used].std(axis=0) + 1e-6
    features, target = (states[used] - mean) / scale, np.where(positive[used], 1.0, -1.0)
    weights = np.where(positive[used], 0.5 / positive.sum(), 0.5 / negative.sum())
    weighed = features * weights[:, None]
    matrix = weighed.T @ features + RIDGE_OF_PROBE * np.eye(features.shape[1])
    scores: Float64[np.ndarray, " others"] = (
        (others - mean) / scale @ np.linalg.solve(matrix, weighed.T @ target)
    )
    return scores


def _by_names(
    columns: Mapping[str, Float64[np.ndarray, " answers"]],
    corpus: KnowledgeCorpus,
    test: Sequence[AnswerRecord],
    seed: int,
) -> dict[str, tuple[SignalSeparation, ...]]:
    if not corpus.known_truth:
        return {}
    retrieved, made_up = retrieved_or_made_up(test)
    hints = np.array([bool(one.hint) for one in corpus.test])
    groups = {"names that hint at a place": hints, "names that do not": ~hints}
    found = {
        name: separations(columns, retrieved & group, made_up & group, seed=seed)
        for name, group in groups.items()
    }
    return {name: measured for name, measured in found.items() if measured}


def _columns(answers: Sequence[AnswerRecord]) -> dict[str, Float64[np.ndarray, " answers"]]:
    names = list(answers[0].signals) if answers else []
    return {name: np.array([one.signals[name] for one in answers]) for name in names}
