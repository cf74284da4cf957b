"""How the next token is chosen: the settings of each method, the filters of sampling, results.

Filters take logits and return logits, −∞ for what is cut. Each renormalises what it gets, and
always keeps the likeliest token:

    temperature   z / T
    top-k         z_i ≥ the k-th largest z (ties stay)
    top-p         cut the least likely tokens whose probabilities sum to at most 1 − p
    min-p         p_i ≥ min_p · max p
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from pydantic import Field, FiniteFloat, PositiveInt
from torch import Tensor

from heedful.errors import ConfigError, RunError
from heedful.records import Record
from heedful.settings import Settings

DEFAULT_TOKENS = 128
"""New tokens when no number is asked for, where the context has room for them."""


class Greedy(Settings):
    """Always the likeliest token."""

    kind: Literal["greedy"] = "greedy"


GREEDY = Greedy()


class Sampling(Settings):
    """A token at random, each as often as the model says, after the filters.

    The filters work in the order of their fields, each on what the one before left over.
    """

    kind: Literal["sampling"] = "sampling"
    temperature: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    """Divides the logits: below 1 likely tokens gain, above 1 they lose."""
    top_k: PositiveInt | None = None
    """Keep this many of the likeliest tokens."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Keep the fewest likeliest tokens that together have this probability."""
    min_p: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Keep tokens at least this many times as likely as the likeliest one."""
    samples: PositiveInt = 1
    """Independent continuations of each prompt."""
    seed: Annotated[int, Field(ge=0)] = 0
    """The same seed, prompts and settings give the same tokens."""


class Beams(Settings):
    """The likeliest continuations that a search over several at once finds.

    A continuation of n tokens scores Σ log p / n^length_penalty.
    """

    kind: Literal["beams"] = "beams"
    beams: PositiveInt = 4
    """Continuations followed at the same time."""
    nbest: PositiveInt = 1
    """How many are returned, best first; at most as many as there are beams."""
    length_penalty: FiniteFloat = 1.0
    """0 compares sums of log-probabilities, which favours short texts; 1 their means."""
    early_stopping: Literal[True, False, "never"] = False
    """When to stop with as many ended continuations as beams. True: at once. False: when the
    best running one, scored as if it ended now, is below all of them. "never": when it could
    not get above the worst of them at any length allowed."""

    def model_post_init(self, _context: object) -> None:
        """Check the counts against one another."""
        if self.nbest > self.beams:
            raise ConfigError(
                "Beams.nbest",
                f"is {self.nbest}",
                expected=f"at most one for each of the {self.beams} beams",
                hint=f"use {self.nbest} beams or more",
            )


Method: TypeAlias = Greedy | Sampling | Beams
"""One way to continue a text."""


class Stops(Settings):
    """Where a continuation ends; the context of the model is always an end."""

    tokens: PositiveInt | None = None
    """Most new tokens; more than the context has room for are refused. None: 128, or as many
    as there is room for."""
    ends: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Ids that end a text; the end itself is the last token."""
    suppressed: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Ids that never come, as the `suppress_tokens` of `transformers`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Continuation(Record):
    """One way in which a prompt goes on."""

    tokens: tuple[int, ...]
    """New tokens; the last one is an end if `finished`."""
    log_probabilities: tuple[float, ...]
    """Of each new token under the model itself: temperature 1, nothing filtered."""
    score: float
    """Their sum; from beam search, divided by length^length_penalty."""
    finished: bool
    """Whether it ended by itself; else the limit of tokens cut it off."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationResult(Record):
    """The continuations of every prompt."""

    method: dict[str, Any]
    """How tokens were chosen, with every setting."""
    limit: int
    """New tokens that each continuation could have at most."""
    precision: str
    """How the weights were kept: float32 (as they are) or int8."""
    prompts: tuple[tuple[int, ...], ...]
    """The token ids that were continued."""
    continuations: tuple[tuple[Continuation, ...], ...]
    """For each prompt its continuations: beams best first, samples in the order drawn."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Step(Record):
    """One new token for each row that still runs."""

    rows: tuple[int, ...]
    """Which rows: prompt 0 with its samples first, then prompt 1, …"""
    tokens: tuple[int, ...]
    """The new token of each."""
    log_probabilities: tuple[float, ...]
    """Its log-probability under the model itself."""
    finished: tuple[bool, ...]
    """Whether the row has come to its end with it."""


Logits = Float[Tensor, "rows vocabulary"]


def log_probabilities(logits: Logits) -> Logits:
    """Return log softmax of the logits, or say that they are no numbers."""
    own = logits.log_softmax(dim=-1)
    # A NaN or +∞ anywhere makes its whole row NaN, so that one column tells.
    if bool(own[:, 0].isnan().any()):
        raise RunError(
            "generation",
            "the model's logits are not finite",
            expected="numbers were expected",
            hint="check the weights with: heed model verify PATH",
        )
    return own


def without(logits: Logits, suppressed: Iterable[int]) -> Logits:
    """Make some tokens impossible; the others keep their numbers.

    >>> without(torch.tensor([[0.0, 1.0, 2.0]]), {2})
    tensor([[0., 1., -inf]])
    """
    places = torch.tensor(sorted(suppressed), dtype=torch.long, device=logits.device)
    return logits.index_fill(-1, places, -math.inf) if len(places) else logits


def filtered(logits: Logits, sampling: Sampling) -> Logits:
    """Return the logits from which a token is drawn.

    >>> logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> filtered(logits, Sampling(temperature=0.5, top_k=2))
    tensor([[-inf, -inf, 4., 6.]])
    """
    if sampling.temperature != 1.0:
        logits = logits / sampling.temperature
    if sampling.top_k is not None:
        logits = top_k(logits, sampling.top_k)
    if sampling.top_p < 1.0:
        logits = top_p(logits, sampling.top_p)
    if sampling.min_p > 0.0:
        logits = min_p(logits, sampling.min_p)
    return logits


def top_k(logits: Logits, k: int) -> Logits:
    """Cut everything below the k-th largest logit."""
    k = min(k, logits.shape[-1])
    least = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < least, -math.inf)


def top_p(logits: Logits, p: float) -> Logits:
    """Cut the tail: the least likely tokens that sum to at most 1 − p."""
    ascending, order = logits.sort(dim=-1)
    cut = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
    cut[:, -1] = False
    return logits.masked_fill(cut.scatter(-1, order, cut), -math.inf)


def min_p(logits: Logits, share: float) -> Logits:
    """Cut tokens less likely than this share of the likeliest one."""
    probabilities = logits.softmax(dim=-1)
    largest = probabilities.amax(dim=-1, keepdim=True)
    cut = (probabilities < share * largest) & (probabilities < largest)
    return logits.masked_fill(cut, -math.inf)


def draw(logits: Logits, uniform: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """Return the token at the quantile `uniform` (0 ≤ u < 1) of each row's distribution.

    One number a row and step decides, so that a row's tokens depend on nothing but its own
    logits and its own numbers.
    """
    distribution = logits.double().softmax(dim=-1).cumsum(dim=-1)
    total = distribution[:, -1:]
    # Rounding must not carry the target past the last token that has any probability.
    target = torch.minimum(uniform.view(-1, 1) * total, total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(distribution, target, right=True).squeeze(1)
