"""Continue rows of token ids: greedy, sampling and beam search, batched, with a cache.

`decoding` is the way in, `fast` a decoder with packed weights, `kernels` what is compiled. It may
use `model` and what is below; studies and the command line use it.
"""

from heedful.generation.decoding import generate, stream
from heedful.generation.fast import FastStep
from heedful.generation.methods import (
    Beams,
    Continuation,
    GenerationResult,
    Greedy,
    Method,
    Sampling,
    Step,
    Stops,
    filtered,
)

__all__ = [
    "Beams",
    "Continuation",
    "FastStep",
    "GenerationResult",
    "Greedy",
    "Method",
    "Sampling",
    "Step",
    "Stops",
    "filtered",
    "generate",
    "stream",
]
