"""A reading: what attention gave, with the mass on a set that somebody asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.attention.arrays import Array, indices
from heedful.attention.operation import Attention
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading(Record):
    """The weights, output and spread of one query or many, ready to be shown."""

    weights: Array
    """α for each query and key."""
    output: Array
    """c for each query."""
    logits: Array
    """s k·q for each query and key."""
    entropy: Array
    """−Σ α ln α for each query, in nats."""
    effective_keys: Array
    """exp(entropy): over how many keys each query spreads its reading."""
    mass_on: tuple[int, ...] | None
    """The set that was asked about."""
    mass: Array | None
    """Σ α over that set, for each query."""

    @classmethod
    def of(cls, attention: Attention, mass_on: Sequence[int] | None = None) -> Reading:
        """Take an attention result and answer what the mass on `mass_on` is."""
        chosen = None
        if mass_on is not None:
            chosen = indices("--mass-on", mass_on, attention.weights.shape[-1])
        return cls(
            weights=attention.weights,
            output=attention.output,
            logits=attention.logits,
            entropy=attention.entropy,
            effective_keys=attention.effective_keys,
            mass_on=chosen,
            mass=None if chosen is None else attention.mass(chosen),
        )
