"""The heads of a trained model, measured with the mathematics of one query and a few keys.

One study ends in one record: what each head does, what its keys are like, how robust it is, what
the model knows about order, and which tokens it can never predict; and, where trainings are
wanted, the answers to the questions that one model cannot answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from heedful.model import LayerTrace, parameter_count
from heedful.progress import Parts, Step
from heedful.records import Record
from heedful.studies.heads.behaviour import WORDS, Behaviour, Watch, watch_repeats
from heedful.studies.heads.comparisons import (
    Finding,
    HeadCounts,
    PreNorm,
    Schemes,
    compare_heads,
    compare_norms,
    compare_schemes,
    find_witness,
)
from heedful.studies.heads.keys import Keys, KeyWatch
from heedful.studies.heads.order import LARGE, OrderTest, Probe, order_tests, probe_positions
from heedful.studies.heads.predictable import Predictable, predictable_tokens
from heedful.studies.heads.robustness import LossBatch, NoiseWatch, Robustness, measure_robustness
from heedful.studies.heads.sample import (
    DEFAULT_AMOUNT,
    Amount,
    Row,
    StudiedModel,
    open_subject,
    translation_run,
)
from heedful.studies.heads.small_models import QUICK, Plan, base_run, train_all

SHARES = {"reading": 20, "robustness": 10, "order": 5, "predictable tokens": 15, "small models": 50}
"""About how much of the time each part takes."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much time the parts may take."""

    robustness: float = 10.0
    """Seconds for leaving out heads and disturbing layers."""
    predictable: float = 60.0
    """Seconds after which no further token is examined one by one."""
    margins: int = 256
    """Attended keys whose margin is certified."""


DEFAULT_EFFORT = Effort()
QUICK_EFFORT = Effort(robustness=3.0, predictable=15.0, margins=64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparisons(Record):
    """What small models, trained for the purpose, answer."""

    norms: PreNorm
    heads: HeadCounts
    positions: Schemes
    trainings: int
    """Models that were trained."""
    steps: int
    """Steps of each."""
    seconds: float


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsStudy(Record):
    """Everything about the heads of one model."""

    model: str
    """As it was called."""
    parameters: int
    layers: int
    heads: int
    """In each layer."""
    kv_heads: int
    positions: str
    """The scheme."""
    text: str
    """What it read."""
    tokens: int
    rows: int
    behaviour: Behaviour
    keys: Keys
    robustness: Robustness
    order: tuple[OrderTest, ...]
    probe: Probe
    predictable: Predictable
    trained: Comparisons | None
    """None where no trainings were wanted."""
    seconds: dict[str, float]
    """Of each part."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every statement that was judged."""
        if self.trained is None:
            return ()
        parts = (self.trained.norms, self.trained.heads, self.trained.positions)
        return tuple(finding for part in parts for finding in part.findings)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What was found, one sentence each."""
        behaviour, means = self.behaviour, self.keys.means
        chosen = sum(bool(head.looks_for) for head in behaviour.heads)
        lines = [
            f"{chosen} of {len(behaviour.heads)} heads of the trained model look for one kind of "
            f"key: {', '.join(f'{n} {WORDS[k]}' for k, n in behaviour.counts.items())}.",
            f"Key norms vary by {means['spread'].value:.0%} of their mean within a head; making "
            f"them equal moves {means['effect'].value:.0%} of the reading.",
        ]
        if self.trained is not None:
            norms, heads = self.trained.norms.findings, self.trained.heads.findings
            lines += [
                f"“With pre-norm, norms of keys cannot be too different” is {norms[0].verdict}; "
                "that they are more alike than with post-norm is "
                f"{norms[1].verdict}: {norms[1].statement}.",
                f"“More heads at the same width reduce the variance” is {heads[0].verdict} in "
                f"trained models: {heads[0].statement}.",
            ]
        lines.append(f"Output layer: {self.predictable.statement}.")
        return tuple(lines)


class _Clock:
    """Seconds of each part, and progress over all of them."""

    def __init__(self, progress: Step | None) -> None:
        tell = None if progress is None else lambda _, share: progress(round(100 * share), 100)
        self.parts = Parts(SHARES, tell)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[Step]:
        """Time a part, which may tell how far it is."""
        began = time.perf_counter()
        yield lambda done, total: self.parts.tell(name, name, done / max(total, 1))
        self.seconds[name] = round(time.perf_counter() - began, 3)
        self.parts.tell(name, name, 1.0)


def study_heads(
    path: Path | str,
    *,
    text: Path | None = None,
    amount: Amount = DEFAULT_AMOUNT,
    plan: Plan | None = None,
    effort: Effort = DEFAULT_EFFORT,
    progress: Step | None = None,
) -> HeadsStudy:
    """Study the heads of a run or a model; with a plan, also train small models for comparisons."""
    return study_subject(
        open_subject(path, text=text, amount=amount), plan=plan, effort=effort, progress=progress
    )


def study_subject(
    subject: StudiedModel,
    *,
    plan: Plan | None = None,
    effort: Effort = DEFAULT_EFFORT,
    progress: Step | None = None,
) -> HeadsStudy:
    """Study a model that is open already."""
    decoder, sample, config = subject.decoder, subject.sample, subject.decoder.config
    clock = _Clock(progress)
    watch, keys = Watch(decoder), KeyWatch(decoder, margins=effort.margins)
    noise = NoiseWatch(decoder)
    with clock.part("reading") as step:
        _read(subject, watch, keys, noise, step)
        behaviour, key_record = watch.behaviour(), keys.keys()
    large = parameter_count(config) > LARGE
    with clock.part("robustness") as step:
        batch = LossBatch.of(sample, most=1 if large else None)
        robustness = measure_robustness(
            decoder, batch, noise, seconds=effort.robustness, progress=step
        )
    with clock.part("order"):
        order = order_tests(decoder, trials=1 if large else 6, length=4 if large else 6)
        probe = probe_positions(decoder, rows=(14, 4, 6) if large else (48, 16, 24))
    with clock.part("predictable tokens") as step:
        predictable = predictable_tokens(
            decoder, subject.tokenizer, seconds=effort.predictable, progress=step
        )
    trained = None
    if plan is not None:
        with clock.part("small models") as step:
            trained = _trained(plan, subject, step)
    return HeadsStudy(
        model=subject.name,
        parameters=parameter_count(config),
        layers=config.layers,
        heads=config.attention.heads,
        kv_heads=config.kv_heads,
        positions=config.positions.kind,
        text=sample.name,
        tokens=sample.tokens,
        rows=len(sample.rows),
        behaviour=behaviour,
        keys=key_record,
        robustness=robustness,
        order=order,
        probe=probe,
        predictable=predictable,
        trained=trained,
        seconds=clock.seconds,
    )


def _read(
    subject: StudiedModel, watch: Watch, keys: KeyWatch, noise: NoiseWatch, progress: Step
) -> None:
    """Let the model read its sample once while all three watch; no layer is kept."""
    rows = subject.sample.rows
    for done, row in enumerate(rows, start=1):

        def see(layer: int, trace: LayerTrace, row: Row = row) -> None:
            watch.see(layer, trace, row)
            keys.see(layer, trace, row)
            noise.see(layer, trace, row)

        with torch.no_grad():
            subject.decoder.visit(row.tensor(), see)
        progress(done, len(rows) + 1)
    watch_repeats(subject.decoder, subject.sample, watch)


def _trained(plan: Plan, subject: StudiedModel, progress: Step) -> Comparisons:
    began = time.perf_counter()
    models = train_all(plan, progress)
    return Comparisons(
        norms=compare_norms(models, find_witness(subject.decoder)),
        heads=compare_heads(models, plan.width),
        positions=compare_schemes(models),
        trainings=len(models),
        steps=plan.steps,
        seconds=time.perf_counter() - began,
    )


def lab_study(output: Path, progress: Step, scale: str = "standard") -> HeadsStudy:
    """Study the heads of the translation run of the laboratory, or of a small one made for it."""
    plans = {
        "quick": replace(QUICK, seeds=2, order_seeds=2, steps=60),
        "standard": QUICK,
        "course": Plan(),
    }
    plan = replace(plans[scale], workers=max(1, os.cpu_count() or 1))
    run = translation_run(output / "translation" / "runs")
    if run is None:
        run = base_run(replace(plan, steps=4 * plan.steps), output / "heads")
    effort = Effort() if scale == "course" else QUICK_EFFORT
    return study_heads(run, plan=plan, effort=effort, progress=progress)
