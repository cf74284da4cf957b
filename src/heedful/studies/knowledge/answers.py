"""Answers, each with every signal that the model gives about it at run time.

    probability   Π p(token) of the answer, its end included
    margin        the smallest lead of a token over the second likeliest
    entropy       the largest entropy of the next token on the way, in nats, turned round (−H)
    samples       share of drawn answers that are the same
    spread        entropy of the drawn answers, in nats, turned round; two of them mean the same
                  where they are the same words: a place has one name here
    rephrasing    share of other ways to ask that get the same answer
    sensitivity   by how much log p of the answer falls when letters of the name change places
    familiarity   log p of the name at the beginning of a text, its first token given: a decoder
                  that has read about somebody has learned to expect the name
    attention     what the token before the answer reads from the name, the most of all heads

Higher always means surer, so that every signal can be judged in the same way.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from heedful.data.synthetic.biographies import QUESTION_PHRASINGS
from heedful.generation import FastStep, Greedy, Sampling, Stops, generate
from heedful.model import Decoder
from heedful.studies.knowledge.corpus import Asked
from heedful.studies.knowledge.training import END, MASK, Material, known_id
from heedful.tokenization import Tokenizer

SIGNALS = (
    "probability", "margin", "entropy", "samples", "spread", "rephrasing", "sensitivity",
    "familiarity", "attention",
)  # fmt: skip
ROWS_AT_ONCE = 256
TINY = 1e-300
"""The smallest probability of which a logarithm is taken."""
MISSPELLINGS = 4
"""Other spellings of a name, two neighbouring letters exchanged in each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reply:
    """What a model says to one question."""

    text: str
    """The answer; empty where it had nothing to say."""
    tokens: tuple[int, ...]
    """Its tokens, the end included where it came to one."""
    finished: bool
    """Whether it ended by itself."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Signals:
    """The signals of many answers, one array each."""

    values: dict[str, Float64[np.ndarray, " questions"]]
    """By the names of `SIGNALS`."""
    logits: tuple[Float[np.ndarray, "tokens vocabulary"], ...]
    """Of each answer's tokens, for a temperature."""


class Answerer:
    """A decoder that answers questions in the form it was fine-tuned on."""

    def __init__(self, decoder: Decoder, tokenizer: Tokenizer, longest_answer: int) -> None:
        self.decoder = decoder.eval()
        self.tokenizer = tokenizer
        self.mask, self.end = known_id(tokenizer, MASK), known_id(tokenizer, END)
        self.longest_answer = longest_answer
        """Tokens of an answer at most, its end included."""
        self.step = FastStep(decoder)

    @classmethod
    def of(cls, decoder: Decoder, material: Material) -> Answerer:
        """Return a decoder that was trained on this material, ready to be asked."""
        # As many tokens as the longest answer that was learned, and some more.
        answers = material.tokenizer.encode_batch([one.answer for one in material.corpus.train])
        return cls(decoder, material.tokenizer, max(map(len, answers)) + 3)

    @property
    def longest_question(self) -> int:
        """Tokens of a question at most."""
        return self.decoder.config.context - self.longest_answer

    def prompts(self, questions: Sequence[str]) -> list[list[int]]:
        """Return what is read before each answer."""
        return [[*tokens, self.mask] for tokens in self.tokenizer.encode_batch(list(questions))]

    def replies(self, questions: Sequence[str]) -> list[Reply]:
        """Return the likeliest answer to each question, token by token."""
        return [first for first, *_ in self._generated(questions, Greedy())]

    def replies_to(self, asked: Sequence[Asked]) -> list[Reply]:
        """Return the likeliest answer to each question of a corpus."""
        return self.replies([one.question for one in asked])

    def accuracy(self, asked: Sequence[Asked]) -> float:
        """Return the share of questions that are answered right."""
        return float(correct(asked, self.replies_to(asked)).sum()) / max(len(asked), 1)

    def sampled(self, questions: Sequence[str], samples: int, seed: int) -> list[list[str]]:
        """Return answers drawn at temperature 1, several for each question."""
        drawn = self._generated(questions, Sampling(samples=samples, seed=seed))
        return [[reply.text for reply in replies] for replies in drawn]

    @torch.no_grad()
    def _generated(self, questions: Sequence[str], method: Greedy | Sampling) -> list[list[Reply]]:
        replies: list[list[Reply]] = []
        prompts = self.prompts(questions)
        for first in range(0, len(prompts), ROWS_AT_ONCE):
            result = generate(
                self.decoder,
                prompts[first : first + ROWS_AT_ONCE],
                method=method,
                stops=Stops(tokens=self.longest_answer, ends=(self.end,)),
                step=self.step,
            )
            replies += [[self._reply(one.tokens) for one in row] for row in result.continuations]
        return replies

    def signals(
        self, asked: Sequence[Asked], replies: Sequence[Reply], *, samples: int, seed: int
    ) -> Signals:
        """Return every signal of the answers."""
        questions = [one.question for one in asked]
        logits = self.read_again(questions, replies)
        values = _token_signals(replies, logits)
        drawn = self.sampled(questions, samples, seed)
        values["samples"] = np.array(
            [
                np.mean([other == reply.text for other in answers])
                for answers, reply in zip(drawn, replies, strict=True)
            ]
        )
        values["spread"] = np.array([-spread(answers) for answers in drawn])
        values["rephrasing"] = self._rephrased(asked, replies)
        values["sensitivity"] = self._sensitivity(asked, replies, logits)
        values["familiarity"] = self._familiarity([one.name for one in asked])
        values["attention"] = self._attention_to_names(asked)
        return Signals(values=values, logits=logits)

    @torch.no_grad()
    def read_again(
        self, questions: Sequence[str], replies: Sequence[Reply]
    ) -> tuple[Float[np.ndarray, "tokens vocabulary"], ...]:
        """Read question and answer together; return the logits of the answer's tokens."""
        prompts = self.prompts(questions)
        rows = [
            [*prompt, *reply.tokens[:-1]] for prompt, reply in zip(prompts, replies, strict=True)
        ]
        logits: list[np.ndarray] = []
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[first : first + ROWS_AT_ONCE]
            streams = self.decoder.hidden(_padded(part))
            for place, row in enumerate(part):
                start = len(prompts[first + place]) - 1
                answer = self.decoder.logits(streams[place, start : len(row)])
                logits.append(answer.float().numpy())
        return tuple(logits)

    def _rephrased(
        self, asked: Sequence[Asked], replies: Sequence[Reply]
    ) -> Float64[np.ndarray, " questions"]:
        others = QUESTION_PHRASINGS[1:]
        agreed = np.zeros(len(asked))
        for phrasing in others:
            again = self.replies([phrasing.format(n=one.name) for one in asked])
            agreed += [new.text == reply.text for new, reply in zip(again, replies, strict=True)]
        return agreed / len(others)

    def _sensitivity(
        self,
        asked: Sequence[Asked],
        replies: Sequence[Reply],
        logits: Sequence[Float[np.ndarray, "tokens vocabulary"]],
    ) -> Float64[np.ndarray, " questions"]:
        fallen: Float64[np.ndarray, " questions"] = np.log(
            np.maximum(sequence_probability(logits, replies), TINY)
        )
        others = [misspelled(one.name) for one in asked]
        for number in range(MISSPELLINGS):
            questions = [
                one.question.replace(one.name, names[number])
                for one, names in zip(asked, others, strict=True)
            ]
            again = sequence_probability(self.read_again(questions, replies), replies)
            fallen -= np.log(np.maximum(again, TINY)) / MISSPELLINGS
        return fallen

    @torch.no_grad()
    def _familiarity(self, names: Sequence[str]) -> Float64[np.ndarray, " names"]:
        expected: list[float] = []
        rows = self.tokenizer.encode_batch(list(names))
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[first : first + ROWS_AT_ONCE]
            streams = self.decoder.hidden(_padded(part))
            for stream, row in zip(streams, part, strict=True):
                logs = self.decoder.logits(stream[: len(row) - 1]).log_softmax(-1)
                expected.append(float(logs.gather(1, torch.tensor(row[1:])[:, None]).sum()))
        return np.array(expected)

    @torch.no_grad()
    def states(self, asked: Sequence[Asked]) -> Float64[np.ndarray, "questions features"]:
        """Return the streams after every layer, at the last token of the name and of the prompt."""
        found: list[np.ndarray] = []
        prompts = self.prompts([one.question for one in asked])
        for first in range(0, len(prompts), ROWS_AT_ONCE // 4):
            part = prompts[first : first + ROWS_AT_ONCE // 4]
            layers = self.decoder.trace(_padded(part)).layers
            for place, row in enumerate(part):
                ends = (self._name_place(asked[first + place], len(row))[1] - 1, len(row) - 1)
                read = [layer.after[place, end].double() for end in ends for layer in layers]
                found.append(torch.cat(read).numpy())
        return np.stack(found)

    @torch.no_grad()
    def _attention_to_names(self, asked: Sequence[Asked]) -> Float64[np.ndarray, " questions"]:
        shares: list[float] = []
        prompts = self.prompts([one.question for one in asked])
        for first in range(0, len(prompts), ROWS_AT_ONCE // 4):
            part = prompts[first : first + ROWS_AT_ONCE // 4]
            trace = self.decoder.trace(_padded(part))
            for place, row in enumerate(part):
                start, end = self._name_place(asked[first + place], len(row))
                read = [layer.weights[place, :, len(row) - 1, start:end] for layer in trace.layers]
                shares.append(max(float(layer.sum(-1).max()) for layer in read))
        return np.array(shares)

    @torch.no_grad()
    def name_states(self, asked: Sequence[Asked]) -> Float64[np.ndarray, "questions width"]:
        """Return the stream of a middle layer at the last token of each name."""
        states: list[np.ndarray] = []
        middle = (self.decoder.config.layers - 1) // 2
        prompts = self.prompts([one.question for one in asked])
        for first in range(0, len(prompts), ROWS_AT_ONCE // 4):
            part = prompts[first : first + ROWS_AT_ONCE // 4]
            stream = self.decoder.trace(_padded(part)).layers[middle].after
            for place, row in enumerate(part):
                _, end = self._name_place(asked[first + place], len(row))
                states.append(stream[place, end - 1].double().numpy())
        return np.stack(states)

    def _name_place(self, one: Asked, length: int) -> tuple[int, int]:
        """Return the tokens of the prompt that hold the name; all of them if it is not there."""
        before, name, _ = one.question.partition(one.name)
        if not name:
            return 0, length - 1
        start = len(self.tokenizer.encode(before.rstrip()))
        end = len(self.tokenizer.encode(before + name))
        return min(start, length - 2), min(end, length - 1)

    def _reply(self, tokens: Sequence[int]) -> Reply:
        text = self.tokenizer.decode([token for token in tokens if token != self.end])
        finished = bool(tokens) and tokens[-1] == self.end
        return Reply(text=text.strip(), tokens=tuple(tokens), finished=finished)


def misspelled(name: str) -> list[str]:
    """Return other spellings of a name: two neighbouring letters of a word exchanged in each.

    >>> misspelled("Al")
    ['lA', 'lA', 'lA', 'lA']
    """
    inside = [
        place
        for place, (one, other) in enumerate(pairwise(name))
        if one != other and " " not in one + other
    ]
    if not inside:
        return [name] * MISSPELLINGS
    # The name decides, so that an answer has the same signals in any company.
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    chosen = draw.choice(inside, size=MISSPELLINGS, replace=len(inside) < MISSPELLINGS)
    return [name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in chosen.tolist()]


def spread(answers: Sequence[str]) -> float:
    """Return the entropy of some answers, in nats: 0 where all are the same.

    >>> round(spread(["Rome", "Rome", "Oslo", "Oslo"]) / math.log(2), 6)
    1.0
    """
    shares = [count / len(answers) for count in Counter(answers).values()]
    return -sum(share * math.log(share) for share in shares)


def correct(asked: Sequence[Asked], replies: Sequence[Reply]) -> Bool[np.ndarray, " questions"]:
    """Return which replies are the right answer."""
    return np.array(
        [reply.text == one.answer for one, reply in zip(asked, replies, strict=True)], dtype=bool
    )


def sequence_probability(
    logits: Sequence[Float[np.ndarray, "tokens vocabulary"]],
    replies: Sequence[Reply],
    temperature: float = 1.0,
) -> Float64[np.ndarray, " questions"]:
    """Return Π softmax(z/T)[token] over the tokens of each answer."""
    probabilities = []
    for scores, reply in zip(logits, replies, strict=True):
        logs = _log_softmax(np.asarray(scores, dtype=np.float64) / temperature)
        probabilities.append(
            math.exp(float(logs[np.arange(len(reply.tokens)), reply.tokens].sum()))
        )
    return np.array(probabilities)


def _token_signals(
    replies: Sequence[Reply], logits: Sequence[Float[np.ndarray, "tokens vocabulary"]]
) -> dict[str, Float64[np.ndarray, " questions"]]:
    margins, entropies = [], []
    for scores in logits:
        logs = _log_softmax(np.asarray(scores, dtype=np.float64))
        chances = np.exp(logs)
        best = np.sort(chances, axis=1)[:, -2:]
        margins.append(float((best[:, 1] - best[:, 0]).min()))
        entropies.append(float((chances * logs).sum(axis=1).min()))
    return {
        "probability": sequence_probability(logits, replies),
        "margin": np.array(margins),
        "entropy": np.array(entropies),
    }


def _log_softmax(
    scores: Float64[np.ndarray, "tokens vocabulary"],
) -> Float64[np.ndarray, "tokens vocabulary"]:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: Float64[np.ndarray, "tokens vocabulary"] = shifted - np.log(
        np.exp(shifted).sum(axis=1, keepdims=True)
    )
    return logs


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Set rows side by side; what follows a row's end is never seen from inside it."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
