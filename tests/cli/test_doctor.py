"""`heed doctor`."""

from __future__ import annotations

from heedful import __version__
from heedful.generation.fast import WAYS


def test_the_table_and_the_record_say_the_same(heed) -> None:
    record = heed("doctor", "--json").record
    shown = heed("doctor").out
    assert record["heedful"] == __version__
    assert record["python"] in shown
    assert all(name in shown for name in record["core"])
    # Which product decodes a row here, with its time and speed, beside the other ways.
    decoding = record["speed"]["decoding"]
    assert any(decoding.startswith(f"{way}: ") for way in WAYS.values())
    assert "GB/s" in decoding
    assert "decoding" in shown
    assert {part["name"] for part in record["parts"]} >= {"models", "web"}
