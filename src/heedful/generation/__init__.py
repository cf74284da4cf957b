"""Continue texts: greedy, sampling and beam search, batched, with a cache."""

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
