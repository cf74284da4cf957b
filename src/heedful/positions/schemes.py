"""Position schemes: the ways in which a decoder is told where a token stands, one class each.

A scheme may do three things. Every pass of a decoder (training, cached steps, the reading of
prompts, the compiled kernels) asks the scheme of its config for them and knows no scheme by name:

    embedding_table   a vector for each position, added to the embeddings; computed or trained
    rotation          angles by which pairs of entries of queries and keys are rotated
    bias              a number for each head and distance, added to the attention logits

To add a scheme, write its class and put it into `AnyScheme`: configs, `heed positions`, the page
and the tables take their lists from `SCHEMES`. Angles and tables are made in float64 and rounded
by whoever uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float
from pydantic import Field

from heedful.arrays import Array
from heedful.errors import ConfigError
from heedful.positions.encodings import BASE, alibi_scores, angles, sinusoidal
from heedful.settings import Settings

Base = Annotated[float, Field(gt=1.0)]
Layout = Literal["interleaved", "half"]


class PairAngles(NamedTuple):
    """By how much each position rotates each pair of entries of a query or key."""

    angles: Float[np.ndarray, "t pairs"]
    """In radians. Fewer pairs than half the width leave the last entries as they are."""
    layout: Layout
    """Which entries form pair i of p: (2i, 2i+1), or (i, i + p)."""


class PositionScheme(Settings):
    """The base of all schemes; by itself it does nothing."""

    table: ClassVar[str | None] = "model.positions"

    kind: str
    """Its name in a config."""
    title: ClassVar[str]
    """Its name in a heading."""
    trained_table: ClassVar[bool] = False
    """Whether the table added to the embeddings is a parameter of the model."""

    def check(self, width: int, head_width: int) -> None:
        """Refuse the sizes of a model that the scheme cannot serve."""

    def embedding_table(self, length: int, width: int) -> Float[np.ndarray, "t width"] | None:
        """Return what is added to the embedding at each position; None: nothing computed."""
        return None

    def rotated_width(self, head_width: int) -> int:
        """Return how many entries of each query and key are rotated."""
        return 0

    def rotation(self, length: int, head_width: int) -> PairAngles | None:
        """Return the rotations of positions 0 … length − 1; None: queries stay as they are."""
        return None

    def bias(self, heads: int, distances: Array) -> Array | None:
        """Return what is added to the logits, (heads, *axes), at distances of shape (*axes).

        A distance is the query's position minus the key's: keys after the query have negative
        ones, and a causal mask hides them.
        """
        return None


class Sinusoidal(PositionScheme):
    """Fixed waves, added to the embeddings."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    title: ClassVar[str] = "Sinusoidal positions"
    base: Base = BASE
    """The longest wave is 2π times this."""

    def check(self, width: int, head_width: int) -> None:
        """Sine and cosine come in pairs."""
        if width % 2:
            raise ConfigError(
                "model.positions",
                f"sinusoidal positions come in pairs, and the width is {width}",
                hint="use an even width",
            )

    def embedding_table(self, length: int, width: int) -> Float[np.ndarray, "t width"]:
        """Return the waves of every position."""
        return sinusoidal(length, width, self.base)


class Learned(PositionScheme):
    """One trained vector for each position, added to the embeddings."""

    kind: Literal["learned"] = "learned"
    title: ClassVar[str] = "Learned positions"
    trained_table: ClassVar[bool] = True


class RotaryScheme(PositionScheme):
    """Queries and keys rotated by an angle that grows with the position."""

    base: Base = BASE
    """The slowest pair of dimensions turns once in about 2π times this."""
    layout: Layout = "interleaved"
    """Which dimensions turn together: (2i, 2i+1), the faster here; or (i, i + d/2)."""

    def check(self, width: int, head_width: int) -> None:
        """Rotations take pairs."""
        if self.rotated_width(head_width) % 2:
            raise ConfigError(
                "model.positions",
                f"rotary positions turn pairs, and a head has {head_width} dimensions",
                hint="use an even head_width",
            )

    def rotated_width(self, head_width: int) -> int:
        """Return the whole width of a head."""
        return head_width

    def rotation(self, length: int, head_width: int) -> PairAngles:
        """Return t / base^(2i/d) for every position and pair, d the rotated width."""
        turned = angles(length, self.rotated_width(head_width), self.base)
        return PairAngles(turned, self.layout)


class Rotary(RotaryScheme):
    """Queries and keys turned by an angle that grows with the position."""

    kind: Literal["rotary"] = "rotary"
    title: ClassVar[str] = "Rotary positions"


class PartialRotary(RotaryScheme):
    """Rotary on the first part of each head; the rest carries content without a position.

    GPT-NeoX, Phi and StableLM call the share `partial_rotary_factor`.
    """

    kind: Literal["partial_rotary"] = "partial_rotary"
    title: ClassVar[str] = "Partial rotary positions"
    share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.25
    """The share of each head's width that is rotated; rounded down to a whole number of pairs."""

    def check(self, width: int, head_width: int) -> None:
        """At least one pair must turn."""
        if not self.rotated_width(head_width):
            raise ConfigError(
                "model.positions.share",
                f"{self.share} of {head_width} dimensions is less than one pair",
                hint=f"use a share of at least {2 / head_width:.3g}, or wider heads",
            )

    def rotated_width(self, head_width: int) -> int:
        """Return the largest even width within the share."""
        return int(head_width * self.share) // 2 * 2


class Alibi(PositionScheme):
    """Logits lowered in proportion to the distance, by one slope a head."""

    kind: Literal["alibi"] = "alibi"
    title: ClassVar[str] = "ALiBi"

    def bias(self, heads: int, distances: Array) -> Array:
        """Return −m_h · distance."""
        return alibi_scores(heads, distances)


class NoPositions(PositionScheme):
    """Nothing: only the causal mask tells tokens apart."""

    kind: Literal["none"] = "none"
    title: ClassVar[str] = "No positions"


AnyScheme = Annotated[
    Sinusoidal | Learned | Rotary | PartialRotary | Alibi | NoPositions,
    Field(discriminator="kind"),
]
SCHEMES: dict[str, type[PositionScheme]] = {
    scheme.model_fields["kind"].default: scheme for scheme in get_args(get_args(AnyScheme)[0])
}
"""Every scheme by its name."""

if TYPE_CHECKING:
    SchemeKind = str
else:
    SchemeKind = Literal[tuple(SCHEMES)]
    """The name of a scheme, as a type that command line and page check."""
