"""Where batches come from, as far as training is concerned: a number in, arrays out.

A feed has a length (batches in an epoch) and gives batch number i of the run, counted over all
epochs. One integer is therefore the whole state of the feed, and a stopped run goes on without
replaying anything. `heedful.data.batches.Batches` is one; anything of this shape will do.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import InputError
from heedful.model.config import DecoderConfig

IGNORE = -100
"""The target of a token whose successor is not learned."""


@runtime_checkable
class BatchArrays(Protocol):
    """Rows of token ids, what each should predict, and which document each belongs to."""

    @property
    def tokens(self) -> Any:
        """(rows, time): what the decoder reads."""

    @property
    def targets(self) -> Any:
        """(rows, time): the next token; `IGNORE` where none is learned."""

    @property
    def documents(self) -> Any:
        """(rows, time): the number of the document within its row; -1 for padding at the end."""


@runtime_checkable
class Feed(Protocol):
    """All batches of all epochs."""

    def __len__(self) -> int:
        """How many batches an epoch has."""

    def batch(self, index: int) -> BatchArrays:
        """Return batch `index` of the run, counted over all epochs."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are computed together, as tensors."""

    tokens: Int[Tensor, "rows time"]
    targets: Int[Tensor, "rows time"]
    documents: Int[Tensor, "rows time"] | None
    """None where every row holds one document: the causal rule is then enough."""

    def __len__(self) -> int:
        return self.tokens.shape[0]

    @property
    def learned(self) -> int:
        """Tokens whose successor is learned."""
        return int((self.targets != IGNORE).sum())

    def take(self, part: slice) -> Rows:
        """Return some of the rows."""
        documents = None if self.documents is None else self.documents[part]
        return Rows(self.tokens[part], self.targets[part], documents)

    def split(self, parts: int, most: int | None = None) -> list[list[Rows]]:
        """Return the rows of each of several lanes, in pieces of at most `most` rows."""
        found: list[list[Rows]] = []
        bounds = [len(self) * part // parts for part in range(parts + 1)]
        for start, end in pairwise(bounds):
            size = most or max(end - start, 1)
            places = range(start, end, size)
            found.append([self.take(slice(place, min(place + size, end))) for place in places])
        return found

    def to(self, device: torch.device) -> Rows:
        """Return the rows on a device."""
        documents = None if self.documents is None else self.documents.to(device)
        return Rows(self.tokens.to(device), self.targets.to(device), documents)


def rows_of(batch: BatchArrays) -> Rows:
    """Return a batch as tensors, without the documents where the causal rule is enough.

    Padding stands at the end of a row, where nothing before it sees it and no loss counts it.
    """
    tokens, targets, documents = (
        np.asarray(part) for part in (batch.tokens, batch.targets, batch.documents)
    )
    alone = bool((documents <= 0).all()) and bool((documents[:, 1:] <= documents[:, :-1]).all())
    return Rows(
        torch.from_numpy(tokens),
        torch.from_numpy(targets),
        None if alone else torch.from_numpy(documents),
    )


def check_feed(feed: Feed, model: DecoderConfig) -> str:
    """Refuse a feed that the decoder cannot read; return the SHA-256 of its first batch."""
    if len(feed) < 1:
        raise InputError("data", "holds no batch", expected="at least one was expected")
    first = feed.batch(0)
    arrays = {name: np.asarray(getattr(first, name)) for name in ("tokens", "targets", "documents")}
    shape = arrays["tokens"].shape
    for name, array in arrays.items():
        if array.ndim != 2 or array.shape != shape or 0 in shape or array.dtype.kind != "i":
            raise InputError(
                f"data.{name}",
                f"is {array.dtype} of shape {array.shape}",
                expected="whole numbers in rows, of one shape for tokens, targets and documents",
            )
    if shape[1] > model.context:
        raise InputError(
            "data",
            f"has rows of {shape[1]} tokens",
            expected=f"the context of the model is {model.context}",
            hint="make the rows shorter, or model.context longer",
        )
    highest = int(max(arrays["tokens"].max(), arrays["targets"].max()))
    if highest >= model.vocabulary or arrays["tokens"].min() < 0:
        raise InputError(
            "data",
            f"holds the token id {highest}",
            expected=f"ids 0 to {model.vocabulary - 1} were expected",
            hint="set model.vocabulary to the size of the tokenizer",
        )
    return fingerprint(first)


def fingerprint(batch: BatchArrays) -> str:
    """Return the SHA-256 of a batch: other data, order or tokenizer give another."""
    digest = hashlib.sha256()
    for part in (batch.tokens, batch.targets, batch.documents):
        array = np.ascontiguousarray(part, dtype="<i8")
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
