"""How a model is shown: what is inside, whether it is whole, where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from heedful.records import Record
from heedful.views.terminal import number, table

if TYPE_CHECKING:
    from heedful.model.weights.checkpoint import ModelInfo, Verification
    from heedful.model.weights.published import Fetched
    from heedful.studies.exporting import Export
else:  # these records live beside torch, without which the report must work
    Export = Fetched = ModelInfo = Verification = Record


def info_tables(record: ModelInfo) -> Iterator[RenderableType]:
    """Yield what `heed model info` prints."""
    made = table(record.title or f"A {record.family} model", "", "", left=(0, 1))
    made.add_row("where", record.path)
    made.add_row("format", f"{record.format}, family {record.family}")
    stored = ", ".join(f"{count} × {kind}" for kind, count in record.stored_as.items())
    made.add_row("stored as", f"{stored}; {size(record.file_bytes)}")
    made.add_row("parameters", f"{record.parameters:,}")
    made.add_row("weights in memory", f"{size(record.weight_bytes)} (float32)")
    made.add_row(
        "cache",
        f"{size(record.cache_bytes_per_token)} a token, {size(record.cache_bytes)} at full "
        "context (float32)",
    )
    made.add_row("operations", f"{number(record.flops_per_token / 1e6)} million a token, forward")
    if record.tokenizer_size is None:
        made.add_row("tokenizer", "none beside the weights")
    else:
        ends = ", ".join(map(str, record.ends)) or "none"
        made.add_row("tokenizer", f"{record.tokenizer_size:,} ids; a text ends at id {ends}")
    yield made
    config = table("Config", "setting", "value", left=(0, 1))
    for name, value in _flat(record.config):
        config.add_row(name, str(value))
    yield config


def verification_tables(record: Verification) -> Iterator[RenderableType]:
    """Yield what `heed model verify` prints."""
    made = table("Verification", "check", "result", left=(0, 1))
    made.add_row("names and shapes", f"{record.tensors} tensors, as the config says")
    made.add_row("parameters", f"{record.parameters:,}")
    finite = "every number" if record.sound else f"not in {len(record.damaged)} tensors"
    made.add_row("finite", finite)
    made.add_row("largest", f"{number(record.largest.largest)} in {record.largest.name}")
    for file, digest in record.sha256.items():
        made.add_row(f"SHA-256 of {file}", digest)
    if record.published_as is not None:
        made.add_row("published as", record.published_as)
    yield made
    if record.damaged:
        damaged = table("Damaged", "tensor", "shape", "NaN or infinite", left=(0, 1))
        for check in record.damaged[:20]:
            damaged.add_row(check.name, " × ".join(map(str, check.shape)), f"{check.not_finite:,}")
        yield damaged


def fetched_tables(record: Fetched) -> Iterator[RenderableType]:
    """Yield what `heed model get` prints."""
    made = table(record.name, "", "", left=(0, 1))
    made.add_row("where", record.path)
    made.add_row("state", "fetched and checked" if record.fresh else "there already, checked")
    made.add_row("size", size(record.bytes))
    made.add_row("SHA-256", record.sha256)
    made.add_row("licence", record.licence)
    yield made


def export_tables(record: Export) -> Iterator[RenderableType]:
    """Yield what `heed export` prints."""
    made = table(f"{record.model} exported", "", "", left=(0, 1))
    made.add_row("where", record.folder)
    made.add_row("form", f"{record.form}, family {record.family}")
    made.add_row("weights", f"{record.parameters:,} parameters as {record.dtype}")
    if record.translates is not None:
        made.add_row("translates", " → ".join(record.translates))
    for name, count in record.files.items():
        made.add_row(name, size(count))
    yield made


def size(count: int) -> str:
    """Write a number of bytes as people read it.

    >>> size(98_362_432), size(512)
    ('98.4 MB', '512 B')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def _flat(config: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
