"""How figures are saved: whole or not at all, the same bytes twice, readable on any page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from heedful.views.drawing import INK, MARKER, house_style, inline_svg, new_figure, save

ENDINGS = ("svg", "png", "pdf")


def _figure() -> Figure:
    with house_style():
        figure = new_figure(3.0, 2.0)
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], label="a line")
        axes.set_title("Title")
        axes.legend()
        return figure


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending) -> None:
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    save(_figure(), first)
    save(_figure(), second)
    assert first.read_bytes() == second.read_bytes()


def test_ink_stands_in_for_the_marker_in_files(tmp_path) -> None:
    save(_figure(), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert MARKER not in svg
    assert INK in svg


def test_a_page_gets_its_own_colour_and_ids_that_do_not_meet() -> None:
    one, two = inline_svg(_figure(), "One figure"), inline_svg(_figure(), "Another")
    assert "currentColor" in one
    assert MARKER not in one
    assert one.startswith("<svg")
    assert 'aria-label="One figure"' in one
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
    assert references <= ids[0]


def test_a_label_cannot_leave_its_attribute() -> None:
    svg = inline_svg(_figure(), 'a "b" <c> & d')
    assert 'aria-label="a &quot;b&quot; &lt;c> &amp; d"' in svg


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, ending) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(_figure(), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_ordinary_rights(tmp_path) -> None:
    path: Path = tmp_path / "a.svg"
    save(_figure(), path)
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
