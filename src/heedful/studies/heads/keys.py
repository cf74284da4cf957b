"""Keys in practice: how their norms vary, what that does to the weights, and how far keys lead.

For the keys k_i of a head, with n_i = ‖k_i‖:

    spread     std n / mean n, over all keys; within a token (the same token at other places) and
               across tokens (between the means of tokens)
    effect     ½ Σ |α_i − α'_i|, where α' are the weights that the same queries give to the keys
               rescaled to one norm

Softmax does not change when one vector is added to every key, but norms do. So both are also
taken for centred keys, k_i − mean k: what is left then is the part of the norm that can matter.

A key k_j has the margin δ_j, its distance to the hull of the other keys in sight: room
`attention` certifies it. No query of norm ‖q‖ gives k_j a lead above ‖q‖ δ_j / √d over all other
keys; the query in the model gives the lead β = min_i q·(k_j − k_i) / √d. Orthonormal keys would
need the scale β* = ln(α_j (n − 1) / (1 − α_j)) for the same mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.hull import certify
from heedful.model import Decoder, LayerTrace
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.behaviour import BLOCK, IN_SIGHT
from heedful.studies.heads.sample import Row

MARGINS = 256
"""Attended keys whose margin is certified, over the whole model."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyNorms(Record):
    """The keys of one head of keys and values, over the whole sample."""

    layer: int
    head: int
    """Of the keys; several heads of queries may share it."""
    mean: float
    """Mean norm."""
    spread: float
    """Standard deviation of the norms over their mean."""
    within: float | None
    """The same between places of one token; None where no token comes back."""
    across: float | None
    """The same between the means of tokens that come back."""
    largest_ratio: float
    """Largest norm over the smallest, the first position left out."""
    first_ratio: float
    """Norm of the first key over the mean of the others."""
    centred_spread: float
    """Spread of the norms of k_i − mean k."""
    effect: Estimate
    """Share of the reading that moves when the keys get one norm."""
    centred_effect: Estimate
    """The same for centred keys."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AttendedKey(Record):
    """One query and the key it looks at most."""

    layer: int
    head: int
    query: int
    """Its position in the first row."""
    key: int
    """The position that it gives most."""
    mass: float
    """α of that key."""
    in_sight: int
    """Keys that the query sees."""
    margin: float
    """δ: certified distance of the key to the hull of the others; 0 for a key inside it."""
    copyable: bool
    """Whether some query could copy it."""
    lead: float
    """β = its logit minus the next, under the query in the model."""
    best_lead: float
    """‖q‖ δ / √d: the largest lead that a query of this length can give."""
    equivalent_beta: float
    """The scale at which orthonormal keys would give the same mass."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Keys(Record):
    """What the keys of a model are like."""

    norms: tuple[KeyNorms, ...]
    """Each head of keys."""
    attended: tuple[AttendedKey, ...]
    """A selection of queries, one in most heads."""
    means: dict[str, Estimate]
    """Means over heads: `spread`, `within` and `across` tokens, `first ratio`, `effect`,
    `centred effect`; over attended keys: `lead`, `equivalent beta`, and `used`, the share of the
    best lead that is given (how well queries are aimed)."""
    hidden: int
    """Attended keys that no query could copy."""


class KeyWatch:
    """Collects norms and effects while the model reads."""

    def __init__(self, decoder: Decoder, *, margins: int = MARGINS) -> None:
        config = decoder.config
        self.layers, self.kv_heads, self.heads = (
            config.layers,
            config.kv_heads,
            config.attention.heads,
        )
        self.margins = margins
        self._norms: list[list[tuple[Row, Float[np.ndarray, "heads keys"]]]] = [
            [] for _ in range(self.layers)
        ]
        self._centred: list[list[Float[np.ndarray, "heads keys"]]] = [
            [] for _ in range(self.layers)
        ]
        self._effects: list[list[Float[np.ndarray, "two heads queries"]]] = [
            [] for _ in range(self.layers)
        ]
        self._attended: list[AttendedKey] = []

    def see(self, layer: int, trace: LayerTrace, row: Row) -> None:
        """Note the keys of one layer on a row of the sample."""
        keys = trace.keys[0].detach().double()
        centred = keys - keys.mean(dim=1, keepdim=True)
        self._norms[layer].append((row, keys.norm(dim=-1).numpy()))
        self._centred[layer].append(centred.norm(dim=-1).numpy())
        moved = [effect_of(trace, equal_norms(part)) for part in (keys, centred)]
        self._effects[layer].append(torch.stack(moved).numpy()[..., IN_SIGHT - 1 :])
        first = len(self._norms[layer]) == 1
        if first and self.margins:
            self._attend(layer, trace)

    def keys(self) -> Keys:
        """Return what was seen."""
        norms = tuple(
            self._head(layer, head) for layer in range(self.layers) for head in range(self.kv_heads)
        )
        attended = tuple(self._attended)
        leading = [key for key in attended if key.best_lead > 0 and key.lead > 0]
        values = {
            "spread": [one.spread for one in norms],
            "within": [one.within for one in norms if one.within is not None],
            "across": [one.across for one in norms if one.across is not None],
            "first ratio": [one.first_ratio for one in norms],
            "effect": [one.effect.value for one in norms],
            "centred effect": [one.centred_effect.value for one in norms],
            "lead": [key.lead for key in attended],
            "equivalent beta": [key.equivalent_beta for key in attended],
            "used": [key.lead / key.best_lead for key in leading],
        }
        return Keys(
            norms=norms,
            attended=attended,
            means={name: Estimate.of(numbers) for name, numbers in values.items() if numbers},
            hidden=sum(not key.copyable for key in attended),
        )

    def _head(self, layer: int, head: int) -> KeyNorms:
        rows = [(row, norms[head]) for row, norms in self._norms[layer]]
        every = np.concatenate([norms for _, norms in rows])
        later = np.concatenate([norms[1:] for _, norms in rows])
        within, across = token_spreads(rows)
        group = self.heads // self.kv_heads
        mine = slice(head * group, (head + 1) * group)
        effects = np.concatenate(
            [part[:, mine].mean(axis=1) for part in self._effects[layer]], axis=1
        )
        plain, centred = (Estimate.over_blocks(part, BLOCK) for part in effects)
        shifted = np.concatenate([part[head] for part in self._centred[layer]])
        first = float(np.mean([norms[0] for _, norms in rows]))
        return KeyNorms(
            layer=layer,
            head=head,
            mean=float(every.mean()),
            spread=_spread(every),
            within=within,
            across=across,
            largest_ratio=float(later.max() / max(later.min(), 1e-300)),
            first_ratio=first / float(later.mean()),
            centred_spread=_spread(shifted),
            effect=plain,
            centred_effect=centred,
        )

    def _attend(self, layer: int, trace: LayerTrace) -> None:
        """Certify the margins of some attended keys, at another position for each head."""
        share = self.margins / (self.layers * self.heads)
        count = trace.weights.shape[2]
        for head in range(self.heads):
            number = layer * self.heads + head
            chosen = int((number + 1) * share) - int(number * share)
            for repeat in range(chosen):
                # Spread over the positions with many keys in sight, without a pattern.
                place = (number * 7919 + repeat * 104_729) % max(count - count // 2, 1)
                self._attended.append(attended_key(trace, layer, head, count // 2 + place))


def attended_key(trace: LayerTrace, layer: int, head: int, query: int) -> AttendedKey:
    """Return the key that one query looks at most, and what its lead amounts to."""
    weights = trace.weights[0, head, query]
    count = query + 1  # the keys in sight
    group = trace.queries.shape[1] // trace.keys.shape[1]
    keys = trace.keys[0, head // group, :count].detach().double()
    q = trace.queries[0, head, query].detach().double()
    place = int(weights.argmax())
    logits = keys @ q / math.sqrt(len(q))
    if trace.bias is not None:
        logits = logits + trace.bias.expand_as(trace.weights)[0, head, query, :count].double()
    others = torch.cat([logits[:place], logits[place + 1 :]])
    separation = certify(keys.numpy(), place)
    margin = separation.margin
    mass = float(weights[place])
    return AttendedKey(
        layer=layer,
        head=head,
        query=query,
        key=place,
        mass=mass,
        in_sight=count,
        margin=margin,
        copyable=separation.verdict == "outside",
        lead=float(logits[place] - others.max()),
        best_lead=float(q.norm()) * margin / math.sqrt(len(q)),
        equivalent_beta=equivalent_beta(mass, count),
    )


def equivalent_beta(mass: float, keys: int) -> float:
    """Return the β at which one of `keys` orthonormal keys gets this mass under q = β k.

    >>> beta = equivalent_beta(0.99, 10)
    >>> round(math.exp(beta) / (math.exp(beta) + 9), 6)
    0.99
    """
    rest = max(1.0 - mass, 1e-300)
    return math.log(max(mass, 1e-300) * (keys - 1) / rest) if keys > 1 else 0.0


def equal_norms(keys: Float[Tensor, "heads keys width"]) -> Float[Tensor, "heads keys width"]:
    """Return the keys of each head rescaled to their mean norm."""
    norms: Tensor = torch.linalg.vector_norm(keys, dim=-1, keepdim=True)
    return keys / norms.clamp(min=1e-300) * norms.mean(dim=1, keepdim=True)


def effect_of(
    trace: LayerTrace, keys: Float[Tensor, "kv_heads keys width"]
) -> Float[Tensor, "heads queries"]:
    """Return the total variation between the weights and those that other keys would get."""
    # Differences of weights are wanted to three digits: float32 is enough, and twice as fast.
    changed = trace.weights_of(keys.unsqueeze(0), torch.float32)[0]
    moved: Tensor = changed.sub_(trace.weights[0]).abs_().sum(dim=-1).double() / 2
    return moved


def token_spreads(
    rows: list[tuple[Row, Float[np.ndarray, " _"]]],
) -> tuple[float | None, float | None]:
    """Return the spread of norms within tokens and across them, over tokens that come back.

    The first position of a row is left out: its key stands for the beginning, not for a token.
    """
    tokens = np.concatenate([np.asarray(row.tokens[1:]) for row, _ in rows])
    norms = np.concatenate([values[1:] for _, values in rows])
    names, places = np.unique(tokens, return_inverse=True)
    counts = np.bincount(places, minlength=len(names))
    often = counts[places] > 1
    if not often.any():
        return None, None
    means = np.bincount(places, weights=norms, minlength=len(names)) / np.maximum(counts, 1)
    mean = float(norms[often].mean())
    residual = norms[often] - means[places][often]
    freedom = int(often.sum()) - int((counts > 1).sum())
    within = math.sqrt(float(residual @ residual) / max(freedom, 1)) / mean
    across = float(np.std(means[counts > 1])) / mean
    return within, across


def _spread(norms: Float[np.ndarray, " keys"]) -> float:
    return float(norms.std() / max(float(norms.mean()), 1e-300))
