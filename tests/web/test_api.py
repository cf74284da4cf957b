"""What the page is told: the numbers of the rooms, and errors as the line they are."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_numbers import FILE, golden
from page_server import client_of, own_headers, settings_for
from starlette.testclient import TestClient

from heedful.attention import GaussianKeys, design_average, standard_keys, study_noise
from heedful.attention.keys import STANDARD_KEYS
from heedful.positions import SCHEMES, sinusoidal
from heedful.web.app import warm_up
from heedful.web.attention_api import plane_of, scene
from heedful.web.claims_api import catalog_json
from heedful.web.models_api import MetricsReader
from heedful.web.shelves import Shelves


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    """Return a function that asks the server as the page does."""
    client: TestClient = client_of(settings_for(tmp_path), own_headers())

    def asked(path: str, question: Any = None, status: int = 200) -> Any:
        answer = client.post(f"/api/{path}", json=question or {})
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


def unpacked(packed: dict[str, Any]) -> Any:
    kind = "float32" if "float32" in packed else "uint8"
    return np.frombuffer(base64.b64decode(packed[kind]), dtype=kind).reshape(packed["shape"])


def test_the_golden_numbers_are_those_of_python() -> None:
    stored = json.loads(FILE.read_text("utf-8"))

    def compare(one: Any, other: Any, place: str) -> None:
        if isinstance(one, dict):
            assert one.keys() == other.keys(), place
            for name in one:
                compare(one[name], other[name], f"{place}.{name}")
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=place)

    fresh = json.loads(json.dumps(golden()))
    for part in ("cases", "hulls"):
        assert len(stored[part]) == len(fresh[part])
        for number, (one, other) in enumerate(zip(stored[part], fresh[part], strict=True)):
            compare(one, other, f"{part}[{number}]")


def test_the_page_is_told_every_standard_set_and_every_encoding(ask: Any) -> None:
    about = ask("about", {})
    assert [entry["name"] for entry in about["keys"]] == list(STANDARD_KEYS)
    assert [entry["name"] for entry in about["encodings"]] == list(SCHEMES)
    assert all(entry["formula"] and entry["label"] for entry in about["encodings"])


class TestScenes:
    def test_orthonormal_keys_are_seen_as_a_circle(self, ask: Any) -> None:
        found = ask("attention/scene", {"kind": "orthonormal", "n": 10, "d": 16})
        shown = np.array(found["keys"]) @ np.array(found["plane"]).T
        np.testing.assert_allclose(np.linalg.norm(shown, axis=1), np.sqrt(2 / 10), atol=1e-12)
        np.testing.assert_allclose(found["values"], shown, atol=1e-12)
        assert all(found["copyable"])

    @pytest.mark.parametrize("kind", ["auto", "round", "principal"])
    @pytest.mark.parametrize(
        "keys", ["circle", "sphere", "gaussian", "grid", "orthonormal", "simplex"]
    )
    def test_a_plane_is_two_perpendicular_unit_vectors(self, kind: Any, keys: str) -> None:
        P = plane_of(standard_keys(keys, 6, 7, 1), kind)
        np.testing.assert_allclose(P @ P.T, np.eye(2), atol=1e-12)

    def test_a_plane_through_two_keys_holds_them(self) -> None:
        keys = standard_keys("gaussian", 6, 7, 1)
        P = plane_of(keys, "keys", [2, 4])
        np.testing.assert_allclose(keys[[2, 4]] @ P.T @ P, keys[[2, 4]], atol=1e-12)
        flat = plane_of(np.array([[1.0, 0, 0], [2.0, 0, 0], [0, 1.0, 0]]), "keys", [0, 1])
        np.testing.assert_allclose(flat @ flat.T, np.eye(2), atol=1e-12)

    def test_an_inner_key_is_marked(self, ask: Any) -> None:
        found = ask("attention/scene", {"rows": [[0, 0], [2, 0], [0, 2], [0.5, 0.5]]})
        assert found["copyable"] == [True, True, True, False]

    def test_values_of_your_own(self, ask: Any) -> None:
        rows = [[1.0, 2.0], [3.0, 4.0]]
        assert ask("attention/scene", {"n": 2, "values": rows})["values"] == rows
        assert scene(np.eye(2), values="circle").values.shape == (2, 2)

    def test_too_much_is_refused(self, ask: Any) -> None:
        ask("attention/scene", {"n": 5_000}, 422)
        ask("attention/scene", {"kind": "nonsense"}, 422)
        wide = ask("attention/scene", {"rows": [[0.0] * 100, [1.0] * 100]}, 422)
        assert "100 dimensions" in wide["error"]
        assert ask("attention/scene", {"colour": "red"}, 422)["where"] == "colour"


class TestNoiseAndDesign:
    keys = np.eye(10, 16)

    def test_noise_is_the_study_of_the_room(self, ask: Any) -> None:
        layers = [[(50 * (self.keys[0] + self.keys[1])).tolist()], (50 * self.keys[:2]).tolist()]
        values = standard_keys("circle", 10, 2, 0)
        found = ask(
            "attention/noise",
            {
                "keys": self.keys.tolist(), "values": values.tolist(), "noisy": 0, "variance": 0.5,
                "layers": layers, "of": [0, 1], "draws": 500,
            },
        )  # fmt: skip
        gaussian = GaussianKeys.of(self.keys, noisy={0: 0.5})
        for heads, layer in zip(layers, found["layers"], strict=True):
            study = study_noise(gaussian, heads, values=values, of=(0, 1), draws=500)
            assert study.exact is not None
            assert layer["method"] == "exact"
            assert layer["failure"] == study.exact.failure_probability
            np.testing.assert_allclose(layer["mean"], study.exact.output_mean)
            np.testing.assert_allclose(
                np.sqrt(np.diag(layer["covariance"])), study.exact.output_std, atol=1e-9
            )
        one, two = (layer["failure"] for layer in found["layers"])
        assert two < one / 3  # two heads withstand the noise that one does not

    def test_a_design_is_the_design_of_the_room(self, ask: Any) -> None:
        found = ask(
            "attention/design", {"kind": "average", "of": [0, 1], "keys": self.keys.tolist()}
        )
        design = design_average(self.keys, (0, 1), tolerance=0.01)
        assert found["design"]["feasible"]
        np.testing.assert_allclose(found["design"]["query"], design.query)

    def test_an_impossible_copy_comes_with_its_combination(self, ask: Any) -> None:
        rows = [[0, 0], [2, 0], [0, 2], [0.5, 0.5]]
        found = ask("attention/design", {"kind": "copy", "of": [3], "keys": rows})["design"]
        assert not found["feasible"]
        shares = found["certificate"]["combination"]
        inside = sum(share * np.array(rows[int(place)]) for place, share in shares.items())
        np.testing.assert_allclose(inside, rows[3], atol=1e-9)

    def test_robust_heads_beat_the_hand_made(self, ask: Any) -> None:
        question = {
            "kind": "robust", "of": [0, 1], "keys": np.eye(4).tolist(), "noisy": 0,
            "variance": 0.5, "norm": 20,
        }  # fmt: skip
        heads = ask("attention/design", question)["heads"]
        assert len(heads["queries"]) == 2
        assert heads["error"] <= min(choice["error"] for choice in heads["comparison"]) + 1e-12

    def test_what_cannot_be_is_said_in_one_line(self, ask: Any) -> None:
        question = {"kind": "copy", "of": [0, 1], "keys": self.keys.tolist()}
        assert "one key" in ask("attention/design", question, 422)["error"]
        ask("attention/design", {"kind": "copy", "of": [99], "keys": self.keys.tolist()}, 422)
        ask("attention/noise", {"keys": [[1, 2], [3]], "layers": [[[1, 2]]]}, 422)


class TestPositions:
    def test_the_table_is_that_of_the_room(self, ask: Any) -> None:
        found = ask("positions/study", {"length": 40, "width": 8})
        table = sinusoidal(40, 8)
        np.testing.assert_allclose(unpacked(found["table"]), table, atol=1e-7)
        apart = np.linalg.norm(table[:, None] - table[None], axis=2)
        np.testing.assert_allclose(unpacked(found["distances"]), apart, atol=1e-5)
        np.testing.assert_allclose(
            unpacked(found["distances"])[0], found["gap_distances"], atol=1e-5
        )

    @pytest.mark.parametrize("kind", ["rotary", "alibi", "learned", "none"])
    def test_every_kind_is_answered(self, ask: Any, kind: str) -> None:
        assert ask("positions/study", {"kind": kind, "length": 16, "width": 8})["statements"]

    @pytest.mark.parametrize(("positions", "mask"), [(False, False), (True, False), (False, True)])
    def test_order_is_seen_with_positions_or_a_mask(
        self, ask: Any, positions: bool, mask: bool
    ) -> None:
        found = ask("positions/order", {"positions": positions, "mask": mask})
        moved = max(change["relative"] for change in found["changes"])
        assert (moved > 1e-6) == (positions or mask)
        assert found["law"]["holds"] == (not (positions or mask))

    def test_words_that_repeat_are_matched_in_order(self, ask: Any) -> None:
        found = ask("positions/order", {"first": "a b a", "second": "b a a"})
        assert [change["to"] for change in found["changes"]] == [1, 0, 2]
        assert not ask("positions/order", {"first": "a", "second": "b"})["same_words"]
        ask("positions/order", {"first": "", "second": "b"}, 422)


class TestMetrics:
    def test_lines_come_as_they_are_written(self, tmp_path: Path) -> None:
        file = tmp_path / "metrics.jsonl"
        reader = MetricsReader(file)
        assert reader.read() == ([], False)
        file.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo', "utf-8")
        assert reader.read() == ([{"step": 1, "loss": 2.0}], True)
        with file.open("a", encoding="utf-8") as more:
            more.write('ss": 1.5}\nnot json\n[1]\n')
        assert reader.read() == ([{"step": 2, "loss": 1.5}], False)
        assert reader.read() == ([], False)

    def test_a_replaced_file_is_read_anew(self, tmp_path: Path) -> None:
        file = tmp_path / "metrics.jsonl"
        file.write_text('{"step": 1}\n{"step": 2}\n', "utf-8")
        reader = MetricsReader(file)
        reader.read()
        other = tmp_path / "new"
        other.write_text('{"step": 1}\n', "utf-8")
        other.replace(file)
        assert reader.read() == ([{"step": 1}], True)


def test_an_unknown_question_is_404(ask: Any) -> None:
    assert ask("attention/nonsense", status=404)["error"]


def test_what_a_first_question_waits_for_is_loaded_at_the_start(tmp_path: Path) -> None:
    catalog_json.cache_clear()
    warm_up(Shelves(tmp_path / "runs"))
    assert catalog_json.cache_info().currsize == 1
    assert set(json.loads(catalog_json())) == {"sheets", "disagreements"}
