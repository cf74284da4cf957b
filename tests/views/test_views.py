"""Every view: narrow, without noise, true to its record, and drawn without overlaps."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from inspect import isabstract
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import heedful
from heedful.attention import (
    GaussianKeys,
    attend,
    copyable,
    design_average,
    design_copy,
    design_heads,
    design_kqv,
    error_curves,
    permutation_equivariance,
    sphere,
    standard_layers,
    study_noise,
)
from heedful.attention.operation import Reading
from heedful.errors import InputError
from heedful.model import Decoder, preset
from heedful.positions import SCHEMES, positions_study
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.conclusions import Conclusion
from heedful.studies.knowledge.findings import AskReply
from heedful.training import TrainingResult
from heedful.training.hooks import Evaluation
from heedful.training.runs import FinishedRun
from heedful.views import blocks as views
from heedful.views.attention import (
    NoiseComparison,
    copyable_blocks,
    copyable_figure,
    design_blocks,
    design_figure,
    in_keys,
    noise_blocks,
    noise_figure,
    reading_blocks,
    reading_figure,
    robust_heads_blocks,
    robust_heads_figure,
    sequence_blocks,
    sequence_figure,
)
from heedful.views.blocks import Block, Section, Span, Table, Text, View, group, table, view
from heedful.views.drawing import MARKER
from heedful.views.formatting import at_least, at_most, number
from heedful.views.html import blocks_html, breakable, maths
from heedful.views.order import (
    OrderFinding,
    OrderStudy,
    order_blocks,
    order_figure,
    positions_blocks,
    positions_figure,
)
from heedful.views.terminal import WIDEST, print_blocks

EYE = np.eye(6, 8)
NOISY = GaussianKeys.of(EYE, noisy={0: 0.5})


def _noise() -> Any:
    first, second = 20 * EYE[:2], 20 * (EYE[:1] + EYE[1:2])
    return NoiseComparison.of(
        study_noise(NOISY, first, of=(0, 1), draws=200, names=("0", "1")),
        study_noise(NOISY, second, of=(0, 1), draws=200, names=("0+1",)),
    )


@cache
def _heads() -> Any:
    made = design_heads(NOISY, of=(0, 1), norm=10, starts=0)
    return error_curves(made, NOISY, norms=(2, 10), head_counts=(1, 2), starts=0)


def _order() -> Any:
    layers = standard_layers()
    return OrderStudy(
        findings=tuple(
            OrderFinding(
                layer=name,
                law="equivariance",
                finding=permutation_equivariance(layers[name], trials=2),
                reason=None,
            )
            for name in ("self-attention", "causal self-attention")
        )
    )


def _kqv() -> Any:
    return design_kqv(np.eye(3), {0: [0.0, 1.0, 0.0], 2: [1.0, 0.0, 0.0]})


VIEWS: dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[..., Any]]] = {
    "design": (lambda: design_average(EYE, [0, 1]), design_blocks, design_figure),
    "large design": (lambda: design_copy(np.eye(80), 79), design_blocks, design_figure),
    "noise": (_noise, noise_blocks, noise_figure),
    "copyable": (lambda: copyable(sphere(90, 5)), copyable_blocks, copyable_figure),
    "heads": (_heads, robust_heads_blocks, robust_heads_figure),
    "sequence": (_kqv, sequence_blocks, sequence_figure),
    "order": (_order, order_blocks, order_figure),
    "reading": (
        lambda: Reading.of(attend(3 * EYE[0], EYE, np.eye(6))),
        reading_blocks,
        reading_figure,
    ),
    **{
        f"{kind} positions": (
            lambda kind=kind: positions_study(kind, 40, 16),
            positions_blocks,
            positions_figure,
        )
        for kind in SCHEMES
    },
}


def _printed(views: Iterable[Block], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    print_blocks(views)
    return capsys.readouterr().out


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_narrow_and_without_noise(name, capsys, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    make, tables, _ = VIEWS[name]
    lines = _printed(tables(make()), capsys).split("\n")
    assert len(lines) > 3
    assert lines[0].strip()
    assert all(len(line) <= WIDEST for line in lines)
    assert all(line == line.rstrip() for line in lines)
    assert not any(two == ("", "") for two in pairwise(lines))
    assert "None" not in "\n".join(lines)


@pytest.mark.parametrize("name", VIEWS)
def test_a_figure_keeps_its_words_apart(name) -> None:
    make, _, draw = VIEWS[name]
    figure: Figure = draw(make())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    width, height = canvas.get_width_height()
    for axes in figure.axes:
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [t.get_window_extent(renderer) for t in ticks if t.get_text()]
            boxes = [box for box in boxes if _inside(box, axes.get_window_extent(renderer))]
            assert not any(one.overlaps(two) for one, two in pairwise(boxes))
        for text in (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label):
            if text.get_text():
                box = text.get_window_extent(renderer)
                assert box.x0 >= -1
                assert box.x1 <= width + 1
                assert box.y0 >= -1
                assert box.y1 <= height + 1


@pytest.mark.parametrize("name", VIEWS)
def test_terminal_page_notebook_and_json_hold_the_same_cells(name, capsys) -> None:
    make, blocks, _ = VIEWS[name]
    view = View(tuple(blocks(make())))
    assert str(view) == _printed(view.blocks, capsys)
    page, record = view._repr_html_(), json.loads(view.to_json())
    for block, plain in zip(view.blocks, record["blocks"], strict=True):
        assert plain["kind"] == block.kind
        if isinstance(block, Table):
            assert len(plain["rows"]) == len(block.rows) == len(block.tones)
            assert all(str(maths(breakable(text))) in page for text in _cells(block))


def _cells(block: Table) -> list[str]:
    cells = [cell for row in block.rows for cell in row]
    return [cell for cell in cells if isinstance(cell, str)]


@pytest.mark.parametrize("name", VIEWS)
def test_every_record_finds_its_view(name) -> None:
    make, blocks, _ = VIEWS[name]
    record = make()
    assert view(record).to_json() == View(tuple(blocks(record))).to_json()


def test_every_view_in_the_list_exists() -> None:
    for target in views.VIEWS.values():
        module, function = target.split(":")
        assert callable(getattr(import_module(f"heedful.views.{module}"), function))
    with pytest.raises(InputError, match="no view of a Record"):
        view(Record())


def test_nothing_that_a_record_says_becomes_markup(capsys) -> None:
    rude = "[red]<script>alert(1)</script>[/red] :smile:"
    grid = table("", "says")
    grid.row(Span(rude, "bad"))
    parts = group(rude, rude, grid)
    concluded = Conclusion(text=rude, stands=True, kind="calculation")
    section = Section(name="x", title=rude, lead=rude, blocks=(parts,), findings=(concluded,))
    assert "<script>" not in blocks_html([section])
    assert _printed([section], capsys).count(rude) == 6


def _inside(box: Any, axes: Any) -> bool:
    """Tell whether a tick label belongs to the visible part of its axis."""
    return (
        axes.x0 - 200 <= box.x0 <= axes.x1 + 1
        and axes.y0 - 1 - box.height <= (box.y0 + box.y1) / 2 <= axes.y1 + 1
    ) or axes.x0 <= (box.x0 + box.x1) / 2 <= axes.x1


TERM = re.compile(r"([+−]?) ?(\d*) ?(?:\(([^)]*)\)|(k_\d))")


@given(st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_a_query_written_in_keys_is_that_query(shares) -> None:
    keys = np.eye(4, 6)
    written = in_keys(np.array(shares, dtype=float) @ keys, keys)
    assert written is not None
    read = [0] * 4
    for sign, size, several, one in TERM.findall(written):
        for name in re.findall(r"k_(\d)", several or one):
            read[int(name)] += (-1 if sign == "−" else 1) * int(size or 1)
    assert read == shares


def test_keys_that_are_not_orthonormal_are_left_alone() -> None:
    assert in_keys(np.ones(2), np.array([[1.0, 0.0], [1.0, 1.0]])) is None
    assert in_keys(np.ones(3), np.eye(2, 3)) is None  # the query leaves the keys' span


@given(st.floats(1e-12, 1e8))
def test_bounds_are_written_on_the_safe_side(bound) -> None:
    assert float(at_least(bound)) <= bound <= float(at_most(bound))


def test_an_unknown_number_is_a_dash_and_a_bound_may_be_infinite() -> None:
    assert at_least(None) == number(None) == "–"
    assert at_most(float("inf")) == "∞"


def test_a_table_has_one_rule_and_no_frame(capsys) -> None:
    made = table("A title that is longer than the table", "name", "number")
    made.row("a", "1")
    assert _printed([made, Text("after")], capsys).split("\n") == [
        "A title that is longer than the table",
        "name  number",
        "────────────",
        "a          1",
        "",
        "after",
        "",
    ]


@pytest.mark.parametrize("name", VIEWS)
def test_a_notebook_shows_every_record_as_its_view(name) -> None:
    record = VIEWS[name][0]()
    assert record._repr_html_() == view(record)._repr_html_()


def test_a_record_without_a_view_shows_its_fields() -> None:
    page = Estimate(value=1.5, low=1.0, high=2.0, count=3)._repr_html_()
    assert "Estimate" in page
    assert "1.5" in page


def test_figures_are_a_method_away() -> None:
    assert attend([6.0, 6.0, 0.0], np.eye(3)).figure().axes
    assert attend(np.eye(3), np.eye(3)).figure().axes
    for target in views.FIGURES.values():
        module, function = target.split(":")
        assert callable(getattr(import_module(f"heedful.views.{module}"), function))
    drawn = Estimate(value=1.5, low=1.0, high=2.0, count=3).figure()
    assert "1.5" in drawn.texts[0].get_text()  # nothing to draw: its table, as text


RUDE = "<script>alert(1)</script> $x^2$ [red]漢"


def _kinds(base: type[Record] = Record) -> Iterator[type[Record]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("heedful."):
            yield from _kinds(kind)
            if not isabstract(kind):
                yield kind


def _made(annotation: str, kinds: dict[str, type[Record]], depth: int = 0) -> Any:
    """Return a value of a kind that an annotation names, with markup in every text."""
    name, _, inner = annotation.removesuffix("]").partition("[")
    if name in ("tuple", "list", "Sequence"):
        return (_made(inner.split(",")[0], kinds, depth),) * 3
    if name in ("dict", "Mapping"):
        return {RUDE: _made(inner.partition(", ")[2], kinds, depth)}
    if name in ("Float", "Int", "Bool"):
        return np.linspace(-1, 1, 24).reshape((2, 3, 4) if "batch" in inner else (4, 6))
    if name in kinds and depth < 2:
        return _record(kinds[name], kinds, depth + 1)
    return {"float": 0.25, "int": 3, "bool": True, "None": None}.get(name.split(" | ")[0], RUDE)


def _record(kind: type[Record], kinds: dict[str, type[Record]], depth: int = 0) -> Record:
    record: Record = object.__new__(kind)
    for one in fields(kind):
        object.__setattr__(record, one.name, _made(str(one.type), kinds, depth))
    return record


def test_every_kind_of_record_is_shown_and_drawn_and_nothing_in_it_is_markup() -> None:
    for module in pkgutil.walk_packages(heedful.__path__, "heedful."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    kinds = {kind.__name__: kind for kind in _kinds()}
    plain = {
        name: kind for name, kind in kinds.items()
        if kind.__module__ != views.__name__
        and not {one.__name__ for one in kind.__mro__} & set(views.VIEWS)
    }  # fmt: skip
    assert len(plain) > 80
    for name, kind in plain.items():
        record = _record(kind, plain)
        page = record._repr_html_()
        assert 'class="heedful"' in page, name
        assert "<script" not in page, name
        if name not in views.FIGURES:
            assert isinstance(record.figure(), Figure), name


def test_what_the_python_interface_gives_is_shown_and_drawn() -> None:
    verdict = heedful.claim(
        "c ≈ (v_a + v_b)/2 within 0.02", query="k_a + k_b", keys="orthonormal", where={"n": 10}
    )
    design = heedful.design(average=[0, 1], n=4)
    evaluations = tuple(Evaluation(step=step, values={"loss": 1 / step}) for step in (1, 2))
    result = _record(TrainingResult, {})
    for name, value in {"evaluations": evaluations, "resumed_from": None, "loss": 0.5}.items():
        object.__setattr__(result, name, value)
    decoder = Decoder(preset("tiny"), seed=0)
    for record, word in (
        (heedful.attend([6, 6, 0, 0], n=4), "entropy"),
        (design, "separating direction"),
        (design.certificate, "separating direction"),
        (heedful.noise(["0+1"], n=4, noisy={0: 0.5}, draws=50), "sampled"),
        (verdict, "refuted"),
        (verdict.counterexample, "heed attend"),
        (verdict.repair, "multiply the query"),
        (heedful.check_layer(lambda q, k, v: v, "attention"), "differs"),
        (FinishedRun(Path("run"), result), "Training"),
        (_record(AskReply, {}), "alert"),
        (decoder.trace(torch.arange(6)[None]), "6"),
    ):
        assert isinstance(record, Record)
        page, drawn = record._repr_html_(), record.figure()._repr_html_()
        assert word in page, type(record)
        assert "<script" not in page + drawn
        assert "currentColor" in drawn  # readable on light and on dark
        assert MARKER not in drawn
