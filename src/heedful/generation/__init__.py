"""Continue texts: greedy, sampling and beam search, batched, with a cache."""

from heedful.generation.fast_step import FastStep
from heedful.generation.filters import filtered
from heedful.generation.generate import generate, stream
from heedful.generation.methods import Beams, Greedy, Method, Sampling, Stops
from heedful.generation.records import Continuation, GenerationResult, Step

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
