"""What a knowledge study ends in: its record, its conclusions, and replies; needs no torch.

Every share comes with an interval at 95 %: Wilson's where single answers are counted, a bootstrap
over questions where several seeds are averaged or a curve is summarised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from heedful.records import Record
from heedful.stats import Estimate, percent, wilson
from heedful.studies.conclusions import (
    Basis,
    Conclusion,
    Contrast,
    Floor,
    Largest,
    Measurement,
    Side,
    Study,
    difference_of,
)

WITHOUT, WITH = "no pretraining", "pretraining"
"""The two arms that differ in pretraining alone: both have learned positions, where a study has
these."""
RECORD = "knowledge.json"
"""The file of the record, in the folder of a study."""
CAPACITY_RECORD = "capacity.json"
"""The same of a study of capacity."""
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
    settings: dict[str, Any]
    """In what it may differ from other arms; nothing for a baseline."""
    work: float
    """Operations of training, all stages, for one seed; 0 for a baseline."""
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
    """Smallest confidence that is answered, chosen on one half of the held-out questions."""
    held_out_coverage: float
    """Share of these that it answers."""
    held_out_error: float | None
    """Share of wrong answers among these."""
    promised_error: float
    """What the other half promises, at 95 %, of questions like them; 1 promises nothing."""
    promising: int
    """Questions of that other half, which had no part in choosing."""
    promising_answered: int
    """How many of them it answers."""
    promising_wrong: int
    """How many of these answers are wrong."""
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
class Promise(Record):
    """What calibration questions allow to be said of the answers above a threshold."""

    error: float
    """At most this share of these answers is wrong, of questions like those of the calibration."""
    confidence: float
    """In at least this share of all calibrations that make the promise, or refuse it."""
    threshold: float | None
    """Scores from here on are answered; None where the promise is refused."""
    choosing: int
    """Questions that chose the order of the tests, and nothing else."""
    testing: int
    """Questions that the thresholds were tested on."""
    tested: int
    """Thresholds that were tested, the last one not passed unless there were no more."""
    answered: int
    """Testing questions answered at the threshold; where it is refused, at the first tested."""
    wrong: int
    """Wrong answers among these."""
    needed: int | None
    """Where it is refused: questions that would do if the share of wrong answers stayed what it
    is; None where no number would."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PromiseTested(Record):
    """A promise, made or refused, and what came of it on the test."""

    score: str
    """What the thresholds are about: `probability`, scaled, or `all, combined`."""
    promise: Promise
    """Made by held-out questions, thresholds tested in a fixed order."""
    answered: int
    """Test questions answered at its threshold; 0 where it is refused."""
    wrong: int
    """Wrong answers among these."""


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
class KnowledgeStudy(Study):
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
    auroc_by_names: dict[str, tuple[SignalSeparation, ...]]
    """The same for names that hint at a place and for those that do not, where that is known."""
    ece: float
    """Expected calibration error of the test answers, after temperature scaling."""
    calibration: tuple[Calibration, ...]
    """Before and after temperature scaling, on the test questions."""
    risk_coverage: RiskCoverage
    """What abstaining buys."""
    promises: tuple[PromiseTested, ...]
    """What can be promised at several error rates, and what was observed."""
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
    test_questions: int
    """Test questions that stand word for word in the pretraining text, with answers that a reader
    wrote: what is right about them was stored, not learned from the text."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """What was found: pretraining, positions, unseen people, signals, abstaining, names."""
        arms = {arm.arm: arm for arm in self.arms}
        found = []
        pretrained = arms.get(WITH) or arms.get(self.main_arm)
        if WITHOUT in arms and pretrained is not None:
            found.append(self._pretraining(pretrained, arms[WITHOUT]).conclude())
        if WITH in arms and self.main_arm in arms and self.main_arm != WITH:
            found.append(self._positions(arms[self.main_arm], arms[WITH]).conclude())
        if self.auroc:
            found.append(self._best_signal())
        found.append(self._abstaining())
        main = arms.get(self.main_arm)
        if main is not None and main.unseen_accuracy is not None:
            found.append(self._unseen(main, arms.get("name only")))
        if self.names is not None and self.names.effect is not None:
            found.append(self._names(self.names.effect))
        return tuple(found)

    @property
    def promise(self) -> str:
        """What the threshold promises of questions that nobody has asked yet."""
        risk = self.risk_coverage
        counted = (
            f"Of {risk.promising} held-out questions that had no part in choosing it, it answers "
            f"{risk.promising_answered}, {risk.promising_wrong} of them wrong"
        )
        if risk.promised_error >= 1:
            return f"{counted}: that promises nothing."
        return (
            f"{counted}: that promises, at 95 %, no more than {percent(risk.promised_error)} of "
            "wrong answers to questions like these."
        )

    @property
    def _floor(self) -> Floor:
        """The accuracy of always saying the commonest place, at most."""
        commonest = [arm.high for arm in self.arms if arm.arm.startswith("most frequent")]
        return Floor(
            least=max(commonest, default=0.0),
            why="below it is what always saying the commonest place may reach",
        )

    def _seen(self) -> str:
        if not self.test_questions:
            return ""
        return (
            f" ({self.test_questions} of the test questions stand word for word in the "
            "pretraining text, with answers that a reader wrote)"
        )

    def _pretraining(self, one: Arm, other: Arm) -> Contrast:
        return Contrast(
            about="what pretraining is worth",
            one=_side(one),
            other=_side(other),
            differ="pretraining",
            difference=difference_of(_accuracy(one), _accuracy(other)),
            basis=Basis(cases=one.questions, of="questions", seeds=len(one.seeds)),
            higher="With pretraining more answers are right than without, on questions whose "
            f"answers only the pretraining text gives{self._seen()}",
            lower="Without pretraining more answers are right than with it",
            same="With and without pretraining the share of right answers cannot be told apart",
            show=percent,
            floor=self._floor,
        )

    def _positions(self, one: Arm, other: Arm) -> Contrast:
        return Contrast(
            about="rotary against learned positions",
            one=_side(one),
            other=_side(other),
            differ="positions",
            difference=difference_of(_accuracy(one), _accuracy(other)),
            basis=Basis(cases=one.questions, of="questions", seeds=len(one.seeds)),
            higher="Rotary positions give more right answers than learned ones",
            lower="Learned positions give more right answers than rotary ones",
            same="Rotary and learned positions cannot be told apart",
            show=percent,
            floor=self._floor,
        )

    def _best_signal(self) -> Conclusion:
        first = self.auroc[0]
        return Largest(
            about="which signal tells retrieved from made-up answers",
            said=f"Of {first.positives} retrieved and {first.negatives} made-up answers, the "
            "signal that tells them apart most often is {names}, by its AUROC",
            values={
                one.signal: Estimate(
                    value=one.auroc, low=one.low, high=one.high, count=one.positives + one.negatives
                )
                for one in self.auroc
            },
            of=len(self.auroc),
            what="signals",
            show=lambda value: f"{value:.2f}",
            null=0.5,
        ).conclude()

    def _abstaining(self) -> Conclusion:
        risk = self.risk_coverage
        answered = round(risk.test_coverage * self.questions["test"])
        nothing = risk.test_error is None or risk.test_error_high is None
        return Measurement(
            about="what not answering buys",
            said=f"Answering everything, {percent(risk.error_without)} is wrong; answering only "
            f"above a threshold chosen for {percent(risk.wanted_error)}, "
            f"{percent(risk.test_coverage)} of the questions are answered, and the share of wrong "
            f"answers is {{value}}. {self.promise.rstrip('.')}",
            estimate=Estimate(
                value=risk.test_error or 0.0,
                low=-math.inf if nothing else risk.test_error_low or 0.0,
                high=math.inf if nothing else risk.test_error_high or 0.0,
                count=answered,
            ),
            basis=Basis(cases=answered, of="answered questions"),
            show=percent,
        ).conclude()

    def _unseen(self, main: Arm, guesser: Arm | None) -> Conclusion:
        right = [counts for name, counts in main.groups.items() if name.startswith("unseen")]
        asked = sum(count for _, count in right) // max(len(main.seeds), 1)
        share = main.unseen_accuracy or 0.0
        low, high = wilson(round(share * asked), asked)
        guessed = ""
        if guesser is not None and guesser.unseen_accuracy is not None:
            guessed = (
                f"; a guesser that knows only letters of names reaches "
                f"{percent(guesser.unseen_accuracy)} of the same"
            )
        return Measurement(
            about="people whom it never saw",
            said=f"About people whom it never saw it is right in {{value}}{guessed}",
            estimate=Estimate(value=share, low=low, high=high, count=asked),
            basis=Basis(cases=asked, of="questions", seeds=len(main.seeds)),
            show=percent,
        ).conclude()

    def _names(self, effect: GroupEffect) -> Conclusion:
        return Measurement(
            about="whether the group of a name decides the answer",
            said="Answers about names never seen follow the group of the name: Cramér's V is "
            f"{{value}}, where shuffled answers reach {effect.by_chance:.2f}",
            estimate=Estimate(
                value=effect.cramers_v,
                low=effect.low,
                high=effect.high,
                count=sum(map(sum, effect.table)),
            ),
            basis=Basis(cases=sum(map(sum, effect.table)), of="names"),
            show=lambda value: f"{value:.2f}",
            floor=Floor(least=effect.by_chance, why="shuffled answers reach that by chance"),
        ).conclude()


def _accuracy(arm: Arm) -> Estimate:
    return Estimate(value=arm.accuracy, low=arm.low, high=arm.high, count=arm.questions)


def _side(arm: Arm) -> Side:
    return Side(name=arm.arm, value=arm.accuracy, settings=arm.settings, work=arm.work or None)


@dataclass(frozen=True, eq=False, kw_only=True)
class CapacityPoint(Record):
    """What decoders of one size stored after so many readings; bits are those of a parameter."""

    parameters: int
    """Trained numbers, embeddings included."""
    width: int
    """Of the residual stream."""
    people: int
    """People to be learned."""
    exposures: int
    """How often each of them was read."""
    varied: bool
    """Whether every reading has the attributes in another order."""
    stored: float
    """Bits stored, by the loss on the text."""
    low: float
    """Lower end of its interval: over seeds, or over people where there is one seed."""
    high: float
    """Upper end."""
    asked: float
    """Bits of values that are at hand when one asks right after the name."""
    asked_low: float
    """Lower end of its interval."""
    asked_high: float
    """Upper end."""
    seeds: tuple[float, ...]
    """What each decoder stored."""
    work: float
    """Operations of training, all seeds."""
    processor_minutes: float
    """Of training, all seeds."""

    @property
    def estimate(self) -> Estimate:
        """What is stored, with its interval."""
        return Estimate(value=self.stored, low=self.low, high=self.high, count=len(self.seeds))


TWO_BITS = 2.0
"""What arXiv:2404.05405 finds after a thousand exposures, whatever the size."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CapacityStudy(Study):
    """Bits stored in a parameter, against exposures and size, with one text and with many."""

    points: tuple[CapacityPoint, ...]
    """One text first; then by size and exposures."""
    left_out: tuple[str, ...]
    """Exposures that would have taken more work than was allowed, by size."""
    work: float
    """Operations of all trainings."""
    processor_minutes: float
    """Of all trainings."""
    name_bits: float
    """Needed to write down a name."""
    value_bits: float
    """Needed for the values of a person."""
    quick: bool
    """Whether this was only a trial of the machinery."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """Whether two bits are reached, and what varied text is worth."""
        same = [one for one in self.points if not one.varied]
        found = []
        if same:
            found.append(self._most(max(same, key=lambda one: one.stored)))
        pairs = [
            (one, other)
            for one in self.points
            for other in same
            if one.varied and (one.width, one.exposures) == (other.width, other.exposures)
        ]
        if pairs:
            found.append(self._varied(*max(pairs, key=lambda pair: pair[0].exposures)))
        return tuple(found)

    def _most(self, best: CapacityPoint) -> Conclusion:
        reached = "reached" if best.low >= TWO_BITS else "not reached"
        return Measurement(
            about="whether decoders this small store two bits in a parameter",
            said=f"Two bits in a parameter are {reached}: the most is {{value}}, by "
            f"{best.parameters:,} parameters after {best.exposures:,} readings of "
            f"{best.people:,} people",
            estimate=best.estimate,
            basis=Basis(cases=best.people, of="people", seeds=len(best.seeds)),
            show=lambda value: f"{value:.2f}",
        ).conclude()

    def _varied(self, varied: CapacityPoint, same: CapacityPoint) -> Conclusion:
        def asked(one: CapacityPoint) -> Estimate:
            return Estimate(
                value=one.asked, low=one.asked_low, high=one.asked_high, count=len(one.seeds)
            )

        return Contrast(
            about="what varied text is worth",
            one=Side(name="varied", value=varied.asked, settings={"text": "varied"}),
            other=Side(name="same", value=same.asked, settings={"text": "the same"}),
            differ="text",
            difference=difference_of(asked(varied), asked(same)),
            basis=Basis(cases=same.people, of="people", seeds=len(same.seeds)),
            higher=f"Asked right after the name, {same.parameters:,} parameters give out more bits "
            f"if each of {same.exposures:,} readings had another order (stored in the text: "
            f"{varied.stored:.2f} against {same.stored:.2f})",
            lower="Asked right after the name, fewer bits are given out after varied text",
            same="Asked right after the name, varied and equal text cannot be told apart",
            show=lambda value: f"{value:.2f}",
        ).conclude()


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


KNOWN, UNSURE, UNKNOWN = "known", "unsure", "I don't know"
"""What an answer of a model that others have trained is called."""
UNCALIBRATED = "not calibrated"
"""In the place of a label, where no calibration says what the model's confidence is worth."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelReply(Record):
    """What a model that others have trained says to one question."""

    question: str
    """As it was asked."""
    answer: str | None
    """The answer; None is "I don't know"."""
    would_say: str
    """What the model says in any case."""
    label: str
    """`known`, `unsure` or `I don't know`; `not calibrated` where nothing is known about it."""
    confidence: float | None
    """All signals joined; None where the model was not calibrated."""
    probability: float
    """The model's own, of the whole answer to the first wording."""
    agreement: float
    """Share of the other wordings that get the same answer."""
    wordings: tuple[str, ...]
    """The answer to each wording, the first one first."""
    others: tuple[str, ...] = ()
    """What else was said, each once: "the Nile" and "The Nile" are the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelReplies(Record):
    """What `heed ask` gives for a model that others have trained."""

    model: str
    """As it was named."""
    replies: tuple[ModelReply, ...]
    """In the order of the questions."""
    known: Promise | None
    """What is promised of answers called known; None where the model was not calibrated."""
    unsure: Promise | None
    """The same of all that are answered, those called unsure included."""
    population: dict[str, float]
    """The questions that the promise is about: the share of each level of the calibration."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LevelResult(Record):
    """How a model did on the test questions of one level."""

    level: str
    """How well known they are, in words."""
    questions: int
    """How many were asked."""
    right: int
    """Answered right, if it had to answer; always 0 for what does not exist."""
    known: int
    """Called known."""
    known_wrong: int
    """Of these, wrong."""
    unsure: int
    """Called unsure."""
    unsure_wrong: int
    """Of these, wrong."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Drift(Record):
    """What becomes of the error when the mixture of questions changes."""

    invented: float
    """Share of questions about things that do not exist."""
    error: float | None
    """Share of wrong answers among those given, test answers weighted; None where none is."""
    answered: float
    """Share of the questions that get an answer, known or unsure."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TestAnswer(Record):
    """The answer to one test question."""

    __test__ = False
    question: str
    level: str
    answer: str
    right: bool
    label: str
    confidence: float
    signals: dict[str, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelCalibration(Record):
    """A model that others have trained, calibrated on half of our questions, and tested."""

    model: str
    """As it was named."""
    sha256: str
    """Of its files."""
    population: dict[str, float]
    """Share of each level among the calibration questions."""
    known: Promise
    """For the answers called known."""
    unsure: Promise
    """For everything that is answered."""
    levels: tuple[LevelResult, ...]
    """The test, by how well known things are."""
    known_low: float
    """Lower end of the interval of the test error among answers called known."""
    known_high: float
    """Upper end."""
    right_or_wrong: tuple[SignalSeparation, ...]
    """How well each signal tells right from wrong answers on the test."""
    real_or_invented: tuple[SignalSeparation, ...]
    """The same for right answers against answers about things that do not exist."""
    drift: tuple[Drift, ...]
    """The error for other mixtures."""
    answers: tuple[TestAnswer, ...]
    """Every test answer."""
    seconds: float
    """It took so long."""
