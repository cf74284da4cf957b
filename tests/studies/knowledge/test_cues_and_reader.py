"""Documents taken apart, asked for by cues, and read by a reader that learned from questions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked
from heedful.studies.knowledge.corruption import (
    FEWEST_FIRST,
    cue_sequences,
    cue_texts,
    dropped_sequences,
)
from heedful.studies.knowledge.reader import (
    DATES,
    NAMES,
    OPENING,
    learn_reader,
    mentions,
    self_questions,
)

MASK, END = 1, 2
PLACES = ("Rome", "Paris", "Oslo", "New York", "Isle of Man", "Stoke-on-Trent")
NAMED = ("Ann Lee", "Bo P. Fry", "Cy Day, Jr.", "Dee", "Élan Roe")
WAYS = (
    "{n} (born {d} in {p}) sings at the Scala .",
    "Born in {p}, the painter lived in London .",
    "{n} ({d} {p} - {d} Berlin) was a Dutch poet .",
    "The poet was born on {d} at {p}, the son of Max Moor .",
)
DAYS = ("3 May 1950", "1812", "February 6, 1810")
lines = st.builds(
    lambda n, way, p, d: (f"{n}. {way.format(n=n, p=p, d=d)}", n, p),
    st.sampled_from(NAMED),
    st.sampled_from(WAYS),
    st.sampled_from(PLACES),
    st.sampled_from(DAYS),
)


def letters(texts):
    return [[ord(letter) for letter in text] for text in texts]


def about(name, answer=""):
    return Asked(question=f"Where was {name} born?", name=name, answer=answer, seen=True,
                 hint=None, pointed=None)  # fmt: skip


def many_people(count, seed=0):
    """Documents in the WAYS above, with their names and places."""
    draw = np.random.default_rng(seed)
    made = []
    for number in range(count):
        name = f"Person{number} Family{number * 7 % 31}"
        place = PLACES[int(draw.integers(4))]
        way = WAYS[int(draw.integers(len(WAYS)))]
        day = DAYS[int(draw.integers(3))]
        made.append((f"{name}. {way.format(n=name, p=place, d=day)}", name, place))
    return made


@given(lines)
@settings(deadline=None)
def test_a_document_is_taken_apart_without_loss(line):
    document, name, place = line
    (found,) = mentions([document])
    assert found.name == name
    assert f"{found.name}. {found.body}" == document
    texts = [found.text(phrase) for phrase in found.phrases]
    assert place in texts
    assert all(text in found.body for text in texts)
    own = set(name.replace(".", "").replace(",", "").split())
    assert not any(own & set(text.split()) for text in texts)


@given(lines, st.integers(0, 8))
@settings(deadline=None)
def test_a_cue_gives_nothing_away(line, length):
    (found,) = mentions([line[0]])
    for phrase in found.phrases:
        cue = found.cue(phrase, length)
        assert len(cue) <= length
        for word in cue:
            assert not any(letter.isdigit() or letter.isupper() for letter in word[:1])
        # A longer cue only adds in front: the words next to the phrase stay.
        longer = found.cue(phrase, length + 1)
        assert longer[-length:] == cue or (length == 0 and cue == [])


def test_what_a_cue_looks_like():
    (lee,) = mentions(["Ann Lee. Ann Lee (born 3 May 1950 in Rome) sings in Paris ."])
    rome, paris = lee.phrases
    assert lee.cue(rome, 9) == [OPENING, NAMES, "(", "born", DATES, "in"]
    assert lee.cue(paris, 4) == [NAMES, ")", "sings", "in"]


@given(st.lists(lines, min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 9))
@settings(deadline=None, max_examples=40)
def test_texts_are_name_cue_phrase_and_only_the_phrase_is_learned(drawn, variants, seed):
    documents = [line[0] for line in drawn]
    made = cue_sequences(
        documents, letters, mask=MASK, end=END, longest=200, variants=variants, seed=seed
    )
    assert len(made) == variants * len(documents)
    for number in range(len(made)):
        tokens = made.tokens[made.starts[number] : made.starts[number + 1]].tolist()
        (found,) = mentions([documents[number // variants]])
        name, cue, rest = "".join(map(chr, tokens)).split(chr(MASK))
        assert name == " " + found.name
        assert rest[-1] == chr(END)
        matching = [phrase for phrase in found.phrases if found.text(phrase) == rest[:-1]]
        assert any(found.cue(phrase, len(cue.split())) == cue.split() for phrase in matching)
        assert made.prompts[number] == len(name) + len(cue) + 2


def test_the_draws_are_the_seeds_own():
    documents = [document for document, _, _ in many_people(12)]
    settings_ = {"mask": MASK, "end": END, "longest": 200, "variants": 4}
    first, again, other = (
        cue_sequences(documents, letters, seed=seed, **settings_) for seed in (3, 3, 4)
    )
    assert first.tokens.tolist() == again.tokens.tolist()
    assert first.tokens.tolist() != other.tokens.tolist()


def test_what_is_too_long_is_left_out_and_nothing_is_refused():
    documents = ["Ann Lee. Born in Rome .", f"Bo Ray. Born in {'Longplace' * 9} ."]
    made = cue_sequences(documents, letters, mask=MASK, end=END, longest=60, variants=2)
    assert len(made) == 2
    with pytest.raises(InputError, match="no phrase under a name"):
        cue_sequences(["no title at all"], letters, mask=MASK, end=END, longest=60, variants=2)


def test_the_tokenizer_sees_every_phrase_and_cue():
    assert cue_texts(["Ann Lee. She was born in Rome ."]) == ["Rome", " ^ she was born in"]


def test_a_reader_finds_what_other_questions_taught():
    people = many_people(240)
    known, asked = people[:120], people[120:]
    reader = learn_reader(
        mentions([document for document, _, _ in known]), [place for _, _, place in known]
    )
    right = sum(
        reader.read(found)[0] == place
        for found, (_, _, place) in zip(
            mentions([document for document, _, _ in asked]), asked, strict=True
        )
    )
    assert right == len(asked)
    assert reader.read(mentions(["Ann Lee. nothing to be seen here ."])[0]) == ("", 0.0)


def test_a_text_asks_itself_about_everybody_else():
    people = many_people(60)
    documents = [document for document, _, _ in people]
    train = [about(name, place) for _, name, place in people[:40]]
    made = self_questions(documents, train)
    places = {name: place for _, name, place in people}
    assert {one.name for one in made} == {name for _, name, _ in people[40:]}
    assert all(one.question == about(one.name).question for one in made)
    assert all(one.answer == places[one.name] for one in made)


def test_the_answers_come_from_the_text_alone():
    people = many_people(60)
    train = [about(name, place) for _, name, place in people[:40]]
    told = [document for document, _, _ in people[:50]]
    silent = [f"{name}. It is not known what became of the poet ." for _, name, _ in people[50:]]
    made = self_questions(told + silent, train)
    assert {one.name for one in made} <= {name for _, name, _ in people[40:50]}


def test_a_reader_needs_answers_that_stand_in_documents():
    with pytest.raises(InputError, match="no answer that stands"):
        learn_reader(mentions(["Ann Lee. Born in Rome ."]), ["Nowhere"])
    with pytest.raises(InputError, match="nobody whose name"):
        self_questions(["Ann Lee. Born in Rome ."], [about("Bo Ray", "Rome")])


def dropped(documents, of_answers, seed=0):
    """Every text as its three parts."""
    asked = [about(name, place) for name, place in zip(NAMED * 2, PLACES, strict=False)]
    made = dropped_sequences(documents, letters, asked=asked, of_answers=of_answers, mask=MASK,
                             end=END, longest=400, variants=20, seed=seed)  # fmt: skip
    texts = "".join(map(chr, made.tokens)).split(chr(END))[:-1]
    return [text.split(chr(MASK)) for text in texts]


@given(lines, st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 99))
@settings(deadline=None)
def test_words_are_dropped_and_none_is_added_or_moved(line, of_answers, seed):
    document = line[0]
    for first, before, span in dropped([document], of_answers, seed):
        assert document.startswith(first.strip())
        assert len(first.split()) >= FEWEST_FIRST
        assert span in document[len(first) - 1 :]
        rest = iter(document.split()[len(first.split()) :])
        # In order, and complete but for a word that the span begins inside of.
        assert all(any(word.startswith(kept) for word in rest) for kept in before.split())


def test_answers_are_asked_for_as_often_as_is_said():
    documents = [document for document, _, _ in many_people(200)]
    assert all(span in PLACES for _, _, span in dropped(documents, 1.0))
    # Spans that are whole words have signs beside the places: hardly one is a place by chance.
    share = np.mean([span in PLACES for _, _, span in dropped(documents, 0.5)])
    assert 0.48 < share < 0.56


def test_the_answer_that_is_usually_right_is_asked_for_most():
    people = [f"Person{number} Family" for number in range(100)]
    documents = [f"{name}. From Oslo via Paris to Rome ." for name in people]
    asked = [about(name, "Paris") for name in people[:50]]
    asked += [about("Dee", "Oslo"), about("Dee", "Rome")]
    made = dropped_sequences(documents, letters, asked=asked, of_answers=1.0, mask=MASK, end=END,
                             longest=400, variants=10)  # fmt: skip
    spans = "".join(map(chr, made.tokens)).split(chr(END))[:-1]
    share = np.mean([text.endswith("Paris") for text in spans])
    # 51 of 53 counts; 1,000 draws stray by more than 0.02 in about one of 2,000 runs.
    assert abs(share - 51 / 53) < 0.02
