"""Tokens that can never be the most likely one, whatever the model has read.

The output layer gives token i the logit w_i·h. The last norm decides which h there are:

    RMSNorm     h = g ⊙ y          ‖y‖ < √d                      all directions
    LayerNorm   h = g ⊙ y + b      ‖y‖ < √d and Σ y = 0          a ball in a hyperplane, shifted

so logit_i = a_i·y + c_i with a_i = g ⊙ w_i (for LayerNorm without its mean) and c_i = w_i·b (plus
the bias of the head, where a model has one). Token i can be the most likely iff some y in the
ball has a_i·y + c_i > a_l·y + c_l for every l ≠ i.

Where all c are equal, only the direction of y matters: the question is which rows a_i are corners
of their hull, and room `attention` certifies every answer. Otherwise the points (a_i, c_i) are
seen from the directions (y, 1) with ‖y‖ < √d:

    can      a y is found with a certified lead
    never    (a_i, c_i) is a combination of the others: no direction at all helps; or weights λ
             bound the best lead: √d ‖Σ λ_l (a_i − a_l)‖ + Σ λ_l (c_i − c_l) ≤ 0
    tie      another token has the same row: it gets the same logit, always
    open     neither was proved with the work allowed, or rounding leaves it open

"Can" says that the output layer allows it for some final state of the residual stream, not that
some text leads there; "never" holds for every text. Both hold for the weights as exact numbers.

The search in the ball (`best_in_ball`) climbs a concave function,

    lead(y) = min_l (a_j − a_l)·y + c_j − c_l        over ‖y‖ ≤ R

Its minimum is smoothed into −μ ln Σ exp(−·/μ) and climbed with accelerated steps, while μ falls.
Every y bounds the best lead from below. The weights λ of the smoothed minimum bound it from
above, since a minimum is at most any mean:

    lead(y) ≤ max over the ball of Σ λ_l (…) = R ‖Σ λ_l (a_j − a_l)‖ + Σ λ_l (c_j − c_l)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.attention.hull import Points, copyable, leads_of, rounding_of, separate
from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.progress import Step
from heedful.records import Record
from heedful.tokenization import Tokenizer

WORK = 1e12
"""Operations for tokens that need a search of their own: half a minute on two cores, or so."""
A_SEARCH = 400
"""Operations of a search for each number of the output layer, about."""
FEWEST = 16
"""Searches, whatever they take."""
SHOWN = 50
"""Tokens that are listed by name."""
INSIDE = 1.0 - 1e-6
"""How far a direction goes towards the surface of the open ball; covers rounding to float32."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenName(Record):
    """A token of the vocabulary."""

    id: int
    text: str
    """As the vocabulary writes it; empty for an id that the tokenizer does not use."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictable(Record):
    """Which tokens the output layer can make the most likely one."""

    vocabulary: int
    can: int
    """Proved: some final state makes it the most likely."""
    never: int
    """Proved: no final state does."""
    tie: int
    """Another token has the same row."""
    open: int
    """Not decided."""
    never_tokens: tuple[TokenName, ...]
    """The first of them."""
    tie_tokens: tuple[TokenName, ...]
    open_tokens: tuple[TokenName, ...]
    unused: int
    """Ids among `never` and `tie` that the tokenizer does not use."""
    geometry: str
    """What the final states are, in words."""
    stages: dict[str, int]
    """How many tokens each stage decided."""
    seconds: float
    statement: str
    """The finding in one sentence."""


@dataclass(frozen=True, eq=False)
class OutputLayer:
    """logit_i = a_i·y + c_i for y in the open ball of a radius."""

    a: Float[np.ndarray, "tokens width"]
    c: Float[np.ndarray, " tokens"]
    radius: float
    geometry: str

    @classmethod
    def of(cls, decoder: Decoder) -> OutputLayer:
        """Read the output layer and the last norm of a decoder, in float64."""
        head = decoder.embedding if decoder.head is None else decoder.head
        rows = head.weight.detach().double().numpy()
        norm = decoder.norm
        if norm is None:
            last = decoder.blocks[-1]
            assert isinstance(last, TransformerBlock)
            norm = last.feed_forward_norm
        assert isinstance(norm.weight, Tensor)
        a = rows * norm.weight.detach().double().numpy()
        c = np.zeros(len(rows))
        geometry = "RMSNorm: every direction of the final state is possible"
        if decoder.config.norm.kind == "layer":
            a = a - a.mean(axis=1, keepdims=True)
            geometry = "LayerNorm: final states have mean 0 before gain and shift"
            bias = getattr(norm, "bias", None)
            if bias is not None:
                c = rows @ bias.detach().double().numpy()
                geometry += "; the shift favours some tokens by a constant"
        return cls(a, c, math.sqrt(decoder.config.width), geometry)

    @property
    def level(self) -> bool:
        """Whether no token has an advantage in constants."""
        return bool((self.c == self.c[0]).all())


@dataclass(frozen=True, eq=False)
class Decided:
    """For each token, what was proved."""

    can: Bool[np.ndarray, " tokens"]
    never: Bool[np.ndarray, " tokens"]
    tie: Bool[np.ndarray, " tokens"]
    stages: dict[str, int]

    @property
    def open(self) -> Bool[np.ndarray, " tokens"]:
        """What was not."""
        return np.asarray(~(self.can | self.never | self.tie))


def predictable_tokens(
    decoder: Decoder,
    tokenizer: Tokenizer | None = None,
    *,
    work: float = WORK,
    progress: Step | None = None,
) -> Predictable:
    """Decide for each token whether it can ever be the most likely one."""
    began = time.perf_counter()
    layer = OutputLayer.of(decoder)
    decided = decide(layer, work=work, progress=progress)
    never, tie, left = (np.flatnonzero(part) for part in (decided.never, decided.tie, decided.open))
    names = [_name(tokenizer, int(token)) for token in np.concatenate([never, tie])]
    return Predictable(
        vocabulary=len(layer.a),
        can=int(decided.can.sum()),
        never=len(never),
        tie=len(tie),
        open=len(left),
        never_tokens=tuple(names[: min(SHOWN, len(never))]),
        tie_tokens=tuple(names[len(never) :][:SHOWN]),
        open_tokens=tuple(_name(tokenizer, int(token)) for token in left[:SHOWN]),
        unused=sum(name.text == "" for name in names),
        geometry=layer.geometry,
        stages=decided.stages,
        seconds=time.perf_counter() - began,
        statement=_statement(decided),
    )


def decide(layer: OutputLayer, *, work: float = WORK, progress: Step | None = None) -> Decided:
    """Prove for each token that it can be the most likely, or that it never is.

    As many tokens get a search of their own as the operations allow; those still waiting are open.
    """
    searches = max(int(work / (A_SEARCH * layer.a.size)), FEWEST)
    if layer.level:
        corners = copyable(layer.a, progress=progress, searches=searches)
        tie = _equal_to_another(layer.a)
        undecided = np.zeros(len(layer.a), dtype=bool)
        undecided[list(corners.undecided)] = True
        never = ~corners.copyable & ~undecided & ~tie
        return Decided(corners.copyable, never, tie, corners.stages)
    return _decide_lifted(layer, searches, progress)


def _decide_lifted(layer: OutputLayer, searches: int, progress: Step | None) -> Decided:
    """Decide where constants matter: points (a, c), directions (y, 1) with y in the ball."""
    count = len(layer.a)
    lifted = np.hstack([layer.a, layer.c[:, None]])
    lifted = lifted - lifted.mean(axis=0)
    size = float(np.abs(lifted).max()) or 1.0
    lifted /= size
    points, tie = Points.of(lifted), _equal_to_another(lifted)
    can = np.zeros(count, dtype=bool)
    stages: dict[str, int] = {"equal to another token": int(tie.sum())}
    for stage, aims in (("the row itself", lifted[:, :-1]), ("the row, whitened", None)):
        left = np.flatnonzero(~can & ~tie)
        directions = _whitened(lifted[:, :-1], left) if aims is None else aims[left]
        can[left] = leads_of(points, left, _on_the_ball(directions, layer.radius)).margin > 0
        stages[stage] = int(can[left].sum())
    never = np.zeros(count, dtype=bool)
    rounding = rounding_of(lifted)
    left = np.flatnonzero(~can & ~tie)
    for done, token in enumerate(left[:searches].tolist()):
        verdict = _one(lifted, token, layer.radius, rounding)
        can[token], never[token] = verdict == "can", verdict == "never"
        if progress is not None:
            progress(count - len(left) + done + 1, count)
    stages["a search of its own: can"] = int(can[left].sum())
    stages["a search of its own: never"] = int(never.sum())
    stages["open"] = int((~can & ~never & ~tie).sum())
    return Decided(can, never, tie, stages)


def _one(lifted: Float[np.ndarray, "n e"], token: int, radius: float, rounding: float) -> str:
    for steps in (60, 1_000):  # most are decided at once, the last few need patience
        search = best_in_ball(lifted[:, :-1], lifted[:, -1], token, radius, steps)
        if search.lead > 2 * rounding * (1 + radius):
            return "can"
        if search.bound < -2 * rounding * (1 + radius):
            return "never"
    outside = separate(lifted, lifted[token], without=token, rounding=rounding)
    return "never" if outside.verdict == "inside" else "open"


def _on_the_ball(directions: Float[np.ndarray, "m d"], radius: float) -> np.ndarray:
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    y = directions / np.maximum(norms, 1e-300) * radius * INSIDE
    return np.hstack([y, np.ones((len(y), 1))]).astype(np.float32)


def _whitened(
    rows: Float[np.ndarray, "n d"], chosen: Int[np.ndarray, " m"]
) -> Float[np.ndarray, "m d"]:
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    # The mean direction of a LayerNorm has no variance: it must not be blown up.
    inverse = np.where(values > 1e-8 * values[-1], 1 / np.maximum(values, 1e-300), 0.0)
    return np.asarray((rows[chosen] @ vectors * inverse) @ vectors.T)


def _equal_to_another(rows: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
    _, inverse, counts = np.unique(rows + 0.0, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.reshape(-1)] > 1)


def _name(tokenizer: Tokenizer | None, token: int) -> TokenName:
    return TokenName(id=token, text=(tokenizer.token(token) or "") if tokenizer else "")


def _statement(decided: Decided) -> str:
    count = len(decided.can)
    if bool(decided.can.all()):
        return f"every one of the {count:,} tokens can be the most likely one: proved"
    parts = [f"{int(decided.can.sum()):,} of {count:,} tokens can be the most likely one"]
    if decided.never.any():
        parts.append(f"{int(decided.never.sum()):,} never can")
    if decided.tie.any():
        parts.append(f"{int(decided.tie.sum()):,} can at most tie with a token of the same row")
    if decided.open.any():
        parts.append(f"{int(decided.open.sum()):,} are open")
    return "; ".join(parts)


ROUNDS, STEPS = 10, 60
"""How often μ falls, and steps for each."""


class BallSearch(NamedTuple):
    """Both bounds of the best lead."""

    y: Float[np.ndarray, " d"]
    lead: float
    """What y gives."""
    bound: float
    """No y in the ball gives more."""


def best_in_ball(
    a: Float[np.ndarray, "n d"],
    c: Float[np.ndarray, " n"],
    own: int,
    radius: float,
    steps: int = STEPS,
) -> BallSearch:
    """Return the best y found for one point, and a bound for all y.

    It stops as soon as the sign of the best lead is known.

    >>> search = best_in_ball(np.array([[1.0], [-1.0]]), np.array([0.0, 1.5]), 0, 1.0)
    >>> round(search.lead, 3), search.bound >= search.lead
    (0.5, True)
    """
    rows = np.delete(a[own] - a, own, axis=0)
    constants = np.delete(c[own] - c, own)
    size = max(float(np.linalg.norm(rows, axis=1).max()), 1e-300) * radius
    y = rows.mean(axis=0)
    y = y / max(float(np.linalg.norm(y)), 1e-300) * radius
    best, lead, bound = y, -np.inf, np.inf
    for number in range(ROUNDS):
        mu = size * 0.1 / 3**number
        step = mu / (size / radius) ** 2
        ahead, momentum = y, 1.0
        for _ in range(steps):
            leads = rows @ ahead + constants
            lowest = float(leads.min())
            if lowest > lead:
                best, lead = ahead, lowest
            weights = np.exp((lowest - leads) / mu)
            weights /= weights.sum()
            pull = weights @ rows
            bound = min(bound, radius * float(np.linalg.norm(pull)) + float(weights @ constants))
            if lead > 0 or bound < 0:
                return BallSearch(best, lead, bound)
            after = _within(ahead + step * pull, radius)
            faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = _within(after + (momentum - 1) / faster * (after - y), radius)
            y, momentum = after, faster
    return BallSearch(best, lead, bound)


def _within(y: Float[np.ndarray, " d"], radius: float) -> Float[np.ndarray, " d"]:
    length = float(np.linalg.norm(y))
    return y if length <= radius else y / length * radius
