"""Is a layer of your own right? It is compared with the definition, and with the usual mistakes.

A part is a plain function of NumPy arrays or torch tensors, of one of these kinds:

    softmax(x)                                      rows of x, over the last axis
    mask(n)                                         (n, n): True or 0 where t may attend to s ≤ t
    positions(length, width)                        the sinusoidal table of the first Transformer
    attention(q, k, v)                              softmax(q kᵀ/√d) v, one head
    causal_attention(q, k, v)                       the same where t sees s ≤ t only
    multi_head(x, w_q, w_k, w_v, w_o, heads)        causal, x w_q and so on; heads beside each other
    block(x)                                        any layer (time, width) → (time, width)

Where it differs from the definition, the definition is made wrong on purpose, in one place at a
time: the mistake whose output agrees with yours is the diagnosis. Agreement on random inputs is
evidence, not a proof; a difference is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Shaped

from heedful.errors import InputError
from heedful.records import Record

Kind = Literal[
    "softmax", "mask", "positions", "attention", "causal_attention", "multi_head", "block"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Numbers = Shaped[np.ndarray, "..."]
Part = Callable[..., Any]
Definition = Callable[[tuple[Any, ...], str], Numbers]
"""From inputs and the name of a mistake (empty: none) to the output."""

SIZES = ((7, 8, 2, 4), (5, 12, 3, 9), (6, 6, 1, 2), (4, 10, 5, 16))
"""Time, width, heads and width of a head: different within a trial, so that swapped axes are seen,
and from trial to trial, so that a size that was written down as a number is seen."""
TIME, WIDTH = SIZES[0][:2]
TRIALS = len(SIZES)
HUGE = 1e4
"""Scores of this size overflow exp, in float64 too; a safe softmax subtracts the largest first."""
AGREES = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2}
"""Largest difference that rounding explains, relative to the size of the output."""


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


def check_layer(function: Part, kind: Kind | None = None, *, seed: int = 0) -> LayerCheck:
    """Check an attention, mask, position table, softmax or block that you wrote.

    `kind` says what it should be; without it, the function's name must be one of the kinds.

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
    tried = _Tried(function, chosen, seed)
    checks = _CHECKS[chosen](tried)
    return LayerCheck(
        function=name,
        kind=chosen,
        library=tried.library,
        properties=tuple(checks),
        diagnosis="" if all(one.holds for one in checks) else tried.diagnosis,
    )


class _Tried:
    """A function, called with the arrays that it takes."""

    def __init__(self, function: Part, kind: str, seed: int) -> None:
        self.function, self.kind = function, kind
        self.random = np.random.default_rng(seed)
        self.library = "numpy"
        self.diagnosis = ""
        self._settle(self.inputs())

    def inputs(self, size: float = 1.0, trial: int = 0) -> tuple[Any, ...]:
        """Draw inputs of the function's kind, with the sizes of a trial."""
        time, width, heads, head_width = SIZES[trial]

        def drawn(*shape: int) -> Numbers:
            return size * self.random.standard_normal(shape)

        if self.kind == "mask":
            return (time,)
        if self.kind == "positions":
            return (time, width)
        if self.kind in ("attention", "causal_attention"):
            return drawn(time, head_width), drawn(time, head_width), drawn(time, 3)
        if self.kind == "multi_head":
            weights = (drawn(width, width) / math.sqrt(size) for _ in range(4))
            return (drawn(time, width), *weights, heads)
        return (drawn(time, width),)

    def _settle(self, inputs: tuple[Any, ...]) -> None:
        """Find out whether the function takes NumPy arrays or torch tensors."""
        try:
            self(*inputs)
            return
        except InputError as error:
            with_numpy = error
        self.library = "torch"
        try:
            self(*inputs)
        except ModuleNotFoundError:
            raise with_numpy from None
        except InputError as with_torch:
            uses_torch = "torch" in getattr(self.function, "__globals__", {})
            raise (with_torch if uses_torch else with_numpy) from None

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", "function")

    def __call__(self, *inputs: Any) -> Numbers:
        """Return what the function gives, as a NumPy array."""
        given = tuple(self._array(one) for one in inputs)
        try:
            result = self.function(*given)
        except Exception as error:
            parameters = ", ".join(_PARAMETERS[self.kind])
            raise InputError(
                self._name,
                f"ends in {type(error).__name__}: {error}",
                expected=f"{self.kind}({parameters})",
            ) from None
        if isinstance(result, tuple):  # (output, weights) is a common way to return both
            result = result[0]
        if hasattr(result, "detach"):
            result = result.detach().numpy()
        try:
            array = np.asarray(result)
        except Exception:
            array = np.asarray(None)
        if array.dtype.kind not in "biuf":
            raise InputError(self._name, f"returns {type(result).__name__}", expected="an array")
        return array

    def _array(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if self.library == "numpy":
            return value.copy()
        import torch

        return torch.tensor(value)

    def agrees(self, output: Numbers, expected: Numbers) -> bool:
        """Whether two outputs differ by rounding only."""
        if output.shape != expected.shape:
            return False
        allowed = AGREES.get(str(output.dtype), 1e-9) * max(1.0, float(np.abs(expected).max()))
        return bool(np.allclose(output, expected, rtol=0, atol=allowed, equal_nan=True))


_PARAMETERS: dict[str, tuple[str, ...]] = {
    "softmax": ("x",),
    "mask": ("n",),
    "positions": ("length", "width"),
    "attention": ("q", "k", "v"),
    "causal_attention": ("q", "k", "v"),
    "multi_head": ("x", "w_q", "w_k", "w_v", "w_o", "heads"),
    "block": ("x",),
}


# The definitions, each with the mistakes that are usually made


def softmax(scores: Numbers, axis: int = -1) -> Numbers:
    """Return the softmax, with the largest score subtracted first."""
    shifted = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=axis, keepdims=True))


def _causal(count: int) -> Numbers:
    return np.tril(np.ones((count, count), dtype=bool))


def _attend(inputs: tuple[Any, ...], wrong: str, causal: bool) -> Numbers:
    """Return attention of one head, with one mistake; an empty `wrong` makes none."""
    q, k, v = inputs
    if wrong == "masked":
        wrong, causal = "", True
    width = q.shape[-1]
    scale = {
        "unscaled": 1.0,
        "scaled by d": 1 / width,
        "scaled twice": math.sqrt(width) / width**1.5,
    }
    scores = q @ k.T * scale.get(wrong, 1 / math.sqrt(width))
    if wrong == "transposed":
        scores = scores.T
    mask = _causal(len(q)) if causal else np.ones_like(scores, dtype=bool)
    if wrong == "unmasked":
        mask = np.ones_like(mask)
    elif wrong == "mask turned round":
        mask = mask.T
    elif wrong == "without itself":
        mask = np.tril(mask, -1)
        mask[0, 0] = True
    elif wrong == "one ahead":
        mask = np.tril(np.ones_like(mask), 1)
    if wrong == "masked by zero":
        return np.asarray(softmax(np.where(mask, scores, 0.0)) @ v)
    if wrong == "masked after softmax":
        return np.asarray(np.where(mask, softmax(scores), 0.0) @ v)
    if wrong == "wrong axis":
        weights = softmax(np.where(mask, scores, -np.inf), axis=0)
    else:
        weights = softmax(np.where(mask, scores, -np.inf))
    return np.asarray(weights @ v)


_ATTENTION_MISTAKES = {
    "unscaled": "the scores are not divided by √d",
    "scaled by d": "the scores are divided by d, not by √d",
    "transposed": "the scores are transposed: keys ask queries",
    "wrong axis": "the softmax runs over the queries; weights must sum to 1 over the keys",
}
_MASK_MISTAKES = {
    "unmasked": "there is no causal mask: queries see what comes after them",
    "mask turned round": "the mask is turned round: queries see what comes after them, "
    "not what came before",
    "without itself": "the mask hides each token from itself; t attends to s ≤ t",
    "one ahead": "the mask is one place too wide: each query sees the next token",
    "masked by zero": "forbidden scores become 0, not −∞: exp(0) = 1 is a weight",
    "masked after softmax": "the mask comes after the softmax: the weights no longer sum to 1",
}
_NOT_CAUSAL = {"masked": "it is causal, and this attention should see everything"}
_HEAD_MISTAKES = {
    "w_q": "the query projection is transposed (x w_qᵀ in the place of x w_q)",
    "w_k": "the key projection is transposed (x w_kᵀ in the place of x w_k)",
    "w_v": "the value projection is transposed (x w_vᵀ in the place of x w_v)",
    "w_o": "the output projection is transposed (c w_oᵀ in the place of c w_o)",
    "every projection": "every projection is transposed (x wᵀ in the place of x w)",
    "mixed heads": "heads are split without moving the axis: a reshape to (heads, time, …) mixes "
    "tokens; reshape to (time, heads, …) first, then transpose",
    "interleaved heads": "the features of a head are every second one; they stand side by side",
    "one head": "there is one head over the whole width, not several",
    "full width": "the scores are divided by the square root of the whole width, not of a head's",
    "no output": "the output projection is missing",
}


def _multi_head(inputs: tuple[Any, ...], wrong: str) -> Numbers:
    x, w_q, w_k, w_v, w_o, heads = inputs
    named = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    w_q, w_k, w_v, w_o = (
        w.T if wrong in (name, "every projection") else w for name, w in named.items()
    )
    count, width = len(x), w_q.shape[1]
    size = width // heads

    def split(y: Numbers) -> Numbers:
        if wrong == "mixed heads":
            return y.reshape(heads, count, size)
        if wrong == "interleaved heads":
            return y.reshape(count, size, heads).transpose(2, 0, 1)
        return y.reshape(count, heads, size).transpose(1, 0, 2)

    if wrong == "one head":
        joined = _attend((x @ w_q, x @ w_k, x @ w_v), "", causal=True)
        return np.asarray(joined @ w_o)
    parts = [split(x @ w) for w in (w_q, w_k, w_v)]
    if wrong == "full width":
        parts[0] = parts[0] / math.sqrt(heads)
    read = np.stack([_attend(part, wrong, causal=True) for part in zip(*parts, strict=True)])
    if wrong == "mixed heads":
        joined = read.reshape(count, width)
    elif wrong == "interleaved heads":
        joined = read.transpose(1, 2, 0).reshape(count, width)
    else:
        joined = read.transpose(1, 0, 2).reshape(count, width)
    return joined if wrong == "no output" else np.asarray(joined @ w_o)


def _sinusoidal(inputs: tuple[Any, ...], wrong: str) -> Numbers:
    length, width = inputs
    places = np.arange(length)[:, None] + (1.0 if wrong == "from one" else 0.0)
    pairs = np.arange(0, width, 2)
    exponent = pairs / width
    if wrong == "exponent":
        exponent = np.arange(width // 2) / width
    base = 10_000.0 if wrong != "base" else 1_000.0
    angles = places / base**exponent
    table = np.zeros((length, width))
    first, second = np.sin(angles), np.cos(angles)
    if wrong == "swapped":
        first, second = second, first
    if wrong == "halves":
        table[:, : width // 2], table[:, width // 2 :] = first, second
    else:
        table[:, 0::2], table[:, 1::2] = first, second
    return table


_POSITION_MISTAKES = {
    "from one": "positions are counted from 1; the first is 0",
    "exponent": "the exponent is i/d where it should be 2i/d: angles fall half as fast",
    "base": "the base is 1,000, not 10,000",
    "swapped": "sine and cosine are swapped: even dimensions are sines",
    "halves": "sines fill the first half and cosines the second; the paper alternates them "
    "(both are used, but not the same table)",
}


# What is tried for each kind


_SOFTMAX_MISTAKES = {
    "wrong axis": "it runs over the rows, not along them",
    "whole": "it runs over all numbers together, not along each row",
    "plain": "it is not divided by the sum of its row",
    "shares": "there is no exponential",
}


def _softmax(inputs: tuple[Any, ...], wrong: str) -> Numbers:
    (x,) = inputs
    if wrong == "whole":
        return softmax(x.reshape(-1)).reshape(x.shape)
    if wrong == "plain":
        return np.asarray(np.exp(x))
    if wrong == "shares":
        return np.asarray(x / x.sum(-1, keepdims=True))
    return softmax(x, axis=0 if wrong == "wrong axis" else -1)


def _check_softmax(tried: _Tried) -> list[LayerProperty]:
    return [_agreement(tried, _softmax, _SOFTMAX_MISTAKES), _safe(tried, _softmax)]


def _check_mask(tried: _Tried) -> list[LayerProperty]:
    output = tried(TIME)
    allowed = output.astype(bool) if output.dtype == bool else output == 0
    right = _causal(TIME)
    if output.shape != (TIME, TIME):
        reason = f"mask({TIME}) has shape {output.shape}, not ({TIME}, {TIME})"
        return [LayerProperty(name="shape", holds=False, reason=reason)]
    words = {
        "the mask is turned round: True (or 0) where a key comes after the query": right.T,
        "the mask hides each token from itself; t attends to s ≤ t": np.tril(right, -1),
        "the mask is one place too wide: each query sees the next token": np.tril(
            np.ones((TIME, TIME), dtype=bool), 1
        ),
        "everything may be seen": np.ones((TIME, TIME), dtype=bool),
        "True means “forbidden” here; in torch's attention it means “may attend”": ~right,
        "0 and 1 are exchanged: added to scores, 1 forbids nothing": (output == 1) == right
        if output.dtype != bool else np.zeros_like(right),
    }  # fmt: skip
    holds = bool(np.array_equal(allowed, right))
    if not holds:
        for sentence, wrong in words.items():
            if np.array_equal(allowed, wrong):
                tried.diagnosis = sentence
                break
        if output.dtype != bool and set(np.unique(output)) <= {0, 1}:
            tried.diagnosis = (
                "it holds numbers 0 and 1, which neither allow nor forbid: return booleans, "
                "or 0 and −∞ to be added to the scores"
            )
    different = np.argwhere(allowed != right)
    reason = "t attends to s ≤ t"
    if not holds:
        t, s = (int(one) for one in different[0])
        reason = f"query {t} and key {s}: {'allowed' if allowed[t, s] else 'forbidden'}"
    checks = [LayerProperty(name="causal", holds=holds, reason=reason)]
    if output.dtype != bool and holds:
        finite = bool(np.isfinite(output[~right]).any())
        lowest = float(output[~right].max())
        checks.append(
            LayerProperty(
                name="forbids for certain",
                holds=not finite,
                reason="forbidden pairs get −∞"
                if not finite
                else f"forbidden pairs get {lowest:g}: a score above {-lowest:g} overcomes it",
            )
        )
        if finite and not tried.diagnosis:
            tried.diagnosis = "a large negative number is not −∞; large scores overcome it"
    return checks


def _check_positions(tried: _Tried) -> list[LayerProperty]:
    return [_agreement(tried, _sinusoidal, _POSITION_MISTAKES)]


def _check_attention(tried: _Tried) -> list[LayerProperty]:
    causal = tried.kind == "causal_attention"
    mistakes = _ATTENTION_MISTAKES | (_MASK_MISTAKES if causal else _NOT_CAUSAL)
    work = partial(_attend, causal=causal)
    checks = [_agreement(tried, work, mistakes), _safe(tried, work)]
    if causal:
        checks.append(_causality(tried))
    if tried.library == "torch":
        checks.append(_gradient(tried, work))
    return checks


def _check_multi_head(tried: _Tried) -> list[LayerProperty]:
    mistakes = _HEAD_MISTAKES | _ATTENTION_MISTAKES | _MASK_MISTAKES
    return [
        _agreement(tried, _multi_head, mistakes),
        _safe(tried, _multi_head),
        _causality(tried),
    ]


def _check_block(tried: _Tried) -> list[LayerProperty]:
    (x,) = tried.inputs()
    output = tried(x)
    same = output.shape == x.shape
    checks = [
        LayerProperty(
            name="shape", holds=same, reason=f"({TIME}, {WIDTH}) gives {tuple(output.shape)}"
        )
    ]
    if not same:
        tried.diagnosis = "a block keeps the shape of the stream, so that blocks can be stacked"
        return checks
    checks += [_repeatable(tried), _causality(tried)]
    finite = bool(np.isfinite(tried(HUGE * x)).all())
    checks.append(
        LayerProperty(
            name="finite",
            holds=finite,
            reason=f"inputs {HUGE:g} times as large give "
            + ("numbers" if finite else "infinities or NaN"),
        )
    )
    if not finite and not tried.diagnosis:
        tried.diagnosis = "something overflows: is the largest score subtracted before exp?"
    return checks


def _agreement(tried: _Tried, work: Definition, mistakes: dict[str, str]) -> LayerProperty:
    """Compare with the definition on random inputs; where it differs, find the mistake."""
    cases = [tried.inputs(trial=trial) for trial in range(TRIALS)]
    outputs = [tried(*case) for case in cases]
    expected = [work(case, "") for case in cases]
    if outputs[0].shape != expected[0].shape:
        shape = f"gives shape {outputs[0].shape}, and {expected[0].shape} was expected"
        tried.diagnosis = (
            tried.diagnosis or "the axes of the output are not those of the definition"
        )
        return LayerProperty(name="agrees with the definition", holds=False, reason=shape)
    pairs = list(zip(outputs, expected, strict=True))
    agreeing = [tried.agrees(*pair) for pair in pairs]
    if all(agreeing):
        return LayerProperty(
            name="agrees with the definition",
            holds=True,
            reason=f"on random inputs of {TRIALS} sizes, to rounding",
        )
    for name, words in mistakes.items():
        wrong = [work(case, name) for case in cases]
        if all(tried.agrees(*pair) for pair in zip(outputs, wrong, strict=True)):
            tried.diagnosis = words
            break
    else:
        tried.diagnosis = "it differs in a way that none of the usual mistakes explains"
        if any(agreeing):
            tried.diagnosis = "it is right for some sizes only: is a size written as a number?"
    difference = max(float(np.abs(x - y).max()) for x, y in pairs)
    return LayerProperty(
        name="agrees with the definition",
        holds=False,
        reason=f"differs by up to {difference:.3g} on random inputs",
    )


def _safe(tried: _Tried, work: Definition) -> LayerProperty:
    """Try scores that overflow a softmax without its largest score subtracted."""
    inputs = tried.inputs(HUGE if tried.kind == "softmax" else math.sqrt(HUGE))
    with np.errstate(all="ignore"):
        output = tried(*inputs)
    finite = bool(np.isfinite(output).all())
    holds = finite and tried.agrees(output, work(inputs, ""))
    if not finite:
        reason = f"scores of about {HUGE:g} give NaN or infinity"
        tried.diagnosis = tried.diagnosis or (
            "exp overflows: subtract the largest score of each row before it"
        )
    elif holds:
        reason = f"right for scores of about {HUGE:g}"
    else:
        reason = f"finite, but wrong, for scores of about {HUGE:g}"
    return LayerProperty(name="numerically safe", holds=holds, reason=reason)


def _causality(tried: _Tried) -> LayerProperty:
    """Change the last token: nothing before it may move."""
    inputs = list(tried.inputs())
    before = tried(*inputs)
    last = 3 if tried.kind == "causal_attention" else 1
    changed = [one.copy() if i < last else one for i, one in enumerate(inputs)]
    for one in changed[:last]:
        one[-1] += 1.0
    after = tried(*changed)
    moved = np.abs(after[:-1] - before[:-1]).max(axis=-1)
    holds = bool((moved <= 1e-6).all())
    reason = "changing the last token changes nothing before it"
    if not holds:
        reason = f"changing token {TIME - 1} changes the output at token {int(moved.argmax())}"
        tried.diagnosis = tried.diagnosis or "the future is seen: a causal mask is missing or wrong"
    return LayerProperty(name="causal", holds=holds, reason=reason)


def _repeatable(tried: _Tried) -> LayerProperty:
    (x,) = tried.inputs()
    holds = bool(np.array_equal(tried(x), tried(x), equal_nan=True))
    if not holds:
        tried.diagnosis = "two calls differ: is dropout on? Call .eval() first"
    reason = "two calls give the same" if holds else "two calls with one input differ"
    return LayerProperty(name="repeatable", holds=holds, reason=reason)


_DETACHED = "no gradient flows: a tensor is detached on the way"


def _gradient(tried: _Tried, work: Definition) -> LayerProperty:
    """Compare the gradients of queries, keys and values with differences of the definition."""
    import torch

    inputs = tried.inputs()
    tensors = [torch.tensor(one, requires_grad=True) for one in inputs]
    result = tried.function(*tensors)
    result = result[0] if isinstance(result, tuple) else result
    if not result.requires_grad:
        tried.diagnosis = tried.diagnosis or _DETACHED
        return LayerProperty(name="gradient", holds=False, reason="the output has no gradient")
    weights = np.cos(np.arange(result.numel())).reshape(tuple(result.shape))
    (result * torch.tensor(weights)).sum().backward()
    step, largest = 1e-6, 0.0
    for number, tensor in enumerate(tensors):
        if tensor.grad is None:
            tried.diagnosis = (
                tried.diagnosis or "no gradient flows: a tensor is detached on the way"
            )
            name = _PARAMETERS[tried.kind][number]
            return LayerProperty(name="gradient", holds=False, reason=f"{name} gets no gradient")
        direction = np.sin(1.0 + np.arange(tensor.numel())).reshape(tuple(tensor.shape))
        moved = [
            [one + sign * step * direction if i == number else one for i, one in enumerate(inputs)]
            for sign in (1, -1)
        ]
        above, below = (float((work(tuple(one), "") * weights).sum()) for one in moved)
        slope = float((tensor.grad.numpy() * direction).sum())
        largest = max(largest, abs(slope - (above - below) / (2 * step)))
    holds = largest < 1e-5
    reason = "as the definition's, by differences" if holds else f"differs by {largest:.3g}"
    return LayerProperty(name="gradient", holds=holds, reason=reason)


_CHECKS: dict[str, Callable[[_Tried], list[LayerProperty]]] = {
    "softmax": _check_softmax,
    "mask": _check_mask,
    "positions": _check_positions,
    "attention": _check_attention,
    "causal_attention": _check_attention,
    "multi_head": _check_multi_head,
    "block": _check_block,
}
