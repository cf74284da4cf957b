"""`heed translate`: translate texts, a file, or standard input."""

from __future__ import annotations

import json as json_library
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter

from heedful.cli.options import (
    FigurePath,
    JsonFlag,
    arriving,
    blocks_of_lines,
    check_figure_path,
    draw,
    escaped,
    show,
)
from heedful.errors import InputError, RunError
from heedful.files import SHIPPED, atomic_file

if TYPE_CHECKING:
    from heedful.studies.translation import Translation, Translator
    from heedful.studies.translation.attribution import Alignment
    from heedful.studies.translation.quality import WordConfidence
else:  # these classes live beside torch, which is loaded only when a model is opened
    Alignment = Translation = Translator = WordConfidence = Any


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """How translations are searched for."""

    beam: Annotated[
        int | None,
        Parameter(
            help="Number of beams; 1 always takes the likeliest token. "
            "[default: 16 for the models of the package, else 1]"
        ),
    ] = None
    nbest: Annotated[
        int, Parameter(help="Different translations of each line; at most --beam.")
    ] = 1
    length_penalty: Annotated[
        float, Parameter(help="Beams score log p / tokens^this; above 1 favours long texts.")
    ] = 1.0
    max_tokens: Annotated[
        int | None,
        Parameter(help="Most tokens in a translation. [default: about twice its source]"),
    ] = None
    batch: Annotated[int, Parameter(help="Lines translated in one batch.")] = 128


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ShowFlags:
    """What is shown beside the translation."""

    scores: Annotated[bool, Parameter(help="Show the log probability of each translation.")] = False
    alignment: Annotated[
        bool, Parameter(help="Show which source words each output word attended to.")
    ] = False
    confidence: Annotated[
        bool,
        Parameter(help="Show for each word of a text how often such words were right."),
    ] = False
    json: JsonFlag = False

    @property
    def more(self) -> bool:
        """Whether a line is more than its text."""
        return self.scores or self.alignment or self.confidence


DEFAULT_SEARCH, DEFAULT_SHOW = SearchFlags(), ShowFlags()
DEFAULT_MODEL = "fr-en"
"""What translates when no run is named."""
DEFAULT_BEAMS = 16
"""Beams with which the models of the package search: their figures are measured so."""
WRAPPED = (".md", ".markdown", ".rst", ".srt", ".vtt")
"""Ends of the names of files whose sentences go on from line to line."""


def translate(
    run: Annotated[
        str | None,
        Parameter(
            help="A run trained on pairs, an exported translator, or one of the package: en-fr, or "
            "fr-en, French to English, which is taken when no run is named."
        ),
    ] = None,
    *texts: Annotated[str, Parameter(help="Texts to translate. [default: standard input]")],
    file: Annotated[Path | None, Parameter(help="Translate this file, line by line.")] = None,
    paragraphs: Annotated[
        bool | None,
        Parameter(
            negative="--no-paragraphs",
            help="Whether sentences go on from line to line: then the lines of a paragraph or a "
            "subtitle are translated together. [default: for .md, .rst, .srt and .vtt]",
        ),
    ] = None,
    output: Annotated[Path | None, Parameter(help="Write to this file.")] = None,
    search: SearchFlags = DEFAULT_SEARCH,
    shown: ShowFlags = DEFAULT_SHOW,
    figure: FigurePath = None,
    int8: Annotated[bool, Parameter(help="Round the weights to 8 bits: no longer exact.")] = False,
    strict: Annotated[bool, Parameter(help="Stop at a line that cannot be translated.")] = False,
) -> int:
    """Translate texts, a file, or standard input; line i out is the translation of line i.

    A line is cut into sentences, and put together again with its own spaces, bullets and marks; an
    empty line stays empty. The lines of a paragraph or a subtitle are translated together where
    --paragraphs says so, and what comes out has as many lines. A line that cannot be translated
    (control characters, not UTF-8) gives an empty line and a warning on stderr; what is left as it
    is, or may be wrong, is said there too. Standard input is translated as it arrives. With
    --scores, --alignment, --nbest or --json, a line is read as one sentence; lines of a file become
    tab-separated: line, rank, log p, log p per token, text, and links as source-target. With
    --json, texts give one record, and files one record a line.

    Examples:

        heed translate "Où est la gare ?"
        heed translate --file french.txt --output english.txt
        heed translate --file film.srt --output film.en.srt
        heed translate "Où est la gare ?" --confidence
        heed translate en-fr "Where is the station?"
        heed translate runs/phrasebook "Où est la gare ?"
        heed translate runs/phrasebook "Où est la gare ?" --beam 4 --nbest 4 --scores
        heed translate runs/phrasebook "Où est la gare ?" --alignment --figure words.svg
        heed translate runs/phrasebook --file french.txt --output english.txt
        cat french.txt | heed translate runs/phrasebook > english.txt
    """
    model, texts = _model_and_texts(run, texts)
    _check(texts, file, output, figure)
    if shown.confidence and not texts:
        raise InputError("--confidence", "needs a text", hint="give the text itself")
    from heedful.studies.translation import Translator
    from heedful.studies.translation.documents import translate_paragraphs, translate_texts

    translator = Translator.open(model, precision="int8" if int8 else "float32")
    settings = _settings(search, model)
    whole = not (shown.more or shown.json or figure or search.nbest > 1 or search.max_tokens)
    together = _together(paragraphs, file, whole=whole)

    def work(lines: Iterable[str]) -> Iterator[Translation]:
        checked = translator.translate([] if whole else lines, **settings)
        if not whole:
            return checked
        kept = ("beam", "length_penalty", "batch")
        read = translate_paragraphs if together else translate_texts
        return read(translator, lines, **{name: settings[name] for name in kept})

    work([])  # what is wrong with the settings is said before anything is read
    if texts:
        _show_texts(
            model, translator, list(work("\n".join(texts).split("\n"))), settings, shown, figure
        )
        return 0
    writer = _LineWriter(translator, shown, strict, search.nbest)
    with _opened(output) as target:
        for found in _streamed(file, work):
            writer.write(found, target)
    return 0


def _model_and_texts(first: str | None, texts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Tell the name of a model from a text: the first argument may be either."""
    from heedful.model.weights.published import PUBLISHED

    if first is not None:
        named = bool(first) and Path(first).exists()  # an empty path would be this folder
        if first in SHIPPED or first in PUBLISHED or named:
            return first, texts
        if _like_a_path(first, alone=not texts):
            raise InputError(
                first,
                "there is no such file or folder",
                expected="a run, or a model that translates",
                hint=f"to translate it as a text: heed translate {DEFAULT_MODEL} TEXT",
            )
        texts = (first, *texts)
    print(
        f"translated by {DEFAULT_MODEL}, the French to English model that comes with Heedful",
        file=sys.stderr,
    )
    return DEFAULT_MODEL, texts


def _together(paragraphs: bool | None, file: Path | None, *, whole: bool) -> bool:
    """Tell whether the lines of a paragraph are translated together."""
    if paragraphs and not whole:
        raise InputError(
            "--paragraphs",
            "was given together with what is said of single sentences",
            hint="leave out --scores, --alignment, --confidence, --nbest, --max-tokens and --json",
        )
    if paragraphs is None:
        return file is not None and file.suffix.lower() in WRAPPED
    return paragraphs


def _like_a_path(text: str, *, alone: bool) -> bool:
    """Tell whether a text is rather the name of a run that is not there.

    A word that stands alone is a text; before others, "my-run" and "run2" look like names.
    """
    if any(map(str.isspace, text)) or text.startswith(("http://", "https://")):
        return False
    if text.startswith(("./", "../", "/", "~")) or (text.isascii() and "/" in text):
        return True
    if text.endswith((".gguf", ".bin", ".safetensors", ".toml")):
        return True
    return not alone and text.isascii() and any(c.isdigit() or c in "-_." for c in text[:-1])


def _show_texts(
    run: str,
    translator: Translator,
    found: list[Translation],
    settings: dict[str, Any],
    shown: ShowFlags,
    figure: Path | None,
) -> None:
    from heedful.studies.translation.attribution import align
    from heedful.views.translation import (
        TranslatedTexts,
        alignment_figure,
        translation_blocks,
    )

    for place, one in enumerate(found, start=1):
        if one.problem:
            raise InputError("text" if len(found) == 1 else f"text {place}", one.problem)
    wanted = shown.alignment or figure is not None
    alignments: tuple[Alignment | None, ...] = ()
    if wanted:
        alignments = tuple(align(translator, one) if one.hypotheses else None for one in found)
    if figure is not None:
        drawn = [alignment for alignment in alignments if alignment is not None]
        if len(drawn) != 1:
            raise InputError("--figure", f"was given {len(drawn)} texts", expected="one to draw")
        draw(drawn[0], figure, alignment_figure)
    if not shown.json and not shown.more and settings["nbest"] == 1:
        print("\n".join(one.text for one in found))
        for place, one in enumerate(found, start=1):
            for note in one.notes:
                print(note if len(found) == 1 else f"text {place}: {note}", file=sys.stderr)
        return
    record = TranslatedTexts(
        model=run,
        languages=translator.format.languages,
        settings={**settings, "precision": translator.step.precision},
        translations=tuple(found),
        alignments=alignments if shown.alignment else (),
        words=tuple(_words(translator, one) for one in found) if shown.confidence else (),
    )
    show(record, partial(translation_blocks, scores=shown.scores), json=shown.json)


def _words(translator: Translator, one: Translation) -> tuple[WordConfidence, ...]:
    """Return the words of the best translation with their confidence."""
    from heedful.studies.translation.quality import word_confidences

    return word_confidences(translator, one.hypotheses[0]) if one.hypotheses else ()


class _LineWriter:
    """Writes the translated lines of a file or a stream in the form the options ask for."""

    def __init__(self, translator: Translator, shown: ShowFlags, strict: bool, nbest: int) -> None:
        self.translator, self.shown, self.strict = translator, shown, strict
        self.columns = shown.more or nbest > 1
        self.number = 0

    def write(self, one: Translation, target: TextIO) -> None:
        """Write one line, or say what is wrong with it."""
        self.number += 1
        where = f"line {self.number}"
        if one.problem and self.strict:
            raise InputError(where, one.problem, hint="leave --strict out to get an empty line")
        if one.problem:
            print(f"{where}: {one.problem}; its translation is left empty", file=sys.stderr)
        elif one.hypotheses and not one.hypotheses[0].finished:
            count = len(one.hypotheses[0].tokens)
            print(f"{where}: its translation was cut after {count} tokens", file=sys.stderr)
        for note in one.notes:
            print(f"{where}: {note}", file=sys.stderr)
        for line in self._lines(one, target):
            target.write(line + "\n")
        target.flush()

    def _lines(self, one: Translation, target: TextIO) -> Iterable[str]:
        alignment = self._aligned(one) if self.shown.alignment else None
        if self.shown.json:
            record = {"line": self.number, **one.to_dict()}
            record["source"] = one.source.encode("utf-8", "replace").decode("utf-8")
            if self.shown.alignment:
                record["alignment"] = None if alignment is None else alignment.to_dict()
            text = json_library.dumps(record, ensure_ascii=False, allow_nan=False)
            return [escaped(text) if target is sys.stdout else text]
        if not self.columns:
            return [one.text]
        from heedful.views.translation import tabbed_lines

        return tabbed_lines(one, self.number, alignment, aligned=self.shown.alignment)

    def _aligned(self, one: Translation) -> Alignment | None:
        from heedful.studies.translation.attribution import align

        return align(self.translator, one) if one.hypotheses else None


def _check(
    texts: tuple[str, ...], file: Path | None, output: Path | None, figure: Path | None
) -> None:
    if texts and file is not None:
        raise InputError("--file", "was given together with texts", hint="use one of the two")
    if texts and output is not None:
        raise InputError(
            "--output", "was given together with texts", hint="give --file, or standard input"
        )
    if figure is not None and not texts:
        raise InputError("--figure", "needs a text to draw", hint="give the text itself")
    check_figure_path(figure)
    if file is not None and not file.is_file():
        raise InputError(str(file), "there is no such file", hint="check the path")
    if output is not None and (output.is_dir() or not output.resolve().parent.is_dir()):
        raise InputError("--output", f"{output} cannot be written", expected="a file in a folder")


def _settings(search: SearchFlags, model: str) -> dict[str, Any]:
    usual = DEFAULT_BEAMS if model in SHIPPED else 1
    return {
        "beam": usual if search.beam is None else search.beam,
        "nbest": search.nbest,
        "length_penalty": search.length_penalty,
        "max_tokens": search.max_tokens,
        "batch": search.batch,
    }


def _streamed(file: Path | None, work: Any) -> Iterator[Translation]:
    if file is not None:
        from heedful.data.text_files import TextFile

        chunks = TextFile(file).chunks()
        yield from work(chain.from_iterable(blocks_of_lines(chunks)))
        return
    if sys.stdin.isatty():
        print("Type a line to translate it; Ctrl-D ends.", file=sys.stderr)
    for block in blocks_of_lines(arriving(sys.stdin.buffer)):
        yield from work(block)


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """Open standard output, or a file that appears when all of it is written."""
    if output is None:
        yield sys.stdout
        return
    try:
        with (
            atomic_file(output) as handle,
            open(handle, "w", encoding="utf-8", newline="\n", closefd=False) as target,
        ):
            yield target
    except OSError as error:
        raise RunError(str(output), f"could not be written ({error.strerror})") from None
