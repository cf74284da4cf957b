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

Precision = Literal["float32", "int8"]
"""How weights are kept: as they are, or rounded to 8 bits."""
Map: TypeAlias = Callable[[Tensor], Tensor]
"""From (rows, inputs) to (rows, outputs)."""
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
