"""Checking many claims: limits that hold, results in order, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.claims.checker import Checker, CheckReport, check
from heedful.claims.sheet import Sheet, catalog, claim_named, find_sheets, load_sheet, only
from heedful.errors import FormulaError, HeedfulError, InputError, RunError
from heedful.workers import TaskLimits

JUDGE = "obedient_judge:judge"
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def judge_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)


def text_of(*orders: str) -> str:
    return "".join(
        f'[[claim]]\nid = "{place}"\nsays = "{order}"\nwhere = {{ n = 3 }}\nexpect = "1 = 1"\n'
        for place, order in enumerate(orders)
    )


def sheet_of(*orders: str, name: str = "sheet") -> Sheet:
    return load_sheet(text_of(*orders), name=name)


def obedient(workers: int = 2, seconds: float = 20.0, megabytes: int = 256) -> Checker:
    limits = TaskLimits(seconds=seconds, megabytes=megabytes)
    return Checker(workers=workers, limits=limits, judge=JUDGE)


def words(report: CheckReport) -> list[tuple[str, str, str, str]]:
    return [(v.sheet, v.id, v.verdict, v.evidence.statement) for v in report.claims]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_claims(workers: int) -> None:
    orders = ["sleep 0.3", "true", "false", "sleep 0.1", "true"]
    with obedient(workers) as checker:
        report = checker.check([sheet_of(*orders, name="a"), sheet_of("true", name="b")])
    assert [(v.sheet, v.id) for v in report.claims] == [("a", str(i)) for i in range(5)] + [
        ("b", "0")
    ]
    assert report.counts == {
        "proved": 5, "supported": 0, "refuted": 1, "undecided": 0, "problems": 0,
    }  # fmt: skip
    assert report.exit_code == 1


def test_a_claim_that_runs_away_is_undecided_and_the_rest_is_judged() -> None:
    orders = ["true", "spin", "sleep 600", "grow 200", "abort", "stumble", "give-up", "true"]
    start = time.monotonic()
    with obedient(seconds=3.0) as checker:
        report = checker.check([sheet_of(*orders)])
    assert time.monotonic() - start < 300  # it does not wait for a sleep of 600
    statements = {v.id: v.evidence.statement for v in report.claims}
    methods = {v.id: v.evidence.method for v in report.claims if v.verdict == "undecided"}
    assert statements["1"] == statements["2"] == "time: not decided within 3 s of processor time"
    assert statements["3"] == "memory: deciding it needs more than 256 MB"
    assert statements["4"] == f"crash: the process that judged it ended (signal {signal.SIGABRT:d})"
    assert "ZeroDivisionError: one by zero" in statements["5"]
    assert "did not converge" in statements["6"]
    assert methods == dict.fromkeys("1234", "limit") | dict.fromkeys("56", "failure")
    assert [v.verdict for v in report.claims if v.id in "07"] == ["proved", "proved"]
    assert report.exit_code == 0


def test_memory_within_the_limit_is_granted_to_every_claim_anew() -> None:
    with obedient(workers=1) as checker:
        report = checker.check([sheet_of(*["grow 16"] * 6)])  # 128 MB each, 256 MB allowed
    assert report.counts["proved"] == 6


def test_a_claim_the_engine_cannot_read_is_a_problem_at_its_line() -> None:
    with obedient() as checker:
        report = checker.check([sheet_of("true", "refuse where.n")])
    (found,) = report.problems
    assert (found.line, found.column) == (9, 11)
    assert found.message == ("sheet:9:11: claim '1', where.n: is not understood; something else")
    assert report.exit_code == 2
    assert len(report.claims) == 1


def test_the_same_claims_give_the_same_report() -> None:
    orders = ["sleep 0.05", "false", "stumble", "true"] * 3
    with obedient(1) as one, obedient(3) as three:
        first, second = one.check([sheet_of(*orders)]), three.check([sheet_of(*orders)])
    assert words(first) == words(second)
    assert first.counts == second.counts


def test_only_what_changed_is_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIARY", str(tmp_path / "diary"))
    with obedient(1) as checker:
        checker.check([sheet_of("true", "false", "true")])
        report = checker.check([sheet_of("true", "true", "true")])
    asked = [line.split()[1] for line in (tmp_path / "diary").read_text("utf-8").splitlines()]
    assert asked == ["0", "1", "2", "1"]
    assert report.counts["proved"] == 3


def test_progress_counts_up_to_all() -> None:
    seen: list[tuple[int, int]] = []
    with obedient() as checker:
        checker.check([sheet_of("true", "true", "true")], lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_an_engine_that_cannot_start_is_said_so() -> None:
    with (
        pytest.raises(RunError, match="cannot be started"),
        Checker(workers=1, judge="obedient_judge:nobody") as checker,
    ):
        checker.check([sheet_of("true")])


@pytest.mark.parametrize(
    "flags", [{"workers": 0}, {"workers": 1000}, {"claim_seconds": 0.0}, {"claim_megabytes": 1}]
)
def test_senseless_limits_are_refused(flags: dict[str, int]) -> None:
    with pytest.raises(InputError):
        check(["missing.toml"], **flags)  # type: ignore[arg-type]


ENDLESS = """
import sys
from pathlib import Path
from heedful.workers import TaskLimits
from heedful.claims.checker import Checker
from heedful.claims.sheet import load_sheet

text = Path(sys.argv[1]).read_text("utf-8")
with Checker(workers=2, limits=TaskLimits(seconds=600), judge="obedient_judge:judge") as checker:
    checker.check([load_sheet(text)])
"""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], bool], seconds: float = 150.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_check(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary, sheet = tmp_path / "diary", tmp_path / "sheet.toml"
    monkeypatch.setenv("DIARY", str(diary))
    sheet.write_text(text_of("sleep 600", "spin"), "utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(sheet)], stderr=subprocess.DEVNULL
    ) as parent:
        written = lambda: diary.exists() and diary.read_text("utf-8").count("\n") == 2  # noqa: E731
        assert wait_until(written)
        parent.send_signal(number)
        parent.wait(timeout=150)
    children = [int(line.split()[0]) for line in diary.read_text("utf-8").splitlines()]
    assert wait_until(lambda: not any(map(alive, children)))
    assert parent.returncode != 0


def test_a_folder_is_searched_in_order_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder = tmp_path / "folder"
    for place in ("b/answers", "a/answers", "top"):
        path = folder / f"{place}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of("true"), "utf-8")
    (folder / "notes.txt").write_text("not a sheet", "utf-8")
    outside.mkdir()
    (outside / "secret.toml").write_text(text_of("true"), "utf-8")
    (folder / "link.toml").symlink_to(outside / "secret.toml")
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    os.mkfifo(folder / "pipe.toml")

    sheets = find_sheets([folder])
    assert [sheet.name for sheet in sheets] == [
        "a/answers", "b/answers", "link", "pipe", "top",
    ]  # fmt: skip
    assert [len(sheet.claims) for sheet in sheets] == [1, 1, 0, 0, 1]
    assert "is a link" in str(sheets[2].problems[0])
    assert "is not a file" in str(sheets[3].problems[0])
    # Named by the user, a link is followed.
    assert len(find_sheets([folder / "link.toml"])[0].claims) == 1


def test_sheets_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    paths = [tmp_path / name / "answers.toml" for name in ("ada", "bob")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(text_of("true"), "utf-8")
    names = [sheet.name for sheet in find_sheets(paths)]
    assert len(set(names)) == 2
    assert len(find_sheets([tmp_path, paths[0]])) == 2


@pytest.mark.parametrize("given", ["missing.toml", "missing", ""])
def test_what_is_not_there_is_refused(given: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        find_sheets([tmp_path / (given or "empty")])


@pytest.fixture
def two_sheets() -> list[Sheet]:
    return [sheet_of("true", "false", name="one"), sheet_of("true", name="two")]


def test_claims_are_picked_by_id(two_sheets: list[Sheet]) -> None:
    picked = only(two_sheets, ["0"])
    assert [(sheet.name, claim.id) for sheet in picked for claim in sheet.claims] == [
        ("one", "0"), ("two", "0"),
    ]  # fmt: skip
    assert claim_named(two_sheets, "1")[0].name == "one"
    assert claim_named(two_sheets, "two/0")[0].name == "two"
    with pytest.raises(InputError, match="is in 2 sheets; one of one/0, two/0"):
        claim_named(two_sheets, "0")
    with pytest.raises(InputError, match=r"did you mean two/0\?"):
        claim_named(two_sheets, "tow/0")


def test_claims_that_disagree_are_paired_once() -> None:
    one = '[[claim]]\nid = "x"\nexpect = "1 = 1"\ndisagrees_with = ["two/y", "nowhere/z"]\n'
    two = '[[claim]]\nid = "y"\nexpect = "1 = 2"\ndisagrees_with = "one/x"\n'
    with obedient() as checker:
        report = checker.check([load_sheet(one, name="one"), load_sheet(two, name="two")])
    assert report.disagreements == (("one/x", "two/y"),)


def test_errors_travel_between_processes_whole() -> None:
    sheet = sheet_of("refuse query")
    with obedient(1) as checker, pytest.raises(FormulaError) as caught:
        checker.judge_one(sheet, sheet.claims[0])
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, HeedfulError)


def test_the_catalog_can_be_read() -> None:
    for sheet in catalog():
        assert not sheet.problems, sheet.problems
        assert sheet.claims or sheet.missing


def test_claims_about_different_queries_do_not_contradict_each_other() -> None:
    text = (
        '[defaults]\nkeys = "orthonormal"\nwhere = {{ n = 3, beta = {beta} }}\n'
        '[[claim]]\nid = "x"\nquery = "{query}"\nexpect = "alpha_a = 1"\n'
        'disagrees_with = "one/x"\n'
    )

    def pairs(query: str, beta: str) -> tuple[int, int]:
        sheets = [
            load_sheet(text.format(query="beta k_a", beta="[1, 2]"), name="one"),
            load_sheet(text.format(query=query, beta=beta), name="two"),
        ]
        with obedient() as checker:
            report = checker.check(sheets)
        return len(report.disagreements), len(report.unlike)

    assert pairs("beta * k_a", "2") == (1, 0)
    assert pairs("beta k_a", '"[2, 9]"') == (1, 0)
    assert pairs("beta k_a", "3") == (0, 1)
    assert pairs("beta k_a", '"large"') == (0, 1)
    assert pairs("2 k_a", "2") == (0, 1)
