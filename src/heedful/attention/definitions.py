"""The pieces of a decoder as they are defined, each with the mistakes that are usually made.

A definition takes the inputs of a piece and the names of mistakes, and gives what a function with
these mistakes would give; without mistakes, what is right. `attention/layer_check.py` compares
functions of others with them. Everything is plain NumPy, written to be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Shaped

Scale = float | Literal["sqrt_d"]
"""What scores are multiplied by; "sqrt_d": 1/√d."""
Numbers = Shaped[np.ndarray, "..."]
Part = Callable[..., Any]
Wrong = frozenset[str]
"""Names of mistakes that are made on purpose; empty: none."""


def softmax(scores: Numbers, axis: int = -1) -> Numbers:
    """Return the softmax, with the largest score subtracted first."""
    shifted = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=axis, keepdims=True))


SOFTMAX_MISTAKES = {
    "wrong axis": "it runs over the rows, not along them",
    "whole": "it runs over all numbers together, not along each row",
    "plain": "it is not divided by the sum of its row",
    "shares": "there is no exponential",
    "base 2": "it is 2 to the power of x, not e",
}
UNSAFE = {
    "nothing subtracted": "exp overflows: subtract the largest score of each row before it",
    "largest of all": "the largest of all scores is subtracted, not the largest of each row: a row "
    "of small scores becomes 0/0",
    "largest of a column": "the largest score of each column is subtracted, not that of each row: "
    "exp still overflows",
    "mask at the end": "the mask comes after the softmax, and the rest is divided by its sum: "
    "where all allowed weights round to 0, that is 0/0; mask the scores instead",
}
"""Right on paper, and wrong for large scores."""


def _unsafe_softmax(scores: Numbers, wrong: Wrong) -> Numbers:
    """Return a softmax that is right on paper and fails for large scores."""
    if "largest of all" in wrong:
        scores = scores - scores.max()
    elif "largest of a column" in wrong:
        scores = scores - scores.max(axis=0, keepdims=True)
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def rows_softmax(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return the softmax of each row."""
    (x,) = inputs
    if wrong & set(UNSAFE):
        return _unsafe_softmax(x, wrong)
    if "base 2" in wrong:
        x = x * math.log(2)
    if "whole" in wrong:
        return softmax(x.reshape(-1)).reshape(x.shape)
    if "plain" in wrong:
        return np.asarray(np.exp(x))
    if "shares" in wrong:
        return np.asarray(x / x.sum(-1, keepdims=True))
    return softmax(x, axis=0 if "wrong axis" in wrong else -1)


SCORE_MISTAKES = {
    "unscaled": "the scores are not divided by √d (where that is meant, check with scale=1)",
    "scaled by d": "the scores are divided by d, not by √d",
    "scaled twice": "the scores are divided by √d twice",
    "scaled up": "the scores are multiplied by √d, not divided by it",
    "scaled after": "the division by √d comes after the softmax: weights no longer sum to 1",
    "transposed": "the scores are transposed: keys ask queries",
    "wrong axis": "the softmax runs over the queries; weights must sum to 1 over the keys",
    "no softmax": "there is no softmax: the scores themselves are the weights",
    "keys as values": "the keys are averaged, not the values",
}
MASK_MISTAKES = {
    "unmasked": "there is no causal mask: queries see what comes after them",
    "mask turned round": "the mask is turned round: queries see what comes after them, "
    "not what came before",
    "mask inverted": "the mask is inverted: what should be seen is hidden, and queries see only "
    "what comes after them",
    "without itself": "the mask hides each token from itself; t attends to s ≤ t",
    "one ahead": "the mask is one place too wide: each query sees the next token",
    "masked by zero": "forbidden scores become 0, not −∞: exp(0) = 1 is a weight",
    "mask added": "the mask of ones and zeros is added to the scores: that forbids nothing",
    "masked after softmax": "the mask comes after the softmax: the weights no longer sum to 1",
}
NOT_CAUSAL = {"masked": "it is causal, and this attention should see everything"}
HIDING = ("mask inverted", "without itself")
"""Mistakes after which a row may have nothing to see; what it then becomes depends on how scores
are forbidden: by −∞, by a large number in their place, or by one that is added."""
EMPTY_ROWS = ("by −∞", "in place", "added")
ALTERNATIVES = (
    frozenset(MASK_MISTAKES),
    frozenset({"scaled", *(name for name in SCORE_MISTAKES if "scaled" in name)}),
    frozenset(EMPTY_ROWS),
)
"""Mistakes of which one can be made at a time."""


def _scores(q: Numbers, k: Numbers, wrong: Wrong, scale: Scale) -> Numbers:
    width = q.shape[-1]
    factor = 1 / math.sqrt(width) if scale == "sqrt_d" else float(scale)
    if "unscaled" in wrong or "scaled after" in wrong:
        factor = 1.0
    elif "scaled by d" in wrong:
        factor = 1 / width
    elif "scaled twice" in wrong:
        factor /= math.sqrt(width)
    elif "scaled up" in wrong:
        factor = math.sqrt(width)
    elif "scaled" in wrong:
        factor = 1 / math.sqrt(width)
    scores = q @ k.T * factor
    return np.asarray(scores.T if "transposed" in wrong else scores)


def mask_of(count: int, causal: bool, wrong: Wrong) -> Numbers:
    """Return who may attend to whom, True where it is allowed."""
    everything = np.ones((count, count), dtype=bool)
    if "unmasked" in wrong or not (causal or "masked" in wrong):
        return everything
    mask = np.tril(everything)
    if "mask turned round" in wrong:
        return mask.T
    if "mask inverted" in wrong:
        return ~mask
    if "without itself" in wrong:
        return np.tril(everything, -1)
    return np.tril(everything, 1) if "one ahead" in wrong else mask


def one_head(inputs: tuple[Any, ...], wrong: Wrong, *, causal: bool, scale: Scale) -> Numbers:
    """Return attention of one head, with mistakes."""
    q, k, v = inputs
    scores = _scores(q, k, wrong, scale)
    mask = mask_of(len(q), causal, wrong)
    values = k if "keys as values" in wrong and k.shape == v.shape else v
    if "masked by zero" in wrong:
        weights = softmax(np.where(mask, scores, 0.0))
    elif "mask added" in wrong:
        weights = softmax(scores + mask)
    elif "masked after softmax" in wrong:
        weights = np.where(mask, softmax(scores), 0.0)
    elif "mask at the end" in wrong:
        weights = np.where(mask, softmax(scores), 0.0)
        weights = weights / weights.sum(-1, keepdims=True)
    elif "no softmax" in wrong:
        weights = np.where(mask, scores, 0.0)
    else:
        forbidden = np.where(mask, scores, -np.inf)
        if "in place" in wrong:
            forbidden = np.where(mask, scores, -1e9)
        elif "added" in wrong:
            forbidden = np.where(mask, scores, scores - 1e9)
        unsafe = wrong & set(UNSAFE)
        weights = (
            _unsafe_softmax(forbidden, wrong)
            if unsafe
            else softmax(forbidden, axis=0 if "wrong axis" in wrong else -1)
        )
    if "scaled after" in wrong:
        weights = weights / math.sqrt(q.shape[-1])
    return np.asarray(weights @ values)


HEAD_MISTAKES = {
    "w_q": "the query projection is transposed (x w_qᵀ in the place of x w_q)",
    "w_k": "the key projection is transposed (x w_kᵀ in the place of x w_k)",
    "w_v": "the value projection is transposed (x w_vᵀ in the place of x w_v)",
    "w_o": "the output projection is transposed (c w_oᵀ in the place of c w_o)",
    "every projection": "every projection is transposed (x wᵀ in the place of x w; torch's "
    "linear(x, w) is x wᵀ)",
    "keys by w_q": "the keys are projected by w_q, not by w_k",
    "values by w_k": "the values are projected by w_k, not by w_v",
    "queries and keys exchanged": "w_q makes the keys and w_k the queries",
    "mixed heads": "heads are split without moving the axis: a reshape to (heads, time, …) mixes "
    "tokens; reshape to (time, heads, …) first, then transpose",
    "mixed at the end": "heads are joined without moving the axis back: transpose to "
    "(time, heads, …) before the reshape",
    "interleaved heads": "the features of a head are every second one; they stand side by side",
    "one head": "there is one head over the whole width, not several",
    "full width": "the scores are divided by the square root of the whole width, not of a head's",
    "no output": "the output projection is missing",
    "sum of heads": "the outputs of the heads are averaged, not put side by side",
    "residual": "the input is added to the output: that belongs to the block around it",
}


def _projections(inputs: tuple[Any, ...], wrong: Wrong) -> tuple[Numbers, ...]:
    """Return queries, keys, values and w_o, with mistakes."""
    x, w_q, w_k, w_v, w_o, _ = inputs
    named = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    w_q, w_k, w_v, w_o = (
        w.T if name in wrong or "every projection" in wrong else w for name, w in named.items()
    )
    if "queries and keys exchanged" in wrong:
        w_q, w_k = w_k, w_q
    if "keys by w_q" in wrong:
        w_k = w_q
    if "values by w_k" in wrong:
        w_v = w_k
    return x @ w_q, x @ w_k, x @ w_v, w_o


def _split(y: Numbers, heads: int, wrong: Wrong) -> Numbers:
    """Return the features of each head, (heads, time, width of a head)."""
    count, size = len(y), y.shape[1] // heads
    if "mixed heads" in wrong:
        return y.reshape(heads, count, size)
    if "interleaved heads" in wrong:
        return y.reshape(count, size, heads).transpose(2, 0, 1)
    return y.reshape(count, heads, size).transpose(1, 0, 2)


def several_heads(inputs: tuple[Any, ...], wrong: Wrong, *, scale: Scale) -> Numbers:
    """Return causal attention of several heads side by side, projected."""
    heads = 1 if "one head" in wrong else inputs[-1]
    *projected, w_o = _projections(inputs, wrong)
    count, width = projected[0].shape
    parts = [_split(y, heads, wrong) for y in projected]
    if "full width" in wrong:
        parts[0] = parts[0] / math.sqrt(heads)
    attend = partial(one_head, wrong=wrong - {"residual"}, causal=True, scale=scale)
    read = np.stack([attend(part) for part in zip(*parts, strict=True)])
    if "mixed heads" in wrong or "mixed at the end" in wrong:
        joined = read.reshape(count, width)
    elif "interleaved heads" in wrong:
        joined = read.transpose(1, 2, 0).reshape(count, width)
    elif "sum of heads" in wrong:
        joined = np.tile(read.mean(0), heads)
    else:
        joined = read.transpose(1, 0, 2).reshape(count, width)
    output = joined if "no output" in wrong else np.asarray(joined @ w_o)
    return output + inputs[0] if "residual" in wrong else output


POSITION_MISTAKES = {
    "from one": "positions are counted from 1; the first is 0",
    "exponent": "the exponent is i/d where it should be 2i/d: angles fall half as fast",
    "double exponent": "the exponent is 4i/d where it should be 2i/d: angles fall twice as fast",
    "base": "the base is 1,000, not 10,000",
    "swapped": "sine and cosine are swapped: even dimensions are sines",
    "multiplied": "positions are multiplied by 10,000^(2i/d), not divided by it",
    "shifted cosine": "a cosine has the angle of the next pair; sine and cosine of a pair share it",
    "halves": "sines fill the first half and cosines the second; the paper alternates them "
    "(both are used, but not the same table)",
}


def sinusoidal_table(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return the position table of the first Transformer."""
    length, width = inputs
    places = np.arange(length)[:, None] + (1.0 if "from one" in wrong else 0.0)
    exponent = np.arange(0, width, 2) / width
    if "exponent" in wrong:
        exponent = exponent / 2
    elif "double exponent" in wrong:
        exponent = exponent * 2
    base = 1_000.0 if "base" in wrong else 10_000.0
    powers = base**exponent
    angles = places * powers if "multiplied" in wrong else places / powers
    second_angles = angles
    if "shifted cosine" in wrong:
        second_angles = places / base ** (np.arange(1, width, 2) / width)
    table = np.zeros((length, width))
    first, second = np.sin(angles), np.cos(second_angles)
    if "swapped" in wrong:
        first, second = second, first
    if "halves" in wrong:
        table[:, : width // 2], table[:, width // 2 :] = first, second
    else:
        table[:, 0::2], table[:, 1::2] = first, second
    return table


NORM_MISTAKES = {
    "over time": "the mean is taken over the tokens; each token is normed by itself, over its "
    "features",
    "whole": "mean and variance are taken over all numbers together, not token by token",
    "mean kept": "the mean is not subtracted (that is RMSNorm)",
    "mean kept, centred variance": "the mean is not subtracted",
    "variance": "it is divided by the variance, not by its square root",
    "d − 1": "the variance divides by d − 1; a layer norm divides by d",
    "no gain": "the gain is missing",
    "no bias": "the bias is missing",
    "gain plus one": "the gain is added to 1; here it is the factor itself",
    "bias inside": "the bias is added before the gain multiplies",
}


def normed(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return a layer norm over the features of each token."""
    x, gain, bias = inputs
    axis = None if "whole" in wrong else 0 if "over time" in wrong else -1
    mean = x.mean(axis=axis, keepdims=True)
    variance = x.var(axis=axis, keepdims=True, ddof=1 if "d − 1" in wrong else 0)
    if "mean kept" in wrong:
        mean, variance = 0.0, (x**2).mean(axis=axis, keepdims=True)
    elif "mean kept, centred variance" in wrong:
        mean = 0.0
    normed = (x - mean) / (variance if "variance" in wrong else np.sqrt(variance))
    gain = 1.0 if "no gain" in wrong else gain + 1 if "gain plus one" in wrong else gain
    bias = 0.0 if "no bias" in wrong else bias
    return np.asarray((normed + bias) * gain if "bias inside" in wrong else normed * gain + bias)


def sublayers(drawn: Callable[..., Numbers], width: int) -> tuple[Part, Part, Part, Part]:
    """Return two norms, an attention and a feed-forward layer, each different from the others."""
    gains = drawn(2, width) + 2
    mix, inner, outer = drawn(width, width), drawn(width, 2 * width), drawn(2 * width, width)

    return (
        partial(_root_mean_square_norm, gain=gains[0]),
        partial(_mean_so_far, mix=mix),
        partial(_root_mean_square_norm, gain=gains[1]),
        lambda x: np.maximum(x @ inner, 0.0) @ outer,
    )


def _root_mean_square_norm(x: Numbers, gain: Numbers) -> Numbers:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gain)


def _mean_so_far(x: Numbers, mix: Numbers) -> Numbers:
    """Return an attention without queries: every token reads the mean of those up to it."""
    before = np.tril(np.ones((x.shape[-2], x.shape[-2])))
    return np.asarray(before / before.sum(-1, keepdims=True) @ x @ mix)


BLOCK_MISTAKES = {
    "first residual lost": "the first residual is lost: x + attention(norm_1(x)), not "
    "attention(norm_1(x)) alone",
    "second residual lost": "the second residual is lost: x + feed_forward(norm_2(x)), not "
    "feed_forward(norm_2(x)) alone",
    "no first norm": "the first norm is missing: attention reads norm_1(x)",
    "no second norm": "the second norm is missing: the feed-forward layer reads norm_2(x)",
    "post-norm": "the norms come after the sums (post-norm, as in the first Transformer); here "
    "they come before each sublayer, and the stream itself is never normed",
    "normed outputs": "the norms act on what a sublayer gives, not on what it reads",
    "normed stream": "the residual adds to norm(x), not to x: the stream itself is normed",
    "norms exchanged": "the two norms are exchanged",
    "first norm twice": "norm_1 is used in both places",
    "second norm twice": "norm_2 is used in both places",
    "parallel": "the feed-forward layer reads the input of the block, not the stream after "
    "attention (a parallel block)",
    "second from the start": "the second residual adds the input of the block, not the stream "
    "after attention",
    "feed-forward first": "the feed-forward layer comes before attention",
    "no attention": "attention is missing",
    "no feed-forward": "the feed-forward layer is missing",
}


def pre_norm_block(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return a block: each sublayer reads a normed stream and is added to the stream."""
    x, norm_1, attention, norm_2, feed_forward = inputs
    if "norms exchanged" in wrong:
        norm_1, norm_2 = norm_2, norm_1
    elif "first norm twice" in wrong:
        norm_2 = norm_1
    elif "second norm twice" in wrong:
        norm_1 = norm_2
    parts = [
        ("first residual lost", "no first norm", "no attention", norm_1, attention),
        ("second residual lost", "no second norm", "no feed-forward", norm_2, feed_forward),
    ]
    stream = x
    for lost, unnormed, missing, norm, layer in (
        reversed(parts) if ("feed-forward first" in wrong) else parts
    ):
        if missing in wrong:
            continue
        second = lost == "second residual lost"
        read = x if second and "parallel" in wrong else stream
        added = x if second and "second from the start" in wrong else stream
        if "post-norm" in wrong:
            stream = norm(stream + layer(stream))
            continue
        if "normed outputs" in wrong:
            stream = stream + norm(layer(stream))
            continue
        if "normed stream" in wrong:
            added = norm(added)
        given = layer(read if unnormed in wrong else norm(read))
        stream = given if lost in wrong else added + given
    return np.asarray(stream)


LOSS_MISTAKES = {
    "not shifted": "it is not shifted: logits[t] must predict tokens[t + 1], not tokens[t], which "
    "it has read",
    "shifted back": "it is shifted the wrong way: logits[t + 1] is compared with tokens[t]",
    "round": "the tokens are rolled: the last logits are compared with the first token",
    "sum": "it is the sum over the tokens, not the mean",
    "positive": "the minus sign is missing",
    "probability": "it is the mean of −p; the logarithm is missing",
    "bits": "it is in bits: the logarithm has base 2",
    "divided by all": "the sum is divided by the number of tokens; only that number − 1 is "
    "predicted",
}


def shifted_loss(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return the mean of −log p of every next token."""
    logits, tokens = inputs
    given, wanted = logits[:-1], tokens[1:]
    if "not shifted" in wrong:
        given, wanted = logits, tokens
    elif "shifted back" in wrong:
        given, wanted = logits[1:], tokens[:-1]
    elif "round" in wrong:
        given, wanted = logits, np.roll(tokens, -1)
    if "nothing subtracted" in wrong:
        powers = np.exp(given)
        logs = np.log(powers / powers.sum(-1, keepdims=True))
    else:
        shifted = given - given.max(-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    chosen = logs[np.arange(len(wanted)), wanted]
    if "probability" in wrong:
        chosen = np.exp(chosen)
    if "bits" in wrong:
        chosen = chosen / math.log(2)
    total = chosen.sum() if "positive" in wrong else -chosen.sum()
    many = 1 if "sum" in wrong else len(tokens) if "divided by all" in wrong else len(wanted)
    return np.asarray(total / many)
