"""Sheets: what is read, what is refused, and where an error points."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.claims.sheet import Claim, claim_text, load_sheet, toml_lines
from heedful.claims.sheet.sheet import toml_value
from heedful.claims.sheet.toml import places
from heedful.errors import FormulaError

GOOD = '[[claim]]\nid = "good"\nexpect = "sum(alpha_i, i) = 1"\nkeys = "orthonormal"\n'


def problem(text: str) -> FormulaError:
    """Return the one problem of a sheet that has one."""
    (found,) = load_sheet(text).problems
    return found


def test_a_sheet_gives_its_claims_with_every_field() -> None:
    sheet = load_sheet(
        """
title = "An average of two"
source = "Part 1"
[defaults]
keys = "orthonormal"
tolerance = 0.1

[[claim]]
id = "b"
says = "The sum of two keys averages their values."
where = { n = [2, 3], "β" = "large" }
query = "β (k_a + k_b)"
expect = ["c ≈ (v_a + v_b)/2 within 0.02", "alpha_a = alpha_b"]
disagrees_with = "other/b"

[[claim]]
id = "rows"
keys = [[1, 0], [0, 0.5]]
heads = ["k_a", "k_b"]
let = { "f(X)" = "2 X", half = 0.5 }
expect = "f(c) = 2 c"
draws = 100
"""
    )
    assert not sheet.problems
    assert (sheet.title, sheet.source) == ("An average of two", "Part 1")
    first, second = sheet.claims
    assert first.keys == "orthonormal"
    assert first.tolerance == second.tolerance == 0.1
    assert len(first.expect) == 2
    assert first.where == {"n": [2, 3], "beta": "large"}  # names are spelled as formulas spell them
    assert first.disagrees_with == ("other/b",)
    assert second.keys == ((1, 0), (0, 0.5))
    assert second.let == {"f(X)": "2 X", "half": "0.5"}
    assert second.draws == 100


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        ('exepct = "x = 1"', (2, 1), "did you mean expect"),
        ("says = 3", (2, 1), "a sentence in quotes"),
        ("where = [1]", (2, 1), "a table"),
        ("where = { n = [2, true] }", (2, 19), "where.n[2] is true"),
        ("where = { n = 2, beta = nan }", (2, 18), "a finite number"),
        ("keys = [[1, 2], [3]]", (2, 17), "row 2 has 1 numbers and row 1 has 2"),
        ("keys = []", (2, 1), "empty list"),
        ("tolerance = -1", (2, 1), "above 0"),
        ("tolerance = inf", (2, 1), "finite"),
        ("draws = 0", (2, 1), "from 1 to"),
        ("draws = 2.5", (2, 1), "whole number"),
        ("seed = -1", (2, 1), "from 0 to"),
        ("seed = true", (2, 1), "is true"),
        ('expect = ""', (2, 1), "is empty"),
        ("expect = []", (2, 1), "at least one formula"),
        ("expect = 1979-05-27", (2, 1), "a formula in quotes"),
        ('"__class__" = 1', (2, 1), "has no field '__class__'"),
        ('where = { "__class__" = 1 }', (2, 11), "is not a name"),
        ('let = { "f(X" = "X" }', (2, 9), "is not a name"),
        ('let = { "exp(X)" = "X" }', (2, 9), "a function of the language already"),
        ("draws = 0x" + "f" * 5000, (2, 1), "a number of"),
    ],
)
def test_a_bad_field_is_refused_where_it_stands_and_the_others_are_kept(
    line: str, place: tuple[int, int], says: str
) -> None:
    bad = f'[[claim]]\n{line}\nid = "bad"\n'
    bad += "" if line.startswith(("expect", "exepct")) else 'expect = "1 = 1"\n'
    sheet = load_sheet(bad + GOOD)
    assert [claim.id for claim in sheet.claims] == ["good"]
    (found,) = sheet.problems
    assert (found.line, found.column) == place
    assert says in str(found)
    assert "\n" not in str(found)


def test_a_formula_that_cannot_be_read_is_shown_inside_its_string() -> None:
    found = problem('[[claim]]\nid = "x"\nexpect = "1 = 1 )"\n')
    assert (found.line, found.column) == (3, 17)
    assert "claim 'x', expect" in str(found)
    found = problem('[[claim]]\nid = "x"\nexpect = [\n  "1 = 1",\n  "\\u0031 = 1 )",\n]\n')
    assert (found.line, found.column) == (5, 15)  # the escape \\u0031 is one character of six
    found = problem('[[claim]]\nid = "x"\nexpect = """\n1 = 1\n and )"""\n')
    assert (found.line, found.column) == (5, 6)
    found = problem('[defaults]\nquery = "k_a +"\n[[claim]]\nid = "x"\nexpect = "1 = 1"\n')
    assert found.line == 2


def test_every_slip_of_a_sheet_is_reported_in_the_order_of_its_lines() -> None:
    text = '[[claim]]\nid = "a"\nexpect = "1 ="\nquery = "+"\n[[claim]]\nsays = "no id"\n' + GOOD
    sheet = load_sheet(text)
    lines = [found.line for found in sheet.problems]
    assert lines == sorted(line for line in lines if line is not None)
    assert len(sheet.problems) == 4
    assert [claim.id for claim in sheet.claims] == ["good"]


def test_broken_syntax_costs_only_its_claim() -> None:
    broken = '[[claim]]\nid = "bad\nexpect = "1 = 1"\n'
    sheet = load_sheet(GOOD.replace("good", "first") + broken + GOOD)
    assert [claim.id for claim in sheet.claims] == ["first", "good"]
    (found,) = sheet.problems
    assert found.line == 6
    assert "not TOML" in str(found)


def test_a_field_written_twice_costs_only_its_claim() -> None:
    sheet = load_sheet('[[claim]]\nid = "x"\nid = "y"\nexpect = "1 = 1"\n' + GOOD)
    assert [claim.id for claim in sheet.claims] == ["good"]
    assert sheet.problems[0].line == 3


def test_an_id_serves_one_claim() -> None:
    sheet = load_sheet(GOOD + GOOD)
    assert len(sheet.claims) == 1
    assert "taken by the claim of line 2" in str(sheet.problems[0])
    assert sheet.problems[0].line == 6


def test_claims_that_rely_on_a_broken_default_are_not_judged() -> None:
    own = GOOD + "tolerance = 0.1\n"
    sheet = load_sheet("[defaults]\ntolerance = -1\n" + GOOD.replace("good", "relies") + own)
    assert [claim.id for claim in sheet.claims] == ["good"]
    assert [found.line for found in sheet.problems] == [2]


@pytest.mark.parametrize(
    "defaults",
    [
        '[defaults]\nkeyz = "orthonormal"\n',
        "defaults = []\n",
        '[defaults]\nkeys = "orthonormal\n',
        'title = "x\n[defaults]\nkeys = "orthonormal"\n',
    ],
)
def test_without_its_defaults_no_claim_is_judged(defaults: str) -> None:
    sheet = load_sheet(defaults + GOOD)
    assert not sheet.claims
    assert len(sheet.problems) == 1


def test_defaults_serve_claims_before_them_too() -> None:
    broken = '[[claim]]\nid = "bad\n'
    for text in (GOOD, GOOD + broken):
        sheet = load_sheet(text + "[defaults]\ndraws = 7\n" if text is GOOD else text)
        assert [claim.draws for claim in sheet.claims] == [7 if text is GOOD else 20_000]


@pytest.mark.parametrize(
    "let",
    ['a = "b", b = "a"', 'a = "a"', '"f(X)" = "f(X)"', '"f(X)" = "g(X)", "g(X)" = "2 f(X)"'],
)
def test_definitions_cannot_go_in_circles(let: str) -> None:
    found = problem(f'[[claim]]\nid = "x"\nlet = {{ {let} }}\nexpect = "1 = 1"\n')
    assert "is defined through itself" in str(found)
    assert (found.line, found.column) == (3, 9)


def test_definitions_cannot_explode() -> None:
    doubling = ", ".join(f'"f_{i}(y)" = "f_{i + 1}(y) f_{i + 1}(y)"' for i in range(18))
    text = f'[[claim]]\nid = "x"\nlet = {{ {doubling}, "f_18(y)" = "y" }}\nexpect = "1 = 1"\n'
    assert "writes out to" in str(problem(text))


def test_a_parameter_may_bear_the_name_of_a_definition() -> None:
    text = '[[claim]]\nid = "x"\nlet = { X = "f(1)", "f(X)" = "2 X" }\nexpect = "X = 2"\n'
    assert not load_sheet(text).problems


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'title = "\xff"', "byte 9 is 0xFF"),
        (b'title = "a\x00b"', "U+0000"),
        ('title = "a\u202eb"'.encode(), "U+202E"),
        (b"# " + b"x" * 70_000, "64 KB"),
        (b"", "there is no claim"),
        (b"claim = 3", "twice bracketed"),
        (b"claims = 3", "did you mean claim"),
        (b"a = " + b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
        (b".".join([b"a"] * 30_000) + b" = 1", "dotted parts"),
        (b"a = " + b"9" * 5000, "digits"),
        (b"[[claim]]\n" * 2001, "2,001 claims"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_whole(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "sheet.toml"
    path.write_bytes(content)
    sheet = load_sheet(path)
    assert not sheet.claims
    assert says in str(sheet.problems[0])
    assert len(sheet.problems) == 1


def test_a_mark_of_byte_order_and_windows_lines_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    sheet = load_sheet(path)
    assert not sheet.problems
    assert sheet.name == "sheet"
    assert sheet.claims == load_sheet(GOOD).claims


def test_errors_found_by_the_engine_get_their_line() -> None:
    sheet = load_sheet(GOOD + 'where = { n = 3 }\nheads = ["k_a", "k_b"]\n')
    places: dict[tuple[str | int, ...], tuple[int, int]] = {
        ("where", "n"): (5, 11),
        ("heads", 1): (6, 17),
        ("keys",): (4, 1),
        ("expect", 0): (3, 1),
        (): (3, 1),
    }
    for field, place in places.items():
        error = sheet.located("good", FormulaError("formula", "is wrong", field=field))
        assert (error.line, error.column) == place, field
    error = sheet.located("good", FormulaError("good.expect", "is wrong", column=3))
    assert (error.line, error.column) == (3, 13)


names = st.text("abcxyz_-", min_size=1, max_size=4)
strings = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=8)
scalars = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.booleans() | strings
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | strings, inner, max_size=3),
    max_leaves=8,
)


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(found for key, item in items for found in paths_of(item, (*path, key)))]


@given(tables=st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=3))
def test_what_is_written_reads_back_and_every_value_has_its_place(
    tables: list[dict[str, Any]],
) -> None:
    text = "".join(f"# [[claim]]\n[[claim]]\n{toml_lines(table)}\n" for table in tables)
    assert tomllib.loads(text)["claim"] == tables
    found = places(text)
    lines = text.split("\n")
    for path in paths_of(tables, ("claim",)):
        if len(path) == 1:
            continue
        assert found.knows(path)
        line, column = found.of(path)
        rest = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str):
            assert rest.startswith((path[-1], toml_value(path[-1])))


@given(text=strings, quote=st.sampled_from(['"', '"""', "'", "'''"]), index=st.integers(0, 9))
def test_a_character_of_a_string_is_found_in_the_text(text: str, quote: str, index: int) -> None:
    if quote[0] == "'":
        text = text.replace("'", "")
        text = text if len(quote) == 3 else text.replace("\n", "")
        written = f"x = {quote}{text}{quote}"
    else:
        written = f"x = {toml_value(text)}" if len(quote) == 1 else f'x = """\n{text}"""'
        if len(quote) == 3:
            text = text.replace("\\", "").replace('"', "")
            written = f'x = """\\\n   {text.lstrip()}"""'
    value = tomllib.loads(written)["x"]
    line, column = places(written).inside(("x",), index + 1)
    character = written.split("\n")[line - 1][column - 1 : column]
    if index < len(value) and value[index] not in '"\\\n':
        assert character == value[index]


def test_a_claim_is_written_as_it_was_read() -> None:
    sheet = load_sheet(
        GOOD
        + 'where = { n = [2, 3], beta = "large" }\nlet = { "f(X)" = "X \'" }\n'
        + 'says = "Tab\\t, quote \\" and line\\nbreak"\nheads = ["k_a"]\ntolerance = 1e-7\n'
    )
    (claim,) = sheet.claims
    assert load_sheet(claim_text(claim)).claims == (claim,)
    assert isinstance(claim, Claim)
