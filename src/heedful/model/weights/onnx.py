"""A decoder as one ONNX file: token ids in, logits out, for any batch and any length.

The graph is written operation by operation from the same parameters and position schemes that
`heedful.model.decoder` uses. An exporter that records a pass of torch would fix the length of the
rotary table and of the mask to the recorded one.

    tokens   int64  (batch, time)               time at most the context of the model
    logits   float  (batch, time, vocabulary)

Every call reads the whole row. A graph with a cache, which `heed site` gives to the browser, also
takes keys and values of earlier tokens, hands them on, and shows what every head reads:

    past     float  (batch, layers · 2 · kv heads, past, width)       none read yet: past = 0
    present  float  (batch, layers · 2 · kv heads, past + time, width)
    weights  float  (batch, layers · heads, time, past + time)

It holds matrices whose rows are 8-bit numbers times a scale as such: a quarter of the bytes, and
the same product to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import InputError, MissingPartError, RunError
from heedful.model.config import DecoderConfig
from heedful.model.decoder import MLP, Decoder, RMSNorm, SelfAttention, TransformerBlock

OPSET, IR_VERSION = 17, 8
"""The oldest operations that have a layer norm, and the file format of that time: runtimes since
2022 read it, those in browsers too."""
LARGEST_FILE = 1_800_000_000
"""Bytes of weights inside the file; protobuf ends at 2 GiB, so larger ones lie beside it."""
TOLERANCE = 1e-4
"""Largest difference of a logit from ours, as a share of the largest logit (or of 1): float32
sums in another order."""
TRIED = ((1, 1), (3, 7), (2, 33))
"""Batch and length of the random tokens on which both are compared."""


def write_onnx(decoder: Decoder, path: Path, *, cached: bool = False) -> None:
    """Write a decoder as an ONNX file, in float32, whole and checked for well-formedness."""
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise MissingPartError.of("heed export --to onnx", str(error.name), "onnx") from None
    model = _model(decoder, cached=cached)
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > LARGEST_FILE
    try:
        if large:
            beside = f"{path.name}.data"
            onnx.save_model(model, str(path), save_as_external_data=True, location=beside)
        else:
            onnx.save_model(model, str(path))
        onnx.checker.check_model(str(path))
    except OSError as error:
        raise RunError(str(path), f"could not be written ({error.strerror})") from None


@torch.inference_mode()
def difference(decoder: Decoder, path: Path) -> float | None:
    """Run the file in onnxruntime beside the decoder; return the largest difference of a logit.

    None where onnxruntime is not installed. A file that differs by more than rounding is refused.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    plain = decoder if decoder.embedding.weight.dtype == torch.float32 else deepcopy(decoder)
    plain = plain.to(torch.float32).eval()
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for batch, time in TRIED:
        shape = (batch, min(time, decoder.config.context))
        tokens = torch.randint(decoder.config.vocabulary, shape, generator=generator)
        ours = plain(tokens)
        theirs = torch.from_numpy(session.run(None, {"tokens": tokens.numpy()})[0])
        apart = float((ours - theirs).abs().max())
        if not apart <= TOLERANCE * max(1.0, float(ours.abs().max())):
            raise RunError(
                str(path), f"onnxruntime gives logits that are {apart:.3g} away from ours"
            )
        worst = max(worst, apart)
    return worst


class _Graph:
    """Nodes and weights, in the order in which they are needed; a value is known by its name."""

    def __init__(self, *, small: bool = False) -> None:
        from onnx import TensorProto, helper

        self._helper, self._float = helper, int(TensorProto.FLOAT)
        self.small = small
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self._matrices: dict[str, str] = {}

    def weight(self, name: str, values: Tensor | np.ndarray) -> str:
        """Store float32 numbers under a name, once."""
        if isinstance(values, Tensor):
            values = values.detach().to("cpu", torch.float32).numpy()
        return self._store(name, np.asarray(values, np.float32))

    def matrix(self, name: str, values: Tensor) -> str:
        """Store a matrix; where it is 8-bit rows times a scale, as such."""
        if name not in self._matrices:
            rows = values.detach().to("cpu", torch.float32).numpy()
            small = in_8_bits(rows) if self.small else None
            if small is None:
                self._matrices[name] = self._store(name, rows)
            else:
                numbers, scale = (
                    self._store(f"{name}.{part}", one)
                    for part, one in zip(("int8", "scale"), small, strict=True)
                )
                # Not DequantizeLinear: runtimes compute this product once, when they open the file.
                wide = self.add("Cast", numbers, to=self._float)
                self._matrices[name] = self.add("Mul", wide, scale)
        return self._matrices[name]

    def numbers(self, *values: int) -> str:
        """Store whole numbers: a shape, axes or sizes."""
        return self._store(f"int64.{'.'.join(map(str, values))}", np.array(values, np.int64))

    def number(self, value: int | float, kind: type = np.float32) -> str:
        """Store one number."""
        return self._store(f"{kind.__name__}.scalar.{value!r}", np.array(value, kind))

    def _store(self, name: str, array: np.ndarray) -> str:
        from onnx import numpy_helper

        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def add(
        self, operation: str, *inputs: str, outputs: int = 1, called: str = "", **settings: Any
    ) -> Any:
        """Append a node; return the name of its output, or the names of several."""
        place = len(self.nodes)
        names = [called or f"{operation}.{place}.{number}" for number in range(outputs)]
        node = self._helper.make_node(operation, inputs, names, f"{operation}.{place}", **settings)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def split(self, x: str, sizes: tuple[int, ...], axis: int) -> list[str]:
        """Cut a value into pieces along an axis."""
        named: list[str] = self.add("Split", x, self.numbers(*sizes), outputs=len(sizes), axis=axis)
        return named

    def reshape(self, x: str, *shape: int) -> str:
        """Give a value another shape: 0 keeps an axis, −1 takes what is left."""
        return str(self.add("Reshape", x, self.numbers(*shape)))

    def linear(self, x: str, name: str, map_: Any) -> str:
        """Return x Wᵀ + b of a linear map, with or without LoRA."""
        matrix = self.matrix(f"{name}.weight", map_.weight)
        made = self.add("MatMul", x, self.add("Transpose", matrix, perm=[1, 0]))
        if map_.bias is None:
            return str(made)
        return str(self.add("Add", made, self.weight(f"{name}.bias", map_.bias)))


def in_8_bits(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a matrix as 8-bit numbers and the scale of each row; None unless that is exact."""
    scale = np.abs(rows).max(axis=1, keepdims=True) / np.float32(127)
    # The largest number of a row was rounded once: its scale may be a neighbour of what it gives.
    for near in (scale, np.nextafter(scale, np.float32(np.inf)), np.nextafter(scale, 0 * scale)):
        numbers = np.rint(np.divide(rows, near, out=np.zeros_like(rows), where=near > 0))
        exact = (numbers * near == rows).all(axis=1, keepdims=True)
        scale = np.where(exact, near, scale)
    numbers = np.rint(np.divide(rows, scale, out=np.zeros_like(rows), where=scale > 0))
    if np.abs(numbers).max(initial=0) > 127 or not np.array_equal(numbers * scale, rows):
        return None
    return numbers.astype(np.int8), scale


def _model(decoder: Decoder, *, cached: bool) -> Any:
    from onnx import TensorProto, helper

    graph, config = _Graph(small=cached), decoder.config

    def shaped(name: str, *shape: str | int, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [shaped("tokens", "batch", "time", kind=TensorProto.INT64)]
    outputs = [shaped("logits", "batch", "time", config.vocabulary)]
    if cached:
        kept, heads = 2 * config.layers * config.kv_heads, config.layers * config.attention.heads
        inputs += [shaped("past", "batch", kept, "past", config.head_width)]
        outputs += [
            shaped("present", "batch", kept, "past + time", config.head_width),
            shaped("weights", "batch", heads, "time", "past + time"),
        ]
    _write_decoder(graph, decoder, _Cache(graph, config) if cached else None)
    made = helper.make_graph(
        graph.nodes, "decoder", inputs, outputs, initializer=list(graph.weights.values())
    )
    return helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="heedful",
    )


def _write_decoder(graph: _Graph, decoder: Decoder, cache: _Cache | None) -> None:
    config = decoder.config
    zero, one = (graph.number(value, np.int64) for value in (0, 1))
    time = graph.add("Gather", graph.add("Shape", "tokens"), one)
    start = zero if cache is None else cache.length
    end = graph.add("Add", start, time)
    positions = graph.add("Range", start, end, one)
    embedding = graph.matrix("embedding", decoder.embedding.weight)
    stream = graph.add("Gather", embedding, "tokens")
    if config.embedding_scale != 1.0:
        stream = graph.add("Mul", stream, graph.number(config.embedding_scale))
    if decoder.position_table is not None:
        table = graph.weight("positions", decoder.position_table)
        stream = graph.add("Add", stream, graph.add("Gather", table, positions))
    places = _Places(graph, config, positions, graph.add("Range", zero, end, one), cache)
    for number, block in enumerate(decoder.blocks):
        assert isinstance(block, TransformerBlock)
        stream = _block(graph, f"blocks.{number}", block, stream, places)
    if decoder.norm is not None:
        stream = _norm(graph, "norm", decoder.norm, stream)
    head = embedding if decoder.head is None else graph.matrix("head", decoder.head.weight)
    graph.add("MatMul", stream, graph.add("Transpose", head, perm=[1, 0]), called="logits")
    if cache is not None:
        cache.hand_on()


class _Cache:
    """Keys and values of earlier tokens, layer after layer, and what every head read."""

    def __init__(self, graph: _Graph, config: DecoderConfig) -> None:
        self.graph = graph
        self.length = graph.add("Gather", graph.add("Shape", "past"), graph.number(2, np.int64))
        parts = graph.split("past", (config.kv_heads,) * 2 * config.layers, axis=1)
        self._past = iter(parts)
        self._present: list[str] = []
        self._weights: list[str] = []

    def extended(self, new: str) -> str:
        """Put new keys or values, (batch, kv heads, time, width), behind those of the past."""
        whole = self.graph.add("Concat", next(self._past), new, axis=2)
        self._present.append(whole)
        return str(whole)

    def show(self, weights: str, heads: int) -> None:
        """Keep what the heads of a layer read."""
        shape = self.graph.add("Shape", weights)
        last = self.graph.add("Gather", shape, self.graph.numbers(3, 4))
        first = self.graph.add("Gather", shape, self.graph.numbers(0))
        wanted = self.graph.add("Concat", first, self.graph.numbers(heads), last, axis=0)
        self._weights.append(self.graph.add("Reshape", weights, wanted))

    def hand_on(self) -> None:
        """Name what the next call needs, and what is shown."""
        self.graph.add("Concat", *self._present, axis=1, called="present")
        self.graph.add("Concat", *self._weights, axis=1, called="weights")


class _Places:
    """What all layers share about positions: who is seen, the bias of distances, the rotation."""

    def __init__(
        self,
        graph: _Graph,
        config: DecoderConfig,
        positions: str,
        keys: str,
        cache: _Cache | None = None,
    ) -> None:
        self.graph, self.cache = graph, cache
        query = graph.add("Unsqueeze", positions, graph.numbers(1))
        key = graph.add("Unsqueeze", keys, graph.numbers(0))
        distance = graph.add("Sub", query, key)
        self.hidden = graph.add("Less", distance, graph.number(0, np.int64))
        self.bias = self._bias(config, distance)
        rotation = config.positions.rotation(config.context, config.head_width)
        self.rotated = config.positions.rotated_width(config.head_width)
        self.layout = None if rotation is None else rotation.layout
        if rotation is not None:
            self.cosines, self.sines = (
                self._rows(name, values, positions)
                for name, values in (
                    ("cosines", np.cos(rotation.angles)), ("sines", np.sin(rotation.angles))
                )
            )  # fmt: skip

    def _rows(self, name: str, table: np.ndarray, positions: str) -> str:
        """Return (time, 1, pairs): the rows of a table, the same for every head."""
        rows = self.graph.add("Gather", self.graph.weight(name, table), positions)
        return str(self.graph.add("Unsqueeze", rows, self.graph.numbers(1)))

    def _bias(self, config: DecoderConfig, distance: str) -> str | None:
        """Return (kv heads, group, time, time), looked up by distance; None: nothing is added."""
        heads, kv_heads, graph = config.attention.heads, config.kv_heads, self.graph
        table = config.positions.bias(heads, np.arange(config.context, dtype=np.float64))
        if table is None:
            return None
        shaped = np.asarray(table).reshape(kv_heads, heads // kv_heads, config.context)
        back = graph.add("Max", distance, graph.number(0, np.int64))  # the others are hidden
        return str(graph.add("Gather", graph.weight("bias", shaped), back, axis=2))

    def rotate(self, matched: str, heads: int, head_width: int) -> str:
        """Rotate queries and keys, (batch, time, heads, width), pair by pair."""
        graph, rest = self.graph, head_width - self.rotated
        if self.layout is None:
            return matched
        kept = None
        if rest:
            matched, kept = graph.split(matched, (self.rotated, rest), axis=3)
        half = self.rotated // 2
        if self.layout == "interleaved":
            pairs = graph.reshape(matched, 0, 0, 0, half, 2)
            a, b = (
                graph.add("Squeeze", part, graph.numbers(4))
                for part in graph.split(pairs, (1, 1), axis=4)
            )
        else:
            a, b = graph.split(matched, (half, half), axis=3)
        turned = [
            graph.add("Sub", self._times(a, self.cosines), self._times(b, self.sines)),
            graph.add("Add", self._times(a, self.sines), self._times(b, self.cosines)),
        ]
        if self.layout == "interleaved":
            last = [graph.add("Unsqueeze", part, graph.numbers(4)) for part in turned]
            made = graph.reshape(graph.add("Concat", *last, axis=4), 0, 0, heads, self.rotated)
        else:
            made = graph.add("Concat", *turned, axis=3)
        return str(made if kept is None else graph.add("Concat", made, kept, axis=3))

    def _times(self, x: str, factor: str) -> str:
        return str(self.graph.add("Mul", x, factor))


def _block(graph: _Graph, name: str, block: TransformerBlock, stream: str, places: _Places) -> str:
    """Add one layer: attention, then feed-forward, each added to the residual stream."""

    def added(stream: str, norm_name: str, norm: nn.Module, part: Callable[[str], str]) -> str:
        x = _norm(graph, norm_name, norm, stream) if block.pre_norm else stream
        total = str(graph.add("Add", stream, part(x)))
        return total if block.pre_norm else _norm(graph, norm_name, norm, total)

    middle = added(
        stream,
        f"{name}.attention_norm",
        block.attention_norm,
        lambda x: _attention(graph, f"{name}.attention", block.attention, x, places),
    )
    return added(
        middle,
        f"{name}.feed_forward_norm",
        block.feed_forward_norm,
        lambda x: _feed_forward(graph, f"{name}.feed_forward", block.feed_forward, x),
    )


def _attention(graph: _Graph, name: str, module: SelfAttention, x: str, places: _Places) -> str:
    heads, kv_heads, width = module.heads, module.kv_heads, module.head_width
    vectors = graph.reshape(graph.linear(x, f"{name}.qkv", module.qkv), 0, 0, -1, width)
    matched, values = graph.split(vectors, (heads + kv_heads, kv_heads), axis=2)
    if module.query_norm is not None and module.key_norm is not None:
        queries, keys = graph.split(matched, (heads, kv_heads), axis=2)
        queries = _norm(graph, f"{name}.query_norm", module.query_norm, queries)
        keys = _norm(graph, f"{name}.key_norm", module.key_norm, keys)
        matched = graph.add("Concat", queries, keys, axis=2)
    matched = places.rotate(matched, heads + kv_heads, width)
    queries, keys = graph.split(matched, (heads, kv_heads), axis=2)
    # Heads as (kv head, query head of it): keys and values are read by their group unrepeated.
    queries = graph.add("Transpose", queries, perm=[0, 2, 1, 3])
    queries = graph.reshape(queries, 0, kv_heads, heads // kv_heads, -1, width)
    keys, values = (graph.add("Transpose", one, perm=[0, 2, 1, 3]) for one in (keys, values))
    if places.cache is not None:
        keys, values = places.cache.extended(keys), places.cache.extended(values)
    keys = graph.add("Transpose", keys, perm=[0, 1, 3, 2])
    keys, values = (graph.add("Unsqueeze", one, graph.numbers(2)) for one in (keys, values))
    queries = graph.add("Mul", queries, graph.number(1 / math.sqrt(width)))
    scores = graph.add("MatMul", queries, keys)
    if places.bias is not None:
        scores = graph.add("Add", scores, places.bias)
    scores = graph.add("Where", places.hidden, graph.number(-math.inf), scores)
    weights = graph.add("Softmax", scores, axis=-1)
    if places.cache is not None:
        places.cache.show(weights, heads)
    read = graph.add("MatMul", weights, values)
    read = graph.add("Transpose", graph.reshape(read, 0, heads, -1, width), perm=[0, 2, 1, 3])
    return graph.linear(graph.reshape(read, 0, 0, heads * width), f"{name}.output", module.output)


def _feed_forward(graph: _Graph, name: str, module: MLP, x: str) -> str:
    inner = graph.linear(x, f"{name}.up", module.up)
    inner = _activation(graph, module.activation_name, inner, module.down.weight.shape[1])
    return graph.linear(inner, f"{name}.down", module.down)


def _activation(graph: _Graph, kind: str, x: str, width: int) -> str:
    if kind == "relu":
        return str(graph.add("Relu", x))
    if kind == "swiglu":
        gate, value = graph.split(x, (width, width), axis=2)
        gated = graph.add("Mul", gate, graph.add("Sigmoid", gate))
        return str(graph.add("Mul", gated, value))
    if kind == "gelu":  # x (1 + erf(x/√2)) / 2
        bent = graph.add("Erf", graph.add("Mul", x, graph.number(1 / math.sqrt(2))))
    elif kind == "gelu_tanh":  # x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
        cube = graph.add("Mul", graph.add("Mul", x, x), x)
        inner = graph.add("Add", x, graph.add("Mul", cube, graph.number(0.044715)))
        bent = graph.add("Tanh", graph.add("Mul", inner, graph.number(math.sqrt(2 / math.pi))))
    else:
        raise InputError(
            "activation", f"{kind} has no ONNX form", expected="gelu, gelu_tanh, relu or swiglu"
        )
    half = graph.add("Mul", x, graph.number(0.5))
    return str(graph.add("Mul", half, graph.add("Add", bent, graph.number(1.0))))


def _norm(graph: _Graph, name: str, module: nn.Module, x: str) -> str:
    gains = graph.weight(f"{name}.weight", module.get_parameter("weight"))
    if isinstance(module, nn.LayerNorm):
        inputs = [x, gains]
        if module.bias is not None:
            inputs.append(graph.weight(f"{name}.bias", module.bias))
        return str(graph.add("LayerNormalization", *inputs, axis=-1, epsilon=module.eps))
    assert isinstance(module, RMSNorm)
    mean = graph.add("ReduceMean", graph.add("Mul", x, x), axes=[-1], keepdims=1)
    root = graph.add("Sqrt", graph.add("Add", mean, graph.number(module.eps)))
    return str(graph.add("Mul", graph.add("Div", x, root), gains))
