"""One decoder: config, equations, cache, trace, LoRA, cost, and weights in and out.

It sees token ids, never text (only files bring a tokenizer along). It may use `positions`,
`attention`, `tokenization` and the base modules; generation, training and studies use it. Begin
with `config` and `decoder`, then `weights`.
"""

from heedful.errors import MissingPartError as _MissingPartError

try:
    from heedful.model.cache import Cache, left_padded
    from heedful.model.config import PRESETS, DecoderConfig, preset
    from heedful.model.cost import (
        TrainingMemory,
        cache_bytes,
        flops_per_token,
        parameter_count,
        training_memory,
        weight_bytes,
    )
    from heedful.model.decoder import Decoder
    from heedful.model.interventions import (
        PLACES,
        Intervention,
        ablate,
        freeze,
        knock_out,
        patch,
        replace,
        scale,
        steer,
        value_at,
    )
    from heedful.model.trace import LayerTrace, Trace
    from heedful.model.weights import Pretrained, load, open_checkpoint
    from heedful.model.weights.checkpoint import Checkpoint
    from heedful.model.weights.huggingface import write_folder
except ModuleNotFoundError as _error:
    if str(_error.name).startswith("heedful"):
        raise
    raise _MissingPartError.of("heedful.model", str(_error.name), "models") from None

__all__ = [
    "PLACES",
    "PRESETS",
    "Cache",
    "Checkpoint",
    "Decoder",
    "DecoderConfig",
    "Intervention",
    "LayerTrace",
    "Pretrained",
    "Trace",
    "TrainingMemory",
    "ablate",
    "cache_bytes",
    "flops_per_token",
    "freeze",
    "knock_out",
    "left_padded",
    "load",
    "open_checkpoint",
    "parameter_count",
    "patch",
    "preset",
    "replace",
    "scale",
    "steer",
    "training_memory",
    "value_at",
    "weight_bytes",
    "write_folder",
]
