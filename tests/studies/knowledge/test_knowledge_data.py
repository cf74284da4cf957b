"""What the study learns from: corpora, spans, evidence and baselines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.synthetic.biographies import QUESTION_PHRASINGS
from heedful.errors import InputError
from heedful.studies.knowledge.corpus import (
    DocumentIndex,
    embedded,
    from_files,
    name_in,
    pointed_place,
)
from heedful.studies.knowledge.corruption import corrupted, fact_spans
from heedful.studies.knowledge.names import NameGuesser, baseline_answers

MASK, END = 1, 2


def letters(texts: object) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]  # type: ignore[attr-defined]


texts = st.lists(st.text("abc DEF9.", min_size=4, max_size=60), min_size=1, max_size=4)


@given(
    documents=texts,
    spans=st.sampled_from(["random", "facts"]),
    variants=st.integers(1, 4),
    longest=st.integers(7, 80),
    seed=st.integers(0, 99),
)
def test_a_corrupted_document_can_be_put_together_again(
    documents: list[str], spans: str, variants: int, longest: int, seed: int
) -> None:
    made = corrupted(
        documents, letters, mask=MASK, end=END, longest=longest, spans=spans,  # type: ignore[arg-type]
        variants=variants, seed=seed,
    )  # fmt: skip

    assert len(made) == variants * len(documents)
    assert int(made.steps.max()) <= longest
    for number in range(len(made)):
        tokens = made.tokens[made.starts[number] : made.starts[number + 1]].tolist()
        assert tokens[-1] == END
        first, second = (place for place, token in enumerate(tokens) if token == MASK)
        prefix, suffix, span = tokens[:first], tokens[first + 1 : second], tokens[second + 1 : -1]
        assert span
        whole = letters([documents[number // variants]])[0]
        again = [*prefix, *span, *suffix]
        if spans == "random" or len(whole) <= longest - 2:
            assert again == whole[: len(again)]


@given(documents=texts, seed=st.integers(0, 99))
def test_corruption_is_a_function_of_the_seed_and_of_nothing_else(
    documents: list[str], seed: int
) -> None:
    once, again = (
        corrupted(documents, letters, mask=MASK, end=END, longest=40, seed=seed).tokens
        for _ in range(2)
    )
    np.testing.assert_array_equal(once, again)


def test_cues_are_no_spans_that_are_taken_out() -> None:
    with pytest.raises(InputError, match="random or facts"):
        corrupted(["abcdefgh"], letters, mask=MASK, end=END, longest=20, spans="cues")


def test_only_the_span_is_learned_where_that_is_asked_for() -> None:
    made = corrupted(["abcdefgh"], letters, mask=MASK, end=END, longest=20, learn_all=False)
    for number, prompt in enumerate(made.prompts.tolist()):
        tokens = made.tokens[made.starts[number] : made.starts[number + 1]].tolist()
        assert tokens[prompt - 1] == MASK
        assert MASK not in tokens[prompt:]


def test_facts_of_a_biography_are_its_place_and_date_and_never_its_name() -> None:
    for document, one in zip(*_documents_and_people(), strict=True):
        found = {document[start:end] for start, end in fact_spans(document)}
        assert any(one.answer in fact for fact in found), document
        assert not any(one.name in fact for fact in found), document


def _documents_and_people() -> tuple[list[str], list]:  # type: ignore[type-arg]
    corpus = embedded(120)
    people = [one for part in (corpus.train, corpus.test) for one in part if one.seen]
    evidence = corpus.evidence
    return [evidence.mentions(one.name)[0] for one in people], people


def test_the_parts_of_the_embedded_corpus_share_nobody_and_say_who_is_in_the_text() -> None:
    corpus = embedded(200, sentences=1)
    names = [one.name for part in (corpus.train, corpus.held_out, corpus.test) for one in part]
    assert len(names) == len(set(names)) == 200
    evidence = corpus.evidence
    for one in corpus.test:
        assert bool(evidence.mentions(one.name)) == one.seen
        assert (pointed_place(one.name) is not None) == one.hint
        assert evidence.line(one.name, one.answer)[1] == one.seen
    assert all(document.count(". ") == 0 for document in corpus.documents)


def test_the_oracle_finds_what_the_text_says_and_the_guesser_only_what_names_say() -> None:
    corpus = embedded(400)
    answers = baseline_answers(corpus)
    right = {
        name: np.array([said == one.answer for said, one in zip(found, corpus.test, strict=True)])
        for name, found in answers.items()
    }
    groups = np.array([one.group for one in corpus.test])
    assert right["retrieval"][np.char.startswith(groups, "seen")].mean() > 0.98
    hinting = np.char.endswith(groups, "hint")
    assert right["name only"][hinting].mean() > 0.4
    assert right["name only"][~hinting].mean() < 0.25


def test_a_guesser_gives_chances_that_add_up_to_one() -> None:
    guesser = NameGuesser(embedded(80).train)
    for name in ("Ala Macalworth", "Ω 漢字", ""):
        chances = guesser.probabilities(name)
        assert np.isclose(chances.sum(), 1.0)
        assert (chances >= 0).all()


def test_names_are_found_in_every_known_way_to_ask() -> None:
    for phrasing in QUESTION_PHRASINGS:
        assert name_in(phrasing.format(n="Zoë O'Neil-Smith")) == "Zoë O'Neil-Smith"
    assert name_in("") is None


def test_a_name_is_found_as_whole_words_only() -> None:
    evidence = DocumentIndex(
        ["Al Lee sings.", "Sal Lee hums.", "Al Leeds left.", "We saw Al Lee, too."]
    )
    assert evidence.mentions("Al Lee") == ("Al Lee sings.", "We saw Al Lee, too.")
    assert evidence.mentions("  ") == ()
    assert evidence.place("Al Lee", ["Rome"]) is None


def _files(folder: Path, text: str, train: str, dev: str) -> tuple[Path, Path, Path]:
    paths = tuple(folder / name for name in ("text.txt", "train.tsv", "dev.tsv"))
    for path, content in zip(paths, (text, train, dev), strict=True):
        path.write_text(content, encoding="utf-8")
    return paths  # type: ignore[return-value]


def test_files_with_the_traps_of_the_course_are_read_with_notes(tmp_path: Path) -> None:
    ask = "Where was {} born?\t{}\n"
    train = "".join(ask.format(f"Person {letter}", "Oslo") for letter in "ABCDEFGHIJ")
    train += ask.format("George Stone", "Fulham") + ask.format("Zoë Ørsted", "Paris")
    text = "Person A. He was born in Oslo.\n\nGeorge Stone. Born in London.\nZoë Ørsted.\n"
    corpus = from_files(*_files(tmp_path, text, train, ask.format("George Stone", "London")))

    assert len(corpus.documents) == 3
    assert [one.answer for one in corpus.test] == ["London"]
    asked = [*corpus.train, *corpus.held_out]
    assert "George Stone" not in {one.name for one in asked}
    assert "Zoë Ørsted" in {one.name for one in asked}
    assert len(corpus.notes) == 2
    assert len(corpus.held_out) == 1


@pytest.mark.parametrize("train", ["only a question\n", "a question\t\n", "q\ta\tb\nq\ta\n"])
def test_files_without_answers_are_refused(tmp_path: Path, train: str) -> None:
    with pytest.raises(InputError):
        from_files(*_files(tmp_path, "A document.\n", train, "q\ta\n"))
