"""Readers of pairs and documents: what becomes a text, and what is refused with both counts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.corpus import Documents, Pairs
from heedful.data.readers import (
    read_corpora,
    read_corpus,
    read_json_lines,
    read_parallel,
    read_text,
    read_tsv,
)
from heedful.data.text_files import ReadLimits, ReadOptions
from heedful.errors import InputError

ENGLISH = ["The cat is here.", "What is that?", "He was with the dog."]
FRENCH = ["Le chat est là.", "Qu'est-ce que c'est ?", "Il était avec le chien."]


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def tabbed(*sides: list[str]) -> list[str]:
    return ["\t".join(cells) for cells in zip(*sides, strict=True)]


cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\t\ufeff"), max_size=8)


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(cell, cell), min_size=1, max_size=20))
def test_columns_are_what_tabs_separate(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = written(tmp_path_factory.mktemp("tsv"), "a.tsv", *("\t".join(row) for row in rows))
    pairs = read_tsv(path, ReadOptions(languages=("a", "b")))
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == rows
    turned = read_tsv(path, ReadOptions(languages=("a", "b"), source="b"))
    assert (turned.sources, turned.targets) == (pairs.targets, pairs.sources)


def test_languages_of_columns_are_told_with_a_reason(tmp_path: Path) -> None:
    pairs = read_tsv(written(tmp_path, "a.tsv", *tabbed(ENGLISH, FRENCH)), ReadOptions(source="fr"))
    assert pairs.languages == ("fr", "en")
    assert pairs.sources == tuple(FRENCH)
    assert "column 1 reads as English" in pairs.notes[0]
    unknown = read_tsv(written(tmp_path, "b.tsv", "42\tParis"))
    assert unknown.languages == ("column 1", "column 2")
    with pytest.raises(InputError, match=r"has no side called 'fr'.*--languages en fr"):
        unknown.from_language("fr")


def test_further_columns_are_named_and_others_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "1\tcat\t2\tchat", "3\tdog\t4\tchien")
    assert read_tsv(path, ReadOptions(columns=(4, 2))).targets == ("cat", "dog")
    assert "of 4 columns, 3, 4 not read" in read_tsv(path).notes[-1]
    for columns in ((0, 1), (2, 2), (1, 101)):
        with pytest.raises(InputError, match="two different numbers"):
            read_tsv(path, ReadOptions(columns=columns))
    with pytest.raises(InputError, match="line 1: has 4 columns; columns 1 and 5"):
        read_tsv(path, ReadOptions(columns=(1, 5)))


def test_ragged_columns_are_refused_and_nothing_is_quoting(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: has 3 columns; 2 were expected"):
        read_tsv(written(tmp_path, "a.tsv", "a\tb", "a\tb\tc"))
    with pytest.raises(InputError, match="line 2: has 1 column; 2 were expected"):
        read_tsv(written(tmp_path, "a.tsv", "a\tb", ""))
    assert read_tsv(written(tmp_path, "a.tsv", '"a\tb"')).sources == ('"a',)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parallel_files_are_one_corpus(tmp_path: Path, ending: str) -> None:
    first = written(tmp_path, f"train.fr{ending}", *FRENCH)
    second = written(tmp_path, f"train.en{ending}", *ENGLISH)
    pairs = read_parallel(first, second)
    assert (pairs.sources, pairs.targets) == (tuple(FRENCH), tuple(ENGLISH))
    assert pairs.languages == ("fr", "en")
    assert pairs.name == "train.fr+en"
    assert [len(origin.sha256) for origin in pairs.origins] == [64, 64]
    assert read_parallel(first, second, ReadOptions(source="en")).sources == tuple(ENGLISH)


def test_unequal_files_are_refused_with_both_counts(tmp_path: Path) -> None:
    first = written(tmp_path, "a.fr", *FRENCH)
    second = written(tmp_path, "a.en", *ENGLISH[:2])
    with pytest.raises(InputError, match=r"a\.fr: has 3 lines, but .*a\.en has 2"):
        read_parallel(first, second)


def test_a_line_separator_does_not_shift_a_side(tmp_path: Path) -> None:
    first = written(tmp_path, "a.fr", "un\u2028un", "deux\x0c", "trois\x85")
    second = written(tmp_path, "a.en", "one", "two", "three")
    pairs = read_parallel(first, second)
    assert dict(zip(pairs.sources, pairs.targets, strict=True))["trois\x85"] == "three"


def test_units_of_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.txt", "one", "two", "", " ", "three")
    assert read_text(path).texts == ("one", "two", "", " ", "three")
    assert read_text(path).without_empty().texts == ("one", "two", "three")
    assert read_text(path).without_empty().notes == ("2 empty documents left out on request",)
    assert read_text(path, ReadOptions(unit="paragraph")).texts == ("one\ntwo", "three")
    assert read_text(path, ReadOptions(unit="file")).texts == ("one\ntwo\n\n \nthree",)
    for unit in ("line", "paragraph", "file"):
        with pytest.raises(InputError, match="holds nothing to read"):
            read_text(written(tmp_path, "empty.txt"), ReadOptions(unit=unit))


def test_too_many_texts_are_refused(tmp_path: Path) -> None:
    limits = ReadLimits(texts=2)
    lines = ["a\tb"] * 3
    for read in (read_tsv, read_text):
        with pytest.raises(InputError, match=r"more than 2 texts.*--max-texts"):
            read(written(tmp_path, "a.tsv", *lines), ReadOptions(limits=limits))
    with pytest.raises(InputError, match="more than 2 texts"):
        read_parallel(
            written(tmp_path, "a.fr", *lines),
            written(tmp_path, "a.en", *lines),
            ReadOptions(limits=limits),
        )


@pytest.mark.parametrize(
    ("entry", "fields", "languages"),
    [
        ({"fr": "un", "en": "one"}, None, ("fr", "en")),
        ({"id": 7, "translation": {"fr": "un", "en": "one"}}, None, ("fr", "en")),
        ({"question": "un", "answer": "one"}, None, ("question", "answer")),
        ({"x": "un", "y": "one", "z": 1}, ("x", "y"), ("x", "y")),
    ],
)
def test_pairs_in_json_lines(
    tmp_path: Path, entry: object, fields: tuple[str, ...] | None, languages: tuple[str, str]
) -> None:
    path = written(tmp_path, "a.jsonl", json.dumps(entry), "", json.dumps(entry))
    pairs = read_json_lines(path, ReadOptions(fields=fields))
    assert isinstance(pairs, Pairs)
    assert (pairs.sources, pairs.targets) == (("un", "un"), ("one", "one"))
    assert pairs.languages == languages
    assert pairs.left_out == {"blank lines": 1}


def test_documents_in_json_lines_may_hold_newlines(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"text": "one\\ntwo 😀", "id": 1}')
    documents = read_json_lines(path)
    assert isinstance(documents, Documents)
    assert documents.texts == ("one\ntwo 😀",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[1]", "is a JSON list"),
        ("{", "is not JSON at column 2"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"text": ' + "9" * 5000 + "}", "is not usable JSON"),
        ('{"text": "a", "text": "b"}', "a name stands twice"),
        ('{"text": 1}', "its field 'text' is a JSON int"),
        ('{"text": "\\ud800"}', "holds U+D800"),
        ('{"text": "\\u0000"}', "holds U+0000"),
        ('{"a": "b"}', "has the fields a"),
        ("{}", "has the fields none"),
    ],
)
def test_unusable_json_is_refused(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_json_lines(written(tmp_path, "a.jsonl", line))
    assert problem in str(error.value)
    assert "line 1" in str(error.value)


def test_every_object_needs_the_fields_of_the_first(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"fr": "un", "en": "one"}', '{"fr": "deux"}')
    with pytest.raises(InputError, match="line 2: its field 'en' is missing"):
        read_json_lines(path)
    with pytest.raises(InputError, match="names 3 fields"):
        read_json_lines(path, ReadOptions(fields=("a", "b", "c")))


def test_files_are_told_by_name_and_by_their_lines(tmp_path: Path) -> None:
    columns = written(tmp_path, "a.txt", *tabbed(ENGLISH, FRENCH))
    pairs = read_corpus(columns)
    assert isinstance(pairs, Pairs)
    assert "each of the first 3 lines has 2" in pairs.notes[0]
    assert isinstance(read_corpus(written(tmp_path, "b.txt", *ENGLISH)), Documents)
    assert isinstance(read_corpus(columns, ReadOptions(format="text")), Documents)
    with pytest.raises(InputError, match=r"source: is for pairs, but b\.txt holds documents"):
        read_corpus(tmp_path / "b.txt", ReadOptions(source="fr"))
    lines = written(tmp_path, "c.jsonl", '{"question": "un", "answer": "one"}')
    turned = read_corpus(lines, ReadOptions(languages=("fr", "en"), source="en"))
    assert isinstance(turned, Pairs)
    assert (turned.sources, turned.languages) == (("one",), ("en", "fr"))
    with pytest.raises(InputError, match="a parallel corpus has two"):
        read_corpus(columns, ReadOptions(format="parallel"))


def test_files_that_differ_in_their_language_are_read_together(tmp_path: Path) -> None:
    names = ("train.fr", "val.en", "notes.txt", "train.en", "val.fr", "notes.md")
    paths = [written(tmp_path, name, "a") for name in names]
    assert [corpus.name for corpus in read_corpora(paths)] == [
        "train.fr+en",
        "val.en+fr",
        "notes.txt",
        "notes.md",
    ]
    together = read_corpora(paths[2:4], ReadOptions(format="parallel"))
    assert [corpus.name for corpus in together] == ["notes.txt+train.en"]
    with pytest.raises(InputError, match="come in twos"):
        read_corpora(paths[:3], ReadOptions(format="parallel"))
    with pytest.raises(InputError, match="was given twice"):
        read_corpora([paths[0], paths[0]])
    with pytest.raises(InputError, match="names no file"):
        read_corpora([])


def test_a_fingerprint_is_of_the_texts_and_nothing_else(tmp_path: Path) -> None:
    plain = read_text(written(tmp_path, "a.txt", "x", "yz"))
    packed = read_text(written(tmp_path, "b.gz", "x", "yz"))
    assert plain.fingerprint == packed.fingerprint
    assert plain.origins[0].sha256 != packed.origins[0].sha256
    others = [("xy", "z"), ("yz", "x"), ("x", "yz", "")]
    made = {Documents(name="a", texts=texts).fingerprint for texts in others}
    pairs = Pairs(name="a", sources=("x",), targets=("yz",))
    made |= {pairs.fingerprint, pairs.turned().fingerprint}
    assert len(made | {plain.fingerprint}) == 6


def test_leaving_out_is_a_step_of_its_own_that_says_so() -> None:
    pairs = Pairs(name="a", sources=("x", "x", "", "y"), targets=("1", "1", "2", " "))
    assert pairs.without_duplicates().sources == ("x", "", "y")
    assert pairs.without_empty().sources == ("x", "x")
    assert pairs.without_empty().notes == ("2 empty pairs left out on request",)
    assert len(pairs) == 4
    with pytest.raises(InputError, match="has 1 sources and 2 targets"):
        Pairs(name="a", sources=("x",), targets=("1", "2"))
