"""F3: four mistakes that this package could make, each of which F1 must notice.

    python tests/faults/f3_mutants.py

- in place: a checkpoint is written where it will lie, without a hidden folder and a rename;
- random state: what a checkpoint says about random numbers is not restored;
- epoch: the data starts again from the place within the first epoch;
- manifest: a checkpoint is believed without looking at its checksums.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import killable
from killable import Intruder, command, count_calls, kill_before, kill_half_way, outcome, run

from heedful.training import checkpoint, session

ENOUGH = 120
"""Points that are tried before a mutant counts as unnoticed."""


def in_place() -> None:
    """Write a checkpoint where it will lie, and its manifest first."""

    def save(folder: Path, contents: checkpoint.Contents, config: Any) -> Path:
        final = folder / f"{checkpoint.PREFIX}{contents.state['step']:08d}"
        shutil.rmtree(final, ignore_errors=True)
        original(folder / "elsewhere", contents, config)
        whole = folder / "elsewhere" / final.name
        final.mkdir()
        for name in ("manifest.json", "state.json", "config.json", "training.safetensors"):
            checkpoint.write_new(final / name, (whole / name).read_bytes())
        checkpoint.write_new(
            final / "model.safetensors", (whole / "model.safetensors").read_bytes()
        )
        return final

    def save_beside(folder: Path, contents: checkpoint.Contents, config: Any) -> Path:
        (folder / "elsewhere").mkdir(exist_ok=True)
        shutil.rmtree(folder / "elsewhere")
        (folder / "elsewhere").mkdir()
        return save(folder, contents, config)

    original = checkpoint.save
    checkpoint.save = save_beside
    believed()


def believed() -> None:
    """Believe every checkpoint."""
    checkpoint.damage = lambda _path: None


def random_state() -> None:
    """Restore no random state."""
    session.Session._restore_random = lambda _self, _saved: []  # type: ignore[method-assign]


def epoch() -> None:
    """Go on in the first epoch, whatever the checkpoint says."""

    class FirstEpoch(killable.Numbers):
        offset = 0

        def batch(self, index: int) -> Any:
            return super().batch(index - self.offset)

    original = session.Session.restore
    feed = FirstEpoch(batches=len(killable.FEED))
    killable.FEED = feed

    def restore(self: session.Session, contents: checkpoint.Contents) -> list[str]:
        FirstEpoch.offset = int(contents.state["epoch"]) * len(feed)
        return original(self, contents)

    session.Session.restore = restore  # type: ignore[method-assign]


def manifest() -> None:
    """Write checkpoints without the last step: contents cut short, and believed."""
    original = checkpoint.save

    def save(folder: Path, contents: checkpoint.Contents, config: Any) -> Path:
        # Without a manifest nothing says that a tensor is missing.
        kept = {
            name: value
            for name, value in contents.training.items()
            if not name.startswith("optimiser:")
        }
        return original(folder, dataclasses.replace(contents, training=kept), config)

    checkpoint.save = save
    believed()


MUTANTS: dict[str, Callable[[], None]] = {
    "in place": in_place,
    "random state": random_state,
    "epoch": epoch,
    "manifest": manifest,
}


def noticed(mutant: Callable[[], None], folder: Path, expected: str, seed: int) -> bool:
    """Tell whether a kill somewhere, and a resume, shows that the mutant is wrong."""
    calls = count_calls(folder / "counted")
    draw = random.Random(seed)
    for attempt in range(ENOUGH):
        place = folder / f"mutant-{attempt}"
        way = draw.choice((kill_before, kill_half_way))
        intruder = Intruder(at=draw.randint(calls // 3, calls), do=way)

        def prepare(intruder: Intruder = intruder) -> None:
            mutant()
            intruder()

        if run(place, prepare) == -signal.SIGKILL:
            code = run(place, mutant)
            if code != 0 or outcome(place) != expected:
                return True
        shutil.rmtree(place, ignore_errors=True)
    return False


def try_mutants(_count: int, seed: int) -> dict[str, Any]:
    """Put each mistake in, and see whether it is noticed."""
    found = {}
    for name, mutant in MUTANTS.items():
        with killable.workshop() as (folder, expected):
            found[name] = noticed(mutant, folder, expected, seed)
    return {"tried": len(found), "passed": sum(found.values()), "noticed": found}


if __name__ == "__main__":
    command("F3: mistakes of our own are noticed", 4, try_mutants)
