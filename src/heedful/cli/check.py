"""`heed check` and `heed explain`: is what a sheet says about attention true, and why?"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.options import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.claims.checker import Checker, CheckReport
    from heedful.claims.sheet import Sheet

POLL_SECONDS = 0.5

Exports = dict[str, Path]
"""Which files to write: "junit", "csv" and "html" with their paths."""


def check(
    *paths: Annotated[Path, Parameter(help="Sheets (.toml) or folders. [default: the catalog]")],
    only: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, help='Only these claims: "id" or "sheet/id".'),
    ] = None,
    workers: Annotated[
        int | None, Parameter(help="Number of processes. [default: one per core]")
    ] = None,
    seconds: Annotated[float, Parameter(help="Time limit for one claim.")] = 20.0,
    megabytes: Annotated[int, Parameter(help="Memory limit for one claim.")] = 1024,
    cluster: Annotated[
        str | None, Parameter(help="Judge on a Dask cluster, such as tcp://127.0.0.1:8786.")
    ] = None,
    watch: Annotated[
        bool, Parameter(negative="", help="Check again whenever a sheet changes, until Ctrl-C.")
    ] = False,
    junit: Annotated[Path | None, Parameter(help="Also write JUnit XML to this file.")] = None,
    csv: Annotated[Path | None, Parameter(help="Also write CSV, for grade books.")] = None,
    html: Annotated[Path | None, Parameter(help="Also write a self-contained HTML page.")] = None,
    certificate: Annotated[
        Path | None,
        Parameter(help="Also write what proofs rest on into this folder, with a checker."),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Check every claim in some sheets: proved, supported, refuted or undecided, and why.

    Exit code 0 if nothing is refuted, 1 if something is, 2 if something cannot be read (the
    other claims are still checked).

    Examples:

        heed check
        heed check answers.toml --html answers.html
        heed check folder/ --csv grades.csv --junit results.xml --workers 2
        heed check draft.toml --watch
        heed check --only foundations/softmax-shift --json
    """
    from heedful.claims.checker import Checker
    from heedful.workers import TaskLimits

    named = {"junit": junit, "csv": csv, "html": html}
    exports = {kind: path for kind, path in named.items() if path is not None}
    _check_exports(exports)
    limits = TaskLimits(seconds=seconds, megabytes=megabytes)
    with Checker(workers=workers, limits=limits, cluster=cluster) as checker:
        if watch and certificate is not None:
            raise InputError("--certificate", "does not go with --watch", expected="one of the two")
        if watch:
            return _watch(checker, list(paths), only or [], exports, json=json)
        sheets = _sheets(list(paths), only or [])
        return _once(checker, sheets, exports, json=json, certificate=certificate)


def _once(
    checker: Checker,
    sheets: list[Sheet],
    exports: Exports,
    *,
    json: bool,
    certificate: Path | None = None,
) -> int:
    from heedful.progress import meter
    from heedful.views.claims import check_blocks

    with meter("judging claims") as step:
        report = checker.check(sheets, step)
    show(report, check_blocks, json=json)
    _export(report, exports)
    if certificate is not None:
        _certify(sheets, report, certificate)
    for problem in report.problems:
        print(problem.message, file=sys.stderr)
    undecided = report.counts["undecided"]
    if undecided and report.exit_code == 0:
        verb = "claim is" if undecided == 1 else "claims are"
        print(f"heed check: nothing is refuted, but {undecided} {verb} undecided", file=sys.stderr)
    return report.exit_code


def _watch(
    checker: Checker, paths: list[Path], only: list[str], exports: Exports, *, json: bool
) -> int:
    if not paths:
        raise InputError(
            "--watch", "no sheet was named", expected="the sheet or folder that you are writing"
        )
    code, seen = 0, None
    try:
        while True:
            now = _state(paths)
            if now != seen:
                seen = now
                try:
                    code = _once(checker, _sheets(paths, only), exports, json=json)
                except InputError as error:  # a sheet half-written; the next save may mend it
                    print(str(error), file=sys.stderr)
                    code = error.exit_code
                sys.stdout.flush()
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return code


def _sheets(paths: list[Path], names: list[str]) -> list[Sheet]:
    from heedful.claims.sheet import catalog, find_sheets, only

    sheets = find_sheets(paths) if paths else catalog()
    return only(sheets, names) if names else sheets


def _state(paths: list[Path]) -> dict[str, tuple[int, int]]:
    """Return what changes when a sheet is saved: times and sizes."""
    state: dict[str, tuple[int, int]] = {}
    for path in paths:
        for file in sorted(path.rglob("*.toml")) if path.is_dir() else [path]:
            try:
                status = file.lstat()
            except OSError:
                continue  # an editor is replacing it; the next look will find it
            state[str(file)] = (status.st_mtime_ns, status.st_size)
    return state


def _check_exports(exports: Exports) -> None:
    for kind, path in exports.items():
        if path.is_dir() or not path.resolve().parent.is_dir():
            missing = path if path.is_dir() else path.resolve().parent
            raise InputError(
                f"--{kind}",
                f"{missing} is a folder" if path.is_dir() else f"the folder {missing} is missing",
                expected="a file in a folder that exists",
            )


def _certify(sheets: list[Sheet], report: CheckReport, folder: Path) -> None:
    """Write the certificates of proved claims, and say how to check them and what has none."""
    from heedful.claims.certificates import write_certificates
    from heedful.progress import meter

    with meter("writing certificates") as step:
        try:
            written = write_certificates(sheets, report.claims, folder, step)
        except OSError as error:
            reason = f"{folder} cannot be written ({error.strerror})"
            raise InputError("--certificate", reason) from None
    for name, reason in written.without.items():
        print(f"{name}: no certificate ({reason})", file=sys.stderr)
    proved = len(written.certified) + len(written.without)
    print(
        f"{len(written.certified)} of {proved} proved claims have a certificate; check them with: "
        f"python {folder}/certificate_checker.py {folder}",
        file=sys.stderr,
    )


def _export(report: CheckReport, exports: Exports) -> None:
    from heedful.files import write_atomic
    from heedful.views.claims import claims_page, csv_text, junit_text

    writers = {"junit": junit_text, "csv": csv_text, "html": claims_page}
    for kind, path in exports.items():
        try:
            write_atomic(path, writers[kind](report))
        except OSError as error:
            raise InputError(f"--{kind}", f"{path} cannot be written ({error.strerror})") from None


def explain(
    claim: Annotated[str, Parameter(help='The claim: "id", or "sheet/id".')],
    *,
    sheet: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True, help="Sheets or folders to look in. [default: the catalog]"
        ),
    ] = None,
    seconds: Annotated[float, Parameter(help="Time limit for the claim.")] = 60.0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Explain the verdict on one claim: the reasoning, the case where it fails, the repair.

    Examples:

        heed explain foundations/softmax-shift
        heed explain b --sheet answers.toml --figure b.svg
    """
    from heedful.claims.checker import Checker, Explanation
    from heedful.claims.reasons import reasons
    from heedful.claims.sheet import catalog, claim_named, find_sheets
    from heedful.progress import meter
    from heedful.views.claims import explanation_blocks, verdict_figure
    from heedful.workers import TaskLimits

    check_figure_path(figure)
    sheets = find_sheets(sheet) if sheet else catalog()
    home, wanted = claim_named(sheets, claim)
    with (
        Checker(workers=1, limits=TaskLimits(seconds=seconds)) as checker,
        meter(f"judging {home.name}/{wanted.id}") as step,
    ):
        verdict = checker.judge_one(home, wanted, step)
    record = Explanation(claim=wanted, verdict=verdict, reasons=reasons(wanted, verdict))
    show(record, explanation_blocks, json=json)
    if figure is not None:
        drawn = verdict_figure(verdict)
        if drawn is None:
            raise InputError(
                "--figure",
                f"the verdict on {claim} has nothing to draw",
                expected="a counterexample with numbers, or an interval of draws",
            )
        draw(record, figure, lambda _: drawn)
    return 0
