"""Changes to what happens inside a forward pass: ablate, patch, scale, steer, knock out, freeze.

A layer passes these tensors through the recorder of its pass, which may change them:

    place         shape                        in TransformerLens (layer l)
    embedded      batch, time, stream          blocks.0.hook_resid_pre
    before        batch, time, stream          blocks.l.hook_resid_pre
    queries       batch, heads, time, width    blocks.l.attn.hook_q, after norm and rotation
    keys          batch, kv heads, time, width blocks.l.attn.hook_k, after norm and rotation
    values        batch, kv heads, time, width blocks.l.attn.hook_v
    scores        batch, heads, time, keys     blocks.l.attn.hook_attn_scores, forbidden keys at −∞
    weights       batch, heads, time, keys     blocks.l.attn.hook_pattern
    head_outputs  batch, heads, time, width    blocks.l.attn.hook_z
    attended      batch, time, stream          blocks.l.hook_attn_out
    middle        batch, time, stream          blocks.l.hook_resid_mid
    neurons       batch, time, hidden          blocks.l.mlp.hook_post
    transformed   batch, time, stream          blocks.l.hook_mlp_out
    after         batch, time, stream          blocks.l.hook_resid_post
    final         batch, time, stream          ln_final, with its gains

Layers, heads and positions are numbered from 0; a negative position counts from the end of the
text. Steps of generation see the same interventions, each token at its own position.

A patch that silently does nothing is the commonest mistake of this trade. Here an intervention
that met no tensor, or that left every tensor as it was, ends the `intervene` block in an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.model.masks import AttentionMask
from heedful.model.trace import TraceRecorder

if TYPE_CHECKING:
    from heedful.model.cache import Cache
    from heedful.model.config import DecoderConfig
    from heedful.model.decoder import Decoder

Axes = Literal["stream", "heads", "kv_heads", "weights"]
PLACES: dict[str, Axes] = {
    "embedded": "stream",
    "before": "stream",
    "queries": "heads",
    "keys": "kv_heads",
    "values": "kv_heads",
    "scores": "weights",
    "weights": "weights",
    "head_outputs": "heads",
    "attended": "stream",
    "middle": "stream",
    "neurons": "stream",
    "transformed": "stream",
    "after": "stream",
    "final": "stream",
}
"""Every place, in the order in which a pass comes to it, with the kind of its axes."""
_ONCE = ("embedded", "final")
"""Places that belong to no layer."""

Change = Callable[[Tensor, "Situation"], Tensor]
"""From a tensor to the tensor that should stand in its place, of the same shape."""


@dataclass(frozen=True, eq=False)
class Situation:
    """Where a pass is when an intervention meets its tensor."""

    columns: Tensor
    """Positions of the tokens of this call, counted from the beginning of the text."""
    time_axis: int
    """The axis of the tensor that these positions number."""
    source: Tensor | None
    """The same place in the pass over the source text, where the intervention has one."""
    source_columns: tuple[int | None, ...] | None
    """Which source position each position is taken from, None where it stays; None: the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Intervention:
    """One change at one place; made by `ablate`, `patch`, `scale`, `steer` and the others."""

    what: str
    """In words, for errors and records."""
    place: str
    layer: int | None
    heads: tuple[int, ...] | None
    """None: all of them, or the place has no heads."""
    positions: tuple[int, ...] | None
    """Tokens that are changed; for scores and weights, the queries. None: all."""
    change: Change
    keys: tuple[int, ...] | None = None
    """For scores and weights: the keys that are changed."""
    source: Tensor | None = None
    """Tokens of another text, whose tensor the change needs."""
    source_positions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.place not in PLACES:
            raise InputError("place", f"is {self.place!r}", expected="one of " + ", ".join(PLACES))
        if (self.layer is None) != (self.place in _ONCE):
            needs = "belongs to no layer" if self.place in _ONCE else "needs a layer"
            raise InputError(self.what, f"{self.place} {needs}, and layer is {self.layer}")
        if self.heads is not None and PLACES[self.place] == "stream":
            raise InputError(
                self.what,
                f"{self.place} has no heads",
                hint="head_outputs has what each head reads, before it is added up",
            )

    def check(self, config: DecoderConfig) -> None:
        """Refuse a layer or head that a model does not have."""
        if self.layer is not None and not 0 <= self.layer < config.layers:
            raise InputError(
                self.what, f"layer {self.layer}", expected=f"layers 0 to {config.layers - 1}"
            )
        kv = PLACES[self.place] == "kv_heads"
        count = config.kv_heads if kv else config.attention.heads
        strange = [head for head in self.heads or () if not 0 <= head < count]
        if strange:
            kind = "key-value heads" if kv else "heads"
            raise InputError(self.what, f"head {strange[0]}", expected=f"{kind} 0 to {count - 1}")

    def chosen(self, tensor: Tensor, columns: Tensor, total: int) -> Tensor:
        """Return where a tensor is changed: booleans that broadcast to it."""
        axes = PLACES[self.place]
        chosen = torch.ones((1,) * tensor.ndim, dtype=torch.bool, device=tensor.device)
        if self.heads is not None:
            chosen = chosen & _among(torch.arange(tensor.shape[1]), self.heads, 1, tensor)
        if self.positions is not None:
            wanted = [place % total if place < 0 else place for place in self.positions]
            chosen = chosen & _among(columns, wanted, 1 if axes == "stream" else 2, tensor)
        if self.keys is not None:
            wanted = [place % total if place < 0 else place for place in self.keys]
            chosen = chosen & _among(torch.arange(tensor.shape[-1]), wanted, 3, tensor)
        return chosen


def _among(numbers: Tensor, wanted: Sequence[int], axis: int, tensor: Tensor) -> Tensor:
    shape = [1] * tensor.ndim
    shape[axis] = -1
    return torch.isin(numbers.cpu(), torch.tensor(list(wanted))).view(shape).to(tensor.device)


# The kinds of intervention


def replace(
    place: str,
    change: Change | Tensor,
    *,
    layer: int | None = None,
    head: int | Sequence[int] | None = None,
    positions: int | Sequence[int] | None = None,
    keys: int | Sequence[int] | None = None,
    what: str = "replace",
    source: Any = None,
    source_positions: int | Sequence[int] | None = None,
) -> Intervention:
    """Put another tensor, or what a function makes of the present one, at a place."""
    if isinstance(change, Tensor):
        values = change
        change = lambda tensor, _: values.to(tensor).expand_as(tensor)  # noqa: E731
    heads = _numbers(head)
    tokens = None if source is None else torch.as_tensor(source)
    return Intervention(
        what=f"{what} {_in_words(place, layer, heads)}",
        place=place,
        layer=layer,
        heads=heads,
        positions=_numbers(positions),
        keys=_numbers(keys),
        change=change,
        source=tokens if tokens is None or tokens.ndim == 2 else tokens.unsqueeze(0),
        source_positions=_numbers(source_positions),
    )


def _in_words(place: str, layer: int | None, heads: tuple[int, ...] | None) -> str:
    if heads is None:
        return place if layer is None else f"{place} of layer {layer}"
    named = ("head " if len(heads) == 1 else "heads ") + ", ".join(f"{layer}.{n}" for n in heads)
    return named if place == "head_outputs" else f"{place} of {named}"


def ablate(
    place: str,
    *,
    method: str = "zero",
    reference: Any = None,
    seed: int = 0,
    **where: Any,
) -> Intervention:
    """Take away what a place holds: zero, its mean over reference texts, or draws from them.

    `reference` holds token ids, a row a text. Draws take whole vectors, each from a random token.
    """
    if method == "zero":
        return replace(place, lambda tensor, _: torch.zeros_like(tensor), what="ablate", **where)
    if method not in ("mean", "resample"):
        raise InputError("method", f"is {method!r}", expected="zero, mean or resample")
    if reference is None:
        raise InputError("reference", f"is missing; {method} ablation takes its values from texts")
    if PLACES.get(place) == "weights":
        raise InputError(
            "method",
            f"is {method!r} for {place}, which differ in shape from text to text",
            hint="use `freeze`, or ablate head_outputs",
        )
    act = _mean if method == "mean" else _resampled(seed)
    return replace(place, act, what=f"ablate ({method})", source=reference, **where)


def patch(
    place: str, source: Any, *, source_positions: int | Sequence[int] | None = None, **where: Any
) -> Intervention:
    """Put what a place holds over another text (`source`, token ids) in the place of its own.

    Without positions, both texts must have the same length.
    """
    pairs = _numbers(where.get("positions")), _numbers(source_positions)
    if pairs[1] is not None and (pairs[0] is None or len(pairs[0]) != len(pairs[1])):
        raise InputError(
            "source_positions", "do not match the positions", expected="one for each position"
        )
    if source_positions is not None and PLACES.get(place) == "weights":
        raise InputError("source_positions", f"cannot be given for {place}: keys would not match")
    return replace(
        place, _patched, what="patch", source=source, source_positions=source_positions, **where
    )


def freeze(source: Any, *, layer: int, **where: Any) -> Intervention:
    """Let heads spread their weights as they do over another text of the same length."""
    return replace("weights", _patched, what="freeze", source=source, layer=layer, **where)


def scale(place: str, factor: float, **where: Any) -> Intervention:
    """Multiply what a place holds."""
    return replace(place, lambda tensor, _: tensor * factor, what=f"scale by {factor:g}", **where)


def steer(place: str, direction: Any, *, strength: float = 1.0, **where: Any) -> Intervention:
    """Add a multiple of a direction (a vector as wide as the place) to every vector."""
    vector = strength * torch.as_tensor(direction, dtype=torch.float64)

    def steered(tensor: Tensor, _: Situation) -> Tensor:
        if vector.shape != tensor.shape[-1:]:
            raise InputError(
                "direction",
                f"has shape {tuple(vector.shape)}",
                expected=f"a vector of {tensor.shape[-1]} numbers",
            )
        return tensor + vector.to(tensor)

    return replace(place, steered, what="steer", **where)


def knock_out(
    keys: int | Sequence[int],
    *,
    layer: int,
    queries: int | Sequence[int] | None = None,
    head: int | Sequence[int] | None = None,
) -> Intervention:
    """Forbid keys: their scores become −∞, and the other weights share what is left.

    A query whose every key is forbidden would have no value. That is an error.
    """

    def forbidden(tensor: Tensor, _: Situation) -> Tensor:
        return torch.full_like(tensor, -torch.inf)

    return replace(
        "scores", forbidden, layer=layer, head=head, positions=queries, keys=keys, what="knock out"
    )


def _numbers(given: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    return (given,) if isinstance(given, int) else tuple(int(one) for one in given)


def _mean(tensor: Tensor, situation: Situation) -> Tensor:
    source, axis = situation.source, situation.time_axis
    assert source is not None
    return source.mean(dim=(0, axis), keepdim=True).expand_as(tensor)


def _resampled(seed: int) -> Change:
    def resampled(tensor: Tensor, situation: Situation) -> Tensor:
        source, axis = situation.source, situation.time_axis
        assert source is not None
        # Tokens of all reference texts in one row: (tokens, everything else).
        pool = source.movedim(axis, 1).flatten(0, 1)
        generator = torch.Generator().manual_seed(seed)
        count = tensor.shape[0] * tensor.shape[axis]
        drawn = pool[torch.randint(len(pool), (count,), generator=generator)]
        rows = drawn.view(tensor.shape[0], tensor.shape[axis], *drawn.shape[1:])
        return rows.movedim(1, axis)

    return resampled


def _patched(tensor: Tensor, situation: Situation) -> Tensor:
    source, axis = situation.source, situation.time_axis
    assert source is not None
    length = source.shape[axis]
    columns = situation.source_columns or tuple(situation.columns.tolist())
    if max(column for column in columns if column is not None) >= length:
        raise InputError(
            "source",
            f"has {length} tokens, the text {int(situation.columns[-1]) + 1}",
            expected="texts of the same length, or `positions` with `source_positions`",
        )
    # Positions that stay are chosen nowhere: which vector stands there does not matter.
    chosen = torch.tensor([0 if column is None else column for column in columns])
    picked = source.index_select(axis, chosen.to(source.device))
    if picked.shape[-1] != tensor.shape[-1]:
        raise InputError(
            "source",
            f"has {picked.shape[-1]} keys, the text {tensor.shape[-1]}",
            expected="texts of the same length",
        )
    return picked.expand_as(tensor)


# Interventions at work


class Interventions:
    """The interventions of one `intervene` block, and what they met.

    Values of reference texts come from passes without any intervention.
    """

    def __init__(
        self,
        decoder: Decoder,
        interventions: Sequence[Intervention],
        outer: Interventions | None = None,
    ) -> None:
        if not interventions:
            raise InputError("interventions", "are missing", expected="at least one")
        self.own = tuple(interventions)
        for one in self.own:
            one.check(decoder.config)
        self.all: tuple[Intervention, ...] = (*(() if outer is None else outer.all), *self.own)
        self.met: set[int] = set() if outer is None else outer.met
        self.changed: set[int] = set() if outer is None else outer.changed
        self.sources: dict[int, Tensor] = {} if outer is None else dict(outer.sources)
        for one in self.own:
            if one.source is not None:
                self.sources[id(one)] = _value_at(decoder, one, one.source)

    def watching(self, recorder: TraceRecorder | None, cache: Cache | None) -> TraceRecorder:
        """Return a recorder that applies the interventions, then passes on to another."""
        if cache is not None and cache.padding is not None:
            placed = [one for one in self.all if one.positions is not None or one.keys is not None]
            if placed:
                raise InputError(
                    placed[0].what,
                    "names positions, and the rows of this batch begin at different ones",
                    hint="give it texts of one length, or one at a time",
                )
        return _Intervening(self, recorder)

    def check(self) -> None:
        """Refuse interventions that met nothing or changed nothing."""
        for one in self.own:
            if id(one) not in self.met:
                raise InputError(
                    one.what,
                    "met nothing: no pass had such a position"
                    if one.positions is not None or one.keys is not None
                    else "met nothing: the model was not run inside the block",
                    hint="positions count from 0 at the first token",
                )
            if id(one) not in self.changed:
                raise InputError(
                    one.what,
                    "changed nothing: every value that it met was what it put there",
                    hint="an effect of exactly zero would say nothing about this place",
                )


class _Intervening(TraceRecorder):
    """The recorder of one pass under interventions; `inner` records what came of them."""

    def __init__(self, active: Interventions, inner: TraceRecorder | None) -> None:
        super().__init__()
        self.active, self.inner = active, inner
        self.layer = 0
        self.first = 0

    @property
    def changes_weights(self) -> bool:  # type: ignore[override]
        """Whether scores or weights of the running layer are changed."""
        return any(
            one.layer == self.layer and PLACES[one.place] == "weights" for one in self.active.all
        )

    def begin(self, embedded: Tensor, mask: AttentionMask, first: int) -> Tensor:
        """Begin a pass: its first token is number `first` of the text."""
        self.first, self.time = first, embedded.shape[1]
        embedded = self.change("embedded", embedded)
        return embedded if self.inner is None else self.inner.begin(embedded, mask, first)

    def change(self, place: str, tensor: Tensor) -> Tensor:
        """Return a tensor with the interventions of this place and layer applied."""
        for one in self.active.all:
            if one.place == place and one.layer in (None, self.layer):
                tensor = self._apply(one, tensor)
        return tensor

    def _apply(self, one: Intervention, tensor: Tensor) -> Tensor:
        columns = torch.arange(self.first, self.first + self.time)
        chosen = one.chosen(tensor, columns, self.first + self.time)
        if not bool(chosen.any()):
            return tensor
        self.active.met.add(id(one))
        source_columns = None
        if one.positions is not None:
            total = self.first + self.time
            wanted = [place % total if place < 0 else place for place in one.positions]
            pairs = dict(zip(wanted, one.source_positions or wanted, strict=True))
            source_columns = tuple(pairs.get(int(column)) for column in columns)
        axis = 1 if PLACES[one.place] == "stream" else 2
        situation = Situation(columns, axis, self.active.sources.get(id(one)), source_columns)
        changed = torch.where(chosen, one.change(tensor, situation), tensor)
        if one.place == "scores" and bool((changed == -torch.inf).all(dim=-1).any()):
            raise InputError(one.what, "leaves a query without any key", hint="spare its own")
        if id(one) not in self.active.changed and not torch.equal(changed, tensor):
            self.active.changed.add(id(one))
        return changed

    def record(self, **tensors: Tensor) -> None:
        """Pass on what the layer recorded."""
        if self.inner is not None:
            self.inner.record(**tensors)

    def end_layer(self) -> None:
        """Go on to the next layer."""
        self.layer += 1
        if self.inner is not None:
            self.inner.end_layer()


class _Reading(TraceRecorder):
    """Keeps the tensor at one place of one pass."""

    def __init__(self, place: str, layer: int | None) -> None:
        super().__init__()
        self.place, self.wanted_layer, self.layer = place, layer, 0
        self.value: Tensor | None = None

    @property
    def changes_weights(self) -> bool:  # type: ignore[override]
        """Whether weights must be written out to be kept."""
        return PLACES[self.place] == "weights" and self.layer == self.wanted_layer

    def change(self, place: str, tensor: Tensor) -> Tensor:
        """Keep the tensor, unchanged."""
        if place == self.place and self.wanted_layer in (None, self.layer):
            self.value = tensor
        return tensor

    def end_layer(self) -> None:
        """Go on to the next layer."""
        self.layer += 1


def value_at(decoder: Decoder, tokens: Tensor, place: str, layer: int | None = None) -> Tensor:
    """Return what a place holds over a batch of texts, without any intervention."""
    reading = _Reading(place, layer)
    outer, decoder._interventions = decoder._interventions, None
    try:
        with torch.no_grad():
            decoder.hidden(tokens.to(decoder.embedding.weight.device), recorder=reading)
    finally:
        decoder._interventions = outer
    assert reading.value is not None
    return reading.value


def _value_at(decoder: Decoder, one: Intervention, tokens: Tensor) -> Tensor:
    return value_at(decoder, tokens, one.place, one.layer)


# Interventions from words and tables


def place_from(spelled: str) -> dict[str, Any]:
    """Read a place: `2.3` is head 3 of layer 2, `transformed.2` a part of layer 2, `@` a position.

    >>> place_from("2.3")
    {'place': 'head_outputs', 'layer': 2, 'head': 3}
    >>> place_from("after.0@-1")
    {'place': 'after', 'layer': 0, 'positions': (-1,)}
    """
    where, _, at = spelled.partition("@")
    name, _, rest = where.rpartition(".")
    try:
        if name.lstrip("-").isdigit():
            place: dict[str, Any] = {"place": "head_outputs", "layer": int(name), "head": int(rest)}
        elif not name:
            place = {"place": where}
        else:
            place = {"place": name, "layer": int(rest)}
        if at:
            place["positions"] = tuple(int(one) for one in at.split(","))
    except ValueError:
        raise InputError(
            "place",
            f"is {spelled!r}",
            expected="a head such as 2.3, or a place with its layer such as transformed.2",
            hint="add @0,3 for some positions, @-1 for the last",
        ) from None
    return place


_FIELDS = {
    "ablate": ("place", "layer", "head", "positions", "method", "reference", "seed"),
    "patch": ("place", "layer", "head", "positions", "source", "source_positions"),
    "scale": ("place", "layer", "head", "positions", "factor"),
    "steer": ("place", "layer", "head", "positions", "direction", "strength"),
    "knock_out": ("layer", "head", "keys", "queries"),
    "freeze": ("layer", "head", "positions", "source"),
}
_MAKERS: dict[str, Callable[..., Intervention]] = {
    "ablate": ablate,
    "patch": patch,
    "scale": scale,
    "steer": steer,
    "knock_out": knock_out,
    "freeze": freeze,
}


_AT_A_PLACE = ("ablate", "patch", "scale", "steer")
"""Kinds that name a place; the others are about the weights of a head."""


def _without(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != name}


def from_table(
    table: dict[str, Any],
    encode: Callable[[str], Sequence[int]],
    where: str = "intervention",
) -> Intervention:
    """Return the intervention that a table of a sheet describes.

    `do` names the kind, the other fields are its parameters. Texts (`source`, `reference`) are
    written as text, and `at = "2.3"` is short for a place (see `place_from`).
    """
    given = dict(table)
    kind = given.pop("do", None)
    if "at" in given:
        place = place_from(str(given.pop("at")))
        given = {**(place if kind in _AT_A_PLACE else _without(place, "place")), **given}
    if kind not in _FIELDS:
        raise InputError(f"{where}.do", f"is {kind!r}", expected="one of " + ", ".join(_FIELDS))
    for name in given:
        if name not in _FIELDS[kind]:
            raise InputError(
                f"{where}.{name}",
                f"is not a field of {kind}",
                expected="its fields are " + ", ".join(_FIELDS[kind]),
            )
    for name in ("factor", "strength"):
        if isinstance(given.get(name), int):  # TOML writes 1 and 1.0 apart
            given[name] = float(given[name])
    for name in ("source", "reference"):
        if name in given:
            given[name] = torch.tensor([list(encode(str(given[name])))])
    try:
        return _MAKERS[kind](**given)
    except TypeError as error:
        missing = str(error).partition("argument")[2].strip(": s'") or str(error)
        raise InputError(where, f"{kind} lacks {missing}") from None
