"""What this installation consists of: the record behind `heed doctor` and every manifest."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import platform
from dataclasses import dataclass
from pathlib import Path

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
    "cluster": ("dask", "distributed"),
}
FEATURES = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "neon", "asimd", "sve")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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
class Installation(Record):
    """Versions, threads, CPU and optional parts of this machine."""

    heedful: str
    python: str
    system: str
    cpu: str
    cores: int
    threads: dict[str, str | None]
    """Environment variables that limit threads; None where unset."""
    cpu_features: tuple[str, ...]
    memory_gb: float | None
    core: dict[str, str | None]
    parts: tuple[OptionalPart, ...]


def examine() -> Installation:
    """Look at this machine; imports nothing heavy."""
    return Installation(
        heedful=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        threads={name: os.environ.get(name) for name in THREAD_VARIABLES},
        cpu_features=_features(),
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


def _cpu_name() -> str:
    for line in _cpu_lines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _features() -> tuple[str, ...]:
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
