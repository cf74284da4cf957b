"""Arrays from files: every format, and every way a file can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from heedful.data.arrays import looks_like_array, read_array
from heedful.errors import InputError

ROWS = np.array([[1.0, 2.0], [3.0, 4.5]])


def written(folder: Path, ending: str) -> str:
    path = folder / f"keys{ending}"
    if ending == ".npy":
        np.save(path, ROWS)
    elif ending == ".npz":
        np.savez(path, keys=ROWS, other=ROWS[:1])
    elif ending == ".json":
        path.write_text(json.dumps({"keys": ROWS.tolist(), "other": [1]}))
    elif ending == ".csv":
        path.write_bytes(b"\xef\xbb\xbf1,2\r\n3,4.5\r\n\n")
    else:
        save_file({"keys": ROWS, "other": ROWS[:1]}, path)
    return str(path)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".json", ".csv", ".safetensors"])
def test_every_format_gives_the_same_array(tmp_path: Path, ending: str) -> None:
    source = written(tmp_path, ending)

    np.testing.assert_array_equal(read_array(source, "--keys"), ROWS)


@pytest.mark.parametrize("ending", [".npz", ".json", ".safetensors"])
def test_an_entry_is_chosen_by_its_name(tmp_path: Path, ending: str) -> None:
    source = written(tmp_path, ending)

    assert np.asarray(read_array(f"{source}:other", "--keys")).size <= 2
    with pytest.raises(InputError, match="no array 'missing'"):
        read_array(f"{source}:missing", "--keys")
    with pytest.raises(InputError, match="holds 2 arrays"):
        read_array(source, "--values")


def test_json_in_place() -> None:
    assert looks_like_array("[[1, 2]]")
    assert not looks_like_array("orthonormal")
    np.testing.assert_array_equal(read_array(" [[1, 2.5]]", "--keys"), [[1, 2.5]])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"1,2\n3,x\n", "line 2: 'x' is not a number"),
        ("a.csv", b"1,2\n3\n", "line 2 has 1 numbers"),
        ("a.csv", b"1,\xff\n", "not UTF-8"),
        ("a.json", b"[1, 2", "not valid JSON at line 1"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b"\xff", "not UTF-8"),
        ("a.npy", b"garbage", "cannot be read as NumPy"),
        ("a.npz", b"PK\x03\x04garbage", "cannot be read as NumPy"),
        ("a.safetensors", b"garbage", "cannot be read as safetensors"),
        ("a.txt", b"1", "not a kind of file"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_array(str(path), "--keys")

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)

    with pytest.raises(InputError, match="never loaded"):
        read_array(str(path), "--keys")


def test_a_missing_file_says_so() -> None:
    with pytest.raises(InputError, match="no file"):
        read_array("nowhere/keys.npy", "--keys")
