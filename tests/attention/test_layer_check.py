"""A layer of one's own: right ones pass, and each usual mistake is named."""

from __future__ import annotations

import functools
import math
from typing import Any

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


def norm(x, gain, bias, *, ddof: int = 0, epsilon: float = 1e-5, axis: int = -1):
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt(x.var(axis, keepdims=True, ddof=ddof) + epsilon) * gain + bias


def pre_norm(x, norm_1, attention, norm_2, feed_forward):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def loss(logits, tokens):
    return functional.cross_entropy(logits[:-1], tokens[1:])


def added_mask(q, k, v, *, number: float = -1e9):
    """Causal attention with a number added to what is forbidden."""
    scores = q @ k.T / math.sqrt(q.shape[-1]) + np.where(lower(len(q)), 0.0, number)
    return attend(scores * 1.0, np.eye(len(q)), v, scale=False)


def filled(q, k, v):
    """Causal attention of a batch, in torch."""
    batch, time, width = q.shape
    assert batch == len(v)
    scores = torch.bmm(q, k.transpose(1, 2)) / width**0.5
    future = torch.ones(time, time).triu(1).bool()
    return torch.bmm(torch.softmax(scores.masked_fill(future, float("-inf")), 2), v)


def batch_of_heads(q, k, v):
    batch, heads, time, width = q.shape
    scores = q @ k.transpose(-2, -1) / width**0.5
    scores = scores.view(batch * heads, time, time) + torch.full((time, time), -1e4).triu(1)
    return torch.softmax(scores, -1).view(batch, heads, time, time) @ v


def batched_heads(x, w_q, w_k, w_v, w_o, heads):
    batch, time, width = x.shape
    q, k, v = (
        (x @ w).reshape(batch, time, heads, width // heads).transpose(0, 2, 1, 3)
        for w in (w_q, w_k, w_v)
    )
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
    scores[..., ~lower(time)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    read = weights / weights.sum(-1, keepdims=True) @ v
    return read.transpose(0, 2, 1, 3).reshape(batch, time, width) @ w_o


def by_loops(q, k, v):
    """Causal attention, one query at a time, with nothing masked at all."""
    rows = []
    for t in range(len(q)):
        scores = [float(q[t] @ k[s]) / math.sqrt(len(q[t])) for s in range(t + 1)]
        powers = [math.exp(score - max(scores)) for score in scores]
        rows.append(sum(p / sum(powers) * v[s] for s, p in enumerate(powers)))
    return np.array(rows)


class Block(torch.nn.Module):
    """A block as torch has it: float32, a batch first, one width only."""

    def __init__(self, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        batch, time, _ = x.shape
        assert batch
        h = self.norm(x)
        future = torch.ones(time, time).triu(1).bool()
        return x + self.dropout(self.attention(h, h, h, attn_mask=future, need_weights=False)[0])


RIGHT = [
    ("softmax", lambda x: torch.softmax(x, -1)),
    ("softmax", lambda x: torch.softmax(x.float(), -1)),
    ("softmax", lambda x: np.exp(x - np.logaddexp.reduce(x, -1, keepdims=True))),
    ("softmax", lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum() if x.ndim == 1
     else np.array([np.exp(row - max(row)) / np.exp(row - max(row)).sum() for row in x])),
    ("mask", lower),
    ("mask", lambda n: np.where(lower(n), 0.0, -np.inf)),
    ("mask", lambda n: np.where(lower(n), 0.0, -1e9)),
    ("mask", lambda n: torch.full((n, n), -1e4).triu(1)),
    ("mask", lambda n: torch.ones(1, 1, n, n, dtype=torch.bool).tril()),
    ("positions", table),
    ("positions", lambda n, d: torch.tensor(table(n, d)).float()[None]),
    ("layer_norm", norm),
    ("layer_norm", lambda x, g, b: norm(x, g, b, epsilon=1e-3)),
    ("layer_norm", lambda x, g, b: functional.layer_norm(x, x.shape[-1:], g, b)),
    ("attention", lambda q, k, v: functional.scaled_dot_product_attention(q, k, v)),
    ("attention", lambda q, k, v: (attend(q, k, v), None)),
    ("attention", lambda q, k, v: attend(q / q.shape[-1] ** 0.25, k / q.shape[-1] ** 0.25, v,
                                         scale=False)),
    ("causal_attention", lambda q, k, v: attend(q, k, v, mask=lower(len(q)))),
    ("causal_attention", added_mask),
    ("causal_attention", lambda q, k, v: added_mask(q, k, v, number=-1e4)),
    ("causal_attention", filled),
    ("causal_attention", batch_of_heads),
    ("causal_attention", by_loops),
    ("causal_attention", lambda q, k, v: functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), is_causal=True)),
    ("multi_head", heads_of),
    ("multi_head", batched_heads),
    ("decoder_block", pre_norm),
    ("next_token_loss", loss),
    ("next_token_loss", lambda x, t: functional.cross_entropy(
        x[:, :-1].reshape(-1, x.shape[-1]), t[:, 1:].reshape(-1))),
    ("block", lambda x: attend(x, x, x, mask=lower(len(x))) + x),
    ("block", lambda x: x),
]  # fmt: skip


def test_every_kind_is_tried() -> None:
    assert {kind for kind, _ in RIGHT} == {kind for kind, _, _ in WRONG} == set(KINDS)


@pytest.mark.parametrize(("kind", "function"), RIGHT)
def test_what_is_right_passes_in_every_style(kind, function) -> None:
    record = check_layer(function, kind)
    assert record.right, [one for one in record.properties if not one.holds]
    assert record.diagnosis == ""


def test_a_block_of_torch_passes_at_its_own_width() -> None:
    assert check_layer(Block(16), "block", width=16).right
    mixing = lambda x: x + x.mean(0, keepdims=True) * (x.ndim == 3 or 1 / 0)  # noqa: E731
    assert "texts of a batch are mixed" in check_layer(mixing, "block").diagnosis
    assert "dropout" in check_layer(Block(16, dropout=0.5), "block", width=16).diagnosis
    with pytest.raises(InputError, match="width=…"):
        check_layer(Block(16), "block")


def test_a_scale_that_an_assignment_defines_is_the_right_one() -> None:
    plain = functools.partial(attend, scale=False)
    assert check_layer(plain, "attention", scale=1.0).right
    usual = check_layer(attend, "attention", scale=1.0)
    assert "scale=1 was asked for" in usual.diagnosis
    assert "scale=1)" in check_layer(plain, "attention").diagnosis


def renormed(q, k, v):
    """Right on paper: the mask comes after the softmax, and the rest is divided by its sum."""
    weights = attend(q, k, np.eye(len(q))) * lower(len(q))
    return weights / weights.sum(-1, keepdims=True) @ v


WRONG = [
    ("softmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), "exp overflows"),
    ("softmax", lambda x: torch.softmax(x, 0), "over the rows"),
    ("mask", lambda n: lower(n).T, "turned round"),
    ("mask", lambda n: np.tril(lower(n), -1), "from itself"),
    ("mask", lambda n: lower(n).astype(float), "two ways"),
    ("mask", lambda n: np.where(lower(n), 0.0, -10.0), "not −∞"),
    ("mask", lambda n: np.tril(lower(n), 0) & ~np.tril(lower(n), -3), "not attend to key 0"),
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
    ("softmax", lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(-1, keepdims=True),
     "largest of all"),
    ("softmax", lambda x: functional.softmax(x.clamp(-50, 50), -1), "cut off"),
    ("softmax", lambda x: 2**x / (2**x).sum(-1, keepdims=True), "to the power of x"),
    ("attention", lambda q, k, v: attend(q, k, v, scale=False) / q.shape[-1] ** 0.5,
     "after the softmax"),
    ("attention", lambda q, k, v: functional.dropout(
        functional.scaled_dot_product_attention(q, k, v), 0.2), "dropout"),
    ("causal_attention", lambda q, k, v: attend(q, k, v, mask=np.tril(lower(len(q)), -1)),
     "from itself"),
    ("causal_attention", lambda q, k, v: attend(q, k, v, mask=~lower(len(q))), "inverted"),
    ("causal_attention", lambda q, k, v: torch.softmax(
        (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.ones(len(q), len(q)).tril() == 1, -1e9),
        -1) @ v, "inverted"),
    ("causal_attention",
     lambda q, k, v: attend(q, k, v, mask=np.tril(np.ones((len(q), len(q)), bool), 1)),
     "the next token"),
    ("causal_attention",
     lambda q, k, v: attend(q, k, v, mask=lower(len(q)) & ~np.tril(lower(len(q)), -3)),
     "query 3 does not see key 0"),
    ("causal_attention", lambda q, k, v: added_mask(q, k, v, number=1.0), "future is seen"),
    ("causal_attention", lambda q, k, v: added_mask(q, k, v, number=-100.0), "in place of −∞"),
    ("causal_attention", lambda q, k, v: added_mask(q, k, v, number=1e-9), "no causal mask"),
    ("causal_attention", lambda q, k, v: attend(q, k, v, scale=False, mask=lower(len(q)).T),
     "two mistakes"),
    ("causal_attention", renormed, "divided by its sum"),
    ("causal_attention",
     lambda q, k, v: attend(q, k, v, mask=np.tril(np.ones((7, 7), bool))), "some sizes only"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, b, c, d, h) + x, "block around it"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, a, c, d, h), "projected by w_q"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(x, a, b, c.T, d.T, h), "two mistakes"),
    ("multi_head", lambda x, a, b, c, d, h: heads_of(
        x.detach(), a, b, c, d, h), "no gradient"),
    ("positions", lambda n, d: table(n, 2 * d)[:, :d], "2i/d"),
    ("layer_norm", lambda x, g, b: norm(x, g, b, ddof=1), "d − 1"),
    ("layer_norm", lambda x, g, b: norm(x, g, b, axis=0), "over the tokens"),
    ("layer_norm", lambda x, g, b: norm(x, g, b, epsilon=0.0), "add a small ε"),
    ("layer_norm", lambda x, g, b: norm(x, g, 0 * b), "bias is missing"),
    ("decoder_block", lambda x, n, a, m, f: x + f(m(a(n(x)))), "two mistakes"),
    ("decoder_block", lambda x, n, a, m, f: pre_norm(a(n(x)), n, lambda y: 0 * y, m, f),
     "first residual is lost"),
    ("decoder_block", lambda x, n, a, m, f: f(m(x + a(n(x)))), "second residual is lost"),
    ("decoder_block", lambda x, n, a, m, f: m(n(x + a(x)) + f(n(x + a(x)))), "post-norm"),
    ("decoder_block", lambda x, n, a, m, f: pre_norm(x, n, a, n, f), "norm_1 is used in both"),
    ("decoder_block", lambda x, n, a, m, f: x + a(n(x)) + f(m(x)), "parallel"),
    ("next_token_loss", functional.cross_entropy, "not shifted"),
    ("next_token_loss", lambda x, t: functional.cross_entropy(x[1:], t[:-1]), "the wrong way"),
    ("next_token_loss", lambda x, t: -torch.log(
        torch.exp(x[:-1]) / torch.exp(x[:-1]).sum(-1, keepdim=True)
     )[torch.arange(len(t) - 1), t[1:]].mean(), "exp overflows"),
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


def test_a_layer_that_leaves_torch_for_numpy_has_no_gradient_and_ends_in_no_error() -> None:
    calls: list[int] = []

    def unsteady(q: Any, k: Any, v: Any) -> Any:
        calls.append(1)  # as one with dropout: NumPy's answer is not the same twice
        scores = np.einsum("id,jd->ij", q, k) / np.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ np.asarray(v) + 1e-3 * (len(calls) > 1)

    assert check_layer(unsteady, "attention").diagnosis
