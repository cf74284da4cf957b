"""The translator: fast, in order, and honest about what it cannot translate."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_translators import CONTEXT, all_bytes, letters, llama_like, translator

from heedful.data.languages import content_words
from heedful.errors import ConfigError, InputError
from heedful.files import SHIPPED
from heedful.generation import Beams, Stops, generate
from heedful.model import Decoder, load, write_folder
from heedful.model.weights.published import cached_path
from heedful.studies.translation import TranslationFormat, Translator
from heedful.studies.translation import translator as module

PLAIN, BYTES = translator(), translator(all_bytes())
LINES = st.lists(st.text("abcdeéo' .?", max_size=CONTEXT + 2), max_size=8)


@torch.inference_mode()
def slowly(chosen: Translator, line: str, most: int | None = None) -> str:
    """Translate one line by the definition: the whole text read anew for every token, no marks."""
    prompt, problem = chosen.prompt(line)
    if problem or not prompt:
        return ""
    tokens = list(prompt)
    limit = 2 * len(prompt) + 24 if most is None else most
    for _ in range(min(limit, CONTEXT - len(prompt) + 1)):
        logits = chosen.decoder(torch.tensor([tokens]))[0, -1]
        logits[[chosen.marks.begin, chosen.marks.between]] = -torch.inf
        token = int(logits.argmax())
        if token == chosen.marks.end:
            break
        tokens.append(token)
    return text_of(chosen, tokens[len(prompt) :])


def text_of(chosen: Translator, tokens: Sequence[int]) -> str:
    kept = [token for token in tokens if token != chosen.marks.end]
    text = chosen.tokenizer.decode(kept)
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


@settings(max_examples=8)
@given(lines=LINES, batch=st.integers(1, 9))
def test_every_line_is_translated_as_if_it_were_alone(lines: list[str], batch: int) -> None:
    found = list(PLAIN.translate(lines, batch=batch))
    assert [one.source for one in found] == lines
    assert [one.text for one in found] == [slowly(PLAIN, line) for line in lines]


@settings(max_examples=8)
@given(lines=LINES, beam=st.integers(2, 4), penalty=st.sampled_from([0.0, 0.6, 1.0]))
def test_beams_are_those_of_each_line_alone(lines: list[str], beam: int, penalty: float) -> None:
    found = PLAIN.translate(lines, beam=beam, nbest=2, length_penalty=penalty, batch=8)
    method = Beams(beams=beam, nbest=beam, length_penalty=penalty)
    for one in found:
        prompt, _ = PLAIN.prompt(one.source)
        if not prompt:
            assert one.hypotheses == ()
            continue
        stops = Stops(
            tokens=min(2 * len(prompt) + 24, CONTEXT - len(prompt) + 1),
            ends=(PLAIN.marks.end,),
            suppressed=(PLAIN.marks.begin, PLAIN.marks.between),
        )
        (every,) = generate(PLAIN.decoder, [prompt], method=method, stops=stops).continuations
        shown = {text_of(PLAIN, each.tokens): each for each in reversed(every)}
        truth = [each for each in every if each in shown.values()][:2]  # of equal texts the first
        assert [each.tokens for each in one.hypotheses] == [each.tokens for each in truth]
        for mine, theirs in zip(one.hypotheses, truth, strict=True):
            assert mine.score == pytest.approx(theirs.score)
            assert mine.log_probability == pytest.approx(sum(theirs.log_probabilities))
            assert mine.per_token == pytest.approx(mine.log_probability / len(mine.tokens))


def test_lines_that_differ_in_a_capital_only_keep_theirs() -> None:
    tokenizer = load(SHIPPED["fr-en"]).tokenizer
    chosen = translator(tokenizer, written=TranslationFormat(same_tokens=True))
    lines = ["fromage", "Fromage", "", "fromage", "Le fromage", "le fromage"]
    assert chosen.prompt("fromage") == chosen.prompt("Fromage")
    for beam in (1, 4):
        found = list(chosen.translate(lines, beam=beam, nbest=beam))
        alone = [next(chosen.translate([line], beam=beam, nbest=beam)) for line in lines]
        assert [one.text for one in found] == [one.text for one in alone]
        for one in found:
            texts = [each.text for each in one.hypotheses]
            assert len(set(texts)) == len(texts)
            if one.source[:1].isupper():
                assert not any(text[:1].islower() for text in texts)


@torch.inference_mode()
def test_scores_are_the_log_probabilities_of_the_tokens() -> None:
    for one in PLAIN.translate(["abba", "a bed?", "é"]):
        (best,) = one.hypotheses
        prompt, _ = PLAIN.prompt(one.source)
        logits = PLAIN.decoder(torch.tensor([[*prompt, *best.tokens[:-1]]]))[0, len(prompt) - 1 :]
        own = logits.log_softmax(-1).gather(1, torch.tensor(best.tokens).unsqueeze(1))
        assert best.log_probabilities == pytest.approx(own.squeeze(1).tolist())
        assert best.score == pytest.approx(best.log_probability)
        assert best.finished == (best.tokens[-1] == PLAIN.marks.end)


@torch.inference_mode()
def mean_log_probability(chosen: Translator, source: str, target: str) -> float:
    """Return log p(target | source) per token by the definition, one pair at a time."""
    prompt, problem = chosen.prompt(source)
    tokens = chosen.tokenizer.encode(chosen.format.written(target))
    if problem or not prompt or len(prompt) + len(tokens) >= CONTEXT:
        return -math.inf
    wanted = torch.tensor([*tokens, chosen.marks.end])
    logits = chosen.decoder(torch.tensor([[*prompt, *tokens]]))[0, len(prompt) - 1 :]
    return float(logits.log_softmax(-1).gather(1, wanted.unsqueeze(1)).mean())


@settings(max_examples=20)
@given(pairs=st.lists(st.tuples(*[st.text("abcdeéo' .?", max_size=12)] * 2), max_size=6))
def test_pairs_are_scored_together_as_alone(pairs: list[tuple[str, str]]) -> None:
    found = PLAIN.log_probabilities([one for one, _ in pairs], [other for _, other in pairs])
    assert found == pytest.approx([mean_log_probability(PLAIN, *pair) for pair in pairs])


@settings(max_examples=8)
@given(
    lines=LINES, weight=st.sampled_from([0.0, 0.5, 3.0]), reward=st.sampled_from([0.0, 0.1, 2.0])
)
def test_the_way_back_and_content_words_rank_what_the_beams_found(
    lines: list[str], weight: float, reward: float
) -> None:
    written = TranslationFormat(reverse="other", reverse_weight=weight, content_reward=reward)
    other = translator(seed=1)
    both = Translator(PLAIN.decoder, PLAIN.tokenizer, written, reverse=other)
    plain = PLAIN.translate(lines, beam=4, nbest=4)
    for one, ranked in zip(plain, both.translate(lines, beam=4, nbest=2), strict=True):
        truth = [
            (
                readable,
                each.score + (weight * back + reward * words if readable else 0.0),
                each.text,
            )
            for each in one.hypotheses
            for back in [mean_log_probability(other, each.text, one.source)]
            for words in [len(set(content_words(each.text)))]
            for readable in [back > -math.inf]
        ]
        truth.sort(key=lambda each: each[:2], reverse=True)
        assert [each.text for each in ranked.hypotheses] == [text for _, _, text in truth[:2]]
        for mine, (readable, score, _) in zip(ranked.hypotheses, truth, strict=False):
            assert mine.score == pytest.approx(score)
            assert (mine.reverse is not None) == readable
    assert [one.text for one in both.translate(lines)] == PLAIN.texts(lines)  # greedy: as it was


@settings(max_examples=15)
@given(lines=st.lists(st.text(max_size=30) | st.just("x" * 100_000), max_size=8))
def test_whatever_comes_in_line_i_belongs_to_line_i(lines: list[str]) -> None:
    for chosen in (PLAIN, BYTES):
        found = list(chosen.translate(lines, max_tokens=4))
        assert [one.source for one in found] == lines
        for one in found:
            assert "\n" not in one.text
            assert "\r" not in one.text
            written = chosen.format.written(one.source)
            assert bool(one.hypotheses) == bool(written and not one.problem)
            assert not (one.problem and one.text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a" * 100_000, "is longer than 20,000 characters"),
        ("a" * (CONTEXT - 1), f"has {CONTEXT + 1} tokens with its marks; the context of the model"),
        ("où", "'ù', which this tokenizer does not know"),
        ("где вокзал", "which this tokenizer does not know"),
        ("a\0b", "holds a control character (U+0000, character 2)"),
        ("ab\x07", "holds a control character (U+0007, character 3)"),
        ("a\x85", "holds a control character (U+0085, character 2)"),
        ("a\udce9", "is not UTF-8 (byte 0xE9, character 2)"),
        ("ab<to>ba", "holds the mark '<to>' of the tokenizer"),
        ("<end>", "holds the mark '<end>' of the tokenizer"),
    ],
)
def test_a_line_that_cannot_be_translated_says_why(line: str, said: str) -> None:
    before, bad, after = PLAIN.translate(["abc", line, "cab"])
    assert said in bad.problem
    assert bad.text == ""
    assert before.text == slowly(PLAIN, "abc")
    assert after.text == slowly(PLAIN, "cab")


@pytest.mark.parametrize("line", ["", "   ", "\t", "\n", "\u00a0", " \r\n"])
def test_an_empty_line_stays_an_empty_line(line: str) -> None:
    (found,) = PLAIN.translate([line])
    assert (found.text, found.problem, found.hypotheses) == ("", "", ())


def test_the_longest_line_that_fits_is_translated() -> None:
    (found,) = PLAIN.translate(["a" * (CONTEXT - 2)])
    assert found.problem == ""
    assert len(found.hypotheses[0].tokens) == 1  # there is room for one token only


def test_what_would_break_a_line_becomes_a_blank() -> None:
    texts = [one.text for seed in range(3) for one in translator(seed=seed).translate(["ab", "c"])]
    raw = [slowly(translator(seed=seed), line) for seed in range(3) for line in ("ab", "c")]
    assert texts == raw
    assert not any("\n" in text for text in texts)


def test_lines_are_read_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    taken: list[int] = []

    def lines():
        for number in range(1_000):
            taken.append(number)
            yield "ab"

    first = list(islice(PLAIN.translate(lines()), 3))
    assert len(first) == 3
    assert len(taken) == 4


def test_lanes_do_not_show() -> None:
    lines = ["abc", "", "é?", "a bad ode", "dodo", "b" * 50, "ace", "abc"]
    alone = PLAIN.texts(lines)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert [one.text for one in PLAIN.translate(lines, batch=2)] == alone
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["abc", "", "é?", "a bad ode", "dodo", "b" * 50, "ace"]
    whole = PLAIN.texts(lines)
    monkeypatch.setattr(module, "CHUNK", 2)
    assert PLAIN.texts(lines) == whole


def test_sources_are_folded_as_the_model_was_taught() -> None:
    folded = translator(written=TranslationFormat(normalise="keyboard"))
    (typeset, plain) = folded.translate([" a’e\u0301\u202f? ", "a'é ?"])
    assert typeset.text == plain.text
    assert typeset.problem == ""
    (kept,) = translator(written=TranslationFormat(normalise="none")).translate(["e\u0301"])
    assert "which this tokenizer does not know" in kept.problem


def test_int8_translates_too() -> None:
    chosen = translator(dtype=torch.float32)
    rounded = Translator(chosen.decoder, chosen.tokenizer, precision="int8")
    assert len(rounded.texts(["abc", "de"])) == 2


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ({"beam": 0}, "beam: is 0"),
        ({"nbest": 2}, "nbest: is 2; at most one for each of the 1 beams"),
        ({"batch": 0}, "batch: is 0"),
        ({"max_tokens": 0}, "max_tokens: is 0"),
    ],
)
def test_settings_are_checked_before_any_line_is_read(settings_, said: str) -> None:
    with pytest.raises(InputError, match=said):
        PLAIN.translate(iter(["a"]), **settings_)


def test_one_text_is_not_lines() -> None:
    with pytest.raises(InputError, match="several lines"):
        PLAIN.translate("abc")


def test_a_tokenizer_without_the_marks_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no token '<from>', the mark `begin`"):
        translator(written=TranslationFormat(begin="<from>"))
    bare = translator(written=TranslationFormat(begin=None))
    assert bare.prompt("ab")[0] == translator().prompt("ab")[0][1:]


def test_a_model_folder_opens_if_it_says_its_format(tmp_path: Path) -> None:
    made = translator(dtype=torch.float32, seed=3)
    folder = tmp_path / "model"
    write_folder(made.decoder, folder, tokenizer=made.tokenizer)
    with pytest.raises(InputError, match=r"was not trained on pairs: it has no translation\.json"):
        Translator.open(folder)
    made.format.write(folder)
    opened = Translator.open(folder)
    lines = ["abc", "", "bed bad"]
    assert opened.format == made.format
    assert opened.texts(lines) == made.texts(lines)
    (folder / "translation.json").write_text('{"langages": []}')
    with pytest.raises(InputError, match=r"translation\.json.*langages"):
        Translator.open(folder)
    (folder / "translation.json").write_text("{")
    with pytest.raises(InputError, match="is not valid JSON"):
        Translator.open(folder)


def test_what_is_no_translator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        Translator.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match="was not trained on pairs"):
        Translator.open(tmp_path)
    bare = tmp_path / "bare"
    write_folder(Decoder(llama_like(letters().size), seed=0), bare)
    TranslationFormat().write(bare)
    with pytest.raises(InputError, match="has no tokenizer"):
        Translator.open(bare)


def test_a_published_model_that_continues_texts_is_no_translator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match="heed model get smollm2"):
        Translator.open("smollm2")
    weights = cached_path("smollm2")
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"GGUF")  # what it is shows before its weights are read
    with pytest.raises(InputError, match="smollm2: was not trained on pairs"):
        Translator.open("smollm2")


def test_a_format_is_json_with_words(tmp_path: Path) -> None:
    TranslationFormat(languages=("fr", "en"), normalise="keyboard").write(tmp_path)
    written = json.loads((tmp_path / "translation.json").read_text(encoding="utf-8"))
    assert written == {
        "begin": "<begin>",
        "between": "<to>",
        "end": "<end>",
        "languages": ["fr", "en"],
        "normalise": "keyboard",
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reverse": "nowhere"}, "'nowhere' cannot be opened (there is no such file or folder)"),
        ({"reverse": "fr-en"}, "'fr-en' translates fr to en"),
        ({"reverse": "en-fr", "reverse_weight": -1.0}, "reverse_weight"),
        ({"reverse": "en-fr", "content_reward": -0.1}, "content_reward"),
        ({"languages": ["en", "fr"], "content_reward": 0.1}, "for texts in 'fr'"),
    ],
)
def test_a_way_back_that_is_none_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, InputError)) as refused:
        module.reverse_of(TranslationFormat.of({"languages": ["fr", "en"], **changes}))
    assert said in str(refused.value)
