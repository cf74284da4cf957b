"""Certificates: accepted by a checker that trusts nobody, and rejected once they are changed."""

from __future__ import annotations

import ast
import copy
import itertools
import json
import random
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb, ctx

from heedful.claims import certificate_checker as checker
from heedful.claims.certificates import certificate, coq_text, write_certificates
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import load_sheet

SHEET = """
[[claim]]
id = "half"
keys = "orthonormal"
where = { n = [3, 8], beta = "large" }
query = "beta (k_a + k_b)"
expect = "c ≈ (v_a + v_b)/2 within 0.02"

[[claim]]
id = "range"
where = { r = "[0, 3]" }
expect = "exp(r) >= 1 + r/2 - 0.001"

[[claim]]
id = "identity"
where = { x = "vector n", t = "any", n = [2, 3] }
expect = "softmax(x + t) = softmax(x)"

[[claim]]
id = "order"
where = { T = [2, 3], d = 2, X = "matrix T x d", W = "matrix d x d", P = "permutation T" }
let = { "f(X)" = "relu(softmax(X W X^T) X)" }
expect = "f(P X) = P f(X)"

[[claim]]
id = "chance"
keys = "gaussian"
covariance = { a = "1/2 mu_a mu_a^T" }
where = { n = 2, beta = 3 }
query = "beta (mu_a + mu_b)"
expect = "P(k_a^T mu_a >= 0) >= 0.9"

[[claim]]
id = "open"
keys = "orthonormal"
where = { n = [2, 5] }
query = "3 k_a"
expect = "alpha_a >= x"
find = "greatest x"
"""


@pytest.fixture(scope="module")
def certificates() -> dict[str, dict[str, Any]]:
    sheet = load_sheet(SHEET)
    assert not sheet.problems
    made = {}
    for claim in sheet.claims:
        verdict = judge_claim(claim, sheet="sheet")
        assert verdict.verdict == "proved", (claim.id, verdict.evidence.statement)
        made[claim.id] = certificate(claim, verdict)
    return made


def signed(changed: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose digest fits again: a forger would do the same."""
    return {**changed, "digest": checker.digest(changed)}


def test_certificates_are_accepted(certificates: dict[str, dict[str, Any]]) -> None:
    for made in certificates.values():
        checker.check(json.loads(json.dumps(made)))
    kinds = {name: made["kind"] for name, made in certificates.items()}
    assert kinds["identity"] == kinds["order"] == "identity"
    assert kinds["half"] == kinds["chance"] == kinds["open"] == "enclosure"


FORGERIES = [
    ("half", lambda c: c["cases"][0]["relations"][0].__setitem__(2, "1/5000")),
    ("half", lambda c: c["cases"][0]["ranges"]["beta"].__setitem__(0, "1/10")),
    ("half", lambda c: c["cases"][0]["relations"][0].__setitem__(0, ">=")),
    ("half", lambda c: c["cases"][0].__setitem__("relations", [])),
    ("half", lambda c: c.__setitem__("cases", [])),
    ("half", lambda c: c.__setitem__("kind", "identity")),
    ("half", lambda c: c.__setitem__("kind", "trust me")),
    ("half", lambda c: c["cases"][1].pop("ranges")),
    ("half", lambda c: c["cases"][0]["ranges"].__setitem__("beta", ["7", "6"])),
    ("range", lambda c: c["cases"][0]["ranges"].__setitem__("r", ["-9", "3"])),
    ("range", lambda c: c["cases"][0]["relations"][0].__setitem__(0, "<")),
    ("range", lambda c: c["cases"][0]["relations"].append(["<", "1", "1"])),
    ("range", lambda c: c["cases"][0]["relations"].append(["<=", ["inverse", "0"], "1"])),
    ("range", lambda c: c["cases"][0]["relations"].append(["<=", ["gift", "0"], "1"])),
    ("identity", lambda c: c["cases"][0]["relations"][0].__setitem__(2, "1/2")),
    ("identity", lambda c: c["cases"][0]["relations"][0].__setitem__(0, "<=")),
    ("identity", lambda c: c["cases"][0]["relations"].append(["=", "0", "1/1000000000000"])),
    (
        "order",
        lambda c: c["cases"][1]["relations"].reverse() or c["cases"][1]["relations"][0].reverse(),
    ),
    ("chance", lambda c: c["cases"][0]["relations"][0].__setitem__(2, "93/100")),
    ("open", lambda c: c["cases"][-1]["relations"][0].__setitem__(0, ">=")),
]


@pytest.mark.parametrize(("name", "forge"), FORGERIES, ids=range(len(FORGERIES)))
def test_a_forged_certificate_is_rejected(
    certificates: dict[str, dict[str, Any]], name: str, forge: Any
) -> None:
    changed = copy.deepcopy(certificates[name])
    forge(changed)
    with pytest.raises(checker.Rejected):
        checker.check(changed)  # its digest is wrong
    with pytest.raises(checker.Rejected):
        checker.check(signed(changed))  # and so is what it says


def test_any_change_of_a_number_is_noticed(certificates: dict[str, dict[str, Any]]) -> None:
    rng = random.Random(0)
    text = json.dumps(certificates["half"])
    places = [place for place, character in enumerate(text) if character.isdigit()]
    for place in rng.sample(places, 40):
        other = rng.choice([digit for digit in "123456789" if digit != text[place]])
        with pytest.raises((checker.Rejected, json.JSONDecodeError)):
            checker.check(json.loads(text[:place] + other + text[place + 1 :]))


@pytest.mark.parametrize(
    ("case", "accepted"),
    [
        ({"points": [["1", "0"], ["0", "1"], ["0", "0"]], "of": 0, "direction": ["1", "0"]}, True),
        ({"points": [["1", "0"], ["0", "1"], ["0", "0"]], "of": 2, "direction": ["1", "0"]}, False),
        ({"points": [["0"], ["1"], ["3"]], "of": 1, "weights": ["2/3", "1/3"]}, True),
        ({"points": [["0"], ["1"], ["3"]], "of": 1, "weights": ["1/2", "1/2"]}, False),
        ({"points": [["0"], ["1"], ["3"]], "of": 2, "weights": ["-2", "3"]}, False),
    ],
)
def test_hulls_are_verified_exactly(case: dict[str, Any], accepted: bool) -> None:
    made = signed({"kind": "hull", "cases": [case]})
    if accepted:
        checker.check(made)
    else:
        with pytest.raises(checker.Rejected):
            checker.check(made)


def test_the_checkers_functions_enclose_what_balls_say() -> None:
    rng = random.Random(1)
    with ctx.workprec(600):

        def exact(x: int) -> Any:
            return arb(x) / arb(checker.ONE)

        for _ in range(100):
            x = rng.randint(-290 * checker.ONE, 290 * checker.ONE) >> rng.choice([0, 4, 40])
            low, high = checker.exp_of(x)
            assert exact(low) <= exact(x).exp() <= exact(high)
        for k in range(-40, 41):
            x = k * checker.ONE // 5
            low, high = checker.below(x)
            assert exact(low) <= (exact(x) / arb(2).sqrt()).erf() / 2 + arb(1) / 2 <= exact(high)
            assert high - low < checker.ONE // 10**15
        for x in (2 * checker.ONE, checker.ONE // 7, 0):
            low, high = checker._root((x, x))
            assert exact(low) <= exact(x).sqrt() <= exact(high)
        assert exact(checker.TWO_PI) <= 2 * arb.pi() <= exact(checker.TWO_PI + 400)


def test_intervals_enclose_every_operation() -> None:
    rng = random.Random(2)

    def drawn() -> tuple[Any, Any]:
        ends = sorted(rng.choice([rng.randint(-5, 5), rng.uniform(-3, 3)]) for _ in range(2))
        return tuple(round(end * 2**40) << (checker.BITS - 40) for end in ends)  # type: ignore[return-value]

    for _ in range(400):
        x, y = drawn(), drawn()
        for a, b in itertools.product({*x, (x[0] + x[1]) // 2}, {*y, (y[0] + y[1]) // 2}):
            low, high = checker._times(x, y)
            assert low * checker.ONE <= a * b <= high * checker.ONE
            low, high = checker._square(x)
            assert low * checker.ONE <= a * a <= high * checker.ONE
            if not y[0] <= 0 <= y[1]:
                low, high = checker._inverse(y)
                one = Fraction(checker.ONE * checker.ONE, b)
                assert low <= one <= high


def test_the_checker_is_small_and_imports_nothing_of_ours() -> None:
    path = Path(str(checker.__file__))
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 300
    modules = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {str(name).partition(".")[0] for name in modules} <= sys.stdlib_module_names


def test_a_folder_is_checked_by_its_own_copy_of_the_checker(tmp_path: Path) -> None:
    sheet = load_sheet(SHEET)
    few = [claim for claim in sheet.claims if claim.id in ("half", "identity", "range")]
    verdicts = [judge_claim(claim, sheet=sheet.name) for claim in few]
    written = write_certificates([sheet], verdicts, tmp_path)
    assert len(written.certified) == 3

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "certificate_checker.py", "."]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run().stdout.strip() == "3 accepted, 0 rejected"
    victim = next(path for path in tmp_path.glob("*.json") if "range" in path.name)
    victim.write_text(victim.read_text().replace("exp", "sqrt", 1))
    finished = run()
    assert finished.returncode == 1
    assert "2 accepted, 1 rejected" in finished.stdout


@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
def test_coq_accepts_an_enclosure_and_not_a_forged_one(
    certificates: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    honest = coq_text(certificates["range"])
    assert honest is not None
    forged = honest.replace("999 / 1000", "1001 / 1000")
    assert forged != honest
    for text, code in ((honest, 0), (forged, 1)):
        (tmp_path / "part.v").write_text(text)
        command = ["coqc", "part.v"]
        finished = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert finished.returncode == code, finished.stderr
