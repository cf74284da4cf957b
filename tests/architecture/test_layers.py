"""Imports go one way, and the core stands without its optional parts."""

from __future__ import annotations

import tomllib

import pytest
from source_tree import PACKAGE, ROOT, module_name, python, sources

# What only an extra brings; the core may name none of these while it is imported.
OPTIONAL = (
    "torch", "tokenizers", "safetensors", "gguf", "sacrebleu", "torchmetrics", "tensorboard",
    "fastapi", "uvicorn", "transformers", "dask", "distributed",
)  # fmt: skip
CORE = ("attention", "positions", "claims", "views", "cli")
HEAVY = ("torch", "transformers", "scipy", "numpy", "matplotlib", "sympy", "pandas", "fastapi")

IMPORT_WITHOUT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"{name} is not installed (this test hides it)", name=name)

absent = sys.argv[1].split(",")
sys.meta_path.insert(0, Absent())
for name in sys.argv[2:]:
    importlib.import_module(name)
assert not set(absent) & set(sys.modules)
"""

MODULES_AFTER = """
import contextlib, io, sys
from heedful.cli.main import main

with contextlib.redirect_stdout(io.StringIO()) as shown:
    code = main(sys.argv[1:])
assert code == 0, code
assert shown.getvalue().strip()
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_no_room_imports_upward_or_sideways() -> None:
    python("import sys; from importlinter.cli import lint_imports; "
           "sys.exit(lint_imports(no_cache=True))")  # fmt: skip


def test_every_room_has_a_layer() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = configuration["tool"]["importlinter"]["contracts"][0]
    layered = {room.strip(" ()") for layer in contract["layers"] for room in layer.split("|")}
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= layered, f"rooms without a layer: {sorted(rooms - layered)}"


def test_core_is_imported_without_its_optional_parts() -> None:
    core = [
        module_name(path)
        for path in sources()
        if path.name != "__main__.py"
        and (path.parent == PACKAGE or path.relative_to(PACKAGE).parts[0] in CORE)
    ]
    python(IMPORT_WITHOUT, ",".join(OPTIONAL), *core)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_the_command_line_answers_without_loading_the_mathematics(flag: str) -> None:
    loaded = set(python(MODULES_AFTER, flag).split())
    assert not loaded & set(HEAVY), f"heed {flag} imports {sorted(loaded & set(HEAVY))}"
