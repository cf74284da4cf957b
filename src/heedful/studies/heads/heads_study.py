"""The heads of a trained model, measured with the mathematics of one query and a few keys.

One study ends in one record: what each head does, what its keys are like, how robust it is, what
the model knows about order, and which tokens it can never predict; and, where trainings are
wanted, the answers to the questions that one model cannot answer.

Each of these is a part that can be left out. The quickest comes first, and what a part found is
kept in a folder when it is finished, so that a study which was stopped goes on with the next.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from heedful import __version__
from heedful.errors import InputError
from heedful.files import write_atomic
from heedful.model import Decoder, parameter_count
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
from heedful.studies.heads.behaviour import WORDS, Behaviour, observe, read_by
from heedful.studies.heads.keys import Keys, KeyWatch
from heedful.studies.heads.order import LARGE, OrderTest, Probe, order_tests, probe_positions
from heedful.studies.heads.predictable import WORK as PREDICTABLE_WORK
from heedful.studies.heads.predictable import Predictable, predictable_tokens
from heedful.studies.heads.robustness import (
    NOISY_ROWS,
    LossBatch,
    NoiseWatch,
    Robustness,
    measure_robustness,
)
from heedful.studies.heads.robustness import WORK as ROBUSTNESS_WORK
from heedful.studies.heads.sample import (
    DEFAULT_AMOUNT,
    Amount,
    StudiedModel,
    open_subject,
    translation_run,
)
from heedful.studies.heads.small_models import (
    QUICK,
    Finding,
    HeadCounts,
    Plan,
    PreNorm,
    Schemes,
    base_run,
    compare_heads,
    compare_norms,
    compare_schemes,
    find_witness,
    train_all,
)

LEARNED = 0.5
"""The share of the loss of guessing below which a small model has learned something to study."""
PARTS = {
    "heads": "what each head does",
    "keys": "what its keys are like",
    "robustness": "what disturbed keys and missing heads do",
    "order": "what the model knows about order",
    "tokens": "which tokens it can never predict",
    "small-models": "what small models, trained for the purpose, answer",
}
"""The parts of the study, in the order in which they are worked on: the quickest first."""
SHARES = {"heads": 8, "keys": 12, "robustness": 10, "order": 5, "tokens": 15, "small-models": 50}
"""About how much of the time each part takes."""
RECORD = "heads.json"


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
    behaviour: Behaviour | None = None
    """None, like the fields that follow, where its part was left out."""
    keys: Keys | None = None
    robustness: Robustness | None = None
    order: tuple[OrderTest, ...] = ()
    probe: Probe | None = None
    predictable: Predictable | None = None
    trained: Comparisons | None = None
    """None where no trainings were wanted."""
    seconds: dict[str, float]
    """Of each part that was worked on."""

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
        said: list[Conclusion] = []
        if self.behaviour is not None:
            said.append(self._sorted(self.behaviour))
        if self.keys is not None:
            said.append(self._norms(self.keys))
        if self.trained is not None:
            said += self._trained(self.trained)
        if self.robustness is not None:
            said.append(self.most_needed(self.robustness))
        if self.predictable is not None:
            said.append(calculated("Output layer: {said}.", said=self.predictable.statement))
        return tuple(said)

    def most_needed(self, robustness: Robustness) -> Conclusion:
        """Without which heads the loss rises most."""
        measured = {one.name: one.exact for one in robustness.ablations if one.exact is not None}
        return Largest(
            about="which heads the model needs most",
            said=f"Leaving out one head, the loss of {robustness.loss.value:.2f} rises most "
            f"without {{names}}, on {self.text}; those were measured first for which the gradient "
            "promises most",
            values=measured,
            of=len(robustness.ablations),
            what="heads",
            show=lambda value: f"{value:+.3f}",
            shown=5,
        ).conclude()

    def _sorted(self, behaviour: Behaviour) -> Conclusion:
        heads = behaviour.heads
        return calculated(
            "{chosen} of {all} heads of the trained model put at least {least:.0%} of their "
            "reading of {text} on one kind of key: {counts}.",
            chosen=sum(bool(head.looks_for) for head in heads),
            all=len(heads),
            least=behaviour.thresholds["chosen"],
            text=self.text,
            counts=", ".join(f"{n} {WORDS[kind]}" for kind, n in behaviour.counts.items()),
        )

    def _norms(self, keys: Keys) -> Conclusion:
        spread, effect = keys.means["spread"], keys.means["effect"]
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


def chosen_parts(names: Collection[str] | None, plan: Plan | None) -> tuple[str, ...]:
    """Return the parts that are wanted: those named, or all but those named with `no-`.

    >>> chosen_parts(["order", "heads"], None), chosen_parts(["no-tokens", "no-keys"], None)
    (('heads', 'order'), ('heads', 'robustness', 'order'))
    """
    names = [name.strip() for name in names or ()]
    for name in names:
        if name.removeprefix("no-") not in PARTS:
            raise InputError(
                "--parts",
                f"there is no part {name!r}",
                expected=f"some of {', '.join(PARTS)}; or what is to be left out, as in no-tokens",
            )
    left_out = {name.removeprefix("no-") for name in names if name.startswith("no-")}
    wanted = set(names) - {f"no-{name}" for name in left_out} or set(PARTS)
    if plan is None and "small-models" in names:
        raise InputError(
            "--parts", "names small-models, but nothing may be trained", hint="leave out --no-train"
        )
    if plan is None:
        left_out.add("small-models")
    found = tuple(part for part in PARTS if part in wanted - left_out)
    if not found:
        raise InputError("--parts", "leaves out every part", expected="at least one to work on")
    return found


class HeadsWork:
    """A study of heads that is worked on part by part; what is finished is kept in a folder."""

    def __init__(
        self,
        subject: StudiedModel,
        *,
        parts: Collection[str] | None = None,
        plan: Plan | None = None,
        effort: Effort = DEFAULT_EFFORT,
        output: Path | None = None,
    ) -> None:
        self.subject, self.plan, self.effort, self.output = subject, plan, effort, output
        self.parts = chosen_parts(parts, plan)
        config, sample = subject.decoder.config, subject.sample
        self.large = parameter_count(config) > LARGE
        self._decided = {} if output is None else _decided_by(subject)
        self.record = HeadsStudy(
            model=subject.name,
            parameters=parameter_count(config),
            layers=config.layers,
            heads=config.attention.heads,
            kv_heads=config.kv_heads,
            positions=config.positions.kind,
            text=sample.name,
            tokens=sample.tokens,
            rows=len(sample.rows),
            seconds={},
        )

    def run(self, part: str, progress: Step | None = None) -> HeadsStudy:
        """Work on one part, unless it was finished before, and return the record so far."""
        found = self._kept(part)
        if found is None:
            began = time.perf_counter()
            fields = _WORK[part](self, progress)
            found = _Part(fields=fields, seconds=round(time.perf_counter() - began, 3))
            self._keep(part, found)
        seconds = self.record.seconds | {part: found.seconds}
        self.record = replace(self.record, **found.fields, seconds=seconds)
        if self.output is not None:
            write_atomic(self.output / RECORD, self.record.to_json())
        return self.record

    def _kept(self, part: str) -> _Part | None:
        """Return what a part found, if this version finished it for the same model and text."""
        if self.output is None:
            return None
        try:
            kept = json.loads(self._path(part).read_text(encoding="utf-8"))
            if kept["decided_by"] != self._decides(part):
                return None
            fields = {
                name: TypeAdapter(_FIELDS[name]).validate_python(value)
                for name, value in kept["fields"].items()
            }
            return _Part(fields=fields, seconds=float(kept["seconds"]))
        except (OSError, ValueError, TypeError, KeyError, ValidationError):
            return None

    def _keep(self, part: str, found: _Part) -> None:
        if self.output is None:
            return
        fields = {
            name: TypeAdapter(_FIELDS[name]).dump_python(value)
            for name, value in found.fields.items()
        }
        content = {
            "decided_by": self._decides(part),
            "seconds": found.seconds,
            "fields": fields,
        }
        path = self._path(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not the JSON of records: an interval without an end must come back as one.
        write_atomic(path, json.dumps(content))

    def _path(self, part: str) -> Path:
        assert self.output is not None
        return self.output / "parts" / f"{part}.json"

    def _decides(self, part: str) -> dict[str, Any]:
        """Return everything on which the numbers of a part depend."""
        settings: dict[str, dict[str, Any]] = {
            "keys": {"margins": self.effort.margins},
            "robustness": {"work": self.effort.robustness},
            "tokens": {"work": self.effort.predictable},
            "small-models": {} if self.plan is None else asdict(replace(self.plan, workers=1)),
        }
        together = self._decided | settings.get(part, {})
        decided: dict[str, Any] = json.loads(json.dumps(together, default=str))
        return decided


@dataclass(frozen=True)
class _Part:
    """What one part found: fields of the record, and the time it took."""

    fields: dict[str, Any]
    seconds: float


def _decided_by(subject: StudiedModel) -> dict[str, str]:
    weights = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(subject.decoder.state_dict().items()):
        weights.update(name.encode())
        weights.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    sample = repr([(row.tokens, row.source) for row in subject.sample.rows])
    return {
        "version": __version__,
        "config": repr(subject.decoder.config),
        "weights": weights.hexdigest(),
        "sample": hashlib.blake2b(sample.encode(), digest_size=16).hexdigest(),
    }


def _heads(work: HeadsWork, progress: Step | None) -> dict[str, Any]:
    return {"behaviour": observe(work.subject.decoder, work.subject.sample, progress=progress)}


def _keys(work: HeadsWork, progress: Step | None) -> dict[str, Any]:
    watch = KeyWatch(work.subject.decoder, margins=work.effort.margins)
    read_by(work.subject.decoder, work.subject.sample.rows, watch, progress=progress)
    return {"keys": watch.keys()}


def _robustness(work: HeadsWork, progress: Step | None) -> dict[str, Any]:
    decoder, sample = work.subject.decoder, work.subject.sample
    watch = NoiseWatch(decoder)
    read_by(decoder, sample.rows[:NOISY_ROWS], watch)
    batch = LossBatch.of(sample, most=1 if work.large else None)
    return {
        "robustness": measure_robustness(
            decoder, batch, watch, work=work.effort.robustness, progress=progress
        )
    }


def _order(work: HeadsWork, _progress: Step | None) -> dict[str, Any]:
    decoder, large = work.subject.decoder, work.large
    return {
        "order": order_tests(decoder, trials=1 if large else 6, length=4 if large else 6),
        "probe": probe_positions(decoder, rows=(14, 4, 6) if large else (48, 16, 24)),
    }


def _tokens(work: HeadsWork, progress: Step | None) -> dict[str, Any]:
    found = predictable_tokens(
        work.subject.decoder,
        work.subject.tokenizer,
        work=work.effort.predictable,
        progress=progress,
    )
    return {"predictable": found}


def _small_models(work: HeadsWork, progress: Step | None) -> dict[str, Any]:
    assert work.plan is not None
    return {"trained": _trained(work.plan, work.subject.decoder, progress)}


_WORK: dict[str, Callable[[HeadsWork, Step | None], dict[str, Any]]] = {
    "heads": _heads,
    "keys": _keys,
    "robustness": _robustness,
    "order": _order,
    "tokens": _tokens,
    "small-models": _small_models,
}
_FIELDS: dict[str, Any] = {
    "behaviour": Behaviour,
    "keys": Keys,
    "robustness": Robustness,
    "order": tuple[OrderTest, ...],
    "probe": Probe,
    "predictable": Predictable,
    "trained": Comparisons,
}
"""The type of each field that a part fills, for reading it again."""


def study_heads(
    path: Path | str,
    *,
    text: Path | None = None,
    amount: Amount = DEFAULT_AMOUNT,
    parts: Collection[str] | None = None,
    plan: Plan | None = None,
    effort: Effort = DEFAULT_EFFORT,
    progress: Step | None = None,
) -> HeadsStudy:
    """Study the heads of a run or a model; with a plan, also train small models for comparisons."""
    subject = open_subject(path, text=text, amount=amount)
    return study_subject(subject, parts=parts, plan=plan, effort=effort, progress=progress)


def study_subject(
    subject: StudiedModel,
    *,
    parts: Collection[str] | None = None,
    plan: Plan | None = None,
    effort: Effort = DEFAULT_EFFORT,
    progress: Step | None = None,
) -> HeadsStudy:
    """Study a model that is open already, part by part."""
    work = HeadsWork(subject, parts=parts, plan=plan, effort=effort)
    tell = None if progress is None else lambda _, share: progress(round(100 * share), 100)
    shares = Parts({part: SHARES[part] for part in work.parts}, tell)
    for part in work.parts:

        def step(done: int, of: int, part: str = part) -> None:
            shares.tell(part, part, done / max(of, 1))

        work.run(part, step)
        shares.tell(part, part, 1.0)
    return work.record


def _trained(plan: Plan, decoder: Decoder, progress: Step | None) -> Comparisons:
    began = time.perf_counter()
    models = train_all(plan, progress)
    return Comparisons(
        norms=compare_norms(models, find_witness(decoder)),
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
