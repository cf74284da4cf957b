"""The products of a decoding step, y = W x + b, each in the way that its number of rows wants.

One row reads every weight once and computes little: the speed is that of memory. Libraries
have a kernel for "matrix times vector" which often keeps a single core busy; the same matrix
cut into blocks of rows is a batch of small products, which all cores share. It needs no copy.

Many rows compute more than they read: there the weights are packed once into the order in
which oneDNN's kernels read them, where torch was built with it.

`int8` is a choice of its own: each row of W is rounded to 8-bit numbers with one scale, and
the inputs on their way in. It is faster and no longer exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from heedful.errors import InputError
from heedful.model.blocks import ACTIVATIONS

Precision = Literal["float32", "int8"]
"""How weights are kept: as they are, or rounded to 8 bits."""
Map: TypeAlias = Callable[[Tensor], Tensor]
"""From (rows, inputs) to (rows, outputs)."""
Sum: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From (rows, inputs) and (rows, outputs) to (rows, outputs)."""
ONEDNN_NAMES = {
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
    "swiglu": ("swish", ""),
}
"""What oneDNN calls an activation, and its kind."""
BLOCKS = 8
"""Into how many products a matrix is cut for one row; two already use two cores."""


def product(weight: Tensor, bias: Tensor | None, precision: Precision = "float32") -> Map:
    """Return x ↦ x Wᵀ + b for W of shape (outputs, inputs), as it is now.

    >>> double = product(torch.eye(3) * 2, None)
    >>> double(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 4., 6.]])
    """
    weight = weight.detach().contiguous()
    bias = None if bias is None else bias.detach()
    if precision == "int8":
        return _rounded(weight, bias)
    by_blocks, many = _in_blocks(weight, bias), None

    def apply(x: Tensor) -> Tensor:
        nonlocal many
        if x.shape[0] == 1:
            return by_blocks(x)
        if many is None:  # packing copies the weights: only when it is needed
            many = _packed(weight, bias)
        return many(x)

    return apply


def activated(
    weight: Tensor, bias: Tensor | None, activation: str, precision: Precision = "float32"
) -> Map:
    """Return x ↦ the inner vector of a feed-forward layer: a(x Wᵀ + b), or a(g) · v.

    With many rows, oneDNN applies the activation on the way out of the product, so that the
    inner vectors, the largest of a layer, are written once.

    >>> activated(torch.eye(2), None, "relu")(torch.tensor([[1.0, -2.0]]))
    tensor([[1., 0.]])
    """
    plain, function = product(weight, bias, precision), ACTIVATIONS[activation]
    gated = activation == "swiglu"
    fused: Map | None = None

    def apply(x: Tensor) -> Tensor:
        nonlocal fused
        if x.shape[0] > 1 and precision == "float32" and _can_pack(weight):
            if fused is None:
                fused = _fused(weight.detach(), bias, activation)
            return fused(x)
        inner = plain(x)
        if not gated:
            return function(inner)
        gate, value = inner.chunk(2, dim=-1)
        return function(gate).mul_(value)

    return apply


def added(weight: Tensor, bias: Tensor | None, precision: Precision = "float32") -> Sum:
    """Return (x, y) ↦ y + x Wᵀ + b: what a layer adds to its stream, in one pass for many rows.

    >>> added(torch.eye(2), None)(torch.tensor([[1.0, 2.0]]), torch.tensor([[10.0, 20.0]]))
    tensor([[11., 22.]])
    """
    plain, packed = product(weight, bias, precision), None
    shift = None if bias is None else bias.detach()

    def apply(x: Tensor, stream: Tensor) -> Tensor:
        nonlocal packed
        if x.shape[0] == 1 or precision != "float32" or not _can_pack(weight):
            return stream + plain(x)
        if packed is None:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), 32)
        made: Tensor = torch.ops.mkldnn._linear_pointwise(x, stream, packed, shift, "add")
        return made

    return apply


def _fused(weight: Tensor, bias: Tensor | None, activation: str) -> Map:
    linear: Any = torch.ops.mkldnn._linear_pointwise
    pack: Any = torch.ops.mkldnn._reorder_linear_weight
    bias = None if bias is None else bias.detach()
    name, kind = ONEDNN_NAMES[activation]
    if activation != "swiglu":
        packed = pack(weight, 32)
        return lambda x: linear(x, packed, bias, name, [], kind)
    gates, values = (pack(half.contiguous(), 32) for half in weight.chunk(2))
    gate_bias, value_bias = (None, None) if bias is None else bias.chunk(2)

    def apply(x: Tensor) -> Tensor:
        gate = linear(x, gates, gate_bias, name, [], kind)
        made: Tensor = linear(x, gate, values, value_bias, "mul")
        return made

    return apply


def _in_blocks(weight: Tensor, bias: Tensor | None) -> Map:
    outputs, inputs = weight.shape
    even = outputs - outputs % BLOCKS
    if even == 0 or weight.device.type != "cpu":
        return lambda x: functional.linear(x, weight, bias)
    blocks = weight[:even].view(BLOCKS, even // BLOCKS, inputs)
    shifts = None if bias is None else bias[:even].view(BLOCKS, even // BLOCKS, 1)
    rest = weight[even:], None if bias is None else bias[even:]

    def apply(x: Tensor) -> Tensor:
        # One column a block, written as a transposed row: of the two ways to describe the same
        # memory, MKL is several times slower with the other.
        column = x.as_strided((BLOCKS, inputs, 1), (0, 1, inputs))
        if shifts is None:
            made = torch.bmm(blocks, column).view(1, even)
        else:
            made = torch.baddbmm(shifts, blocks, column).view(1, even)
        return made if even == outputs else torch.cat([made, functional.linear(x, *rest)], dim=1)

    return apply


def _packed(weight: Tensor, bias: Tensor | None) -> Map:
    if not _can_pack(weight):
        return lambda x: functional.linear(x, weight, bias)
    linear: Any = torch.ops.mkldnn._linear_pointwise.default
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, 32)
    return lambda x: linear(x, packed, bias, "none", [], "")


def _can_pack(weight: Tensor) -> bool:
    # These operators are the ones that torch.compile emits for linear layers on CPUs; they
    # are not in torch's public interface, so their absence must not hurt.
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def _rounded(weight: Tensor, bias: Tensor | None) -> Map:
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise InputError(
            "precision",
            f"is int8 for weights of {weight.dtype} on {weight.device.type}",
            expected="int8 is made from float32 weights on a CPU",
        )
    scales = weight.abs().amax(dim=1).double().clamp(min=torch.finfo(torch.float32).tiny) / 127
    zeros = torch.zeros(len(weight), dtype=torch.int64)
    with warnings.catch_warnings():
        # torch announces that these tensors will go one day; pyproject.toml bounds its version.
        warnings.simplefilter("ignore")
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(rounded, bias)
    linear: Any = torch.ops.quantized.linear_dynamic.default
    return lambda x: linear(x, packed)
