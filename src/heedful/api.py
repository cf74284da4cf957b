"""The public functions behind `import heedful as h`: each one call into a room.

Keys are rows of numbers or the name of a standard set ("orthonormal", "sphere", "grid", …, with
`n` and `d`). Results are records: they have `to_dict()`, `to_json()` and docstrings for each
field. Errors are `HeedfulError`s of one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.claims.checker import check, claim
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.attention import AttentionResult, Design, HeadsDesign, NoiseStudy
    from heedful.model import Pretrained
    from heedful.records import Record
    from heedful.studies.knowledge.findings import AskReply, ModelReply
    from heedful.training import FinishedRun

__all__ = [
    "ask",
    "attend",
    "check",
    "claim",
    "design",
    "load",
    "noise",
    "study",
    "train",
    "translate",
]

StudyName = Literal["translation", "knowledge", "capacity", "heads", "attention"]


def attend(
    query: Any,
    keys: Any = "orthonormal",
    values: Any = None,
    *,
    n: int | None = None,
    d: int | None = None,
    scale: float | Literal["sqrt_d"] = 1.0,
    mask: Any = None,
) -> AttentionResult:
    """Compute attention for one query or many: α = softmax(K q) and c = Σ α_i v_i.

    >>> import heedful as h
    >>> h.attend([6, 6, 0, 0], n=4).weights.round(3)
    array([0.499, 0.499, 0.001, 0.001])
    """
    from heedful.attention import attend as attention_of
    from heedful.attention import keys_from

    return attention_of(query, keys_from(keys, n, d), values, scale=scale, mask=mask)


def design(
    keys: Any = "orthonormal",
    *,
    copy: int | None = None,
    average: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    n: int | None = None,
    d: int | None = None,
    tolerance: float = 0.01,
    noisy: Mapping[int, float] | None = None,
    heads: int = 2,
) -> Design | HeadsDesign:
    """Return the shortest query that copies one value, averages some, or gives the wanted weights.

    The record holds the query and its certificate, or the proof that no query does it. With
    `noisy` (a variance for each noisy key) it is the queries of several heads that withstand it.

    >>> import heedful as h
    >>> round(h.design(average=[0, 1], n=10, d=16).beta, 3)
    5.981
    """
    from heedful import attention

    if sum(wanted is not None for wanted in (copy, average, weights)) != 1:
        raise InputError(
            "design",
            "needs to know what is wanted",
            expected="one of copy=, average= or weights=",
            hint="for instance h.design(average=[0, 1], n=10)",
        )
    rows = attention.keys_from(keys, n, d)
    if noisy is not None:
        wanted = [copy] if copy is not None else list(average or ())
        gaussian = attention.GaussianKeys.of(rows, noisy=dict(noisy))
        return attention.design_heads(gaussian, of=wanted, heads=heads)
    if copy is not None:
        return attention.design_copy(rows, copy, tolerance=tolerance)
    if average is not None:
        return attention.design_average(rows, average, tolerance=tolerance)
    return attention.design_weights(rows, weights, tolerance=tolerance)


def noise(
    heads: Sequence[Any] | str = ("0", "1"),
    keys: Any = "orthonormal",
    *,
    n: int | None = None,
    d: int | None = None,
    noisy: Mapping[int, float] | None = None,
    beta: float = 50.0,
    of: Sequence[int] | None = None,
    draws: int = 10_000,
    seed: int = 0,
) -> NoiseStudy:
    """Return how weights and output of some heads are distributed when keys are noisy.

    `heads` are queries: rows of numbers, or sums of keys such as "0+1", which `beta` scales.
    `noisy` gives the variance of each noisy key along itself; the keys are the means.

    >>> import heedful as h
    >>> study = h.noise("0+1", n=10, d=16, noisy={0: 0.5}, draws=100)
    >>> study.names, round(float(study.exact.std[0]), 4)
    (('0+1',), 0.4886)
    """
    from heedful.attention import GaussianKeys, keys_from, study_noise
    from heedful.attention.keys import combined, named_keys

    heads = [heads] if isinstance(heads, str) else heads
    means = keys_from(keys, n, d)
    gaussian = GaussianKeys.of(means, noisy=dict({0: 0.5} if noisy is None else noisy))
    queries = [
        combined(means, head, beta, "heads") if isinstance(head, str) else head for head in heads
    ]
    sums = [head for head in heads if isinstance(head, str)]
    target = named_keys(sums, len(means), "heads") if of is None else of
    names = [head if isinstance(head, str) else f"q{place}" for place, head in enumerate(heads)]
    return study_noise(gaussian, queries, of=target, draws=draws, seed=seed, names=names)


def load(path: Path | str) -> Pretrained:
    """Open a model: a run's folder, a Hugging Face folder, a GGUF or a llama2.c file.

    The record has the `decoder` (a torch module with `trace`) and its `tokenizer`.
    """
    from heedful.model import load as load_model

    return load_model(path)


def train(settings: Mapping[str, Any] | Path | str, run: Path | str) -> FinishedRun:
    """Train a decoder as a TOML file or a table of settings says; resume it if it was stopped.

    The smallest table is {"steps": 300, "model": {"preset": "tiny"}, "data": {"source":
    "phrasebook"}}. A run that is finished already is found, not trained again.
    """
    from heedful.studies.text_training import prepare
    from heedful.training import Hooks, held_out_loss, train_to_end
    from heedful.training.config import read_values

    values = dict(settings) if isinstance(settings, Mapping) else read_values(Path(settings))
    training = prepare(values)
    hooks = Hooks(evaluate=held_out_loss(training.held_out), adapt=training.adapt)
    finished = train_to_end(
        Path(run), training.config, training.batches, data=training.hashes, hooks=hooks
    )
    from heedful.studies.translation.translator import format_of, keep_model

    keep_model(finished.folder, finished.decoder, training.tokenizer, format_of(training))
    return finished


def translate(model: Path | str, *texts: str, beam: int = 1) -> list[str]:
    """Translate texts with a run that was trained on pairs; one translation for each text."""
    from heedful.studies.translation import Translator

    return [one.text for one in Translator.open(model).translate(texts, beam=beam)]


def ask(model: Path | str, *questions: str) -> list[AskReply] | list[ModelReply]:
    """Ask the model of a knowledge study, or any other; a reply has an answer or says it has none.

    Models that others have trained are named as for `load`: `smollm2`, a folder, a file.
    """
    from heedful.studies.knowledge.asker import Asker, can_be_opened_as_model

    if can_be_opened_as_model(Path(model)):
        from heedful.studies.knowledge.pretrained import PretrainedAsker

        asker = PretrainedAsker(model)
        return list(asker.ask(questions, asker.calibration()).replies)
    return Asker(Path(model)).ask(questions)


def study(name: StudyName, folder: Path | str, *, quick: bool = False, **settings: Any) -> Record:
    """Run a study in a folder, or go on with it, and return its record.

    `translation`, `knowledge` and `capacity` train in the folder; `heads` studies the model in it;
    `attention` is the exploration of the course's questions and needs none. `settings` are
    those of the study, as in `heed study NAME --help`.
    """
    output = Path(folder)
    if name == "attention":
        from heedful.studies.exploration import explore

        return explore()
    if name == "heads":
        from heedful.studies.heads import QUICK_EFFORT, Effort, study_heads

        return study_heads(output, effort=QUICK_EFFORT if quick else Effort(), **settings)
    output.mkdir(parents=True, exist_ok=True)
    if name == "knowledge":
        from heedful.studies.knowledge.knowledge_study import study_knowledge
        from heedful.studies.knowledge.plans import plan_for

        return study_knowledge(*plan_for(quick=quick, **settings), output)
    if name == "capacity":
        from heedful.studies.knowledge.capacity import QUICK as QUICK_CAPACITY
        from heedful.studies.knowledge.capacity import CapacityPlan, study_capacity

        return study_capacity(QUICK_CAPACITY if quick else CapacityPlan(**settings), output)
    if name == "translation":
        from heedful.studies.translation.recipe import QUICK, study_settings
        from heedful.studies.translation.translation_study import run_study

        return run_study(study_settings(QUICK if quick else {}, settings), output)
    raise InputError(
        "study",
        f"{name!r} is not known",
        expected="translation, knowledge, capacity, heads or attention",
    )
