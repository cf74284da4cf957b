"""The loss with its own gradient, against torch's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from heedful.training import loss as room
from heedful.training.loss import summed_loss


@settings(deadline=None, max_examples=30)
@given(
    tokens=st.integers(1, 9),
    vocabulary=st.integers(2, 12),
    chunk=st.integers(1, 10),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    size=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 999),
)
def test_loss_and_gradients_are_those_of_torch(
    tokens: int, vocabulary: int, chunk: int, smoothing: float, size: float, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, 5, generator=draw, dtype=torch.float64) * size
    head = torch.randn(vocabulary, 5, generator=draw, dtype=torch.float64)
    targets = torch.randint(vocabulary, (tokens,), generator=draw)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "CHUNK", chunk)
        for ours in (True, False):
            a, b = hidden.clone().requires_grad_(), head.clone().requires_grad_()
            if ours:
                total = summed_loss(a, b, targets, smoothing)
            else:
                total = functional.cross_entropy(
                    a @ b.T, targets, label_smoothing=smoothing, reduction="sum"
                )
            (3.0 * total).backward()
            found.append((total.detach(), a.grad, b.grad))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def test_products_in_bfloat16_stay_near() -> None:
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(700, 32, generator=draw).requires_grad_()
    head = (torch.randn(100, 32, generator=draw) / 6).requires_grad_()
    targets = torch.randint(100, (700,), generator=draw)
    exact = torch.autograd.grad(summed_loss(hidden, head, targets, 0.1), (hidden, head))
    near = torch.autograd.grad(
        summed_loss(hidden, head, targets, 0.1, torch.bfloat16), (hidden, head)
    )
    for fine, coarse in zip(exact, near, strict=True):
        assert coarse.dtype == torch.float32
        assert float((fine - coarse).norm() / fine.norm()) < 0.02
