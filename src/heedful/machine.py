"""What this machine is and how fast: the record behind `heed doctor` and every manifest."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.records import Record

CORE = (
    "numpy",
    "scipy",
    "array-api-compat",
    "sympy",
    "python-flint",
    "cyclopts",
    "pydantic",
    "rich",
    "matplotlib",
    "jinja2",
    "joblib",
    "jaxtyping",
)
PARTS = {
    "models": (
        "torch",
        "tokenizers",
        "safetensors",
        "gguf",
        "sacrebleu",
        "torchmetrics",
        "tensorboard",
    ),
    "web": ("fastapi", "uvicorn"),
    "hf": ("transformers",),
    "onnx": ("onnx", "onnxruntime"),
    "cluster": ("dask", "distributed"),
}
FEATURES = (
    "avx", "avx2", "avx_vnni", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "neon",
    "asimd", "sve",
)  # fmt: skip
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "KMP_BLOCKTIME",
)
PEAK_SIZE, PEAK_TIMED = 512, 12
"""Of the products that tell what the machine can reach, and how many are timed. A few
milliseconds each: on a busy machine, a longer one is always interrupted."""
PROBE_SIZE, PROBE_SECONDS = 256, 0.03
"""Of the products that tell whether rounding pays, and how long each kind is tried."""
CLEARLY_FASTER = 1.1
"""Products in bfloat16 must be this much faster before a training in bfloat16 is even tried."""
BUSY = 0.5
"""A load above which figures of time say more about the other programs than about ours."""
READ_BYTES, READ_TIMED = 128 * 2**20, 5
"""More than caches hold, read a few times over."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OptionalPart(Record):
    """One optional part of Heedful."""

    name: str
    """The extra that installs it."""
    present: bool
    """Whether every package of it is there."""
    versions: dict[str, str | None]
    """Each package with its version, None where it is missing."""
    install: str
    """The command that brings it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Speed(Record):
    """What this machine reaches: the limits of everything that is computed on it."""

    load: float | None
    """Programs that wanted a core in the last minute; above 0.5 the figures say little."""
    threads: int
    float32_gflops: float
    """Of large matrix products, 10⁹ operations a second."""
    bfloat16_gflops: float
    read_gb_one_thread: float
    """From memory, 10⁹ bytes a second."""
    read_gb: float
    """The same with all threads."""
    precision: str
    """In what `precision = "auto"` may train: bfloat16 only where its products are faster."""
    reason: str
    decoding: str | None = None
    """How one row of tokens is decoded here, and what the other ways take; None if not measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Installation(Record):
    """Versions, threads, CPU and optional parts of this machine."""

    heedful: str
    python: str
    system: str
    cpu: str
    cores: int
    threads: dict[str, str | None]
    """Environment variables that limit threads, or say how they wait; None where unset."""
    cpu_features: tuple[str, ...]
    memory_gb: float | None
    core: dict[str, str | None]
    parts: tuple[OptionalPart, ...]
    speed: Speed | None = None
    """What it reaches; None where nobody measured."""

    def has(self, name: str) -> bool:
        """Say whether every package of an optional part is there."""
        return any(part.name == name and part.present for part in self.parts)


def examine() -> Installation:
    """Look at this machine; imports nothing heavy."""
    return Installation(
        heedful=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cpu=cpu_name(),
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        threads={name: os.environ.get(name) for name in THREAD_VARIABLES},
        cpu_features=cpu_features(),
        memory_gb=_memory(),
        core={name: _version(name) for name in CORE},
        parts=tuple(_part(name, packages) for name, packages in PARTS.items()),
    )


def _part(name: str, packages: tuple[str, ...]) -> OptionalPart:
    versions = {package: _version(package) for package in packages}
    return OptionalPart(
        name=name,
        present=all(versions.values()),
        versions=versions,
        install=f"pip install 'heedful[{name}]'",
    )


@functools.cache
def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(errors="replace").split("\n") if path.exists() else []


def cpu_name() -> str:
    """Return what the processor calls itself."""
    for line in _cpu_lines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu_features() -> tuple[str, ...]:
    """Return which instructions for fast products the processor has."""
    for line in _cpu_lines():
        if line.startswith(("flags", "Features")):
            flags = set(line.partition(":")[2].split())
            return tuple(name for name in FEATURES if name in flags)
    return ()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def load() -> float | None:
    """Return how many programs wanted a core in the last minute; None where nobody counts."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def measured_speed() -> Speed:
    """Measure what this machine reaches; needs torch, and about half a second."""
    import torch

    threads = torch.get_num_threads()
    gain = bfloat16_gain()
    pays = gain >= CLEARLY_FASTER
    return Speed(
        load=load(),
        threads=threads,
        float32_gflops=peak_flops("float32", threads) / 1e9,
        bfloat16_gflops=peak_flops("bfloat16", threads) / 1e9,
        read_gb_one_thread=_read_bytes(1) / 1e9,
        read_gb=_read_bytes(threads) / 1e9,
        precision="bfloat16" if pays else "float32",
        reason=f"products in bfloat16 are {gain:.2g} times as fast as in float32"
        + ("; a training tries both" if pays else ""),
    )


@functools.cache
def bfloat16_gain() -> float:
    """Return how many times as fast matrix products are in bfloat16 as in float32.

    By one thread, so that other programs disturb both alike. Without instructions for bfloat16
    it is far below 1, and a single product is enough to see that. Once for each process.
    """
    import torch

    with torch_threads(1):
        wide, narrow = (
            _best_seconds(_product(kind, PROBE_SIZE), PROBE_SECONDS)
            for kind in (torch.float32, torch.bfloat16)
        )
    return wide / narrow


@functools.cache
def peak_flops(precision: str, threads: int, device: str = "cpu") -> float:
    """Return the operations a second of large matrix products: what can be reached.

    In the precision and with the threads of the training, on its device: a share of what another
    precision reaches would say nothing. The best of several is taken, since other work can hold
    up some of them. Once for each process.
    """
    import torch

    kind = torch.float32 if precision == "float32" else torch.bfloat16
    with torch_threads(threads):
        seconds = _best_seconds(_product(kind, PEAK_SIZE, device), 0.5, PEAK_TIMED)
    return 2.0 * PEAK_SIZE**3 / seconds


@functools.cache
def _read_bytes(threads: int) -> float:
    import torch

    numbers = torch.ones(READ_BYTES // 4)
    with torch_threads(threads):
        return READ_BYTES / _best_seconds(lambda: float(numbers.sum()), 1.0, READ_TIMED)


def _product(kind: Any, size: int, device: str = "cpu") -> Callable[[], float]:
    import torch

    a, b = (torch.ones(size, size, dtype=kind, device=device) for _ in range(2))
    return lambda: float((a @ b)[0, 0])  # reading an entry waits for a GPU


def _best_seconds(work: Callable[[], float], most: float, times: int = 1_000) -> float:
    """Return the least time of some repetitions, after a first one; of the first, if it is long."""
    begun = time.perf_counter()
    work()
    best = first = time.perf_counter() - begun
    if first > most:
        return first
    for _ in range(times):
        start = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - start)
        if now - begun > most:
            break
    return best


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads in the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
