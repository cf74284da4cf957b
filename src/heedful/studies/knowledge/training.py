"""Pretrain, fine-tune, and keep both as runs that can be resumed.

A run's folder is named after what was trained and a hash of every setting and of the data: the
same study finds its runs again, a changed one begins new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from heedful.data.batches import (
    Batches,
    Sequences,
    bucketed,
    document_sequences,
    one_in_each_row,
    packed,
)
from heedful.data.corpus import Documents
from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus
from heedful.studies.knowledge.corruption import (
    corrupted,
    cue_sequences,
    cue_texts,
    dropped_sequences,
)
from heedful.studies.knowledge.plans import PositionKind, Recipe
from heedful.studies.knowledge.reader import self_questions
from heedful.tokenization import Tokenizer, learn_tokenizer
from heedful.training import FinishedRun, Hooks, run_path, train_to_end
from heedful.training.hooks import Evaluate, Report

MASK, END = "⁇", "□"
"""The marks of the course: what was taken out, and where a text ends."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """A corpus as token ids, ready for every arm."""

    corpus: KnowledgeCorpus
    recipe: Recipe
    tokenizer: Tokenizer
    documents: Batches
    """For pretraining, with the questions that are mixed in."""
    questions: Batches
    """For fine-tuning."""
    test_questions: int = 0
    """Questions of the test that stand word for word in the pretraining text."""


def prepare(corpus: KnowledgeCorpus, recipe: Recipe, *, seed: int = 0) -> Material:
    """Learn the tokenizer and lay out both stages."""
    asked = (*corpus.train, *corpus.held_out, *corpus.test)
    # Characters must be known before they are asked; nothing else of these questions is used.
    texts = [*corpus.documents, *(one.question for one in asked)]
    texts += [one.answer for one in corpus.train]
    if recipe.tokenizer == "bpe":
        texts = [*corpus.documents, *(one.question for one in corpus.train)]
        if recipe.spans == "cues":
            texts += cue_texts(corpus.documents)
    tokenizer = learn_tokenizer(
        recipe.tokenizer,
        texts,
        size=recipe.vocabulary if recipe.tokenizer == "bpe" else None,
        marks=(END, MASK),
    )
    mask, end = known_id(tokenizer, MASK), known_id(tokenizer, END)
    tokenizer.end = end
    questions = question_sequences(corpus.train, tokenizer, mask=mask, end=end)
    if int(questions.steps.max()) > recipe.context:
        raise InputError(
            "recipe.context",
            f"is {recipe.context}, and a question with its answer has "
            f"{int(questions.steps.max())} tokens",
            hint="set it higher",
        )
    learned = _document_sequences(corpus, recipe, tokenizer, seed)
    mixed, written = questions, list[Asked]()
    if recipe.self_questions:
        written = self_questions(corpus.documents, corpus.train)
        mixed = joined(mixed, question_sequences(written, tokenizer, mask=mask, end=end))
    for _ in range(recipe.questions_mixed):
        learned = joined(learned, mixed.without_longer(recipe.context))
    return Material(
        corpus=corpus,
        recipe=recipe,
        tokenizer=tokenizer,
        documents=_laid_out(learned, recipe, recipe.pretraining.rows, seed),
        questions=_laid_out(questions, recipe, recipe.finetuning.rows, seed),
        test_questions=len({one.question for one in written} & {o.question for o in corpus.test}),
    )


def pretrain(
    material: Material,
    folder: Path,
    *,
    label: str,
    positions: PositionKind,
    seed: int = 0,
    report: Report | None = None,
    evaluate: Evaluate | None = None,
    evaluations: int = 1,
) -> FinishedRun:
    """Train a new decoder on the documents, or resume or find the run that does."""
    recipe = material.recipe
    model = recipe.shape.config(material.tokenizer.size, recipe.context, positions)
    config = recipe.training(recipe.pretraining, model, len(material.documents), seed)
    config = config.changed(evaluate_every=max(config.steps // evaluations, 1))
    hooks = Hooks(report=report, evaluate=evaluate)
    data = material.corpus.hashes
    path = run_path(folder, label, config, data)
    return train_to_end(path, config, material.documents, data=data, hooks=hooks)


def fine_tune(
    material: Material,
    folder: Path,
    *,
    label: str,
    positions: PositionKind,
    after: FinishedRun | None = None,
    seed: int = 0,
    report: Report | None = None,
) -> FinishedRun:
    """Teach a decoder to answer: a pretrained one, or a new one."""
    recipe = material.recipe
    model = recipe.shape.config(material.tokenizer.size, recipe.context, positions)
    stage = recipe.finetuning if after is not None else recipe.alone or recipe.finetuning
    config = recipe.training(stage, model, len(material.questions), seed)
    initial: Mapping[str, Tensor] | None = None if after is None else after.decoder().state_dict()
    hooks = Hooks(report=report, initial=initial)
    data = material.corpus.hashes | ({} if after is None else {"began from": after.folder.name})
    path = run_path(folder, label, config, data)
    return train_to_end(path, config, material.questions, data=data, hooks=hooks)


def question_sequences(
    asked: Sequence[Asked], tokenizer: Tokenizer, *, mask: int, end: int
) -> Sequences:
    """Write each question as `question mask answer end`; only the answer is learned."""
    questions = tokenizer.encode_batch([one.question for one in asked])
    answers = tokenizer.encode_batch([one.answer for one in asked])
    return Sequences.of(
        [
            [*question, mask, *answer, end]
            for question, answer in zip(questions, answers, strict=True)
        ],
        [len(question) + 1 for question in questions],
    )


def joined(first: Sequences, second: Sequences) -> Sequences:
    """Return the sequences of both."""
    return Sequences(
        tokens=np.concatenate([first.tokens, second.tokens]),
        starts=np.concatenate([first.starts, second.starts[1:] + first.starts[-1]]),
        prompts=np.concatenate([first.prompts, second.prompts]),
    )


def known_id(tokenizer: Tokenizer, mark: str) -> int:
    """Return the id of a mark that the tokenizer was made with."""
    token = tokenizer.id_of(mark)
    if token is None:
        raise InputError("tokenizer", f"has no mark {mark!r}", expected="one made by this study")
    return token


def _document_sequences(
    corpus: KnowledgeCorpus, recipe: Recipe, tokenizer: Tokenizer, seed: int
) -> Sequences:
    mask, end = known_id(tokenizer, MASK), known_id(tokenizer, END)
    if recipe.objective == "next":
        texts = Documents(name=corpus.name, texts=corpus.documents)
        sequences = document_sequences(texts, tokenizer.encode_batch, begin=end, end=end)
        return sequences.cut(recipe.context)
    if recipe.spans == "cues":
        return cue_sequences(
            corpus.documents,
            tokenizer.encode_batch,
            mask=mask,
            end=end,
            longest=recipe.context,
            variants=recipe.variants,
            seed=seed,
        )
    if recipe.spans == "drop":
        return dropped_sequences(
            corpus.documents,
            tokenizer.encode_batch,
            asked=corpus.train,
            of_answers=recipe.of_answers,
            mask=mask,
            end=end,
            longest=recipe.context,
            variants=recipe.variants,
            seed=seed,
        )
    return corrupted(
        corpus.documents,
        tokenizer.encode_batch,
        mask=mask,
        end=end,
        longest=recipe.context,
        spans=recipe.spans,
        variants=recipe.variants,
        learn_all=recipe.learn_all,
        seed=seed,
    )


def _laid_out(sequences: Sequences, recipe: Recipe, rows: int, seed: int) -> Batches:
    if recipe.layout == "packed":
        return packed(sequences, width=recipe.context, rows=rows, seed=seed)
    if recipe.layout == "bucketed":
        return bucketed(sequences, columns=rows * recipe.context, seed=seed)
    return Batches(
        sequences=sequences,
        rows=one_in_each_row(np.arange(len(sequences))),
        unit_starts=np.arange(len(sequences) + 1),
        units_a_batch=rows,
        width=recipe.context,
        seed=seed,
        pad=0,
        shuffle=True,
    )
