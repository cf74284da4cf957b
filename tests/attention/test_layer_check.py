"""A layer of one's own: right ones pass, and each usual mistake is named."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from heedful.attention import check_layer
from heedful.attention.layer_check import KINDS
from heedful.errors import InputError


def attend(q, k, v, *, mask=None, scale: bool = True, safe: bool = True):
    """Attention in NumPy, with switches for mistakes."""
    scores = q @ k.T / (math.sqrt(q.shape[-1]) if scale else 1.0)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - (scores.max(-1, keepdims=True) if safe else 0.0))
    return weights / weights.sum(-1, keepdims=True) @ v


def lower(n: int):
    return np.tril(np.ones((n, n), dtype=bool))


def heads_of(x, w_q, w_k, w_v, w_o, heads, *, mixed: bool = False):
    """Multi-head attention in torch."""
    time, width = x.shape

    def split(y):
        if mixed:
            return y.reshape(heads, time, width // heads)
        return y.view(time, heads, width // heads).transpose(0, 1)

    q, k, v = (split(x @ w) for w in (w_q, w_k, w_v))
    read = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return (read.reshape(time, width) if mixed else read.transpose(0, 1).reshape(time, width)) @ w_o


def table(length: int, width: int, *, swapped: bool = False, first: int = 0):
    places = np.arange(first, length + first)[:, None]
    angles = places / 10_000 ** (np.arange(0, width, 2) / width)
    parts = (np.cos(angles), np.sin(angles)) if swapped else (np.sin(angles), np.cos(angles))
    return np.stack(parts, axis=-1).reshape(length, width)


RIGHT = {
    "softmax": lambda x: torch.softmax(x, -1),
    "mask": lower,
    "positions": table,
    "attention": lambda q, k, v: functional.scaled_dot_product_attention(q, k, v),
    "causal_attention": lambda q, k, v: attend(q, k, v, mask=lower(len(q))),
    "multi_head": heads_of,
    "block": lambda x: attend(x, x, x, mask=lower(len(x))) + x,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_passes(kind) -> None:
    record = check_layer(RIGHT[kind], kind)
    assert record.right, [one for one in record.properties if not one.holds]
    assert record.diagnosis == ""


WRONG = [
    ("softmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), "exp overflows"),
    ("softmax", lambda x: torch.softmax(x, 0), "over the rows"),
    ("mask", lambda n: lower(n).T, "turned round"),
    ("mask", lambda n: np.tril(lower(n), -1), "from itself"),
    ("mask", lambda n: lower(n).astype(float), "0 and 1"),
    ("mask", lambda n: np.where(lower(n), 0.0, -1e9), "not −∞"),
    ("mask", lambda n: ~lower(n), "forbidden"),
    ("positions", lambda n, d: table(n, d, swapped=True), "swapped"),
    ("positions", lambda n, d: table(n, d, first=1), "counted from 1"),
    ("attention", lambda q, k, v: attend(q, k, v, scale=False), "not divided by √d"),
    ("attention",
     lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, 0) @ v, "over the queries"),
    ("attention", lambda q, k, v: attend(q, k, v, mask=lower(len(q))), "should see everything"),
    ("causal_attention", lambda q, k, v: attend(q, k, v), "no causal mask"),
    ("causal_attention", lambda q, k, v: attend(q, k, v, mask=lower(len(q)).T), "turned round"),
    ("causal_attention",
     lambda q, k, v: attend(q, k, v, mask=lower(len(q)), safe=False), "exp overflows"),
    ("causal_attention",
     lambda q, k, v: functional.scaled_dot_product_attention(q, k.detach(), v, is_causal=True),
     "no gradient"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a.T, b, c, d, h), "query projection"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, b, c, d.T, h), "output projection"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a.T, b.T, c.T, d.T, h), "every projection"),
    ("multi_head", lambda *parts: heads_of(*parts, mixed=True), "without moving the axis"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, b, c, d, 1), "one head"),
    ("block", lambda x: x + x.mean(0), "future is seen"),
    ("block", lambda x: functional.dropout(x), "dropout"),
    ("block", lambda x: x[:, :3], "keeps the shape"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "function", "words"), WRONG)
def test_a_usual_mistake_is_named(kind, function, words: str) -> None:
    record = check_layer(function, kind)
    assert not record.right
    assert words in record.diagnosis


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("attention", lambda q, k, v: attend(q / 2, k, v, scale=False)),  # √4 as a number
        ("positions", lambda n, d: table(n, 8)[:, :d] if d <= 8 else table(n, d) * 0),
        ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, b, c, d, 2 if h != 5 else 5)),
    ],
)
def test_a_size_written_down_as_a_number_is_found(kind, function) -> None:
    record = check_layer(function, kind)
    assert not record.right
    assert "some sizes only" in record.diagnosis


def test_a_difference_that_nothing_explains_is_said_to_be_one() -> None:
    record = check_layer(lambda q, k, v: attend(q, k, v) + 0.1, "attention")
    assert "none of the usual mistakes" in record.diagnosis


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (lambda x: x, None, "one of softmax"),
        (lambda q: q, "attention", "attention\\(q, k, v\\)"),
        (lambda x: "text", "softmax", "an array"),
        (lambda x: 1 / 0, "softmax", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_tried_says_why(function, kind, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_layer(function, kind)
