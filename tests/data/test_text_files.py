"""Files from strangers: what is refused, where the bad byte is, and that nothing else changes."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.text_files import CHUNK, DEFAULT_LIMITS, ReadLimits, TextFile, shown
from heedful.errors import ConfigError, InputError

SMALL = ReadLimits(line_bytes=100, total_bytes=10_000)


def written(folder: Path, content: bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def lines_of(path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> list[str]:
    return list(TextFile(path, limits).lines())


def refusal(path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> str:
    with pytest.raises(InputError) as error:
        lines_of(path, limits)
    assert str(error.value).isprintable()
    return str(error.value)


text = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=8)


@settings(deadline=None)
@given(
    lines=st.lists(st.tuples(text, st.sampled_from(["\n", "\r\n"])), max_size=30),
    pack=st.booleans(),
    mark=st.booleans(),
)
def test_lines_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, str]],
    pack: bool,
    mark: bool,
) -> None:
    content = b"\xef\xbb\xbf" * mark + "".join(line + end for line, end in lines).encode()
    raw = gzip.compress(content) if pack else content
    folder = tmp_path_factory.mktemp("lines")
    # A U+FEFF that the first line itself starts with is one byte order mark more.
    expected = [line for line, _ in lines]
    if expected and not mark:
        expected[0] = expected[0].removeprefix("\ufeff")
    file = TextFile(written(folder, raw))
    assert list(file.lines()) == expected
    assert file.origin.sha256 == hashlib.sha256(raw).hexdigest()
    assert (file.origin.bytes, file.origin.text_bytes) == (len(raw), len(content))


@pytest.mark.parametrize("length", [CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_line_may_cross_the_pieces_in_which_a_file_is_read(tmp_path: Path, length: int) -> None:
    lines = ["é" * (length // 2), "\u2028", "x\r", "", "b" * length]
    content = "\n".join(lines)
    expected = [line.removesuffix("\r") for line in lines]
    assert lines_of(written(tmp_path, content.encode())) == expected


def test_only_one_return_is_removed_and_only_newlines_separate(tmp_path: Path) -> None:
    path = written(tmp_path, "a\r\r\nb\u2028\x0b\x1c\u0085c\rd\n".encode())
    assert lines_of(path) == ["a\r", "b\u2028\x0b\x1c\u0085c\rd"]


@settings(deadline=None, max_examples=25)
@given(before=st.integers(0, 3 * CHUNK), bad=st.sampled_from([b"\xff", b"\xc3(", b"\xed\xa0\x80"]))
def test_the_offset_names_the_bad_byte(
    tmp_path_factory: pytest.TempPathFactory, before: int, bad: bytes
) -> None:
    content = (b"\xef\xbb\xbf" + b"a\n" * CHUNK * 2)[:before] + b"\n" + bad
    path = written(tmp_path_factory.mktemp("bad"), content)
    message = refusal(path)
    assert f"byte {before + 1:,} (0x{bad[0]:02x}) is not UTF-8" in message
    assert f"line {content.count(bytes([10])) + 1}:" in message


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    assert "holds a NUL at byte 4" in refusal(written(tmp_path, b"ab\nc\0d"))
    assert "looks like UTF-16" in refusal(written(tmp_path, "ab".encode("utf-16")))
    assert "iconv -f LATIN1" in refusal(written(tmp_path, "été".encode("latin-1")))
    assert "is a zip archive" in refusal(written(tmp_path, b"PK\x03\x04..."))
    assert "is xz" in refusal(written(tmp_path, b"\xfd7zXZ\0"))
    assert "there is no such file" in refusal(tmp_path / "none")
    assert "there is no such file" in refusal(Path("a\0b"))
    assert "is not a file" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refusal(tmp_path / "pipe")
    assert "is not a file" in refusal(Path("/dev/zero"))


def test_long_lines_and_large_files_are_refused(tmp_path: Path) -> None:
    assert lines_of(written(tmp_path, b"x" * 100), SMALL) == ["x" * 100]
    assert "line 2: has 101 bytes" in refusal(written(tmp_path, b"\n" + b"x" * 101), SMALL)
    assert "line 1: has 101 bytes" in refusal(written(tmp_path, b"x" * 101 + b"\ny"), SMALL)
    assert "more than 10,000 bytes" in refusal(written(tmp_path, b"x\n" * 5001), SMALL)
    assert "line 1: has" in refusal(written(tmp_path, b"x" * 2_000_000))


def test_a_bomb_is_refused_by_its_ratio_and_by_its_size(tmp_path: Path) -> None:
    bomb = written(tmp_path, gzip.compress((b"x" * 999 + b"\n") * 30_000), "bomb.gz")
    message = refusal(bomb)
    assert "unpacks to more than 100 times its size" in message
    assert "--max-ratio" in message
    assert len(lines_of(bomb, ReadLimits(ratio=2000.0))) == 30_000
    assert "more than 10,000 bytes" in refusal(bomb, SMALL)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"a\nb\n" * 1000)
    assert lines_of(written(tmp_path, whole * 2 + b"\0" * 9, "a.gz")) == ["a", "b"] * 2000
    flipped = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    for damaged in (whole[:-1], whole[:20], whole + b"rest", flipped, whole[:10]):
        assert "is no whole gzip file" in refusal(written(tmp_path, damaged, "a.gz"))
    assert "starts with other bytes" in refusal(written(tmp_path, b"plain", "a.gz"))
    many = gzip.compress(b"", mtime=0) * 10_001
    assert "more than 10,000 parts" in refusal(written(tmp_path, many, "a.gz"))


def test_a_byte_order_mark_alone_is_an_empty_file(tmp_path: Path) -> None:
    for content in (b"", b"\xef\xbb\xbf"):
        assert lines_of(written(tmp_path, content)) == []


def test_names_fit_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xff", "a\nb\u202e.txt")
    assert "a\\nb\\u202e.txt" in refusal(path)
    assert shown("é “x”") == "é “x”"


def test_limits_are_positive() -> None:
    with pytest.raises(ConfigError, match=r"limits\.ratio: is 0"):
        ReadLimits(ratio=0.0)
