"""What happened inside a forward pass, layer by layer.

Fast kernels hide the attention weights. The layers hand the very queries, keys and values that
they gave to the kernel to a notebook; the weights are then computed from these by room
`attention`, in float64. There is no second forward pass that could drift from the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heedful.attention import softmax
from heedful.model.sight import Sight
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerTrace(Record):
    """One layer of a traced pass."""

    queries: Float[Tensor, "batch heads time width"]
    """After query norm and rotation, as the kernel saw them."""
    keys: Float[Tensor, "batch kv_heads keys width"]
    """The same for the keys; head h reads key-value head h // (heads / kv heads)."""
    values: Float[Tensor, "batch kv_heads keys width"]
    """What the heads average."""
    weights: Float[Tensor, "batch heads time keys"]
    """α in float64: how each query spreads its reading."""
    head_outputs: Float[Tensor, "batch heads time width"]
    """c = Σ α v of each head, from the kernel itself."""
    attended: Float[Tensor, "batch time stream"]
    """What attention adds to the residual stream."""
    middle: Float[Tensor, "batch time stream"]
    """The stream after attention."""
    transformed: Float[Tensor, "batch time stream"]
    """What the feed-forward part adds."""
    after: Float[Tensor, "batch time stream"]
    """The stream after the layer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(Record):
    """A forward pass with its insides."""

    embedded: Float[Tensor, "batch time stream"]
    """The stream before the first layer."""
    layers: tuple[LayerTrace, ...]
    """From the first layer to the last."""
    logits: Float[Tensor, "batch time vocabulary"]
    """Bit for bit those of an untraced pass."""


class Notes:
    """A notebook in which the layers write what they compute."""

    def __init__(self) -> None:
        self.embedded: Tensor | None = None
        self.sight: Sight | None = None
        self.pages: list[dict[str, Tensor]] = []
        self._page: dict[str, Tensor] = {}

    def write(self, **tensors: Tensor) -> None:
        """Note tensors of the layer that is running."""
        self._page.update(tensors)

    def turn_page(self) -> None:
        """Begin the next layer."""
        self.pages.append(self._page)
        self._page = {}


def attention_weights(
    queries: Float[Tensor, "batch heads time width"],
    keys: Float[Tensor, "batch kv_heads keys width"],
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Float[Tensor, "batch heads time keys"]:
    """Return softmax(qkᵀ/√d + bias) in float64, each head with the keys of its group."""
    group = queries.shape[1] // keys.shape[1]
    matched = keys.double().repeat_interleave(group, dim=1)
    logits = queries.double() @ matched.mT / math.sqrt(queries.shape[-1])
    if bias is not None:
        logits = logits + bias.double()
    weights: Tensor = softmax(logits, None if mask is None else mask.expand_as(logits))
    return weights
