"""Gradients to steps: torch's AdamW, or torch's Muon for the matrices of the blocks.

The two together act as one optimiser, whose state is a flat table of named tensors: that is
what a checkpoint holds, on one machine or on many.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from heedful.errors import ConfigError, InputError
from heedful.training import config as settings


class Optimisers:
    """One or two of torch's optimisers over the parameters of a decoder, by their names."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], setting: settings.Optimiser) -> None:
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
            self.parts.append(_muon(matrices, rate, setting))
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
                way_out="resume with the config of the run",
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


def _muon(
    matrices: list[nn.Parameter], rate: float, setting: settings.Optimiser
) -> torch.optim.Optimizer:
    if not hasattr(torch.optim, "Muon"):
        raise ConfigError(
            "optimiser.kind",
            f"torch {torch.__version__} has no Muon",
            expected="torch 2.9 or newer",
            way_out='use kind = "adamw", or install a newer torch',
        )
    return torch.optim.Muon(
        matrices,
        lr=rate,
        momentum=setting.momentum,
        weight_decay=setting.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
