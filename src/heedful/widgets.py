"""Widgets of notebooks: what the page draws, shared with Python both ways.

    plane = h.widgets.Plane(n=8, d=2, query=[6, 0])
    plane                      # drag the query in the notebook …
    plane.query                # … and read it here; or set it here, and see it move there
    plane.result.weights       # what it reads, computed in Python

Each is an anywidget: a model of traits here, the components of the page there, in one script that
comes with the package and asks nobody for anything. The extra `notebook` brings anywidget.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful.arrays import numpy64
from heedful.attention import GaussianKeys, attend, copyable, keys_from, study_noise
from heedful.attention.keys import plane_of
from heedful.claims import CheckReport, Verdict
from heedful.claims.language.notation import tex
from heedful.claims.language.parser import parse
from heedful.claims.sheet.sheet import toml_lines
from heedful.errors import HeedfulError, InputError, MissingPartError

try:
    import anywidget
    import traitlets
except ImportError:
    raise MissingPartError.of("heedful.widgets", "anywidget", "notebook") from None

if TYPE_CHECKING:
    from heedful.attention import AttentionResult, NoiseStudy
    from heedful.records import Record

__all__ = ["Claims", "Heads", "HeatMap", "NoisyPlane", "Plane", "Weights", "widget_of"]

BUNDLE = Path(__file__).parent / "web" / "built" / "widgets" / "widgets.js"
PICTURE = 48
"""Side of the small picture of a head: of each square of tokens the largest weight."""
DRAWS = 200
"""Draws of the sampled half of a noise study, which the widget does not show."""


def _script() -> str:
    if not BUNDLE.is_file():
        raise HeedfulError(
            "heedful.widgets", "its script was not built", hint="run `make page`, which needs Node"
        )
    return BUNDLE.read_text(encoding="utf-8")


class _Widget(anywidget.AnyWidget):
    """What all widgets have: the script, and how wide they may become."""

    _kind = traitlets.Unicode().tag(sync=True)
    width = traitlets.Int(900, help="The widest it becomes, in pixels.").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(_esm=_script(), **traits)


def _rows(name: str, value: Any) -> list[list[float]]:
    array = numpy64(name, value)
    return [[float(one) for one in row] for row in np.atleast_2d(array)]


class Plane(_Widget):
    """Keys, values and queries in the plane, with the weights: everything can be dragged.

    `queries` has a row for each head and `query` is the first; `key_rows` (movable in two
    dimensions), `chosen` (clicked keys), `beta` and `variance` are shared as well.
    """

    key_rows: Any = traitlets.List(help="The keys, a row each.").tag(sync=True)
    queries: Any = traitlets.List(help="A row for each head.").tag(sync=True)
    scale = traitlets.Float(1.0, help="What k·q is multiplied by.").tag(sync=True)
    beta = traitlets.Float(1.0, help="A query q is drawn at q/β.").tag(sync=True)
    chosen: Any = traitlets.List(help="Numbers of the chosen keys.").tag(sync=True)
    noisy = traitlets.Int(-1, help="The key that is noisy along itself; −1: none.").tag(sync=True)
    variance = traitlets.Float(0.5, help="The variance of that key along itself.").tag(sync=True)
    radius = traitlets.Float(0.1, help="ε of a success: ‖c − target‖ ≤ ε.").tag(sync=True)
    _plane: Any = traitlets.List().tag(sync=True)
    _values: Any = traitlets.List(allow_none=True, default_value=None).tag(sync=True)
    _copyable: Any = traitlets.List().tag(sync=True)
    _exact = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(
        self,
        keys: Any = "circle",
        query: Any = None,
        values: Any = None,
        *,
        n: int | None = None,
        d: int | None = None,
        scale: float | Literal["sqrt_d"] = 1.0,
        chosen: Iterable[int] = (),
        **traits: Any,
    ) -> None:
        means = np.asarray(keys_from(keys, n if n or not isinstance(keys, str) else 8, d))
        queries = _rows("query", 4 * means[0] if query is None else query)
        _check_columns(queries, means.shape[1])
        longest = max((float(np.linalg.norm(row)) for row in queries), default=1.0) or 1.0
        size = float(np.linalg.norm(means, axis=1).max()) or 1.0
        super().__init__(
            _kind="plane",
            key_rows=_rows("keys", means),
            queries=queries,
            scale=means.shape[1] ** -0.5 if scale == "sqrt_d" else float(scale),
            chosen=sorted(int(one) for one in chosen),
            beta=longest / size,
            _plane=plane_of(means).tolist(),
            _values=None if values is None else _points(values, len(means)),
            _copyable=[bool(one) for one in copyable(means).copyable],
            **traits,
        )

    @property
    def query(self) -> np.ndarray[Any, Any]:
        """The query of the first head, as it stands in the notebook now."""
        return np.array(self.queries[0], dtype=float)

    @query.setter
    def query(self, value: Any) -> None:
        row = _rows("query", value)[:1]
        _check_columns(row, len(self.key_rows[0]))
        self.queries = row + list(self.queries[1:])

    @property
    def result(self) -> AttentionResult:
        """What the queries read now: logits, weights, output, entropy."""
        return attend(self.queries, self.key_rows, self._drawn_values(), scale=self.scale)

    @property
    def weights(self) -> np.ndarray[Any, Any]:
        """The weights now: of one head (n), of several (heads, n)."""
        found = np.asarray(self.result.weights)
        return found[0] if len(found) == 1 else found

    def _drawn_values(self) -> Any:
        return (
            np.array(self.key_rows) @ np.array(self._plane).T
            if self._values is None
            else self._values
        )

    @traitlets.observe("key_rows")
    def _moved(self, change: Any) -> None:
        if change["old"] and len(change["new"]) == len(change["old"]):
            self._copyable = [bool(one) for one in copyable(np.array(self.key_rows)).copyable]


class NoisyPlane(Plane):
    """The plane with a noisy key, and where the output ends over draws of it.

    Draws are made while you drag; the exact mean, deviation and failure come from Python, by
    quadrature, a moment later. `study` is the whole record.
    """

    def __init__(
        self, keys: Any = "circle", query: Any = None, *, noisy: int = 0, variance: float = 0.5,
        chosen: Iterable[int] = (0, 1), **settings: Any,
    ) -> None:  # fmt: skip
        super().__init__(keys, query, noisy=noisy, variance=variance, chosen=chosen, **settings)
        self.observe(
            self._study_again, names=["key_rows", "queries", "variance", "radius", "chosen"]
        )
        self._study_again()

    @property
    def study(self) -> NoiseStudy:
        """The distribution of weights and output as things stand now."""
        noisy = {self.noisy: self.variance} if self.noisy >= 0 and self.variance > 0 else {}
        return study_noise(
            GaussianKeys.of(np.array(self.key_rows), noisy=noisy),
            self.queries,
            values=self._drawn_values(),
            of=list(self.chosen) or None,
            radius=self.radius,
            draws=DRAWS,
            scale=self.scale,
        )

    def _study_again(self, change: Any = None) -> None:
        study = self.study
        found = study.exact or study.sampled
        V = np.asarray(self._drawn_values())
        spread = None if found.covariance is None else V.T @ np.asarray(found.covariance) @ V
        self._exact = {
            "queries": self.queries,
            "variance": self.variance,
            "radius": self.radius,
            "mean": np.asarray(found.output_mean).tolist(),
            "covariance": None if spread is None else spread.tolist(),
            "failure": float(found.failure_probability),
            "weights_mean": np.asarray(found.mean).tolist(),
            "weights_std": np.asarray(found.std).tolist(),
        }


class Weights(_Widget):
    """Attention weights as bars, a colour for each head; a click chooses a key."""

    weights: Any = traitlets.List(help="A row for each head.").tag(sync=True)
    chosen: Any = traitlets.List(help="Numbers of the chosen keys.").tag(sync=True)

    def __init__(self, weights: Any, *, chosen: Iterable[int] = (), **traits: Any) -> None:
        chosen = sorted(int(one) for one in chosen)
        rows = _rows("weights", weights)
        super().__init__(_kind="weights", weights=rows, chosen=chosen, **traits)


class HeatMap(_Widget):
    """A matrix as colours, with the value under the pointer; a click marks a `cell`."""

    cell: Any = traitlets.List(help="Row and column of the marked cell; empty: none.").tag(
        sync=True
    )
    label = traitlets.Unicode("A matrix").tag(sync=True)
    across = traitlets.Unicode("column").tag(sync=True)
    down = traitlets.Unicode("row").tag(sync=True)
    row_names: Any = traitlets.List(allow_none=True, default_value=None).tag(sync=True)
    column_names: Any = traitlets.List(allow_none=True, default_value=None).tag(sync=True)
    _data = traitlets.Bytes().tag(sync=True)
    _rows = traitlets.Int().tag(sync=True)
    _columns = traitlets.Int().tag(sync=True)
    _low = traitlets.Float().tag(sync=True)
    _high = traitlets.Float().tag(sync=True)
    _palette = traitlets.Unicode("rising").tag(sync=True)

    def __init__(self, data: Any, **traits: Any) -> None:
        super().__init__(_kind="heatmap", **traits)
        self.data = data

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The matrix, in the precision in which it is drawn (float32)."""
        return np.frombuffer(self._data, np.float32).reshape(self._rows, self._columns)

    @data.setter
    def data(self, value: Any) -> None:
        array = numpy64("data", value)
        if array.ndim != 2 or array.size == 0:
            raise InputError("data", f"has shape {array.shape}", expected="rows and columns")
        low, high = float(array.min()), float(array.max())
        if low < 0:  # both signs: white stands for 0
            low, high = -max(-low, high), max(-low, high)
        with self.hold_sync():
            self._rows, self._columns = array.shape
            self._palette = "diverging" if low < 0 else "rising"
            self._low, self._high = (low, high) if low < 0 else (0.0, max(high, 1e-12))
            self._data = array.astype(np.float32).tobytes()


class Heads(_Widget):
    """Every head of a model at a glance, and the chosen one in full.

    `weights` are arrays (layers, heads, t, t), or a trace of `decoder.trace`. `layer`, `head` and
    `removed` (heads crossed out, as "layer.head") are shared: read them, or set them.
    """

    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    removed: Any = traitlets.List(help='Crossed out, such as ["0.1"].').tag(sync=True)
    tokens: Any = traitlets.List(allow_none=True, default_value=None).tag(sync=True)
    names = traitlets.Dict(help='What heads are called: {"0.1": "previous"}.').tag(sync=True)
    _overview = traitlets.Dict().tag(sync=True)
    _weights = traitlets.Bytes().tag(sync=True)

    def __init__(
        self, weights: Any, tokens: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None, **traits: Any,
    ) -> None:  # fmt: skip
        if hasattr(weights, "layers"):  # a trace: the first text of its batch
            weights = [layer.weights[0] for layer in weights.layers]
        self._all = [_head_weights(one) for one in weights]
        heads, time, _ = self._all[0].shape
        side = min(PICTURE, time)
        pictures = np.stack([_pooled(one, side) for one in self._all])
        packed = np.round(255 * np.clip(pictures, 0, 1)).astype(np.uint8)
        super().__init__(
            _kind="heads",
            tokens=None if tokens is None else [str(one) for one in tokens],
            names=dict(names or {}),
            _overview={
                "tokens": time,
                "layers": len(self._all),
                "heads": heads,
                "pictures": {
                    "shape": list(packed.shape),
                    "uint8": base64.b64encode(packed.tobytes()).decode("ascii"),
                },
            },
            **traits,
        )
        self._send_head()

    @property
    def weights(self) -> np.ndarray[Any, Any]:
        """The weights of the chosen head, queries by keys."""
        return np.asarray(self._all[self.layer][self.head])

    @traitlets.validate("layer", "head")
    def _known(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, int(proposal["value"])
        most = len(self._all) if name == "layer" else len(self._all[0])
        if not 0 <= value < most:
            raise InputError(name, f"is {value}", expected=f"0 to {most - 1}")
        return value

    @traitlets.observe("layer", "head")
    def _send_head(self, change: Any = None) -> None:
        # One head at a time: 144 heads of 512 tokens would be 150 MB.
        self._weights = np.ascontiguousarray(self.weights, dtype=np.float32).tobytes()


class Claims(_Widget):
    """Verdicts as cards: the formula, the reason, the repair. A click on a name chooses one."""

    chosen = traitlets.Int(-1, help="The number of the chosen claim; −1: none.").tag(sync=True)
    _cards: Any = traitlets.List().tag(sync=True)

    def __init__(self, verdicts: Verdict | CheckReport | Iterable[Verdict], **traits: Any) -> None:
        if isinstance(verdicts, Verdict):
            verdicts = [verdicts]
        elif isinstance(verdicts, CheckReport):
            verdicts = verdicts.claims
        self.verdicts = tuple(verdicts)
        super().__init__(_kind="claims", _cards=[_card(one) for one in self.verdicts], **traits)

    @property
    def verdict(self) -> Verdict | None:
        """The chosen verdict."""
        return None if self.chosen < 0 else self.verdicts[self.chosen]


def widget_of(record: Record) -> Any:
    """Return a record as a widget, where there is one for its kind."""
    name = type(record).__name__
    if name == "AttentionResult":
        weights = np.asarray(record.weights)  # type: ignore[attr-defined]
        return Weights(weights) if weights.ndim <= 2 and len(np.atleast_2d(weights)) <= 4 else (
            HeatMap(weights.reshape(-1, weights.shape[-1]), down="query", across="key")
        )  # fmt: skip
    if name == "Trace":
        return Heads(record)
    if isinstance(record, Verdict | CheckReport):
        return Claims(record)
    raise InputError(
        "widget",
        f"there is none for {name}",
        expected="AttentionResult, Trace, Verdict or CheckReport",
        hint="any record is shown by itself at the end of a cell, and .figure() draws it",
    )


def _check_columns(queries: list[list[float]], d: int) -> None:
    for row in queries:
        if len(row) != d:
            raise InputError("query", f"has {len(row)} numbers", expected=f"{d}, as the keys have")


def _points(values: Any, n: int) -> list[list[float]]:
    rows = _rows("values", values)
    if len(rows) != n or any(len(row) != 2 for row in rows):
        raise InputError("values", f"are {len(rows)} rows", expected=f"{n} points of the plane")
    return rows


def _head_weights(layer: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(layer.detach().cpu().numpy() if hasattr(layer, "detach") else layer)
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise InputError("weights", f"of a layer have shape {array.shape}", expected="heads, t, t")
    return array


def _pooled(heads: np.ndarray[Any, Any], side: int) -> np.ndarray[Any, Any]:
    """Return small pictures of heads: of each square of tokens the largest weight."""
    starts = np.arange(side) * heads.shape[-1] // side
    rows = np.maximum.reduceat(heads, starts, axis=1)
    return np.asarray(np.maximum.reduceat(rows, starts, axis=2))


def _card(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the card of the page takes it."""
    try:
        formula = tex(parse(verdict.expects))
    except HeedfulError:  # a claim of several formulas, or one about a model
        formula = ""
    claim = {
        "id": verdict.id, "says": verdict.says, "source": verdict.source,
        "reading": verdict.reading, "number": verdict.number, "given": None, "setting": "",
        "formulas": [{"text": verdict.expects, "tex": formula}], "line": 0,
    }  # fmt: skip
    lines = None if verdict.repair is None else toml_lines(verdict.repair.changes)
    more = {"kind": verdict.kind, "repair_lines": lines, "picture": None}
    return {"claim": claim, "verdict": verdict.to_dict() | more}
