"""LoRA: nothing at the start, one decoder after merging, and nothing else trained between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import ConfigError, InputError
from heedful.generation import FastStep
from heedful.model import Decoder, preset
from heedful.model.lora import LowRank, add_lora, merge_lora, trained_count
from heedful.training import Compute, Hooks, Schedule, TrainingConfig, resume, train
from heedful.training.runs import trained_decoder

TOKENS = torch.tensor([[72, 101, 101, 100], [1, 2, 3, 4]])


class Counting:
    """Batches that a decoder can learn: each token is the one before and 1."""

    tokens = np.tile(np.arange(8), (4, 1))
    targets = tokens + 1
    documents = np.zeros_like(tokens)

    def __len__(self) -> int:
        return 3

    def batch(self, _index: int) -> Counting:
        return self


def decoder_in_double(seed: int = 0) -> Decoder:
    return Decoder(preset("tiny"), seed=seed).double().eval()


def shake(decoder: Decoder, seed: int) -> None:
    """Give every addition something to add."""
    generator = torch.Generator().manual_seed(seed)
    for part in decoder.modules():
        if isinstance(part, LowRank):
            part.B.data.normal_(0.0, 0.1, generator=generator)


@given(rank=st.integers(1, 8), seed=st.integers(0, 99))
def test_it_adds_nothing_at_the_start(rank: int, seed: int) -> None:
    decoder = decoder_in_double(seed)
    before = decoder(TOKENS)
    add_lora(decoder, rank, seed=seed)
    torch.testing.assert_close(decoder(TOKENS), before, rtol=0, atol=0)


@given(rank=st.integers(1, 8), alpha=st.floats(0.1, 40.0), seed=st.integers(0, 99))
def test_merged_is_the_same_function_in_a_plain_decoder(rank: int, alpha: float, seed: int) -> None:
    decoder = decoder_in_double(seed)
    plain = decoder(TOKENS)
    add_lora(decoder, rank, alpha=alpha)
    shake(decoder, seed)
    unmerged = decoder(TOKENS)
    merge_lora(decoder)

    assert not any(isinstance(part, LowRank) for part in decoder.modules())
    assert decoder.state_dict().keys() == decoder_in_double().state_dict().keys()
    torch.testing.assert_close(decoder(TOKENS), unmerged, rtol=1e-9, atol=1e-12)
    assert not torch.equal(unmerged, plain)


def test_readers_of_weights_see_the_sum() -> None:
    decoder = Decoder(preset("tiny"), seed=1).eval()
    add_lora(decoder, 4)
    shake(decoder, 1)
    cache = decoder.new_cache(batch=2)
    fast = [FastStep(decoder)(TOKENS[:, place], cache) for place in range(TOKENS.shape[1])]
    torch.testing.assert_close(torch.stack(fast, dim=1), decoder(TOKENS), rtol=1e-4, atol=1e-5)


def test_only_the_additions_are_trained() -> None:
    decoder = Decoder(preset("tiny"), seed=0)
    before = {name: value.clone() for name, value in decoder.state_dict().items()}
    add_lora(decoder, 2)
    trained = [name for name, value in decoder.named_parameters() if value.requires_grad]
    assert trained
    assert all(name.endswith((".A", ".B")) for name in trained)
    # Four matrices a layer, each with rank × (inputs + outputs).
    width, hidden, qkv = 64, 176, 64 + 2 * 32
    shapes = [(width, qkv), (width, width), (width, 2 * hidden), (hidden, width)]
    assert trained_count(decoder) == 2 * 2 * sum(map(sum, shapes))
    merge_lora(decoder)
    for name, value in decoder.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_bad_ranks_and_a_second_helping_are_refused() -> None:
    decoder = Decoder(preset("tiny"), seed=0)
    for rank in (0, 65):
        with pytest.raises(ConfigError, match="rank"):
            add_lora(decoder, rank)
    add_lora(decoder, 1)
    with pytest.raises(InputError, match="already"):
        add_lora(decoder, 1)


def test_a_run_trains_and_saves_the_additions_alone_and_can_be_resumed(tmp_path: Path) -> None:
    base = Decoder(preset("tiny"), seed=3)
    config = TrainingConfig(
        model=base.config,
        steps=6,
        schedule=Schedule(kind="constant", warmup=0),
        save_every=3,
        log_every=1,
        tensorboard=False,
        compute=Compute(lanes=2, precision="float32", compile=False),
    )
    hooks = Hooks(initial=base.state_dict(), adapt=lambda decoder: add_lora(decoder, 2))
    whole = train(config, Counting(), tmp_path / "whole", hooks=hooks)
    assert whole.loss is not None

    with pytest.raises(InputError, match="added to other weights"):
        trained_decoder(tmp_path / "whole")

    # The same run, thrown back to its first checkpoint.
    train(config, Counting(), tmp_path / "again", hooks=hooks)
    for file in (tmp_path / "again" / "checkpoints" / "step-00000006").iterdir():
        file.unlink()
    again = resume(tmp_path / "again", Counting(), hooks=hooks)
    assert again.resumed_from == 3
    assert again.weights_sha256 == whole.weights_sha256
