"""Where the output goes: any encoding, full disks, readers that leave, names with brackets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful.attention.keys import STANDARD_KEYS
from heedful.claims.sheet.sheet import catalog

Done = subprocess.CompletedProcess[bytes]
ATTEND = ("attend", "--keys", "orthonormal", "--n", "3", "--query", "6", "6", "0")


def in_a_process(*words: object, folder: Path | None = None, **variables: str) -> Done:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "heedful", *map(str, words)],
        capture_output=True,
        cwd=folder,
        env=os.environ | variables,
    )


def in_shell(command: str) -> Done:
    """Run a line of a shell in which `heed` is this package."""
    heed = f'"{sys.executable}" -m heedful'
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("heed", heed)], capture_output=True
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "ascii:strict", "utf-8"])
@pytest.mark.parametrize("words", [ATTEND, ("noise", "--help")])
def test_every_encoding_gets_a_text(encoding: str, words: tuple[str, ...]) -> None:
    done = in_a_process(*words, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode(encoding.partition(":")[0])
    assert ("α" in text or "σ" in text) == (encoding == "utf-8")
    if encoding != "utf-8":
        assert "alpha" in text or "sigma" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_loses_nothing_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.toml"
    sheet.write_text('[[claim]]\nid = "x"\nsays = "α é 𝛼"\nexpect = "1 = 1"\n', "utf-8")
    done = in_a_process("check", sheet, "--json", PYTHONIOENCODING=encoding)
    assert "α é 𝛼" in json.dumps(json.loads(done.stdout.decode(encoding)), ensure_ascii=False)


@pytest.mark.parametrize("words", ["--help", "doctor", "attend --n 3 --toward 0 --json"])
def test_a_full_disk_is_one_clear_line(words: str) -> None:
    done = in_shell(f"heed {words} > /dev/full")
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
    assert b"could not be written (No space left on device)" in done.stderr


@pytest.mark.parametrize("words", ["--help", "attend --help", "attend --n 2000 --toward 0 --json"])
def test_a_reader_may_leave_at_any_time(words: str) -> None:
    # `true` never reads: whatever is written then meets a closed pipe.
    for reader in ("head -1", "true"):
        done = in_shell(f"heed {words} | {reader}")
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("redirection", "code"), [(">&-", 0), ("2>&-", 2), ("2>/dev/full", 2)])
def test_closed_and_full_streams_do_not_change_the_exit_code(redirection: str, code: int) -> None:
    words = "attend --n 3 --toward 0" if code == 0 else "attend --no-such-flag"
    assert in_shell(f"heed {words} {redirection}").returncode == code


@pytest.mark.parametrize("name", ["[a].toml", "x[bold].toml", "[1, 2].toml", "é [b] c.toml"])
def test_sheets_may_have_brackets_in_their_names(
    name: str, heed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sheet = tmp_path / name
    sheet.write_text('[[claim]]\nid = "x"\nexpect = "1 = 1"\n', "utf-8")
    done = heed("check", name)
    assert done.code == 0, done.err
    assert "1 proved" in done.out
    sheet.unlink()
    gone = heed("check", name)
    assert (gone.code, gone.err.partition(": ")[0]) == (2, name)


@pytest.mark.parametrize("name", ["m[bold].gguf", "x[/y]", "[red]", "[", "[[1]]"])
@pytest.mark.parametrize("words", [("model", "info"), ("runs",), ("data", "inspect"), ("resume",)])
def test_a_path_is_repeated_as_it_was_typed(
    name: str, words: tuple[str, ...], refused: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(*words, name).err.startswith(f"{name}: ")


def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.toml")
    (tmp_path / name).write_text('[[claim]]\nid = "x"\nexpect = "1 = 1"\n', "utf-8")
    done = in_a_process("check", name, folder=tmp_path)
    assert (done.returncode, b"1 proved" in done.stdout) == (0, True)


def test_a_part_that_is_missing_can_be_installed_by_the_shown_command(tmp_path: Path) -> None:
    hidden = "import importlib.metadata as m\nreal = m.version\ndef version(name):\n"
    hidden += "    if name == 'transformers': raise m.PackageNotFoundError(name)\n"
    hidden += "    return real(name)\nm.version = version\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, "utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = in_a_process("doctor", PYTHONPATH=path)
    assert b"pip install 'heedful[hf]'" in done.stdout


def test_the_help_of_keys_names_every_standard_set() -> None:
    text = " ".join(in_a_process("attend", "--help", COLUMNS="200").stdout.decode().split())
    assert f"({', '.join(STANDARD_KEYS)})" in text


def test_the_catalog_prints_in_ascii() -> None:
    sheet = catalog()[0]
    done = in_a_process("explain", f"{sheet.name}/{sheet.claims[0].id}", PYTHONIOENCODING="ascii")
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.isascii()
