"""Statements about a model on a corpus: means, shares and quantiles, with intervals over texts.

A text is one observation. What a formula says inside E, P or quantile is averaged over the places
of a text first, then over texts, so that the places of one text are not taken for independent.
E(x) − E(y) is the mean of x − y, text by text: comparisons are paired. Several statements judged
together (formulas of one claim, heads of a `for all`) share the probability of an error
(Bonferroni): each gets the level at which all of them hold together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    walk,
)
from heedful.claims.sheet.claim import Claim, Texts, field_error
from heedful.claims.verdict import Counterexample, Decision, Evidence, Word
from heedful.data.corpus import Documents
from heedful.data.readers import read_corpus
from heedful.errors import InputError
from heedful.model_claims.statements import (
    Instance,
    Meaning,
    NamedModel,
    TextEvaluator,
    TextValues,
    choices,
    instances,
    plain_truth,
    rational_value,
)
from heedful.stats import Estimate, quantile_interval, wilson

MOST_TEXTS = 400
"""Texts that are read; drawn from the corpus by the seed of the claim where it has more."""
MOST_TOKENS = 128
"""Tokens of a text that are read: its beginning."""
STATISTICS = ("E", "P", "quantile")
_ZERO = Fraction(0)


class TextSample(NamedTuple):
    """The texts of a corpus that are read."""

    name: str
    texts: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    available: int
    """Texts in the whole corpus."""


class _Measured(NamedTuple):
    """A number with its interval, from so many texts."""

    value: float
    low: float
    high: float
    texts: int


def decide_on_corpus(
    tree: Expression,
    meaning: Meaning,
    model: NamedModel,
    claim: Claim,
    texts: Texts,
    together: int,
) -> Decision:
    """Judge a statement about a corpus."""
    sample = sample_of(claim, model)
    if not any(isinstance(node, Call) and node.function in STATISTICS for node in walk(tree)):
        return _in_all_texts(tree, meaning, model, sample, texts)
    relations = list(_relations(tree, {}, meaning))
    together *= len(relations)
    level = 1 - (1 - texts.confidence) / together
    outcomes = [_Relation(node, env, meaning, model, sample, level) for node, env in relations]
    order: tuple[Word, ...] = ("refuted", "undecided", "supported")
    shown = min(outcomes, key=lambda one: order.index(one.word))
    return shown.word, shown.evidence(sample, texts, together), shown.counterexample(sample)


def measured_on_corpus(
    tree: Expression,
    meaning: Meaning,
    model: NamedModel,
    claim: Claim,
    texts: Texts,
    asks: str,
) -> tuple[float, float]:
    """Return the interval of the number that a relation such as E(loss) <= x leaves open."""
    if not isinstance(tree, Compare) or not isinstance(tree.right, Name):
        raise tree.error(
            f"{asks} cannot be found on a corpus", expected="a relation such as E(loss) <= x"
        )
    if tree.right.text != meaning.open_name:
        raise tree.error(f"{asks} does not stand on the right", expected="E(loss) <= x")
    zero = Compare(tree.operator, tree.left, Number(_ZERO))
    one = _Relation(zero, {}, meaning, model, sample_of(claim, model), texts.confidence)
    return one.measured.low, one.measured.high


def sample_of(claim: Claim, model: NamedModel) -> TextSample:
    """Return the texts that a claim is measured on."""
    if claim.corpus is None:
        raise field_error(
            ("expect", 0),
            "speaks of a corpus",
            expected='the claim must name one: corpus = "texts.txt"',
        )
    return _sample(claim.corpus, model, claim.seed)


@lru_cache(maxsize=4)
def _sample(path: str, model: NamedModel, seed: int) -> TextSample:
    corpus = read_corpus(Path(path)).without_empty()
    texts = corpus.texts if isinstance(corpus, Documents) else corpus.sources
    chosen = list(range(len(texts)))
    if len(chosen) > MOST_TEXTS:
        rng = np.random.default_rng(seed)
        chosen = sorted(rng.choice(len(texts), MOST_TEXTS, replace=False).tolist())
    context = min(model.decoder.config.context, MOST_TOKENS)
    rows = [tuple(model.encode(texts[number])[:context]) for number in chosen]
    kept = [place for place, row in enumerate(rows) if row]
    if len(kept) < 2:
        raise InputError(path, f"holds {len(kept)} texts", expected="at least two")
    return TextSample(
        path,
        tuple(texts[chosen[place]] for place in kept),
        tuple(rows[place] for place in kept),
        len(texts),
    )


def _in_all_texts(
    tree: Expression, meaning: Meaning, model: NamedModel, sample: TextSample, texts: Texts
) -> Decision:
    """Judge a statement that must hold in each text of the corpus."""
    worst: tuple[float, int, Instance] | None = None
    least, failing = math.inf, 0
    for number, row in enumerate(sample.rows):
        evaluator = _evaluator(meaning, model, row)
        margins = [
            (float(evaluator.margin(one)[0]), one) for one in instances(tree, meaning, len(row))
        ]
        if not margins:
            continue
        margin, one = min(margins, key=lambda pair: pair[0])
        least, failing = min(least, margin), failing + (margin < -1e-9)
        shorter = worst is None or len(row) < len(sample.rows[worst[1]])
        if margin < -1e-9 and shorter:
            worst = (margin, number, one)
    count = len(sample.rows)
    if worst is not None:
        margin, number, one = worst
        statement = f"It fails in {failing} of {count} texts; this is the shortest of them."
        return (
            "refuted",
            Evidence(method="evaluation", statement=statement, draws=count),
            _text_counterexample(
                sample, number, one, margin, _evaluator(meaning, model, sample.rows[number])
            ),
        )
    low, _ = wilson(count, count, texts.confidence)
    statement = (
        f"It holds in all {count} texts, by at least {least:.3g}; with "
        f"{100 * texts.confidence:g} % it holds in more than {100 * low:.1f} % of such texts."
    )
    return "supported", Evidence(method="evaluation", statement=statement, draws=count), None


def _text_counterexample(
    sample: TextSample, number: int, one: Instance, margin: float, evaluator: TextEvaluator
) -> Counterexample:
    sides = [math.nan, math.nan]
    if isinstance(one.statement, Compare):
        parts = (one.statement.left, one.statement.right)
        sides = [float(evaluator.number(part, one.env)[0]) for part in parts]
    where = ", ".join(f"{name} = {value}" for name, value in one.env.items())
    text = sample.texts[number]
    return Counterexample(
        symbols={**one.env, "tokens": list(sample.rows[number]), "text": text},
        left=sides[0],
        right=sides[1],
        gap=-margin,
        statement=f"In the text {text!r}" + (f" with {where}" if where else "") + ", the left side "
        f"is {sides[0]:.6g} and the right side {sides[1]:.6g}.",
    )


def _evaluator(meaning: Meaning, model: NamedModel, row: tuple[int, ...]) -> TextEvaluator:
    return TextEvaluator(meaning, _values(model, row))


@lru_cache(maxsize=8)
def _values(model: NamedModel, row: tuple[int, ...]) -> TextValues:
    rows = torch.tensor([row])
    with torch.no_grad():
        return TextValues(model.decoder.trace(rows), rows)


def _relations(
    tree: Expression, env: dict[str, int], meaning: Meaning
) -> Iterator[tuple[Compare, dict[str, int]]]:
    """Yield the relations that must all hold, with the heads and layers they are about."""
    if isinstance(tree, Logic) and tree.operator == "and":
        yield from _relations(tree.left, env, meaning)
        yield from _relations(tree.right, env, meaning)
    elif isinstance(tree, ForAll):
        for inner in choices(tree.indices, tree, env, meaning, 1):
            if tree.condition is not None and not plain_truth(tree.condition, inner, meaning, 1):
                continue
            yield from _relations(tree.body, inner, meaning)
    elif isinstance(tree, Compare) and tree.operator in ("<", "<=", ">", ">=", "~"):
        yield tree, env
    else:
        raise tree.error(
            "cannot be judged on a corpus",
            expected="relations between E(…), P(…), quantile(…, p) and numbers, joined by `and`",
        )


class _Relation:
    """One relation between statistics: what it comes to, and whether it holds."""

    def __init__(
        self,
        node: Compare,
        env: dict[str, int],
        meaning: Meaning,
        model: NamedModel,
        sample: TextSample,
        level: float,
    ) -> None:
        self.node, self.env, self.meaning, self.model = node, env, meaning, model
        self.sample, self.level = sample, level
        self.measured = self._measure()
        self.word = self._word()

    def _measure(self) -> _Measured:
        """Return left − right with its interval."""
        gap = Binary("-", self.node.left, self.node.right)
        quantiles = [
            node for node in walk(gap) if isinstance(node, Call) and node.function == "quantile"
        ]
        if quantiles:
            return self._quantile(quantiles[0])
        shares = all(
            node.function == "P"
            for node in walk(gap)
            if isinstance(node, Call) and node.function in STATISTICS
        )
        values = np.array([self._of_text(gap, row) for row in self.sample.rows])
        values = values[~np.isnan(values)]
        if len(values) < 2:
            raise self.node.error("speaks of places that no text of the corpus has")
        constant = rational_value(self.node.right, self.env, self.meaning, 1)
        if shares and constant is not None and isinstance(self.node.left, Call):
            total = float((values + float(constant)).sum())
            low, high = wilson(total, len(values), self.level)
            mean = total / len(values)
            shift = float(constant)
            return _Measured(mean - shift, low - shift, high - shift, len(values))
        estimate = Estimate.of(values, self.level)
        return _Measured(estimate.value, estimate.low, estimate.high, len(values))

    def _quantile(self, call: Call) -> _Measured:
        constant = rational_value(self.node.right, self.env, self.meaning, 1)
        share = rational_value(call.arguments[1], self.env, self.meaning, 1)
        if self.node.left is not call or constant is None or share is None or not 0 < share < 1:
            raise call.error(
                "a quantile can be compared with a number only",
                expected="such as quantile(loss, 0.9) <= 4",
            )
        values = np.array([self._mean(call.arguments[0], row) for row in self.sample.rows])
        values = values[~np.isnan(values)]
        value, low, high = quantile_interval(values, float(share), self.level)
        shift = float(constant)
        return _Measured(value - shift, low - shift, high - shift, len(values))

    def _word(self) -> Word:
        _, low, high, _ = self.measured
        if self.node.operator in (">", ">="):
            return "supported" if low >= 0 else ("refuted" if high < 0 else "undecided")
        if self.node.operator in ("<", "<="):
            return "supported" if high <= 0 else ("refuted" if low > 0 else "undecided")
        room = self.meaning.tolerance
        if self.node.within is not None:
            room = float(rational_value(self.node.within, self.env, self.meaning, 1) or 0)
        if -room <= low and high <= room:
            return "supported"
        return "refuted" if low > room or high < -room else "undecided"

    def evidence(self, sample: TextSample, texts: Texts, together: int) -> Evidence:
        """Return what was measured, in words."""
        value, low, high, count = self.measured
        of = "" if sample.available == count else f" of {sample.available:,}"
        where = ", ".join(f"{name} = {number}" for name, number in self.env.items())
        level = f"{100 * texts.confidence:g} %"
        if together > 1:
            level += f" for {together} statements together"
        statement = (
            f"Over {count:,}{of} texts of {sample.name}"
            + (f", for {where}," if where else "")
            + f" left − right is {value:.4g}, between {low:.4g} and {high:.4g} with {level}."
        )
        return Evidence(
            method="measured on a corpus",
            statement=statement,
            numbers={"mean": value, "low": low, "high": high},
            draws=count,
        )

    def counterexample(self, sample: TextSample) -> Counterexample | None:
        """Return what was measured where that refutes."""
        if self.word != "refuted":
            return None
        value, low, high, _ = self.measured
        return Counterexample(
            symbols=dict(self.env),
            left=value,
            right=0.0,
            gap=min(abs(low), abs(high)),
            statement=f"On {sample.name}, left − right is {value:.4g}, and lies between {low:.4g} "
            f"and {high:.4g}.",
        )

    def _of_text(self, node: Expression, row: tuple[int, ...]) -> float:
        """Return a combination of statistics for one text; NaN where it says nothing about it."""
        plain = rational_value(node, self.env, self.meaning, len(row))
        if plain is not None:
            return float(plain)
        match node:
            case Call("E", (inside,)):
                return self._mean(inside, row)
            case Call("P", (inside,)):
                return self._share(inside, row)
            case Unary("-", operand):
                return -self._of_text(operand, row)
            case Binary("+" | "-" as operator, left, right):
                x, y = self._of_text(left, row), self._of_text(right, row)
                return x + y if operator == "+" else x - y
            case Binary("*" | "/", left, right):
                before = rational_value(left, self.env, self.meaning, len(row))
                after = rational_value(right, self.env, self.meaning, len(row))
                if node.operator == "*" and before is not None:
                    return float(before) * self._of_text(right, row)
                if after:
                    factor = after if node.operator == "*" else 1 / after
                    return float(factor) * self._of_text(left, row)
        raise node.error(
            "cannot be measured on a corpus",
            expected="sums and multiples of E(…) and P(…), compared with numbers",
        )

    def _places(self, node: Expression, row: tuple[int, ...]) -> list[Instance]:
        bound = Meaning(
            self.meaning.decoder,
            {**self.meaning.symbols, **{name: Fraction(k) for name, k in self.env.items()}},
            interventions=self.meaning.interventions,
        )
        dummy = node if isinstance(node, Compare | Logic) else Compare(">=", node, Number(_ZERO))
        return instances(dummy, bound, len(row))

    def _mean(self, node: Expression, row: tuple[int, ...]) -> float:
        """Return the mean of an expression over the places of a text."""
        places = self._places(node, row)
        if not places:
            return math.nan
        evaluator = self._evaluator(row)
        numbers = [float(evaluator.number(node, {**self.env, **one.env})[0]) for one in places]
        return float(np.mean(numbers))

    def _share(self, node: Expression, row: tuple[int, ...]) -> float:
        """Return the share of the places of a text at which a statement holds."""
        places = self._places(node, row)
        if not places:
            return math.nan
        evaluator = self._evaluator(row)
        return float(np.mean([float(evaluator.margin(one)[0]) >= 0 for one in places]))

    def _evaluator(self, row: tuple[int, ...]) -> TextEvaluator:
        return _evaluator(self.meaning, self.model, row)
