"""The mathematics of a query, keys and values: pure functions of arrays.

It uses the base modules only and sees no file, flag or text; every room above may use it. Begin
with `operation` (attention itself) and `keys`; then `design`, `noise`, `sequence`, `equivariance`.
"""

from heedful.attention.design import (
    Certificate,
    Design,
    design_average,
    design_copy,
    design_weights,
)
from heedful.attention.distribution import (
    ExactNoise,
    NoiseStudy,
    SampledNoise,
    exact_moments,
    study_noise,
)
from heedful.attention.equivariance import (
    Equivariance,
    conjugation_equivariance,
    feature_equivariance,
    permutation_equivariance,
    permutation_invariance,
    standard_layers,
)
from heedful.attention.hull import Copyable, copyable
from heedful.attention.keys import (
    KEY_FAMILIES,
    STANDARD_KEYS,
    StandardKeys,
    circle,
    gaussian,
    grid,
    keys_from,
    orthonormal,
    simplex,
    sphere,
    standard_keys,
)
from heedful.attention.layer_check import LayerCheck, check_layer
from heedful.attention.noise import GaussianKeys
from heedful.attention.operation import AttentionResult, Reading, attend, causal, softmax
from heedful.attention.robust import HeadsChoice, HeadsDesign, design_heads, error_curves
from heedful.attention.sequence import (
    Addition,
    FourVectors,
    SequenceCertificate,
    SequenceDesign,
    design_kqv,
    four_vector_problem,
    try_additions,
)

__all__ = [
    "KEY_FAMILIES",
    "STANDARD_KEYS",
    "Addition",
    "AttentionResult",
    "Certificate",
    "Copyable",
    "Design",
    "Equivariance",
    "ExactNoise",
    "FourVectors",
    "GaussianKeys",
    "HeadsChoice",
    "HeadsDesign",
    "LayerCheck",
    "NoiseStudy",
    "Reading",
    "SampledNoise",
    "SequenceCertificate",
    "SequenceDesign",
    "StandardKeys",
    "attend",
    "causal",
    "check_layer",
    "circle",
    "conjugation_equivariance",
    "copyable",
    "design_average",
    "design_copy",
    "design_heads",
    "design_kqv",
    "design_weights",
    "error_curves",
    "exact_moments",
    "feature_equivariance",
    "four_vector_problem",
    "gaussian",
    "grid",
    "keys_from",
    "orthonormal",
    "permutation_equivariance",
    "permutation_invariance",
    "simplex",
    "softmax",
    "sphere",
    "standard_keys",
    "standard_layers",
    "study_noise",
    "try_additions",
]
