"""The families of Hugging Face that this decoder covers, as their `config.json` writes them.

Files split what the decoder keeps in one matrix (queries, keys and values; gate and up), and
GPT-2 stores its matrices transposed. One table for each family says which rows of which
parameter a tensor of the file is, for reading and for writing.

A family can hold a decoder if what it writes reads back as the same config: that is the test,
so the two directions cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.errors import ConfigError, InputError
from heedful.model.config import Attention, DecoderConfig, Dropout, FeedForward, Norm
from heedful.positions.schemes import Learned, PartialRotary, Rotary, RotaryScheme


@dataclass(frozen=True)
class Slot:
    """A parameter of the decoder, or some of its rows."""

    name: str
    """The parameter, as in the decoder's state dict."""
    rows: tuple[int, int] | None = None
    """First row and the row after the last; None for all of them."""
    transposed: bool = False
    """Whether the file holds the transpose."""

    def of(self, parameter: Tensor) -> Tensor:
        """Return a view of the parameter, shaped as the file has it."""
        part = parameter if self.rows is None else parameter[self.rows[0] : self.rows[1]]
        return part.T if self.transposed else part


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What a family calls the parts of a decoder; `qkv` and `up` may be split."""

    embedding: str
    positions: str = ""
    block: str
    attention_norm: str
    qkv: tuple[str, ...]
    query_norm: str = ""
    key_norm: str = ""
    output: str
    feed_forward_norm: str
    up: tuple[str, ...]
    down: str
    norm: str
    head: str
    transposed: bool = False
    """Whether the matrices of the blocks are stored transposed."""


GPT2 = Naming(
    embedding="transformer.wte",
    positions="transformer.wpe",
    block="transformer.h.{}.",
    attention_norm="ln_1",
    qkv=("attn.c_attn",),
    output="attn.c_proj",
    feed_forward_norm="ln_2",
    up=("mlp.c_fc",),
    down="mlp.c_proj",
    norm="transformer.ln_f",
    head="lm_head",
    transposed=True,
)
LLAMA = Naming(
    embedding="model.embed_tokens",
    block="model.layers.{}.",
    attention_norm="input_layernorm",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    query_norm="self_attn.q_norm",
    key_norm="self_attn.k_norm",
    output="self_attn.o_proj",
    feed_forward_norm="post_attention_layernorm",
    up=("mlp.gate_proj", "mlp.up_proj"),
    down="mlp.down_proj",
    norm="model.norm",
    head="lm_head",
)
GGUF_LLAMA = Naming(
    embedding="token_embd",
    block="blk.{}.",
    attention_norm="attn_norm",
    qkv=("attn_q", "attn_k", "attn_v"),
    query_norm="attn_q_norm",
    key_norm="attn_k_norm",
    output="attn_output",
    feed_forward_norm="ffn_norm",
    up=("ffn_gate", "ffn_up"),
    down="ffn_down",
    norm="output_norm",
    head="output",
)
GGUF_GPT2 = Naming(
    embedding="token_embd",
    positions="position_embd",
    block="blk.{}.",
    attention_norm="attn_norm",
    qkv=("attn_qkv",),
    output="attn_output",
    feed_forward_norm="ffn_norm",
    up=("ffn_up",),
    down="ffn_down",
    norm="output_norm",
    head="output",
)


def slots_of(config: DecoderConfig, naming: Naming) -> dict[str, Slot]:
    """Return the slot of every tensor that a file of this family holds, by its name there."""
    found = {f"{naming.embedding}.weight": Slot("embedding.weight")}
    if isinstance(config.positions, Learned):
        found[f"{naming.positions}.weight"] = Slot("positions.weight")
    norm_bias = config.norm.kind == "layer" and config.norm.bias
    for layer in range(config.layers):
        theirs, ours = naming.block.format(layer), f"blocks.{layer}."
        for part, target, bias in (
            (naming.attention_norm, "attention_norm", norm_bias),
            (naming.feed_forward_norm, "feed_forward_norm", norm_bias),
        ):
            found |= dict(_pair(theirs + part, ours + target, bias))
        if config.attention.qk_norm:
            found |= dict(_pair(theirs + naming.query_norm, ours + "attention.query_norm", False))
            found |= dict(_pair(theirs + naming.key_norm, ours + "attention.key_norm", False))
        found |= dict(_matrices(config, naming, theirs, ours))
    if config.norm.placement == "pre":
        found |= dict(_pair(naming.norm, "norm", norm_bias))
    if not config.tied:
        found[f"{naming.head}.weight"] = Slot("head.weight")
    return found


def with_layout(
    config: DecoderConfig, state: dict[str, Tensor], layout: str
) -> tuple[DecoderConfig, dict[str, Tensor]]:
    """Return the same model with its rotary pairs in another layout: rows change places."""
    rotary = config.positions
    if not isinstance(rotary, RotaryScheme) or rotary.layout == layout:
        return config, state
    width, rotated = config.head_width, rotary.rotated_width(config.head_width)
    order = torch.arange(width)
    pairs = order[:rotated].view(2, -1).T.flatten()
    order[:rotated] = pairs.argsort() if layout == "half" else pairs
    turned = config.query_width + config.kv_width
    rows = torch.arange(turned).view(-1, width)[:, order].flatten()
    changed = dict(state)
    for name, tensor in state.items():
        if ".attention.qkv." in name:
            changed[name] = torch.cat([tensor[rows], tensor[turned:]])
        elif ".query_norm." in name or ".key_norm." in name:
            changed[name] = tensor[order]
    return config.changed(positions=rotary.changed(layout=layout)), changed


def _matrices(
    config: DecoderConfig, naming: Naming, theirs: str, ours: str
) -> Iterator[tuple[str, Slot]]:
    query, kv, hidden = config.query_width, config.kv_width, config.hidden_width
    flip = naming.transposed
    qkv = _cuts(naming.qkv, (query, kv, kv))
    up = _cuts(naming.up, (hidden, hidden))
    biases = config.attention.qkv_bias, config.feed_forward.bias
    for parts, target, bias in (
        (qkv, "attention.qkv", biases[0]),
        ({naming.output: None}, "attention.output", config.attention.output_bias),
        (up, "feed_forward.up", biases[1]),
        ({naming.down: None}, "feed_forward.down", biases[1]),
    ):
        for part, rows in parts.items():
            yield from _pair(theirs + part, ours + target, bias, rows, flip)


def _cuts(parts: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, tuple[int, int] | None]:
    if len(parts) == 1:
        return {parts[0]: None}
    ends = [sum(sizes[: count + 1]) for count in range(len(sizes))]
    return {part: (end - size, end) for part, size, end in zip(parts, sizes, ends, strict=True)}


def _pair(
    theirs: str,
    ours: str,
    bias: bool,
    rows: tuple[int, int] | None = None,
    transposed: bool = False,
) -> Iterator[tuple[str, Slot]]:
    yield f"{theirs}.weight", Slot(f"{ours}.weight", rows, transposed)
    if bias:
        yield f"{theirs}.bias", Slot(f"{ours}.bias", rows)


_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True)
class Family:
    """One kind of model: its names in a folder, and its config both ways."""

    name: str
    """`model_type` in config.json."""
    architecture: str
    """The class of `transformers` that opens it."""
    naming: Naming
    read: Callable[[dict[str, Any]], DecoderConfig]
    write: Callable[[DecoderConfig], dict[str, Any]]


def family_of(model_type: object, where: str) -> Family:
    """Return the family that a config.json names."""
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise InputError(
            where,
            f"the family {model_type!r} is unknown",
            expected=f"one of {', '.join(FAMILIES)} is read",
        )
    return FAMILIES[model_type]


def family_for(config: DecoderConfig) -> Family:
    """Return the family that can hold a decoder, or say which settings no family can hold."""
    wanted = comparable(config)
    nearest, fewest = "", dict.fromkeys(DecoderConfig.model_fields, "")
    for family in FAMILIES.values():
        try:
            back = comparable(family.read(family.write(wanted)))
        except InputError:
            continue
        differing = _differences(wanted.model_dump(), back.model_dump())
        if not differing:
            return family
        if not nearest or len(differing) < len(fewest):
            nearest, fewest = family.name, differing
    if not nearest:
        raise InputError("model", "no family of Hugging Face holds it", way_out=OWN_FORM)
    raise InputError(
        f"model.{next(iter(fewest))}",
        "no family of Hugging Face holds this model: "
        + ", ".join(f"{name} is {_valued(wanted, name)}" for name in fewest),
        expected=f"the nearest, {nearest}, has "
        + ", ".join(f"{name} = {value}" for name, value in fewest.items()),
        way_out=f"train one with these settings, or {OWN_FORM}",
    )


OWN_FORM = "save it in Heedful's own form (--to heedful)"


def _differences(wanted: Any, back: Any, name: str = "") -> dict[str, str]:
    """Return the settings in which two configs differ, with the value of the second."""
    if isinstance(wanted, dict) and isinstance(back, dict):
        if wanted.get("kind") != back.get("kind"):  # the rest belongs to another kind
            return {f"{name}.kind": repr(back.get("kind"))}
        found: dict[str, str] = {}
        for part in wanted.keys() | back.keys():
            inner = f"{name}.{part}" if name else part
            found |= _differences(wanted.get(part), back.get(part), inner)
        return dict(sorted(found.items()))
    return {} if wanted == back else {name: repr(back)}


def _valued(config: DecoderConfig, name: str) -> str:
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return repr(value)


def comparable(config: DecoderConfig) -> DecoderConfig:
    """Return a config without what a folder may leave out: dropout, and the order of pairs."""
    config = config.explicit().changed(dropout=Dropout())
    if isinstance(config.positions, RotaryScheme):
        return config.changed(positions=config.positions.changed(layout="half"))
    return config


def _read_gpt2(given: dict[str, Any]) -> DecoderConfig:
    _refuse(given, "scale_attn_weights", True)
    _refuse(given, "scale_attn_by_inverse_layer_idx", False)
    _refuse(given, "add_cross_attention", False)
    activation = given.get("activation_function", "gelu_new")
    if activation not in _ACTIVATIONS:
        raise ConfigError(
            "activation_function",
            f"is {activation!r}",
            expected=f"one of {', '.join(_ACTIVATIONS)} is known",
        )
    return DecoderConfig(
        vocabulary=_needed(given, "vocab_size"),
        context=_needed(given, "n_positions"),
        width=_needed(given, "n_embd"),
        layers=_needed(given, "n_layer"),
        attention=Attention(heads=_needed(given, "n_head"), qkv_bias=True, output_bias=True),
        feed_forward=FeedForward.of(
            {"activation": _ACTIVATIONS[activation], "width": given.get("n_inner"), "bias": True}
        ),
        norm=Norm(kind="layer", eps=given.get("layer_norm_epsilon", 1e-5)),
        positions=Learned(),
        dropout=Dropout(
            embedding=given.get("embd_pdrop", 0.1),
            attention=given.get("attn_pdrop", 0.1),
            residual=given.get("resid_pdrop", 0.1),
        ),
        tied=given.get("tie_word_embeddings", True),
        initial_std=given.get("initializer_range", 0.02),
    )


def _write_gpt2(config: DecoderConfig) -> dict[str, Any]:
    names = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
    return {
        "vocab_size": config.vocabulary,
        "n_positions": config.context,
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.attention.heads,
        "n_inner": config.hidden_width,
        "activation_function": names.get(config.feed_forward.activation, "gelu_new"),
        "layer_norm_epsilon": config.norm.eps,
        "embd_pdrop": config.dropout.embedding,
        "attn_pdrop": config.dropout.attention,
        "resid_pdrop": config.dropout.residual,
        "initializer_range": config.initial_std,
        "tie_word_embeddings": config.tied,
    }


def _llama_reader(name: str) -> Callable[[dict[str, Any]], DecoderConfig]:
    def read(given: dict[str, Any]) -> DecoderConfig:
        if given.get("hidden_act", "silu") != "silu":
            raise ConfigError("hidden_act", f"is {given['hidden_act']!r}", expected="silu is known")
        _refuse(given, "use_sliding_window", False)
        if name == "qwen2":
            biases = True, False
        else:
            biases = (bool(given.get("attention_bias", False)),) * 2
        return DecoderConfig(
            vocabulary=_needed(given, "vocab_size"),
            context=_needed(given, "max_position_embeddings"),
            width=_needed(given, "hidden_size"),
            layers=_needed(given, "num_hidden_layers"),
            attention=Attention(
                heads=_needed(given, "num_attention_heads"),
                kv_heads=given.get("num_key_value_heads"),
                head_width=given.get("head_dim"),
                qkv_bias=biases[0],
                output_bias=biases[1],
                qk_norm=name == "qwen3",
            ),
            feed_forward=FeedForward(
                activation="swiglu",
                width=_needed(given, "intermediate_size"),
                bias=given.get("mlp_bias", False),
            ),
            norm=Norm(kind="rms", eps=given.get("rms_norm_eps", 1e-6)),
            positions=Rotary(base=_rotary_base(given), layout="half"),
            dropout=Dropout(attention=given.get("attention_dropout", 0.0)),
            tied=given.get("tie_word_embeddings", False),
            initial_std=given.get("initializer_range", 0.02),
        )

    return read


def _write_llama(config: DecoderConfig) -> dict[str, Any]:
    base = config.positions.base if isinstance(config.positions, RotaryScheme) else 10_000.0
    return {
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.context,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.attention.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.hidden_width,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm.eps,
        # Releases before 5 read the first of these, later ones the second.
        "rope_theta": base,
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "attention_bias": config.attention.qkv_bias and config.attention.output_bias,
        "mlp_bias": config.feed_forward.bias,
        "attention_dropout": config.dropout.attention,
        "initializer_range": config.initial_std,
        "tie_word_embeddings": config.tied,
    }


def _read_stablelm(given: dict[str, Any]) -> DecoderConfig:
    _refuse(given, "use_parallel_residual", False)
    _refuse(given, "qk_layernorm", False)
    parameters = _rope_parameters(given)
    share = parameters.get("partial_rotary_factor", given.get("partial_rotary_factor", 0.25))
    whole = given | {"rope_parameters": parameters | {"partial_rotary_factor": 1.0}}
    config = _llama_reader("stablelm")(whole)
    rotary = {"base": _rotary_base(whole), "layout": "half"}
    qkv_bias = bool(given.get("use_qkv_bias", False))
    return config.changed(
        attention=config.attention.changed(qkv_bias=qkv_bias, output_bias=False),
        norm=Norm(kind="layer", eps=given.get("layer_norm_eps", 1e-5)),
        positions=Rotary.of(rotary) if share == 1 else PartialRotary.of(rotary | {"share": share}),
    )


def _write_stablelm(config: DecoderConfig) -> dict[str, Any]:
    written = _write_llama(config)
    share = config.positions.rotated_width(config.head_width) / config.head_width or 1.0
    for name in ("head_dim", "rms_norm_eps", "attention_bias", "mlp_bias"):
        del written[name]  # StableLM has none of these
    return written | {
        "layer_norm_eps": config.norm.eps,
        "use_qkv_bias": config.attention.qkv_bias,
        "partial_rotary_factor": share,
        "rope_parameters": written["rope_parameters"] | {"partial_rotary_factor": share},
        "hidden_dropout": config.dropout.residual,
    }


def _rope_parameters(given: dict[str, Any]) -> dict[str, Any]:
    parameters = given.get("rope_parameters") or {}
    if not isinstance(parameters, dict):
        raise ConfigError("rope_parameters", "is no table", expected="names and values")
    return parameters


def _rotary_base(given: dict[str, Any]) -> Any:
    scaling, parameters = given.get("rope_scaling") or {}, _rope_parameters(given)
    if not isinstance(scaling, dict):
        raise ConfigError("rope_scaling", "is no table", expected="names and values")
    kind = parameters.get("rope_type", scaling.get("rope_type", scaling.get("type", "default")))
    if kind != "default":
        raise ConfigError(
            "rope_parameters.rope_type",
            f"is {kind!r}",
            expected="plain rotary positions are read, without scaling",
        )
    _refuse(parameters, "partial_rotary_factor", 1.0)
    return parameters.get("rope_theta", given.get("rope_theta", 10_000.0))


def _needed(given: dict[str, Any], name: str) -> Any:
    if given.get(name) is None:
        raise ConfigError(name, "is missing", expected="a config.json of this family has it")
    return given[name]


def _refuse(given: dict[str, Any], name: str, only: object) -> None:
    if given.get(name, only) != only:
        raise ConfigError(name, f"is {given[name]!r}", expected=f"only {only!r} is read here")


FAMILIES: dict[str, Family] = {
    "gpt2": Family("gpt2", "GPT2LMHeadModel", GPT2, _read_gpt2, _write_gpt2),
    "llama": Family("llama", "LlamaForCausalLM", LLAMA, _llama_reader("llama"), _write_llama),
    "qwen2": Family("qwen2", "Qwen2ForCausalLM", LLAMA, _llama_reader("qwen2"), _write_llama),
    "qwen3": Family("qwen3", "Qwen3ForCausalLM", LLAMA, _llama_reader("qwen3"), _write_llama),
    "stablelm": Family("stablelm", "StableLmForCausalLM", LLAMA, _read_stablelm, _write_stablelm),
}
