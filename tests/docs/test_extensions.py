"""The small programs behind the site: formulas, docstrings, tables."""

from __future__ import annotations

import re
from dataclasses import fields

import console
import docstrings
import language
import mathtext
import measurements
import pytest
import records
from docutils.core import publish_doctree

from heedful.attention import AttentionResult
from heedful.claims.functions import FUNCTIONS
from heedful.claims.sheet import Claim


def test_a_formula_stands_on_its_baseline() -> None:
    _, _, _, _, depth_of_x = mathtext.outline("x")
    _, _, _, _, depth_of_y = mathtext.outline("y")
    assert depth_of_x < 0.03 * mathtext.EM
    assert 0.15 * mathtext.EM < depth_of_y < 0.35 * mathtext.EM


def test_a_formula_scales_with_its_content() -> None:
    _, _, width, height, _ = mathtext.outline(r"\alpha")
    _, _, wider, higher, _ = mathtext.outline(r"\alpha + \dfrac{\alpha}{\beta}")
    assert wider > 2 * width
    assert higher > height


def test_a_formula_names_its_source_and_hides_markup() -> None:
    drawn = mathtext.svg(r"a < b")
    assert 'aria-label="a &lt; b"' in drawn
    assert "currentColor" in drawn


def test_an_unknown_command_is_an_error() -> None:
    with pytest.raises(ValueError, match="nosuchthing"):
        mathtext.svg(r"\nosuchthing")


def test_a_plain_docstring_needs_no_markup() -> None:
    plain = [
        "Return α_i for (*batch, q, d) and |x|_; see `softmax`s and `a_b`.",
        "",
        "    c = Σ_i α_i v_i      (*1*)",
        "",
        ">>> 1 + 1",
        "2",
    ]
    document = publish_doctree(
        "\n".join(docstrings.restructured(plain)),
        settings_overrides={"halt_level": 1, "report_level": 1, "warning_stream": False},
    )
    paragraph, literal, doctest = document.children
    assert paragraph.astext() == "Return α_i for (*batch, q, d) and |x|_; see softmaxs and a_b."
    assert literal.astext() == "c = Σ_i α_i v_i      (*1*)"
    assert doctest.tagname == "doctest_block"


def test_every_field_of_every_record_has_a_meaning() -> None:
    assert AttentionResult in set(records.records_of("heedful.attention"))
    silent = [
        f"{record.__name__}.{field}"
        for record in records.records_of("heedful.attention")
        for field, meaning in records.meanings(record).items()
        if not meaning
    ]
    assert not silent, f"fields without a docstring: {', '.join(silent)}"


def test_every_function_of_the_language_is_on_its_page() -> None:
    page = (console.ROOT / "docs" / "reference" / "formulas.md").read_text("utf-8")
    shown = re.findall(r"^```\{functions\} (\w+)$", page, re.MULTILINE)
    assert set(shown) == {function.kind for function in FUNCTIONS.values()}
    tables = "".join(language.function_table(kind) for kind in shown)
    assert all(form in tables for function in FUNCTIONS.values() for form in function.forms)


def test_every_field_of_a_claim_has_a_meaning() -> None:
    rows = language.field_table("heedful.claims.sheet.claim.Claim").splitlines()[2:]
    assert len(rows) == len(fields(Claim))
    assert not [row for row in rows if row.endswith("|  |")]


def test_a_result_becomes_tables() -> None:
    result = {
        "question": "How fast?",
        "rows": [{"way": "ours", "seconds": 0.01234567}, {"way": "naive", "ratio": 12345.6}],
        "machine": {"cores": 2},
    }
    rows, single = measurements.sections(result)
    assert rows.rstrip().splitlines() == [
        "| way | seconds | ratio |",
        "| --- | --- | --- |",
        "| ours | 0.01235 |  |",
        "| naive |  | 12,346 |",
    ]
    assert "| machine | cores 2 |" in single
