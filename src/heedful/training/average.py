"""A moving average of the weights: ā ← d ā + (1 − d) w after every step.

The average is what is evaluated and handed out at the end; training goes on with the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class MovingAverage:
    """The average of some parameters, by their names."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.parameters = dict(parameters)
        self.decay = decay
        self.values = {name: value.detach().clone() for name, value in parameters.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now."""
        current = [self.parameters[name].detach() for name in self.values]
        torch._foreach_lerp_(list(self.values.values()), current, 1.0 - self.decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the decoder have the averaged weights while the block runs."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def state(self) -> dict[str, Tensor]:
        """Return the average of each parameter."""
        return dict(self.values)

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over a saved average."""
        for name, value in self.values.items():
            value.copy_(state[name])

    @torch.no_grad()
    def _exchange(self) -> None:
        # Values move, not tensors: lanes and wrappers hold on to the parameters' storage.
        for name, parameter in self.parameters.items():
            kept = parameter.detach().clone()
            parameter.copy_(self.values[name])
            self.values[name].copy_(kept)
