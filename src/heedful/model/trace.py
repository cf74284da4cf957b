"""What happened inside a forward pass, layer by layer.

Fast kernels hide the attention weights. The layers hand a recorder the very queries, keys and
values that they gave to the kernel; the weights are then computed from these by room `attention`,
in float64. There is no second forward pass that could drift from the first.

A recorder may pass each layer on as soon as it is complete and keep none: then a long text
through a large model needs the memory of one layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention import softmax
from heedful.model.masks import AttentionMask
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
    mask: Tensor | None
    """True means "may attend"; broadcasts to the weights. None: everything is seen."""
    bias: Tensor | None
    """What the position scheme adds to the logits, as ALiBi does; None: nothing."""

    def weights_of(
        self, keys: Float[Tensor, "batch kv_heads keys width"], dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "batch heads time keys"]:
        """Return the α that these queries would give to other keys in the place of their own."""
        return attention_weights(self.queries, keys, self.bias, self.mask, dtype)

    @classmethod
    def of(cls, recorded: dict[str, Tensor], mask: AttentionMask) -> LayerTrace:
        """Return what a layer recorded, with the weights that follow from it.

        Weights are recorded only where an intervention changed them.
        """
        queries = recorded["queries"]
        allowed = mask.written_out(queries.shape[2], queries.device)
        if "weights" not in recorded:
            weights = attention_weights(queries, recorded["keys"], mask.bias, allowed)
            recorded = {**recorded, "weights": weights}
        return cls(mask=allowed, bias=mask.bias, **recorded)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(Record):
    """A forward pass with its insides."""

    embedded: Float[Tensor, "batch time stream"]
    """The stream before the first layer."""
    layers: tuple[LayerTrace, ...]
    """From the first layer to the last."""
    logits: Float[Tensor, "batch time vocabulary"]
    """Bit for bit those of an untraced pass."""


Visit = Callable[[int, LayerTrace], None]
"""Gets the number of a layer and what happened in it, while the pass goes on."""


class TraceRecorder:
    """Receives what the layers compute during a forward pass.

    With a `visit`, each layer is passed to it and not kept. With `keep`, only tensors of these
    names are recorded.
    """

    changes_weights = False
    """Whether the layer that is running must compute its weights before it reads."""

    def __init__(self, visit: Visit | None = None, *, keep: Collection[str] | None = None) -> None:
        self.embedded: Tensor | None = None
        """The stream before the first layer."""
        self.mask: AttentionMask | None = None
        self.layers: list[dict[str, Tensor]] = []
        """The tensors of each layer by name, without a `visit`."""
        self._layer: dict[str, Tensor] = {}
        self._visit, self._visited = visit, 0
        self._keep = keep

    def begin(self, embedded: Tensor, mask: AttentionMask, first: int) -> Tensor:
        """Note the stream before the first layer, whose first token is number `first`."""
        self.embedded, self.mask = self.change("embedded", embedded), mask
        return self.embedded

    def change(self, place: str, tensor: Tensor) -> Tensor:
        """Return a tensor as the pass should go on with it; a recorder changes nothing."""
        return tensor

    def record(self, **tensors: Tensor) -> None:
        """Keep tensors of the layer that is running."""
        keep = tensors.keys() if self._keep is None else self._keep
        self._layer.update({name: tensor for name, tensor in tensors.items() if name in keep})

    def end_layer(self) -> None:
        """Complete the layer that is running."""
        if self._visit is None:
            self.layers.append(self._layer)
        else:
            assert self.mask is not None
            self._visit(self._visited, LayerTrace.of(self._layer, self.mask))
            self._visited += 1
        self._layer = {}


def attention_weights(
    queries: Float[Tensor, "batch heads time width"],
    keys: Float[Tensor, "batch kv_heads keys width"],
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "batch heads time keys"]:
    """Return softmax(qkᵀ/√d + bias) in float64, each head with the keys of its group."""
    batch, kv_heads = keys.shape[:2]
    grouped = queries.to(dtype).reshape(batch, kv_heads, -1, *queries.shape[2:])
    logits = (grouped @ keys.to(dtype).unsqueeze(2).mT).flatten(1, 2)
    logits = logits / math.sqrt(queries.shape[-1])
    if bias is not None:
        logits = logits + bias.to(dtype)
    if mask is not None:
        # Every token sees itself, so no row is empty, and e^−∞ = 0 saves a pass for the mask.
        logits = logits.masked_fill(~mask, -torch.inf)
    weights: Tensor = softmax(logits)
    return weights
