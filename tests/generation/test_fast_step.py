"""The fast step gives the logits of the decoder, for every kind of decoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import KINDS, random_decoder, random_rows
from torch.nn import functional

from heedful.errors import InputError
from heedful.generation import FastStep, fast
from heedful.generation.fast import WAYS as WAYS_OF_ONE_ROW
from heedful.generation.fast import Products, product
from heedful.generation.kernels import TorchKernels

TOLERANCE = {torch.float64: (1e-10, 1e-12), torch.float32: (1e-4, 1e-5)}


WAYS = {
    "float64": (torch.float64, False),
    "float32": (torch.float32, False),
    "compiled": (torch.float32, True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lengths", [[4], [3, 3, 3], [5, 1, 3]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_logits_are_those_of_the_decoder(kind: str, lengths: list[int], way: str) -> None:
    dtype, compiled = WAYS[way]
    decoder = random_decoder(kind, dtype=dtype)
    step = FastStep(decoder, compiled=compiled)
    longest = max(lengths)
    padding = [longest - length for length in lengths]
    rows = random_rows(decoder, lengths)
    filled = [[0] * (longest - len(row)) + row for row in rows]
    slow, fast = (decoder.new_cache(len(rows), padding=padding) for _ in range(2))
    for cache in (slow, fast):
        decoder.hidden(torch.tensor(filled), cache=cache)
    relative, absolute = TOLERANCE[dtype]
    for tokens in random_rows(decoder, [len(rows)] * 8, seed=1):
        expected = decoder(torch.tensor(tokens).unsqueeze(1), cache=slow)[:, 0]
        found = step(torch.tensor(tokens), fast)
        torch.testing.assert_close(found, expected, rtol=relative, atol=absolute)
        rows = [[*row, token] for row, token in zip(rows, tokens, strict=True)]
    assert fast.length == slow.length
    torch.testing.assert_close(fast.keys, slow.keys, rtol=relative, atol=absolute)
    for number, row in enumerate(rows):  # and those of the whole text, read without a cache
        expected = decoder(torch.tensor([row]))[0, -1]
        torch.testing.assert_close(found[number], expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lengths", [[1], [7], [3, 3, 3], [5, 1, 3]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_prompts_are_read_as_the_decoder_reads_them(
    kind: str, lengths: list[int], way: str
) -> None:
    dtype, compiled = WAYS[way]
    decoder = random_decoder(kind, dtype=dtype)
    longest = max(lengths)
    padding = [longest - length for length in lengths]
    rows = random_rows(decoder, lengths)
    filled = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    slow, fast = (decoder.new_cache(len(rows), padding=padding) for _ in range(2))
    expected = decoder(filled, cache=slow)[:, -1]
    found = FastStep(decoder, compiled=compiled).read_prompts(filled, fast)
    relative, absolute = TOLERANCE[dtype]
    torch.testing.assert_close(found, expected, rtol=relative, atol=absolute)
    assert fast.length == slow.length
    for number, count in enumerate(padding):  # what padding holds is never read
        for theirs, ours in ((slow.keys, fast.keys), (slow.values, fast.values)):
            expected, found = (stored[:, number, :, count:longest] for stored in (theirs, ours))
            torch.testing.assert_close(found, expected, rtol=relative, atol=absolute)


def test_a_full_context_is_refused() -> None:
    decoder = random_decoder("llama")
    cache, step = decoder.new_cache(1, capacity=100), FastStep(decoder)
    for _ in range(decoder.config.context):
        step(torch.tensor([1]), cache)
    with pytest.raises(InputError, match="the context of this model is 24"):
        step(torch.tensor([1]), cache)
    with pytest.raises(InputError, match="cache has 1 rows"):
        step(torch.tensor([1, 2]), cache)


def drawn(
    outputs: int, inputs: int, rows: int, seed: int, *, biased: bool = False
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """Return random weights, a bias if there is one, and rows to multiply."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=generator)
    bias = torch.randn(outputs, generator=generator) if biased else None
    return weight, bias, torch.randn(rows, inputs, generator=generator)


@given(
    outputs=st.integers(1, 40),
    inputs=st.integers(1, 40),
    rows=st.integers(1, 5),
    biased=st.booleans(),
    seed=st.integers(0, 99),
)
def test_products_of_any_shape_are_linear_maps(
    outputs: int, inputs: int, rows: int, biased: bool, seed: int
) -> None:
    weight, bias, x = drawn(outputs, inputs, rows, seed, biased=biased)
    with torch.inference_mode():
        found = product(weight, bias)(x)
    torch.testing.assert_close(found, functional.linear(x, weight, bias), rtol=1e-4, atol=1e-5)


@given(outputs=st.integers(1, 40), rows=st.integers(1, 5), seed=st.integers(0, 99))
def test_int8_is_within_its_rounding(outputs: int, rows: int, seed: int) -> None:
    inputs = 32
    weight, _, x = drawn(outputs, inputs, rows, seed)
    with torch.inference_mode():
        found = product(weight, None, "int8")(x)
    exact = functional.linear(x.double(), weight.double())
    # Half a step for each weight and a whole one for each input, with a scale for each row.
    weight_step = weight.abs().amax(dim=1) / 127
    input_step = x.abs().amax(dim=1, keepdim=True) * 2 / 127
    bound = x.abs().sum(dim=1, keepdim=True) * weight_step / 2
    bound = bound + input_step * (weight.abs().sum(dim=1) + inputs * weight_step / 2)
    assert bool(((found - exact).abs() <= bound * 1.001 + 1e-5).all())


@given(
    outputs=st.integers(1, 80),
    inputs=st.integers(1, 70),
    rows=st.integers(2, 40),
    biased=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_a_row_in_int8_does_not_depend_on_the_rows_beside_it(
    outputs: int, inputs: int, rows: int, biased: bool, seed: int
) -> None:
    weight, bias, x = drawn(outputs, inputs, rows, seed, biased=biased)
    x *= torch.logspace(-6, 6, rows)[:, None]  # rows of every size beside one another
    made = product(weight, bias, "int8")
    together = made(x)
    for row in range(rows):
        torch.testing.assert_close(made(x[row : row + 1])[0], together[row], rtol=0, atol=0)
    assert torch.equal(made(x.view(1, rows, inputs))[0], together)


@given(outputs=st.integers(1, 40), rows=st.integers(1, 3), seed=st.integers(0, 99))
def test_bfloat16_is_the_product_with_rounded_weights(outputs: int, rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, 24, generator=generator)
    x = torch.randn(rows, 24, generator=generator)
    found = product(weight, None, "bfloat16")(x)
    torch.testing.assert_close(found, x @ weight.bfloat16().float().mT, rtol=1e-5, atol=1e-5)


def test_what_was_measured_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    weights, x = [torch.randn(600, 512), torch.randn(700, 512)], torch.randn(1, 512)

    def read_twice(load: float) -> None:
        monkeypatch.setattr("heedful.generation.fast.load", lambda: load)
        for _ in range(2):
            monkeypatch.setattr("heedful.generation.fast._HERE", {})  # as in another process
            products = Products(TorchKernels())
            made = [products.product(weight, None) for weight in weights]
            for one, weight in zip(made, weights, strict=True):
                torch.testing.assert_close(one(x), x @ weight.mT, rtol=1e-4, atol=1e-4)

    read_twice(3.0)
    assert not list(tmp_path.rglob("products.json"))  # what a busy machine says is not kept
    read_twice(0.1)
    (known,) = tmp_path.rglob("products.json")
    (way,) = json.loads(known.read_text()).values()
    assert way in WAYS_OF_ONE_ROW
    known.write_text("damaged")
    read_twice(0.1)


def test_one_process_keeps_to_one_way_and_small_models_need_no_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("heedful.generation.fast.load", lambda: 3.0)
    monkeypatch.setattr("heedful.generation.fast._HERE", {})
    measured = []
    real = Products.seconds_of_ways
    monkeypatch.setattr(
        Products, "seconds_of_ways", lambda self, rows: measured.append(self) or real(self, rows)
    )
    large, small = torch.randn(1024, 512), torch.randn(16, 8)
    for weight, expected in ((small, 0), (large, 1)):
        x = torch.randn(1, weight.shape[1])
        first, again = (product(weight, None)(x) for _ in range(2))
        assert torch.equal(first, again)
        assert len(measured) == expected


@pytest.mark.parametrize(("plain", "chosen"), [(0.9, "compiled"), (0.7, "plain")])
def test_what_leaves_a_layer_whole_is_preferred(
    plain: float, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("heedful.generation.fast._HERE", {})
    taken = {"plain": plain, "compiled": 1.0, "one thread": 1.1}
    monkeypatch.setattr(Products, "seconds_of_ways", lambda self, rows: taken)
    weight, x = torch.randn(1024, 512), torch.randn(1, 512)
    torch.testing.assert_close(product(weight, None)(x), x @ weight.mT, rtol=1e-4, atol=1e-4)
    assert list(fast._HERE.values()) == [chosen]


def test_int8_needs_float32() -> None:
    with pytest.raises(InputError, match="int8 is made from float32 weights"):
        FastStep(random_decoder("llama"), "int8")
