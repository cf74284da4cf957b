"""Verdicts about a model agree with trying every text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from enumerated import every_text, traced
from torch.nn import functional

from heedful.claims.checker import Checker
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import load_sheet
from heedful.claims.sheet.claim import Claim, read_claim, read_texts, split_texts
from heedful.claims.verdict import Verdict
from heedful.errors import HeedfulError, InputError
from heedful.model import Decoder, DecoderConfig, ablate, write_folder
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model_claims.statements import (
    Meaning,
    TextEvaluator,
    TextValues,
    instances,
    open_model,
)
from heedful.positions.encodings import Rotary
from heedful.tokenization import characters
from heedful.workers import TaskLimits

LETTERS = "abcde"
LENGTH = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of five letters and two layers, as a folder."""
    config = DecoderConfig(
        vocabulary=5,
        context=12,
        width=12,
        layers=2,
        attention=Attention(heads=2, kv_heads=1, head_width=6),
        feed_forward=FeedForward(activation="swiglu", width=10),
        norm=Norm(kind="rms"),
        positions=Rotary(layout="half"),
        initial_std=0.4,
    )
    path = tmp_path_factory.mktemp("models") / "letters"
    write_folder(Decoder(config, seed=5), path, tokenizer=characters(LETTERS))
    (path.parent / "corpus.txt").write_text("\n\n".join(["abcde", "edcba", "aabbc", "dab"] * 6))
    return str(path)


def judged(folder: str, expect: str, **fields: Any) -> Verdict:
    corpus = str(Path(folder).parent / "corpus.txt")
    return judge_claim(
        Claim(id="x", expect=(expect,), model=folder, corpus=corpus, **fields), seconds=20
    )


def every_weight(folder: str) -> tuple[torch.Tensor, Any]:
    decoder = open_model(folder).decoder
    rows = every_text(5, LENGTH)
    return rows, traced(decoder, rows)


def extreme(folder: str, layer: int, head: int, back: int) -> tuple[float, float]:
    _, trace = every_weight(folder)
    weights = trace.layers[layer - 1].weights[:, head - 1]
    seen = torch.cat([weights[:, t, t - back] for t in range(back, LENGTH)])
    return float(seen.min()), float(seen.max())


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("head", [1, 2])
@pytest.mark.parametrize("back", [1, 2])
def test_bounds_of_weights_are_never_judged_wrongly(
    folder: str, layer: int, head: int, back: int
) -> None:
    least, greatest = extreme(folder, layer, head, back)
    texts = f"every text up to {LENGTH} tokens"
    weight = f"alpha({layer}, {head})[t, t-{back}]"
    for factor, true in [(0.999, True), (1.001, False), (0.3, True), (2.0, False)]:
        verdict = judged(folder, f"{weight} >= {least * factor:.12f}", texts=texts)
        assert verdict.verdict != ("refuted" if true else "proved")
        if layer == 1:
            assert verdict.verdict == ("proved" if true else "refuted")
    above = judged(folder, f"{weight} <= {greatest * 1.0005:.12f}", texts=texts)
    assert above.verdict != "refuted"
    below = judged(folder, f"{weight} <= {greatest * 0.98:.12f}", texts=texts)
    assert below.verdict == "refuted"
    assert_breaks(folder, below)


def assert_breaks(folder: str, verdict: Verdict) -> None:
    """The counterexample is a text of allowed length whose number is the one shown."""
    case = verdict.counterexample
    assert case is not None
    assert len(case.symbols["tokens"]) <= LENGTH
    assert case.gap > 0
    assert case.symbols["produced"] is True
    assert open_model(folder).encode(case.symbols["text"]) == case.symbols["tokens"]


STATEMENTS = [
    "alpha(1, 1)[t, t-1] >= alpha(1, 2)[t, t-1]",
    "alpha(1, 1)[t, t-1] + alpha(1, 1)[t, t] >= 0.05 for all t >= 3",
    "sum(alpha(2, 1)[t, s], s) = 1",
    "alpha(2, 2)[t, t] <= 0.9999 for all t >= 2",
    "alpha(1, 1)[t, t-1] >= 0.9 implies alpha(2, 1)[t, t] >= 0.0001",
    "not (alpha(1, 2)[3, 1] >= 0.9)",
    "logit(2)[t] <= 6",
    "logit(2)[t] - logit(0)[t] >= -0.1",
    "prob(3)[n] <= 0.999",
    "loss >= 0",
    "residual_norm(1)[t] <= 60",
    "key_norm(1, 2)[t] >= 0.5",
    "alpha(1, 1)[n, 1] <= 0.99 for all n >= 2",
    "2 alpha(1, 1)[t, 1] - 3 alpha(1, 1)[t, t] / 2 <= 1.2 for all t != 1",
    "max(alpha(1, 1)[t, s], s) >= 0.3",
    "min(alpha(1, 1)[n, s], s) >= 0.0001",
    "max(alpha(1, h)[t, t-1], h) >= 0.0001",
    "sum(s alpha(1, 1)[t, s], s) >= 1.01 for all t >= 2",
    "sum(alpha(1, 1)[t, 1], t) <= 2",
    "prod(alpha(1, 1)[t, s], s < t) <= 0.9 for all t >= 2",
]
KNOWN = {
    "sum(alpha(1, 1)[t, s], s) = 1": "proved",
    "sum(alpha(2, 2)[t, s], s) = 1": "proved",
    "sum(alpha(1, 1)[t, s], s) = 0.99": "refuted",
    "alpha(1, 1)[t, t] < 1": "refuted",
    "alpha(1, 1)[t, t] < 1 for all t >= 2": "proved",
    "alpha(1, 1)[t, s] > 0": "refuted",
    "alpha(1, 1)[t, t+1] = 0": "proved",
    "n <= 3": "refuted",
    "n <= 4": "proved",
    "max(alpha(1, h)[t, t-1], h) > 0": "supported",
}
"""Statements whose truth needs no computation."""


@pytest.mark.parametrize("statement", KNOWN)
def test_what_is_known_without_a_model_is_judged_so(folder: str, statement: str) -> None:
    verdict = judged(folder, statement, texts=f"every text up to {LENGTH} tokens")
    assert verdict.verdict == KNOWN[statement]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_is_judged_against_the_texts(folder: str, statement: str) -> None:
    """What is proved holds in every text; what is refuted fails in the one shown."""
    verdict = judged(folder, statement, texts=f"every text up to {LENGTH} tokens")
    if verdict.verdict == "refuted":
        assert_breaks(folder, verdict)
        return
    claim = read_claim(Claim(id="x", expect=(statement,), model=folder))
    tree: Any = claim.expect[0]
    meaning = Meaning(open_model(folder).decoder)
    for length in range(1, LENGTH + 1):
        rows = every_text(5, length)
        values = TextValues(traced(open_model(folder).decoder, rows), rows)
        for one in instances(tree.tree, meaning, length):
            least = float(TextEvaluator(meaning, values).margin(one).min())
            assert verdict.verdict != "proved" or least >= -1e-9


def test_nearly_equal_means_within_the_tolerance_of_the_claim(folder: str) -> None:
    """The same number counts in a proof, in a search, in one text and on a corpus."""
    for texts in ["every text up to 3 tokens", 'the text "abc"', "the corpus, with 95 %"]:
        wide = judged(folder, "alpha(2, 1)[t, t] ≈ 0.5", texts=texts, tolerance=0.6)
        assert wide.verdict != "refuted", texts
        narrow = judged(folder, "alpha(2, 1)[t, t] ≈ 0.5", texts=texts, tolerance=0.001)
        assert narrow.verdict == "refuted", texts


def test_the_number_asked_for_is_the_extreme(folder: str) -> None:
    least, greatest = extreme(folder, 1, 1, 1)
    texts = f"every text up to {LENGTH} tokens"
    for asks, statement, expected in [
        ("greatest x", "alpha(1, 1)[t, t-1] >= x", least),
        ("least x", "alpha(1, 1)[t, t-1] <= x", greatest),
    ]:
        answer = judged(folder, statement, texts=texts, find=asks).answer
        assert answer is not None
        assert answer.certified
        assert answer.low == pytest.approx(expected, rel=1e-9)
        assert answer.high == pytest.approx(expected, rel=1e-9)
    deep = judged(folder, "alpha(2, 1)[t, t-1] >= x", texts=texts, find="greatest x").answer
    assert deep is not None
    assert deep.low is not None
    assert deep.low <= extreme(folder, 2, 1, 1)[0]
    assert deep.high == pytest.approx(extreme(folder, 2, 1, 1)[0], rel=1e-9), "all texts were tried"


def test_one_text_is_enclosed_through_all_layers(folder: str) -> None:
    decoder = open_model(folder).decoder
    row = torch.tensor([open_model(folder).encode("abcd")])
    trace = traced(decoder, row)
    weight, logit = float(trace.layers[1].weights[0, 0, 3, 1]), float(trace.logits[0, 3, 2])
    loss = float(torch.nn.functional.cross_entropy(trace.logits[0, :-1], row[0, 1:]))
    for letter, number in [
        ("alpha(2, 1)[4, 2]", weight),
        ("logit(c)[4]", logit),
        ("loss", loss),
    ]:
        fields: dict[str, Any] = {"where": {"c": 'token "c"'}}
        for sign, shift, word in [(">=", -1e-6, "proved"), (">=", 1e-6, "refuted")]:
            statement = f'{letter} {sign} {number + shift:.9f} for the text "abcd"'
            assert judged(folder, statement, **fields).verdict == word, statement


def test_a_corpus_gives_means_shares_and_quantiles_over_texts(folder: str) -> None:
    words = {
        "E(alpha(1, 1)[t, t-1]) >= 0 on the corpus, with 95 %": "supported",
        "E(alpha(1, 1)[t, t-1]) >= 0.999 on the corpus, with 95 %": "refuted",
        "P(alpha(1, 1)[t, t] >= 0) >= 0.8 on the corpus": "supported",
        "P(alpha(1, 1)[t, t] >= 0) >= 0.999 on the corpus": "undecided",
        "quantile(loss, 0.5) <= 100 on the corpus": "supported",
        "quantile(loss, 0.5) <= 0.01 on the corpus": "refuted",
        "E(alpha(1, h)[t, 1]) <= 1 for all h on the corpus": "supported",
        "E(alpha(1, 1)[t, 1]) - E(alpha(1, 1)[t, 1]) >= -0.001 on the corpus": "supported",
        "alpha(1, 1)[t, t] <= 0.5 on the corpus": "refuted",
        "alpha(2, 2)[t, t] <= 1 on the corpus": "supported",
    }
    for statement, word in words.items():
        assert judged(folder, statement).verdict == word, statement


def test_several_heads_share_the_probability_of_an_error(folder: str) -> None:
    one = judged(folder, "E(alpha(1, 1)[t, 1]) <= 1 on the corpus").evidence
    both = judged(folder, "E(alpha(1, h)[t, 1]) <= 1 for all h on the corpus").evidence
    assert "for 2 statements together" in both.statement
    if both.numbers["mean"] == one.numbers["mean"]:
        assert both.numbers["high"] > one.numbers["high"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": ("alpha(1, 1)[t, t-1] >= 0",)}, "does not say which texts"),
        ({"expect": ("alpha(3, 1)[t, t] >= 0 for every text up to 3",)}, "no layer 3"),
        ({"expect": ("alpha(1, 9)[t, t] >= 0 for every text up to 3",)}, "no head 9"),
        ({"expect": ("beta >= 0 for every text up to 3",)}, "beta is not known here"),
        ({"expect": ("alpha(1, 1)[t] >= 0 for every text up to 3",)}, "has 1 places"),
        ({"expect": ("loss >= 0 for every text up to 99",)}, "the context of this model"),
        ({"expect": ("loss >= 0 for every text up to many",)}, "names no texts"),
        ({"expect": ("loss >= 0 for every text up to 3",), "keys": "any"}, "says nothing about"),
        ({"expect": ("E(loss) >= 0 on the corpus",)}, 'corpus = "texts.txt"'),
    ],
)
def test_what_makes_no_sense_is_refused(folder: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judge_claim(Claim(id="x", model=folder, **fields))


def test_a_sheet_about_a_model_is_checked_like_any_other(folder: str) -> None:
    sheet = load_sheet(
        f"""
[defaults]
model = {folder!r}

[[claim]]
id = "proved"
expect = "alpha(1, 1)[t, t] >= 0.000001 for every text up to 3 tokens"

[[claim]]
id = "refuted"
expect = "alpha(1, 1)[t, t] >= 0.99"
texts = "every text up to 3 tokens"

[[claim]]
id = "unreadable"
expect = "alpha(1, 1)[t, t >= 0.99 for every text up to 3 tokens"
"""
    )
    with Checker(workers=1, limits=TaskLimits(seconds=300)) as checker:
        report = checker.check([sheet])
    assert [verdict.verdict for verdict in report.claims] == ["proved", "refuted"]
    assert [problem.line for problem in report.problems] == [16]


def test_the_words_for_texts_are_read() -> None:
    assert read_texts("every text of up to 1,000 tokens").length == 1000
    assert read_texts("the corpus").confidence == 0.95
    assert split_texts('loss <= 2 for the text "for every text up to 3"')[1] is not None
    assert split_texts("alpha_i >= 0 for all i")[1] is None


def test_an_intervention_is_measured_on_the_corpus_and_must_change_something(folder: str) -> None:
    model = open_model(folder)
    rows = [model.encode(text) for text in ("abcde", "edcba", "aabbc", "dab")]
    ablation = ablate("head_outputs", layer=0, head=1)

    def loss(tokens: list[int]) -> float:
        row = torch.tensor([tokens])
        return float(functional.cross_entropy(model.decoder(row)[0, :-1], row[0, 1:]))

    with torch.no_grad():
        plain = [loss(row) for row in rows]
        with model.decoder.intervene(ablation):
            changed = [loss(row) for row in rows]
    rise = sum(changed) / 4 - sum(plain) / 4
    table = {"do": "ablate", "at": "0.1"}
    formula = "E(changed_loss - loss) >= {} on the corpus, with 95 %"
    one = judged(folder, formula.format(rise - 1), intervene=table)
    assert one.verdict == "supported"
    assert one.evidence.numbers["mean"] == pytest.approx(1, abs=1e-6)
    assert judged(folder, formula.format(rise + 1), intervene=table).verdict == "refuted"
    for expect, fields, said in [
        (formula.format(0), {}, "nothing is changed inside the model"),
        (formula.format(0), {"intervene": {**table, "at": "0.7"}}, "head"),
        (formula.format(0), {"intervene": {"do": "cut"}}, "one of ablate"),
        (formula.format(0), {"intervene": {"do": "scale", "at": "0.1", "factor": 1}}, "changed no"),
        ("changed_loss >= 0 for every text up to 3", {"intervene": table}, "measured on a corpus"),
    ]:
        with pytest.raises(HeedfulError, match=said):
            judged(folder, expect, **fields)
