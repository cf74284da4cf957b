"""Configs: what contradicts itself is refused in one line; formulas equal what is built."""

from __future__ import annotations

import json

import pytest
import torch
from pydantic import ValidationError
from reference_decoder import configs, small_config
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.errors import ConfigError, InputError
from heedful.model import (
    PRESETS,
    Cache,
    Decoder,
    DecoderConfig,
    cache_bytes,
    flops_per_token,
    parameter_count,
    preset,
    training_memory,
    weight_bytes,
)
from heedful.model.config import Attention
from heedful.model.cost import unlearned_flops
from heedful.positions.encodings import Rotary

NEEDED = {"vocabulary": 8, "context": 8, "width": 8, "layers": 1}

each_config = pytest.mark.parametrize(
    "config", [pytest.param(config, id=name) for name, config in configs().items()]
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "model.width: is 0; input should be greater than 0"),
        ({"width": "wide"}, "model.width: is 'wide'; input should be a valid integer"),
        ({"colour": 1}, "model.colour: is no setting"),
        ({"width": 30}, "model.width: 30 cannot be split into 8 heads; use a width of 24"),
        ({"attention": {"heads": 8, "kv_heads": 3}}, "8 heads cannot share 3 key-value heads"),
        ({"positions": {"kind": "rotary"}}, "a head has 1 dimensions; use an even head_width"),
        (
            {"positions": {"kind": "partial_rotary", "share": 0.5}},
            "0.5 of 1 dimensions is less than one pair",
        ),
        ({"positions": {"kind": "spiral"}}, "model.positions"),
        ({"dropout": {"residual": 1.0}}, "input should be less than 1"),
        ({"norm": {"kind": "batch"}}, "input should be 'layer' or 'rms'"),
    ],
)
def test_a_contradiction_is_one_clear_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        DecoderConfig.of({**NEEDED, **settings})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_odd_widths_have_no_waves() -> None:
    with pytest.raises(ConfigError, match="use an even width"):
        small_config("sinusoidal", width=9, attention=Attention(heads=3))


def test_missing_sizes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"model\.context: is missing"):
        DecoderConfig.of({"vocabulary": 8})
    with pytest.raises(ConfigError, match="a table of names and values"):
        DecoderConfig.of([1, 2])


def test_a_config_cannot_be_changed_in_place() -> None:
    config = small_config()
    with pytest.raises(ValidationError):
        config.width = 3
    assert config.changed(layers=5).layers == 5
    assert config.layers == 2


@each_config
def test_a_config_survives_json(config: DecoderConfig) -> None:
    text = json.dumps(config.model_dump(mode="json"))
    assert DecoderConfig.of(json.loads(text)) == config


def test_presets_are_what_they_say() -> None:
    a5 = preset("a5")
    assert (a5.layers, a5.attention.heads, a5.width, a5.context, a5.vocabulary) == (
        4, 8, 256, 128, 256,
    )  # fmt: skip
    assert parameter_count(preset("gpt2")) == 124_439_808
    assert parameter_count(preset("smollm2")) == 134_515_008
    assert preset("tiny", positions=Rotary(base=77.0)).positions == Rotary(base=77.0)
    with pytest.raises(ConfigError, match="there is none called 'huge'"):
        preset("huge")


@each_config
def test_parameters_by_formula_are_those_of_the_model(config: DecoderConfig) -> None:
    built = sum(parameter.numel() for parameter in Decoder(config).parameters())
    assert parameter_count(config) == built
    assert weight_bytes(config, "float16") == 2 * built


@pytest.mark.parametrize("name", list(PRESETS))
def test_parameters_of_presets(name: str) -> None:
    with torch.device("meta"):
        decoder = Decoder(preset(name))
    assert parameter_count(preset(name)) == sum(p.numel() for p in decoder.parameters())


@each_config
@pytest.mark.parametrize("length", [1, 7])
def test_operations_by_formula_are_those_that_torch_counts(
    config: DecoderConfig, length: int
) -> None:
    # The plain kernel, whose two products torch can count.
    decoder = Decoder(config)
    tokens = torch.zeros(2, length, dtype=torch.long)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as forward:
        logits = decoder(tokens)
    assert forward.get_total_flops() == 2 * length * flops_per_token(config, length)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    # The first layer's inputs are embeddings, which need a gradient too: nothing is saved.
    total = forward.get_total_flops() + backward.get_total_flops()
    assert total == 2 * length * flops_per_token(config, length, training=True)


@each_config
def test_operations_saved_by_formula_are_those_that_torch_does_not_count(
    config: DecoderConfig,
) -> None:
    decoder, counts = Decoder(config), []
    tokens = torch.zeros(2, 7, dtype=torch.long)
    for places in (torch.arange(14), torch.arange(14)[::3]):
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            decoder.logits(decoder.hidden(tokens, places=places)).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] - counts[1] == (14 - 5) * unlearned_flops(config)


@pytest.mark.parametrize("batch", [1, 3])
def test_memory_of_the_cache_by_formula_is_what_is_allocated(batch: int) -> None:
    config = small_config()
    assert Cache(config, batch, capacity=5).bytes == cache_bytes(config, 5, batch=batch)
    half = Cache(config, batch, dtype=torch.bfloat16).bytes
    assert half == cache_bytes(config, batch=batch, precision="bfloat16")
    with pytest.raises(InputError, match="length: is 0"):
        cache_bytes(config, 0)


@pytest.mark.parametrize("name", ["a5", "small", "gpt2", "llama"])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_memory_of_training_by_formula_is_what_torch_keeps(name: str, qk_norm: bool) -> None:
    config = preset(name).changed(
        layers=2, attention=preset(name).attention.model_copy(update={"qk_norm": qk_norm})
    )
    decoder, rows, length = Decoder(config), 2, 64
    weights = {weight.untyped_storage().data_ptr() for weight in decoder.parameters()}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.is_floating_point():  # not the tokens themselves, nor the table of rotations
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    tokens = torch.zeros(rows, length, dtype=torch.long)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = decoder(tokens)
        functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    found = sum(t.untyped_storage().nbytes() for place, t in kept.items() if place not in weights)
    memory = training_memory(config, rows * length)
    assert found == pytest.approx(memory.kept, rel=0.002)
    assert memory.weights + memory.gradients + memory.moments == 16 * parameter_count(config)
    assert memory.total == memory.kept + 16 * parameter_count(config)
