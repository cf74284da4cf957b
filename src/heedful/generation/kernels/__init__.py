"""The small operations of a decoding step, compiled on this machine where there is a compiler.

Between two products, one token a row leaves so little to do that torch spends more on starting
a dozen operations than on their arithmetic: a third of the time of a batch of 32. `kernels.cpp`
has them in four functions. It is compiled for this processor when first needed, which takes
seconds, and kept in the user's cache. Without a compiler, with other dtypes, on other devices,
or with `HEEDFUL_KERNELS=off`, the same equations run as torch operations; tests hold one to
the other.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.files import sha256, user_cache
from heedful.model import Cache
from heedful.model.rotary import Turn

SOURCE = Path(__file__).with_name("kernels.cpp")
SWITCH = "HEEDFUL_KERNELS"
"""An environment variable: `off` does without."""
COMPILERS = ("c++", "g++", "clang++")
# No errno and no traps: without these two, comparisons and roots are done one at a time.
FLAGS = "-O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -shared -fPIC -std=c++17"
SECONDS = 120
"""A compiler that takes longer is given up."""

_ADDRESS, _COUNT, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_SIGNATURES = {
    "norm": [*[_ADDRESS] * 4, *[_COUNT] * 2, ctypes.c_float, *[_FLAG] * 2],
    "attend": [
        *[_ADDRESS] * 3,
        _COUNT,
        _FLAG,
        *[_ADDRESS] * 2,
        *[_COUNT] * 2,
        *[_ADDRESS] * 3,
        *[_COUNT] * 5,
        _FLAG,
    ],
    "gate": [*[_ADDRESS] * 2, *[_COUNT] * 2, _FLAG],
    "gelu_tanh": [_ADDRESS, _COUNT, _FLAG],
}


class Kernels:
    """The compiled functions, for contiguous float32 tensors in this machine's memory."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, None
        self._library = library

    def norm(self, x: Tensor, gains: Tensor, shifts: Tensor | None, eps: float) -> Tensor:
        """Return RMSNorm, or with shifts LayerNorm, of the last axis."""
        x, out = x.contiguous(), torch.empty(x.shape)
        self._library.norm(
            x.data_ptr(),
            gains.data_ptr(),
            _address(shifts),
            out.data_ptr(),
            x.numel() // x.shape[-1],
            x.shape[-1],
            eps,
            shifts is not None,
            torch.get_num_threads(),
        )
        return out

    def attend(
        self,
        vectors: Float[Tensor, "rows vectors width"],
        cache: Cache,
        layer: int,
        *,
        heads: int,
        turn: Turn | None = None,
        slopes: Tensor | None = None,
    ) -> Float[Tensor, "rows read"]:
        """Store the new keys and values of a layer; return what its heads read, side by side.

        `vectors` are the queries, already divided by √d, the keys and the values of each row.
        """
        rows, count, width = vectors.shape
        cosines, sines = (None, None) if turn is None else (turn.cosines, turn.sines)
        keys, values = cache.keys[layer], cache.values[layer]
        out = torch.empty(rows, heads * width)
        self._library.attend(
            vectors.data_ptr(),
            _address(cosines),
            _address(sines),
            # One place for all rows, or one for each.
            0 if cosines is None or len(cosines) == 1 else width // 2,
            turn is not None and turn.neighbours,
            keys.data_ptr(),
            values.data_ptr(),
            keys.stride(0),
            keys.stride(1) // width,  # columns that there is memory for
            _address(cache.padding),
            _address(slopes),
            out.data_ptr(),
            rows,
            heads,
            (count - heads) // 2,
            width,
            cache.length,
            torch.get_num_threads(),
        )
        return out

    def gate(self, inner: Float[Tensor, "rows twice"]) -> Float[Tensor, "rows width"]:
        """Return silu of the first half of each row times the second half: SwiGLU."""
        rows, width = len(inner), inner.shape[1] // 2
        out = torch.empty(rows, width)
        self._library.gate(inner.data_ptr(), out.data_ptr(), rows, width, torch.get_num_threads())
        return out

    def gelu_tanh(self, x: Tensor) -> Tensor:
        """Change x to GELU of x, by the formula with tanh; return it."""
        self._library.gelu_tanh(x.data_ptr(), x.numel(), torch.get_num_threads())
        return x


def kernels_for(weight: Tensor) -> Kernels | None:
    """Return the kernels if they suit a model with such weights and can be had."""
    if weight.dtype != torch.float32 or weight.device.type != "cpu":
        return None
    return None if os.environ.get(SWITCH, "").lower() == "off" else _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Kernels | None:
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


def _opened(path: Path) -> Kernels | None:
    try:
        return Kernels(ctypes.CDLL(str(path)))
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
        made = Path(folder) / path.name
        command = [compiler, *FLAGS.split(), str(SOURCE), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        made.replace(path)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
