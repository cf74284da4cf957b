"""F5: flipped bits and cut files in the newest checkpoint.

    python tests/faults/f5_damage.py --count 1000  half of each

Every one must be noticed and the checkpoint before it found; some are resumed, to the weights
of the undisturbed run.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from killable import command, finished_as, workshop

from heedful.training import checkpoint

RESUMED = 5
"""How many are not only noticed but resumed."""


def damage(file: Path, draw: random.Random, *, cut: bool) -> None:
    """Flip one bit of a file, or cut it short."""
    content = bytearray(file.read_bytes())
    if cut:
        del content[draw.randrange(len(content)) :]
    else:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    file.write_bytes(content)


def damage_checkpoints(count: int, seed: int) -> dict[str, Any]:
    """Damage the newest checkpoint again and again."""
    draw = random.Random(seed)
    passed = resumed = 0
    with workshop() as (folder, expected):
        whole = folder / "undisturbed"
        older, newest = checkpoint.checkpoints(whole / "checkpoints")
        for number in range(count):
            place = folder / "damaged"
            shutil.copytree(whole, place)
            hurt = place / "checkpoints" / newest.name
            damage(draw.choice(sorted(hurt.iterdir())), draw, cut=number % 2 == 0)
            found = checkpoint.newest(place / "checkpoints")
            good = found.path is not None and found.path.name == older.name
            good = good and list(found.skipped) == [newest.name]
            if good and number < RESUMED:
                good = finished_as(place, expected)
                resumed += good
            passed += good
            shutil.rmtree(place)
    return {"tried": count, "passed": passed, "resumed": resumed}


if __name__ == "__main__":
    command("F5: damaged checkpoints", 1_000, damage_checkpoints)
