"""Is a layer of your own right? It is compared with the definition, and with the usual mistakes.

A part is a plain function of NumPy arrays or torch tensors, of one of these kinds:

    softmax(x)                                      rows of x, over the last axis
    mask(n)                                         (n, n): True or 0 where t may attend to s ≤ t
    positions(length, width)                        the sinusoidal table of the first Transformer
    layer_norm(x, gain, bias)                       over the last axis, with any small ε
    attention(q, k, v)                              softmax(q kᵀ/√d) v, one head
    causal_attention(q, k, v)                       the same where t sees s ≤ t only
    multi_head(x, w_q, w_k, w_v, w_o, heads)        causal, x w_q and so on; heads beside each other
    decoder_block(x, norm_1, attention, norm_2, feed_forward)
                                                    pre-norm; the last four are functions of x
    next_token_loss(logits, tokens)                 the mean of −log p(tokens[t + 1] | logits[t])
    block(x)                                        any causal layer (time, width) → (time, width)

Axes before the time, such as a batch, may be there or not. Where a function differs from the
definition, the definition is made wrong on purpose, in one place or in two: the mistakes whose
output agrees with yours are the diagnosis. Agreement on random inputs is evidence, not a proof; a
difference is certain.

A definition takes the inputs of a piece and the names of mistakes, and gives what a function with
these mistakes would give; without mistakes, what is right. All are plain NumPy, written to be read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Shaped

from heedful.errors import InputError
from heedful.records import Record

# Definitions, each with the usual mistakes ---------------------------------------------------

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


# The comparison ------------------------------------------------------------------------------

Kind = Literal[
    "softmax", "mask", "positions", "layer_norm", "attention", "causal_attention", "multi_head",
    "decoder_block", "next_token_loss", "block",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Definition = Callable[[tuple[Any, ...], Wrong], Numbers]

SIZES = ((7, 8, 2, 4), (5, 12, 3, 9), (6, 6, 1, 2), (4, 10, 5, 16))
"""Time, width, heads and width of a head: different within a trial, so that swapped axes are seen,
and from trial to trial, so that a size that was written down as a number is seen."""
TIME = SIZES[0][0]
HUGE = 1e3
"""Scores of this size overflow exp, in float64 too; a safe softmax subtracts the largest first.
They do not overcome a mask of −10,000, the smallest that is in use."""
FORBIDS = -1e4
"""What must be added to a score at least, for it to be forbidden; GPT-2 was published with this."""
AGREES = {"float64": 1e-6, "float32": 1e-4, "float16": 2e-2}
"""Largest difference that rounding and a small ε explain, relative to the size of the output."""
NORM_AGREES = 2e-3
"""The same for a norm: the ε in use reach 0.001, which is half of that for a variance of 1."""

UNEXPLAINED = "it differs in a way that none of the usual mistakes explains"


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerProperty(Record):
    """One thing that was tried."""

    name: str
    """What should be so."""
    holds: bool
    """Whether it is."""
    reason: str
    """What was seen, with numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerCheck(Record):
    """What was found out about a function."""

    function: str
    """Its name."""
    kind: str
    """What it should be."""
    library: str
    """Which arrays it takes: numpy or torch."""
    properties: tuple[LayerProperty, ...]
    """Everything that was tried."""
    diagnosis: str
    """The mistake that explains what differs, in words; empty where nothing differs."""

    @property
    def right(self) -> bool:
        """Whether everything holds that was tried."""
        return all(one.holds for one in self.properties)


def check_layer(
    function: Part,
    kind: Kind | None = None,
    *,
    scale: Scale = "sqrt_d",
    width: int | None = None,
    seed: int = 0,
) -> LayerCheck:
    """Check a piece of a decoder that you wrote: softmax, mask, attention, norm, block and others.

    `kind` says what it should be; without it, the function's name must be one of the kinds. Scores
    are divided by √d, or multiplied by `scale`, as where an assignment defines them so. `width` is
    that of a `block` which takes one width only.

    >>> def causal_attention(q, k, v):
    ...     scores = q @ k.T / np.sqrt(q.shape[-1])
    ...     scores = np.where(np.triu(np.ones_like(scores)), scores, -np.inf)
    ...     weights = np.exp(scores - scores.max(-1, keepdims=True))
    ...     return weights / weights.sum(-1, keepdims=True) @ v
    >>> check_layer(causal_attention).diagnosis
    'the mask is turned round: queries see what comes after them, not what came before'
    """
    name = getattr(function, "__name__", type(function).__name__)
    chosen: str = name if kind is None else kind
    if chosen not in KINDS:
        raise InputError(
            "kind",
            f"is {kind!r}" if kind else f"is not given, and the function is called {name!r}",
            expected="one of " + ", ".join(KINDS),
        )
    first: tuple[_Tried, list[LayerProperty]] | None = None
    # A function may take several forms of input, and be meant for one of them: the first in which
    # it is right counts. If it is right in none, the first that gave the expected shape.
    for tried in _callable_ways(function, chosen, scale, width, seed):
        checks = _CHECKS[chosen](tried)
        right = all(one.holds for one in checks)
        first = (tried, checks) if right or first is None else first
        if right:
            break
    assert first is not None
    tried, checks = first
    return LayerCheck(
        function=name,
        kind=chosen,
        library=tried.library,
        properties=tuple(checks),
        diagnosis="" if all(one.holds for one in checks) else tried.diagnosis(),
    )


class _Tried:
    """A function, called with the arrays that it takes."""

    def __init__(
        self, function: Part, kind: str, scale: Scale, width: int | None, seed: int,
        library: str = "numpy", precision: str = "float64", outer: int = 0,
    ) -> None:  # fmt: skip
        self.function, self.kind, self.scale, self.width = function, kind, scale, width
        self.random = np.random.default_rng(seed)
        self.library, self.precision, self.outer = library, precision, outer
        self.other = 0.5
        self.explain: Callable[[], str] = str  # finds the mistake where the output differs
        self.said = ""

    def inputs(self, size: float = 1.0, trial: int = 0) -> tuple[Any, ...]:
        """Draw inputs of the function's kind, with the sizes of a trial; scores are about size²."""
        time, width, heads, head_width = SIZES[trial]
        width = self.width or width

        drawn = self._drawn
        if self.kind == "mask":
            return (time,)
        if self.kind == "positions":
            return (time, width)
        if self.kind in ("attention", "causal_attention"):
            return size * drawn(time, head_width), size * drawn(time, head_width), drawn(time, 3)
        if self.kind == "multi_head":
            weights = (drawn(width, width) / math.sqrt(width) for _ in range(4))
            return (size * drawn(time, width), *weights, heads)
        if self.kind == "layer_norm":
            return 3 * drawn(time, width) + 1, drawn(width) + 2, drawn(width)
        if self.kind == "decoder_block":
            return (drawn(time, width), *sublayers(drawn, width))
        if self.kind == "next_token_loss":
            return size * size * drawn(time, width), self.random.permutation(width)[:time]
        return (size * size * drawn(time, width),)

    def _drawn(self, *shape: int) -> Numbers:
        return self.random.standard_normal(shape)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "function")

    def __call__(self, *inputs: Any) -> Numbers:
        """Return what the function gives, as a NumPy array."""
        given = tuple(self._given(one, place) for place, one in enumerate(inputs))
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.function(*given)
        except Exception as error:
            parameters = ", ".join(_PARAMETERS[self.kind])
            raise InputError(
                self.name,
                f"ends in {type(error).__name__}: {error}",
                expected=f"{self.kind}({parameters})",
                hint="a block for one width only is tried with width=…"
                if self.kind == "block" and self.width is None
                else "",
            ) from None
        if isinstance(result, tuple):  # (output, weights) is a common way to return both
            result = result[0]
        if hasattr(result, "detach"):
            result = result.detach().cpu()
            result = (result.float() if str(result.dtype) == "torch.bfloat16" else result).numpy()
        try:
            array = np.asarray(result)
        except Exception:
            array = np.asarray(None)
        if array.dtype.kind not in "biuf":
            raise InputError(self.name, f"returns {type(result).__name__}", expected="an array")
        return self._without_outer_axes(array)

    def _given(self, value: Any, place: int) -> Any:
        """Return an input as this function takes it; inputs with a time axis get the outer axes."""
        if callable(value):
            return lambda x: self._array(value(np.asarray(getattr(x, "detach", lambda: x)())))
        if not isinstance(value, np.ndarray):
            return value
        if place in _WITH_TIME[self.kind]:
            for _ in range(self.outer):
                # Another text stands before it, so that nothing may be read from there.
                other = value[::-1] if value.dtype.kind == "i" else self.other - value
                value = np.stack([other, value])
        return self._array(value)

    def _array(self, value: Numbers) -> Any:
        if value.dtype.kind == "f":
            value = value.astype(self.precision)
        if self.library == "numpy":
            return value.copy()
        import torch

        return torch.tensor(value.copy())

    def _without_outer_axes(self, array: Numbers) -> Numbers:
        if self.kind == "next_token_loss":
            return array
        for _ in range(self.outer):
            if array.ndim and len(array) == 2:
                array = array[1]
        while self.kind in ("mask", "positions") and array.ndim > 2 and len(array) == 1:
            array = array[0]
        return array

    def agrees(self, output: Numbers, expected: Numbers) -> bool:
        """Whether two outputs differ by rounding only."""
        if output.shape != expected.shape:
            return False
        share = AGREES.get(str(output.dtype), AGREES["float64"])
        if self.precision == "float32":
            share = max(share, AGREES["float32"])
        if self.kind in ("layer_norm",):
            share = max(share, NORM_AGREES)
        finite = np.abs(expected[np.isfinite(expected)])
        allowed = share * max(1.0, float(finite.max()) if finite.size else 1.0)
        return bool(np.allclose(output, expected, rtol=0, atol=allowed, equal_nan=True))

    def say(self, words: str) -> None:
        """Keep what a check says about the mistake, unless another has said something."""
        self.said = self.said or words

    def diagnosis(self) -> str:
        """Return the mistake in words; it is looked for only now, since that takes longest."""
        return self.explain() or self.said or UNEXPLAINED


def _callable_ways(
    function: Part, kind: str, scale: Scale, width: int | None, seed: int
) -> Iterator[_Tried]:
    """Yield the ways in which a function can be called, those with the expected shape first."""
    troubles: list[InputError] = []
    shaped: list[_Tried] = []
    others: list[_Tried] = []
    outer_axes = range(1 + _OUTER_AXES.get(kind, 0))
    arrays = (("numpy", "float64"), ("torch", "float64"), ("torch", "float32"))
    for outer, (library, precision) in product(outer_axes, arrays):
        if kind == "block" and shaped + others and outer > (shaped + others)[0].outer:
            break  # there is no definition that would tell which of two forms is meant
        tried = _Tried(function, kind, scale, width, seed, library, precision, outer)
        inputs = tried.inputs()
        try:
            output = tried(*inputs)
        except ModuleNotFoundError:
            continue
        except InputError as error:
            troubles.append(error)
            continue
        tried = _Tried(function, kind, scale, width, seed, library, precision, outer)
        expected = _expected_shape(tried, inputs)
        (shaped if output.shape == expected else others).append(tried)
    if not shaped and not others:
        uses_torch = "torch" in getattr(function, "__globals__", {}) or hasattr(function, "forward")
        raise troubles[1 if uses_torch and len(troubles) > 1 else 0]
    yield from shaped
    if not shaped:
        yield from others[:1]


def _expected_shape(tried: _Tried, inputs: tuple[Any, ...]) -> tuple[int, ...]:
    if tried.kind == "mask":
        return (TIME, TIME)
    if tried.kind == "block":
        return tuple(inputs[0].shape)
    return tuple(_definition(tried)(inputs, frozenset()).shape)


_PARAMETERS: dict[str, tuple[str, ...]] = {
    "softmax": ("x",),
    "mask": ("n",),
    "positions": ("length", "width"),
    "layer_norm": ("x", "gain", "bias"),
    "attention": ("q", "k", "v"),
    "causal_attention": ("q", "k", "v"),
    "multi_head": ("x", "w_q", "w_k", "w_v", "w_o", "heads"),
    "decoder_block": ("x", "norm_1", "attention", "norm_2", "feed_forward"),
    "next_token_loss": ("logits", "tokens"),
    "block": ("x",),
}
_WITH_TIME: dict[str, tuple[int, ...]] = {
    "softmax": (0,),
    "mask": (),
    "positions": (),
    "layer_norm": (0,),
    "attention": (0, 1, 2),
    "causal_attention": (0, 1, 2),
    "multi_head": (0,),
    "decoder_block": (0,),
    "next_token_loss": (0, 1),
    "block": (0,),
}
"""Which parameters have a time axis, before which a batch may stand."""
_OUTER_AXES = {
    "softmax": 2,
    "layer_norm": 2,
    "attention": 2,
    "causal_attention": 2,
    "multi_head": 1,
    "decoder_block": 1,
    "next_token_loss": 1,
    "block": 1,
}
"""How many axes may stand before the time: a batch, and heads."""


def _definition(tried: _Tried) -> Definition:
    """Return what a kind should compute."""
    if tried.kind in ("attention", "causal_attention"):
        return partial(one_head, causal=tried.kind == "causal_attention", scale=tried.scale)
    if tried.kind == "multi_head":
        return partial(several_heads, scale=tried.scale)
    if tried.kind == "next_token_loss" and tried.outer:
        return _batched_loss
    return {
        "softmax": rows_softmax,
        "positions": sinusoidal_table,
        "layer_norm": normed,
        "decoder_block": pre_norm_block,
        "next_token_loss": shifted_loss,
    }[tried.kind]


def _batched_loss(inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    """Return the mean loss over the texts of a batch, made as `_Tried` makes it."""
    logits, tokens = inputs
    other = (0.5 - logits, tokens[::-1])
    losses = [shifted_loss(one, wrong) for one in (other, inputs)]
    return np.asarray(sum(losses) if "sum" in wrong else np.mean(losses))


# What is tried for each kind


def _check_softmax(tried: _Tried) -> list[LayerProperty]:
    agreement = _agreement(tried, SOFTMAX_MISTAKES)
    return [agreement, _safe(tried, agreed=agreement.holds)]


_MASK_WORDS: tuple[tuple[str, Callable[[Numbers], Numbers]], ...] = (
    ("the mask is turned round: True (or 0) where a key comes after the query", lambda m: m.T),
    ("the mask hides each token from itself; t attends to s ≤ t", lambda m: np.tril(m, -1)),
    (
        "the mask is one place too wide: each query sees the next token",
        lambda m: np.tril(np.ones_like(m), 1),
    ),
    ("everything may be seen", lambda m: np.ones_like(m)),
    (
        "True means “forbidden” here, as masked_fill(mask, −∞) reads it; True should mean “may "
        "attend”, as in torch's scaled_dot_product_attention: return ~mask",
        lambda m: ~m,
    ),
)
_ONES = (
    "1 where t may attend and 0 elsewhere can be read in two ways: it is right for "
    "masked_fill(mask == 0, −∞), and forbids nothing if it is added to the scores; return booleans "
    "(mask == 1), or 0 and −∞"
)


def _check_mask(tried: _Tried) -> list[LayerProperty]:
    output = tried(TIME)
    right = mask_of(TIME, True, frozenset())
    if output.shape != right.shape:
        reason = f"mask({TIME}) has shape {output.shape}, not ({TIME}, {TIME})"
        tried.say("a mask has a row for each query and a column for each key")
        return [LayerProperty(name="shape", holds=False, reason=reason)]
    allowed = output if output.dtype == bool else output == 0
    holds = bool(np.array_equal(allowed, right))
    if output.dtype != bool and set(np.unique(output)) <= {0, 1}:
        exact = np.array_equal(output, right)
        tried.say(_ONES if exact else "it holds numbers 0 and 1: return booleans, or 0 and −∞")
    for sentence, wrong in _MASK_WORDS:
        if not holds and np.array_equal(allowed, wrong(right)):
            tried.say(sentence)
    reason = "t attends to s ≤ t"
    if not holds:
        t, s = (int(one) for one in np.argwhere(allowed != right)[0])
        seen = "allowed" if allowed[t, s] else "forbidden"
        reason = f"query {t} and key {s}: {seen}"
        tried.say(f"query {t} may {'' if allowed[t, s] else 'not '}attend to key {s}: t attends "
                  "to s ≤ t, and to nothing else")  # fmt: skip
    checks = [LayerProperty(name="causal", holds=holds, reason=reason)]
    if output.dtype != bool and holds:
        checks.append(_forbids(tried, float(output[~right].max())))
    return checks


def _forbids(tried: _Tried, largest: float) -> LayerProperty:
    """Say whether what is added to forbidden scores is enough."""
    holds = largest <= FORBIDS
    reason = "forbidden pairs get −∞"
    if math.isfinite(largest):
        reason = f"forbidden pairs get {largest:g}: a score {-largest:g} larger overcomes it"
    if not holds:
        tried.say(f"{largest:g} is not −∞: large scores overcome it; take −∞, or at most −10,000")
    return LayerProperty(name="forbids for certain", holds=holds, reason=reason)


def _check_positions(tried: _Tried) -> list[LayerProperty]:
    return [_agreement(tried, POSITION_MISTAKES)]


def _check_layer_norm(tried: _Tried) -> list[LayerProperty]:
    checks = [_agreement(tried, NORM_MISTAKES)]
    x, gain, bias = tried.inputs()
    x[1] = 2.0
    finite = bool(np.isfinite(tried(x, gain, bias)).all())
    if not finite:
        tried.say("a token with equal features has variance 0: add a small ε under the root")
    reason = f"a token with equal features gives {'numbers' if finite else 'NaN or infinity'}"
    return [*checks, LayerProperty(name="numerically safe", holds=finite, reason=reason)]


def _check_attention(tried: _Tried) -> list[LayerProperty]:
    causal = tried.kind == "causal_attention"
    mistakes = _scale_mistakes(tried) | (MASK_MISTAKES if causal else NOT_CAUSAL)
    agreement = _agreement(tried, mistakes)
    checks = [agreement]
    if causal:
        checks.append(_causality(tried, agreed=agreement.holds))
    checks.append(_safe(tried, agreed=agreement.holds))
    if tried.library == "torch":
        checks.append(_gradient(tried))
    return checks


def _scale_mistakes(tried: _Tried) -> dict[str, str]:
    if tried.scale == "sqrt_d":
        return SCORE_MISTAKES
    named = {name: words for name, words in SCORE_MISTAKES.items() if name != "scaled twice"}
    return named | {
        "scaled": f"the scores are divided by √d, and scale={tried.scale:g} was asked for",
        "unscaled": f"the scores are not multiplied by {tried.scale:g}",
    }


def _check_multi_head(tried: _Tried) -> list[LayerProperty]:
    agreement = _agreement(tried, HEAD_MISTAKES | _scale_mistakes(tried) | MASK_MISTAKES)
    checks = [
        agreement,
        _causality(tried, agreed=agreement.holds),
        _safe(tried, agreed=agreement.holds),
    ]
    if tried.library == "torch":
        checks.append(_gradient(tried))
    return checks


def _check_decoder_block(tried: _Tried) -> list[LayerProperty]:
    return [_agreement(tried, BLOCK_MISTAKES)]


def _check_loss(tried: _Tried) -> list[LayerProperty]:
    agreement = _agreement(tried, LOSS_MISTAKES)
    return [agreement, _safe(tried, agreed=agreement.holds)]


def _check_block(tried: _Tried) -> list[LayerProperty]:
    (x,) = tried.inputs()
    output = tried(x)
    same = output.shape == x.shape
    checks = [
        LayerProperty(
            name="shape", holds=same, reason=f"{tuple(x.shape)} gives {tuple(output.shape)}"
        )
    ]
    if not same:
        tried.say("a block keeps the shape of the stream, so that blocks can be stacked")
        return checks
    checks += [_repeatable(tried)]
    if checks[-1].holds:
        checks += [_causality(tried, agreed=False)]
    if tried.outer:
        checks += [_independence(tried)]
    finite = bool(np.isfinite(tried(HUGE * x)).all())
    reason = f"inputs {HUGE:g} times as large give {'numbers' if finite else 'infinities or NaN'}"
    if not finite:
        tried.say("something overflows: is the largest score subtracted before exp?")
    return [*checks, LayerProperty(name="finite", holds=finite, reason=reason)]


def _combinations(mistakes: dict[str, str]) -> Iterable[tuple[Wrong, str]]:
    """Yield mistakes with their words: one at a time, then two at once."""
    forms = [
        (frozenset({name, form}) if name in HIDING else frozenset({name}), words)
        for name, words in mistakes.items()
        for form in (EMPTY_ROWS if name in HIDING else ("",))
    ]
    yield from forms
    for (one, first), (other, second) in combinations(forms, 2):
        # Two changes of the mask, or of the scale, are one other change, and not these two.
        names = one | other
        if not any(len(names & group) > 1 for group in ALTERNATIVES):
            yield one | other, f"two mistakes: {first}; and {second}"


def _agreement(tried: _Tried, mistakes: dict[str, str]) -> LayerProperty:
    """Compare with the definition on random inputs; where it differs, find the mistake."""
    name, work = "agrees with the definition", _definition(tried)
    cases = [tried.inputs(trial=trial) for trial in range(len(SIZES))]
    outputs = [tried(*cases[0])]
    expected = [_quietly(work, case, frozenset()) for case in cases]
    if outputs[0].shape != expected[0].shape:
        tried.say("the axes of the output are not those of the definition")
        shape = f"gives shape {outputs[0].shape}, and {expected[0].shape} was expected"
        return LayerProperty(name=name, holds=False, reason=shape)
    if not np.array_equal(outputs[0], tried(*cases[0]), equal_nan=True):
        tried.say("two calls differ: is dropout on? Call .eval() first, or leave it out")
        reason = "two calls with one input differ"
        return LayerProperty(name=name, holds=False, reason=reason)
    try:
        outputs += [tried(*case) for case in cases[1:]]
    except InputError as error:
        tried.say("it works for some sizes only: is a size written as a number?")
        reason = f"with other sizes than the first it {error.problem}"
        return LayerProperty(name=name, holds=False, reason=reason)
    pairs = list(zip(outputs, expected, strict=True))
    agreeing = [tried.agrees(*pair) for pair in pairs]
    if all(agreeing):
        reason = f"on random inputs of {len(SIZES)} sizes, to rounding"
        return LayerProperty(name=name, holds=True, reason=reason)
    # With one head some mistakes cannot be seen: that it is right there says nothing.
    if any(right for right, (_, _, heads, _) in zip(agreeing, SIZES, strict=True) if heads > 1):
        tried.say("it is right for some sizes only: is a size written as a number?")
    else:
        tried.explain = partial(_explained, tried, mistakes, cases, outputs)
    shapes = [pair for pair in pairs if pair[0].shape == pair[1].shape]
    difference = max(float(np.abs(x - y).max()) for x, y in shapes)
    reason = f"differs by up to {difference:.3g} on random inputs"
    if math.isnan(difference):
        reason = "gives NaN on ordinary inputs"
    return LayerProperty(name=name, holds=False, reason=reason)


def _explained(
    tried: _Tried, mistakes: dict[str, str], cases: list[tuple[Any, ...]], outputs: list[Numbers]
) -> str:
    """Return the mistakes with which the definition gives what the function gave."""
    work = _definition(tried)
    pairs = list(zip(cases, outputs, strict=True))
    for wrong, words in _combinations(mistakes):
        if all(tried.agrees(output, _quietly(work, case, wrong)) for case, output in pairs):
            return words
    return ""


def _quietly(work: Definition, inputs: tuple[Any, ...], wrong: Wrong) -> Numbers:
    with np.errstate(all="ignore"):
        return work(inputs, wrong)


def _safe(tried: _Tried, *, agreed: bool) -> LayerProperty:
    """Try scores that overflow a softmax without its largest score subtracted."""
    inputs, work = tried.inputs(math.sqrt(HUGE)), _definition(tried)
    output = tried(*inputs)
    finite = bool(np.isfinite(output).all())
    holds = finite and (not agreed or tried.agrees(output, work(inputs, frozenset())))
    reason = f"{'right' if agreed else 'finite'} for scores of about {HUGE:g}"
    if not finite and not np.isfinite(tried(*tried.inputs())).all():
        reason = "gives NaN or infinity for small scores already"
    elif not finite:
        reason = f"scores of about {HUGE:g} give NaN or infinity"
        rounded = tuple(
            one.astype(output.dtype) if getattr(one, "dtype", None) == np.float64 else one
            for one in inputs
        )
        for wrong, words in UNSAFE.items():
            if agreed and tried.agrees(output, _quietly(work, rounded, frozenset({wrong}))):
                tried.say(words)
        tried.say("exp overflows: subtract the largest score of each row before it")
    elif not holds:
        reason = f"finite, but wrong, for scores of about {HUGE:g}"
        tried.say(
            "large scores are treated otherwise than small ones: are they cut off, or is the "
            "number in place of −∞ too small?"
        )
    return LayerProperty(name="numerically safe", holds=holds, reason=reason)


def _causality(tried: _Tried, *, agreed: bool) -> LayerProperty:
    """Change one token after the other: nothing before it may move."""
    inputs = list(tried.inputs())
    before = tried(*inputs)
    tolerance = AGREES["float32"] * max(1.0, float(np.nanmax(np.abs(before), initial=0.0)))
    many = 3 if tried.kind == "causal_attention" else 1
    seen = np.zeros((TIME, TIME), dtype=bool)
    for s in range(TIME):
        changed = [one.copy() if i < many else one for i, one in enumerate(inputs)]
        for one in changed[:many]:
            one[s] += 1.0
        moved = np.abs(np.nan_to_num(tried(*changed)) - np.nan_to_num(before))
        seen[:, s] = moved.max(axis=-1) > tolerance
    early = np.argwhere(np.triu(seen, 1))
    if len(early):
        t, s = (int(one) for one in early[0])
        tried.say("the future is seen: a causal mask is missing or wrong")
        reason = f"changing token {s} changes the output at token {t}"
        return LayerProperty(name="causal", holds=False, reason=reason)
    lost = np.argwhere(~seen & np.tril(np.ones_like(seen)))
    if tried.kind != "block" and not agreed and len(lost):
        t, s = (int(one) for one in lost[0])
        tried.say(f"query {t} does not see key {s}, which it should: t attends to every s ≤ t")
    reason = "changing a token changes nothing before it"
    return LayerProperty(name="causal", holds=True, reason=reason)


def _repeatable(tried: _Tried) -> LayerProperty:
    (x,) = tried.inputs()
    holds = bool(np.array_equal(tried(x), tried(x), equal_nan=True))
    if not holds:
        tried.say("two calls differ: is dropout on? Call .eval() first")
    reason = "two calls give the same" if holds else "two calls with one input differ"
    return LayerProperty(name="repeatable", holds=holds, reason=reason)


def _independence(tried: _Tried) -> LayerProperty:
    """Say whether the texts of a batch leave one another alone."""
    (x,) = tried.inputs()
    together = tried(x)
    other, tried.other = tried.other, -1.5
    moved = np.abs(tried(x) - together).max()
    tried.other = other
    holds = bool(moved <= AGREES["float32"] * max(1.0, float(np.abs(together).max())))
    reason = "changing one text of a batch does not change another"
    if not holds:
        tried.say("the texts of a batch are mixed: is an axis taken for another?")
        reason = "changing one text of a batch changes another"
    return LayerProperty(name="independent", holds=holds, reason=reason)


_DETACHED = "no gradient flows: a tensor is detached on the way"
STEP = 1e-6
"""Half the distance of the two points of a difference, in float64: its error is about 1e-9."""


def _gradient(tried: _Tried) -> LayerProperty:
    """Compare the gradients of all inputs with differences of the definition."""
    import torch

    inputs, work = tried.inputs(), _definition(tried)
    arrays = [place for place, one in enumerate(inputs) if isinstance(one, np.ndarray)]
    given = [tried._given(one, place) for place, one in enumerate(inputs)]
    for place in arrays:
        given[place].requires_grad_()
    try:
        result = tried.function(*given)
    except Exception as error:  # such as NumPy, which takes no tensor that has a gradient
        tried.say(_DETACHED)
        reason = f"with gradients it ends in {type(error).__name__}"
        return LayerProperty(name="gradient", holds=False, reason=reason)
    result = result[0] if isinstance(result, tuple) else result
    if not getattr(result, "requires_grad", False):
        tried.say(_DETACHED)
        return LayerProperty(name="gradient", holds=False, reason="the output has no gradient")
    for _ in range(tried.outer):
        result = result[1]
    weights = np.cos(np.arange(result.numel())).reshape(tuple(result.shape))
    (result * torch.tensor(weights)).sum().backward()
    largest = 0.0
    for place in arrays:
        gradient = given[place].grad
        if gradient is None:
            tried.say(_DETACHED)
            name = _PARAMETERS[tried.kind][place]
            return LayerProperty(name="gradient", holds=False, reason=f"{name} gets no gradient")
        for _ in range(tried.outer if place in _WITH_TIME[tried.kind] else 0):
            gradient = gradient[1]
        largest = max(largest, _slope_difference(work, inputs, place, weights, gradient.numpy()))
    holds = largest < (1e-5 if tried.precision == "float64" else 1e-2)
    reason = "as the definition's, by differences" if holds else f"differs by {largest:.3g}"
    if not holds:
        tried.say("the output is right and its gradient is not: is a tensor detached, or made "
                  "anew, on the way?")  # fmt: skip
    return LayerProperty(name="gradient", holds=holds, reason=reason)


def _slope_difference(
    work: Definition, inputs: tuple[Any, ...], place: int, weights: Numbers, gradient: Numbers
) -> float:
    """Return how far a gradient is from a difference of the definition, in one direction."""
    direction = np.sin(1.0 + np.arange(gradient.size)).reshape(gradient.shape)
    moved = [
        tuple(one + sign * STEP * direction if i == place else one for i, one in enumerate(inputs))
        for sign in (1, -1)
    ]
    above, below = (float((work(one, frozenset()) * weights).sum()) for one in moved)
    return abs(float((gradient * direction).sum()) - (above - below) / (2 * STEP))


_CHECKS: dict[str, Callable[[_Tried], list[LayerProperty]]] = {
    "softmax": _check_softmax,
    "mask": _check_mask,
    "positions": _check_positions,
    "layer_norm": _check_layer_norm,
    "attention": _check_attention,
    "causal_attention": _check_attention,
    "multi_head": _check_multi_head,
    "decoder_block": _check_decoder_block,
    "next_token_loss": _check_loss,
    "block": _check_block,
}
