"""Decoders as ONNX graphs: the logits of our own pass, in onnxruntime, for any batch and length."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from small_models import KINDS, random_decoder

from heedful.cli.main import main
from heedful.errors import InputError, RunError
from heedful.model import write_folder
from heedful.model.lora import add_lora
from heedful.model.weights.onnx import TOLERANCE, difference, write_onnx
from heedful.studies.exporting import export
from heedful.tokenization import characters

SHAPES = ((1, 1), (1, 24), (5, 2), (3, 17))
"""Batch and length; 24 is the whole context."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decoder_gives_our_logits_for_any_batch_and_length(
    kind: str, tmp_path: Path
) -> None:
    decoder = random_decoder(kind, dtype=torch.float32)
    write_onnx(decoder, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    generator = torch.Generator().manual_seed(3)
    for shape in SHAPES:
        tokens = torch.randint(decoder.config.vocabulary, shape, generator=generator)
        with torch.no_grad():
            ours = decoder(tokens)
        (theirs,) = session.run(["logits"], {"tokens": tokens.numpy()})
        torch.testing.assert_close(torch.from_numpy(theirs), ours, rtol=TOLERANCE, atol=TOLERANCE)
    beyond = np.zeros((1, decoder.config.context + 1), np.int64)
    if decoder.config.positions.kind != "none":  # without positions no length is too long
        with pytest.raises(Exception, match="out of"):
            session.run(None, {"tokens": beyond})


def test_lora_is_part_of_the_matrices_that_are_written(tmp_path: Path) -> None:
    decoder = random_decoder("llama", dtype=torch.float32)
    add_lora(decoder, rank=2)
    with torch.no_grad():
        decoder.blocks[0].attention.qkv.B.normal_()
    write_onnx(decoder, tmp_path / "model.onnx")
    assert difference(decoder, tmp_path / "model.onnx") < 1e-4


def test_a_graph_that_differs_is_not_handed_out(tmp_path: Path) -> None:
    write_onnx(random_decoder("gpt2", seed=1, dtype=torch.float32), tmp_path / "model.onnx")
    with pytest.raises(RunError, match="away from ours"):
        difference(random_decoder("gpt2", seed=2, dtype=torch.float32), tmp_path / "model.onnx")


def test_the_command_writes_a_folder_whose_readme_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decoder = random_decoder("llama", dtype=torch.float32)
    tokenizer = characters("The beginning of a text")
    write_folder(decoder, tmp_path / "model", tokenizer=tokenizer)
    folder = tmp_path / "graph"
    asked = ["export", str(tmp_path / "model"), str(folder), "--to", "onnx"]
    assert main(asked) == 0
    assert re.search(r"onnxruntime gives our logits within \S+e-0[5-9]", capsys.readouterr().out)
    assert main([*asked, "--json"]) == 2  # it is there already
    assert {"README.md", "model.onnx", "tokenizer.json"} == {one.name for one in folder.iterdir()}

    lines = (folder / "README.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    said = subprocess.run(
        [sys.executable, "-c", lines.replace("FOLDER", str(folder))],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    tokens = torch.tensor([tokenizer.encode("The beginning of a text")])
    assert int(said) == int(decoder(tokens)[0, -1].argmax())


def test_another_number_format_is_refused(tmp_path: Path) -> None:
    write_folder(random_decoder("gpt2", dtype=torch.float32), tmp_path / "model")
    with pytest.raises(InputError, match="written in float32"):
        export(tmp_path / "model", tmp_path / "graph", to="onnx", dtype="float16")
    assert not (tmp_path / "graph").exists()
