"""Grades: what an answer is, how it was read, what the judge says, and what that earns.

`grade` reads every submission, picks from each answer the formula that is its answer, puts it into
the locked claim of its question, and has all claims of the course judged at once in child
processes with limits. Equal claims are judged once. One bad file stops nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from pathlib import Path

from heedful.assignments.assignment import Assignment, AssignmentQuestion, load_assignment
from heedful.assignments.submission import StudentAnswer, Submission, read_submission
from heedful.claims.checker import Answer as Judged
from heedful.claims.checker import Checker, Task
from heedful.claims.language import parse, parse_value, show, substitute, tex
from heedful.claims.language.latex import declaration
from heedful.claims.language.tokens import subscripts
from heedful.claims.language.tree import (
    Binary,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    free_names,
    looks_like_an_index,
    map_children,
    rational,
)
from heedful.claims.sheet.claim import Claim, ParsedFormula
from heedful.claims.verdict import Verdict, Word
from heedful.errors import FormulaError, InputError
from heedful.records import Record
from heedful.workers import TaskLimits

LIMITS = TaskLimits(seconds=8.0, megabytes=1024)
"""For one claim of one answer."""
MOST_FORMULAS = 60
"""Of one answer that are read."""
MOST_STEPS = 24
"""Of one answer that are checked."""
ORDER = ("refuted", "undecided", "supported", "proved")
_NEGATED: Mapping[str, Word] = {
    "refuted": "proved", "proved": "refuted", "supported": "undecided", "undecided": "undecided",
}  # fmt: skip
"""What a verdict on the opposite says."""
_CONSTANTS = frozenset({"e", "pi", "infinity", "I", "n", "d", "T"})
_FAMILIES = frozenset({"k", "v", "mu", "alpha", "c", "q", "x", "u", "Sigma", "epsilon"})
_NOT = re.compile(r"\b(?:not|never|neither|nor|hardly|deny)\b|n['’]t\b", re.IGNORECASE)
_YES = re.compile(r"\b(?:true|holds|correct|proved|yes)\b", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:false|fails|wrong|refuted|incorrect|no|not true|does not hold)\b", re.IGNORECASE
)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadFormula(Record):
    """A formula of an answer, and how it was read."""

    written: str
    reading: str
    """In the letters of the language; nothing if it could not be read."""
    latex: str
    """The reading, typeset; nothing if it could not be read."""
    problem: str = ""
    """Why it could not be read."""
    skipped: str = ""
    """Why it need not be read: it says what a letter is, and states nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DerivationStep(Record):
    """One = or ≈ of a derivation."""

    reading: str
    verdict: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Grade(Record):
    """What one answer earned, and why."""

    question: str
    points: float
    of: float
    word: str
    """proved, supported, undecided, refuted; chosen, wrong, noted, unread, missing, to be read."""
    reading: str = ""
    """The answer as it was read."""
    latex: str = ""
    reason: str = ""
    """Why it earned what it earned."""
    verdict: Verdict | None = None
    """The verdict that decided."""
    formulas: tuple[ReadFormula, ...] = ()
    steps: tuple[DerivationStep, ...] = ()
    first_wrong: str = ""
    """The first step that does not follow."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class GradedSubmission(Record):
    """One student."""

    student: str
    grades: tuple[Grade, ...]
    submission: Submission

    @property
    def points(self) -> float:
        """All points earned."""
        return sum(grade.points for grade in self.grades)


@dataclass(frozen=True, eq=False, kw_only=True)
class CourseGrades(Record):
    """A course: every student, every question."""

    assignment: Assignment
    students: tuple[GradedSubmission, ...]
    groups: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """For each question the wrong answers that several gave: the answer, and how many."""
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Picked:
    """The formulas that are the answer to a question, or why there are none."""

    formulas: Mapping[str, ParsedFormula] = field(default_factory=dict)
    word: str = ""
    reason: str = ""
    choice: str = ""
    notes: tuple[str, ...] = ()


def read_formula(text: str, question: AssignmentQuestion, *, latex: bool) -> ParsedFormula:
    """Read one formula of an answer, a statement or a value."""
    names = (*question.symbols, *_members(question))
    written = text if "\\" in text or not latex else f"${text}$"
    functions = _functions(question)
    try:
        return ParsedFormula(text, parse(written, functions=functions, names=names))
    except FormulaError as error:
        if "is a value" not in error.problem:
            raise
        return ParsedFormula(text, parse_value(written, functions=functions, names=names))


def _members(question: AssignmentQuestion) -> set[str]:
    """Return the members that the question speaks of, such as j: no answer binds them."""
    if question.claim is None:
        return set()
    texts = (*question.claim.expect, question.claim.query or "", question.implies)
    return {member for text in texts for member in re.findall(r"_\{?([a-z])\b", text)}


def _functions(question: AssignmentQuestion) -> dict[str, int]:
    if question.claim is None:
        return {}
    heads = (key.partition("(") for key in question.claim.let if "(" in key)
    return {name.strip(): inside.count(",") + 1 for name, _, inside in heads}


def pick(
    question: AssignmentQuestion, answer: StudentAnswer
) -> tuple[Picked, list[ReadFormula], list[Expression]]:
    """Return the answer in a text, all its formulas as they were read, and its statements."""
    if question.open == "text":
        return Picked(word="to be read", reason="a person reads this answer"), [], []
    if question.open in ("choice", "verdict"):
        return _chosen(question, answer.text), [], []
    read: list[ReadFormula] = []
    trees: list[Expression] = []
    for text, latex in (answer.formulas or _bare_line(answer.text))[:MOST_FORMULAS]:
        try:
            formula = read_formula(text, question, latex=latex)
        except FormulaError as error:
            declares = declaration(text)
            if declares:
                read.append(ReadFormula(written=text, reading="", latex="", skipped=declares))
                continue
            problem = "; ".join(part for part in (error.problem, error.hint) if part)
            read.append(ReadFormula(written=text, reading="", latex="", problem=problem))
            continue
        read.append(
            ReadFormula(
                written=text, reading=show(formula.tree, "unicode"), latex=tex(formula.tree)
            )
        )
        trees.append(formula.tree)
    if not read:
        return Picked(word="unread", reason="no formula was found in the answer"), read, trees
    return _picked(question, trees, read), read, trees


def _bare_line(text: str) -> tuple[tuple[str, bool], ...]:
    """Return an answer of one line without any sign of mathematics around it, as a formula."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"\W*answer\W*$", line, re.IGNORECASE)]
    return ((lines[0], "\\" in lines[0]),) if len(lines) == 1 and len(lines[0]) < 300 else ()


def _chosen(question: AssignmentQuestion, text: str) -> Picked:
    """Return the option that a text names."""
    if question.open == "verdict":
        negative = _NO.search(text)
        positive = _YES.search(_NO.sub(" ", text))
        if bool(negative) == bool(positive):
            return Picked(word="unread", reason="the answer says neither true nor false, or both")
        if _denied(text, (negative or positive or ["true"])[0]):
            return Picked(word="unread", reason="the answer says true or false after a `not`")
        return Picked(choice="false" if negative else "true")
    named = [
        option
        for option in question.options
        if re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE)
    ]
    if len(named) != 1:
        what = "none of the options" if not named else f"more than one option: {', '.join(named)}"
        return Picked(word="unread", reason=f"the answer names {what}")
    if _denied(text, named[0]):
        return Picked(word="unread", reason=f"the answer says {named[0]} after a `not`")
    return Picked(choice=named[0])


def _denied(text: str, word: str) -> bool:
    """Tell whether a negation stands before a word in its sentence: nobody can tell what is meant.

    >>> _denied("I would not say no", "no"), _denied("No, they are not the same.", "no")
    (True, False)
    """
    for sentence in re.split(r"[.!?;\n]", text):
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence, re.IGNORECASE)
        if found is not None:
            return _NOT.search(sentence[: found.start()]) is not None
    return False


def _links(tree: Expression) -> list[Expression]:
    """Return the single statements of a conjunction, in order."""
    if isinstance(tree, Logic) and tree.operator == "and":
        return [*_links(tree.left), *_links(tree.right)]
    if isinstance(tree, ForAll):
        return [replace(tree, body=link) for link in _links(tree.body)]
    if isinstance(tree, Logic) and tree.operator == "implies":  # q = β k_a, where β ≫ 0
        return [replace(tree, right=link) for link in _links(tree.right)]
    return [tree]


def _definitions(trees: Sequence[Expression]) -> dict[str, list[Expression]]:
    """Return what each name is set to: `q = …`, in order, the last link of a chain."""
    found: dict[str, list[Expression]] = {}
    for tree in trees:
        name = ""
        last: Expression | None = None
        for conditional in _links(tree):
            link = conditional.right if isinstance(conditional, Logic) else conditional
            if not isinstance(link, Compare) or link.operator not in ("=", "~"):
                name = ""
            elif isinstance(link.left, Name) and (link.left != last or not name):
                name = link.left.text
                found.setdefault(name, []).append(link.right)
                last = link.right
            elif name and link.left == last:
                last = link.right
                # x = y ≈ z gives x as y; z is only near it.
                if link.operator == "=" or isinstance(found[name][-1], Name):
                    found[name][-1] = link.right
    return found


def _picked(
    question: AssignmentQuestion, trees: list[Expression], read: list[ReadFormula]
) -> Picked:
    wanted = _wanted(question)
    if question.open in ("statement", "condition"):
        statements = [tree for tree in trees if _is_statement(tree)]
        if not statements:
            return Picked(word="unread", reason="no statement was found in the answer")
        return _checked(question, {"answer": _without_tolerances(statements[-1])}, ())
    definitions = _definitions(trees)
    values = [tree for tree in trees if not _is_statement(tree)]
    answer: dict[str, Expression] = {}
    notes: list[str] = []
    for name in wanted:
        given = definitions.get(name, [])
        if question.open in ("number", "matrix") and not given:
            asked = [one for key, one in definitions.items() if key in _asked(question)]
            given = [value for several in asked or definitions.values() for value in several]
        if not given and len(wanted) == 1:
            given = [value for value in values if question.open != "query" or _is_vector(value)]
        if not given:
            problem = next((one.problem for one in read if one.problem), "")
            reason = f"no formula {name} = … was found" + (
                f"; unread: {problem}" if problem else ""
            )
            return Picked(word="unread", reason=reason)
        if len({show(one) for one in given}) > 1:
            notes.append(f"{name} is given {len(given)} times; the last one counts")
        answer[name] = given[-1]
    return _checked(question, answer, tuple(notes))


def _asked(question: AssignmentQuestion) -> set[str]:
    """Return the names that the locked statement speaks of: alpha_a in alpha_a = answer."""
    assert question.claim is not None
    return {name for text in question.claim.expect for name in re.findall(r"\w+", text)}


def _is_vector(tree: Expression) -> bool:
    """Tell whether a value is made of keys or means, as a query is."""
    names = free_names(tree)
    return "q" not in names and any(name.startswith(("k_", "mu_")) for name in names)


def _wanted(question: AssignmentQuestion) -> tuple[str, ...]:
    match question.open:
        case "query":
            return ("q",)
        case "heads":
            return tuple(f"q_{place + 1}" for place in range(question.count))
        case "matrices":
            return question.names
    return ("answer",)


def _is_statement(tree: Expression) -> bool:
    return isinstance(tree, Compare | Logic | ForAll) or (
        not isinstance(tree, Name | Number | Binary) and getattr(tree, "operator", "") == "not"
    )


def _without_tolerances(tree: Expression) -> Expression:
    """Return a statement without its `within`: the tolerance is the assignment's."""
    if isinstance(tree, Compare):
        return replace(tree, within=None)
    return map_children(tree, _without_tolerances)


def _checked(
    question: AssignmentQuestion, answer: Mapping[str, Expression], notes: tuple[str, ...]
) -> Picked:
    """Return an answer with its letters renamed to those declared, or why it cannot count."""
    formulas: dict[str, ParsedFormula] = {}
    unknown: set[str] = set()
    for name, tree in answer.items():
        unknown |= _unknown(question, tree)
        formulas[name] = ParsedFormula(show(tree), tree)
    used = {one for tree in answer.values() for one in free_names(tree)}
    declared = question.claim.where if question.claim is not None else {}
    spare = [
        symbol
        for symbol, values in declared.items()
        if symbol not in used | _CONSTANTS | _locked_names(question)
        and not str(values).startswith(("vector", "matrix", "permutation"))
    ]
    if len(unknown) == 1 and len(spare) == 1:
        (letter,) = unknown
        renamed = {
            name: substitute(formula.tree, {letter: Name(spare[0])})
            for name, formula in formulas.items()
        }
        formulas = {name: ParsedFormula(show(tree), tree) for name, tree in renamed.items()}
        notes = (*notes, f"{letter} is read as {spare[0]}, which the question declares")
    for formula in formulas.values():
        refusal = question.refusal(formula)
        if refusal:
            return Picked(formulas=formulas, word="wrong", reason=refusal, notes=notes)
    return Picked(formulas=formulas, notes=notes)


def _unknown(question: AssignmentQuestion, tree: Expression) -> set[str]:
    """Return the letters of an answer that nobody declares."""
    known = {*question.symbols, *_CONSTANTS, *_members(question), "a", "b", "i", "j"}
    declared = {
        key.partition("(")[0].strip() for key in (question.claim.let if question.claim else ())
    }
    return {
        name
        for name in free_names(tree)
        if name not in known | declared and name.partition("_")[0] not in _FAMILIES
    }


def _locked_names(question: AssignmentQuestion) -> set[str]:
    """Return the names that the locked part of a question uses."""
    claim = question.claim
    assert claim is not None
    texts = [*claim.expect, claim.given or "", claim.query or "", question.implies]
    for table in (claim.covariance, claim.let, claim.matrices, claim.where):
        texts += [str(value) for value in table.values()]
    texts += [str(claim.keys), str(claim.values), str(claim.means), *claim.sequence, *claim.heads]
    return {name for text in texts for name in re.findall(r"[^\W\d_]+", text)}


def _needed(question: AssignmentQuestion, picked: Picked, claim: Claim) -> dict[str, object]:
    """Return the ranges of the letters that are used: a repair may bring in a scale of its own."""
    used = {name for formula in picked.formulas.values() for name in free_names(formula.tree)}
    used |= _locked_names(question) | _CONSTANTS
    return {name: values for name, values in claim.where.items() if name in used}


def _scaled(tree: Expression) -> Expression:
    """Return an expression without a factor that is a number: 3 (k_a + k_b) is k_a + k_b."""
    match tree:
        case Binary("*", left, right) if rational(left) is not None:
            return _scaled(right)
        case Binary("*", left, right) if rational(right) is not None:
            return _scaled(left)
        case Binary("/", left, right) if rational(right) is not None:
            return _scaled(left)
        case Binary("+", left, right) if show(right) < show(left):
            return Binary("+", right, left)
        case Number(value) if value != 0:
            return Number(Fraction(value))
    return tree


class _Grader:
    """Collects every claim of the course, has them judged, and hands out the points."""

    def __init__(self, assignment: Assignment, checker: Checker, *, steps: bool) -> None:
        self.assignment = assignment
        self.checker = checker
        self.steps = steps
        self.answers: dict[tuple[str, str], Judged] = {}

    def judge(
        self, claims: Sequence[Claim], progress: Callable[[int, int], None] | None = None
    ) -> None:
        tasks = {repr(claim): Task("assignment", claim) for claim in claims}
        given = self.checker.answers(list(tasks.values()), progress)
        for task, answer in zip(tasks.values(), given, strict=True):
            self.answers[task.content] = answer

    def of(self, claim: Claim) -> Judged:
        return self.answers[Task("assignment", claim).content]

    def claims(self, question: AssignmentQuestion, picked: Picked) -> list[tuple[Claim, str]]:
        if picked.word or question.claim is None:
            return []
        return [
            (claim.changed(where=_needed(question, picked, claim)), wrong)
            for claim, wrong in question.filled(picked.formulas)
        ]

    def step_claims(
        self, question: AssignmentQuestion, picked: Picked, trees: Sequence[Expression]
    ) -> list[tuple[Expression, Claim]]:
        """Return every = and ≈ of a derivation as a claim in the setting of its question."""
        if not self.steps or question.claim is None or picked.word:
            return []
        base = self.claims(question, picked)[0][0].changed(given=question.claim.given)
        found: list[tuple[Expression, Claim]] = []
        for tree in trees:
            # A formula with one relation may hold under a condition in the text around it; a
            # chain of them is a derivation.
            if not _is_statement(tree) or len(_links(tree)) < 2:
                continue
            for link in _links(tree):
                said = link.body if isinstance(link, ForAll) else link
                names = {name.partition("_")[0] for name in free_names(said)}
                below = {part for name in free_names(link) for part in subscripts(name)}
                if any(map(looks_like_an_index, below - _members(question))):
                    continue  # which i are meant may stand in the text
                if not isinstance(said, Compare) or said.operator not in ("=", "~"):
                    continue
                if isinstance(said.left, Name) and said.left.text in _wanted(question):
                    continue  # the answer itself
                if names - {*question.symbols, *_CONSTANTS, *_FAMILIES, "i", "j", "a", "b"}:
                    continue
                said = _without_tolerances(link)
                claim = base.changed(id="step", expect=(show(said),), says="")
                found.append((said, claim))
        return found[:MOST_STEPS]

    def take(self, question: AssignmentQuestion, answer: StudentAnswer) -> _Parts:
        """Return what an answer claims."""
        picked, read, trees = pick(question, answer)
        steps = self.step_claims(question, picked, trees)
        return _Parts(picked, read, self.claims(question, picked), steps)

    def grade(self, submission: Submission, parts: Mapping[str, _Parts]) -> GradedSubmission:
        grades = [
            self.grade_one(question, parts.get(question.id))
            for question in self.assignment.questions
        ]
        return GradedSubmission(
            student=submission.student, grades=tuple(grades), submission=submission
        )

    def grade_one(self, question: AssignmentQuestion, parts: _Parts | None) -> Grade:
        if parts is None:
            return Grade(
                question=question.id, points=0, of=question.points, word="missing",
                reason="no answer was found under this label",
            )  # fmt: skip
        picked = parts.picked
        texts = "; ".join(
            f"{name} = {show(one.tree, 'unicode')}"
            if name != "answer"
            else show(one.tree, "unicode")
            for name, one in picked.formulas.items()
        )
        latex = r",\quad ".join(
            (f"{tex(Name(name))} = " if name != "answer" else "") + tex(one.tree)
            for name, one in picked.formulas.items()
        )
        base = Grade(
            question=question.id, points=0, of=question.points, word=picked.word,
            reading=texts or picked.choice, latex=latex, reason=picked.reason,
            formulas=tuple(parts.read), notes=picked.notes,
        )  # fmt: skip
        if picked.word:
            return base
        if question.open == "choice":
            right = picked.choice == question.solution[0]
            return self.decided(base, question, right)
        word, verdict, reason = self.result(parts.claims)
        if question.open == "verdict":
            return self.verdict_given(base, question, picked.choice, word, verdict)
        share, why = _share(question, word, verdict)
        steps = tuple(self.step(tree, claim) for tree, claim in parts.steps)
        wrong = next((step.reading for step in steps if step.verdict == "refuted"), "")
        return replace(
            base, points=round(share * question.points, 4), word=word, verdict=verdict,
            reason=reason or why, steps=steps, first_wrong=wrong,
        )  # fmt: skip

    def step(self, tree: Expression, claim: Claim) -> DerivationStep:
        answer = self.of(claim)
        word = answer.verdict if isinstance(answer, Verdict) else "unread"
        return DerivationStep(reading=show(tree, "unicode"), verdict=word)

    def decided(self, grade: Grade, question: AssignmentQuestion, right: bool) -> Grade:
        return replace(
            grade, points=question.points if right else 0.0, word="chosen" if right else "wrong",
            reason="" if right else "another option is right",
        )  # fmt: skip

    def verdict_given(
        self,
        grade: Grade,
        question: AssignmentQuestion,
        choice: str,
        word: str,
        verdict: Verdict | None,
    ) -> Grade:
        if word == "undecided":
            return replace(
                grade, word="undecided", verdict=verdict, reason="the claim itself is undecided"
            )
        graded = self.decided(grade, question, (choice == "true") == (word != "refuted"))
        return replace(graded, verdict=verdict, reason=f"the claim is {word}")

    def result(self, claims: Sequence[tuple[Claim, str]]) -> tuple[str, Verdict | None, str]:
        """Return the weakest verdict on the claims of an answer."""
        worst: tuple[int, str, Verdict | None, str] = (len(ORDER), "undecided", None, "")
        for claim, wrong in claims:
            answer = self.of(claim)
            if not isinstance(answer, Verdict):
                why = f"{answer.problem}; {answer.hint}".rstrip("; ")
                worst = min(worst, (-1, "unread", None, why), key=itemgetter(0))
                continue
            word, reason = answer.verdict, ""
            if wrong:
                word = _NEGATED[word]
                reason = {"refuted": wrong, "undecided": f"it may be that {wrong}"}.get(word, "")
            worst = min(worst, (ORDER.index(word), word, answer, reason), key=itemgetter(0))
        return worst[1], worst[2], worst[3]


@dataclass(frozen=True, eq=False)
class _Parts:
    """What was taken from one answer: its formulas, and the claims they make."""

    picked: Picked
    read: list[ReadFormula]
    claims: list[tuple[Claim, str]]
    steps: list[tuple[Expression, Claim]]

    @property
    def every(self) -> list[Claim]:
        """Everything that is to be judged."""
        return [*(claim for claim, _ in self.claims), *(claim for _, claim in self.steps)]


def _share(question: AssignmentQuestion, word: str, verdict: Verdict | None) -> tuple[float, str]:
    credit = question.credit
    if word == "refuted" and verdict is not None and verdict.repair is not None:
        share = credit.repairs.get(verdict.repair.kind, 0.0)
        if share > credit.refuted:
            return share, f"only its {verdict.repair.kind} has to be mended"
    return float(getattr(credit, word, 0.0)), ""


def grade(
    assignment: Assignment,
    paths: Sequence[Path],
    *,
    workers: int | None = None,
    limits: TaskLimits = LIMITS,
    steps: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> CourseGrades:
    """Grade submissions: folders, zips or files, one a student."""
    import time

    if assignment.handout:
        raise InputError(
            assignment.file, "is a handout without solutions", expected="the assignment itself"
        )
    start = time.perf_counter()
    submissions = [read_submission(path, assignment) for path in paths]
    with Checker(workers=workers, limits=limits) as checker:
        grader = _Grader(assignment, checker, steps=steps)
        taken = [
            {
                question.id: grader.take(question, submission.answers[question.id])
                for question in assignment.questions
                if question.id in submission.answers
            }
            for submission in submissions
        ]
        every = [part for parts in taken for part in parts.values()]
        grader.judge([claim for part in every for claim in part.every], progress)
        students = tuple(
            grader.grade(submission, parts)
            for submission, parts in zip(submissions, taken, strict=True)
        )
    return CourseGrades(
        assignment=assignment,
        students=students,
        groups=_groups(assignment, taken, students),
        seconds=time.perf_counter() - start,
    )


def grade_answer(
    assignment: Assignment, question: AssignmentQuestion, text: str, checker: Checker
) -> Grade:
    """Grade one answer, as it is being written."""
    grader = _Grader(assignment, checker, steps=True)
    answer = StudentAnswer(question=question.id, file="answer", line=1, text=text)
    parts = grader.take(question, answer)
    if question.open in ("choice", "verdict"):  # two clicks would find out what is right
        picked = parts.picked
        return Grade(
            question=question.id, points=0, of=question.points, word=picked.word or "noted",
            reading=picked.choice, reason=picked.reason,
        )  # fmt: skip
    grader.judge(parts.every)
    return grader.grade_one(question, parts)


def grade_text(assignment: Path | Assignment, question: str, text: str) -> Grade:
    """Grade the answer to one question, given as text: for a test in a notebook."""
    whole = assignment if isinstance(assignment, Assignment) else load_assignment(assignment)
    asked = whole.question(question)
    if asked is None:
        raise InputError("question", f"{question[:40]} is not in {whole.file}")
    if whole.handout:
        raise InputError(whole.file, "is a handout without solutions")
    with Checker(workers=1, limits=TaskLimits(seconds=60.0)) as checker:
        grader = _Grader(whole, checker, steps=True)
        parts = grader.take(
            asked, StudentAnswer(question=question, file="answer", line=1, text=text)
        )
        grader.judge(parts.every)
        return grader.grade_one(asked, parts)


def _groups(
    assignment: Assignment,
    taken: Sequence[Mapping[str, _Parts]],
    students: Sequence[GradedSubmission],
) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return for each question the wrong answers, grouped up to the scale and the letters."""
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for place, question in enumerate(assignment.questions):
        counts: Counter[str] = Counter()
        for parts, student in zip(taken, students, strict=True):
            grade = student.grades[place]
            part = parts.get(question.id)
            if part is None or grade.points >= grade.of or grade.word == "to be read":
                continue
            trees = [_scaled(one.tree) for one in part.picked.formulas.values()]
            text = "; ".join(show(tree, "unicode") for tree in trees)
            counts[text or part.picked.choice or grade.word] += 1
        found[question.id] = tuple(counts.most_common(10))
    return found


def check_solutions(
    assignment: Assignment,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CourseGrades:
    """Grade the assignment's own solutions, as if a student had handed them in."""
    with Checker(workers=workers, limits=TaskLimits(seconds=30.0)) as checker:
        grader = _Grader(assignment, checker, steps=False)
        parts: dict[str, _Parts] = {}
        answers: dict[str, StudentAnswer] = {}
        for question in assignment.questions:
            if not question.solution:
                continue
            names = _wanted(question) if question.open in ("heads", "matrices") else ("",)
            lines = zip(names, question.solution, strict=False)
            text = "\n".join(f"`{name} = {one}`" if name else f"`{one}`" for name, one in lines)
            if question.open in ("choice", "verdict"):
                text = question.solution[0]
            answer = StudentAnswer(question=question.id, file=assignment.file, line=1, text=text)
            picked, read, _ = pick(question, answer)
            parts[question.id] = _Parts(picked, read, grader.claims(question, picked), [])
            answers[question.id] = answer
        grader.judge([claim for part in parts.values() for claim, _ in part.claims], progress)
        submission = Submission(
            student="solutions", answers=answers, missing=(), read=(assignment.file,)
        )
        return CourseGrades(assignment=assignment, students=(grader.grade(submission, parts),))
