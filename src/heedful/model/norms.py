"""LayerNorm and RMSNorm.

    LayerNorm(x) = g (x − mean x) / √(var x + ε) + b
    RMSNorm(x)   = g x r        with r = 1 / √(mean x² + ε)

torch has one kernel for the first and about ten small ones for the second, so RMSNorm has its
backward pass written out here. With u the gradient of the output and y = x r:

    dx = r (u g − y · mean(u g y))      dg = Σ u y
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heedful.model.config import Norm


def make_norm(width: int, norm: Norm) -> nn.Module:
    """Return the norm that the config asks for."""
    if norm.kind == "layer":
        return nn.LayerNorm(width, eps=norm.eps, bias=norm.bias)
    return RMSNorm(width, eps=norm.eps)


class RMSNorm(nn.Module):
    """Scale each vector to mean square 1, then by learned gains."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes width"]:
        """Return g x r."""
        if not torch.is_grad_enabled():
            return _scaled(x, self.eps)[0] * self.weight
        normalised: Tensor = _RootMeanSquare.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.eps
        )
        return normalised


class _RootMeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scaled, factor = _scaled(x, eps)
        context.save_for_backward(scaled, weight, factor)
        return scaled * weight

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        scaled, weight, factor = context.saved_tensors
        product = gradient * scaled
        of_weight = product.flatten(0, -2).sum(0)
        mean = (product @ weight).unsqueeze(-1).div_(scaled.shape[-1])
        of_x = torch.addcmul(gradient * weight, scaled, mean, value=-1).mul_(factor)
        return of_x, of_weight, None


def _scaled(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    # Squares of half-precision numbers overflow at 256: their mean is taken in float32.
    kind = torch.float32 if x.dtype.itemsize < 4 else x.dtype
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=kind)
    factor = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_().to(x.dtype)
    return x * factor, factor
