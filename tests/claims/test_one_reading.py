"""One way for a claim: each formula is read once and each claim judged once, wherever it goes."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path

import pytest
from noting_judge import noting

from heedful.claims import checker
from heedful.claims.checker import Checker
from heedful.claims.judge import judge_claim
from heedful.claims.language import parse, parse_value
from heedful.claims.language.tree import Expression, walk
from heedful.claims.sheet import Claim, catalog, load_sheet
from heedful.claims.sheet.claim import STATEMENTS, ParsedFormula, map_formulas, read_claim
from heedful.web.claims_api import _described

HERE = Path(__file__).parent

SHEET = """
[[claim]]
id = "refuted, and repaired by a scale"
keys = "orthonormal"
query = "k_a + k_b"
where = { n = 10 }
expect = "c ≈ (v_a + v_b)/2 within 0.01"

[[claim]]
id = "with definitions and rows"
keys = [[1, 0], [0.6, 0.8]]
query = "twice(k_a)"
where = { beta = 2.5 }
let = { "twice(x)" = "2 x", half = "1/2" }
expect = ["alpha_a >= half", "beta = 5 half"]

[[claim]]
id = "with a mask that is in the way"
where = { X = "matrix T x d", P = "permutation T", T = [2, 3], d = 2 }
let = { "f(X)" = "softmax(X X^T + causal(T)) X" }
expect = "f(P X) = P f(X)"

[[claim]]
id = "noisy, and repaired by a condition"
keys = "gaussian"
covariance = { a = "1/2 mu_a mu_a^T", others = "0" }
query = "beta mu_a"
where = { n = 4, beta = 8 }
expect = "std(alpha_a) <= 0.01"
"""
TOKENISED = Counter(
    {
        # formulas
        "k_a + k_b": 1, "c ≈ (v_a + v_b)/2 within 0.01": 1,
        "twice(k_a)": 1, "2 x": 1, "1/2": 1, "alpha_a >= half": 1, "beta = 5 half": 1,
        "softmax(X X^T + causal(T)) X": 1, "f(P X) = P f(X)": 1,
        "1/2 mu_a mu_a^T": 1, "0": 1, "beta mu_a": 1, "std(alpha_a) <= 0.01": 1,
        # names that tables declare, each where it is declared
        "n": 2, "beta": 2, "twice": 1, "x": 1, "half": 1, "X": 2, "P": 1, "T": 1, "d": 1,
        "f": 1, "a": 1, "others": 1,
    }
)  # fmt: skip


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which this process and its children note what they do."""
    path = tmp_path / "diary"
    path.touch()
    monkeypatch.setenv("DIARY", str(path))
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    return path


def noted(diary: Path, kind: str) -> Counter[str]:
    """Return how often each text or claim was noted."""
    lines = [line.split("\t", 1) for line in diary.read_text("utf-8").splitlines()]
    return Counter(content for noted_kind, content in lines if noted_kind == kind)


def test_a_check_reads_each_formula_and_judges_each_claim_once(diary: Path) -> None:
    with Checker(workers=2, judge="noting_judge:judge_claim") as checker, noting():
        report = checker.check([load_sheet(SHEET)])
    assert not report.problems
    assert sum(verdict.repair is not None for verdict in report.claims) == 3
    assert noted(diary, "tokens") == TOKENISED
    judged = noted(diary, "judged")
    assert set(judged.values()) == {1}  # proposals of a repair are claims of their own
    assert len(judged) > len(report.claims)


def test_a_claim_from_python_is_read_and_judged_once(diary: Path) -> None:
    with noting():
        verdict = checker.claim(
            "c ≈ (v_a + v_b)/2 within 0.01", query="k_a + k_b", keys=checker.orthonormal(n=10)
        )
    assert verdict.repair is not None
    assert set(noted(diary, "tokens").values()) == {1}
    assert set(noted(diary, "tokens")) == {"c ≈ (v_a + v_b)/2 within 0.01", "k_a + k_b", "n"}
    assert set(noted(diary, "judged").values()) == {1}


def test_the_page_shows_formulas_without_reading_them_again(diary: Path) -> None:
    with noting():
        described = _described(load_sheet(SHEET))
    assert all(formula["tex"] for claim in described["claims"] for formula in claim["formulas"])
    assert noted(diary, "tokens") == TOKENISED


def formulas(claim: Claim) -> dict[tuple[str | int, ...], ParsedFormula]:
    """Return every formula of a claim that has been read, by its field."""
    found: dict[tuple[str | int, ...], ParsedFormula] = {}

    def note(field: tuple[str | int, ...], text: str) -> str:
        assert isinstance(text, ParsedFormula), (claim.id, field)
        found[field] = text
        return text

    map_formulas(claim, note)
    return found


def reading_of(formula: ParsedFormula, claim: Claim, field: tuple[str | int, ...]) -> Expression:
    """Return what the text of a formula means when it is read anew, as part of its claim."""
    functions = {
        key.partition("(")[0]: key.count(",") + 1 for key in claim.let if key.endswith(")")
    }
    reader = parse if field[0] in STATEMENTS else parse_value
    return reader(str(formula), functions=functions, names={*claim.where, *"abcj"})


def test_trees_of_repairs_say_what_their_texts_say() -> None:
    """A repair joins texts and trees; reading its text anew must give its tree."""
    repaired = 0
    for claim in load_sheet(SHEET).claims:
        repair = judge_claim(claim).repair
        if repair is not None:
            repaired += 1
            changed = claim.changed(**repair.changes)
            for field, formula in formulas(changed).items():
                assert reading_of(formula, changed, field) == formula.tree, (claim.id, field)
    assert repaired == 3


def test_trees_keep_their_places_on_their_way_to_another_process() -> None:
    for sheet in catalog():
        for claim in sheet.claims:
            there = pickle.loads(pickle.dumps(claim))
            assert there == claim
            for (field, here), arrived in zip(
                formulas(claim).items(), formulas(there).values(), strict=True
            ):
                assert arrived == here
                assert arrived.tree == here.tree
                places = [node.position for node in walk(here.tree)]
                assert [node.position for node in walk(arrived.tree)] == places
                assert all(position.field[0] == field[0] for position in places)


def test_a_claim_that_was_read_is_taken_as_it_is() -> None:
    (claim, *_) = load_sheet(SHEET).claims
    assert read_claim(claim) is claim
