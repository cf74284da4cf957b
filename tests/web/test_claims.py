"""Claims on the page: verdicts while typing, dropped work, repairs written, pictures drawn."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import client_of, own_headers, settings_for
from starlette.testclient import TestClient

from heedful.claims import Claim, load_sheet
from heedful.claims.checker import Checker, Task
from heedful.claims.language import parse, tex
from heedful.claims.sheet import catalog, claim_tables, claim_text, with_changes, with_fields
from heedful.errors import InputError
from heedful.web.claims_api import BROWSED, TYPED, formulas_of, picture_of
from heedful.workers import TaskLimits

SHEET = """# my answers
[defaults]
keys = "orthonormal"

[[claim]]
id = "b"  # the one that fails
says = "The query k_a + k_b averages."
query = "k_a + k_b"
where = { n = 10 }
expect = "c ≈ (v_a + v_b)/2 within 0.01"

# a remark about the next one
[[claim]]
id = "sum"
query = "k_a"
where = { n = 3 }
expect = [
    "sum(alpha_i, i) = 1",
]
"""


class TestRepairs:
    def test_only_the_changed_line_is_touched(self) -> None:
        edited = with_changes(SHEET, "b", {"query": "6 (k_a + k_b)"})
        before, after = SHEET.splitlines(), edited.splitlines()
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert changed == [('query = "k_a + k_b"', 'query = "6 (k_a + k_b)"')]

    def test_a_field_can_give_way_to_another(self) -> None:
        edited = with_changes(SHEET, "b", {"query": None, "heads": ["9 k_a", "9 k_b"]})
        claim = load_sheet(edited).claims[0]
        assert (claim.query, claim.heads) == (None, ("9 k_a", "9 k_b"))
        assert "# the one that fails" in edited
        assert "# a remark about the next one" in edited

    def test_a_value_over_several_lines_is_replaced_whole(self) -> None:
        edited = with_changes(SHEET, "sum", {"expect": ["alpha_a >= 0"]})
        assert load_sheet(edited).claims[1].expect == ("alpha_a >= 0",)
        assert not load_sheet(edited).problems

    def test_a_new_field_is_added(self) -> None:
        edited = with_changes(SHEET, "b", {"given": "n >= 3", "tolerance": 0.1})
        claim = load_sheet(edited).claims[0]
        assert (claim.given, claim.tolerance) == ("n >= 3", 0.1)

    def test_a_default_is_overruled_and_the_others_keep_it(self) -> None:
        edited = with_changes(SHEET, "b", {"keys": "unit"})
        first, second = load_sheet(edited).claims
        assert (first.keys, second.keys) == ("unit", "orthonormal")

    def test_an_unusual_layout_is_written_anew(self) -> None:
        text = SHEET.replace("where = { n = 10 }", "where.n = 10")
        edited = with_changes(text, "b", {"where": {"n": [10, 20]}})
        assert list(load_sheet(edited).claims[0].where["n"]) == [10, 20]
        assert len(load_sheet(edited).claims) == 2

    @pytest.mark.parametrize(
        ("name", "changes"), [("nobody", {"query": "k_a"}), ("b", {"query": "k_a +"})]
    )
    def test_what_cannot_be_written_is_refused(self, name: str, changes: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            with_changes(SHEET, name, changes)

    def test_every_claim_of_the_catalog_can_be_changed_in_place(self) -> None:
        for sheet in filter(lambda one: one.claims, catalog()):
            text = "".join(claim_text(claim) + "\n" for claim in sheet.claims)
            last = sheet.claims[-1]
            edited = with_changes(text, last.id, {"tolerance": 0.125})
            found = {claim.id: claim for claim in load_sheet(edited).claims}
            assert found[last.id].tolerance == 0.125
            assert len(found) == len(sheet.claims)


class TestForms:
    def test_only_the_changed_line_is_touched(self) -> None:
        edited = with_fields(SHEET, 0, {"query": r"\beta (k_a + k_b"})  # not finished
        before, after = SHEET.splitlines(), edited.splitlines()
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert changed == [('query = "k_a + k_b"', r"query = '\beta (k_a + k_b'")]

    def test_a_claim_is_changed_beside_one_that_is_not_toml(self) -> None:
        broken = SHEET.replace("where = { n = 10 }", "where = { n = ")
        edited = with_fields(broken, 0, {"id": "total"})
        assert [one.table["id"] for one in claim_tables(edited)] == ["total"]
        assert "where = { n = \n" in edited

    def test_a_claim_is_taken_out_with_nothing_else(self) -> None:
        edited = with_fields(SHEET, 0, None)
        assert [claim.id for claim in load_sheet(edited).claims] == ["sum"]
        assert "# a remark about the next one" in edited
        assert 'keys = "orthonormal"' in edited

    def test_every_claim_of_the_catalog_reads_back_from_its_own_fields(self) -> None:
        for sheet in filter(lambda one: one.claims, catalog()):
            text = "".join(claim_text(claim) + "\n" for claim in sheet.claims)
            last = len(sheet.claims) - 1
            fields = claim_tables(text)[last].table
            assert load_sheet(with_fields(text, last, fields)).claims == load_sheet(text).claims

    def test_a_claim_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(InputError):
            with_fields(SHEET, 2, {"id": "x"})


class TestPictures:
    def test_a_query_over_given_keys(self) -> None:
        found = picture_of("heed attend --keys '[[1, 0], [0.5, 2]]' --query 3 -1 --scale sqrt_d")
        assert found == {"keys": [[1, 0], [0.5, 2]], "queries": [[3, -1]], "scale": "sqrt_d"}

    def test_heads_over_noisy_keys(self) -> None:
        command = "heed noise --n 3 --d 4 --noisy 0 --variance 0.5 --heads 0+1 2-0.5*0 --beta 2"
        found = picture_of(command)
        assert found is not None
        np.testing.assert_allclose(found["queries"], [[2, 2, 0, 0], [-1, 0, 2, 0]])
        assert (found["noisy"], found["variance"]) == (0, 0.5)

    def test_keys_alone(self) -> None:
        found = picture_of("heed copyable --keys '[[0], [1], [2]]'")
        assert found == {"keys": [[0], [1], [2]], "queries": []}


class TestFormulas:
    def test_every_formula_of_the_catalog_is_typeset(self) -> None:
        for sheet in catalog():
            for claim in sheet.claims:
                for formula in formulas_of(claim):
                    assert formula["tex"], (sheet.name, claim.id, formula["text"])
                    opened = formula["tex"].replace(r"\{", "").replace(r"\}", "")
                    assert opened.count("{") == opened.count("}")
                    assert formula["tex"].count(r"\left") == formula["tex"].count(r"\right")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("alpha_a >= 1/2", r"\alpha_{a} \ge \frac{1}{2}"),
            ("a - (b - c) = 0", r"a - \left(b - c\right) = 0"),
            ("2 * 3 = 6", r"2 \cdot 3 = 6"),
            ("(a + b)^2 > 0", r"\left(a + b\right)^{2} > 0"),
        ],
    )
    def test_brackets_stand_where_they_are_needed(self, text: str, expected: str) -> None:
        assert tex(parse(text)) == expected

    def test_a_formula_in_latex_is_shown_as_it_was_read(self) -> None:
        sheet = load_sheet("[[claim]]\nid = 'x'\nexpect = 'c \\approx \\frac12(v_a+v_b)'\n")
        (shown,) = formulas_of(sheet.claims[0])
        assert shown["text"] == "c ≈ 1 / 2 · (v_a + v_b)"
        assert shown["tex"] == r"c \approx \frac{1}{2} \,\left(v_{a} + v_{b}\right)"

    def test_a_name_that_only_its_sheet_knows_is_shown_as_written(self) -> None:
        claim = Claim(id="x", expect=("strange(1, 2) = 3",))
        assert formulas_of(claim) == [{"text": "strange(1, 2) = 3", "tex": ""}]


@pytest.fixture
def checker() -> Iterator[Checker]:
    with Checker(
        workers=1, limits=TaskLimits(seconds=30.0), judge="obedient_judge:judge"
    ) as obedient:
        yield obedient


def told(says: str) -> Task:
    """Return a claim that tells the judge of these tests what to do."""
    return Task("sheet", Claim(id=says, says=says, expect=("1 = 1",)))


class TestJudging:
    @pytest.fixture(autouse=True)
    def _importable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = Path(__file__).parents[1] / "claims"
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)

    def test_answers_come_and_are_remembered(self, checker: Checker) -> None:
        heard: list[str] = []
        done = threading.Event()
        for says in ("true", "false", "refuse expect"):
            checker.submit(told(says), lambda answer: heard.append(type(answer).__name__))
        checker.submit(told("true again"), lambda answer: done.set())
        assert done.wait(60)
        assert heard == ["Verdict", "Verdict", "FormulaError"]
        assert checker.known(told("false")) is not None
        assert checker.known(told("something else")) is None
        assert checker.submit(told("true"), lambda answer: heard.append("at once")) is None
        assert heard[-1] == "at once"

    def test_what_is_typed_comes_before_what_is_browsed(self, checker: Checker) -> None:
        order: list[int] = []
        done = threading.Event()
        checker.submit(told("sleep 0.5"), lambda answer: None)
        time.sleep(0.1)
        checker.submit(
            told("true 1"), lambda answer: (order.append(1), done.set())[1], urgency=BROWSED
        )
        checker.submit(told("true 0"), lambda answer: order.append(0), urgency=TYPED)
        assert done.wait(60)
        assert order == [0, 1]

    def test_a_cancelled_claim_is_ended_and_others_go_on(self, checker: Checker) -> None:
        done = threading.Event()
        heard: list[str] = []
        checker.submit(told("true"), lambda answer: done.set())  # the child is up
        assert done.wait(60)
        done.clear()
        began = time.monotonic()
        jobs = [
            checker.submit(told("sleep 600"), lambda answer: heard.append("endless")),
            checker.submit(told("sleep 601"), lambda answer: heard.append("waiting")),
        ]
        time.sleep(0.3)
        for job in jobs:
            assert job is not None
            job.cancel()
        checker.submit(told("false"), lambda answer: done.set())
        assert done.wait(60)
        assert time.monotonic() - began < 300  # nobody waited for the sleeps
        assert heard == []


class TestLive:
    def test_verdicts_come_one_by_one(self, tmp_path: Path) -> None:
        client: TestClient = client_of(settings_for(tmp_path), own_headers())
        broken = '\n[[claim]]\nid = "c"\nquery = "k_a"\nwhere = { n = 3 }\nexpect = "c = = 1"\n'
        with client, client.websocket_connect("/api/claims/live", headers=own_headers()) as socket:
            socket.send_json({"ticket": 7, "text": SHEET + broken})
            messages = []
            while not messages or messages[-1]["kind"] != "done":
                messages.append(socket.receive_json())
            socket.send_json({"ticket": 8, "nonsense": True})
            assert socket.receive_json()["kind"] == "error"
        assert {message["ticket"] for message in messages} == {7}
        sheet = messages[0]
        assert [claim["id"] for claim in sheet["claims"]] == ["b", "sum"]
        assert [problem["line"] for problem in sheet["problems"]] == [(SHEET + broken).count("\n")]
        verdicts = {m["verdict"]["id"]: m["verdict"] for m in messages if m["kind"] == "verdict"}
        assert verdicts["b"]["verdict"] == "refuted"
        assert verdicts["sum"]["verdict"] == "proved"
        assert np.array(verdicts["b"]["picture"]["keys"]).shape == (10, 10)
        repaired = client.post(
            "/api/claims/repair",
            json={"text": SHEET, "id": "b", "changes": verdicts["b"]["repair"]["changes"]},
        ).json()["text"]
        assert repaired != SHEET
        assert not load_sheet(repaired).problems

    def test_the_catalog_is_told_with_its_disagreements(self, tmp_path: Path) -> None:
        client: TestClient = client_of(settings_for(tmp_path), own_headers())
        found = client.post("/api/claims/catalog").json()
        names = {f"{s['name']}/{c['id']}" for s in found["sheets"] for c in s["claims"]}
        assert len(names) == sum(len(sheet.claims) for sheet in catalog())
        assert found["disagreements"]
        assert {name for pair in found["disagreements"] for name in pair} <= names
