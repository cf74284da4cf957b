"""A decoder learns the same from packed rows, from buckets, and from one document at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from heedful.data.batches import IGNORE, Batch, Sequences, bucketed, packed
from heedful.model import Decoder, DecoderConfig

WIDTH = 16


def loss_of(decoder: Decoder, batch: Batch) -> torch.Tensor:
    logits = decoder(torch.from_numpy(batch.tokens), documents=torch.from_numpy(batch.documents))
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        torch.from_numpy(batch.targets).flatten(),
        ignore_index=IGNORE,
        reduction="sum",
    )


def gradients(decoder: Decoder, batches: Iterable[Batch]) -> list[torch.Tensor]:
    decoder.zero_grad()
    for batch in batches:
        loss_of(decoder, batch).backward()
    return [weight.grad.clone() for weight in decoder.parameters() if weight.grad is not None]


def test_gradients_are_those_of_each_document_alone() -> None:
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(vocabulary=30, context=WIDTH, width=24, layers=2)).double()
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, WIDTH + 1, 20).tolist()
    sequences = Sequences.of(
        [rng.integers(1, 30, length).tolist() for length in lengths],
        prompts=[int(rng.integers(0, length)) for length in lengths],
    )
    single = [sequences.take(np.array([number])) for number in range(len(sequences))]
    alone = gradients(decoder, (bucketed(each).batch(0) for each in single))
    for made in (packed(sequences, width=WIDTH, rows=4), bucketed(sequences, columns=4 * WIDTH)):
        for found, expected in zip(
            gradients(decoder, made.iterate(0, len(made))), alone, strict=True
        ):
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
