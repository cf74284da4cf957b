"""The catalog: every sheet is read, every claim judged, every counterexample and repair real.

The verdicts are written down below, so that no change of the engine changes one unnoticed.
A verdict that moves is either a mistake, or an improvement that belongs in the changelog.
"""

from __future__ import annotations

import functools
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special

from heedful.claims.checker import CheckReport, disagreements
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim, Sheet, catalog, claim_named, load_sheet
from heedful.claims.verdict import Verdict
from heedful.errors import InputError

VERDICTS = {
    "foundations": {
        "proved": """
            softmax-shift softmax-rows softmax-never-zero softmax-odds log-n-scaling
            entropy-uniform hard-attention keys-shift keys-twins keys-twice
            keys-order positions-unique positions-wavelengths positions-shift
        """,
        "supported": """
            softmax-argmax softmax-logsumexp softmax-lipschitz softmax-slope
            softmax-saturation dispersion-bound dispersion qk-norm-bound
            qk-norm-noisy-key entropy-bound entropy-effective-number
            temperature-entropy pinsker hull-norm hull-midpoint hull-unit-keys sink
            sqrt-d sqrt-d-sharp layernorm-length layernorm-invariance
            positions-length positions-distance rotary-length rotary-relative
            causal-first
        """,
        "refuted": """
            softmax-scale softmax-exactly-one softmax-lipschitz-quarter
            dispersion-believed hard-attention-ties kl-symmetric
            heads-average-queries noise-larger-scale rank self-attention-lipschitz
            sqrt-d-unscaled rmsnorm-shift positions-nearer positions-precision
            rotary-decay causal-equivariance
        """,
    },
    "ours": {
        "proved": """
            001.d.ii values.none values.equal average.two-keys 002.2.1.a.scaled
        """,
        "supported": """
            values.near values.hull 001.a.ii 004.c.i.known 003.4.a.note
            004.e.i.really 004.e.ii.without-u_d
        """,
    },
    "seed_000": {
        "proved": """
            1.3.ii.spread 1.0 1.2.equal 1.2.scores 1.2.weights 1.3.subset 1.3.ii.long
            1.4.ii.first.long 1.4.ii.diffuse 1.5 2.1.i.softmax 2.1.i.relu
            2.1.i.inverse 2.1.i.ones 2.1.i.scores 2.1.i.attention 2.1.i 2.1.ii
            2.2.ii.practice 2.2.ii.period
        """,
        "supported": """
            1.1.i 1.1.ii 1.3.i.keys 1.3.i.scores 1.3.ii.scores
            1.4.ii.unaffected 2.2.i 2.2.i.outputs
        """,
        "refuted": """
            1.4.ii.long 1.1.i.aligned 1.2.multiple 1.3.i 1.3.ii.short 1.4.i.first 1.4.ii
            1.4.ii.second 2.2.ii 2.2.ii.wavelengths 2.2.ii.far
        """,
    },
    "seed_001": {
        "proved": """
            0 a.i b.hint b.never c.subset c.ii.norms d
        """,
        "supported": """
            c.i c.ii.resistant d.i
        """,
        "refuted": """
            c.prelayernorm
        """,
    },
    "seed_002": {
        "proved": """
            1.1.a.exp 1.1.a.nonnegative 1.1.a.sum 1.1.c 1.2.a 1.2.a.scores 1.2.a.weights 1.2.a.limit
            1.3.3.product 2.1.a.orthogonal 2.1.b.monotone 2.2.a.first 2.2.a.opposite
            2.2.a.focus
        """,
        "supported": """
            1.2.a.when 2.1.a 2.1.a.scores 2.1.b.stable
        """,
        "refuted": """
            2.2.a 1.1.b.dot 1.1.b 1.1.d 1.3.1 1.3.2.Q 1.3.2.K 1.3.2.V 1.3.3 1.3.4 1.3.5
            2.1.a.weights 2.2.a.second
        """,
    },
    "seed_003": {
        "proved": """
            1.average 1 2 2.hint 3.subset 3.b.magnitude 4
        """,
        "supported": """
            3.a 3.b.resistant 4.a
        """,
    },
    "seed_004": {
        "proved": """
            c.ii.unequal a.total b b.equal b.scores b.weights b.limit c.subset c.ii c.ii.lengths
            d.ii.first 3.b
        """,
        "supported": """
            a c.i c.i.keys c.ii.multiple d.i d.ii d.ii.second e.i
            e.i.impossible e.i.impossible.c e.ii.first e.ii.values e.ii.constraints
            e.ii 3.c
        """,
        "refuted": """
            a.needed a.zero a.infinite b.exponent b.exact b.half e.i.d e.i.c
            e.ii.interchangeable e.ii.summary
        """,
    },
}

PARTS = {
    "seed_000": "1.1.i 1.1.ii 1.2 1.3.i 1.3.ii 1.4.i 1.4.ii 1.5 2.1.i 2.1.ii 2.2.i 2.2.ii",
    "seed_001": "a.i b.hint b.never c.i c.ii.variance c.prelayernorm d.i d.ii.ignore e",
    "seed_002": "1.1.a.sum 1.1.b 1.1.c 1.1.d 1.2.a 1.3.1 1.3.2.Q 1.3.3 1.3.4 1.3.5 "
    "2.1.a 2.1.b 2.2.a 2.2.b",
    "seed_003": "1 2 2.hint 3.a 3.b 4.a 4.b.ignore",
    "seed_004": "a b c.i c.ii d.i d.ii e.i e.ii 3.b 3.c",
    "ours": "values.none values.equal 001.a.ii 001.d.ii 003.4.b",
}
"""The parts of the course documents that a sheet must cover, and the questions that are ours."""

E = math.e
PHI = float(special.ndtr(math.sqrt(2)))
"""P(k_a·μ_a > 0) for k_a·μ_a normal with mean 1 and variance 1/2."""


class Line:
    """The noisy direction on a fine grid, in plain NumPy: the oracle of the asked numbers."""

    z = np.linspace(-12, 12, 200_001)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    length = 1 + z / math.sqrt(2)
    ahead = weights * (length > 0) / (weights * (length > 0)).sum()

    @classmethod
    def head(cls, a: Any, b: Any, n: int) -> Any:
        """Return the weights (n, grid) for scores a, b and 0 for the others."""
        scores = np.stack([np.broadcast_to(x, cls.z.shape) for x in (a, b, *[0.0] * (n - 2))])
        return special.softmax(scores, axis=0)

    @classmethod
    def single(cls, beta: float, n: int) -> Any:
        """Return the output of one head along both means."""
        return cls.head(beta * cls.length, beta, n)

    @classmethod
    def two(cls, beta: float, n: int) -> Any:
        """Return the mean of a head along each mean."""
        return (cls.head(beta * cls.length, 0.0, n) + cls.head(0.0, beta, n)) / 2

    @classmethod
    def var(cls, output: Any, weights: Any = None) -> float:
        """Return the sum of the variances of all entries."""
        weights = cls.weights if weights is None else weights
        mean = output @ weights
        return float(((output - mean[:, None]) ** 2 @ weights).sum())

    @classmethod
    def near(cls, output: Any, a: float, b: float, weights: Any = None) -> float:
        """Return how often an output is within 0.1 of a v_a + b v_b, in total variation."""
        target = np.zeros((len(output), 1))
        target[:2, 0] = a, b
        close = np.abs(output - target).sum(axis=0) / 2 <= 0.1
        return float(close @ (cls.weights if weights is None else weights))


def answers() -> dict[str, float]:
    """Return the numbers that claims ask for, computed by other means than the judge's."""
    sizes, scales = (2, 3, 10), (5, 50)
    single, two, var, near, ahead = Line.single, Line.two, Line.var, Line.near, Line.ahead
    length = Line.length
    sums = {b: Line.head(b * length, b, 10) for b in scales}
    differences = {b: Line.head(b * length, -b, 10) for b in scales}
    squares = {b: Line.head(b * length**2, b, 10) for b in (10, 50)}
    return {
        "seed_000/1.2": 8 / (2 * E + 8),
        "seed_000/1.2.half": 0.5 - E / (2 * E + 3),
        "seed_000/1.2.dominates": 2 * E / 8,
        "seed_000/1.3.ii.direction": PHI,
        "seed_000/1.3.ii": max(near(single(1, n), 0.5, 0.5) for n in sizes),
        "seed_000/1.3.ii.variance": math.sqrt(min(var(single(1, n)) for n in sizes)),
        "seed_000/1.3.ii.varies": near(single(1, 2), 1, 0),
        "seed_000/1.3.ii.usual": 0.5 - E / (2 * E + 3),
        "seed_000/1.4.i": 8 / (E + 9),
        "seed_000/1.4.ii.variance": max(
            var(two(1, n), ahead) / var(single(1, n), ahead) for n in sizes
        ),
        "seed_000/1.4.ii.first": math.sqrt(
            min(var(Line.head(length, 0.0, n), ahead) for n in sizes)
        ),
        "seed_000/1.4.ii.small": (1 - E / (E + 3)) / 2,
        "seed_000/1.5.robust": max(var(two(1, n)) / var(single(1, n)) for n in sizes),
        "seed_001/a.diffuse": 0.36,
        "seed_001/c.ii.direction": PHI,
        "seed_001/c.ii.variance": min(var(single(b, 10)) for b in scales),
        "seed_001/d.ii.ignore": 1 - PHI,
        "seed_001/e": max(var(two(b, 10)) / var(single(b, 10)) for b in scales),
        "seed_002/2.1.b": math.sqrt(min(var(single(b, 10)[:1]) for b in scales)),
        "seed_002/2.1.b.comparison": min(var(single(b, 10)) for b in scales),
        "seed_002/2.2.b.first": math.sqrt(min(map(var, sums.values()))),
        "seed_002/2.2.b.second": math.sqrt(min(map(var, differences.values()))),
        "seed_002/2.2.b": max(var((sums[b] + differences[b]) / 2) / var(sums[b]) for b in scales),
        "seed_003/3.b": max(near(single(b, 10), 0.5, 0.5) for b in scales),
        "seed_003/3.b.figure": PHI,
        "seed_003/4.b.ignore": 1 - PHI,
        "seed_004/a.enough": E / (E + 1),
        "seed_004/c.ii.much": min(
            float((w[1] >= 9 * w[0]) @ Line.weights) for w in squares.values()
        ),
        "seed_004/d.ii.variation": var(two(50, 10), ahead) / var(single(50, 10), ahead),
        "ours/003.4.b": near(two(50, 10), 0.5, 0.5, ahead),
    }


class Judged(NamedTuple):
    """A claim and what the laboratory says about it."""

    claim: Claim
    verdict: Verdict
    seconds: float
    """Of a processor: by the clock a busy machine would take longer."""


def load_catalog() -> dict[str, Sheet]:
    """Return every sheet but the one about models, which is judged where they were trained."""
    folder = resources.files("heedful.claims").joinpath("catalog")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    names.remove("models.toml")
    return {
        name.removesuffix(".toml"): load_sheet(
            folder.joinpath(name).read_text(encoding="utf-8"), name=name.removesuffix(".toml")
        )
        for name in names
    }


def test_claims_about_models_are_skipped_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = {sheet.name: sheet for sheet in catalog()}["models"]
    assert (there.problems, there.claims) == ((), ())
    report = CheckReport.of([there], [], [], 0.0)
    assert report.exit_code == 0
    assert f"{len(there.missing)} claims about runs/phrasebook and runs/biographies" in str(
        report.skipped
    )
    with pytest.raises(InputError, match=r"heed train docs/examples/phrasebook\.toml"):
        claim_named(catalog(), "models/translator.sum")

    (tmp_path / "runs" / "phrasebook").mkdir(parents=True)
    there = {sheet.name: sheet for sheet in catalog()}["models"]
    assert {claim.model for claim in there.claims} == {"runs/phrasebook"}
    for claim in there.claims:
        assert claim.says.endswith((".", "?"))
        assert claim.source.startswith("Ours")


@pytest.fixture(scope="module")
def sheets() -> dict[str, Sheet]:
    return load_catalog()


Judging = Callable[[str], list[Judged]]


@pytest.fixture(scope="module")
def judging(sheets: Mapping[str, Sheet]) -> Judging:
    """Return what judges the claims of one sheet, once: no test waits for the whole catalog."""

    def judged(name: str, claim: Claim) -> Judged:
        begun = time.thread_time()
        verdict = judge_claim(claim, sheet=name)
        return Judged(claim, verdict, time.thread_time() - begun)

    return functools.cache(lambda name: [judged(name, claim) for claim in sheets[name].claims])


@pytest.fixture(scope="module")
def judged(sheets: Mapping[str, Sheet], judging: Judging) -> list[Judged]:
    return [each for name in sheets for each in judging(name)]


def refuted(judged: list[Judged]) -> Iterator[Judged]:
    return (each for each in judged if each.verdict.verdict == "refuted")


def test_every_sheet_can_be_read(sheets: Mapping[str, Sheet]) -> None:
    assert set(sheets) == set(VERDICTS)
    for sheet in sheets.values():
        assert sheet.problems == ()
        assert sheet.title
        assert sheet.source


def test_every_claim_says_what_it_means_and_where_it_comes_from(
    sheets: Mapping[str, Sheet],
) -> None:
    for sheet in sheets.values():
        for claim in sheet.claims:
            assert claim.says.endswith((".", "?")), f"{sheet.name}/{claim.id}"
            assert claim.source, f"{sheet.name}/{claim.id}"


def test_every_claim_of_a_course_sheet_names_its_line_and_how_it_was_read(
    sheets: Mapping[str, Sheet],
) -> None:
    for name, sheet in sheets.items():
        for claim in sheet.claims:
            if name.startswith("seed"):
                assert re.search(r"[Ll]ines? \d+", claim.source), f"{name}/{claim.id}"
                assert claim.reading.endswith((".", ".)")), f"{name}/{claim.id}"
            elif name == "ours":
                assert claim.source.startswith("Ours"), claim.id


def test_a_tolerance_in_a_course_sheet_is_asked_for_or_called_ours(
    sheets: Mapping[str, Sheet],
) -> None:
    for name, sheet in sheets.items():
        for claim in sheet.claims:
            words = any("≈" in formula for formula in claim.expect)
            if name.startswith("seed") and words:
                assert claim.find or claim.number, f"{name}/{claim.id}"
                assert all("within" in text for text in claim.expect if "≈" in text), claim.id


def test_contradictions_are_about_one_thing(sheets: Mapping[str, Sheet]) -> None:
    assert disagreements(list(sheets.values()), about_one_thing=False) == []
    found = {frozenset(pair) for pair in disagreements(list(sheets.values()))}
    assert frozenset(("seed_004/b.half", "seed_001/b.never")) in found
    assert frozenset(("seed_000/2.2.ii", "foundations/positions-unique")) in found


def test_the_sheets_cover_their_documents(sheets: Mapping[str, Sheet]) -> None:
    for name, parts in PARTS.items():
        assert set(parts.split()) <= {claim.id for claim in sheets[name].claims}
    assert len(sheets["foundations"].claims) >= 30


def test_what_disagrees_is_there(sheets: Mapping[str, Sheet]) -> None:
    known = {f"{sheet.name}/{claim.id}" for sheet in sheets.values() for claim in sheet.claims}
    pairs = [
        (f"{sheet.name}/{claim.id}", other)
        for sheet in sheets.values()
        for claim in sheet.claims
        for other in claim.disagrees_with
    ]
    assert {other for _, other in pairs} <= known
    assert pairs


@pytest.mark.parametrize("sheet", VERDICTS)
def test_the_verdicts_are_those_written_down(judging: Judging, sheet: str) -> None:
    wanted = {
        f"{sheet}/{identifier}": word
        for word, identifiers in VERDICTS[sheet].items()
        for identifier in identifiers.split()
    }
    found = {
        f"{each.verdict.sheet}/{each.claim.id}": each.verdict.verdict
        for each in judging(sheet)
        if each.claim.find is None
    }
    assert found == wanted


def test_the_numbers_asked_for_are_those_of_the_oracle(judged: list[Judged]) -> None:
    wanted = answers()
    found = {f"{v.sheet}/{v.id}": v.answer for _, v, _ in judged if v.answer is not None}
    assert set(found) == set(wanted)
    for name, answer in found.items():
        assert answer.low is not None, name
        assert answer.high is not None, name
        slack = 1e-4 if answer.certified else 0.01  # the step of the grid at a jump
        assert answer.low - slack <= wanted[name] <= answer.high + slack, name
        assert answer.high - answer.low <= 0.03, name


def test_every_refuted_claim_has_a_counterexample(judged: list[Judged]) -> None:
    for claim, verdict, _ in refuted(judged):
        assert verdict.counterexample is not None, claim.id
        assert verdict.counterexample.statement, claim.id


def test_every_repair_holds_when_it_is_applied(judged: list[Judged]) -> None:
    mended = 0
    for claim, verdict, _ in refuted(judged):
        if verdict.repair is not None:
            again = judge_claim(claim.changed(**verdict.repair.changes), repair=False)
            assert again.holds, f"{verdict.sheet}/{claim.id}: {verdict.repair.statement}"
            mended += 1
    assert mended >= 15


def test_no_claim_takes_long(judged: list[Judged]) -> None:
    slowest = max(judged, key=lambda each: each.seconds)
    assert slowest.seconds < 20, f"{slowest.verdict.sheet}/{slowest.claim.id}"
