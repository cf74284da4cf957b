"""The heads of a trained model, measured with the mathematics of one query and a few keys.

One study ends in one record: what each head does, what its keys are like, how robust it is, what
the model knows about order, and which tokens it can never predict; and, where trainings are
wanted, the answers to the questions that one model cannot answer.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.model import parameter_count
from heedful.progress import Parts, Step
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.conclusions import (
    Basis,
    Conclusion,
    Largest,
    Measurement,
    Study,
    calculated,
)
from heedful.studies.heads.behaviour import WORDS, Behaviour, observe
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
from heedful.studies.heads.predictable import WORK as PREDICTABLE_WORK
from heedful.studies.heads.predictable import Predictable, predictable_tokens
from heedful.studies.heads.robustness import WORK as ROBUSTNESS_WORK
from heedful.studies.heads.robustness import LossBatch, NoiseWatch, Robustness, measure_robustness
from heedful.studies.heads.sample import (
    DEFAULT_AMOUNT,
    Amount,
    StudiedModel,
    open_subject,
    translation_run,
)
from heedful.studies.heads.small_models import QUICK, Plan, base_run, train_all

LEARNED = 0.5
"""The share of the loss of guessing below which a small model has learned something to study."""
SHARES = {"reading": 20, "robustness": 10, "order": 5, "predictable tokens": 15, "small models": 50}
"""About how much of the time each part takes."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work the parts may take: counted, so that the same study ends in the same record."""

    robustness: float = ROBUSTNESS_WORK
    """Operations of leaving out heads and disturbing layers."""
    predictable: float = PREDICTABLE_WORK
    """Operations of examining tokens one by one."""
    margins: int = 256
    """Attended keys whose margin is certified."""


DEFAULT_EFFORT = Effort()
QUICK_EFFORT = Effort(robustness=2e11, predictable=2e11, margins=64)


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
    vocabulary: int
    """Tokens that they choose from."""
    seconds: float


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsStudy(Study):
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
    def conclusions(self) -> tuple[Conclusion, ...]:
        """What was found: what heads do, their keys, small models, which heads matter, tokens."""
        return (
            self._sorted(),
            self._norms(),
            *(() if self.trained is None else self._trained(self.trained)),
            self.most_needed,
            calculated("Output layer: {said}.", said=self.predictable.statement),
        )

    @property
    def most_needed(self) -> Conclusion:
        """Without which heads the loss rises most."""
        measured = {
            one.name: one.exact for one in self.robustness.ablations if one.exact is not None
        }
        return Largest(
            about="which heads the model needs most",
            said=f"Leaving out one head, the loss of {self.robustness.loss.value:.2f} rises most "
            f"without {{names}}, on {self.text}; those were measured first for which the gradient "
            "promises most",
            values=measured,
            of=len(self.robustness.ablations),
            what="heads",
            show=lambda value: f"{value:+.3f}",
            shown=5,
        ).conclude()

    def _sorted(self) -> Conclusion:
        heads = self.behaviour.heads
        return calculated(
            "{chosen} of {all} heads of the trained model put at least {least:.0%} of their "
            "reading of {text} on one kind of key: {counts}.",
            chosen=sum(bool(head.looks_for) for head in heads),
            all=len(heads),
            least=self.behaviour.thresholds["chosen"],
            text=self.text,
            counts=", ".join(f"{n} {WORDS[kind]}" for kind, n in self.behaviour.counts.items()),
        )

    def _norms(self) -> Conclusion:
        spread, effect = self.keys.means["spread"], self.keys.means["effect"]
        return Measurement(
            about="what norms of keys do",
            said=f"Key norms vary by {spread.value:.0%} of their mean within a head; making them "
            "equal moves {value} of the reading",
            estimate=effect,
            basis=Basis(cases=effect.count, of="heads of this model"),
            show=lambda value: f"{value:.0%}",
        ).conclude()

    def _trained(self, trained: Comparisons) -> tuple[Conclusion, ...]:
        norms, heads = trained.norms, trained.heads
        floor = self._learned(trained)
        if floor is not None:
            return (floor,)
        cannot, alike = norms.findings[:2]
        return (
            calculated(
                "“With pre-norm, norms of keys cannot be too different” is {verdict}: {why}.",
                verdict=cannot.verdict,
                why=cannot.statement,
            ),
            _judged(
                "whether pre-norm makes norms of keys more alike than post-norm",
                f"That norms of keys are more alike with pre-norm than with post-norm is "
                f"{alike.verdict}",
                "spread of key norms, pre-norm over post-norm, {value}",
                alike.estimate,
                1.0,
            ),
            _judged(
                "whether more heads at the same width reduce the variance",
                f"“More heads at the same width reduce the variance” is "
                f"{heads.findings[0].verdict} in trained models",
                "each doubling of the heads changes the logarithm of the variance by {value}",
                heads.shared_slope,
                0.0,
            ),
        )

    def _learned(self, trained: Comparisons) -> Conclusion | None:
        """Say that the small models have learned too little to conclude anything, if so."""
        loss = trained.norms.variants[0].loss.value
        untrained = math.log(trained.vocabulary)
        if loss < LEARNED * untrained:
            return None
        return calculated(
            "No conclusion from the small models. Missing: models that have learned (after {steps} "
            "steps their loss is {loss:.2f}, that of guessing {untrained:.2f}).",
            steps=trained.steps,
            loss=loss,
            untrained=untrained,
        )


def _judged(
    about: str, verdict: str, said: str, estimate: Estimate | None, null: float
) -> Conclusion:
    """Return a verdict of the small models with its number; nothing where it is undecided."""
    assert estimate is not None
    return Measurement(
        about=about,
        said=f"{verdict}: {said}",
        estimate=estimate,
        basis=Basis(cases=estimate.count, of="trainings of each variant", seeds=estimate.count),
        show=lambda value: f"{value:.2f}",
        null=null,
    ).conclude()


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
    keys, noise = KeyWatch(decoder, margins=effort.margins), NoiseWatch(decoder)
    with clock.part("reading") as step:
        behaviour = observe(decoder, sample, keys, noise, progress=step)
        key_record = keys.keys()
    large = parameter_count(config) > LARGE
    with clock.part("robustness") as step:
        batch = LossBatch.of(sample, most=1 if large else None)
        robustness = measure_robustness(
            decoder, batch, noise, work=effort.robustness, progress=step
        )
    with clock.part("order"):
        order = order_tests(decoder, trials=1 if large else 6, length=4 if large else 6)
        probe = probe_positions(decoder, rows=(14, 4, 6) if large else (48, 16, 24))
    with clock.part("predictable tokens") as step:
        predictable = predictable_tokens(
            decoder, subject.tokenizer, work=effort.predictable, progress=step
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


def _trained(plan: Plan, subject: StudiedModel, progress: Step) -> Comparisons:
    began = time.perf_counter()
    models = train_all(plan, progress)
    return Comparisons(
        norms=compare_norms(models, find_witness(subject.decoder)),
        heads=compare_heads(models, plan.width),
        positions=compare_schemes(models),
        trainings=len(models),
        steps=plan.steps,
        vocabulary=models[0].vocabulary,
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
