"""Whole texts: a line of several sentences, or of more than a model can read at once.

A translator reads one sentence. Here a line is cut into sentences, each is translated, and the
line is put together again with its own spaces, bullets and marks in between, so that nothing of
the layout is lost. What is too long for the model is cut further, between clauses where it can
be; what has no letters, or letters of a script that the model was never taught, stays as it is.
So do the marks of Markdown and of subtitles, and code. Those that stand around words of a sentence
go around the words that these become (`inline_marks`); any other mark cuts it in two.

Where lines are those of paragraphs or of subtitles, a sentence may go on in the next line. Such
lines are translated together, and what comes out has as many lines, broken at like shares.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from typing import Any

from heedful.data.languages import NAMES, guess_language
from heedful.errors import InputError
from heedful.studies.translation.attribution import align
from heedful.studies.translation.inline_marks import INLINE, Mark, put_back, taken_out
from heedful.studies.translation.quality import doubtful_words, echoes, numbers, repeats
from heedful.studies.translation.stand_ins import Lent, best_restored, lent_sentences
from heedful.studies.translation.translator import CHUNK, ROWS, Translation, Translator, problem_of

ABBREVIATIONS = frozenset(
    (
        *("m", "mm", "mme", "mmes", "mlle", "mlles", "dr", "drs", "pr", "me", "mgr", "st", "ste"),
        *("av", "bd", "boul", "chap", "cf", "ex", "fig", "p", "pp", "vol", "no", "nº", "n°"),
        *("art", "env", "approx", "tél"),
    )
)
"""Words after which a full stop ends no sentence."""
LATIN = frozenset(NAMES)
"""Languages written in Latin letters, of those whose names are known here."""
FEWEST_WORDS = 5
"""Words from which on a line is said to read as another language: fewer tell too little."""

NEAR = 1 / 6
"""How much of a text a break between lines may move to come after a mark."""
MOST_DOUBTED = 4
"""Words of a line that are named as doubtful; the rest is counted."""
SOURCE_SHARE = 0.6
"""How much of the context a source may take: French needs somewhat more tokens than English."""
LONGEST_TOKEN = 16
"""Characters that the tokens of a text have at most, on average."""

_END = re.compile(r"[.!?…]+(?:\s?»|[\"'”’)\]])*(?=\s)(?!\s?»)")
_BULLET = re.compile(r"\s*(?:(?:[-*+•–—>|]|#{1,6}|(?:\d{1,3}|[IVX]+)[.)]|[A-Z]\))\s+)*")
"""What may stand before the words of a line: marks, numbers, letters; "A." may be an initial."""
_MARK = re.compile(
    r"\{\\[^{}]*\}"  # the place of a subtitle
    r"|`[^`]+`"  # code
    r"|\s\|(?=\s|$)"  # between the cells of a table
    r"|https?://[^\s<>()]+[^\s<>().,;:!?]"
)
"""Marks of Markdown and of subtitles, and addresses, which stay as they are and cut a sentence. The
addresses of links are part of an inline mark."""
_OWN_LINE = re.compile(r"\s*(?:(?:[-*+•–—>]|\d{1,3}[.)])\s|#{1,6}\s|\||\{\\)")
"""What begins a line that does not go on from the one before: bullets, headings, tables."""
_ALONE = re.compile(r"\s*(?:#{1,6}\s|\|)")
"""What begins a line with which no other one goes on: headings and tables."""
_UNBROKEN = re.compile(r"(?:<[^<>]*>|\S)+")
"""A word, with the tags at it: no line is broken inside of one."""
_AS_IT_IS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+\.\S+|[`~]{3}.*")
_LEADING = re.compile(r"[\s,;:.!?…)\]]*")
"""What may stand before the words of a part, where a mark or a cut divides a sentence."""
_CLAUSE_ENDS = (re.compile(r"[;:]\s"), re.compile(r",\s"), re.compile(r"\s"))
"""Where a sentence may be cut that is too long, the better places first."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a line."""

    text: str
    translated: bool
    """Whether it is to be translated; else it is copied."""
    cut: bool = False
    """Whether it is a part of a sentence that was too long."""
    marks: tuple[Mark, ...] = ()
    """Inline marks that stood inside of it."""

    @property
    def source(self) -> str:
        """The piece as it came, with its marks."""
        parts, end = [], 0
        for mark in self.marks:
            parts += [self.text[end : mark.place], mark.text]
            end = mark.place
        return "".join([*parts, self.text[end:]])


def translate_texts(
    translator: Translator,
    lines: Iterable[str],
    *,
    beam: int = 1,
    length_penalty: float = 1.0,
    batch: int = ROWS,
) -> Iterator[Translation]:
    """Translate lines of any length, in their order; what may be wrong is said in `notes`.

    Of the `beam` translations of a sentence the likeliest is taken that has its numbers, and says
    nothing twice; where none is so, the likeliest with the fewest differences.
    """
    rest, code = iter(lines), False
    while chunk := list(islice(rest, CHUNK)):
        problems = [problem_of(line) for line in chunk]
        cut: list[list[Piece]] = []
        for line, problem in zip(chunk, problems, strict=True):
            fence = line.lstrip().startswith("```")
            if (code or fence) and line.strip():
                cut.append([Piece(text=line, translated=False)])
            else:
                cut.append([] if problem else pieces_of(translator, line))
            code = code != fence
        asked = [
            _asked(translator, piece) for pieces in cut for piece in pieces if piece.translated
        ]
        search: dict[str, Any] = {"beam": beam, "nbest": beam, "batch": batch}
        translate = partial(translator.translate, length_penalty=length_penalty, **search)
        found = _with_names(translator, asked, translate)
        for line, problem, pieces in zip(chunk, problems, cut, strict=True):
            if problem or not pieces:
                yield Translation(source=line, text="", problem=problem)
                continue
            made = [next(found) if piece.translated else None for piece in pieces]
            yield _together(translator, line, pieces, made)


def translate_paragraphs(
    translator: Translator, lines: Iterable[str], **search: Any
) -> Iterator[Translation]:
    """Translate lines, those of a paragraph or a subtitle together; line i out belongs to line i.

    The notes about a paragraph are those of its first line.
    """
    waiting: deque[list[str]] = deque()

    def joined() -> Iterator[str]:
        for lines_together in paragraphs(lines):
            waiting.append(lines_together)
            first, *others = lines_together
            yield " ".join([first.rstrip(), *map(str.strip, others)]) if others else first

    for one in translate_texts(translator, joined(), **search):
        together = waiting.popleft()
        if len(together) == 1:
            yield one
            continue
        broken = break_lines(one.text, together)
        notes = (one.notes, *[()] * (len(together) - 1))
        for line, text, said in zip(together, broken, notes, strict=True):
            yield Translation(source=line, text=text, notes=said)


def paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines that belong together: a sentence may go on from one to the next.

    >>> list(paragraphs(["# Un", "Il est", "parti.", "- Un", "  an", "", "12"]))
    [['# Un'], ['Il est', 'parti.'], ['- Un', '  an'], [''], ['12']]
    """
    together: list[str] = []
    code = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        begins = _OWN_LINE.match(line) is not None
        alone = code or fence or problem_of(line) or not any(map(str.isalpha, line))
        code = code != fence
        if together and (alone or begins):
            yield together
            together = []
        if alone or _ALONE.match(line):
            yield [line]
        else:
            together.append(line)
            if line.endswith(("  ", "\\")):  # Markdown's break of a line
                yield together
                together = []
    if together:
        yield together


def break_lines(text: str, lines: Sequence[str]) -> list[str]:
    """Return a text in as many lines as there were, broken between words at like shares.

    Rather after a comma or a full stop, if one is near. A line that begins with spaces keeps them.
    Where there are fewer words than lines, some are empty.

    >>> break_lines("I worked late, then I walked home.", ["J'ai travaillé", "tard, puis"])
    ['I worked late,', 'then I walked home.']
    """
    words = _UNBROKEN.findall(text)
    ends = [0, *accumulate(len(word) + 1 for word in words)]
    shares = [share / sum(map(len, lines)) for share in accumulate(map(len, lines))]

    def distance(count: int, share: float) -> float:
        """Return how far from its place a break after so many words is, in characters."""
        marked = count > 0 and words[count - 1][-1] in ",;:.!?…"
        return abs(ends[count] - share * ends[-1]) - (NEAR * ends[-1] if marked else 0.0)

    found: list[str] = []
    first = 0
    for share in shares[:-1]:
        last = min(range(first, len(words) + 1), key=partial(distance, share=share))
        found.append(" ".join(words[first:last]))
        first = last
    found.append(" ".join(words[first:]))
    indents = [one[: len(one) - len(one.lstrip())] for one in (text, *lines[1:])]
    return [indent + line for indent, line in zip(indents, found, strict=True)]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Lending(Translation):
    """A translation that was made with stand-ins, which `hypotheses` still have."""

    lent: Lent


def _with_names(
    translator: Translator, asked: Sequence[str], translate: Callable[..., Iterator[Translation]]
) -> Iterator[Translation]:
    """Translate sentences; those that lose a name or a number once more, with stand-ins."""
    found = map(_chosen, translate(asked))
    if not translator.format.stand_ins:
        return found
    plain = list(found)
    ways = [lent_sentences(translator, one) if one.hypotheses else [] for one in plain]
    again = translate([lent.text for several in ways for lent in several])
    return iter(
        [
            _restored(one, several, list(islice(again, len(several))))
            for one, several in zip(plain, ways, strict=True)
        ]
    )


def _restored(one: Translation, ways: Sequence[Lent], found: Sequence[Translation]) -> Translation:
    """Return a sentence translated with stand-ins, if they all came out of it; else as it was."""
    best = best_restored(one, ways, found) if ways else None
    if best is None:
        return one
    text, hypothesis, lent = best
    return _Lending(source=one.source, text=text, hypotheses=(hypothesis,), lent=lent)


def _chosen(one: Translation) -> Translation:
    """Return a sentence with the one of its translations that is to be trusted most."""
    if len(one.hypotheses) < 2:
        return one
    wanted = numbers(one.source)
    best = min(  # the first of equals, which is the likeliest
        one.hypotheses,
        key=lambda each: (
            len(wanted ^ numbers(each.text)),
            repeats(each.text),
            echoes(each.text) and not echoes(one.source),
        ),
    )
    return replace(one, text=best.text, hypotheses=(best,))


def _together(
    translator: Translator,
    line: str,
    pieces: Sequence[Piece],
    made: Sequence[Translation | None],
) -> Translation:
    """Put the translated pieces of a line together."""
    done = [one for one in made if one is not None]
    if len(pieces) == len(done) == 1 and done[0].problem:
        return done[0]
    texts, left = [], []
    for piece, one in zip(pieces, made, strict=True):
        if one is None:
            texts.append(piece.text)
        elif one.problem or (len(pieces) > 1 and not _ended(one)):
            texts.append(piece.source)
            left.append(f"{_shortened(piece.text)!r} {one.problem or 'has no translation'}")
        else:
            texts.append(_marked(translator, piece, one, _as_a_part(piece, one.text, one.source)))
    text = "".join(texts)
    notes = list(_doubts(translator.format.languages, line, text, pieces))
    doubted = [
        f"{word.text} ({word.right:.0%})"
        for one in done
        if one.hypotheses and not one.problem
        for word in doubtful_words(translator, one.hypotheses[0])
        if not (isinstance(one, _Lending) and word.text in dict(one.lent.words))
    ]
    if doubted:
        more = f" and {len(doubted) - MOST_DOUBTED} more" if len(doubted) > MOST_DOUBTED else ""
        notes.append(f"may be wrong: {', '.join(doubted[:MOST_DOUBTED])}{more}")
    if left:
        more = f" (and {len(left) - 1} more parts)" if len(left) > 1 else ""
        notes.append(f"{left[0]}: it was left as it is{more}")
    whole = len(pieces) == len(done) == 1 and not isinstance(done[0], _Lending)
    hypotheses = done[0].hypotheses if whole else ()
    return Translation(source=line, text=text, hypotheses=hypotheses, notes=tuple(notes))


def _marked(translator: Translator, piece: Piece, one: Translation, text: str) -> str:
    """Return the translation of a piece with the marks that stood inside of the piece."""
    if not piece.marks:
        return text
    # With stand-ins the model has read another sentence, which aligns with no word of this one.
    known = one.hypotheses and not isinstance(one, _Lending)
    alignment = align(translator, one) if known else None
    return put_back(piece.text, piece.marks, text, alignment)


def _doubts(
    languages: tuple[str, str], line: str, text: str, pieces: Sequence[Piece]
) -> Iterator[str]:
    """Say what a reader should not trust."""
    if languages[0] in LATIN:
        strange = [piece.text for piece in pieces if not piece.translated and _strange(piece.text)]
        if strange:
            yield f"{_shortened(strange[0])!r} is not in Latin letters: it was left as it is"
    guess = guess_language([line]).language
    if guess not in (None, languages[0]) and len(line.split()) >= FEWEST_WORDS:
        wanted = NAMES.get(languages[0], languages[0])
        yield f"reads as {NAMES[str(guess)]}, not {wanted}: its translation may be wrong"
    known, written = numbers(line), numbers(text)
    lost, invented = sorted(known - written), sorted(written - known)
    if lost:
        yield f"the translation leaves out {', '.join(lost)}"
    if invented:
        yield f"the translation has {', '.join(invented)}, which the text has not"


def pieces_of(translator: Translator, line: str) -> list[Piece]:
    """Cut a line into what is translated and what is copied; joined, they are the line.

    White space at the ends is layout too; a line of nothing else has no pieces.
    """
    if not line.strip():
        return []
    pieces: list[Piece] = []
    place = 0
    # The address of a link is not cut out of its mark.
    links = [found.span() for found in INLINE.finditer(line)]
    cuts = [
        found.span()
        for found in _MARK.finditer(line)
        if not any(start < found.end() and found.start() < end for start, end in links)
    ]
    for start, end in [*cuts, (len(line), len(line))]:
        begun = any(piece.translated for piece in pieces)
        plain, marks = taken_out(line[place:start])
        found = _in_sentences(translator, plain, begun=begun, cut=bool(cuts))
        pieces += _with_marks(found, marks)
        pieces.append(Piece(text=line[start:end], translated=False))
        place = end
    return _without_outer_space(pieces)


def _with_marks(pieces: Iterable[Piece], marks: Sequence[Mark]) -> Iterator[Piece]:
    """Put marks between the pieces of a text, or into those that are translated."""
    left, place = list(marks), 0
    for piece in pieces:
        inside: list[Mark] = []
        start, end = place, place + len(piece.text)
        while left and left[0].place < end:
            mark = left.pop(0)
            if piece.translated and mark.place > start:
                inside.append(mark.moved(start))
                continue
            yield Piece(text=piece.text[place - start : mark.place - start], translated=False)
            yield Piece(text=mark.text, translated=False)
            place = mark.place
        yield replace(piece, text=piece.text[place - start :], marks=tuple(inside))
        place = end
    yield from (Piece(text=mark.text, translated=False) for mark in left)


def _in_sentences(translator: Translator, text: str, *, begun: bool, cut: bool) -> Iterator[Piece]:
    """Yield the pieces of what stands between two marks; bullets only where a line begins."""
    latin = translator.format.languages[0] in LATIN
    bullet = None if begun else _BULLET.match(text)
    start = 0 if bullet is None else bullet.end()
    yield Piece(text=text[:start], translated=False)
    for sentence, space in sentences(text[start:]):
        yield from _fitting(translator, sentence, latin=latin, cut=cut)
        yield Piece(text=space, translated=False)


def _without_outer_space(pieces: list[Piece]) -> list[Piece]:
    """Drop empty pieces; a line that is one sentence and blanks is that sentence."""
    kept = [piece for piece in pieces if piece.text]
    words = [piece for piece in kept if piece.text.strip()]
    return words if len(words) == 1 and words[0].translated else kept


def sentences(line: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a line, each with the white space after it.

    >>> list(sentences("M. Petit est là. Vraiment ? Oui."))
    [('M. Petit est là.', ' '), ('Vraiment ?', ' '), ('Oui.', '')]
    """
    start = 0
    for end in _END.finditer(line):
        rest = line[end.end() :]
        follows = rest.lstrip()
        if not follows or not _ends_sentence(line[start : end.end()], end[0], follows):
            continue
        space = len(rest) - len(follows)
        yield line[start : end.end()], rest[:space]
        start = end.end() + space
    kept = line[start:].rstrip()
    yield kept, line[start + len(kept) :]


def _ends_sentence(before: str, mark: str, follows: str) -> bool:
    """Tell whether a mark ends a sentence, from the words around it."""
    opening = follows.lstrip("\"'«“‘([—–-¿¡ \u00a0\u202f")[:1]
    if opening.islower():
        return False
    if mark != ".":
        return True
    words = before[:-1].split()
    word = words[-1].lstrip("(«\"'").casefold() if words else ""
    single = len(word) == 1 and word.isalpha() and word not in "àyô"
    numbered = len(words) == 1 and word.isdigit()
    return not (word in ABBREVIATIONS or single or numbered or re.fullmatch(r"\w\.-?\w", word))


def _fitting(translator: Translator, text: str, *, latin: bool, cut: bool) -> Iterator[Piece]:
    """Yield a sentence whole if the model can read and answer it, else in parts."""
    alone = _AS_IT_IS.fullmatch(text) is not None or _abbreviation(translator, text)
    if alone or not any(map(str.isalpha, text)) or (latin and _strange(text)):
        yield Piece(text=text, translated=False)
        return
    parts = _cut(translator, text)
    for part in parts:
        before = _LEADING.match(part).end()  # type: ignore[union-attr]
        word = part[before:].rstrip()
        yield Piece(text=part[:before], translated=False)
        yield Piece(text=word, translated=any(map(str.isalpha, word)), cut=cut or len(parts) > 1)
        yield Piece(text=part[before + len(word) :], translated=False)


def _strange(text: str) -> bool:
    """Tell whether most letters of a text are of another script than the Latin one."""
    letters = [letter for letter in text if letter.isalpha()]
    other = sum("LATIN" not in unicodedata.name(letter, "") for letter in letters)
    return 2 * other > len(letters)


def most_tokens(translator: Translator) -> int:
    """Return how many tokens a source may have: the answer must fit into the context too."""
    return int(SOURCE_SHARE * translator.decoder.config.context)


def _cut(translator: Translator, text: str) -> list[str]:
    """Halve a text until every part fits, with room for the answer."""
    most = most_tokens(translator)
    # A huge text is certain not to fit, and need not be encoded whole to know it.
    if len(text) <= LONGEST_TOKEN * most:
        try:
            source = translator.format.source(_usual(translator, text), translator.tokenizer)
            fits = len(translator.tokenizer.encode(source)) <= most
        except InputError:  # a letter that the tokenizer does not know: cutting would not help
            return [text]
        if fits:
            return [text]
    if len(text) < 2:
        return [text]
    place = _best_cut(text)
    return _cut(translator, text[:place]) + _cut(translator, text[place:])


def _best_cut(text: str) -> int:
    """Return where to cut a text in two: between clauses, words or letters, near its middle."""
    middle = len(text) / 2
    for marks in _CLAUSE_ENDS:
        places = [mark.end() for mark in marks.finditer(text)]
        # A cut near an end would only take a word away.
        places = [place for place in places if middle / 2 <= place <= 1.5 * middle]
        if places:
            return min(places, key=lambda place: abs(place - middle))
    return len(text) // 2


def _ended(one: Translation) -> bool:
    """Tell whether a translation came to its end by itself; a loop does not."""
    return not one.hypotheses or one.hypotheses[0].finished


def _asked(translator: Translator, piece: Piece) -> str:
    """Return what the model reads: with a full stop, as nearly all that it learned from has."""
    text = _usual(translator, piece.text)
    return text + "." if text[-1:].isalnum() else text


def _abbreviation(translator: Translator, text: str) -> bool:
    """Tell whether a text is one word of capitals that the vocabulary does not know, as ONU is."""
    written = translator.format.same_tokens and text.isalpha() and text.isupper()
    return written and len(text) > 1 and _usual(translator, text) == text


def _usual(translator: Translator, text: str) -> str:
    """Return "OÙ EST LA GARE ?" as "Où est la gare ?": the model learned from no such text."""
    return translator.format.without_shouting(text, translator.tokenizer)


def _as_a_part(piece: Piece, text: str, asked: str) -> str:
    """Write a translation as its source is: no full stop, and in a part no capital, of its own."""
    source = piece.text
    if source.isupper() and not asked.isupper():
        text = text.upper()
    if text[-1:] in (".", "!", "?") and source[-1] not in '.!?…»"”)':
        text = text[:-1] + (source[-1] if source[-1] in ",;:" else "")
    first = (text.split(maxsplit=1) or [""])[0]
    if piece.cut and source[0].islower() and first != "I" and not first.startswith("I'"):
        text = text[:1].lower() + text[1:]
    return text


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"
