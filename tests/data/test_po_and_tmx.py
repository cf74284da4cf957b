"""PO and TMX: the stated policies, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.readers import read_po, read_tmx
from heedful.data.text_files import ReadLimits, ReadOptions
from heedful.errors import InputError

PO = r"""# A translation
msgid ""
msgstr ""
"Language: fr\n"
"Content-Type: text/plain; charset=UTF-8\n"

#: main.c:1
msgid "The cat is \"here\"\n"
msgstr "Le chat est «là»\n"

#, fuzzy, c-format
#| msgid "old"
msgid "fuzzy one"
msgstr "flou"

#. a comment that starts the next entry
msgctxt "menu"
msgid ""
"one "
"two"
msgstr ""
"un "
"deux"
msgid "no blank line before"
msgstr "sans ligne vide"

msgid "untranslated"
msgstr ""

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

msgid "one form"
msgid_plural "several"
msgstr[0] "forme"

#~ msgid "obsolete"
#~ msgstr "obsolète"
"""

UNIT = (
    '<tu><tuv xml:lang="en-US"><seg>a <bpt i="1">{{b</bpt><hi>bold</hi> cat</seg></tuv>'
    '<tuv xml:lang="FR"><seg>un chat &amp; {}</seg></tuv></tu>'
)


def tmx(*units: str, before: str = "", source: str = "en") -> str:
    return f'<?xml version="1.0"?>{before}<tmx version="1.4"><header srclang="{source}"/><body>' + (
        "".join(units) + "</body></tmx>"
    )


def written(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_what_becomes_a_pair_of_a_po_file(tmp_path: Path) -> None:
    pairs = read_po(written(tmp_path, PO))
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == [
        ('The cat is "here"\n', "Le chat est «là»\n"),
        ("one two", "un deux"),
        ("no blank line before", "sans ligne vide"),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
    ]
    assert pairs.left_out == {
        "header": 1,
        "fuzzy": 1,
        "untranslated": 1,
        "plural with other than two forms": 1,
        "obsolete": 1,
    }
    assert pairs.languages[1] == "fr"


plain = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(plain, plain), min_size=1, max_size=6))
def test_escapes_are_undone(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    def quoted(text: str) -> str:
        for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            text = text.replace(letter, escape)
        return f'"{text}"'

    content = "".join(f"msgid {quoted(a)}\nmsgstr {quoted(b)}\n\n" for a, b in rows)
    path = written(tmp_path_factory.mktemp("po"), content)
    pairs = read_po(path, ReadOptions(languages=("x", "y")))
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == rows


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("hello\n", "starts with 'hello'"),
        ('msgid "a"\nmsgid "b"\n', "gives msgid twice"),
        ('msgid "a"\n', "without msgstr"),
        ('msgstr "a"\n\n', "without msgid"),
        ('msgid "a\nmsgstr "b"\n', "between quotation marks"),
        ('msgid "a" x\nmsgstr "b"\n', "between quotation marks"),
        ('msgid "\\q"\nmsgstr "b"\n', "holds the escape '\\\\q'"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', "mixes one form and several"),
        ('msgid "a"\nmsgstr[0] "c"\n', "mixes one form and several"),
        ('msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n', "ISO-8859-1"),
        ('msgid "a"\nmsgstr ""\n', "no finished translation (1 untranslated)"),
        ("", "holds nothing to read"),
        ('msgid "a"\nmsgstr "b"\n' + '"more"\n' * 300, "more than 1,000 characters"),
    ],
)
def test_unreadable_po_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_po(written(tmp_path, content), ReadOptions(limits=ReadLimits(line_bytes=1000)))
    assert problem in str(error.value)
    assert str(error.value).isprintable()


def test_what_becomes_a_pair_of_a_tmx_file(tmp_path: Path) -> None:
    twice = UNIT.format("x").replace("</tu>", '<tuv lang="fr"><seg>second</seg></tuv></tu>')
    alone = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    path = written(tmp_path, tmx(UNIT.format("y"), twice, alone))
    pairs = read_tmx(path)
    assert pairs.sources == ("a bold cat",) * 2
    assert pairs.targets == ("un chat & y", "un chat & x")
    assert pairs.languages == ("en", "fr")
    assert pairs.left_out == {
        "second segment in one language": 1,
        "without one of the languages": 1,
    }
    assert read_tmx(path, ReadOptions(source="fr")).languages == ("fr", "en")
    assert read_tmx(written(tmp_path, tmx(UNIT, source="fr"))).languages == ("fr", "en")


def test_utf16_is_read_as_xml_says(tmp_path: Path) -> None:
    content = tmx(UNIT.format("é")).replace('"1.0"?', '"1.0" encoding="UTF-16"?')
    assert read_tmx(written(tmp_path, content.encode("utf-16"))).targets == ("un chat & é",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (tmx(UNIT, before="<!DOCTYPE tmx>"), "holds a DOCTYPE"),
        (tmx(before='<!DOCTYPE tmx SYSTEM "file:///etc/passwd">'), "holds a DOCTYPE"),
        (tmx("<tu><tuv xml:lang='en'><seg>&x;</seg></tuv></tu>"), "undefined entity"),
        (tmx(UNIT)[:-3], "is not XML"),
        ("<html/>", "starts with <html>"),
        ("", "no element found"),
        (tmx("<a>" * 100), "more than 64 elements"),
        (tmx("<tu><tuv><seg>x</seg></tuv></tu>"), "names no language"),
        (tmx(), "holds 0 languages (none)"),
        (tmx("<tu><tuv xml:lang='en'><seg>x</seg></tuv></tu>"), "holds 1 languages (en)"),
        (
            tmx("<tu><tuv xml:lang='en'><seg>" + "x" * 2000 + "</seg></tuv></tu>"),
            "segment of more than 1,000",
        ),
        (tmx("<tu a='" + "x" * 200_000), "tag or comment of more than 1,000"),
        (tmx().replace('"1.0"?', '"1.0" encoding="latin-1"?'), "is written in 'latin-1'"),
        (b"<tmx>\xff</tmx>", "at byte 5"),
    ],
)
def test_unreadable_tmx_is_refused(tmp_path: Path, content: str | bytes, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_tmx(written(tmp_path, content), ReadOptions(limits=ReadLimits(line_bytes=1000)))
    assert problem in str(error.value)
    assert str(error.value).isprintable()


def test_a_tag_that_never_ends_is_refused_soon(tmp_path: Path) -> None:
    path = written(tmp_path, b"<tmx><!--" + b"x" * 50_000_000)
    start = time.process_time()
    with pytest.raises(InputError, match="tag or comment of more than"):
        read_tmx(path)
    assert time.process_time() - start < 2.0


def test_languages_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, tmx(UNIT))
    with pytest.raises(InputError, match="no unit in both 'en' and 'de'; its languages are en, fr"):
        read_tmx(path, ReadOptions(languages=("en", "de")))
