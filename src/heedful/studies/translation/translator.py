"""A trained decoder as a translator: lines of text in, translations out, in the same order.

A pair is written as tokens with marks around its sides:

    begin  source tokens  between  target tokens  end

A file `translation.json` beside the weights says which marks these are. Without it nobody can
tell a model that translates from one that only continues texts: their tokenizers may have the
same marks.

Lines are read in chunks, sorted by length and translated in batches, and given back in the
order in which they came. An empty line stays empty. A line that cannot be translated gives an
empty text and says why in `problem`: line i out always belongs to line i in.

A translator likes short texts that leave something out. Whoever reads such a text cannot tell
what was left out, so a second translator for the way back is asked how well the source follows
from each text that the beams found:

    score = log p(target | source) / tokens^length_penalty + λ log p(source | target) / tokens
            + γ content words of the target, each word once

The last term is a reward for words (Murray and Chiang 2018, arXiv:1808.10006), of those that carry
content only: a reward for every word is paid to "it is that …" too.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import torch
from pydantic import Field

from heedful.data.languages import GRAMMAR, content_words
from heedful.data.synthetic.phrasebook import keyboard
from heedful.errors import ConfigError, HeedfulError, InputError, RunError
from heedful.files import write_json
from heedful.generation import Beams, Continuation, FastStep
from heedful.generation.decoding import Prompts, continuations, evaluating
from heedful.generation.fast import Precision
from heedful.generation.methods import GREEDY, Method
from heedful.model import Decoder, load, write_folder
from heedful.model.weights import located
from heedful.model.weights.huggingface import GENERATION, read_json
from heedful.records import Record
from heedful.settings import Settings
from heedful.studies.text_training import BEGIN, BETWEEN, END, TextTraining, prepare
from heedful.tokenization import Tokenizer
from heedful.tokenization.same_tokens import SameTokens, with_capital_of
from heedful.training.runs import trained_decoder

FILE = "translation.json"
_BREAKS = re.compile(r"[\r\n]+")


class TranslationFormat(Settings):
    """What a translator must know beside weights and tokenizer.

    >>> TranslationFormat(normalise="keyboard").written("Où est l’hôtel\\u202f? ")
    "Où est l'hôtel ?"
    """

    begin: str | None = BEGIN
    """The token that opens a source, as the vocabulary writes it; None where there is none."""
    between: str = BETWEEN
    """The token after which the translation begins."""
    end: str = END
    """The token that ends it."""
    languages: tuple[str, str] = ("fr", "en")
    """From which language into which."""
    normalise: Literal["nfc", "keyboard", "none"] = "nfc"
    """How a source is written before it is read: in NFC; as the phrasebook writes French; or
    left as it is. In any case it becomes one line, without white space at its ends."""
    same_tokens: bool = False
    """Whether a word has the same tokens wherever in a text it stands, and a translation gets its
    capital afterwards (`heedful.tokenization.same_tokens`)."""
    reverse: str | None = None
    """The model for the way back, by its name, which ranks what the beams find; None: nobody."""
    reverse_weight: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0
    """λ, how much the way back counts; chosen on held-out text."""
    content_reward: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0
    """γ, what each content word of a text adds where the way back is asked; chosen with λ."""
    stand_ins: tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...] = ()
    """Names of one kind, and numbers, that the model never gets wrong (`stand_ins`)."""
    right_words: tuple[tuple[float, float], ...] = ()
    """Points of log p of a word and the share of such words that were right (`quality`)."""

    def model_post_init(self, _context: object) -> None:
        """Refuse a reward that cannot be counted."""
        if self.content_reward and self.languages[1] not in GRAMMAR:
            raise ConfigError(
                "content_reward",
                f"is {self.content_reward:g} for texts in {self.languages[1]!r}",
                expected=f"0: only for {', '.join(GRAMMAR)} is it known which words have content",
            )

    def written(self, text: str) -> str:
        """Return a source as the model was taught to read it."""
        text = _BREAKS.sub(" ", text)
        if self.normalise != "none":
            text = unicodedata.normalize("NFC", text)
        return (keyboard(text) if self.normalise == "keyboard" else text).strip()

    def source(self, text: str, tokenizer: Tokenizer) -> str:
        """Return what the tokenizer is given of a source."""
        text = self.written(text)
        same = SameTokens(tokenizer.encode) if self.same_tokens else None
        return text if same is None else same.source(text, self.languages[0])

    def target(self, text: str, tokenizer: Tokenizer) -> str:
        """Return what the tokenizer is given of a translation."""
        return SameTokens(tokenizer.encode).target(text) if self.same_tokens else text

    def without_shouting(self, text: str, tokenizer: Tokenizer) -> str:
        """Return a text of capitals as it is usually written, where the vocabulary can tell."""
        if not self.same_tokens:
            return text
        return SameTokens(tokenizer.encode).without_shouting(text)

    def shown(self, text: str, source: str) -> str:
        """Return a translation, as its tokens spell it, as people read it beside its source."""
        text = in_one_line(text).strip()
        return with_capital_of(text, source) if self.same_tokens else text

    def ranking(self, text: str, back: float) -> float:
        """Return what a text's way back and its content words add to its score.

        >>> TranslationFormat(reverse_weight=0.5, content_reward=0.1).ranking("A cat, a cat.", -2.0)
        -0.9
        """
        words = set(content_words(text, self.languages[1])) if self.content_reward else ()
        return self.reverse_weight * back + self.content_reward * len(words)

    def marks(self, tokenizer: Tokenizer, where: str = "tokenizer") -> Marks:
        """Return the ids of the marks, or say which one the tokenizer does not have."""
        begin = None if self.begin is None else self._id(tokenizer, "begin", where)
        between, end = (self._id(tokenizer, name, where) for name in ("between", "end"))
        return Marks(begin=begin, between=between, end=end)

    def _id(self, tokenizer: Tokenizer, name: str, where: str) -> int:
        mark = getattr(self, name)
        found = tokenizer.id_of(mark)
        if found is None:
            raise ConfigError(
                where,
                f"has no token {mark!r}, the mark `{name}` of {FILE}",
                expected="the tokenizer with which the model was trained",
            )
        return found

    def write(self, folder: Path) -> None:
        """Write it beside the weights."""
        unused = set() if self.right_words else {"right_words"}
        unused |= set() if self.stand_ins else {"stand_ins"}
        unused |= set() if self.same_tokens else {"same_tokens"}
        unused |= set() if self.reverse else {"reverse", "reverse_weight"}
        unused |= set() if self.content_reward else {"content_reward"}
        try:
            write_json(folder / FILE, self.model_dump(mode="json", exclude=unused))
        except OSError as error:
            raise RunError(str(folder / FILE), f"could not be written ({error.strerror})") from None

    @classmethod
    def read(cls, folder: Path) -> TranslationFormat:
        """Read it from beside the weights."""
        try:
            return cls.of(read_json(folder / FILE))
        except ConfigError as error:
            raise InputError(
                f"{folder / FILE}: {error.where}",
                error.problem,
                expected=error.expected,
                hint=error.hint,
            ) from None


class Marks(Settings):
    """The ids of the marks."""

    begin: int | None
    between: int
    end: int

    def around(self, source: list[int]) -> list[int]:
        """Return the prompt that asks for the translation of a source."""
        opening = [] if self.begin is None else [self.begin]
        return [*opening, *source, self.between]

    @property
    def all(self) -> frozenset[int]:
        """Every id that no source may hold itself."""
        opening = [] if self.begin is None else [self.begin]
        return frozenset([*opening, self.between, self.end])

    @property
    def suppressed(self) -> frozenset[int]:
        """Every id that no translation may hold. No training wants them there, but label smoothing
        wants every token a little, which is enough where the model knows nothing better."""
        return self.all - {self.end}


CHUNK = 2_048
"""Lines that are sorted together; the first translation comes after as many were read."""
ROWS = 64
"""Lines translated side by side; with beams, as many beams."""
Rows: TypeAlias = Sequence[Sequence[int]]
"""Prompts that are continued side by side."""
LONGEST_LINE = 20_000
"""Characters of a line beyond which it is not even cut into tokens."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Hypothesis(Record):
    """One translation of a line."""

    text: str
    """In one line: what would break it is a blank."""
    log_probability: float
    """Of the whole, its end included."""
    per_token: float
    """The same, divided by the number of tokens."""
    score: float
    """What it is ranked by: log p / tokens^length_penalty, with the way back and the content words
    where that is asked; greedy: the log-probability."""
    tokens: tuple[int, ...]
    """Token ids; the last one is the end if `finished`."""
    log_probabilities: tuple[float, ...]
    """Of each token."""
    finished: bool
    """Whether it ended by itself; else the limit of tokens cut it off."""
    reverse: float | None = None
    """log p(source | this text) per token, by the model for the way back; None: not asked."""


Work: TypeAlias = Callable[[Rows, Sequence[str]], list[tuple[Hypothesis, ...]]]
"""Translates rows side by side, given their sources as texts too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Translation(Record):
    """A line and its translations."""

    source: str
    """The line as it came."""
    text: str
    """The best translation; empty for an empty line and for one with a `problem`."""
    hypotheses: tuple[Hypothesis, ...] = ()
    """Best first; none for an empty line and for one with a problem."""
    problem: str = ""
    """Why the line could not be translated; empty when it could."""
    notes: tuple[str, ...] = ()
    """What was left as it is, or may be wrong; only of lines that are read as whole texts."""


class Translator:
    """Translates lines with a decoder that was trained on pairs."""

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        written: TranslationFormat | None = None,
        *,
        precision: Precision = "float32",
        reverse: Translator | None = None,
    ) -> None:
        self.decoder, self.tokenizer, self.reverse = decoder, tokenizer, reverse
        self.format = TranslationFormat() if written is None else written
        self.marks = self.format.marks(tokenizer)
        self.step = FastStep(decoder, precision)

    @classmethod
    def open(
        cls, path: Path | str, *, precision: Precision = "float32", reverse: bool = True
    ) -> Translator:
        """Open a run that was trained on pairs, or a model folder with a `translation.json`.

        With `reverse`, also the model for the way back that its format names, if any.
        """
        decoder, tokenizer, written = opened(Path(path))
        back = reverse_of(written) if reverse else None
        return cls(decoder, tokenizer, written, precision=precision, reverse=back)

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam: int = 1,
        nbest: int = 1,
        length_penalty: float = 1.0,
        max_tokens: int | None = None,
        batch: int = ROWS,
    ) -> Iterator[Translation]:
        """Return an iterator over the translations, in the order of the lines.

        `beam` 1 takes the likeliest token each time; more search for the likeliest text, and
        `nbest` of them are kept, fewer where beams read alike. A translation has at most
        `max_tokens` tokens; without it, twice as many as its source and some.
        """
        if isinstance(lines, str):
            raise InputError("lines", "are one text", expected="several lines were expected")
        for name, value in (("beam", beam), ("nbest", nbest), ("batch", batch)):
            _check_positive(name, value)
        if max_tokens is not None:
            _check_positive("max_tokens", max_tokens)
        method = _method(beam, nbest, length_penalty)
        reverse = self.reverse if isinstance(method, Beams) else None
        if reverse is not None or nbest > 1:
            method = _method(beam, beam, length_penalty)  # all are compared before some are kept

        def work(rows: Rows, sources: Sequence[str]) -> list[tuple[Hypothesis, ...]]:
            found = self._continued(rows, sources, method, max_tokens)
            if reverse is not None:
                found = self._ranked(reverse, sources, found)
            return [several[:nbest] for several in found]

        return self._translated(iter(lines), work, max(1, batch // beam))

    def log_probabilities(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return log p(target | source) per token of the target, its end included, of each pair.

        −∞ where one of the two cannot be read.
        """
        rows: list[tuple[list[int], list[int]]] = []
        written = [
            self.format.target(self.format.written(target), self.tokenizer) for target in targets
        ]
        encoded = self._encoded(written)
        for (prompt, _), (tokens, problem) in zip(self._prompts(sources), encoded, strict=True):
            fits = len(prompt) + len(tokens) < self.decoder.config.context
            readable = prompt and not problem and fits
            rows.append((prompt, [*tokens, self.marks.end]) if readable else ([], []))
        order = sorted(range(len(rows)), key=lambda place: sum(map(len, rows[place])))
        order = [place for place in order if rows[place][0]]
        found = [-math.inf] * len(rows)
        for first in range(0, len(order), ROWS):
            places = order[first : first + ROWS]
            means = self._forced([rows[place] for place in places])
            for place, mean in zip(places, means, strict=True):
                found[place] = mean
        return found

    @torch.no_grad()
    def _forced(self, rows: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        """Return the mean log p of each continuation after its prompt, read in one pass."""
        longest = max(len(prompt) + len(target) for prompt, target in rows)
        tokens = torch.full((len(rows), longest), self.marks.end)  # the rest is read by nobody
        for row, (prompt, target) in enumerate(rows):
            tokens[row, : len(prompt) + len(target)] = torch.tensor([*prompt, *target])
        streams = self.decoder.hidden(tokens[:, :-1])
        means = []
        for row, (prompt, target) in enumerate(rows):
            places = slice(len(prompt) - 1, len(prompt) + len(target) - 1)
            logs = self.decoder.logits(streams[row, places]).log_softmax(dim=-1)
            means.append(float(logs.gather(1, torch.tensor(target)[:, None]).mean()))
        return means

    def texts(self, lines: Iterable[str], *, beam: int = 1) -> list[str]:
        """Return only the best translation of each line."""
        return [found.text for found in self.translate(lines, beam=beam)]

    def prompt(self, line: str) -> tuple[list[int], str]:
        """Return the tokens that ask for a translation, or an empty list and what is wrong."""
        return self._prompts([line])[0]

    def _translated(self, lines: Iterator[str], work: Work, rows: int) -> Iterator[Translation]:
        while chunk := list(islice(lines, CHUNK)):
            prompts = self._prompts(chunk)
            # Lines that repeat are translated once. The longest come first: a lane that ends
            # early has a short batch left to take.
            keys = [
                (tuple(prompt), self.format.shown("a", line))  # a capital is no part of the prompt
                for line, (prompt, _) in zip(chunk, prompts, strict=True)
            ]
            several = {key: line for key, line in zip(keys, chunk, strict=True) if key[0]}
            asked = sorted(several, key=lambda key: len(key[0]), reverse=True)
            batches = [asked[first : first + rows] for first in range(0, len(asked), rows)]
            made: dict[tuple[tuple[int, ...], str], tuple[Hypothesis, ...]] = {}
            sources = [[several[key] for key in batch] for batch in batches]
            found = self._in_lanes(
                work, [[prompt for prompt, _ in batch] for batch in batches], sources
            )
            for batch, hypotheses in zip(batches, found, strict=True):
                made |= zip(batch, hypotheses, strict=True)
            for line, key, (_, problem) in zip(chunk, keys, prompts, strict=True):
                best = made.get(key, ())
                text = best[0].text if best else ""
                yield Translation(source=line, text=text, hypotheses=best, problem=problem)

    def _ranked(
        self, reverse: Translator, sources: Sequence[str], found: list[tuple[Hypothesis, ...]]
    ) -> list[tuple[Hypothesis, ...]]:
        """Put the translations of each source in the order of both directions and their words.

        What cannot be read on the way back, such as an empty text, comes last.
        """
        pairs = [
            (one.text, source)
            for source, several in zip(sources, found, strict=True)
            for one in several
        ]
        logs = iter(reverse.log_probabilities(*map(list, zip(*pairs, strict=True))))

        def joined(one: Hypothesis) -> Hypothesis:
            back = next(logs)
            if back == -math.inf:
                return one
            return replace(one, score=one.score + self.format.ranking(one.text, back), reverse=back)

        def order(one: Hypothesis) -> tuple[bool, float]:
            return one.reverse is not None, one.score

        return [tuple(sorted(map(joined, several), key=order, reverse=True)) for several in found]

    def _in_lanes(
        self, work: Work, batches: Sequence[Rows], sources: Sequence[Sequence[str]]
    ) -> list[list[tuple[Hypothesis, ...]]]:
        """Do the work of each batch, in the order of the batches.

        One core for each batch is faster than all cores for one: the products of a few rows are
        too small to be shared.
        """
        lanes = min(torch.get_num_threads(), len(batches))
        with evaluating(self.decoder), evaluating((self.reverse or self).decoder):
            if lanes < 2 or self.decoder.embedding.weight.device.type != "cpu":
                return list(map(work, batches, sources))
            with ThreadPoolExecutor(lanes, "lane", torch.set_num_threads, (1,)) as pool:
                return list(pool.map(work, batches, sources))

    def _continued(
        self, rows: Rows, sources: Sequence[str], method: Method, most: int | None
    ) -> list[tuple[Hypothesis, ...]]:
        config, ends = self.decoder.config, {self.marks.end}
        limits = [
            min(config.context - len(row) + 1, 2 * len(row) + 24 if most is None else most)
            for row in rows
        ]
        prompts = Prompts.limited(config, rows, limits, ends, self.marks.suppressed)
        found = continuations(self.decoder, prompts, method, self.step)
        flat = [one for several in found for one in several]
        texts = iter(self.tokenizer.decode_batch([_without_end(one) for one in flat]))
        return [
            _distinct(_hypothesis(one, self.format.shown(next(texts), source)) for one in several)
            for several, source in zip(found, sources, strict=True)
        ]

    def _prompts(self, lines: Sequence[str]) -> list[tuple[list[int], str]]:
        """Return for each line its prompt or what is wrong with it; neither for an empty one."""
        problems = [_too_long(line) or problem_of(line) for line in lines]
        written = [
            "" if problem else self.format.source(line, self.tokenizer)
            for line, problem in zip(lines, problems, strict=True)
        ]
        found: list[tuple[list[int], str]] = []
        encoded = self._encoded(written)
        for text, problem, (tokens, unknown) in zip(written, problems, encoded, strict=True):
            problem = problem or unknown or (self._unfit(tokens) if text else "")
            found.append(([] if problem or not text else self.marks.around(tokens), problem))
        return found

    def _encoded(self, texts: Sequence[str]) -> list[tuple[list[int], str]]:
        try:
            return [(tokens, "") for tokens in self.tokenizer.encode_batch(texts)]
        except InputError:  # one of them, or several: find out which
            return [self._encoded_alone(text) for text in texts]

    def _encoded_alone(self, text: str) -> tuple[list[int], str]:
        try:
            return self.tokenizer.encode(text), ""
        except InputError as error:
            return [], error.problem

    def _unfit(self, tokens: list[int]) -> str:
        held = self.marks.all.intersection(tokens)
        if held:
            return f"holds the mark {self.tokenizer.token(min(held))!r} of the tokenizer"
        length, context = len(self.marks.around(tokens)), self.decoder.config.context
        if length > context:
            return f"has {length} tokens with its marks; the context of the model is {context}"
        return ""


def _too_long(line: str) -> str:
    """Say that a line is too long to be read as one sentence."""
    return f"is longer than {LONGEST_LINE:,} characters" if len(line) > LONGEST_LINE else ""


def problem_of(line: str) -> str:
    """Say what makes a line no text to translate, whatever the model and its length."""
    if line.isprintable():
        return ""
    for place, letter in enumerate(line, start=1):
        kind = unicodedata.category(letter)
        if kind == "Cs":  # what Python makes of bytes that are no UTF-8
            return f"is not UTF-8 (byte 0x{ord(letter) & 0xFF:02X}, character {place})"
        if kind == "Cc" and letter not in "\t\r\n":
            return f"holds a control character (U+{ord(letter):04X}, character {place})"
    return ""


def _without_end(one: Continuation) -> tuple[int, ...]:
    return one.tokens[:-1] if one.finished else one.tokens


def _hypothesis(one: Continuation, text: str) -> Hypothesis:
    total = sum(one.log_probabilities)
    return Hypothesis(
        text=text,
        log_probability=total,
        per_token=total / len(one.tokens),
        score=one.score,
        tokens=one.tokens,
        log_probabilities=one.log_probabilities,
        finished=one.finished,
    )


def _distinct(several: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Return the first of those that read alike, as "the cat" and "The cat" may when shown."""
    found: dict[str, Hypothesis] = {}
    for one in several:
        found.setdefault(one.text, one)
    return tuple(found.values())


def in_one_line(text: str) -> str:
    """Return a text of the same length with blanks for line breaks and control characters."""
    if text.isprintable():
        return text
    kinds = ("Cc", "Zl", "Zp")
    return "".join(" " if unicodedata.category(letter) in kinds else letter for letter in text)


def _method(beam: int, nbest: int, length_penalty: float) -> Method:
    if nbest > beam:
        raise InputError(
            "nbest",
            f"is {nbest}",
            expected=f"at most one for each of the {beam} beams",
            hint=f"search with {nbest} beams or more",
        )
    if beam == 1:
        return GREEDY
    return Beams(beams=beam, nbest=nbest, length_penalty=length_penalty)


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError(name, f"is {value}", expected="at least 1 was expected")


Opened = tuple[Decoder, Tokenizer, TranslationFormat]


def opened(path: Path) -> Opened:
    """Return decoder, tokenizer and format, or say why this cannot translate."""
    if path.is_dir() and is_run(path):
        return _from_run(path)
    folder = located(path)
    if folder.exists() and not (folder / FILE).is_file():
        raise _not_a_translator(path)
    pretrained = load(folder)
    if pretrained.tokenizer is None:
        raise InputError(
            str(path), "has no tokenizer", hint="put its tokenizer.json into the folder"
        )
    return pretrained.decoder, pretrained.tokenizer, TranslationFormat.read(folder)


def reverse_of(written: TranslationFormat) -> Translator | None:
    """Return the translator for the way back that a format names, if it names one."""
    if written.reverse is None:
        return None
    where = f"{FILE}: reverse"
    try:
        back = Translator(*opened(Path(written.reverse)))
    except InputError as error:
        raise InputError(
            where, f"{written.reverse!r} cannot be opened ({error.problem})", hint=error.hint
        ) from None
    if back.format.languages != written.languages[::-1]:
        raise InputError(
            where,
            f"{written.reverse!r} translates {' to '.join(back.format.languages)}",
            expected=f"a model for the way back: {' to '.join(written.languages[::-1])}",
        )
    return back


def keep_model(
    run: Path,
    decoder: Callable[[], Decoder],
    tokenizer: Tokenizer,
    written: TranslationFormat | None,
) -> None:
    """Put the decoder of a finished run beside its tokenizer and its format, unless it is there."""
    model = run / "model"
    if not model.is_dir():
        write_folder(decoder(), model, tokenizer=tokenizer)
    if written is not None and not (model / FILE).is_file():
        suppress_marks(model, written.marks(tokenizer))
        written.write(model)


def suppress_marks(folder: Path, marks: Marks) -> None:
    """Tell `transformers` too, where it can open a folder, that no translation holds a mark."""
    generation = folder / GENERATION
    if generation.is_file():
        write_json(
            generation, read_json(generation) | {"suppress_tokens": [*sorted(marks.suppressed)]}
        )


def is_run(path: Path) -> bool:
    """Tell a run's folder from a model's: both have a config.json."""
    config = path / "config.json"
    if not config.is_file():
        return False
    found = read_json(config)
    return "model_type" not in found and "model" in found


def format_of(made: TextTraining) -> TranslationFormat | None:
    """Return the format in which a training writes pairs; None where it reads no pairs."""
    if made.languages is None:
        return None
    phrasebook = made.config.data.get("source") == "phrasebook"
    return TranslationFormat(
        languages=made.languages,
        normalise="keyboard" if phrasebook else "nfc",
        same_tokens=made.config.data.get("same_tokens", False),
    )


def _from_run(run: Path) -> Opened:
    model = run / "model"
    if (model / FILE).is_file():
        return opened(model)
    if model.is_dir():
        raise _not_a_translator(run)
    # Not finished yet: everything but the weights follows from the settings.
    settings: dict[str, Any] = read_json(run / "config.json")
    try:
        made = prepare(settings)
    except HeedfulError as error:
        raise InputError(
            str(run),
            f"is not finished, and its tokenizer cannot be made again ({error})",
            hint=f"finish it with: heed resume {run}",
        ) from None
    written = format_of(made)
    if written is None:
        raise _not_a_translator(run)
    return trained_decoder(run), made.tokenizer, written


def _not_a_translator(path: Path) -> InputError:
    return InputError(
        str(path),
        f"was not trained on pairs: it has no {FILE}",
        expected="a run of `heed train` on pairs, or what `heed export` made of one",
        hint='train one with source = "phrasebook", or on files of pairs',
    )
