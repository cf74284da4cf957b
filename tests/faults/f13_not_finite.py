"""F13: NaN and infinity, put into losses and gradients at random steps; enormous logits.

    python tests/faults/f13_not_finite.py --count 50

A training must stop before the step and before any save, with exit code 3; what is on the disk
is finite, and resumes to the weights of the undisturbed run. Logits of ±10⁴ train; logits of
±3·10³⁸ stop the training or train, and never leave a NaN in what is saved.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import torch
from killable import CONFIG, FEED, command, finished_as, run, workshop
from torch import Tensor

from heedful.errors import RunError
from heedful.model import Decoder
from heedful.training import Hooks, checkpoint, train
from heedful.training.loss import Objective

BAD = (float("nan"), float("inf"), -float("inf"))


def poisoned(step: int, value: float, *, gradient: bool) -> None:
    """Let the loss, or only its gradient, become this value in one step."""
    original, seen = Objective.forward, 0

    def forward(self: Objective, *arguments: Any) -> Tensor:
        nonlocal seen
        loss = original(self, *arguments)
        seen += 1
        if seen == step:
            if gradient:
                loss.register_hook(lambda incoming: incoming * value)
            else:
                return loss * value
        return loss

    Objective.forward = forward  # type: ignore[method-assign]


def all_finite(folder: Path) -> bool:
    """Tell whether every number on the disk is finite."""
    found = [checkpoint.read(path) for path in checkpoint.checkpoints(folder / "checkpoints")]
    tensors = [t for one in found for part in (one.model, one.training) for t in part.values()]
    return all(bool(t.isfinite().all()) for t in tensors if t.is_floating_point())


def poison(count: int, seed: int) -> dict[str, Any]:
    """Poison one step, look at what is saved, resume, and compare."""
    draw = random.Random(seed)
    passed = 0
    with workshop() as (folder, expected):
        for number in range(count):
            place, step = folder / "poisoned", draw.randint(1, CONFIG.steps)
            value, gradient = draw.choice(BAD), number % 2 == 0
            code = run(place, lambda s=step, v=value, g=gradient: poisoned(s, v, gradient=g))
            text = (folder / "poisoned.error").read_text()
            good = code == 3 and f"step {step}: " in text and "not finite" in text
            good = good and all_finite(place)
            saved = checkpoint.checkpoints(place / "checkpoints")
            good = good and all(checkpoint.step_of(path) < step for path in saved)
            passed += good and finished_as(place, expected)
            shutil.rmtree(place)
        enormous = {f"{size:g}": enormous_logits(folder, size) for size in (1e4, 3e38)}
    return {"tried": count, "passed": passed, "logits": enormous}


def enormous_logits(folder: Path, size: float) -> str:
    """Train a decoder whose logits are that large; return how it ended."""
    place = folder / f"logits-{size:g}"
    weights = Decoder(CONFIG.model, seed=0).state_dict()
    with torch.no_grad():
        typical = float(Decoder(CONFIG.model, seed=0).eval()(torch.zeros(1, 4).long()).abs().max())
        weights["norm.weight"].mul_(size / typical)
    try:
        train(CONFIG, FEED, place, hooks=Hooks(initial=weights))
        ended = "trained"
    except RunError as error:
        ended = error.problem
    assert all_finite(place)
    return ended


if __name__ == "__main__":
    command("F13: numbers that are not finite", 50, poison)
