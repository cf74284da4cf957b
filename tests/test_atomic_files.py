"""Atomic writes: the old file or the new one, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from heedful import files


def test_text_bytes_and_json_are_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, "déjà")
    assert path.read_bytes() == "déjà".encode()
    files.write_atomic(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    files.write_json(path, {"a": [1, 2.5, "é"]})
    assert json.loads(path.read_text("utf-8")) == {"a": [1, 2.5, "é"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_written_file_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "ours", b"")
    (tmp_path / "plain").write_bytes(b"")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_failing_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_content_is_flushed_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        order.append(f"fsync {kind}")
        fsync(handle)

    def watched_rename(*paths: str) -> None:
        order.append("rename")
        rename(*paths)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    files.write_atomic(tmp_path / "file", b"content")
    assert order == ["fsync file", "rename", "fsync folder"]


def test_a_block_that_fails_writes_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with files.atomic_file(tmp_path / "file") as handle:
            files.write_all(handle, b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with files.atomic_file(path) as first:
        files.write_all(first, b"first")
        with files.atomic_file(path) as second:
            files.write_all(second, b"second")
        assert path.read_bytes() == b"second"
        files.write_all(first, b", later")
    assert path.read_bytes() == b"first, later"


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / f".config.json.0a1b2c3d{files.UNFINISHED}").write_bytes(b"{")
    (tmp_path / "config.json").write_bytes(b"{}")
    files.remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_digests_of_bytes_texts_and_files_agree(tmp_path: Path) -> None:
    content = "déjà vu\n" * 1000
    (tmp_path / "file").write_text(content, "utf-8")
    expected = hashlib.sha256(content.encode()).hexdigest()
    assert files.sha256(content) == files.sha256(content.encode()) == expected
    assert files.sha256_of(tmp_path / "file") == expected
