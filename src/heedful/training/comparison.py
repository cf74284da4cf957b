"""Runs beside one another: which there are, and what two of them do differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError, InputError
from heedful.records import Record
from heedful.training import checkpoint
from heedful.training.folder import CONFIG, MANIFEST, RESULT, RunFolder
from heedful.training.lock import holder_of
from heedful.training.metrics import read_metrics


@dataclass(frozen=True, eq=False, kw_only=True)
class RunSummary(Record):
    """One run at a glance."""

    run: str
    """Its folder."""
    state: str
    """`finished`, `running` (with its process), `stopped`, or `unreadable`."""
    step: int
    """The last step with metrics or a checkpoint."""
    steps: int
    """The steps it was asked to take."""
    loss: float | None
    """The last one measured."""
    evaluation: dict[str, float]
    """The last one made."""
    parameters: int
    """Trained numbers."""
    tokens_per_second: float | None
    """The last one measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RunList(Record):
    """Every run below a folder."""

    folder: str
    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference(Record):
    """Something that two runs have differently; None where one does not have it."""

    name: str
    first: Any
    second: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RunComparison(Record):
    """What differs between two runs, in what was asked, in where it ran, in what came out."""

    first: str
    second: str
    config: tuple[Difference, ...]
    """Settings."""
    machine: tuple[Difference, ...]
    """Data hashes, versions, threads, choices."""
    results: tuple[Difference, ...]
    """Steps, losses, evaluations, speed, and the hash of the weights."""
    same_weights: bool | None
    """Whether both ended with the same bits; None while one has no result."""


def list_runs(folder: Path) -> RunList:
    """Return every run in a folder, or the folder itself if it is one."""
    if not folder.is_dir():
        raise InputError(
            str(folder), "there is no such folder", expected="a folder with runs was expected"
        )
    found = [folder] if RunFolder(folder).exists else []
    found += sorted(path.parent for path in folder.glob(f"*/{CONFIG}") if _is_run(path.parent))
    return RunList(folder=str(folder), runs=tuple(summary_of(path) for path in found))


def summary_of(folder: Path) -> RunSummary:
    """Return one run at a glance; a damaged one is shown as such."""
    run = RunFolder(folder)
    lines = read_metrics(folder)
    losses = [line for line in lines if "loss" in line]
    evaluations = [line["evaluation"] for line in lines if "evaluation" in line]
    saved = checkpoint.checkpoints(run.checkpoints)
    steps = [checkpoint.step_of(path) for path in saved] + [line["step"] for line in lines]
    try:
        config, manifest = run.config(), run.read(MANIFEST)
        state = _state(run)
    except HeedfulError as error:
        return _unreadable(folder, error)
    return RunSummary(
        run=str(folder),
        state=state,
        step=max(steps, default=0),
        steps=config.steps,
        loss=losses[-1].get("loss") if losses else None,
        evaluation=evaluations[-1] if evaluations else {},
        parameters=int(manifest.get("parameters", 0)),
        tokens_per_second=losses[-1].get("tokens_per_second") if losses else None,
    )


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Return what two runs do differently, and what came of it."""
    one, two = RunFolder(first), RunFolder(second)
    results = [_outcome(run) for run in (one, two)]
    hashes = [result.get("weights_sha256") for result in results]
    return RunComparison(
        first=str(first),
        second=str(second),
        config=_differences(one.read(CONFIG), two.read(CONFIG)),
        machine=_differences(one.read(MANIFEST), two.read(MANIFEST)),
        results=_differences(*results),
        same_weights=hashes[0] == hashes[1] if all(hashes) else None,
    )


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and RunFolder(folder).checkpoints.is_dir()


def _state(run: RunFolder) -> str:
    holder = holder_of(run.path)
    if holder is not None:
        return f"running ({holder})"
    done = (run.path / RESULT).is_file() and run.read(RESULT).get("finished")
    return "finished" if done else "stopped"


def _unreadable(folder: Path, error: HeedfulError) -> RunSummary:
    return RunSummary(
        run=str(folder),
        state=f"unreadable: {error.problem}",
        step=0,
        steps=0,
        loss=None,
        evaluation={},
        parameters=0,
        tokens_per_second=None,
    )


def _outcome(run: RunFolder) -> dict[str, Any]:
    summary = summary_of(run.path)
    kept = {"step": summary.step, "loss": summary.loss, "evaluation": summary.evaluation}
    kept["tokens_per_second"] = summary.tokens_per_second
    if (run.path / RESULT).is_file():
        result = run.read(RESULT)
        names = ("stopped_by", "tokens", "seconds", "weights_sha256")
        kept |= {name: result.get(name) for name in names}
    return kept


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[Difference, ...]:
    flat_one, flat_two = dict(_flat(one)), dict(_flat(two))
    return tuple(
        Difference(name=name, first=flat_one.get(name), second=flat_two.get(name))
        for name in dict.fromkeys([*flat_one, *flat_two])
        if flat_one.get(name) != flat_two.get(name)
    )


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((before + name, value))
    return found
