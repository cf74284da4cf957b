"""What a decoder is made of: small parts, composed into one frozen, validated config.

    DecoderConfig
    ├── attention     heads, key-value heads, biases, query-key norm
    ├── feed_forward  hidden width, activation, biases
    ├── norm          LayerNorm or RMSNorm, before or after each part
    ├── positions     a scheme of `heedful.positions.encodings`: learned, rotary, …
    └── dropout       where, and how much

Sizes are checked against one another when the config is made, so that a decoder that can be
described can also be built.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from heedful.errors import ConfigError
from heedful.positions.encodings import AnyScheme, Learned, Rotary
from heedful.settings import Settings

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


def head_name(layer: int, head: int) -> str:
    """Return what a head of a model is called: in the report, on the page, and in the terminal.

    Layers and heads are counted from 0.

    >>> head_name(1, 4)
    '1.4'
    """
    return f"{layer}.{head}"


class Attention(Settings):
    """How tokens read one another."""

    table: ClassVar[str | None] = "model.attention"

    heads: PositiveInt = 8
    """Heads, each with its own queries."""
    kv_heads: PositiveInt | None = None
    """Heads of keys and values; each serves heads/kv_heads queries. None: one for each head."""
    head_width: PositiveInt | None = None
    """Dimension of a query. None: the width of the model, split over the heads."""
    qkv_bias: bool = False
    """Whether queries, keys and values have a bias."""
    output_bias: bool = False
    """Whether the projection back to the residual stream has one."""
    qk_norm: bool = False
    """Whether each query and key is scaled to unit root mean square (then by learned gains)."""


class FeedForward(Settings):
    """What is done to each token by itself."""

    table: ClassVar[str | None] = "model.feed_forward"

    activation: Literal["gelu", "gelu_tanh", "relu", "swiglu"] = "gelu"
    """`gelu_tanh` is the approximation of GPT-2; `swiglu` gates one half by the other."""
    width: PositiveInt | None = None
    """Hidden width. None: four times the width of the model."""
    bias: bool = False
    """Whether its linear maps have a bias."""


class Norm(Settings):
    """How the residual stream is scaled."""

    table: ClassVar[str | None] = "model.norm"

    kind: Literal["layer", "rms"] = "layer"
    """LayerNorm (mean 0, variance 1) or RMSNorm (mean square 1)."""
    eps: PositiveFloat = 1e-5
    """Added to the variance or the mean square."""
    placement: Literal["pre", "post"] = "pre"
    """Before each part (and once at the end), or after each sum."""
    bias: bool = True
    """Whether a LayerNorm shifts as well as scales; an RMSNorm never does."""


class Dropout(Settings):
    """Share of entries set to 0 in training."""

    table: ClassVar[str | None] = "model.dropout"

    embedding: Probability = 0.0
    """Of what enters the first block."""
    attention: Probability = 0.0
    """Of the attention weights."""
    residual: Probability = 0.0
    """Of what each part adds to the residual stream."""


class DecoderConfig(Settings):
    """Everything needed to rebuild a decoder; saved with every checkpoint.

    >>> DecoderConfig(vocabulary=256, context=128, width=256, layers=4).head_width
    32
    """

    table: ClassVar[str | None] = "model"

    vocabulary: PositiveInt
    """Number of token ids."""
    context: PositiveInt
    """Longest sequence."""
    width: PositiveInt
    """Size of the residual stream."""
    layers: PositiveInt
    """Number of blocks."""
    attention: Attention = Attention()
    feed_forward: FeedForward = FeedForward()
    norm: Norm = Norm()
    positions: AnyScheme = Learned()
    dropout: Dropout = Dropout()
    tied: bool = True
    """Whether the output layer is the embedding, transposed."""
    embedding_scale: PositiveFloat = 1.0
    """Multiplies the token embeddings (√width in the original Transformer)."""
    initial_std: PositiveFloat = 0.02
    """Standard deviation of new weights; those that end in the residual stream get less."""

    def model_post_init(self, _context: object) -> None:
        """Check the sizes against one another."""
        heads, kv_heads = self.attention.heads, self.kv_heads
        if self.attention.head_width is None and self.width % heads:
            raise ConfigError(
                "model.width",
                f"{self.width} cannot be split into {heads} heads",
                hint=f"use a width of {max(self.width // heads, 1) * heads}, another number "
                "of heads, or set attention.head_width",
            )
        if heads % kv_heads:
            raise ConfigError(
                "model.attention.kv_heads",
                f"{heads} heads cannot share {kv_heads} key-value heads evenly",
                hint="use a divisor of the number of heads",
            )
        self.positions.check(self.width, self.head_width)

    def explicit(self) -> DecoderConfig:
        """Return the same config with every default that depends on another size written out."""
        attention = self.attention.changed(kv_heads=self.kv_heads, head_width=self.head_width)
        norm = self.norm.changed(bias=False) if self.norm.kind == "rms" else self.norm
        feed_forward = self.feed_forward.changed(width=self.hidden_width)
        return self.changed(attention=attention, norm=norm, feed_forward=feed_forward)

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.attention.kv_heads or self.attention.heads

    @property
    def head_width(self) -> int:
        """Dimension of one query, key or value."""
        return self.attention.head_width or self.width // self.attention.heads

    @property
    def query_width(self) -> int:
        """Dimension of all queries of a token together."""
        return self.attention.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """Dimension of all keys (or values) of a token together."""
        return self.kv_heads * self.head_width

    @property
    def hidden_width(self) -> int:
        """Hidden width of the feed-forward part."""
        return self.feed_forward.width or 4 * self.width


def _gpt2(vocabulary: int, context: int, width: int, layers: int, heads: int) -> DecoderConfig:
    return DecoderConfig(
        vocabulary=vocabulary,
        context=context,
        width=width,
        layers=layers,
        attention=Attention(heads=heads, qkv_bias=True, output_bias=True),
        feed_forward=FeedForward(activation="gelu_tanh", bias=True),
        norm=Norm(kind="layer", eps=1e-5),
        positions=Learned(),
    )


def _llama(
    vocabulary: int, context: int, width: int, layers: int, heads: int, kv_heads: int, hidden: int
) -> DecoderConfig:
    return DecoderConfig(
        vocabulary=vocabulary,
        context=context,
        width=width,
        layers=layers,
        attention=Attention(heads=heads, kv_heads=kv_heads),
        feed_forward=FeedForward(activation="swiglu", width=hidden),
        norm=Norm(kind="rms", eps=1e-5),
        positions=Rotary(),
    )


PRESETS: dict[str, DecoderConfig] = {
    "a5": _gpt2(256, 128, 256, 4, 8),
    "tiny": _llama(256, 128, 64, 2, 4, 2, 176),
    "small": _llama(8_000, 256, 512, 6, 8, 8, 1_408),
    "llama": _llama(32_000, 1_024, 288, 6, 6, 6, 768),
    "gpt2": _gpt2(50_257, 1_024, 768, 12, 12),
    "smollm2": _llama(49_152, 8_192, 576, 30, 9, 3, 1_536).changed(positions=Rotary(base=100_000)),
}
"""`a5`: the character model of the course, 4 layers of 8 heads, 256 wide. `tiny` and `small`:
Llama-like, for experiments in seconds and in minutes. `llama`: the 15-million-parameter shape
of story tellers. `gpt2` and `smollm2`: the shapes of the published models."""


def preset(name: str, **changes: Any) -> DecoderConfig:
    """Return a named config, with some settings replaced.

    >>> preset("a5", vocabulary=300).layers
    4
    """
    if name not in PRESETS:
        raise ConfigError(
            "preset", f"there is none called {name!r}", expected=f"one of {', '.join(PRESETS)}"
        )
    return PRESETS[name].changed(**changes) if changes else PRESETS[name]
