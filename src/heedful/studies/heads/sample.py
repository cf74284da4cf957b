"""What a model reads while its heads are watched: rows of token ids, and where translations begin.

A run is watched on texts that were held out from its training; a model of others on a text of
yours, or on paragraphs of the phrasebook. Marks of a translation stand where training put them:
`<begin> source <to> target <end>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.data.corpus import Documents, Pairs
from heedful.data.readers import read_corpora
from heedful.data.synthetic.phrasebook import monolingual
from heedful.errors import ConfigError, HeedfulError, InputError
from heedful.model import Decoder, open_checkpoint
from heedful.records import Record
from heedful.studies.text_training import TextData, prepare, read_parts
from heedful.studies.translation.translator import FILE, TranslationFormat, format_of, is_run
from heedful.tokenization import Tokenizer
from heedful.training import trained_decoder
from heedful.training.folder import RunFolder

SHORTEST = 8
"""Tokens below which a row says nothing about heads."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One sequence."""

    tokens: tuple[int, ...]
    """Its ids."""
    source: tuple[int, int] | None = None
    """For a translation: first position of the source, and the position after its last."""

    def tensor(self) -> Tensor:
        """Return the ids as a batch of one."""
        return torch.tensor([self.tokens])


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Record):
    """The rows that a model reads."""

    name: str
    """Where they come from."""
    rows: tuple[Row, ...]
    """The sequences."""

    @property
    def tokens(self) -> int:
        """Tokens in all rows."""
        return sum(len(row.tokens) for row in self.rows)

    @property
    def translations(self) -> bool:
        """Whether the rows are translations."""
        return all(row.source is not None for row in self.rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class StudiedModel:
    """A model to be studied, and what it reads."""

    name: str
    """As it was called."""
    decoder: Decoder
    tokenizer: Tokenizer | None
    sample: Sample


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much is read."""

    rows: int = 4
    """Rows of running text."""
    tokens: int = 256
    """Tokens in a row of running text."""
    pairs: int = 32
    """Rows, where they are translations (which are short)."""


DEFAULT_AMOUNT = Amount()


def open_subject(
    path: Path | str, *, text: Path | None = None, amount: Amount = DEFAULT_AMOUNT
) -> StudiedModel:
    """Open a run or a model, and find what it should read.

    The model inside a run is the run: it reads what was held out from its training, whoever asks.
    """
    folder = Path(path)
    if folder.name == "model" and is_run(folder.parent):
        folder = folder.parent
    opened = _run(folder) if folder.is_dir() and is_run(folder) else _model(path)
    decoder, tokenizer, written, data = opened
    if text is not None:
        corpus: Documents | Pairs | None = _read(text)
    elif written is not None or data:
        corpus = _held_out(data)
    else:
        corpus = None
    context = decoder.config.context
    if isinstance(corpus, Pairs) and written is not None:
        rows = pair_rows(corpus, tokenizer, written, amount.pairs, context)
    else:
        joined = "\n".join(_texts(corpus, 400))
        rows = text_rows(tokenizer.encode(joined), amount, context, tokenizer.begin)
    name = "paragraphs of the phrasebook" if corpus is None else corpus.name
    sample = Sample(name=name, rows=_some(rows, name))
    return StudiedModel(name=str(path), decoder=decoder, tokenizer=tokenizer, sample=sample)


def translation_run(folder: Path) -> Path | None:
    """Return the run in a folder of runs that learned here from the most pairs, if there is one."""
    best: tuple[int, Path] | None = None
    for run in sorted(path for path in folder.glob("*") if path.is_dir()):
        if not (run / "model" / FILE).is_file() or not is_run(run):
            continue
        data = RunFolder(run).config().data
        pairs = int(data.get("pairs", 0))
        if data.get("arm") != "elsewhere" and (best is None or pairs > best[0]):
            best = pairs, run
    return None if best is None else best[1]


def text_rows(
    ids: Sequence[int], amount: Amount, context: int, begin: int | None = None
) -> tuple[Row, ...]:
    """Cut a text into rows that fit the model; each opens with the mark, if there is one.

    >>> [row.tokens for row in text_rows(range(20), Amount(rows=2, tokens=8), 99, begin=7)]
    [(7, 0, 1, 2, 3, 4, 5, 6), (7, 7, 8, 9, 10, 11, 12, 13)]
    """
    opening = () if begin is None else (begin,)
    step = min(amount.tokens, context) - len(opening)
    pieces = [tuple(ids[place : place + step]) for place in range(0, len(ids), step)]
    rows = [Row(tokens=(*opening, *piece)) for piece in pieces[: amount.rows]]
    return tuple(row for row in rows if len(row.tokens) >= SHORTEST)


def pair_rows(
    pairs: Pairs, tokenizer: Tokenizer, written: TranslationFormat, count: int, context: int
) -> tuple[Row, ...]:
    """Write pairs as training wrote them, and note where the source stands."""
    marks = written.marks(tokenizer)
    # Spread over the corpus: neighbours in a file resemble each other.
    places = np.linspace(0, len(pairs) - 1, min(2 * count, len(pairs))).astype(int)
    rows: list[Row] = []
    for place in dict.fromkeys(places.tolist()):
        source = tokenizer.encode(written.source(pairs.sources[place], tokenizer))
        target = tokenizer.encode(written.target(pairs.targets[place], tokenizer))
        prompt = marks.around(source)
        tokens = (*prompt, *target, marks.end)
        if SHORTEST <= len(tokens) <= context and source and target:
            last = len(prompt) - 1
            rows.append(Row(tokens=tokens, source=(last - len(source), last)))
    return tuple(rows[:count])


_Opened = tuple[Decoder, Tokenizer, TranslationFormat | None, dict[str, Any]]
"""Decoder, tokenizer, how it translates (if it does), and the table `[data]` of a run."""


def _run(folder: Path) -> _Opened:
    config = RunFolder(folder).config()
    decoder = trained_decoder(folder)
    if (folder / "model").is_dir():
        _, tokenizer, written, _ = _model(folder / "model", decoder)
        return decoder, tokenizer, written, config.data
    try:
        training = prepare(config.to_dict())
    except HeedfulError as error:
        raise InputError(
            str(folder),
            f"its tokenizer cannot be made again ({error})",
            hint="let the training finish, so that the run has a folder `model`",
        ) from None
    return decoder, training.tokenizer, format_of(training), config.data


def _model(path: Path | str, decoder: Decoder | None = None) -> _Opened:
    checkpoint = open_checkpoint(path)
    if checkpoint.tokenizer is None:
        raise InputError(
            str(path),
            "has no tokenizer beside its weights",
            expected="text is turned into ids by the model's own tokenizer",
            hint="put its tokenizer.json into the folder",
        )
    written = None
    if (Path(path) / FILE).is_file():
        written = TranslationFormat.read(Path(path))
    decoder = checkpoint.decoder() if decoder is None else decoder
    return decoder, checkpoint.tokenizer, written, {}


def _read(text: Path) -> Documents | Pairs:
    corpora = read_corpora([text])
    return corpora[0].without_empty()


def _held_out(data: dict[str, Any]) -> Documents | Pairs:
    """Return what a run kept from its training; pairs of the phrasebook where it does not say."""
    try:
        return read_parts(TextData.of(data)).held_out
    except ConfigError:
        return read_parts(TextData(source="phrasebook", size=500, held_out=200)).held_out


def _texts(corpus: Documents | Pairs | None, count: int) -> list[str]:
    if corpus is None:
        return list(monolingual("en", count))
    return [text for side in corpus.sides for text in side[:count]]


def _some(rows: tuple[Row, ...], name: str) -> tuple[Row, ...]:
    if not rows:
        raise InputError(
            name,
            "gives no row that can be read",
            expected=f"a text of at least {SHORTEST} tokens was expected",
            hint="give a longer text",
        )
    return rows
