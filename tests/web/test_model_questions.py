"""Questions to models that others have trained: by id, with a promise or without, given up at once.

The models are real ones of a moment: a folder as Hugging Face writes them, and a GGUF file.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calibrations import keep_calibration
from page_server import client_of, own_headers, settings_for
from reference_decoder import random_decoder
from starlette.testclient import TestClient
from weight_files import gguf_config, write_gguf

from heedful.files import fetched_models
from heedful.model.weights.published import cached_path
from heedful.studies.knowledge import findings
from heedful.studies.knowledge.pretrained import WORDINGS, PretrainedAsker
from heedful.tokenization import train_bpe
from heedful.web.shelves import Shelves, id_of

QUESTION = "Who wrote Hamlet?"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def client(tmp_path: Path, runs: Path, opinionated: Path) -> TestClient:
    settings = replace(settings_for(tmp_path), runs=runs, models=(opinionated,))
    return client_of(settings, own_headers())


def put(client: TestClient, **question: Any) -> list[dict[str, Any]]:
    """Ask as the page does; return everything that is told, the answer last."""
    told: list[dict[str, Any]] = []
    with client.websocket_connect("/api/models/questions", headers=own_headers()) as socket:
        socket.send_text(json.dumps(question))
        while not told or "of" in told[-1]:
            told.append(json.loads(socket.receive_text()))
    return told


def test_studies_and_models_of_others_can_be_asked(client: TestClient, opinionated: Path) -> None:
    found = client.post("/api/models/list", json={}).json()
    assert [(one["kind"], one["name"]) for one in found["askers"]] == [
        ("study", "people"),
        ("model", "opinionated"),  # and not the translator
    ]
    assert str(opinionated.parent) not in str(found)


def test_without_a_calibration_there_is_no_label_and_the_command_is_offered(
    client: TestClient, opinionated: Path
) -> None:
    *progress, last = put(client, model=id_of(opinionated), text=QUESTION)
    assert [one["done"] for one in progress] == list(range(len(WORDINGS) + 1))
    assert {one["of"] for one in progress} == {len(WORDINGS)}
    reply = last["reply"]
    assert reply["label"] in (findings.UNCALIBRATED, findings.UNKNOWN)
    assert reply["confidence"] is None
    assert last["promises"] is None
    assert last["calibrate"] == "heed ask MODEL --calibrate"
    assert str(opinionated.parent) not in json.dumps(last)
    known = PretrainedAsker(opinionated).ask([QUESTION], None).replies[0]
    assert reply["wordings"] == list(known.wordings)
    assert reply["probability"] == pytest.approx(known.probability, rel=1e-3)


@pytest.mark.parametrize("label", [findings.KNOWN, findings.UNSURE, findings.UNKNOWN])
def test_with_one_the_label_stands_under_its_promise(
    client: TestClient, opinionated: Path, label: str
) -> None:
    keep_calibration(opinionated, label)
    last = put(client, model=id_of(opinionated), text=QUESTION)[-1]
    reply, promises = last["reply"], last["promises"]
    assert reply["label"] == label
    assert (reply["answer"] is None) == (label == findings.UNKNOWN)
    assert (promises["known_from"] is None) == (label != findings.KNOWN)
    begins = "Promised of" if label == findings.KNOWN else "No promise that"
    assert promises["known"].startswith(begins)
    assert "short questions about facts" in promises["population"]


def test_what_cannot_be_asked_is_said_in_a_line(
    client: TestClient, opinionated: Path, runs: Path
) -> None:
    model = id_of(opinionated)
    long = put(client, model=model, text="x" * 501)[-1]["error"]
    assert long["problem"] == "has 501 characters"
    full = put(client, model=model, text="x" * 480)[-1]["error"]
    assert "together with its examples" in full["problem"]
    assert "reads 512" in full["expected"]
    assert "text" in put(client, model=model, text="")[-1]["error"]["where"]
    assert put(client, model=model, text="a", path="/etc")[-1]["error"]["where"] == "path"
    translator = id_of(runs / "pairs" / "model")
    for name in ("../pairs", "/etc", "smollm2", "", str(opinionated), translator):
        assert "unknown" in put(client, model=name, text="a")[-1]["error"]["problem"]


def test_a_damaged_model_says_so_and_the_page_goes_on(
    client: TestClient, opinionated: Path, tmp_path: Path, runs: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(opinionated, damaged)
    (damaged / "model.safetensors").write_bytes(b"no weights")
    settings = replace(settings_for(tmp_path), runs=runs, models=(damaged, opinionated))
    asked = client_of(settings, own_headers())
    assert put(asked, model=id_of(damaged), text=QUESTION)[-1]["error"]["problem"]
    assert "reply" in put(asked, model=id_of(opinionated), text=QUESTION)[-1]


def test_whoever_leaves_is_waited_for_no_longer(
    client: TestClient, opinionated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real question, whose wordings are only held up until the asker has gone."""
    heard, gone, ended = threading.Event(), threading.Event(), threading.Event()
    steps: list[int] = []
    ask = PretrainedAsker.ask

    def slowly(self: PretrainedAsker, *given: Any, progress: Any) -> Any:
        def held_up(done: int, of: int) -> None:
            steps.append(done)
            heard.set()
            gone.wait(20)
            time.sleep(0.2)  # the server hears of a closed socket a moment later
            progress(done, of)

        try:
            return ask(self, *given, progress=held_up)
        finally:
            ended.set()

    monkeypatch.setattr(PretrainedAsker, "ask", slowly)
    with client.websocket_connect("/api/models/questions", headers=own_headers()) as socket:
        socket.send_text(json.dumps({"model": id_of(opinionated), "text": QUESTION}))
        assert heard.wait(60)
        socket.close()
        gone.set()
        assert ended.wait(60)
    assert len(steps) < len(WORDINGS)


def test_a_gguf_file_and_a_model_folder_may_lie_among_the_runs(
    tmp_path: Path, opinionated: Path
) -> None:
    lying = tmp_path / "lying"
    shutil.copytree(opinionated, lying / "my-model.v1")
    tokenizer = train_bpe(["What is the capital of Peru? Question: Answer:"] * 9, 270)
    config = gguf_config("llama").changed(context=512)
    write_gguf(lying / "small.gguf", random_decoder(config).float(), tokenizer, "llama")
    shelf = Shelves(lying)
    assert shelf.runs() == {}  # the folder has a config.json, and is no run
    assert [(one.name, one.kind, one.called) for one in shelf.askers()] == [
        ("my-model.v1", "model", "MODEL"),
        ("small", "model", "MODEL"),
    ]
    client = client_of(replace(settings_for(tmp_path), runs=lying), own_headers())
    for path in (lying / "small.gguf", lying / "my-model.v1"):
        last = put(client, model=id_of(path), text=QUESTION)[-1]
        assert len(last["reply"]["wordings"]) == len(WORDINGS)


def test_a_fetched_model_is_called_by_its_name(tmp_path: Path) -> None:
    assert fetched_models() == {}
    cached = cached_path("smollm2")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"")
    assert fetched_models() == {"smollm2": cached}
    (entry,) = Shelves(tmp_path, (cached,)).askers()
    assert (entry.called, entry.kind) == ("smollm2", "model")


def test_the_page_has_words_for_every_label() -> None:
    source = Path(__file__).parents[2] / "page" / "src"
    words = (source / "lib" / "studies.svelte.ts").read_text("utf-8")
    table = words[words.index("ANSWER_LABELS") :]
    table = table[: table.index("\n}")]
    found = re.findall(r"^  (?:'([^']+)'|\"([^\"]+)\"|(\w+)):", table, re.MULTILINE)
    labels = [next(filter(None, one)) for one in found]
    assert labels == [findings.KNOWN, findings.UNSURE, findings.UNKNOWN, findings.UNCALIBRATED]
    shown = (source / "components" / "ModelReplies.svelte").read_text("utf-8")
    for label in labels:
        assert shown.count(label) >= 2  # a mark and a tone
