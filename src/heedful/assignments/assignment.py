"""An assignment: its questions, what is open in each, what is locked, and what earns points.

    [[question]]
    id = "1b"
    text = "Give a query that averages v_a and v_b."
    points = 2
    open = "query"
    keys = "orthonormal"
    where = { n = [3, 5, 10], beta = "large" }
    expect = "c ≈ (v_a + v_b)/2 within 0.05"
    credit = { supported = 0.9, repairs = { scale = 0.5 } }
    solution = "beta (k_a + k_b)"

A question is a claim with one hole, `open`. Only the hole is taken from an answer; keys, ranges,
tolerance and statement are the assignment's, whatever else a student writes.

What is handed out is the questions as Markdown, LaTeX, a notebook or TOML, and Gradescope's zip.
Every template is read back by `submission` with every question found under its label.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast

from heedful.claims.language import show
from heedful.claims.language.tree import (
    Call,
    Compare,
    Expression,
    Name,
    bound_names,
    free_names,
    names_in,
    walk,
)
from heedful.claims.sheet.claim import (
    FIELDS,
    Claim,
    FieldError,
    ParsedFormula,
    nearest,
    read_formulas,
    shown,
)
from heedful.claims.sheet.sheet import toml_lines
from heedful.claims.sheet.toml import Places, read_text, sheet_blocks
from heedful.errors import FormulaError, InputError
from heedful.records import Record

Kind = Literal[
    "query", "heads", "number", "matrix", "matrices", "choice", "statement", "condition",
    "verdict", "text",
]  # fmt: skip
"""What an answer is: see `KINDS`."""
KINDS: Mapping[str, str] = {
    "query": "a query, such as 3 k_a",
    "heads": "the queries of several heads, q_1 and q_2",
    "number": "a number or an expression",
    "matrix": "a matrix or an expression",
    "matrices": "several matrices by name, such as K, Q and V",
    "choice": "one of the options",
    "statement": "a true statement from which the rest follows",
    "condition": "a condition that can hold, such as r >= 1",
    "verdict": "true or false",
    "text": "words, which a person reads",
}
Live = Literal["reading", "verdict", "hint", "full"]
LIVE: Mapping[str, str] = {
    "reading": "how the answer is read",
    "verdict": "the verdict and the points as well",
    "hint": "and what kind of change would help",
    "full": "and where it fails, and what would mend it",
}
"""What the page shows while somebody works on an assignment."""
MOST_QUESTIONS = 200
MOST_POINTS = 1000.0
_OWN = frozenset(
    {
        "id", "text", "points", "open", "options", "solution", "credit", "implies", "names",
        "count", "uses", "covers", "distinct",
    }
)  # fmt: skip
_GIVEN_AWAY = {
    "query": ("alpha", "c", "q", "answer"),
    "heads": ("alpha", "c", "q", "answer"),
    "number": ("alpha", "c", "answer"),
    "matrix": ("alpha", "c", "answer"),
    "matrices": ("alpha", "c", "answer"),
    "condition": ("alpha", "c", "answer"),
    "statement": ("answer",),
}
"""Names that would turn an answer into the question itself."""
_COMPUTED = ("attention", "weights", "selfattention", "E", "P", "var", "std", "cov", "quantile")


_ALWAYS = ("e", "pi", "I", "infinity")
_REPEATED = "the answer repeats the question"


def _asked_for(expect: str) -> list[Call]:
    """Return what an answer should give: softmax(P A P^T) in softmax(P A P^T) X = answer."""
    tree = expect.tree if isinstance(expect, ParsedFormula) else None
    if not isinstance(tree, Compare) or Name("answer") not in (tree.left, tree.right):
        return []
    asked = tree.left if tree.right == Name("answer") else tree.right
    return [part for part in walk(asked) if isinstance(part, Call) and not bound_names(part)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Credit(Record):
    """Which share of the points a verdict earns."""

    proved: float = 1.0
    supported: float = 1.0
    undecided: float = 0.0
    """Nobody knows: such answers are listed for a person to look at."""
    refuted: float = 0.0
    repairs: dict[str, float] = field(default_factory=dict)
    """For a refuted answer that one repair of this kind would mend, such as scale."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AssignmentQuestion(Record):
    """One question."""

    id: str
    text: str
    points: float
    open: Kind
    claim: Claim | None
    """What is locked: the setting, and what must hold once the answer is put in."""
    options: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()
    credit: Credit = Credit()
    implies: str = ""
    """For a statement: what must follow from it, so that 1 = 1 earns nothing."""
    names: tuple[str, ...] = ()
    """For matrices: their names."""
    count: int = 2
    """For heads: how many."""
    uses: tuple[str, ...] = ()
    """The letters that an answer may use, if not all: beta and n, or mu for every mean."""
    covers: str = ""
    """For a condition: what it must allow, so that a single case is too little."""
    distinct: bool = False
    """For heads: no two queries may be the same."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The letters that an answer may use because the question declares them."""
        return () if self.claim is None else tuple(self.claim.where)

    def filled(self, answer: Mapping[str, ParsedFormula]) -> list[tuple[Claim, str]]:
        """Return the claims that an answer makes, each with what is wrong if it holds; or nothing.

        `answer` maps "answer", or the names of heads and matrices, to formulas.
        """
        claim = self.claim
        assert claim is not None
        formula = next(iter(answer.values()), ParsedFormula("", Name("")))
        match self.open:
            case "query":
                return [(claim.changed(query=formula), "")]
            case "heads":
                pairs = combinations(answer.values(), 2) if self.distinct else ()
                same = [claim.changed(expect=(f"({one}) = ({two})",)) for one, two in pairs]
                heads = claim.changed(heads=tuple(answer.values()))
                return [(heads, ""), *((one, "two of the queries are the same") for one in same)]
            case "number" | "matrix":
                value = claim.changed(let={**claim.let, "answer": formula})
                again = [
                    (claim.changed(expect=(f"({show(part)}) = ({show(asked)})",)), _REPEATED)
                    for part, asked in self.repeated(formula.tree)
                ]
                return [(value, ""), *again]
            case "matrices":
                return [(claim.changed(matrices={**claim.matrices, **answer}), "")]
            case "statement":
                holds = claim.changed(expect=(formula,))
                return [(holds, ""), (claim.changed(given=formula, expect=(self.implies,)), "")]
            case "condition":
                claims = [(claim.changed(given=formula), "")]
                if self.covers:
                    claims.append((claim.changed(given=self.covers, expect=(formula,)), ""))
                never = claim.changed(expect=(f"not ({formula})",), given=None)
                return [*claims, (never, "the condition can never be met")]
        return [(claim, "")]

    def repeated(self, tree: Expression) -> list[tuple[Expression, Expression]]:
        """Return the parts of an answer that may be what was asked for, written again."""
        assert self.claim is not None
        asked = [part for text in self.claim.expect for part in _asked_for(text)]
        own = [part for part in walk(tree) if isinstance(part, Call)]
        return [(one, two) for one in own for two in asked if one.function == two.function]

    def refusal(self, formula: ParsedFormula) -> str:
        """Return why a formula cannot be an answer: it uses what it should find; or nothing."""
        forbidden = _GIVEN_AWAY.get(self.open, ())
        for name in sorted(free_names(formula.tree)) if self.uses else ():
            if not {name, name.partition("_")[0]} & {*self.uses, *_ALWAYS}:
                return f"the answer uses {name}; it should use {', '.join(self.uses)} only"
        for name in sorted(names_in(formula.tree)):
            if name.partition("_")[0] in forbidden and name not in self.symbols:
                return f"the answer uses {name}, which it should give"
        for node in walk(formula.tree):
            if isinstance(node, Call) and self.open != "statement" and node.function in _COMPUTED:
                return f"the answer uses {node.function}( ), which it should give"
        return ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Assignment(Record):
    """Questions that belong together."""

    title: str
    text: str
    questions: tuple[AssignmentQuestion, ...]
    file: str = "assignment.toml"
    live: Live = "verdict"
    """What the page shows while somebody works on it."""
    handout: bool = False
    """Whether the solutions were taken out: it can be worked on, and not graded."""

    @property
    def points(self) -> float:
        """The points of all questions."""
        return sum(question.points for question in self.questions)

    def question(self, identifier: str) -> AssignmentQuestion | None:
        """Return a question by its id."""
        return next((one for one in self.questions if one.id == identifier), None)


def load_assignment(source: Path) -> Assignment:
    """Read an assignment; the first thing wrong is an error with file, line and column."""
    return assignment_of(read_text(str(source), source, None), str(source))


def assignment_of(text: str, file: str = "assignment.toml") -> Assignment:
    """Read the text of an assignment."""
    text = read_text(file, None, text.encode("utf-8", "surrogatepass"))
    blocks = list(sheet_blocks(file, text))
    if len(blocks) != 1 or blocks[0].problem is not None:
        problem = next((block.problem for block in blocks if block.problem), None)
        raise problem or FormulaError(file, "cannot be read as one TOML text")
    return _Reading(file, blocks[0].data, blocks[0].places).assignment()


def handout_text(text: str) -> str:
    """Return an assignment to hand out: the same questions, without solutions and comments."""
    assignment_of(text)
    (block,) = sheet_blocks("assignment.toml", text)
    data = dict(block.data)
    defaults = data.pop("defaults", {})
    questions = data.pop("question")
    parts = [toml_lines({**data, "handout": True})]
    if defaults:
        parts.append("[defaults]\n" + toml_lines(_without_solution(defaults)))
    parts += ["[[question]]\n" + toml_lines(_without_solution(table)) for table in questions]
    return "\n\n".join(parts) + "\n"


def _without_solution(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "solution"}


class _Reading:
    def __init__(self, file: str, data: Mapping[str, Any], places: Places) -> None:
        self.file = file
        self.data = data
        self.places = places
        self.handout = False

    def fail(
        self, path: tuple[str | int, ...], problem: str, expected: str, hint: str = ""
    ) -> None:
        line, column = self.places.of(path)
        raise FormulaError(
            self.file, problem, expected=expected, hint=hint, line=line, column=column
        )

    def assignment(self) -> Assignment:
        for key in self.data:
            if key not in ("title", "text", "live", "handout", "defaults", "question"):
                self.fail((key,), f"{shown(key)} is no field of an assignment",
                          "title, text, live, defaults or [[question]]")  # fmt: skip
        live, handout = self.data.get("live", "verdict"), self.data.get("handout", False)
        if live not in LIVE:
            self.fail(("live",), f"live is {shown(live)}", f"one of {', '.join(LIVE)}")
        if not isinstance(handout, bool):
            self.fail(("handout",), f"handout is {shown(handout)}", "true or false")
        self.handout = handout is True
        tables = self.data.get("question", [])
        if not isinstance(tables, list) or not 1 <= len(tables) <= MOST_QUESTIONS:
            self.fail(("question",), "has no questions", f"1 to {MOST_QUESTIONS} [[question]]")
        questions = tuple(self.question(place, table) for place, table in enumerate(tables))
        seen: set[str] = set()
        for place, question in enumerate(questions):
            label = plain_label(question.id)
            if label in seen:
                self.fail(("question", place, "id"), f"the id {question.id} is used twice",
                          "another label for every question")  # fmt: skip
            seen.add(label)
        return Assignment(
            title=self.words(("title",), self.data.get("title", "Assignment")),
            text=self.words(("text",), self.data.get("text", "")),
            questions=questions,
            file=self.file,
            live=live,
            handout=self.handout,
        )

    def words(self, path: tuple[str | int, ...], value: Any) -> str:
        if not isinstance(value, str) or len(value) > 20_000:
            self.fail(path, "is no text", "a text in quotes")
        return cast(str, value)

    def number(self, path: tuple[str | int, ...], value: Any, most: float) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not 0 <= value <= most:
            self.fail(path, f"is {shown(value)}", f"a number from 0 to {most:g}")
        return float(value)

    def question(self, place: int, table: Any) -> AssignmentQuestion:
        at = ("question", place)
        table = {**self.data.get("defaults", {}), **table}
        for key in table:
            if key not in _OWN and (key not in FIELDS or key in ("says", "source")):
                self.fail((*at, key), f"{shown(key)} is no field of a question",
                          "a field of a question or of a claim",
                          nearest(key, [*_OWN, *FIELDS]))  # fmt: skip
        identifier = self.words((*at, "id"), table.get("id", ""))
        if not plain_label(identifier):
            self.fail((*at, "id"), f"the id {shown(identifier)} has no letter or digit",
                      'a label such as "1b"')  # fmt: skip
        kind = table.get("open")
        if kind not in KINDS:
            self.fail((*at, "open"), f"open is {shown(kind)}", f"one of {', '.join(KINDS)}")
        solution = table.get("solution", [])
        solutions = solution if isinstance(solution, list) else [solution]
        question = AssignmentQuestion(
            id=identifier,
            text=self.words((*at, "text"), table.get("text", "")),
            points=self.number((*at, "points"), table.get("points", 1), MOST_POINTS),
            open=cast(Kind, kind),
            claim=None,
            options=tuple(map(str, table.get("options", ()))),
            solution=tuple(str(one) for one in solutions),
            credit=self.credit((*at, "credit"), table.get("credit", {})),
            implies=str(table.get("implies", "")),
            names=tuple(map(str, table.get("names", ()))),
            count=int(self.number((*at, "count"), table.get("count", 2), 16)),
            uses=tuple(map(str, table.get("uses", ()))),
            covers=str(table.get("covers", "")),
            distinct=table.get("distinct", False) is True,
        )
        self.check_kind(at, question, table)
        if kind in ("choice", "text"):
            return question
        return dataclasses.replace(question, claim=self.claim(at, question, table))

    def check_kind(
        self, at: tuple[str | int, ...], question: AssignmentQuestion, table: Any
    ) -> None:
        """Refuse a question that lacks what its kind needs."""
        solved = self.handout or question.solution[:1] in [(one,) for one in question.options]
        if question.open == "choice" and (len(question.options) < 2 or not solved):
            self.fail((*at, "options"), "the choice lacks options, or its solution is none of them",
                      'options = ["yes", "no"] and solution = "no"')  # fmt: skip
        if question.open == "statement" and not question.implies:
            self.fail((*at, "implies"), "a statement without `implies` could be 1 = 1",
                      'what must follow from it: implies = "alpha_a >= 0.99"')  # fmt: skip
        if question.open == "matrices" and not question.names:
            self.fail((*at, "names"), "the matrices have no names", 'names = ["K", "Q", "V"]')
        if question.open not in ("choice", "text", "statement") and "expect" not in table:
            self.fail((*at, "expect"), "nothing is expected of the answer",
                      'expect = "c ≈ (v_a + v_b)/2 within 0.05"')  # fmt: skip

    def credit(self, at: tuple[str | int, ...], table: Any) -> Credit:
        if not isinstance(table, dict):
            self.fail(at, "is no table", "{ supported = 0.8, repairs = { scale = 0.5 } }")
        shares: dict[str, Any] = {}
        for key, value in table.items():
            if key == "repairs" and isinstance(value, dict):
                shares[key] = {
                    kind: self.number((*at, key, kind), share, 1) for kind, share in value.items()
                }
            elif key in ("proved", "supported", "undecided", "refuted"):
                shares[key] = self.number((*at, key), value, 1)
            else:
                self.fail((*at, key), f"{shown(key)} earns nothing",
                          "proved, supported, undecided, refuted or repairs")  # fmt: skip
        return Credit(**shares)

    def claim(self, at: tuple[str | int, ...], question: AssignmentQuestion, table: Any) -> Claim:
        fields: dict[str, Any] = {"id": question.id, "expect": ("1 = 1",)}
        for key, value in table.items():
            if key in FIELDS and key != "id":
                try:
                    fields[key] = FIELDS[key](value)
                except FieldError as error:
                    self.fail((*at, key, *error.inside), error.problem, error.expected)
        claim = Claim(**fields)
        probe = {"number": "1", "matrix": "eye(2)"}.get(question.open)
        with_hole = claim if probe is None else claim.changed(let={**claim.let, "answer": probe})
        read, errors = read_formulas(with_hole)
        if not errors and question.covers:
            _, errors = read_formulas(claim.changed(given=question.covers))
        if errors:
            first = errors[0]
            self.fail((*at, *first.field), first.problem, first.expected, first.hint)
        return claim.changed(expect=read.expect)


def plain_label(text: str) -> str:
    """Return a label as it is compared: letters and digits only, small.

    >>> plain_label("1.(b) ii"), plain_label("Q1b")
    ('1bii', 'q1b')
    """
    return "".join(character for character in text.lower() if character.isalnum())


# What is handed out --------------------------------------------------------------------------

_TEX_SPECIAL = str.maketrans({"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "^": r"\^{}"})
MOST_WHEELS = 400
"""Bytes of an autograder are the instructor's own; their number is bounded all the same."""


def template_text(assignment: Assignment, suffix: str) -> str:
    """Return a template with the ending of its file: .md, .tex, .ipynb or .toml."""
    match suffix:
        case ".md":
            return _markdown(assignment)
        case ".tex":
            return _latex(assignment)
        case ".ipynb":
            return _notebook(assignment)
        case ".toml":
            return _toml(assignment)
    raise InputError(
        "--to",
        f"{suffix or 'a name without ending'} is no template",
        expected=".md, .tex, .ipynb, .toml",
    )


def _markdown(assignment: Assignment) -> str:
    parts = [f"# {assignment.title}", assignment.text.strip(), "Name:"]
    for question in assignment.questions:
        parts.append(f"## {question.id}")
        parts.append(f"*{question.text.strip()}* ({question.points:g} points)")
        if question.options:
            parts.append("Options: " + " / ".join(f"*{option}*" for option in question.options))
        parts.append("**Answer:**")
    return "\n\n".join(part for part in parts if part) + "\n"


def _latex(assignment: Assignment) -> str:
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath, amssymb}",
        r"\begin{document}",
        rf"\title{{{assignment.title.translate(_TEX_SPECIAL)}}} \maketitle",
    ]
    for question in assignment.questions:
        text = question.text.strip().translate(_TEX_SPECIAL)
        lines += [
            rf"\section*{{{question.id}}}",
            rf"\emph{{{text}}} ({question.points:g} points)",
            "",
            r"\textbf{Answer:}",
            "",
        ]
    return "\n".join([*lines, r"\end{document}", ""])


def _notebook(assignment: Assignment) -> str:
    def cell(text: str, tag: str = "") -> dict[str, object]:
        metadata = {"tags": [tag]} if tag else {}
        return {"cell_type": "markdown", "metadata": metadata, "source": text.splitlines(True)}

    cells = [cell(f"# {assignment.title}\n\n{assignment.text.strip()}")]
    for question in assignment.questions:
        cells.append(cell(f"## {question.id}\n\n*{question.text.strip()}*"))
        cells.append(cell("**Answer:**", question.id))
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _toml(assignment: Assignment) -> str:
    lines = [f"# {assignment.title}", "", "[answers]"]
    for question in assignment.questions:
        lines += [f"# {row}" for row in question.text.strip().splitlines()]
        lines += [f"# {KINDS[question.open]}", f"\"{question.id}\" = ''''''"]
    return "\n".join(lines) + "\n"


SETUP = """#!/usr/bin/env bash
# Installs Heedful for the autograder: from the wheels beside this file, without the network.
set -euo pipefail
cd /autograder/source
if [ -d wheels ]; then
  python3 -m pip install --no-index --find-links wheels heedful
else
  python3 -m pip install heedful
fi
"""
RUN = """#!/usr/bin/env bash
# Grades one submission: /autograder/submission in, /autograder/results/results.json out.
set -uo pipefail
root="${{AUTOGRADER_ROOT:-/autograder}}"
mkdir -p "$root/results"
if ! heed assignment grade "$root/source/assignment.toml" "$root/submission" \\
    --gradescope "$root/results/results.json" --feedback {feedback} > "$root/results/stdout" 2>&1
then
  printf '%s' '{{"score": 0, "output": "It could not be graded; a person will look."}}' \\
    > "$root/results/results.json"
fi
"""


def autograder_zip(assignment: Path, wheels: Path | None, feedback: str) -> bytes:
    """Return the zip that Gradescope takes: setup.sh, run_autograder, assignment, wheels."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN.format(feedback=feedback))):
            member = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            member.external_attr = 0o100755 << 16
            archive.writestr(member, text)
        archive.writestr("assignment.toml", assignment.read_bytes())
        if wheels is not None:
            files = sorted(wheels.glob("*.whl"))
            if not files or len(files) > MOST_WHEELS:
                raise InputError("--wheels", f"{wheels} holds {len(files)} wheels", expected="some")
            for file in files:
                archive.write(file, f"wheels/{file.name}")
    return buffer.getvalue()
