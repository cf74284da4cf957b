"""An adversary for the judge: claims made to deceive, and attacks on whatever the judge says.

    python tests/claims/adversary.py run FILE --claims 200000 --seed 0
    python tests/claims/adversary.py renew FILE...       after a mend: what was false or crashed
    python tests/claims/adversary.py summary FILE... --record benchmarks/results/adversary.json

`run` makes claims (`planted`, `composed`), judges each, attacks the verdict in the reference
meaning (`attacks`), and appends one line of JSON to a file. It can be stopped at any time and goes
on where the file ends; two runs with different seeds, or shards of one seed, may go on beside
each other. A claim that was met before is not judged again.

    proved     no case of the range may be false or undefined in the reference meaning
    refuted    the counterexample must not hold there
    repair     a repaired claim that is proved is attacked like any other
    supported  compared with the planted truth

A failure is shrunk and printed as a sheet. The command ends with 1 if anything false was proved
or refuted.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from attacks import Effort, attack, confirmed
from composed import composed
from planted import FAMILIES, Fields, Planted

from heedful.claims import Claim, Verdict, judge_claim
from heedful.errors import FormulaError

KINDS = ("false proved", "false refuted", "false repair", "false supported")
SERIOUS = KINDS[:3]
SMALL = Effort(cases=20, steps=12, pieces=40, noisy_cases=1)
"""What is spent on a claim whose truth nobody knows, if there are many of them."""
REPAIRED = 6
"""Of every so many claims one is also repaired, which costs several more verdicts."""
WHOLE = 50
"""Of every so many claims one is judged with the budgets that a user has."""
PATIENCE = 8.0
"""Seconds of processor time after which a claim is given up, judging and attack together."""

JUDGE = "heedful.claims."
QUICK = {
    JUDGE + "search.ARRAY_EXAMPLES": 5,
    JUDGE + "search.MOST_EVALUATIONS": 40,
    JUDGE + "search.CLIMBING_STEPS": 12,
    JUDGE + "search.MOST_STARTS": 1,
    JUDGE + "search.MOST_SHRINKING_TRIALS": 20,
    JUDGE + "search.BETWEEN": 8,
    JUDGE + "search.MEETING": 6,
    JUDGE + "points.NODES": 65,
    JUDGE + "points.REFINEMENTS": 8,
    JUDGE + "points.MOST_SECONDS": 0.04,
    JUDGE + "proofs.PRECISIONS": (128, 512),
    JUDGE + "compile.MOST_CONSTANTS": 3,
    JUDGE + "judge.PROPOSAL_SECONDS": 0.1,
    JUDGE + "judge.MOST_NARROW": 8,
    JUDGE + "proofs.MOST_BOXES": 200,
    JUDGE + "statistics.MOST_CELLS": 200,
    "reference.meaning.PIECES": 100,
}
"""Smaller budgets: what the judge says must be true with any of them. A false *supported* is told
apart at the end: `recheck` judges a sample of them with the budgets that a user has."""


@dataclass(frozen=True)
class Report:
    """What came of judging one claim."""

    planted: Planted
    word: str
    mistakes: tuple[str, ...] = ()
    detail: str = ""
    seconds: float = 0.0
    repaired: str = ""
    """The verdict of the repair, if there is one."""


@contextmanager
def budgets(quick: bool) -> Iterator[None]:
    """Let the judge work with the smaller budgets for a while."""
    before = []
    for name, value in QUICK.items() if quick else ():
        module, _, constant = name.rpartition(".")
        owner = importlib.import_module(module)
        before.append((owner, constant, getattr(owner, constant)))
        setattr(owner, constant, value)
    try:
        yield
    finally:
        for owner, constant, value in before:
            setattr(owner, constant, value)


def claim_at(seed: int, place: int, families: tuple[str, ...] = ()) -> Planted:
    """Return one claim of a seed: composed facts, random ones, and members of families."""
    rng = random.Random(f"{seed}/{place}")
    if families:
        return member_of(families[place % len(families)], rng)
    kind = rng.random()
    if kind < 0.86:
        return member_of("composed", rng)
    if kind < 0.92:
        return member_of("random", rng)
    return member_of(rng.choice([name for name in FAMILIES if name != "random"]), rng)


def member_of(name: str, rng: random.Random) -> Planted:
    """Return a claim of one family."""
    if name == "composed":
        fields, holds, kernel = composed(rng)
        return Planted(kernel, fields, holds)
    return Planted(name, *FAMILIES[name](rng))


# ---- judging and attacking ----


def mistakes_of(
    planted: Planted,
    seconds: float = 3.0,
    seed: int = 0,
    *,
    repair: bool = True,
    quick: bool = False,
) -> Report:
    """Judge one claim and return what the judge got wrong."""
    start = time.perf_counter()
    claim = Claim(id="attempt", **planted.fields)
    try:
        with budgets(quick):
            verdict = judge_claim(claim, seconds=seconds, repair=repair)
    except FormulaError as error:
        # Refused, which is no statement about its truth.
        return Report(planted, "refused", detail=str(error))
    rng = random.Random(seed)
    effort = SMALL if quick else Effort()
    if planted.true is not None and quick:
        # The truth is known; the attack is a check of the reference, and of how it was known.
        effort = Effort(cases=5, steps=0, pieces=8, noisy_cases=rng.random() < 0.1)
    with budgets(quick):
        wrong = _wrong(planted, claim, verdict, rng, effort)
    detail = " ".join([verdict.evidence.statement, *(f"{k}: {found}" for k, found in wrong)])
    spent = time.perf_counter() - start
    made = "" if verdict.repair is None else verdict.repair.verdict
    kinds = tuple(kind for kind, _ in wrong)
    return Report(planted, verdict.verdict, kinds, detail, spent, made)


def _wrong(
    planted: Planted, claim: Claim, verdict: Verdict, rng: random.Random, effort: Effort
) -> list[tuple[str, str]]:
    """Return the kinds of mistakes of a verdict, each with what shows it."""
    wrong = []
    if verdict.verdict == "proved":
        thresholds = verdict.evidence.numbers.get("beta_0") or {}
        from_ = Fraction(max(thresholds.values())) if thresholds else None
        found = "planted" if planted.true is False else attack(claim, rng, from_, effort)
        if found is not None:
            wrong.append(("false proved", found))
    if verdict.verdict == "refuted":
        noisy = claim.keys == "gaussian" or "normal" in str(claim.where)
        skipped = noisy and not effort.noisy_cases
        if planted.true is True or not (skipped or confirmed(claim, verdict)):
            wrong.append(("false refuted", "planted" if planted.true else "it holds there"))
    if verdict.verdict == "supported" and planted.true is False:
        wrong.append(("false supported", "planted"))
    if verdict.repair is not None and verdict.repair.verdict == "proved":
        repaired = claim.changed(**verdict.repair.changes)
        if found := attack(repaired, rng, None, SMALL):
            wrong.append(("false repair", f"{verdict.repair.changes}: {found}"))
    return wrong


# ---- shrinking ----


def simpler(fields: Fields) -> Iterator[Fields]:
    """Yield claims with a field left out, a range shortened, or a number made simple."""
    for name in fields:
        if name != "expect":
            yield {key: value for key, value in fields.items() if key != name}
    for table in ("where", "let", "covariance"):
        for name in fields.get(table, {}):
            rest = {key: value for key, value in fields[table].items() if key != name}
            yield {**fields, table: rest}
            value = fields[table][name]
            if isinstance(value, list) and len(value) > 1:
                yield {**fields, table: {**fields[table], name: value[0]}}
    (text,) = fields["expect"]
    for word in (" and ", " or ", " implies "):
        for part in text.split(word) if word in text else ():
            yield {**fields, "expect": (part.strip().removeprefix("(").removesuffix(")"),)}
    for found in re.finditer(r"(?<![\w.])\d+\.?\d*(?![\w.])", text):
        for simple in ("0", "1", "2"):
            if len(simple) < len(found[0]):
                changed = text[: found.start()] + simple + text[found.end() :]
                yield {**fields, "expect": (changed,)}


def shrunk(report: Report, seconds: float, rounds: int = 40) -> Report:
    """Return a smaller claim about which the judge makes the same mistake."""
    kind = report.mistakes[0]
    for _ in range(rounds):
        for fields in simpler(report.planted.fields):
            # Of a changed claim nobody knows the truth: only what an attack shows counts.
            try:
                tried = mistakes_of(Planted(report.planted.family, fields, None), seconds)
            except Exception:
                continue
            if kind in tried.mistakes:
                report = tried
                break
        else:
            break
    return report


def sheet_of(fields: Fields) -> str:
    """Return a claim as the text of a sheet."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(k)} = {text(v)}" for k, v in value.items()) + " }"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(text(part) for part in value) + "]"
        return json.dumps(value, ensure_ascii=False)

    lines = ["[[claim]]", 'id = "attempt"']
    lines += [f"{name} = {text(value)}" for name, value in fields.items()]
    return "\n".join(lines)


# ---- the long form: lines of JSON, one for each claim ----


class OutOfPatienceError(Exception):
    """A claim took too long."""


def judged_line(
    seed: int, place: int, planted: Planted, seconds: float
) -> tuple[dict[str, Any], Report]:
    """Judge one claim as the long form does, and return its line."""

    def give_up(*_: Any) -> None:
        raise OutOfPatienceError

    rng = random.Random(f"{seed}/{place}/budget")
    repair, whole = rng.random() < 1 / REPAIRED, rng.random() < 1 / WHOLE
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    start = time.perf_counter()
    try:
        report = mistakes_of(
            planted, 3.0 if whole else seconds, place, repair=repair, quick=not whole
        )
    except OutOfPatienceError:
        report = Report(planted, "given up")
    except Exception as error:
        # A crash is no false statement, but it must be seen.
        report = Report(planted, "crashed", detail=f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    line: dict[str, Any] = {
        "seed": seed,
        "place": place,
        "claim": digest(planted.fields),
        "family": planted.family,
        "true": planted.true,
        "verdict": report.word,
        "seconds": round(time.perf_counter() - start, 4),
    }
    if report.repaired:
        line["repair"] = report.repaired
    if report.mistakes:
        line["mistakes"] = report.mistakes
    if report.mistakes or report.word in ("crashed", "given up"):
        line |= {"fields": planted.fields, "detail": report.detail}
    return line, report


def digest(fields: Fields) -> str:
    """Return what tells claims apart."""
    content = json.dumps(fields, sort_keys=True, default=str).encode()
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file; the last may have been cut off by whoever stopped the run."""
    if path.exists():
        for text in path.read_text().splitlines():
            try:
                yield json.loads(text)
            except ValueError:
                continue


def run(options: argparse.Namespace) -> int:
    """Judge claims until the file holds as many as are wanted, or the time is over."""
    path: Path = options.file
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = list(lines_of(path))
    seen = {line["claim"] for line in lines}
    shard, shards = options.shard
    places = [line["place"] for line in lines if line["seed"] == options.seed]
    place = max((p for p in places if p % shards == shard), default=shard - shards)
    serious, start = 0, time.monotonic()
    with path.open("a") as file:
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            file.write("\n")
        while len(seen) < options.claims and time.monotonic() - start < 60 * options.minutes:
            place += shards
            planted = claim_at(options.seed, place, tuple(options.family))
            if digest(planted.fields) in seen:
                continue
            line, report = judged_line(options.seed, place, planted, options.seconds)
            seen.add(line["claim"])
            file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            file.flush()
            if report.mistakes or report.word == "crashed":
                serious += bool(set(report.mistakes) & set(SERIOUS))
                show(report, options.seconds)
            if len(seen) % 1000 == 0:
                rate = len(seen) / max(1e-9, time.monotonic() - start)
                print(f"# {len(seen)} claims, {rate:.1f} a second", file=sys.stderr, flush=True)
    return 1 if serious else 0


def show(report: Report, seconds: float) -> None:
    """Print a failure, and the smaller one that it shrinks to."""
    what = ", ".join(report.mistakes) or report.word
    print(f"\n# {what} ({report.planted.family}): {report.detail}")
    print(sheet_of(report.planted.fields), flush=True)
    if set(report.mistakes) & set(SERIOUS):
        small = shrunk(report, seconds, rounds=8)
        if small is not report:
            print(f"# shrunk: {small.detail}\n{sheet_of(small.planted.fields)}", flush=True)


WORDS = ("proved", "refuted", "supported", "undecided", "refused", "given up", "crashed")


def counts_of(lines: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many claims had each verdict, and how many of them were wrong."""
    counts = Counter[str](claims=len(lines))
    for line in lines:
        counts[line["verdict"]] += 1
        counts["of known truth"] += line["true"] is not None
        counts["known to be false"] += line["true"] is False
        counts["repairs"] += "repair" in line
        for kind in line.get("mistakes", ()):
            counts[kind] += 1
    order = ("claims", "of known truth", "known to be false", *WORDS, "repairs", *KINDS)
    return {name: counts[name] for name in order}


def summary(options: argparse.Namespace) -> int:
    """Count what the files hold, by family and verdict; write the counts if asked to."""
    lines = list({line["claim"]: line for path in options.file for line in lines_of(path)}.values())
    names = [*sorted({line["family"] for line in lines}), "all"]
    rows = [
        {"family": name, **counts_of([x for x in lines if x["family"] == name or name == "all"])}
        for name in names
    ]
    columns = ("claims", *WORDS, *KINDS)
    print(f"{'family':28}" + "".join(f"{name:>{max(9, len(name) + 2)}}" for name in columns))
    for row in rows:
        cells = (f"{row[name]:>{max(9, len(name) + 2)}}" for name in columns)
        print(f"{row['family']:28}" + "".join(cells))
    if options.record:
        record(options, lines, rows)
    return 1 if any(rows[-1][kind] for kind in SERIOUS) else 0


def recheck(options: argparse.Namespace) -> int:
    """Judge a sample of the false *supported* again, with the budgets that a user has."""
    lines = [x for path in options.file for x in lines_of(path) if "fields" in x]
    found = [x for x in lines if "false supported" in x.get("mistakes", ())]
    chosen = random.Random(0).sample(found, min(options.claims, len(found)))
    verdicts: Counter[str] = Counter()
    families: Counter[str] = Counter()
    for line in chosen:
        fields = {k: tuple(v) if k in ("expect", "heads") else v for k, v in line["fields"].items()}
        verdict = judge_claim(Claim(id="attempt", **fields), repair=False).verdict
        verdicts[verdict] += 1
        families[line["family"]] += verdict == "supported"
    print(f"{len(chosen)} of {len(found)}: {dict(verdicts)}")
    print(f"still supported: {dict(families.most_common())}")
    return 0


def renew(options: argparse.Namespace) -> int:
    """Judge again what a mend is about: lines with something serious, or a crash."""
    changed = 0
    for path in options.file:
        lines = list(lines_of(path))
        for number, line in enumerate(lines):
            wrong = bool(set(line.get("mistakes", ())) & set(SERIOUS))
            if wrong or line["verdict"] in ("crashed", "given up"):
                fields = {
                    key: tuple(value) if key in ("expect", "heads") else value
                    for key, value in line["fields"].items()
                }
                planted = Planted(line["family"], fields, line["true"])
                lines[number], report = judged_line(line["seed"], line["place"], planted, 2.0)
                lines[number] = {**lines[number], "claim": line["claim"], "again": True}
                changed += 1
                if set(report.mistakes) & set(SERIOUS) or report.word == "crashed":
                    show(report, 2.0)
        texts = (json.dumps(line, ensure_ascii=False, default=str) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts))
    print(f"{changed} lines judged again")
    return 0


def record(
    options: argparse.Namespace, lines: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    """Write the counts as the record that the docs cite."""
    from heedful.files import write_json

    commits = dict(text.split("=", 1) for text in options.commit)
    seeds = sorted({line["seed"] for line in lines})
    content = {
        "question": "What does the judge say that is false?",
        "date": datetime.now(UTC).date().isoformat(),
        "runs": [
            {
                "seed": seed,
                "judge": commits.get(str(seed), ""),
                **counts_of([line for line in lines if line["seed"] == seed]),
                "judged again": sum(line["seed"] == seed and "again" in line for line in lines),
            }
            for seed in seeds
        ],
        "budgets": {name.rpartition("claims.")[2]: value for name, value in QUICK.items()},
        "families": rows,
    }
    write_json(options.record, content)


def shard_of(text: str) -> tuple[int, int]:
    """Read "0/2", the first of two shards."""
    first, _, count = text.partition("/")
    return int(first), int(count)


def main(arguments: list[str] | None = None) -> int:
    """Attack the judge, or say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(required=True)
    runs = verbs.add_parser("run", help="judge and attack claims, and append what came of it")
    runs.set_defaults(verb=run)
    runs.add_argument("file", type=Path)
    runs.add_argument("--claims", type=int, default=1000, help="claims that the file is to hold")
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--shard", type=shard_of, default=(0, 1), metavar="I/K")
    runs.add_argument("--seconds", type=float, default=2.0, help="for each claim")
    runs.add_argument("--minutes", type=float, default=1e9, help="end after so long")
    runs.add_argument("--family", action="append", default=[], choices=[*FAMILIES, "composed"])
    sums = verbs.add_parser("summary", help="count what files hold")
    sums.set_defaults(verb=summary)
    sums.add_argument("file", type=Path, nargs="+")
    sums.add_argument("--record", type=Path, help="write the counts as JSON")
    sums.add_argument("--commit", action="append", default=[], metavar="SEED=COMMIT",
                      help="which judge a seed was run against")  # fmt: skip
    renews = verbs.add_parser("renew", help="judge again what was false or crashed, in place")
    renews.set_defaults(verb=renew)
    renews.add_argument("file", type=Path, nargs="+")
    again = verbs.add_parser("recheck", help="judge false supports again with whole budgets")
    again.set_defaults(verb=recheck)
    again.add_argument("file", type=Path, nargs="+")
    again.add_argument("--claims", type=int, default=50)
    options = parser.parse_args(arguments)
    return int(options.verb(options))


if __name__ == "__main__":
    sys.exit(main())
