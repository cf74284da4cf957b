"""Settings, schedules, optimisers and metrics."""

from __future__ import annotations

import math
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_training import Numbers, small_config
from torch import nn

from heedful.errors import ConfigError, InputError
from heedful.model import Decoder
from heedful.training import Optimiser, Schedule, TrainingConfig, read_config, resume, train
from heedful.training.config import config_of
from heedful.training.folder import Metrics, read_metrics
from heedful.training.session import (
    Muon,
    Optimisers,
    _by_rounds,
    _by_squares,
    orthogonalised,
    rate_share,
)


@given(
    kind=st.sampled_from(["cosine", "wsd", "constant"]),
    steps=st.integers(2, 300),
    warmup=st.integers(0, 299),
    floor=st.floats(0, 1),
    decay=st.floats(0.01, 1),
)
def test_a_schedule_rises_once_and_never_again(
    kind: Any, steps: int, warmup: int, floor: float, decay: float
) -> None:
    warmup = min(warmup, steps - 1)
    schedule = Schedule(kind=kind, warmup=warmup, floor=floor, decay=decay)
    shares = [rate_share(schedule, step, steps) for step in range(steps)]
    rising, falling = shares[:warmup], shares[warmup:]
    assert rising == sorted(rising)
    assert all(one >= two - 1e-12 for one, two in pairwise(falling))
    assert all(0 < share <= 1 for share in rising)
    assert all(floor - 1e-12 <= share <= 1 + 1e-12 for share in falling)
    assert falling[0] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_an_optimiser_goes_on_where_it_was(kind: Any) -> None:
    def learn(decoder: Decoder, optimisers: Optimisers, steps: range) -> None:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            for parameter in decoder.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimisers.step(0.5)

    config, setting = small_config().model, Optimiser(kind=kind)
    whole = Decoder(config, seed=0)
    learn(whole, Optimisers(dict(whole.named_parameters()), setting), range(6))

    pieces = Decoder(config, seed=0)
    first = Optimisers(dict(pieces.named_parameters()), setting)
    learn(pieces, first, range(3))
    second = Optimisers(dict(pieces.named_parameters()), setting)
    second.restore({name: value.clone() for name, value in first.state().items()})
    learn(pieces, second, range(3, 6))
    for one, two in zip(whole.parameters(), pieces.parameters(), strict=True):
        assert torch.equal(one, two)


def test_muon_takes_the_matrices_of_the_blocks_and_decay_spares_the_gains() -> None:
    decoder = Decoder(small_config().model, seed=0)
    optimisers = Optimisers(dict(decoder.named_parameters()), Optimiser(kind="muon"))
    adamw, muon = optimisers.parts
    names = {optimisers.names[p] for group in muon.param_groups for p in group["params"]}
    assert names == {
        name
        for name, value in decoder.named_parameters()
        if name.startswith("blocks.") and value.ndim == 2
    }
    for group in adamw.param_groups:
        matrices = {parameter.ndim >= 2 for parameter in group["params"]}
        assert matrices == {group["weight_decay"] > 0}


@pytest.mark.parametrize("shape", [(24, 16), (16, 24), (16, 16)])
def test_muon_in_bfloat16_is_that_of_torch_to_the_bit(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(shape, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    setting = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}
    steps = [
        Muon([ours], **setting, precision=torch.bfloat16),
        torch.optim.Muon([theirs], **setting, adjust_lr_fn="match_rms_adamw"),
    ]
    for _ in range(4):
        gradient = torch.randn(shape, generator=generator)
        for parameter, optimiser in zip((ours, theirs), steps, strict=True):
            parameter.grad = gradient.clone()
            optimiser.step()
        assert torch.equal(ours, theirs)


@given(rows=st.integers(1, 12), columns=st.integers(1, 12), seed=st.integers(0, 999))
@settings(deadline=None)
def test_orthogonalised_keeps_directions_and_brings_singular_values_near_one(
    rows: int, columns: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    inside = left.mT @ orthogonalised(matrix) @ right.mT
    torch.testing.assert_close(inside, torch.diag(inside.diagonal()), atol=1e-9, rtol=0)
    # Values above a hundredth of the norm are lifted within five rounds.
    large = values > 0.01 * values.norm()
    assert ((inside.diagonal()[large] > 0.6) & (inside.diagonal()[large] < 1.3)).all()


@pytest.mark.parametrize("columns", [48, 96, 320])
@pytest.mark.parametrize("smallest", [1.0, 1e-4, 1e-8])
def test_a_long_matrix_is_orthogonalised_from_its_square_alone(
    columns: int, smallest: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    left, _ = torch.linalg.qr(torch.randn(32, 32, generator=generator))
    right, _ = torch.linalg.qr(torch.randn(columns, 32, generator=generator))
    wide = (left * torch.logspace(0, math.log10(smallest), 32)) @ right.mT
    wide = wide / wide.norm()
    plain, squared = _by_rounds(wide.double()), _by_squares(wide)
    # No singular value is off by a hundredth; the rounds themselves leave 0.7 to 1.2.
    assert torch.linalg.matrix_norm(squared.double() - plain, 2) < 0.01
    assert torch.equal(orthogonalised(wide), _by_squares(wide / wide.norm()))


def test_the_state_of_another_model_is_refused() -> None:
    decoder = Decoder(small_config().model, seed=0)
    optimisers = Optimisers(dict(decoder.named_parameters()), Optimiser())
    with pytest.raises(InputError, match="elsewhere"):
        optimisers.restore({"elsewhere.weight/step": torch.zeros(1)})


def test_a_config_survives_json_and_toml(tmp_path: Path) -> None:
    config = small_config(average=0.99, data={"source": "x", "files": ["a"], "size": 3})
    assert TrainingConfig.of(config.to_dict()) == config
    path = tmp_path / "c.toml"
    path.write_text(
        'steps = 9\n[model]\npreset = "a5"\nlayers = 1\npositions = { kind = "rotary" }\n'
        "[model.dropout]\nresidual = 0.2\n[schedule]\nwarmup = 2\n",
        encoding="utf-8",
    )
    read = read_config(path)
    assert (read.model.layers, read.model.dropout.residual, read.model.width) == (1, 0.2, 256)
    assert read.model.positions.kind == "rotary"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("steps = 9", "model"),
        ('model = "tiny"\nsteps = 9', "model"),
        ('[model]\npreset = "tiny"', "steps"),
        ('steps = 9\n[model]\npreset = "huge"', "huge"),
        ('steps = 9\n[model]\npreset = "tiny"', "warmup"),
        ('steps = 0\n[model]\npreset = "tiny"', "steps"),
        ('steps = 500\nlerning_rate = 1\n[model]\npreset = "tiny"', "lerning_rate"),
        ('steps = 500\nclip = -1.0\n[model]\npreset = "tiny"', "clip"),
        ('steps = 500\n[data]\nday = 1979-05-27\n[model]\npreset = "tiny"', "date"),
        ("steps = ", "TOML"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=found) as caught:
        read_config(path)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_config_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"steps = 1 # \xff")
    with pytest.raises(InputError, match="UTF-8"):
        read_config(tmp_path / "bytes.toml")
    (tmp_path / "long.toml").write_text("#" * 70_000, encoding="utf-8")
    with pytest.raises(InputError, match="bytes"):
        read_config(tmp_path / "long.toml")
    with pytest.raises(ConfigError):
        config_of({"model": None})


def test_metrics_go_on_after_a_step(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0, tensorboard=False)
    for step in (1, 2, 3):
        metrics.write(step, {"loss": 1.0 / step, "strange": float("nan")})
    metrics.close()
    metrics = Metrics(tmp_path, 2, tensorboard=False)
    metrics.write(3, {"loss": 9.0})
    metrics.close()
    assert [line["loss"] for line in read_metrics(tmp_path)] == [1.0, 0.5, 9.0]
    assert read_metrics(tmp_path)[0]["strange"] is None


def test_tensorboard_reads_the_same_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = small_config(tensorboard=True, steps=6, save_every=4)
    train(config, Numbers(), tmp_path / "run")
    # A run that lost its last checkpoint goes on after step 4; then it is finished.
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000006")
    for _ in range(2):
        resume(tmp_path / "run", Numbers())
    assert len(list((tmp_path / "run" / "events").iterdir())) == 2
    events = EventAccumulator(str(tmp_path / "run" / "events"))
    events.Reload()
    theirs = [(event.step, event.value) for event in events.Scalars("loss")]
    ours = [(line["step"], line["loss"]) for line in read_metrics(tmp_path / "run")]
    assert [step for step, _ in theirs] == [step for step, _ in ours]
    assert [loss for _, loss in theirs] == pytest.approx([loss for _, loss in ours], rel=1e-6)
