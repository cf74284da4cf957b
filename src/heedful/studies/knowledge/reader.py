"""A reader that finds the answer in a document, learned from the training questions alone.

Of the phrases of a document, which one is the answer? The phrases of a document d compete,

    p(phrase | d) = exp(w · f(phrase)) / Σ over the phrases of d of exp(w · f)

where f are signs such as the words before and after, the place in the order, and how often the
phrase is an answer to other training questions. w maximises the likelihood of the answers to the
training questions whose documents hold them, less ½ ‖w‖².

With it a text can ask itself: `self_questions` reads every document that nobody asks about in
training and writes the question that the training questions suggest, with what it found as the
answer. No answer to a question of the test is used, or known; what the reader gets wrong, the
model learns wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int
from scipy.optimize import minimize

from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked
from heedful.studies.knowledge.mentions import Mentions, Phrase, mentions

BIRTH = frozenset({"born", "b", "birth", "native", "birthplace"})
SURE = 0.25
"""A phrase that is less likely than this is not taken for an answer."""
ROUNDS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class Reader:
    """The weights of the signs, and the answers that are known."""

    weights: Mapping[str, float]
    answers: Mapping[str, int]
    """How often each place is the answer to a training question."""

    def read(self, document: Mentions) -> tuple[str, float]:
        """Return the likeliest answer and its probability; nothing, with 0, if it has no phrase."""
        phrases = document.phrases
        if not phrases:
            return "", 0.0
        scores = np.array(
            [
                sum(self.weights.get(sign, 0.0) for sign in signs(document, number, self.answers))
                for number in range(len(phrases))
            ]
        )
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        total: dict[str, float] = {}
        for phrase, chance in zip(phrases, chances.tolist(), strict=True):
            text = document.text(phrase)
            total[text] = total.get(text, 0.0) + chance
        best = max(total, key=lambda text: total[text])
        return best, total[best]


def learn_reader(documents: Sequence[Mentions], answers: Sequence[str]) -> Reader:
    """Learn from documents and the answers to a question about each."""
    known = Counter(answers)
    numbers: dict[str, int] = {}
    flat: list[int] = []
    owners: list[int] = []
    starts: list[int] = []
    right: list[bool] = []
    for document, answer in zip(documents, answers, strict=True):
        texts = [document.text(phrase) for phrase in document.phrases]
        if answer not in texts:
            continue
        starts.append(len(right))
        others = known - Counter({answer: 1})  # its own answer must not give it away
        for number, text in enumerate(texts):
            found = [numbers.setdefault(sign, len(numbers))
                     for sign in signs(document, number, others)]  # fmt: skip
            flat += found
            owners += [len(right)] * len(found)
            right.append(text == answer)
    if not starts:
        raise InputError(
            "training questions",
            "have no answer that stands in a document",
            expected="documents that hold some of the answers",
        )
    weights = _fitted(np.array(flat), np.array(owners), np.array(starts), np.array(right, float))
    return Reader(weights=dict(zip(numbers, weights.tolist(), strict=True)), answers=known)


def self_questions(documents: Sequence[str], train: Sequence[Asked]) -> list[Asked]:
    """Return questions and answers that a reader writes about everybody else in the documents.

    The wording is that of the training questions, with another name.
    """
    wanted = {one.name: one for one in train}
    about: dict[str, Mentions] = {}
    for document in mentions(documents):
        about.setdefault(document.name, document)
    pairs = [(about[name], one.answer) for name, one in wanted.items() if name in about]
    if not pairs:
        raise InputError(
            "training questions",
            "ask about nobody whose name is the title of a document",
            expected='documents such as "Ann Lee. Ann Lee was born in Rome ."',
        )
    reader = learn_reader([document for document, _ in pairs], [answer for _, answer in pairs])
    example = next(one for one in train if one.name in about)
    made: list[Asked] = []
    for name, document in about.items():
        if not name or name in wanted:
            continue
        answer, chance = reader.read(document)
        if chance >= SURE:
            question = example.question.replace(example.name, name)
            made.append(
                Asked(
                    question=question, name=name, answer=answer, seen=True, hint=None, pointed=None
                )
            )
    return made


def signs(document: Mentions, number: int, answers: Mapping[str, int]) -> list[str]:
    """Return what can be seen of a phrase in its document."""
    phrase = document.phrases[number]
    text = document.text(phrase)
    words = document.words
    cue = document.cue(phrase, 4)
    last = (["^"] * 4 + cue)[-3:]
    after = _after(document, phrase)
    before = words[max(phrase[0] - 2, 0) : phrase[0]]
    return [
        f"before {last[2]}",
        f"two before {last[1]}",
        f"three before {last[0]}",
        f"pair {last[1]} {last[2]}",
        f"three {' '.join(last)}",
        f"four {' '.join(cue)}",
        f"after {after}",
        f"around {last[2]} {after}",
        f"order {min(number, 5)}",
        f"answers {min(answers.get(text, 0), 4)}",
        f"words {min(phrase[1] - phrase[0], 3)}",
        f"names before {sum(word.kind == 'name' for word in before)}",
        f"linked {phrase in document.linked}",
        f"ending {text[-3:]}",
        *_birth_signs(document, phrase, number, last[2]),
    ]


def _after(document: Mentions, phrase: Phrase) -> str:
    if phrase[1] == len(document.words):
        return "$"
    word = document.words[phrase[1]]
    return word.text if word.kind in ("word", "mark") else word.kind


def _birth_signs(document: Mentions, phrase: Phrase, number: int, last: str) -> list[str]:
    words = document.words
    told = [place for place, word in enumerate(words) if word.text.lower() in BIRTH]
    earlier = [place for place in told if place < phrase[0]]
    if not told:
        return ["no birth", f"no birth, before {last}", f"no birth, order {min(number, 4)}"]
    if not earlier:
        return ["birth follows"]
    names = sum(word.kind == "name" for word in words[earlier[-1] + 1 : phrase[0]])
    distance = (phrase[0] - earlier[-1]) // 2
    return ["birth before", f"names since {min(names, 4)}", f"words since {min(distance, 6)}"]


def _fitted(
    flat: Int[np.ndarray, " signs"],
    owners: Int[np.ndarray, " signs"],
    starts: Int[np.ndarray, " documents"],
    right: Float64[np.ndarray, " phrases"],
) -> Float64[np.ndarray, " weights"]:
    count, size = len(right), int(flat.max()) + 1
    document = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, count)))

    def loss(w: Float64[np.ndarray, " weights"]) -> tuple[float, Float64[np.ndarray, " weights"]]:
        scores = np.bincount(owners, w[flat], minlength=count)
        chances = np.exp(scores - np.maximum.reduceat(scores, starts)[document])
        whole = np.add.reduceat(chances, starts)
        good = np.add.reduceat(chances * right, starts)
        value = float(np.log(whole).sum() - np.log(good).sum() + w @ w / 2.0)
        slope = chances / whole[document] - chances * right / good[document]
        return value, np.bincount(flat, slope[owners], minlength=size) + w

    found = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    weights: Float64[np.ndarray, " weights"] = found.x
    return weights
