"""Heedful: a laboratory in which every statement about attention is an experiment you can run.

    import heedful as h

    h.attend([6, 6, 0, 0], n=4).weights         what one query reads
    h.design(average=[0, 1], n=10)              a query made to order, with its certificate
    h.noise(["0+1"], n=10, noisy={0: 0.5})      what noisy keys do to it
    h.claim("alpha_a >= 0.9", query="6 k_a", keys="orthonormal", where={"n": 10})
    h.check("answers/")                         every claim of a folder, judged
    h.check_layer(my_attention, "attention")    a layer of your own, with the mistake in words
    h.widgets.Plane(n=8)                        a query to drag in a notebook, and to read here
    h.load("runs/mine/model")                   a decoder with its tokenizer
    h.train({...}, "runs/mine")                 a training, resumed if it is there
    h.translate("runs/mine", "Où est la gare ?")
    h.ask("study-knowledge", "Where was Ada Lee born?")
    h.study("knowledge", "study", quick=True)   a study that ends in one record

Names are loaded when they are first used: `import heedful` imports no NumPy and no torch. What type
checkers see stands in `__init__.pyi`.
"""

from __future__ import annotations

import os as _os
from importlib import import_module as _import_module

__version__ = "0.1.0"

# Threads of torch wait for one another after every operation, by default spinning for up to 8 ms
# (GNU's OpenMP) or 200 ms (LLVM's). Where another program has one of the cores, that costs three
# to seven times the work. They spin for about 0.05 ms here, which is enough for a quiet machine,
# and then sleep. OpenMP reads this once, when it is loaded: it must stand here, before torch.
if "OMP_WAIT_POLICY" not in _os.environ:
    _os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    _os.environ.setdefault("KMP_BLOCKTIME", "1")

_HOMES = {
    "heedful.api": (
        "ask", "attend", "check", "claim", "design", "load", "noise", "study", "train",
        "translate",
    ),
    "heedful.attention": (
        "AttentionResult", "Certificate", "Design", "LayerCheck", "NoiseStudy", "check_layer",
    ),
    "heedful.claims": ("CheckReport", "Claim", "Counterexample", "Repair", "Verdict"),
    "heedful.errors": ("HeedfulError",),
    "heedful.records": ("Record",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AttentionResult",
    "Certificate",
    "CheckReport",
    "Claim",
    "Counterexample",
    "Design",
    "HeedfulError",
    "LayerCheck",
    "NoiseStudy",
    "Record",
    "Repair",
    "Verdict",
    "ask",
    "attend",
    "check",
    "check_layer",
    "claim",
    "design",
    "load",
    "noise",
    "study",
    "train",
    "translate",
]


def __getattr__(name: str) -> object:
    """Load a public name from its room when it is first asked for."""
    if name == "widgets":  # a module, which needs the extra `notebook`
        return _import_module("heedful.widgets")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    value = getattr(_import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
