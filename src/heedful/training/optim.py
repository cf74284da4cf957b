"""From gradients to weights: optimisers, the schedule of their rates, an average of the weights.

AdamW is torch's; Muon takes the matrices of the blocks. Together they act as one optimiser, whose
state is a flat table of named tensors: that is what a checkpoint holds, on one machine or on many.

Muon's step is the momentum of a matrix with all singular values brought near one, by a few
products (Newton-Schulz). torch's Muon rounds these products to bfloat16, whatever the training
does: on a processor without such instructions that took nine tenths of a step. Here they have the
precision of the training; in bfloat16 the two agree to the bit (a test).

The share of the highest learning rate in step s, with w warm-up steps of S in all, s counted from
0, and a floor f, is a function of the step alone:

    warm-up    (s + 1) / w                                  for s < w
    cosine     f + (1 − f) (1 + cos π u) / 2                u = (s − w) / (S − w)
    wsd        1, then 1 − (1 − f) (s − d) / (S − d)        from d = S − decay · S on
    constant   1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.training import config as settings
from heedful.training.config import Schedule


class Optimisers:
    """One or two optimisers over the parameters of a decoder, by their names."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        setting: settings.Optimiser,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self.names: dict[Tensor, str] = {value: name for name, value in parameters.items()}
        matrices = [
            parameter
            for name, parameter in parameters.items()
            if setting.kind == "muon" and name.startswith("blocks.") and parameter.ndim == 2
        ]
        chosen = set(matrices)
        rest = [parameter for parameter in parameters.values() if parameter not in chosen]
        self.parts: list[torch.optim.Optimizer] = [_adamw(rest, setting)]
        self.rates = [setting.learning_rate]
        if matrices:
            rate = setting.matrix_learning_rate or setting.learning_rate
            self.parts.append(
                Muon(
                    matrices,
                    lr=rate,
                    momentum=setting.momentum,
                    weight_decay=setting.weight_decay,
                    precision=precision,
                )
            )
            self.rates.append(rate)

    def step(self, share: float) -> None:
        """Take one step at this share of the highest rates."""
        for part, rate in zip(self.parts, self.rates, strict=True):
            for group in part.param_groups:
                group["lr"] = rate * share
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Return the state of every parameter, as `parameter/entry`."""
        return {
            f"{self.names[parameter]}/{entry}": value
            for part in self.parts
            for parameter, entries in part.state.items()
            for entry, value in entries.items()
            if isinstance(value, Tensor)
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state; tensors are laid out as their parameters are."""
        found: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, entry = key.rpartition("/")
            found.setdefault(name, {})[entry] = value
        strange = sorted(set(found) - set(self.names.values()))
        if strange:
            raise InputError(
                "checkpoint",
                f"holds the state of {strange[0]!r:.80}, which this model does not have",
                hint="resume with the config of the run",
            )
        for part in self.parts:
            for group in part.param_groups:
                for parameter in group["params"]:
                    entries = found.get(self.names[parameter])
                    if entries is not None:
                        part.state[parameter] = entries


def _adamw(parameters: list[nn.Parameter], setting: settings.Optimiser) -> torch.optim.Optimizer:
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": setting.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    whole = all(type(parameter.data) is Tensor for parameter in parameters)
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=setting.learning_rate,
        betas=setting.betas,
        eps=setting.eps,
        # One pass over memory; parameters that are spread over machines know only the other way.
        fused=whole,
        foreach=None if whole else True,
    )


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised (https://kellerjordan.github.io/posts/muon/), for matrices.

    With gradient G and momentum m, in one step of rate η and weight decay λ:

        B ← m B + (1 − m) G
        W ← (1 − η λ) W − 0.2 η √max(rows, columns) · orthogonalised(m B + (1 − m) G)

    The factor makes a step as large as AdamW's (arXiv:2502.16982), so that both take like rates.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        precision: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.precision = precision

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(matrix.grad)
                average = state["momentum_buffer"].lerp_(matrix.grad, 1 - momentum)
                update = matrix.grad.lerp(average, momentum).to(self.precision)
                matrix.mul_(1 - rate * group["weight_decay"])
                size = 0.2 * math.sqrt(max(matrix.shape))
                matrix.add_(orthogonalised(update), alpha=-rate * size)


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of x, x³ and x⁵: steep at 0, and between 0.7 and 1.2 soon after (Muon's own)."""
ROUNDS = 5


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return the matrix with every singular value brought to about one (0.7 to 1.2).

    >>> _, values, _ = torch.linalg.svd(orthogonalised(torch.diag(torch.tensor([9.0, 1.0]))))
    >>> [0.6 < value < 1.3 for value in values.tolist()]
    [True, True]
    """
    x, cubic, quintic = NEWTON_SCHULZ
    wide = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / wide.norm().clamp(min=1e-7)  # no singular value is above 1 now
    for _ in range(ROUNDS):
        gram = wide @ wide.mT
        wide = torch.addmm(
            wide, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), wide, beta=x
        )
    return wide.mT if matrix.shape[0] > matrix.shape[1] else wide


def rate_share(schedule: Schedule, step: int, steps: int) -> float:
    """Return the share of the highest learning rate that step number `step` takes.

    >>> shares = [rate_share(Schedule(warmup=2), step, 10) for step in (0, 1, 2)]
    >>> [round(share, 3) for share in shares]
    [0.5, 1.0, 1.0]
    """
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup
    if schedule.kind == "constant":
        return 1.0
    floor = schedule.floor
    if schedule.kind == "cosine":
        done = (step - schedule.warmup) / max(steps - schedule.warmup, 1)
        return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * min(done, 1.0))) / 2.0
    start = max(steps - round(schedule.decay * steps), schedule.warmup)
    if step < start:
        return 1.0
    return 1.0 - (1.0 - floor) * min((step - start) / max(steps - start, 1), 1.0)


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
