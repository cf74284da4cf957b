"""A decoding step, compiled on this machine where there is a compiler.

One token a row leaves so little to do that starting a dozen operations a layer takes longer than
some of their arithmetic: a third of the time of a small model. `kernels.cpp` has them one by one,
and a whole layer in one call. It is compiled for this processor when first needed, which takes
seconds, and kept in the user's cache. Without a compiler, with other dtypes, on other devices,
or with `HEEDFUL_KERNELS=off`, the same equations run as torch operations.

`kernels_for` is the only door. `TorchKernels` says what each function means, in torch;
`CompiledKernels` computes the same, and tests hold one to the other.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedful.files import sha256, user_cache
from heedful.model import Cache
from heedful.model.decoder import ACTIVATIONS, Map, rms_norm
from heedful.model.masks import AttentionMask
from heedful.model.rotary import Rotation

SOURCE = Path(__file__).with_name("kernels.cpp")
SWITCH = "HEEDFUL_KERNELS"
"""An environment variable: `off` does without."""
COMPILERS = ("c++", "g++", "clang++")
# No errno and no traps: without these two, comparisons and roots are done one at a time.
FLAGS = "-O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -shared -fPIC -std=c++17"
SECONDS = 120
"""A compiler that takes longer is given up."""


def kernels_for(weight: Tensor, *, compiled: bool = True) -> TorchKernels:
    """Return the operations for a model with such weights: compiled where that can be had."""
    suitable = weight.dtype == torch.float32 and weight.device.type == "cpu"
    switched_off = os.environ.get(SWITCH, "").lower() == "off"
    if not compiled or not suitable or switched_off:
        return TorchKernels()
    return _loaded() or TorchKernels()


@dataclass(frozen=True)
class NormWeights:
    """What a norm multiplies with and adds; without shifts it is RMSNorm."""

    gains: Tensor
    shifts: Tensor | None
    eps: float


@dataclass(frozen=True)
class LayerShape:
    """What a layer is, apart from its weights."""

    heads: int
    kv_heads: int
    head_width: int
    activation: str
    pre_norm: bool


class TorchKernels:
    """What happens between the products of a step, as torch operations of any dtype."""

    needs_mask = True
    """Whether `attend` reads the mask; else padding is read from the cache."""

    compiled = False
    """Whether these are compiled functions."""

    def norm(self, weights: NormWeights) -> Map:
        """Return a norm with these weights."""
        gains, shifts, eps = weights.gains, weights.shifts, weights.eps
        if shifts is None:
            return lambda x: self.rms_norm(x, gains, eps)
        return lambda x: self.layer_norm(x, gains, shifts, eps)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Return w x / √(mean x² + ε)."""
        return rms_norm(x, weight, eps)

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
        """Return w (x − mean x) / √(var x + ε) + b."""
        return torch.layer_norm(x, weight.shape, weight, bias, eps)

    def activation(self, name: str) -> Map:
        """Return what is between the two products of a feed-forward part."""
        return ACTIVATIONS[name]

    def one_row(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return the ways to compute x Wᵀ + b for a single row x; which is fastest, a clock tells.

        Weights in bfloat16 are multiplied as float32 numbers.
        """
        if weight.dtype == torch.bfloat16:
            return {"plain": lambda x: functional.linear(x, weight.float(), bias)}
        ways: dict[str, Map] = {"plain": lambda x: functional.linear(x, weight, bias)}
        if len(weight) >= BLOCKS and weight.device.type == "cpu":
            ways["blocks"] = in_blocks(weight, bias)
        return ways

    def many_rows(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return the ways to compute x Wᵀ + b for several rows."""
        return {"packed": packed(weight, bias)}

    def eight_bits(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return our own ways to multiply rows with weights of 8 bits; here there are none."""
        return {}

    def layer(
        self,
        shape: LayerShape,
        norms: Mapping[str, NormWeights | None],
        products: Mapping[str, Map],
    ) -> CompiledLayer | None:
        """Return a whole layer in one call; here there is none."""
        return None

    def attend(
        self,
        matched: Float[Tensor, "rows heads_and_kv_heads width"],
        values: Float[Tensor, "rows kv_heads width"],
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache,
        layer: int,
    ) -> Float[Tensor, "rows read"]:
        """Store the new keys and values of a layer; return what its heads read, side by side.

        `matched` are the queries, already divided by √d, and the keys of each row. Queries of
        heads that share a key-value head see the same keys: they are stacked as if they were
        several tokens, and need no copies of the keys.
        """
        rows, kv_heads, width = values.shape
        heads = matched.shape[1] - kv_heads
        if rotation is not None:
            matched = rotation(matched.unsqueeze(1)).squeeze(1)
        queries, keys = torch.split_with_sizes(matched, (heads, kv_heads), dim=1)
        all_keys, all_values = cache.extend(layer, keys.unsqueeze(2), values.unsqueeze(2))
        # Contiguous, because the fast way to write a batch of columns is a transposed row.
        queries = queries.reshape(rows, kv_heads, -1, width).contiguous()
        added = mask.attn_mask
        if added is not None and added.shape[1] == heads:  # (rows, heads, 1, keys): by group
            added = added.view(len(added), kv_heads, -1, added.shape[-1])
        return _read(queries, all_keys, all_values, added).reshape(rows, -1)


BLOCKS = 8
"""Into how many products a matrix is cut for one row; two already use two cores."""


def in_blocks(weight: Tensor, bias: Tensor | None) -> Map:
    """Return x Wᵀ + b for one row as a batch of small products, which all cores share.

    Libraries have a kernel for "matrix times vector" that often keeps a single core busy.
    """
    outputs, inputs = weight.shape
    even = outputs - outputs % BLOCKS
    blocks = weight[:even].view(BLOCKS, even // BLOCKS, inputs)
    shifts = None if bias is None else bias[:even].view(BLOCKS, even // BLOCKS, 1)
    rest = weight[even:], None if bias is None else bias[even:]

    def apply(x: Tensor) -> Tensor:
        # One column a block, written as a transposed row: of the two ways to describe the same
        # memory, MKL is several times slower with the other.
        column = x.as_strided((BLOCKS, inputs, 1), (0, 1, inputs))
        if shifts is None:
            blockwise = torch.bmm(blocks, column).view(1, even)
        else:
            blockwise = torch.baddbmm(shifts, blocks, column).view(1, even)
        return (
            blockwise
            if even == outputs
            else torch.cat([blockwise, functional.linear(x, *rest)], dim=1)
        )

    return apply


def packed(weight: Tensor, bias: Tensor | None) -> Map:
    """Return x Wᵀ + b with weights in the order of oneDNN's kernels, where torch has them."""
    if not _can_pack(weight):
        return lambda x: functional.linear(x, weight, bias)
    linear: Any = torch.ops.mkldnn._linear_pointwise.default
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, 32)
    return lambda x: linear(x, packed, bias, "none", [], "")


def _can_pack(weight: Tensor) -> bool:
    # These operators are the ones that torch.compile emits for linear layers on CPUs; they
    # are not in torch's public interface, so their absence must not hurt.
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def _read(
    queries: Float[Tensor, "rows kv_heads group width"],
    keys: Float[Tensor, "rows kv_heads columns width"],
    values: Float[Tensor, "rows kv_heads columns width"],
    mask: Tensor | None,
) -> Float[Tensor, "rows kv_heads group width"]:
    """Return softmax(qkᵀ + mask) v, for queries that were divided by √d."""
    # The fused kernel is made for many queries. With one a head, two batched products read keys
    # and values faster, and of the two ways to write each, the one with a column on the right.
    one_query = queries.shape[2] == 1
    logits = (keys @ queries.mT).mT if one_query else queries @ keys.mT
    if mask is not None:
        hidden = mask.dtype == torch.bool
        logits = logits.masked_fill(~mask, -torch.inf) if hidden else logits + mask
    weights = logits.softmax(dim=-1)
    return (values.mT @ weights.mT).mT if one_query else weights @ values


_ADDRESS, _COUNT, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_ROTATION = [*[_ADDRESS] * 2, *[_COUNT] * 2, _FLAG]
_CACHE = [*[_ADDRESS] * 2, *[_COUNT] * 2]
_SEEN = [*[_ADDRESS] * 2, _COUNT]  # padding, bias
_SIGNATURES = {
    "norm": [*[_ADDRESS] * 4, *[_COUNT] * 2, ctypes.c_float, *[_FLAG] * 2],
    "attend": [
        *[_ADDRESS, _COUNT] * 2,  # queries and keys, values
        *_ROTATION,
        *_CACHE,
        *_SEEN,
        _ADDRESS,  # output
        *[_COUNT] * 5,
        _FLAG,
    ],
    "linear": [*[_ADDRESS] * 3, _COUNT, _FLAG],
    "run_layer": [*[_ADDRESS] * 2, *_ROTATION, *_CACHE, *_SEEN, *[_COUNT] * 2, _FLAG],
    "swiglu": [*[_ADDRESS] * 2, *[_COUNT] * 2, _FLAG],
    "gelu_tanh": [_ADDRESS, _COUNT, _FLAG],
}
_FLOATS, _BFLOATS, _PANELS, _BYTES = range(4)
"""How a compiled matrix is kept: `Kept` of kernels.cpp."""
_COMPILED_ACTIVATIONS = ("gelu_tanh", "swiglu")
"""In the order of `Activation` of kernels.cpp."""


class _Matrix(ctypes.Structure):
    """`Matrix` of kernels.cpp."""

    _fields_: ClassVar = [
        ("weights", _ADDRESS),
        ("scales", _ADDRESS),
        ("bias", _ADDRESS),
        ("outputs", _COUNT),
        ("inputs", _COUNT),
        ("kept", _FLAG),
        ("threads", _FLAG),
    ]


class _Norm(ctypes.Structure):
    """`Norm` of kernels.cpp."""

    _fields_: ClassVar = [("gains", _ADDRESS), ("shifts", _ADDRESS), ("eps", ctypes.c_float)]


class _Layer(ctypes.Structure):
    """`Layer` of kernels.cpp."""

    _fields_: ClassVar = [
        *[(name, _Norm) for name in ("attention_norm", "query_norm", "key_norm")],
        ("feed_forward_norm", _Norm),
        *[(name, _Matrix) for name in ("qkv", "output", "up", "down")],
        *[(name, _COUNT) for name in ("heads", "kv_heads", "head_width")],
        ("activation", _FLAG),
        ("pre_norm", _FLAG),
    ]


class CompiledProduct:
    """x ↦ x Wᵀ + b by our compiled function; `matrix` is what a compiled layer takes of it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        weight: Tensor,
        bias: Tensor | None,
        kept: int,
        *,
        shape: tuple[int, int],
        scales: Tensor | None = None,
        threads: int = 0,
    ) -> None:
        self.outputs, inputs = shape
        filled = torch.zeros(self.outputs + library.panel_width())
        if bias is not None:
            filled[: self.outputs] = bias
        self.alive = (weight, scales, filled)
        addresses = (weight.data_ptr(), _address(scales), filled.data_ptr())
        self.matrix = _Matrix(*addresses, self.outputs, inputs, kept, threads)
        self._function, self._place = library.linear, ctypes.addressof(self.matrix)

    def __call__(self, x: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        """Return the product for one row, or for as many as it was made for."""
        x, out = x.contiguous(), torch.empty(*x.shape[:-1], self.outputs)
        rows = x.numel() // x.shape[-1]
        self._function(self._place, x.data_ptr(), out.data_ptr(), rows, torch.get_num_threads())
        return out


class CompiledLayer:
    """A whole layer in one call, for one token a row."""

    def __init__(
        self,
        library: ctypes.CDLL,
        shape: LayerShape,
        norms: Mapping[str, NormWeights | None],
        products: Mapping[str, CompiledProduct],
    ) -> None:
        self.alive = (norms, products)
        layer = _Layer(
            **(vars(shape) | {"activation": _COMPILED_ACTIVATIONS.index(shape.activation)})
        )
        for name, norm in norms.items():
            if norm is not None:
                setattr(layer, name, _Norm(_address(norm.gains), _address(norm.shifts), norm.eps))
        for name, product in products.items():
            setattr(layer, name, product.matrix)
        self._layer, self._function = layer, library.run_layer

    def __call__(
        self,
        stream: Float[Tensor, "rows width"],
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache,
        number: int,
    ) -> Float[Tensor, "rows width"]:
        """Change the stream as layer `number` does, and return it."""
        self._function(
            ctypes.addressof(self._layer),
            stream.data_ptr(),
            *_angles(rotation),
            *_stored(cache, number),
            *_seen(cache, mask),
            len(stream),
            cache.length,
            torch.get_num_threads(),
        )
        return stream


def _angles(rotation: Rotation | None) -> tuple[int | None, int | None, int, int, bool]:
    """Return cosines, sines, how many there are, how far the rows lie apart, and the layout."""
    if rotation is None:
        return None, None, 0, 0, False
    cosines = rotation.cosines
    pairs = cosines.shape[-1]
    stride = 0 if len(cosines) == 1 else pairs  # one position for all rows, or one each
    return cosines.data_ptr(), rotation.sines.data_ptr(), pairs, stride, rotation.table.interleaved


def _stored(cache: Cache, layer: int) -> tuple[int, int, int, int]:
    """Return keys and values of a layer, how far its rows lie apart, and the columns there are."""
    keys, values = cache.keys[layer], cache.values[layer]
    return keys.data_ptr(), values.data_ptr(), keys.stride(0), keys.stride(1) // keys.shape[-1]


def _seen(cache: Cache, mask: AttentionMask) -> tuple[int | None, int | None, int]:
    """Return the columns of padding, and what is added to the logits."""
    bias = mask.bias
    return _address(cache.padding), _address(bias), 0 if bias is None else bias.stride(1)


class CompiledKernels(TorchKernels):
    """The same as compiled functions, for contiguous float32 tensors in this machine's memory."""

    needs_mask, compiled = False, True

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, None
        library.panel_width.argtypes, library.panel_width.restype = [], _COUNT
        self._library = library

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Return w x / √(mean x² + ε)."""
        return self._norm(x, weight, None, eps)

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
        """Return w (x − mean x) / √(var x + ε) + b."""
        if bias is None:
            return super().layer_norm(x, weight, bias, eps)
        return self._norm(x, weight, bias, eps)

    def activation(self, name: str) -> Map:
        """Return what is between the two products of a feed-forward part."""
        own = {"swiglu": self._swiglu, "gelu_tanh": self._gelu_tanh}
        return own.get(name) or super().activation(name)

    def one_row(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return the ways to compute x Wᵀ + b for a single row x."""
        narrow = weight.dtype == torch.bfloat16
        kept = _BFLOATS if narrow else _FLOATS
        make = partial(CompiledProduct, self._library, weight, bias, kept, shape=_shape(weight))
        compiled = make()
        ways: dict[str, Map] = {"plain": compiled} if narrow else super().one_row(weight, bias)
        return ways | {"compiled": compiled, "one thread": make(threads=1)}

    def many_rows(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return the ways to compute x Wᵀ + b for several rows."""
        panels, shape = self._panels(weight, 1), _shape(weight)
        ours = CompiledProduct(self._library, panels, bias, _PANELS, shape=shape)
        return super().many_rows(weight, bias) | {"panels": ours}

    def _panels(self, weight: Tensor, together: int) -> Tensor:
        """Return a matrix in the order of kernels.cpp, filled up with zeros."""
        width = self._library.panel_width()
        outputs, inputs = weight.shape
        filled = functional.pad(weight, (0, -inputs % together, 0, -outputs % width))
        apart = filled.view(-1, width, filled.shape[1] // together, together)
        return apart.transpose(1, 2).contiguous()

    def eight_bits(self, weight: Tensor, bias: Tensor | None) -> dict[str, Map]:
        """Return ways to multiply any rows with weights of 8 bits and a scale for each output.

        Inputs are rounded as well, each row by itself, to as many levels as sums of whole numbers
        leave room for: 8,191 and more for up to 2,048 inputs.
        """
        scales = weight.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / 127
        whole = (weight / scales[:, None]).round().to(torch.int8)
        make = partial(
            CompiledProduct,
            self._library,
            self._panels(whole, 2),
            bias,
            _BYTES,
            shape=_shape(weight),
            scales=functional.pad(scales, (0, self._library.panel_width())),
        )
        return {"compiled": make(), "one thread": make(threads=1)}

    def layer(
        self,
        shape: LayerShape,
        norms: Mapping[str, NormWeights | None],
        products: Mapping[str, Map],
    ) -> CompiledLayer | None:
        """Return a layer in one call, if all its products are compiled."""
        compiled = {n: one for n, one in products.items() if isinstance(one, CompiledProduct)}
        if len(compiled) < len(products) or shape.activation not in _COMPILED_ACTIVATIONS:
            return None
        return CompiledLayer(self._library, shape, norms, compiled)

    def attend(
        self,
        matched: Float[Tensor, "rows heads_and_kv_heads width"],
        values: Float[Tensor, "rows kv_heads width"],
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache,
        layer: int,
    ) -> Float[Tensor, "rows read"]:
        """Store the new keys and values of a layer; return what its heads read, side by side.

        Rotation, softmax and both products are one pass. Of the mask, only the bias is read:
        padding is known from the cache.
        """
        rows, kv_heads, width = values.shape
        heads = matched.shape[1] - kv_heads
        out = torch.empty(rows, heads * width)
        self._library.attend(
            matched.data_ptr(),
            matched.stride(0),
            values.data_ptr(),
            values.stride(0),
            *_angles(rotation),
            *_stored(cache, layer),
            *_seen(cache, mask),
            out.data_ptr(),
            rows,
            heads,
            kv_heads,
            width,
            cache.length,
            torch.get_num_threads(),
        )
        return out

    def _norm(self, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
        x, out = x.contiguous(), torch.empty(x.shape)
        self._library.norm(
            x.data_ptr(),
            weight.data_ptr(),
            _address(bias),
            out.data_ptr(),
            x.numel() // x.shape[-1],
            x.shape[-1],
            eps,
            bias is not None,
            torch.get_num_threads(),
        )
        return out

    def _swiglu(self, inner: Float[Tensor, "*axes twice"]) -> Float[Tensor, "*axes width"]:
        *axes, twice = inner.shape
        out = torch.empty(*axes, twice // 2)
        rows = inner.numel() // twice
        self._library.swiglu(
            inner.data_ptr(), out.data_ptr(), rows, twice // 2, torch.get_num_threads()
        )
        return out

    def _gelu_tanh(self, x: Tensor) -> Tensor:
        """Change x in place."""
        self._library.gelu_tanh(x.data_ptr(), x.numel(), torch.get_num_threads())
        return x


@lru_cache(maxsize=1)
def _loaded() -> CompiledKernels | None:
    compiler = _compiler()
    if compiler is None:
        return None
    path = user_cache() / "kernels" / f"{_fingerprint(compiler)}.so"
    try:
        if (kept := _opened(path)) is not None:
            return kept
        _compile(compiler, path)
    except (OSError, subprocess.SubprocessError):
        # Speed is lost, nothing else: a full disk or an old compiler is no reason to fail.
        return None
    return _opened(path)


def _opened(path: Path) -> CompiledKernels | None:
    try:
        return CompiledKernels(ctypes.CDLL(str(path)))
    except (OSError, AttributeError):  # not there, damaged, or something else
        return None


def _compiler() -> str | None:
    wanted = os.environ.get("CXX", "")
    names = (wanted, *COMPILERS) if wanted else COMPILERS
    return next((path for name in names if (path := shutil.which(name))), None)


def _fingerprint(compiler: str) -> str:
    """Return a name that changes with the source, the compiler and the processor."""
    processor = platform.machine() + platform.processor()
    if (cpu := Path("/proc/cpuinfo")).exists():
        lines = cpu.read_text(errors="replace").split("\n")
        processor += "".join(sorted({one for one in lines if one.startswith(("flags", "Feat"))}))
    parts = (SOURCE.read_text(encoding="utf-8"), FLAGS, compiler, processor)
    return sha256("\n".join(parts))[:32]


def _compile(compiler: str, path: Path) -> None:
    """Write the library at once or not at all: others may be compiling it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        library = Path(folder) / path.name
        command = [compiler, *FLAGS.split(), str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        library.replace(path)


def _shape(weight: Tensor) -> tuple[int, int]:
    outputs, inputs = weight.shape
    return outputs, inputs


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
