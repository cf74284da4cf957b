"""Ways to tell a model where a token stands: sinusoidal, learned, rotary, ALiBi, none.

    Φ(t, 2i) = sin(t / base^(2i/d))     Φ(t, 2i+1) = cos(t / base^(2i/d))      sinusoidal
    (x_a, x_b) → (x_a cos tω − x_b sin tω, x_a sin tω + x_b cos tω)            rotary, a pair
    score(i, j) − m_h |i − j|,  m_h = 2^(−8h/H)                                ALiBi

The formulas are pure functions of arrays. What is made from nothing is NumPy; what is made from an
array keeps its library and precision, with angles worked out in float64.

A scheme is the way in which a decoder uses one of them, one class each. It may do three things.
Every pass of a decoder (training, cached steps, the reading of prompts, the compiled kernels) asks
the scheme of its config for them and knows no scheme by name:

    embedding_table   a vector for each position, added to the embeddings; computed or trained
    rotation          angles by which pairs of entries of queries and keys are rotated
    bias              a number for each head and distance, added to the attention logits

To add a scheme, write its class and put it into `AnyScheme`: configs, `heed positions`, the page
and the tables take their lists from `SCHEMES`. Angles and tables are made in float64 and rounded
by whoever uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of
from jaxtyping import Float
from pydantic import Field

from heedful.arrays import Array, number_of, one_of, real, whole
from heedful.errors import ConfigError, InputError
from heedful.settings import Settings

LAYOUTS = ("interleaved", "half")
"""Which two entries rotary turns together: (2i, 2i+1), or (i, i + d/2)."""
BASE = 10_000.0
MOST_POSITIONS = 1_000_000
"""The longest sequence that a study scans."""


def frequencies(width: int, base: float = BASE) -> Float[np.ndarray, " pairs"]:
    """Return ω_i = base^(−2i/d) for the d/2 pairs: radians a position turns pair i by.

    >>> frequencies(4)
    array([1.  , 0.01])
    """
    width, base = even("width", width), number_of("base", base, above=0)
    omega: np.ndarray = base ** (-np.arange(0, width, 2) / width)
    return omega


def angles(positions: Any, width: int, base: float = BASE) -> Float[np.ndarray, "t pairs"]:
    """Return t / base^(2i/d) for every position and pair."""
    places = whole_positions("positions", positions)
    width, base = even("width", width), number_of("base", base, above=0)
    turned: np.ndarray = places[:, None] / base ** (np.arange(0, width, 2) / width)
    return turned


def sinusoidal(positions: Any, width: int, base: float = BASE) -> Float[np.ndarray, "t d"]:
    """Return Φ: row t is the embedding of position t; a number T stands for 0 … T − 1.

    >>> sinusoidal(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]])
    """
    turned = angles(positions, width, base)
    table = np.empty((turned.shape[0], width))
    table[:, 0::2] = np.sin(turned)
    table[:, 1::2] = np.cos(turned)
    return table


def learned(table: Any, positions: Any) -> Array:
    """Return the rows of a learned table for these positions; beyond the table there is none."""
    table = real("table", table, rank=2)
    places = whole_positions("positions", positions)
    outside = places[(places < 0) | (places >= table.shape[0])]
    if outside.size:
        raise InputError(
            "positions",
            f"position {int(outside[0])} was never learned",
            expected=f"the table knows positions 0 to {table.shape[0] - 1}",
            hint="shorten the sequence, or use an encoding that is a formula",
        )
    xp = array_namespace(table)
    return xp.take(table, xp.asarray(places, device=device_of(table)), axis=0)


def none(positions: Any, width: int) -> Float[np.ndarray, "t d"]:
    """Return zeros: no position is told from another."""
    return np.zeros((len(whole_positions("positions", positions)), whole("width", width, 1)))


def rotary(
    x: Any, positions: Any = None, base: float = BASE, *, layout: str = "interleaved"
) -> Array:
    """Turn each pair of entries of x, (*batch, t, d), by the angle tω_i of its position.

    Scores of turned queries and keys depend on positions only through their difference.
    `layout` says which entries form a pair: "interleaved" (2i, 2i+1) as in the paper, or
    "half" (i, i + d/2) as in many checkpoints.

    >>> rotary([[1.0, 0.0], [1.0, 0.0]]).round(3)
    array([[1.   , 0.   ],
           [0.54 , 0.841]])
    """
    x = real("x", x)
    one_of("layout", layout, LAYOUTS)
    if x.ndim < 2:
        raise InputError("x", f"has shape {tuple(x.shape)}", expected="(*batch, t, d)")
    places = whole_positions("positions", x.shape[-2] if positions is None else positions)
    if len(places) != x.shape[-2]:
        raise InputError(
            "positions", f"names {len(places)}", expected=f"{x.shape[-2]}, one for each row of x"
        )
    turned = angles(places, even("width of x", x.shape[-1]), base)
    xp = array_namespace(x)
    cos, sin = (
        xp.asarray(part, dtype=x.dtype, device=device_of(x))
        for part in (np.cos(turned), np.sin(turned))
    )
    half = x.shape[-1] // 2
    if layout == "interleaved":
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., :half], x[..., half:]
    pair = (first * cos - second * sin, first * sin + second * cos)
    if layout == "half":
        return xp.concat(pair, axis=-1)
    return xp.reshape(xp.stack(pair, axis=-1), x.shape)


def alibi_slopes(heads: int) -> Float[np.ndarray, " heads"]:
    """Return how steeply each head prefers near positions: m_h = 2^(−8h/H), h = 1 … H.

    For a number of heads that is no power of two, as in the paper: the slopes of the next
    lower power, then every other slope of the next higher one.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    heads = whole("heads", heads, 1)
    lower = 1 << (heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * np.arange(1, lower + 1) / lower)
    between = 2.0 ** (-4.0 * np.arange(1, 2 * lower + 1) / lower)[0::2]
    return np.concatenate([slopes, between[: heads - lower]])


def alibi_bias(
    heads: int, queries: int, keys: int | None = None
) -> Float[np.ndarray, "heads queries keys"]:
    """Return −m_h |i − j|, to be added to the scores; the last query stands at the last key.

    >>> alibi_bias(1, 2)[0] * 256
    array([[ 0., -1.],
           [-1.,  0.]])
    """
    queries = whole("queries", queries, 1, MOST_POSITIONS)
    keys = whole("keys", queries if keys is None else keys, queries, MOST_POSITIONS)
    # With a cache there are fewer queries than keys: the queries are the last positions.
    places = np.arange(keys - queries, keys)
    bias: np.ndarray = alibi_scores(heads, np.abs(places[:, None] - np.arange(keys)).astype(float))
    return bias


def alibi_scores(heads: int, distances: Array) -> Array:
    """Return −m_h · distance for every head, (heads, *axes), in the precision of the distances."""
    xp = array_namespace(distances)
    slopes = xp.asarray(alibi_slopes(heads), dtype=distances.dtype, device=device_of(distances))
    return xp.reshape(slopes, (heads,) + (1,) * distances.ndim) * (0 - distances)


def even(name: str, value: Any) -> int:
    """Return a width that splits into pairs of sine and cosine."""
    width = whole(name, value, 2)
    if width % 2:
        raise InputError(
            name,
            f"is {width}, which is odd",
            expected="an even width was expected: sine and cosine come in pairs",
            hint=f"use {width + 1}",
        )
    return width


def whole_positions(name: str, value: Any) -> Any:
    """Return positions as a NumPy vector of int64; a number T stands for 0 … T − 1."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.arange(whole(name, value, 1, MOST_POSITIONS))
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(name, "is ragged", expected="one row of whole numbers") from None
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            name,
            f"is {array.dtype} of shape {array.shape}",
            expected="a length, or one row of whole positions, was expected",
        )
    return array.astype(np.int64)


# Schemes of a decoder ------------------------------------------------------------------------

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
