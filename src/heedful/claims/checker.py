"""Claims from Python: one with `claim`, many with `check`, each within limits and in order.

    claim("alpha_a >= 0.9", query="6 k_a", keys=orthonormal(n=10))  →  Verdict
    check(["answers/"], workers=2)  →  CheckReport

Claims are judged in child processes (`heedful.workers`), on this machine or on a Dask cluster.
Verdicts come in the order of the claims, whoever finishes first. A claim that exceeds its time or
memory is `undecided`; what cannot be read is a problem, with its line and column.
"""

from __future__ import annotations

import atexit
import importlib
import itertools
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heedful.claims.compile import Domain, Interval, Large, Small, Values, domain_of
from heedful.claims.judge import MODEL_JUDGE, judge_claim
from heedful.claims.language import show
from heedful.claims.reasons import Reason
from heedful.claims.sheet.claim import Claim, ParsedFormula, map_formulas, reading
from heedful.claims.sheet.sheet import Sheet, catalog, find_sheets, setting_text
from heedful.claims.verdict import KINDS, Evidence, Verdict
from heedful.errors import FormulaError, HeedfulError, InputError, MissingPartError, RunError
from heedful.records import Record
from heedful.workers import Job, Pool, StartError, TaskLimits, TaskOutcome

WORDS = ("proved", "supported", "refuted", "undecided")
JUDGE = "heedful.claims.judge:judge_claim"
"""What judges: module and function."""
SHARE_OF_TIME = 0.8
"""A claim may plan with this share of its time, so that it ends with the evidence it has."""
REMEMBERED = 4_000
"""Answers that are kept: the same claim is not judged twice."""
CLUSTER_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[^\s/]+:\d{1,5}")
"""How a Dask scheduler is named."""
CONNECT_SECONDS = 10
CLUSTER_WORKER_SECONDS = 30

Progress = Callable[[int, int], None]
Answer = Verdict | InputError
"""A verdict; or, for a claim that cannot be read, the error."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SheetProblem(Record):
    """Something in a sheet that cannot be read; the other claims were checked."""

    sheet: str
    """The sheet it is in."""
    line: int | None
    """Line of the file, from 1."""
    column: int | None
    """Column of that line, from 1."""
    message: str
    """What is wrong, what was expected, and the way out; with file, line and column."""

    @classmethod
    def of(cls, sheet: str, error: FormulaError) -> SheetProblem:
        """Return the record of an error."""
        return cls(sheet=sheet, line=error.line, column=error.column, message=str(error))


@dataclass(frozen=True, eq=False, kw_only=True)
class SheetSummary(Record):
    """What a report says about a sheet as a whole."""

    name: str
    """How verdicts refer to it."""
    title: str
    """Its own title, or nothing."""
    source: str
    """Where its statements come from, or nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckReport(Record):
    """The verdicts on every claim of some sheets."""

    claims: tuple[Verdict, ...]
    """One verdict per claim, in the order of the sheets."""
    problems: tuple[SheetProblem, ...]
    """What could not be read."""
    counts: dict[str, int]
    """How many claims are proved, supported, refuted, undecided; and how many problems."""
    seconds: float
    """How long it all took."""
    sheets: tuple[SheetSummary, ...]
    """The sheets, in order."""
    kinds: dict[str, int]
    """How many are true or false as their source says it, or at a number that we chose."""
    disagreements: tuple[tuple[str, str], ...]
    """Pairs of claims, as "sheet/id", that contradict each other about one thing."""
    unlike: tuple[tuple[str, str], ...]
    """Pairs marked as contradicting each other that are about different things."""
    settings: dict[str, str]
    """What each claim, as "sheet/id", presumes: keys, query, ranges, as its sheet writes it."""
    skipped: tuple[str, ...] = ()
    """Of the catalog, what was not judged because its model is not here, and the way to it."""

    @property
    def exit_code(self) -> int:
        """0 when nothing is refuted, 1 when something is, 2 when something cannot be read."""
        if self.problems:
            return 2
        return 1 if self.counts["refuted"] else 0

    @classmethod
    def of(
        cls,
        sheets: Sequence[Sheet],
        verdicts: Sequence[Verdict],
        problems: Sequence[SheetProblem],
        seconds: float,
    ) -> CheckReport:
        """Put a report together."""
        counts = {word: sum(verdict.verdict == word for verdict in verdicts) for word in WORDS}
        return cls(
            claims=tuple(verdicts),
            problems=tuple(problems),
            counts=counts | {"problems": len(problems)},
            kinds={kind: sum(verdict.kind == kind for verdict in verdicts) for kind in KINDS},
            seconds=seconds,
            sheets=tuple(
                SheetSummary(name=sheet.name, title=sheet.title, source=sheet.source)
                for sheet in sheets
            ),
            disagreements=tuple(disagreements(sheets)),
            unlike=tuple(disagreements(sheets, about_one_thing=False)),
            settings={
                f"{sheet.name}/{claim.id}": setting_text(claim)
                for sheet in sheets
                for claim in sheet.claims
            },
            skipped=tuple(sheet.skipped for sheet in sheets if sheet.skipped),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Record):
    """One claim with its verdict: what was asked, and why the answer is what it is."""

    claim: Claim
    """The claim as it stands in its sheet."""
    verdict: Verdict
    """What the laboratory says about it."""
    reasons: tuple[Reason, ...] = ()
    """The reasoning, part by part: a proof's cases, the counterexample by hand, the repair."""


def disagreements(
    sheets: Sequence[Sheet], *, about_one_thing: bool = True
) -> list[tuple[str, str]]:
    """Return the pairs of claims, as "sheet/id", that are marked as contradicting each other.

    Two claims contradict each other only if they are about one thing: the same keys, query and
    condition, with symbols that may have the same value. Of others both may be right.
    """
    known = {f"{sheet.name}/{claim.id}": claim for sheet in sheets for claim in sheet.claims}
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for sheet in sheets:
        for claim in sheet.claims:
            here = f"{sheet.name}/{claim.id}"
            for other in claim.disagrees_with:
                there = other if "/" in other else f"{sheet.name}/{other}"
                if there in known and there != here:
                    pairs.setdefault(frozenset((here, there)), (here, there))
    return [
        pair
        for pair in pairs.values()
        if same_subject(known[pair[0]], known[pair[1]]) == about_one_thing
    ]


def same_subject(one: Claim, other: Claim) -> bool:
    """Tell whether two claims speak about the same thing, so that they can contradict each other.

    >>> first = Claim(id="1", expect=("alpha_a = 1",), keys="orthonormal", query="k_a")
    >>> same_subject(first, first.changed(expect=("alpha_a < 1",)))
    True
    >>> same_subject(first, first.changed(query="8 k_a"))
    False
    """
    shared = set(one.where) & set(other.where)
    return _presumed(one) == _presumed(other) and all(
        _overlap(domain_of(name, one.where[name]), domain_of(name, other.where[name]))
        for name in shared
    )


def _presumed(claim: Claim) -> dict[str, str]:
    """Return what a claim presumes, apart from ranges: formulas written in one way."""
    presumed: dict[str, str] = {}

    def note(field: tuple[str | int, ...], text: str) -> str:
        if field[0] not in ("expect", "let"):
            presumed[str(field)] = show(text.tree) if isinstance(text, ParsedFormula) else text
        return text

    map_formulas(claim, note)
    for name in ("keys", "means", "values", "scale"):
        value = getattr(claim, name)
        if not isinstance(value, tuple):
            presumed[name] = str(value)
    if claim.positions:
        presumed["positions"] = str(claim.positions.get("kind"))
    return presumed


def _overlap(one: Domain, other: Domain) -> bool:
    """Tell whether a symbol may have one value in both claims."""
    match one, other:
        case Values(first), Values(second):
            return bool(set(first) & set(second))
        case (Values(numbers), Interval() as interval) | (Interval() as interval, Values(numbers)):
            return any(map(interval.contains, numbers))
        case Interval(), Interval():
            return max(one.low, other.low) <= min(one.high, other.high)
        case (Large(), Interval(high=high)) | (Interval(high=high), Large()):
            return math.isinf(high)
        case (Small(), Interval(low=low)) | (Interval(low=low), Small()):
            return low <= 0
    return one == other


def check(
    paths: Sequence[str | Path],
    *,
    workers: int | None = None,
    claim_seconds: float = 20.0,
    claim_megabytes: int = 1024,
    progress: Progress | None = None,
    cluster: str | None = None,
) -> CheckReport:
    """Judge every claim of some sheets or folders of sheets; of the catalog if none is named."""
    limits = TaskLimits(seconds=claim_seconds, megabytes=claim_megabytes)
    sheets = find_sheets(paths) if paths else catalog()
    with Checker(workers=workers, limits=limits, cluster=cluster) as checker:
        return checker.check(sheets, progress)


@dataclass(frozen=True)
class Task:
    """One claim to be judged, with the name of its sheet."""

    sheet: str
    claim: Claim

    @property
    def content(self) -> tuple[str, str]:
        """What the answer depends on."""
        return (self.sheet, repr(self.claim))


class Checker:
    """Judging processes that stay warm between checks, and a memory of what they answered."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        limits: TaskLimits | None = None,
        cluster: str | None = None,
        judge: str = JUDGE,
    ) -> None:
        self.limits = limits or TaskLimits()
        self.cluster = cluster
        self.judge = judge
        self._workers = workers
        self._pool = _judging_pool(judge, self.limits, workers)
        self._model_pool: Pool | None = None
        self._answers: OrderedDict[tuple[str, str], Answer] = OrderedDict()
        self._guard = threading.Lock()

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every judging process."""
        self._pool.close()
        if self._model_pool is not None:
            self._model_pool.close()

    def check(self, sheets: Sequence[Sheet], progress: Progress | None = None) -> CheckReport:
        """Judge the claims of some sheets; what was judged before is not judged again."""
        start = time.perf_counter()
        tasks = [Task(sheet.name, claim) for sheet in sheets for claim in sheet.claims]
        answers = iter(self.answers(tasks, progress))
        verdicts: list[Verdict] = []
        problems: list[SheetProblem] = []
        for sheet in sheets:
            errors = list(sheet.problems)
            for claim in sheet.claims:
                answer = next(answers)
                if isinstance(answer, Verdict):
                    verdicts.append(answer)
                else:
                    errors.append(sheet.located(claim.id, answer))
            errors.sort(key=lambda error: error.line or 0)
            problems += [SheetProblem.of(sheet.name, error) for error in errors]
        return CheckReport.of(sheets, verdicts, problems, time.perf_counter() - start)

    def judge_one(self, sheet: Sheet, claim: Claim, progress: Progress | None = None) -> Verdict:
        """Judge one claim of a sheet, or raise what makes it unreadable, at its line."""
        (answer,) = self.answers([Task(sheet.name, claim)], progress)
        if isinstance(answer, Verdict):
            return answer
        raise sheet.located(claim.id, answer)

    def answers(self, tasks: Sequence[Task], progress: Progress | None = None) -> list[Answer]:
        """Return the answer to each task, in their order."""
        answers = {task.content: self.known(task) for task in tasks}
        new = [task for task in tasks if answers[task.content] is None]
        if self.cluster is None:
            new.sort(key=_is_about_a_model)
            outcomes = self._outcomes(new, progress)
        else:
            outcomes = outcomes_on_cluster(self.cluster, new, self.limits, self.judge, progress)
        for task, outcome in zip(new, outcomes, strict=True):
            answers[task.content] = self._remember(task, outcome)
        return [answer for task in tasks if (answer := answers[task.content]) is not None]

    def _outcomes(self, tasks: Sequence[Task], progress: Progress | None) -> list[TaskOutcome]:
        """Return the outcome of each task; those about a model come last."""
        outcomes: list[TaskOutcome] = []
        for _, group in itertools.groupby(tasks, key=_is_about_a_model):
            part, done = list(group), len(outcomes)

            def step(judged: int, _total: int, done: int = done) -> None:
                if progress is not None:
                    progress(done + judged, len(tasks))

            outcomes += self._pool_for(part[0]).map(part, progress=step)
        return outcomes

    def _pool_for(self, task: Task) -> Pool:
        """Return the processes for a claim: those for models have torch loaded when they begin.

        To load it takes many seconds on a busy machine, which are not the claim's.
        """
        if self.judge != JUDGE or not _is_about_a_model(task) or find_spec("torch") is None:
            return self._pool
        with self._guard:
            if self._model_pool is None:
                self._model_pool = _judging_pool(MODEL_JUDGE, self.limits, self._workers)
            return self._model_pool

    def submit(
        self, task: Task, reply: Callable[[Answer], None], *, urgency: int = 0
    ) -> Job | None:
        """Have a claim judged and `reply` called, from a thread; None if it is answered already.

        Lower urgencies come first. Cancel the job when nobody waits for the answer any more.
        """
        known = self.known(task)
        if known is not None:
            reply(known)
            return None
        return self._pool_for(task).submit(
            task, lambda outcome: reply(self._remember(task, outcome)), urgency=urgency
        )

    def known(self, task: Task) -> Answer | None:
        """Return the answer that was given to the same claim before, if any."""
        with self._guard:
            return self._answers.get(task.content)

    def _remember(self, task: Task, outcome: TaskOutcome) -> Answer:
        answer = _answer(task, outcome, self.limits)
        if not isinstance(outcome.value, StartError):
            with self._guard:
                self._answers[task.content] = answer
                while len(self._answers) > REMEMBERED:
                    self._answers.popitem(last=False)
        return answer


def _is_about_a_model(task: Task) -> bool:
    return task.claim.model is not None


def claim_judge(judge: str, seconds: float) -> Callable[[Task], Verdict]:
    """Return the function that a child process applies to each claim."""
    module, _, name = judge.partition(":")
    judge_claim = getattr(importlib.import_module(module), name)

    def work(task: Task) -> Verdict:
        verdict: Verdict = judge_claim(task.claim, sheet=task.sheet, seconds=seconds)
        return verdict

    return work


def _judging_pool(judge: str, limits: TaskLimits, workers: int | None = None) -> Pool:
    arguments = (judge, SHARE_OF_TIME * limits.seconds)
    return Pool("heedful.claims.checker:claim_judge", arguments, workers=workers, limits=limits)


def _answer(task: Task, outcome: TaskOutcome, limits: TaskLimits) -> Answer:
    """Return what is said about a claim, whatever became of the process that judged it."""
    if outcome.kind == "value":
        verdict: Verdict = outcome.value
        return replace(verdict, seconds=outcome.seconds)
    if outcome.kind == "error":
        error: HeedfulError = outcome.value
        if isinstance(error, InputError):
            return error
        return _undecided(task, "failure", str(error), outcome.seconds)
    if outcome.kind == "failure":  # a fault of ours must not look like a verdict
        statement = f"failure: the engine failed on this claim ({outcome.value}); please report it"
        return _undecided(task, "failure", statement, outcome.seconds)
    statement = {
        "time": f"time: not decided within {limits.seconds:g} s of processor time",
        "memory": f"memory: deciding it needs more than {limits.megabytes:,} MB",
        "crash": f"crash: the process that judged it ended ({outcome.value})",
    }[outcome.kind]
    return _undecided(task, "limit", statement, outcome.seconds)


def _undecided(task: Task, method: str, statement: str, seconds: float) -> Verdict:
    return Verdict(
        sheet=task.sheet,
        id=task.claim.id,
        says=task.claim.says,
        expects="; ".join(map(reading, task.claim.expect)),
        verdict="undecided",
        evidence=Evidence(method=method, statement=statement),
        seconds=seconds,
        source=task.claim.source,
        reading=task.claim.reading,
        number=task.claim.number,
    )


# ---- on a Dask cluster ----
#
# Each claim is a task of joblib's `dask` backend. Inside a Dask worker it is judged in a child
# process of that worker, so that the limits hold there too. The workers need Heedful installed;
# they are trusted with whatever runs there, as any Dask cluster is.

_pools = threading.local()


def outcomes_on_cluster(
    address: str,
    tasks: Sequence[Task],
    limits: TaskLimits,
    judge: str,
    progress: Progress | None = None,
) -> list[TaskOutcome]:
    """Return the outcome of each task, judged on the cluster at an address (tcp://host:port)."""
    import joblib

    client = _cluster_client(address)
    try:
        _wait_for_cluster(client, address)
        work = (joblib.delayed(_judge_on_cluster)(task, limits, judge) for task in tasks)
        outcomes: list[TaskOutcome] = []
        with joblib.parallel_config(backend="dask", client=client):
            for outcome in joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator")(work):
                outcomes.append(outcome)
                if progress is not None:
                    progress(len(outcomes), len(tasks))
        return outcomes
    except (OSError, TimeoutError) as error:
        raise RunError("--cluster", f"the cluster at {address} was lost ({error})") from None
    finally:
        client.close()


def _judge_on_cluster(task: Task, limits: TaskLimits, judge: str) -> TaskOutcome:
    """Judge one claim in a child of this Dask worker, which is kept for the next one."""
    pools: dict[Any, Pool] = _pools.__dict__.setdefault("pools", {})
    if (limits, judge) not in pools:
        pools[limits, judge] = _judging_pool(judge, limits, workers=1)
        atexit.register(pools[limits, judge].close)
    (outcome,) = pools[limits, judge].map([task])
    return outcome


def _cluster_client(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingPartError.of("--cluster", "distributed", "cluster") from None
    # A client that cannot read its address waits long, and leaves a traceback when it is gone.
    if not CLUSTER_ADDRESS.fullmatch(address):
        raise _no_scheduler(address, "this names no host and port")
    client: Any = distributed.Client  # it has no types
    try:
        return client(address, timeout=f"{CONNECT_SECONDS}s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise _no_scheduler(address, " ".join(str(error).split())[:200]) from None


def _no_scheduler(address: str, reason: str) -> InputError:
    return InputError(
        "--cluster",
        f"no scheduler answers at {address!r} ({reason})",
        expected="an address such as tcp://127.0.0.1:8786",
        hint="start one with: dask scheduler",
    )


def _wait_for_cluster(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CLUSTER_WORKER_SECONDS)
    except TimeoutError:
        raise InputError(
            "--cluster",
            f"the scheduler at {address} has no worker after {CLUSTER_WORKER_SECONDS} s",
            hint=f"start one with: dask worker {address}",
        ) from None


@dataclass(frozen=True)
class KeySetting:
    """Which keys a claim is about, and their sizes."""

    keys: Any
    where: dict[str, Any] = field(default_factory=dict)
    covariance: dict[str, str] = field(default_factory=dict)


def orthonormal(n: Any = None, d: Any = None) -> KeySetting:
    """Perpendicular keys of norm 1; n is a number, a list of numbers, or "2..64"."""
    return KeySetting("orthonormal", _sizes(n, d))


def unit(n: Any = None, d: Any = None) -> KeySetting:
    """Arbitrary keys of norm 1."""
    return KeySetting("unit", _sizes(n, d))


def arbitrary(n: Any = None, d: Any = None) -> KeySetting:
    """Arbitrary keys."""
    return KeySetting("any", _sizes(n, d))


def gaussian(n: Any = None, d: Any = None, **covariance: str) -> KeySetting:
    """Keys k_i ~ N(μ_i, Σ_i) with perpendicular unit means: gaussian(10, a="1/2 mu_a mu_a^T")."""
    return KeySetting("gaussian", _sizes(n, d), dict(covariance))


def claim(
    expect: str | Sequence[str],
    *,
    keys: KeySetting | Any = None,
    query: str | None = None,
    heads: Sequence[str] = (),
    where: dict[str, Any] | None = None,
    **fields: Any,
) -> Verdict:
    """Judge one claim; `fields` are those of `Claim`: given, let, scale, sequence, …

    >>> claim("c ≈ (v_a + v_b)/2", query="k_a + k_b", keys=orthonormal(n=10)).verdict
    'refuted'
    >>> keys = orthonormal(n=10)
    >>> claim("c ≈ (v_a + v_b)/2 within 0.01", query="6 (k_a + k_b)", keys=keys).verdict
    'proved'
    """
    setting = keys if isinstance(keys, KeySetting) else KeySetting(keys)
    formulas = (expect,) if isinstance(expect, str) else tuple(expect)
    written = Claim(
        id=fields.pop("id", "claim"),
        expect=formulas,
        keys=setting.keys,
        query=query,
        heads=tuple(heads),
        where={**setting.where, **(where or {})},
        covariance={**setting.covariance, **fields.pop("covariance", {})},
        **fields,
    )
    return judge_claim(written)


def _sizes(n: Any, d: Any) -> dict[str, Any]:
    return {name: size for name, size in (("n", n), ("d", d)) if size is not None}
