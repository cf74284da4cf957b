"""Exported models: the same tokens in `transformers`, and clear words where that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import transformers
from small_translators import gpt2_like, letters, translator

from heedful.errors import InputError
from heedful.files import SHIPPED
from heedful.model import Decoder, write_folder
from heedful.model.config import Norm
from heedful.studies.exporting import export
from heedful.studies.translation import Translator

SENTENCES = ["abc", "bad bed?", "é", "code a dodo", "ab", "c'é."]


@pytest.mark.parametrize("gpt2", [False, True])
def test_transformers_gives_the_same_translations(gpt2: bool, tmp_path: Path) -> None:
    made = translator(gpt2=gpt2, dtype=torch.float32, seed=5)
    write_folder(made.decoder, tmp_path / "model", tokenizer=made.tokenizer)
    made.format.write(tmp_path / "model")
    folder = tmp_path / "exported"
    record = export(tmp_path / "model", folder)
    assert record.family == ("gpt2" if gpt2 else "llama")
    assert record.translates == ("fr", "en")
    assert set(record.files) >= {"README.md", "translation.json", "generation_config.json"}

    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert (model.config.bos_token_id, model.config.eos_token_id) == (0, 2)
    assert model.generation_config.suppress_tokens == [0, 1]  # <begin> and <to>
    asked = tokenizer([text + "<to>" for text in SENTENCES], return_tensors="pt", padding=True)
    for row, text in zip(asked["input_ids"].tolist(), SENTENCES, strict=True):
        prompt, _ = made.prompt(text)
        assert row[-len(prompt) :] == prompt
    found = model.generate(
        asked["input_ids"],
        attention_mask=asked["attention_mask"],
        max_new_tokens=6,
        max_length=None,
    )
    texts = tokenizer.batch_decode(
        found[:, asked["input_ids"].shape[1] :], skip_special_tokens=True
    )
    ours = [one.text for one in made.translate(SENTENCES, max_tokens=6)]
    assert [" ".join(text.split("\n")).strip() for text in texts] == ours
    assert Translator.open(folder).texts(SENTENCES) == made.texts(SENTENCES)


def test_the_lines_of_the_readme_ask_as_the_translator_does(tmp_path: Path) -> None:
    for name, text in (("fr-en", "Où est la gare ?"), ("en-fr", "Where is the station?")):
        record = export(SHIPPED[name], tmp_path / name)
        readme = (tmp_path / name / "README.md").read_text("utf-8")
        assert "CC BY 2.0" in readme  # the card goes along
        (asked,) = re.findall(r'tokenizer\(\["(.*)"\]', readme)
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / name)
        assert tokenizer(asked)["input_ids"] == Translator.open(SHIPPED[name]).prompt(text)[0]
        assert ("space behind an elision" in readme) == (name == "fr-en")
        assert record.translates is not None
        again = export(tmp_path / name, tmp_path / f"{name}-again")
        assert again.files["README.md"] == record.files["README.md"]


def test_every_setting_in_the_way_is_named(tmp_path: Path) -> None:
    config = gpt2_like(letters().size).changed(
        norm=Norm(kind="layer", bias=False, placement="post")
    )
    write_folder(Decoder(config, seed=0), tmp_path / "model", tokenizer=letters())
    with pytest.raises(InputError) as caught:
        export(tmp_path / "model", tmp_path / "out")
    said = str(caught.value)
    assert "norm.bias is False" in said
    assert "norm.placement is 'post'" in said
    assert "norm.placement = 'pre'" in said
