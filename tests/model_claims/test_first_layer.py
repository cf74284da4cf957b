"""The extremes of the first layer are those that trying every text finds."""

from __future__ import annotations

import math
from typing import Any, cast

import mpmath
import pytest
import torch
from enumerated import EXACT, QUESTIONS, BruteForce, every_text, small_model, traced

from heedful.errors import InputError
from heedful.model import Decoder, preset
from heedful.model.config import Attention
from heedful.model_claims import first_layer
from heedful.model_claims.first_layer import (
    NAMED,
    Extreme,
    FirstLayer,
    KeyPlaces,
    extremes,
    least_combination,
)
from heedful.tokenization import characters


@pytest.mark.parametrize("seed", range(7))
def test_every_extreme_and_every_bound_agree_with_all_texts(seed: int) -> None:
    """All schemes, random and trained. `enumerated.py` tries 50 models and five tokens."""
    found = BruteForce(small_model(seed, vocabulary=5, length=4), 4).run()
    assert (found.texts, found.inexact, found.violations) == (5**4, 0, 0)
    assert found.difference <= EXACT


@pytest.mark.parametrize("seed", range(7, 14))
def test_texts_may_have_to_begin_with_a_mark(seed: int) -> None:
    found = BruteForce(small_model(seed, vocabulary=5, length=4), 4, begin=2).run()
    assert (found.texts, found.inexact, found.violations) == (5**3, 0, 0)


def test_texts_may_be_made_of_some_tokens_only() -> None:
    decoder = small_model(3, vocabulary=7, length=4)
    allowed = [1, 4, 5]
    rows = torch.tensor(allowed)[every_text(3, 4)]
    weights = traced(decoder, rows).layers[0].weights[:, 0]
    for found in extremes(FirstLayer(decoder, 0, allowed=allowed), QUESTIONS, [4]):
        places, pick = QUESTIONS[found.places], min if found.kind == "least" else max
        at = [(t, list(chosen)) for t in range(4) if (chosen := places.of(t)) is not None]
        expected = pick(float(pick(weights[:, t, c].sum(-1))) for t, c in at)
        assert found.weight == pytest.approx(expected, abs=1e-9)
        assert set(found.tokens) <= set(allowed)


@pytest.mark.parametrize("seed", [0, 2, 6, 7])
def test_skipping_queries_by_their_bounds_changes_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = small_model(seed, vocabulary=60, length=6)
    whole = extremes(FirstLayer(decoder, 0), QUESTIONS, [3, 6])
    monkeypatch.setattr(first_layer, "BLOCK", 4)
    for slow, fast in zip(whole, extremes(FirstLayer(decoder, 0), QUESTIONS, [3, 6]), strict=True):
        assert fast.log_odds == pytest.approx(slow.log_odds, abs=1e-12)
        low, high = fast.certified
        assert low <= slow.weight <= high
    layer, c = FirstLayer(decoder, 0), [0.3, -1.0, 0.0, 2.0, 0.7]
    slow_one = least_combination(layer, 4, c)
    monkeypatch.setattr(first_layer, "PRUNED_FROM", 8)
    fast_one = least_combination(layer, 4, c)
    assert fast_one.value == pytest.approx(slow_one.value, abs=1e-12)
    assert (fast_one.tokens, fast_one.low <= slow_one.value) == (slow_one.tokens, True)


def test_sharp_weights_keep_their_digits() -> None:
    decoder = small_model(0, vocabulary=5, length=4)
    with torch.no_grad():
        cast(Any, decoder.blocks[0]).attention.qkv.weight.mul_(6)
    least = extremes(FirstLayer(decoder, 0), {"previous": NAMED["previous"]}, [4])[0]
    assert least.weight < 1e-12
    assert math.log(least.weight) == pytest.approx(least.log_odds, rel=1e-9)
    low, high = least.certified
    assert low <= least.weight <= high
    assert high - low <= 1e-9 * least.weight


def test_a_witness_is_text_and_says_whether_the_tokenizer_makes_it() -> None:
    tokenizer = characters("abcde")
    decoder = small_model(0, vocabulary=6, length=4)
    found = extremes(FirstLayer(decoder, 1), NAMED, [4], tokenizer=tokenizer)
    for one in found:
        if 5 in one.tokens:  # an id that the tokenizer does not have
            assert one.produced is False
        else:
            assert one.produced is True
            assert tokenizer.encode(one.text or "") == list(one.tokens)


def test_what_cannot_be_asked_is_refused() -> None:
    decoder = Decoder(preset("tiny", attention=Attention(heads=4)), seed=0)
    with pytest.raises(InputError, match="no head 4"):
        FirstLayer(decoder, 4)
    with pytest.raises(InputError, match="1 to 128 tokens"):
        extremes(FirstLayer(decoder, 0), NAMED, [500])
    with pytest.raises(InputError, match="do not all exist"):
        extremes(FirstLayer(decoder, 0), {"far": KeyPlaces(back=(9,))}, [4])
    with pytest.raises(InputError, match="holds the id 300"):
        FirstLayer(decoder, 0, allowed=[300])


def weight_with_fifty_digits(decoder: Decoder, head: int, found: Extreme, places: KeyPlaces) -> Any:
    """Return the weight of the witness, computed from the stored weights by the formulas."""
    config, block = decoder.config, cast(Any, decoder.blocks[0])
    scheme: Any = config.positions
    table: Any = decoder.positions
    d, heads = config.head_width, config.attention.heads

    def numbers(x: torch.Tensor) -> list[mpmath.mpf]:
        return [mpmath.mpf(float(entry)) for entry in x.detach()]

    def normed(x: list[mpmath.mpf], norm: Any, kind: str) -> list[mpmath.mpf]:
        mean = sum(x) / len(x) if kind == "layer" else 0
        scale = mpmath.sqrt(sum((e - mean) ** 2 for e in x) / len(x) + mpmath.mpf(norm.eps))
        bias = getattr(norm, "bias", None)
        shift = numbers(bias) if bias is not None else [mpmath.mpf(0)] * len(x)
        gains = numbers(norm.weight)
        return [(e - mean) / scale * g + b for e, g, b in zip(x, gains, shift, strict=True)]

    def vector(t: int, number: int, norm: Any) -> list[mpmath.mpf]:
        x = [
            e * mpmath.mpf(config.embedding_scale)
            for e in numbers(decoder.embedding.weight[found.tokens[t]])
        ]
        if scheme.kind == "learned":
            x = [e + p for e, p in zip(x, numbers(table.weight[t]), strict=True)]
        if scheme.kind == "sinusoidal":
            for i in range(0, config.width, 2):
                angle = t / mpmath.mpf(10000) ** (mpmath.mpf(i) / config.width)
                x[i], x[i + 1] = x[i] + mpmath.sin(angle), x[i + 1] + mpmath.cos(angle)
        if config.norm.placement == "pre":
            x = normed(x, block.attention_norm, config.norm.kind)
        result = []
        for row in range(number * d, (number + 1) * d):
            weight = numbers(block.attention.qkv.weight[row])
            entry = sum(w * e for w, e in zip(weight, x, strict=True))
            bias = block.attention.qkv.bias
            result.append(entry if bias is None else entry + numbers(bias)[row])
        result = result if norm is None else normed(result, norm, "rms")
        if scheme.kind == "rotary" and scheme.layout == "interleaved":
            for i in range(0, d, 2):
                angle = t / mpmath.mpf(scheme.base) ** (mpmath.mpf(i) / d)
                turned = mpmath.mpc(result[i], result[i + 1]) * mpmath.expj(angle)
                result[i], result[i + 1] = turned.real, turned.imag
        return result

    last, group = found.query, heads + head * config.kv_heads // heads
    query = vector(last, head, block.attention.query_norm)
    masses = []
    for p in range(last + 1):
        key = vector(p, group, block.attention.key_norm)
        score = sum(a * b for a, b in zip(query, key, strict=True)) / mpmath.sqrt(d)
        if scheme.kind == "alibi":
            assert heads & (heads - 1) == 0, "the paper's plain slopes"
            score -= mpmath.mpf(2) ** (mpmath.mpf(-8 * (head + 1)) / heads) * (last - p)
        masses.append(mpmath.exp(score))
    return sum(masses[p] for p in places.of(last) or ()) / sum(masses)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5, 8])
def test_certified_intervals_hold_the_number_of_fifty_digits(seed: int) -> None:
    decoder = small_model(seed, vocabulary=9, length=5)
    for head in range(0, decoder.config.attention.heads, 2):
        for found in extremes(FirstLayer(decoder, head), NAMED, [5]):
            with mpmath.workdps(50):
                exact = weight_with_fifty_digits(decoder, head, found, NAMED[found.places])
                low, high = found.certified
                assert low <= exact <= high
                assert high - low <= 1e-11 * found.weight + 1e-15
