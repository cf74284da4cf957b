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

from heedful.attention.definitions import (
    ALTERNATIVES,
    BLOCK_MISTAKES,
    EMPTY_ROWS,
    HEAD_MISTAKES,
    HIDING,
    LOSS_MISTAKES,
    MASK_MISTAKES,
    NORM_MISTAKES,
    NOT_CAUSAL,
    POSITION_MISTAKES,
    SCORE_MISTAKES,
    SOFTMAX_MISTAKES,
    UNSAFE,
    Numbers,
    Part,
    Scale,
    Wrong,
    mask_of,
    normed,
    one_head,
    pre_norm_block,
    rows_softmax,
    several_heads,
    shifted_loss,
    sinusoidal_table,
    sublayers,
)
from heedful.errors import InputError
from heedful.records import Record

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
