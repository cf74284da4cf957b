"""The families of Hugging Face that this decoder covers: their tensors and their `config.json`.

Files split what the decoder keeps in one matrix (queries, keys and values; gate and up), and
GPT-2 stores its matrices transposed. One table for each family says what its tensors are called,
another what its settings are; both serve reading and writing, so that the two cannot drift apart.
A family can hold a decoder if what it writes reads back as the same config.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from heedful.errors import ConfigError, InputError
from heedful.model.config import DecoderConfig, Dropout
from heedful.model.decoder import Decoder
from heedful.positions.encodings import RotaryScheme


@dataclass(frozen=True)
class TensorSlice:
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


@dataclass(frozen=True)
class TensorNames:
    """What the files of a family call the modules of a decoder."""

    block: str
    """How the names of a block begin; {} stands for its number."""
    modules: dict[str, str]
    """Our modules and theirs; several names, one after the other, for one that is split."""
    transposed: bool = False
    """Whether the matrices of the blocks are stored transposed."""


GPT2 = TensorNames(
    "transformer.h.{}.",
    {
        "embedding": "transformer.wte",
        "positions": "transformer.wpe",
        "attention_norm": "ln_1",
        "attention.qkv": "attn.c_attn",
        "attention.output": "attn.c_proj",
        "feed_forward_norm": "ln_2",
        "feed_forward.up": "mlp.c_fc",
        "feed_forward.down": "mlp.c_proj",
        "norm": "transformer.ln_f",
        "head": "lm_head",
    },
    transposed=True,
)
LLAMA = TensorNames(
    "model.layers.{}.",
    {
        "embedding": "model.embed_tokens",
        "attention_norm": "input_layernorm",
        "attention.qkv": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
        "attention.query_norm": "self_attn.q_norm",
        "attention.key_norm": "self_attn.k_norm",
        "attention.output": "self_attn.o_proj",
        "feed_forward_norm": "post_attention_layernorm",
        "feed_forward.up": "mlp.gate_proj mlp.up_proj",
        "feed_forward.down": "mlp.down_proj",
        "norm": "model.norm",
        "head": "lm_head",
    },
)
GGUF_LLAMA = TensorNames(
    "blk.{}.",
    {
        "embedding": "token_embd",
        "attention_norm": "attn_norm",
        "attention.qkv": "attn_q attn_k attn_v",
        "attention.query_norm": "attn_q_norm",
        "attention.key_norm": "attn_k_norm",
        "attention.output": "attn_output",
        "feed_forward_norm": "ffn_norm",
        "feed_forward.up": "ffn_gate ffn_up",
        "feed_forward.down": "ffn_down",
        "norm": "output_norm",
        "head": "output",
    },
)
GGUF_GPT2 = TensorNames(
    "blk.{}.",
    GGUF_LLAMA.modules
    | {"positions": "position_embd", "attention.qkv": "attn_qkv", "feed_forward.up": "ffn_up"},
)


def tensor_map(config: DecoderConfig, names: TensorNames) -> dict[str, TensorSlice]:
    """Return where every tensor that a file of this family holds lies, by its name there."""
    with torch.device("meta"):
        parameters = Decoder(config).state_dict()
    query, kv, hidden = config.query_width, config.kv_width, config.hidden_width
    sizes = {"attention.qkv": (query, kv, kv), "feed_forward.up": (hidden, hidden)}
    tensors = {}
    for ours, parameter in parameters.items():
        path, _, kind = ours.rpartition(".")
        in_block = re.match(r"blocks\.(\d+)\.", path)
        module = path[in_block.end() :] if in_block else path
        prefix = names.block.format(in_block[1]) if in_block else ""
        flip = names.transposed and in_block is not None and parameter.ndim == 2
        theirs = names.modules[module].split()
        ends = list(accumulate(sizes.get(module, ()), initial=0))
        for number, name in enumerate(theirs):
            rows = (ends[number], ends[number + 1]) if len(theirs) > 1 else None
            tensors[f"{prefix}{name}.{kind}"] = TensorSlice(ours, rows, flip)
    return tensors


def with_rotary_layout(
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


NEEDED = object()
"""Stands for the default of a setting that has none."""
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model: its names in a folder, and its config both ways."""

    name: str
    """`model_type` in config.json."""
    architecture: str
    """The class of `transformers` that opens it."""
    names: TensorNames
    fields: dict[str, tuple[str, Any]]
    """For each setting of config.json: ours (two: both have its value), and its default."""
    fixed: dict[str, Any]
    """Settings of ours that all models of the family share."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Settings of config.json that are always written so; nothing else is read."""
    refused: dict[str, Any] = field(default_factory=dict)
    """Settings of config.json that are read only with their default."""
    rotated_share: float | None = None
    """With rotary positions: the share of each head that is rotated by default."""

    def read(self, given: dict[str, Any]) -> DecoderConfig:
        """Return the config that a config.json describes."""
        for name, only in (self.constants | self.refused).items():
            _refuse(given, name, only)
        settings: dict[str, Any] = {}
        for ours, value in self.fixed.items():
            _put(settings, ours, value)
        for theirs, (ours, default) in self.fields.items():
            value = given.get(theirs, default)
            if value is NEEDED or (value is None and default is NEEDED):
                raise ConfigError(
                    theirs, "is missing", expected="a config.json of this family has it"
                )
            for path in ours.split():
                _put(settings, path, _activation(value) if theirs == _ACTIVATION else value)
        if self.rotated_share is not None:
            settings["positions"] = _read_rotary(given, self.rotated_share)
        return DecoderConfig.of(settings)

    def write(self, config: DecoderConfig) -> dict[str, Any]:
        """Return the settings for a config.json."""
        written, config = dict(self.constants), config.explicit()
        for theirs, (ours, _) in self.fields.items():
            values = [_get(config, path) for path in ours.split()]
            written[theirs] = values[0] if len(values) == 1 else all(values)
        if _ACTIVATION in written:
            names = {ours: theirs for theirs, ours in reversed(_ACTIVATIONS.items())}
            written[_ACTIVATION] = names.get(written[_ACTIVATION], "gelu_new")
        if self.rotated_share is not None:
            written |= _write_rotary(config, self.rotated_share)
        return written


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
        raise InputError("model", "no family of Hugging Face holds it", hint=OWN_FORM)
    raise InputError(
        f"model.{next(iter(fewest))}",
        "no family of Hugging Face holds this model: "
        + ", ".join(f"{name} is {_get(wanted, name)!r}" for name in fewest),
        expected=f"the nearest, {nearest}, has "
        + ", ".join(f"{name} = {value}" for name, value in fewest.items()),
        hint=f"train one with these settings, or {OWN_FORM}",
    )


OWN_FORM = "save it in Heedful's own form (--to heedful)"


def _differences(wanted: Any, back: Any, name: str = "") -> dict[str, str]:
    """Return the settings in which two configs differ, with the value of the second."""
    if isinstance(wanted, dict) and isinstance(back, dict):
        if wanted.get("kind") != back.get("kind"):  # the rest belongs to another kind
            return {f"{name}.kind": repr(back.get("kind"))}
        differences: dict[str, str] = {}
        for part in wanted.keys() | back.keys():
            inner = f"{name}.{part}" if name else part
            differences |= _differences(wanted.get(part), back.get(part), inner)
        return dict(sorted(differences.items()))
    return {} if wanted == back else {name: repr(back)}


def comparable(config: DecoderConfig) -> DecoderConfig:
    """Return a config without what a folder may leave out: dropout, and the order of pairs."""
    config = config.explicit().changed(dropout=Dropout())
    if isinstance(config.positions, RotaryScheme):
        return config.changed(positions=config.positions.changed(layout="half"))
    return config


def _get(config: DecoderConfig, path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _put(settings: dict[str, Any], path: str, value: Any) -> None:
    *tables, name = path.split(".")
    for table in tables:
        settings = settings.setdefault(table, {})
    settings[name] = value


def _refuse(given: dict[str, Any], name: str, only: object) -> None:
    if given.get(name, only) != only:
        raise ConfigError(name, f"is {given[name]!r}", expected=f"only {only!r} is read here")


_ACTIVATION = "activation_function"


def _activation(theirs: object) -> str:
    if theirs not in _ACTIVATIONS:
        known = f"one of {', '.join(_ACTIVATIONS)} is known"
        raise ConfigError(_ACTIVATION, f"is {theirs!r}", expected=known)
    return _ACTIVATIONS[str(theirs)]


def _read_rotary(given: dict[str, Any], default_share: float) -> dict[str, Any]:
    """Return the settings of rotary positions; other shares only where the default is partial."""
    scaling, parameters = given.get("rope_scaling") or {}, given.get("rope_parameters") or {}
    if not isinstance(scaling, dict) or not isinstance(parameters, dict):
        raise ConfigError("rope_parameters", "is no table", expected="names and values")
    kind = parameters.get("rope_type", scaling.get("rope_type", scaling.get("type", "default")))
    if kind != "default":
        raise ConfigError(
            "rope_parameters.rope_type",
            f"is {kind!r}",
            expected="plain rotary positions are read, without scaling",
        )
    base = parameters.get("rope_theta", given.get("rope_theta", 10_000.0))
    rotary = {"kind": "rotary", "base": base, "layout": "half"}
    if default_share == 1.0:
        _refuse(parameters, "partial_rotary_factor", 1.0)
        return rotary
    share = given.get("partial_rotary_factor", default_share)
    share = parameters.get("partial_rotary_factor", share)
    return rotary if share == 1.0 else rotary | {"kind": "partial_rotary", "share": share}


def _write_rotary(config: DecoderConfig, default_share: float) -> dict[str, Any]:
    scheme, width = config.positions, config.head_width
    base = scheme.base if isinstance(scheme, RotaryScheme) else 10_000.0
    # Releases before 5 read what is outside of rope_parameters, later ones what is inside.
    written = {"rope_theta": base}
    if default_share != 1.0:
        written["partial_rotary_factor"] = scheme.rotated_width(width) / width or 1.0
    return written | {"rope_parameters": {"rope_type": "default", **written}}


_GPT2 = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    names=GPT2,
    fields={
        "vocab_size": ("vocabulary", NEEDED),
        "n_positions": ("context", NEEDED),
        "n_embd": ("width", NEEDED),
        "n_layer": ("layers", NEEDED),
        "n_head": ("attention.heads", NEEDED),
        "n_inner": ("feed_forward.width", None),
        "activation_function": ("feed_forward.activation", "gelu_new"),
        "layer_norm_epsilon": ("norm.eps", 1e-5),
        "embd_pdrop": ("dropout.embedding", 0.1),
        "attn_pdrop": ("dropout.attention", 0.1),
        "resid_pdrop": ("dropout.residual", 0.1),
        "initializer_range": ("initial_std", 0.02),
        "tie_word_embeddings": ("tied", True),
    },
    fixed={
        "attention.qkv_bias": True,
        "attention.output_bias": True,
        "feed_forward.bias": True,
        "norm.kind": "layer",
        "positions.kind": "learned",
    },
    refused={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
)
_LLAMA_SIZES: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocabulary", NEEDED),
    "max_position_embeddings": ("context", NEEDED),
    "hidden_size": ("width", NEEDED),
    "num_hidden_layers": ("layers", NEEDED),
    "num_attention_heads": ("attention.heads", NEEDED),
    "num_key_value_heads": ("attention.kv_heads", None),
    "intermediate_size": ("feed_forward.width", NEEDED),
    "attention_dropout": ("dropout.attention", 0.0),
    "initializer_range": ("initial_std", 0.02),
    "tie_word_embeddings": ("tied", False),
}
_QWEN_FIELDS = _LLAMA_SIZES | {
    "head_dim": ("attention.head_width", None),
    "rms_norm_eps": ("norm.eps", 1e-6),
    "mlp_bias": ("feed_forward.bias", False),
}
_BOTH_BIASES = {"attention_bias": ("attention.qkv_bias attention.output_bias", False)}
_SWIGLU = {"feed_forward.activation": "swiglu"}
_RMS = _SWIGLU | {"norm.kind": "rms"}


def _llama_like(
    name: str, architecture: str, fields: dict[str, tuple[str, Any]], fixed: dict[str, Any]
) -> Family:
    return Family(
        name=name,
        architecture=architecture,
        names=LLAMA,
        fields=fields,
        fixed=fixed,
        constants={"hidden_act": "silu"},
        refused=dict.fromkeys(
            ("use_sliding_window", "use_parallel_residual", "qk_layernorm"), False
        ),
        rotated_share=0.25 if name == "stablelm" else 1.0,
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _GPT2,
        _llama_like("llama", "LlamaForCausalLM", _QWEN_FIELDS | _BOTH_BIASES, _RMS),
        _llama_like("qwen2", "Qwen2ForCausalLM", _QWEN_FIELDS, _RMS | {"attention.qkv_bias": True}),
        _llama_like(
            "qwen3",
            "Qwen3ForCausalLM",
            _QWEN_FIELDS | _BOTH_BIASES,
            _RMS | {"attention.qk_norm": True},
        ),
        _llama_like(
            "stablelm",
            "StableLmForCausalLM",
            _LLAMA_SIZES
            | {
                "layer_norm_eps": ("norm.eps", 1e-5),
                "use_qkv_bias": ("attention.qkv_bias", False),
                "hidden_dropout": ("dropout.residual", 0.0),
            },
            _SWIGLU | {"norm.kind": "layer"},
        ),
    )
}
