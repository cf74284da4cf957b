"""The compiled operations are those of torch, and everything works without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tools
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import random_decoder, random_rows
from torch.nn import functional

from heedful.generation import FastStep, Stops, generate, kernels
from heedful.generation.kernels import CompiledKernels, TorchKernels, kernels_for
from heedful.model import Cache, preset
from heedful.model.config import Attention
from heedful.model.masks import AttentionMask
from heedful.model.rotary import Rotation
from heedful.positions.encodings import Rotary


@pytest.fixture(scope="module")
def compiled() -> CompiledKernels:
    kernels = kernels_for(torch.zeros(1))
    if tools.compiler() is None:
        pytest.skip(tools.NO_COMPILER)
    assert isinstance(kernels, CompiledKernels), "the compiler of this machine has no OpenMP"
    return kernels


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Look for a compiler again, before and after."""
    kernels._loaded.cache_clear()
    yield
    kernels._loaded.cache_clear()


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (33, 512), (70, 600)], ids=str)
def test_norms(compiled: CompiledKernels, shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator) * 3 + 1
    gains, shifts = torch.randn(2, shape[1], generator=generator)
    rms = functional.rms_norm(x.double(), shape[1:], gains.double(), 1e-5)
    layer = functional.layer_norm(x.double(), shape[1:], gains.double(), shifts.double(), 1e-5)
    torch.testing.assert_close(
        compiled.rms_norm(x, gains, 1e-5).double(), rms, rtol=2e-6, atol=2e-6
    )
    torch.testing.assert_close(
        compiled.layer_norm(x, gains, shifts, 1e-5).double(), layer, rtol=2e-6, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (9, 130), (65, 512), (600, 1_000)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shifted", [True, False])
def test_every_way_to_multiply_one_row_is_the_same_product(
    compiled: CompiledKernels, shape: tuple[int, int], dtype: torch.dtype, shifted: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(shape, generator=generator).to(dtype)
    bias = torch.randn(shape[0], generator=generator) if shifted else None
    x = torch.randn(1, 2 * shape[1], generator=generator)[:, ::2]  # not contiguous
    wanted = functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    ways = TorchKernels().one_row(weight, bias) | compiled.one_row(weight, bias)
    assert "compiled" in ways
    for name, way in ways.items():
        found = way(x.contiguous() if name == "blocks" else x)
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4, msg=name)


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (33, 130), (65, 512), (600, 1_001)], ids=str)
@pytest.mark.parametrize("rows", [2, 6, 7, 19])
def test_every_way_to_multiply_several_rows_is_the_same_product(
    compiled: CompiledKernels, shape: tuple[int, int], rows: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(shape, generator=generator), torch.randn(shape[0])
    x = torch.randn(rows, shape[1], generator=generator)
    wanted = functional.linear(x.double(), weight.double(), bias.double())
    ways = compiled.many_rows(weight, bias)
    assert set(ways) == {"packed", "panels"}
    for name, way in ways.items():
        torch.testing.assert_close(way(x).double(), wanted, rtol=1e-5, atol=1e-4, msg=name)


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (33, 130), (600, 1_001), (40, 9_000)], ids=str)
@pytest.mark.parametrize("rows", [1, 6, 7])
def test_weights_of_8_bits_are_multiplied_as_whole_numbers(
    compiled: CompiledKernels, shape: tuple[int, int], rows: int
) -> None:
    inputs = shape[1]
    generator = torch.Generator().manual_seed(1)
    levels = min(32_767, 2**31 // (128 * inputs))
    weight = torch.randint(-127, 128, shape, generator=generator).float()
    x = torch.randint(-levels, levels + 1, (rows, inputs), generator=generator).float()
    weight[:, 0], x[:, 0] = 127, levels  # the largest numbers: every scale is 1
    exact = (x.long() @ weight.long().mT).float()
    for way in compiled.eight_bits(weight, None).values():
        torch.testing.assert_close(way(x), exact, rtol=1e-6, atol=0)
    full = torch.full_like(weight, -127), torch.full_like(x, levels)  # the largest sum there is
    (found, *_) = compiled.eight_bits(full[0], None).values()
    exact = (full[1].long() @ full[0].long().mT).float()
    torch.testing.assert_close(found(full[1]), exact, rtol=1e-6, atol=0)


def test_a_row_that_is_not_finite_stays_so_in_8_bits_and_spoils_no_other(
    compiled: CompiledKernels,
) -> None:
    weight = torch.randn(20, 30)
    x = torch.randn(4, 30)
    way = compiled.eight_bits(weight, None)["compiled"]
    expected = way(x)
    x[1, 3], x[2, 29], x[3] = torch.nan, -torch.inf, 0.0
    found = way(x)
    assert torch.equal(found[0], expected[0])
    assert not found[1:3].isfinite().any()
    assert torch.equal(found[3], torch.zeros(20))


def test_activations_over_all_magnitudes(compiled: CompiledKernels) -> None:
    sizes = torch.logspace(-30, 4, 2_000)
    x = torch.cat([-sizes, torch.zeros(1), sizes])
    found = compiled.activation("gelu_tanh")(x.clone())
    expected = functional.gelu(x.double(), approximate="tanh")
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=2e-6)
    gates = torch.cat([x, torch.full_like(x, 2.0)]).view(1, -1)
    expected = functional.silu(x.double()) * 2
    torch.testing.assert_close(
        compiled.activation("swiglu")(gates)[0].double(), expected, rtol=2e-6, atol=1e-30
    )


@given(
    rows=st.integers(1, 4),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 3),
    pairs=st.sampled_from([1, 3, 4, 8, 16, 32, 40]),
    column=st.integers(1, 40),
    layout=st.sampled_from([None, "half", "interleaved"]),
    padded=st.booleans(),
    seed=st.integers(0, 99),
)
@torch.inference_mode()
def test_attention_reads_what_torch_reads(
    compiled: CompiledKernels,
    rows: int,
    kv_heads: int,
    group: int,
    pairs: int,
    column: int,
    layout: str | None,
    padded: bool,
    seed: int,
) -> None:
    heads, width = kv_heads * group, 2 * pairs
    config = preset("tiny").changed(
        attention=Attention(heads=heads, kv_heads=kv_heads, head_width=width), width=heads * 2
    )
    generator = torch.Generator().manual_seed(seed)
    padding = torch.randint(0, column, (rows,), generator=generator).tolist() if padded else None
    caches = [Cache(config, rows, capacity=column + 1, padding=padding) for _ in range(2)]
    stored = torch.randn(caches[0].keys.shape, generator=generator)
    for cache in caches:
        cache.keys.copy_(stored)
        cache.values.copy_(stored.flip(0))
        cache.length = column
    vectors = torch.randn(rows, heads + 2 * kv_heads, width, generator=generator)
    matched, values = vectors.split((heads + kv_heads, kv_heads), dim=1)
    rotation = None
    if layout is not None:
        positions = torch.full((rows, 1), column)
        rotation = Rotation.at(positions, column + 1, Rotary(layout=layout), width, torch.float32)
    bias = torch.randn(1, heads, 1, column + 1, generator=generator)
    allowed = None
    if padding is not None:
        allowed = torch.arange(column + 1) >= torch.tensor(padding).view(-1, 1, 1, 1)
    found = compiled.attend(matched, values, AttentionMask(bias=bias), rotation, caches[0], 0)
    mask = AttentionMask(allowed, bias)
    expected = TorchKernels().attend(matched, values, mask, rotation, caches[1], 0)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-5)
    torch.testing.assert_close(caches[0].keys, caches[1].keys, rtol=1e-6, atol=1e-6)
    assert torch.equal(caches[0].values, caches[1].values)


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("missing", ["compiler", "switched off", "broken compiler", "no cache"])
def test_without_them_the_tokens_are_the_same(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = random_decoder("llama")
    rows, stops = random_rows(decoder, [3, 5]), Stops(tokens=6)
    expected = generate(decoder, rows, stops=stops).continuations
    kernels._loaded.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if missing == "compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif missing == "switched off":
        monkeypatch.setenv(kernels.SWITCH, "off")
    elif missing == "broken compiler":
        monkeypatch.setenv("CXX", "false")
    else:
        (tmp_path / "heedful").write_text("a file where a folder should be")
    step = FastStep(decoder)
    assert not isinstance(step.kernels, CompiledKernels)
    found = generate(decoder, rows, stops=stops, step=step).continuations
    assert [one.tokens for (one,) in found] == [one.tokens for (one,) in expected]


@pytest.mark.usefixtures("forgotten")
def test_they_are_compiled_once_and_instead_of_a_damaged_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = kernels._compiler()
    assert compiler is not None
    made = tmp_path / "heedful" / "kernels" / f"{kernels._fingerprint(compiler)}.so"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"not a library")
    assert isinstance(kernels_for(torch.zeros(1)), CompiledKernels)
    assert list(made.parent.iterdir()) == [made]
    assert made.read_bytes()[:4] == b"\x7fELF"
    first = made.stat().st_mtime_ns
    kernels._loaded.cache_clear()
    assert isinstance(kernels_for(torch.zeros(1)), CompiledKernels)
    assert made.stat().st_mtime_ns == first
