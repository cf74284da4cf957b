"""A run is a folder, in which one process works at a time.

    config.json     what was asked for
    manifest.json   what it ran on: data hashes, versions, machine, threads, and what was chosen
    metrics.jsonl   what happened, one JSON object a line; events/ the same for TensorBoard
    checkpoints/    the two newest
    result.json     how it ended
    run.lock        who is at work: the operating system's lock, which ends with its process,
                    however that ends, so that a killed run never has to be unlocked by hand

A resumed run first drops the metrics of later steps, so that each step is there once. Lines are not
flushed to the disk one by one: after a power failure the last ones may be missing, and the steps
are taken again anyway.

TensorBoard's own writer works in a thread: on a full disk that thread dies with a traceback, and
whoever trains hears of it late or never. Here the thread that trains writes, one record a step, and
a disk that fails is an `OSError` like any other.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from heedful.errors import InputError, MissingPartError, RunError
from heedful.files import UNFINISHED, write_all, write_atomic, write_json
from heedful.machine import examine
from heedful.model import parameter_count
from heedful.records import plain
from heedful.training.config import TrainingConfig

CONFIG, MANIFEST, RESULT = "config.json", "manifest.json", "result.json"
CHECKPOINTS = "checkpoints"
SPARE_BYTES = 64 * 2**20
"""Room beyond the checkpoints: metrics, events, and what else the disk is for."""


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / CHECKPOINTS

    @property
    def exists(self) -> bool:
        """Whether a run was ever begun here."""
        return (self.path / CONFIG).is_file()

    def check_new(self) -> None:
        """Refuse to begin a run where there is one, or where something else lies."""
        if self.exists:
            raise InputError(
                str(self.path),
                "holds a run already",
                expected="a new folder was expected",
                hint=f"go on with it: heed resume {self.path}; or choose another with --run",
            )
        self._check_ours()

    def prepare(self) -> None:
        """Make the folder, so that it can be locked."""
        self._check_ours()
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(str(self.path), f"cannot be made ({error.strerror})") from None

    def write(self, name: str, content: Any) -> None:
        """Write one of the JSON files, whole or not at all."""
        try:
            write_json(self.path / name, content)
        except OSError as error:
            raise RunError(
                str(self.path / name), f"could not be written ({error.strerror})"
            ) from None

    def read(self, name: str) -> dict[str, Any]:
        """Read one of the JSON files."""
        path = self.path / name
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                str(self.path),
                f"is no run: it has no {name}",
                hint="start one with: heed train CONFIG.toml --run FOLDER",
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(str(path), f"cannot be read ({str(error)[:100]})") from None
        if not isinstance(content, dict):
            raise InputError(str(path), "holds no object", expected="what a run writes there")
        return content

    def settings(self) -> dict[str, Any]:
        """Return what the run was asked to do, as it is written; a model has a config too."""
        settings = self.read(CONFIG)
        if "steps" not in settings or "model" not in settings:
            inside = self.path.resolve().parent
            inside = inside.parent if inside.name == CHECKPOINTS else inside
            is_run = (inside / CHECKPOINTS).is_dir()
            raise InputError(
                str(self.path),
                f"is no run: its {CONFIG} describes no training",
                hint=f"go on with the run around it: {inside}" if is_run else "",
            )
        return settings

    def config(self) -> TrainingConfig:
        """Return what the run was asked to do."""
        return TrainingConfig.of(self.settings())

    def check_data(self, data: Mapping[str, str], *, all_of_it: bool = True) -> dict[str, Any]:
        """Return the manifest, after the data is found to be that with which the run began."""
        before = self.read(MANIFEST)
        old = before.get("data", {})
        for name in sorted(old.keys() | data if all_of_it else data):
            if old.get(name) != data.get(name):
                raise InputError(
                    f"data: {name}",
                    f"is {data.get(name, 'missing')!s:.20}",
                    expected=f"{old.get(name, 'nothing')!s:.20}, as when the run began",
                    hint="resume with the data and config with which the run began",
                )
        return before

    def check_room(self, config: TrainingConfig) -> None:
        """Refuse to start where the checkpoints would not fit."""
        copies = 3 + (1 if config.average is not None else 0)
        needed = 3 * copies * 4 * parameter_count(config.model) + SPARE_BYTES
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise RunError(
                str(self.path),
                f"has {free / 1e6:,.0f} MB of free disk",
                expected=f"{needed / 1e6:,.0f} MB for three checkpoints",
                hint="make room, or choose another folder with --run",
            )

    def _check_ours(self) -> None:
        try:
            if self.path.exists() and not self.path.is_dir():
                raise InputError(str(self.path), "is a file", expected="a folder was expected")
            foreign = self.path.is_dir() and any(self.path.iterdir()) and not self._ours()
        except OSError as error:
            raise RunError(str(self.path), f"cannot be read ({error.strerror})") from None
        if foreign:
            raise InputError(
                str(self.path),
                "holds other files",
                expected="a new or empty folder was expected",
                hint="choose another folder with --run",
            )

    def _ours(self) -> bool:
        """Tell a run, or one that died before its config was written, from anything else."""
        names = {entry.name for entry in self.path.iterdir() if entry.suffix != UNFINISHED}
        return self.exists or names <= {CHECKPOINTS, LOCK, MANIFEST}


def manifest_of(
    config: TrainingConfig, data: dict[str, Any], choices: dict[str, Any], ranks: int
) -> dict[str, Any]:
    """Return what a run ran on: what must be the same for the same bytes."""
    machine = examine()
    versions = {"heedful": machine.heedful, "python": machine.python, **machine.core}
    for part in machine.parts:
        versions |= part.versions
    return {
        "data": data,
        "parameters": parameter_count(config.model),
        "choices": choices,
        "ranks": ranks,
        "threads": torch.get_num_threads(),
        "cpu": machine.cpu,
        "cpu_features": list(machine.cpu_features),
        "cores": machine.cores,
        "system": machine.system,
        "environment": {name: os.environ.get(name) for name in machine.threads},
        "versions": versions,
    }


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what is not as it was, of the things that decide the bits of a result."""
    pairs = [(name, before, now) for name in ("ranks", "threads", "cpu", "choices")]
    old, new = before.get("versions", {}), now.get("versions", {})
    pairs += [(package, old, new) for package in ("heedful", "torch", "numpy", "python")]
    return [
        f"{name}: {then.get(name)} then, {today.get(name)} now"
        for name, then, today in pairs
        if then.get(name) != today.get(name)
    ]


LOCK = "run.lock"
_held: set[Path] = set()
"""Locks of this process: the system would let one process take a lock twice."""


class RunLock:
    """Holds a run's folder for the life of a `with` block."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.resolve() / LOCK
        self._handle = -1

    def __enter__(self) -> RunLock:
        if self.path in _held:
            raise self._taken(str(os.getpid()))
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _locked(handle, attempts=4):
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            os.close(handle)
            raise self._taken(holder or "of another machine")
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError:
            os.close(handle)
            raise
        self._handle = handle
        _held.add(self.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _held.discard(self.path)
        os.close(self._handle)

    def _taken(self, holder: str) -> InputError:
        return InputError(
            str(self.path.parent),
            f"is in use by process {holder}",
            expected="one run at a time in a folder",
            hint="wait for it, stop it, or choose another folder with --run",
        )


def holder_of(folder: Path) -> int | None:
    """Return the process that trains in a folder now, or None."""
    path = folder / LOCK
    if path.resolve() in _held:
        return os.getpid()
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _locked(handle, attempts=1):
            return None
        text = os.read(handle, 32).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)


def _locked(handle: int, attempts: int) -> bool:
    """Try to lock; more than once, because `holder_of` takes the lock for an instant."""
    for attempt in range(attempts):
        try:
            # Of the two kinds of lock, the one that a forked child does not inherit.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt + 1 < attempts:
                time.sleep(0.05)
        else:
            return True
    return False


METRICS = "metrics.jsonl"
EVENTS = "events"


class Metrics:
    """Where the numbers of a run go."""

    def __init__(self, folder: Path, step: int, *, tensorboard: bool) -> None:
        """Go on after `step`: lines of later steps are dropped."""
        self.path = folder / METRICS
        kept = [line for line in read_metrics(folder) if line.get("step", 0) <= step]
        content = "".join(_line(line) for line in kept)
        if not self.path.exists() or self.path.read_text("utf-8") != content:
            write_atomic(self.path, content)
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._events = EventFile(folder / EVENTS, step) if tensorboard else None

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Write what is known about one step."""
        write_all(self._handle, _line({"step": step, **values}).encode("utf-8"))
        if self._events is not None:
            numbers = [
                (name, float(value))
                for name, value in flat(values, "/")
                if isinstance(value, int | float) and not isinstance(value, bool)
            ]
            self._events.add(step, numbers)

    def close(self) -> None:
        """Finish the files."""
        os.close(self._handle)
        if self._events is not None:
            self._events.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run that are whole; a kill may have cut the last one."""
    path = folder / METRICS
    if not path.is_file():
        return []
    lines = []
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and isinstance(content.get("step"), int):
            lines.append(content)
    return lines


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(content)), ensure_ascii=False, allow_nan=False) + "\n"


def flat(
    values: Mapping[str, Any], joint: str = ".", before: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables, each under the names that lead to it.

    >>> list(flat({"optimiser": {"kind": "muon"}, "steps": 5}))
    [('optimiser.kind', 'muon'), ('steps', 5)]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, joint, f"{before}{name}{joint}")
        else:
            yield before + name, value


EVENT_VERSION = "brain.Event:2"
"""What every event file begins with."""


class EventFile:
    """A new file in a run's folder of events; it is made when the first numbers come."""

    def __init__(self, folder: Path, step: int) -> None:
        """Go on after `step`: whatever older files say of later steps is void."""
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ModuleNotFoundError:
            raise MissingPartError.of("tensorboard", "tensorboard", "models") from None
        self._event, self._log = event_pb2.Event, event_pb2.SessionLog
        self._summary: Any = summary_pb2.Summary
        self._records = RecordWriter(self)
        self._folder, self._next = folder, step + 1
        self._handle = -1

    def add(self, step: int, values: Sequence[tuple[str, float]]) -> None:
        """Write the numbers of one step."""
        if self._handle < 0:
            self._begin()
        named = [self._summary.Value(tag=name, simple_value=value) for name, value in values]
        self._record(step, summary=self._summary(value=named))

    def write(self, record: bytes) -> None:
        """Take one whole record from TensorBoard, which frames it."""
        write_all(self._handle, record)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._handle >= 0:
            os.close(self._handle)

    def _begin(self) -> None:
        self._folder.mkdir(exist_ok=True)
        # TensorBoard reads files in the order of their names.
        name = f"events.out.tfevents.{time.time_ns():020d}.{socket.gethostname()}.{os.getpid()}"
        self._handle = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._record(self._next, file_version=EVENT_VERSION)
        self._record(self._next, session_log=self._log(status=self._log.START))

    def _record(self, step: int, **content: Any) -> None:
        event = self._event(wall_time=time.time(), step=step, **content)
        self._records.write(event.SerializeToString())
