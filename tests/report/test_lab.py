"""`heed lab` as a user runs it: one offline page, kept parts, and clear refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.report.page import maths


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("lab")
    assert main(["lab", "--output", str(output), "--only", "positions"]) == 0
    return output


def test_the_page_is_one_file_that_asks_for_nothing_outside(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert "<script" not in page
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:)", page)
    assert "url(http" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_finished_part_is_kept_and_a_broken_one_is_run_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "--output", str(folder), "--only", "positions", "--json"]) == 0
    said = capsys.readouterr()
    assert "kept from an earlier run" in said.err
    record = json.loads(said.out)
    assert record["parts"][0]["name"] == "positions"
    assert record["findings"]

    (folder / "parts" / "positions.json").write_text("{ half")
    assert main(["lab", "--output", str(folder), "--only", "positions"]) == 0
    assert "kept" not in capsys.readouterr().err


def test_an_unknown_part_and_a_file_in_the_way_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "--output", str(tmp_path / "x"), "--only", "atention"]) == 2
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("")
    assert main(["lab", "--output", str(tmp_path / "file")]) == 2
    assert len(capsys.readouterr().err.strip().split("\n")) == 2


def test_subscripts_are_set_and_the_rest_is_escaped() -> None:
    assert maths("<b> mu_a & x_12 W_Q k_ab multiple") == (
        "&lt;b&gt; <i>μ</i><sub>a</sub> &amp; x_12 <i>W</i><sub>Q</sub> k_ab multiple"
    )
