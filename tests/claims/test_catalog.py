"""The catalog: every sheet is read, every claim judged, every counterexample and repair real.

The verdicts are written down below, so that no change of the engine changes one unnoticed.
A verdict that moves is either a mistake, or an improvement that belongs in the changelog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import NamedTuple

import pytest

from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim, Sheet, load_sheet
from heedful.claims.verdict import Verdict

VERDICTS = {
    "foundations": {
        "proved": """
            softmax-shift softmax-rows softmax-never-zero softmax-odds log-n-scaling
            entropy-uniform hard-attention keys-shift keys-twins keys-twice keys-order
            positions-unique positions-wavelengths positions-shift
        """,
        "supported": """
            softmax-argmax softmax-logsumexp softmax-lipschitz softmax-slope softmax-saturation
            dispersion-bound dispersion qk-norm-bound qk-norm-noisy-key entropy-bound
            entropy-effective-number temperature-entropy pinsker hull-norm hull-midpoint
            hull-unit-keys sink sqrt-d sqrt-d-sharp layernorm-length layernorm-invariance
            positions-length positions-distance rotary-length rotary-relative causal-first
        """,
        "refuted": """
            softmax-scale softmax-exactly-one softmax-lipschitz-quarter dispersion-believed
            hard-attention-ties kl-symmetric heads-average-queries noise-larger-scale rank
            self-attention-lipschitz sqrt-d-unscaled rmsnorm-shift positions-nearer
            positions-precision rotary-decay causal-equivariance
        """,
    },
    "seed_000": {
        "proved": """
            1.0 1.2.equal 1.2.scores 1.2.weights 1.3.subset 1.3.ii.spread 1.3.ii 1.3.ii.variance
            1.3.ii.long 1.4.ii.first 1.4.ii.unaffected 1.5 1.5.robust 2.1.i.softmax 2.1.i.relu
            2.1.i.inverse 2.1.i.ones 2.1.i.scores 2.1.i.attention 2.1.i 2.1.ii 2.2.ii.practice
            2.2.ii.period
        """,
        "supported": """
            1.0.sign 1.1.i 1.1.ii 1.3.i.keys 1.3.i.scores 1.3.ii.scores 1.4.ii.diffuse 2.2.i
        """,
        "refuted": """
            1.1.i.aligned 1.2 1.2.multiple 1.2.half 1.2.dominates 1.3.i 1.3.ii.direction
            1.3.ii.short 1.3.ii.usual 1.4.i 1.4.i.first 1.4.ii 1.4.ii.variance 1.4.ii.second
            1.4.ii.long 2.2.i.outputs 2.2.ii 2.2.ii.wavelengths 2.2.ii.far
        """,
    },
    "seed_001": {
        "proved": """
            0 a.i a.ii b.hint c.subset c.ii.norms c.ii.variance d e
        """,
        "supported": """
            a.diffuse c.i c.ii.resistant c.layernorm d.i
        """,
        "refuted": """
            b.never c.ii.direction c.prelayernorm d.ii.ignore
        """,
    },
    "seed_002": {
        "proved": """
            1.1.a.exp 1.1.a.sum 1.1.c 1.2.a 1.2.a.scores 1.2.a.weights 1.2.a.limit 1.3.3.product
            2.1.a.scaled 2.1.b 2.1.b.comparison 2.2.a.first 2.2.a.focus 2.2.b.first 2.2.b
        """,
        "supported": """
            1.1.a.nonnegative 1.2.a.when 2.1.a 2.1.a.scores 2.1.b.monotone
        """,
        "refuted": """
            1.1.b.dot 1.1.b 1.1.d 1.3.1 1.3.2.Q 1.3.2.V 1.3.3 1.3.4 1.3.5 2.1.a.weights
            2.2.a.second 2.2.a 2.2.b.second 2.2.b.robust
        """,
    },
    "seed_003": {
        "proved": """
            1.average 1 2 3.subset 3.b 4 4.a.note 4.b
        """,
        "supported": """
            3.a 4.a 4.a.same
        """,
        "refuted": """
            1.any 2.hint 3.b.resistant 3.b.figure 4.b.ignore
        """,
    },
    "seed_004": {
        "proved": """
            a.total b b.scores b.weights b.limit c.subset c.ii c.ii.lengths d.ii.first
            d.ii.variation d.ii.second 3.b
        """,
        "supported": """
            a b.equal c.i c.i.keys c.i.known c.ii.unequal d.i d.ii e.i e.i.impossible
            e.i.impossible.c e.i.really e.ii.first e.ii.values e.ii.constraints e.ii 3.c
        """,
        "refuted": """
            a.enough a.needed a.zero a.infinite b.exponent b.exact c.ii.multiple d.ii.all e.i.d
            e.i.c e.ii.interchangeable e.ii.summary
        """,
    },
}

PARTS = {
    "seed_000": "1.1.i 1.1.ii 1.2 1.3.i 1.3.ii 1.4.i 1.4.ii 1.5 2.1.i 2.1.ii 2.2.i 2.2.ii",
    "seed_001": "a.i a.ii b.hint b.never c.i c.ii.variance c.prelayernorm d.i d.ii.ignore e",
    "seed_002": "1.1.a.sum 1.1.b 1.1.c 1.1.d 1.2.a 1.3.1 1.3.2.Q 1.3.3 1.3.4 1.3.5 "
    "2.1.a 2.1.b 2.2.a 2.2.b",
    "seed_003": "1 2 2.hint 3.a 3.b 4.a 4.b",
    "seed_004": "a b c.i c.ii d.i d.ii e.i e.ii 3.b 3.c",
}
"""The parts of the course documents that a sheet must cover."""


class Judged(NamedTuple):
    """A claim and what the laboratory says about it."""

    claim: Claim
    verdict: Verdict


def load_catalog() -> dict[str, Sheet]:
    folder = resources.files("heedful.claims").joinpath("catalog")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {
        name.removesuffix(".toml"): load_sheet(
            folder.joinpath(name).read_text(encoding="utf-8"), name=name.removesuffix(".toml")
        )
        for name in names
    }


@pytest.fixture(scope="module")
def sheets() -> dict[str, Sheet]:
    return load_catalog()


@pytest.fixture(scope="module")
def judged(sheets: Mapping[str, Sheet]) -> list[Judged]:
    return [
        Judged(claim, judge_claim(claim, sheet=name))
        for name, sheet in sheets.items()
        for claim in sheet.claims
    ]


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
            assert claim.says.endswith("."), f"{sheet.name}/{claim.id}"
            assert claim.source or sheet.name != "foundations", claim.id


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
    assert len(pairs) >= 20


def test_the_verdicts_are_those_written_down(judged: list[Judged]) -> None:
    wanted = {
        f"{sheet}/{identifier}": word
        for sheet, words in VERDICTS.items()
        for word, identifiers in words.items()
        for identifier in identifiers.split()
    }
    found = {f"{each.verdict.sheet}/{each.claim.id}": each.verdict.verdict for each in judged}
    assert found == wanted


def test_every_refuted_claim_has_a_counterexample(judged: list[Judged]) -> None:
    for claim, verdict in refuted(judged):
        assert verdict.counterexample is not None, claim.id
        assert verdict.counterexample.statement, claim.id


def test_every_repair_holds_when_it_is_applied(judged: list[Judged]) -> None:
    mended = 0
    for claim, verdict in refuted(judged):
        if verdict.repair is not None:
            again = judge_claim(claim.changed(**verdict.repair.changes), repair=False)
            assert again.holds, f"{verdict.sheet}/{claim.id}: {verdict.repair.statement}"
            mended += 1
    assert mended >= 40


def test_no_claim_takes_long(judged: list[Judged]) -> None:
    slowest = max(judged, key=lambda each: each.verdict.seconds)
    assert slowest.verdict.seconds < 20, f"{slowest.verdict.sheet}/{slowest.claim.id}"
