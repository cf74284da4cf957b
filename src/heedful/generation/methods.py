"""How the next token is chosen: one frozen group of settings for each method."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat, PositiveInt

from heedful.errors import ConfigError
from heedful.model.settings import Settings

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
                way_out=f"use {self.nbest} beams or more",
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
