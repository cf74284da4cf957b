"""Labels, separation, calibration, abstention and nearness: each against an obvious oracle."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.studies.knowledge.answers import Reply, sequence_probability
from heedful.studies.knowledge.confidence import (
    Combination,
    auroc,
    best_temperature,
    calibration,
    choose_threshold,
    reliability,
    risk_coverage,
    risk_curve,
    separations,
    silent_from,
)
from heedful.studies.knowledge.corpus import embedded
from heedful.studies.knowledge.findings import AnswerRecord
from heedful.studies.knowledge.judgement import (
    LABELS,
    MADE_UP,
    RETRIEVED,
    confusion,
    label_counts,
    label_of,
)
from heedful.studies.knowledge.knowledge_study import curve_of
from heedful.studies.knowledge.names import (
    Neighbours,
    cramers_v,
    edit_distances,
    follows,
    group_effect,
    unseen_names,
)
from heedful.training.hooks import Evaluation

shares = st.lists(st.floats(0, 1).map(lambda x: round(x, 2)), min_size=1, max_size=12)
outcomes = st.lists(st.booleans(), min_size=1, max_size=30)


def test_every_answer_has_exactly_one_label_and_only_seen_people_are_retrieved() -> None:
    for seen, right, by_name in product((True, False), repeat=3):
        label = label_of(seen=seen, right=right, said="Rome", pointed="Rome" if by_name else None)
        assert label in LABELS
        assert (label == RETRIEVED) == (seen and right and not by_name)
        assert (label == MADE_UP) == (not by_name and not (seen and right))


def _answer(label: str, confidence: float) -> AnswerRecord:
    return AnswerRecord(
        question="", name="", right_answer="", answer="", right=label == RETRIEVED, group="seen",
        label=label, confidence=confidence, signals={},
    )  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.floats(0, 1)), max_size=20), st.floats(0, 1))
def test_counts_add_up_to_the_answers(made: list[tuple[str, float]], threshold: float) -> None:
    answers = [_answer(label, confidence) for label, confidence in made]
    counted = label_counts(answers, threshold)
    assert sum(row.confident + row.unsure for row in counted) == len(answers)
    kept = confusion(answers, threshold)
    assert sum(row.answered for row in kept) == sum(row.confident for row in counted)


@given(shares, shares)
def test_auroc_is_the_share_of_pairs_in_the_right_order(
    first: list[float], second: list[float]
) -> None:
    pairs = [(a > b) + 0.5 * (a == b) for a, b in product(first, second)]
    expected = sum(pairs) / len(pairs)
    assert math.isclose(auroc(np.array(first), np.array(second)), expected, abs_tol=1e-12)


@given(shares, shares, st.integers(0, 9))
def test_an_interval_of_auroc_holds_its_value(
    first: list[float], second: list[float], seed: int
) -> None:
    scores = np.array([*first, *second])
    positive = np.arange(len(scores)) < len(first)
    (found,) = separations({"s": scores}, positive, ~positive, seed=seed)
    assert 0.0 <= found.low <= found.auroc + 1e-12
    assert found.auroc - 1e-12 <= found.high <= 1.0
    assert separations({"s": scores}, positive, positive & False) == ()


def test_joined_signals_find_what_each_of_them_misses() -> None:
    draw = np.random.default_rng(0)
    kind = draw.random(400) < 0.5
    first, second = kind + draw.normal(0, 1, 400), kind + draw.normal(0, 1, 400)
    values = {"first": first, "second": second}
    joined = Combination(values, kind, ~kind).scores(values)
    alone = max(auroc(signal[kind], signal[~kind]) for signal in values.values())
    assert auroc(joined[kind], joined[~kind]) > alone


@given(outcomes, st.integers(0, 99))
def test_risk_and_coverage_are_those_of_counting(right: list[bool], seed: int) -> None:
    confidence = np.random.default_rng(seed).integers(0, 6, len(right)) / 5
    outcome = np.array(right)
    coverage, risk = risk_curve(confidence, outcome)
    for share, wrong, level in zip(coverage, risk, sorted(set(confidence))[::-1], strict=True):
        answered = confidence >= level
        assert math.isclose(share, answered.mean())
        assert math.isclose(wrong, (~outcome[answered]).mean())


@given(outcomes, st.floats(0, 0.9), st.integers(0, 99))
def test_a_threshold_keeps_its_promise_where_it_was_chosen(
    right: list[bool], wanted: float, seed: int
) -> None:
    confidence = np.random.default_rng(seed).random(len(right))
    outcome = np.array(right)
    threshold = choose_threshold(confidence, outcome, wanted)
    answered = confidence >= threshold
    if answered.any():
        assert (~outcome[answered]).mean() <= wanted + 1e-12
    for lower in confidence[confidence < threshold]:
        assert (~outcome[confidence >= lower]).mean() > wanted
    twice = (np.repeat(confidence, 2), np.repeat(outcome, 2))  # one copy for each half
    made = risk_coverage(twice, (confidence, outcome), wanted)
    assert made.threshold == threshold
    assert made.test_coverage == made.held_out_coverage
    assert made.best_area <= made.area + 1e-12


@given(outcomes, st.floats(0, 0.9), st.integers(0, 99))
def test_names_that_nobody_has_can_only_raise_a_threshold(
    right: list[bool], wanted: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    confidence, invented = draw.random(len(right)), draw.random(40)
    known = (confidence, np.array(right))
    alone = risk_coverage(known, known, wanted)
    both = risk_coverage(known, known, wanted, invented)
    assert both.threshold >= alone.threshold
    assert (invented >= both.threshold).mean() <= wanted
    assert both.threshold == max(alone.threshold, silent_from(invented, wanted))
    assert (alone.invented, both.invented) == (0, 40)
    lower = np.nextafter(silent_from(invented, wanted), -1.0)
    assert (invented >= lower).mean() > wanted


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(InputError):
        choose_threshold(np.array([0.5]), np.array([True]), 1.0)


def test_calibration_of_honest_confidences_is_small_and_of_boasts_is_not() -> None:
    draw = np.random.default_rng(1)
    confidence = draw.random(4_000)
    honest = draw.random(4_000) < confidence
    assert calibration(confidence, honest, 1.0).ece < 0.03
    assert calibration(np.full(4_000, 0.99), draw.random(4_000) < 0.5, 1.0).ece > 0.4
    assert sum(part.count for part in reliability(confidence, honest)) == 4_000


def test_a_temperature_takes_boasts_back() -> None:
    draw = np.random.default_rng(2)
    scores = [draw.normal(0, 1, (2, 6)) for _ in range(600)]
    replies = [
        Reply(text="", tokens=tuple(s.argmax(axis=1).tolist()), finished=True) for s in scores
    ]
    right = draw.random(600) < sequence_probability(scores, replies)
    boasting = [4.0 * one for one in scores]
    found = best_temperature(boasting, replies, right)
    assert 3.0 < found < 5.3  # six standard deviations on either side of 4
    cooled = sequence_probability(boasting, replies, 4.0)
    np.testing.assert_allclose(cooled, sequence_probability(scores, replies), atol=1e-12)


def _edits(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    if first[0] == second[0]:
        return _edits(first[1:], second[1:])
    return 1 + min(
        _edits(first[1:], second), _edits(first, second[1:]), _edits(first[1:], second[1:])
    )


words = st.text("abc", max_size=5)


@given(words, st.lists(words, min_size=1, max_size=4))
def test_edits_are_those_of_the_definition(name: str, others: list[str]) -> None:
    assert edit_distances(name, others).tolist() == [_edits(name, other) for other in others]


def test_the_nearest_name_of_a_seen_name_is_itself() -> None:
    names = ["Ann Lee", "Bob Ray", "Cid Moe"]
    states = np.eye(3) + 0.1

    def lookup(some: object) -> np.ndarray:
        return states[[names.index(name) for name in some]]  # type: ignore[attr-defined]

    encode = lambda some: [[ord(c) for c in name] for name in some]  # noqa: E731
    found = Neighbours(names, ["Rome", "Oslo", "Kyiv"], encode, lookup).nearest(names[::-1])
    for name, nearest in zip(names[::-1], found, strict=True):
        assert {one.name for one in nearest.values()} == {name}


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4))
def test_cramers_v_lies_between_none_and_all(table: list[list[int]]) -> None:
    value = cramers_v(np.array(table, dtype=float)) if np.any(table) else 0.0
    assert 0.0 <= value <= 1.0 + 1e-9


def test_chance_is_the_mean_over_all_shuffles() -> None:
    found = follows("edits", ["a", "a", "b"], ["a", "b", "b"])
    assert math.isclose(found.rate, 2 / 3)
    assert math.isclose(found.chance, (1 + 1 + 2) / 9)


def test_unseen_names_are_in_no_text_and_groups_that_decide_are_found() -> None:
    corpus = embedded(100)
    names, _ = unseen_names(corpus, 60, seed=0)
    assert len(names) == len(set(names)) == 60
    assert not any(corpus.evidence.mentions(name) for name in names)
    from heedful.studies.knowledge.corpus import pointed_place

    followed = group_effect(names, [pointed_place(n) or "London" for n in names], corpus, seed=0)
    assert followed is not None
    assert followed.cramers_v > followed.by_chance
    draw = np.random.default_rng(0)
    places = [one.answer for one in corpus.train]
    blind = group_effect(names, list(draw.permutation(places)[:40]) + places[:20], corpus, seed=0)
    assert blind is not None
    assert blind.cramers_v < followed.cramers_v


def test_the_clocks_of_a_curve_go_on_over_an_interruption() -> None:
    def at(step: int, minutes: float) -> Evaluation:
        values = {"minutes": 2 * minutes, "processor_minutes": minutes}
        return Evaluation(step=step, values={**values, "accuracy": 0.5, "held_out_accuracy": 0.4})

    smooth = curve_of([at(100, 1.0), at(200, 2.0), at(300, 3.0), at(400, 4.5)])
    stopped = curve_of([at(100, 1.0), at(200, 2.0), at(300, 0.25), at(400, 1.75)])
    assert [one.to_dict() for one in smooth] == [one.to_dict() for one in stopped]
    assert curve_of([Evaluation(step=1, values={"accuracy": 0.5})]) == ()
