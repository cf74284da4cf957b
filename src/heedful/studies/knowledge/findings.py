"""What a knowledge study ends in: its record, its conclusions, and replies; needs no torch.

Every share comes with an interval at 95 %: Wilson's where single answers are counted, a bootstrap
over questions where several seeds are averaged or a curve is summarised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heedful.records import Record
from heedful.stats import percent

RECORD = "knowledge.json"
"""The file of the record, in the folder of a study."""
ASK = "ask.json"
"""The file that makes a run ready for `heed ask`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CurvePoint(Record):
    """What a decoder knew after some pretraining, before any fine-tuning."""

    step: int
    """Steps of pretraining."""
    minutes: float
    """Since pretraining began."""
    processor_minutes: float
    """Of them, how long processors worked on it, all cores added up."""
    accuracy: float
    """Exact matches on the test questions."""
    held_out_accuracy: float
    """On the held-out questions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm(Record):
    """One way to answer, and how often it is right."""

    arm: str
    """Its name."""
    kind: str
    """`trained` or `baseline`."""
    accuracy: float
    """Exact matches on the test questions about people that the pretraining text has."""
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    minutes: float
    """Of training, all stages, for one seed; 0 for a baseline."""
    pretraining_minutes: float
    """Of these, before fine-tuning."""
    parameters: int
    """Trained numbers; 0 for a baseline."""
    seeds: dict[int, float]
    """The accuracy of each seed."""
    groups: dict[str, tuple[int, int]]
    """Right answers and questions of each group, over all seeds."""
    questions: int
    """Test questions that `accuracy` counts."""
    unseen_accuracy: float | None
    """The same for people that the pretraining text does not have; None without such people."""
    held_out_accuracy: float | None
    """On the held-out questions; None for a baseline."""
    curve: tuple[CurvePoint, ...] = ()
    """Along the pretraining of the first seed, where the recipe wants it watched."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelCount(Record):
    """How many answers of one kind got which label."""

    group: str
    """Seen or unseen, and whether the name hints at a place."""
    right: bool
    """Whether the answer is right."""
    label: str
    """`retrieved`, `retrieved or guessed`, `guessed from the name` or `made up`."""
    confident: int
    """Answers above the abstention threshold."""
    unsure: int
    """Answers below it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Confusion(Record):
    """What the threshold says, against what the answers are."""

    label: str
    """What the answers are."""
    answered: int
    """Given, because the model is sure enough."""
    withheld: int
    """Kept back: "I don't know"."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SignalSeparation(Record):
    """How well one signal tells retrieved answers from made-up ones."""

    signal: str
    """Its name."""
    auroc: float
    """Probability that a retrieved answer scores higher than a made-up one."""
    low: float
    """Lower end of its bootstrap interval."""
    high: float
    """Upper end."""
    positives: int
    """Retrieved answers."""
    negatives: int
    """Made-up answers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bin(Record):
    """One bar of a reliability diagram."""

    confidence: float
    """Mean confidence of the answers in it."""
    accuracy: float
    """Share of them that is right."""
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    count: int
    """Answers in it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration(Record):
    """Whether confidences mean what they say."""

    temperature: float
    """By which logits are divided; 1 before scaling."""
    ece: float
    """Expected calibration error, 10 bins."""
    brier: float
    """Mean squared difference of confidence and outcome."""
    bins: tuple[Bin, ...]
    """The reliability diagram; empty bins are left out."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCoverage(Record):
    """What abstaining buys, and what it costs."""

    coverage: tuple[float, ...]
    """Shares of questions answered, the surest first."""
    risk: tuple[float, ...]
    """Share of wrong answers among these."""
    area: float
    """Under the curve: the mean risk over all coverages."""
    best_area: float
    """Of an oracle that answers all right ones first."""
    wanted_error: float
    """The error rate asked for."""
    threshold: float
    """Smallest confidence that is answered, chosen on held-out questions."""
    held_out_coverage: float
    """Share of the held-out questions that it answers."""
    held_out_error: float | None
    """Share of wrong answers among these."""
    promised_error: float
    """What this promises at 95 %: the fewer were held out, the more above their error it is."""
    invented: int
    """Names that nobody has which the threshold had to be silent about as well."""
    test_coverage: float
    """Share of the test questions that it answers."""
    test_error: float | None
    """Share of wrong answers among these; None where none is answered."""
    test_error_low: float | None
    """Lower end of its interval."""
    test_error_high: float | None
    """Upper end."""
    error_without: float
    """Share of wrong answers where every question is answered."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbour(Record):
    """A seen name, and how near it is to another."""

    name: str
    """The seen name."""
    place: str
    """Where that person was born, by text or questions."""
    score: float
    """Edits for `edits`, a share for `tokens`, a cosine for `hidden`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UnseenName(Record):
    """What the model says about a name that it never saw."""

    name: str
    """The name."""
    answer: str
    """What the model says."""
    confidence: float
    """After temperature scaling."""
    pointed: str | None
    """The place that the name points to."""
    nearest: dict[str, Neighbour]
    """The nearest seen name by each measure."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Following(Record):
    """How often answers to unseen names are those of something else."""

    what: str
    """`edits`, `tokens` or `hidden`: the nearest seen name; `pointed`: what the name points to;
    `frequent`: the most frequent answer."""
    rate: float
    """Share of answers that are the same."""
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    chance: float
    """The same share with the answers shuffled among the names."""
    count: int
    """Names asked about."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupEffect(Record):
    """Whether answers depend on which group a name sounds like."""

    groups: tuple[str, ...]
    """Groups of names."""
    places: tuple[str, ...]
    """Answers, or the groups that they belong to."""
    table: tuple[tuple[int, ...], ...]
    """Names of each group (row) by answer (column)."""
    cramers_v: float
    """Effect size: 0 none, 1 the group decides the answer."""
    low: float
    """Lower end of its bootstrap interval."""
    high: float
    """Upper end."""
    by_chance: float
    """What shuffled answers reach, at the 95th percentile."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NameStudy(Record):
    """A name never seen: what the model answers, and why."""

    made: str
    """Where the unseen names come from."""
    examples: tuple[UnseenName, ...]
    """Some of them, the surest first."""
    following: tuple[Following, ...]
    """What the answers follow."""
    effect: GroupEffect | None
    """Whether they follow the groups of names; None where no groups are known."""
    mean_confidence: float
    """Over all unseen names."""
    mean_confidence_seen: float
    """Over the test questions about seen people."""
    answered: float
    """Share of the unseen names for which the confidence is above the threshold."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoragePoint(Record):
    """How much one small training stored."""

    series: str
    """`people`, `width` or `phrasings`: what is varied."""
    label: str
    """Its value in words."""
    people: int
    """Seen people."""
    parameters: int
    """Trained numbers."""
    exposures: tuple[float, ...]
    """How often each fact has been read, at each evaluation."""
    accuracy: tuple[float, ...]
    """Right answers about test people in the text, at each evaluation."""
    low: tuple[float, ...]
    """Lower ends of their intervals."""
    high: tuple[float, ...]
    """Upper ends."""
    minutes: float
    """Of training."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerRecord(Record):
    """One answer of the study's model, with everything known about it."""

    question: str
    """As it was asked."""
    name: str
    """Who it asks about."""
    right_answer: str
    """What the corpus says."""
    answer: str
    """What the model says."""
    right: bool
    """Whether these are the same."""
    group: str
    """Seen or unseen, and whether the name hints at a place."""
    label: str
    """`retrieved`, `retrieved or guessed`, `guessed from the name` or `made up`."""
    confidence: float
    """Probability after temperature scaling."""
    signals: dict[str, float]
    """Every signal; higher is surer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KnowledgeStudy(Record):
    """The whole study."""

    corpus: str
    """What was learned from."""
    documents: int
    """Documents of the pretraining text."""
    questions: dict[str, int]
    """Questions for training, held out, and of the test."""
    recipe: dict[str, Any]
    """Every setting of the trainings."""
    seed: int
    """From which everything is drawn."""
    notes: tuple[str, ...]
    """What was odd in the data, and what was done about it."""
    arms: tuple[Arm, ...]
    """Trained arms and baselines."""
    labels: tuple[LabelCount, ...]
    """Retrieved, guessed or made up, by group, outcome and confidence."""
    confusion: tuple[Confusion, ...]
    """What the threshold does with each label."""
    auroc: tuple[SignalSeparation, ...]
    """How far each signal separates retrieved from made up."""
    ece: float
    """Expected calibration error of the test answers, after temperature scaling."""
    calibration: tuple[Calibration, ...]
    """Before and after temperature scaling, on the test questions."""
    risk_coverage: RiskCoverage
    """What abstaining buys."""
    names: NameStudy | None
    """Names never seen."""
    storage: tuple[StoragePoint, ...]
    """How much is stored; empty where it was not studied."""
    answers: tuple[AnswerRecord, ...]
    """Every test answer of the main arm."""
    main_arm: str
    """The arm that labels, signals, calibration and names are about."""
    run: str
    """The folder that `heed ask` opens, relative to the study's."""
    minutes: float
    """The whole study, as far as it ran now."""
    quick: bool
    """Whether this was only a trial of the machinery."""

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What was found, one sentence each."""
        return tuple(self._sentences())

    @property
    def promise(self) -> str:
        """What the threshold promises of questions that nobody has asked yet."""
        risk = self.risk_coverage
        kept = round(risk.held_out_coverage * self.questions["held out"])
        return (
            f"{kept} answered questions of the {self.questions['held out']} held out promise, at "
            f"95 %, no more than {percent(risk.promised_error)}."
        )

    def _sentences(self) -> Iterator[str]:
        arms = {arm.arm: arm for arm in self.arms}
        main, without = arms.get(self.main_arm), arms.get("no pretraining")
        if main is not None and without is not None:
            yield (
                f"Without pretraining {percent(without.accuracy)} of the answers are right, with "
                f"it {percent(main.accuracy)} ({percent(main.low)} to {percent(main.high)}), on "
                f"{main.questions} questions whose answers only the pretraining text gives."
            )
            guesser = arms.get("name only")
            if main.unseen_accuracy is not None and guesser is not None:
                yield (
                    f"About people whom it never saw it is right in "
                    f"{percent(main.unseen_accuracy)}; a guesser that knows only letters of names "
                    f"reaches {percent(guesser.unseen_accuracy or 0.0)}."
                )
        if self.auroc:
            best = max(self.auroc, key=lambda one: one.auroc)
            yield (
                f"The signal that tells retrieved from made-up answers best is {best.signal}: "
                f"AUROC {best.auroc:.2f} ({best.low:.2f} to {best.high:.2f})."
            )
        risk = self.risk_coverage
        if risk.test_error is not None:
            yield (
                f"Answering everything, {percent(risk.error_without)} is wrong; answering only "
                f"above a threshold chosen for {percent(risk.wanted_error)}, "
                f"{percent(risk.test_error)} of what is answered ({percent(risk.test_coverage)} of "
                f"the questions). {self.promise}"
            )
        else:
            yield (
                f"No confidence is high enough for {percent(risk.wanted_error)} of wrong answers: "
                f"with this threshold it answers none of the questions of the test."
            )
        if self.names is not None and self.names.effect is not None:
            effect = self.names.effect
            yield (
                f"Answers about names never seen follow the group of the name: Cramér's V "
                f"{effect.cramers_v:.2f} ({effect.low:.2f} to {effect.high:.2f}), where chance "
                f"reaches {effect.by_chance:.2f}."
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class AskReply(Record):
    """The reply to one question."""

    question: str
    """As it was asked."""
    name: str | None
    """Who it asks about; None where it is not asked in a known way."""
    answer: str | None
    """The answer; None is "I don't know"."""
    would_say: str
    """What the model would say if it had to."""
    confidence: float
    """How sure it is, after temperature scaling."""
    threshold: float
    """Below it there is no answer."""
    wanted_error: float
    """The error rate for which the threshold was chosen."""
    promised_error: float | None
    """What the held-out questions promise of the answers above it, at 95 %, if that is known."""
    evidence: str | None
    """A line of the pretraining text about the person, if there is one."""
    supported: bool
    """Whether that line holds what the model would say."""
    fine_tuned_answer: str | None
    """The answer given in fine-tuning, where this very question was asked there."""
    nearest: dict[str, Neighbour]
    """For a name in no text and no question: the nearest known names by edits, tokens, hidden."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AskReplies(Record):
    """What `heed ask` gives."""

    run: str
    """Where the model lies."""
    replies: tuple[AskReply, ...]
    """In the order of the questions."""
