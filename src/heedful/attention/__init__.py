"""The mathematics of a query, keys and values: pure functions of arrays."""

from heedful.attention.certificates import Certificate, Design
from heedful.attention.copyable import Copyable, copyable
from heedful.attention.design import design_average, design_copy, design_weights
from heedful.attention.four_vectors import (
    Addition,
    FourVectors,
    four_vector_problem,
    try_additions,
)
from heedful.attention.gaussian import GaussianKeys
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
from heedful.attention.layers import standard_layers
from heedful.attention.noise import exact_moments, study_noise
from heedful.attention.noise_records import ExactNoise, NoiseStudy, SampledNoise
from heedful.attention.operation import Attention, attend, causal, softmax
from heedful.attention.properties import (
    Equivariance,
    conjugation_equivariance,
    feature_equivariance,
    permutation_equivariance,
    permutation_invariance,
)
from heedful.attention.reading import Reading
from heedful.attention.robust import HeadsDesign, design_heads
from heedful.attention.robust_choices import HeadsChoice
from heedful.attention.robust_curves import error_curves
from heedful.attention.sequence import design_kqv
from heedful.attention.sequence_record import SequenceCertificate, SequenceDesign

__all__ = [
    "KEY_FAMILIES",
    "STANDARD_KEYS",
    "Addition",
    "Attention",
    "Certificate",
    "Copyable",
    "Design",
    "Equivariance",
    "ExactNoise",
    "FourVectors",
    "GaussianKeys",
    "HeadsChoice",
    "HeadsDesign",
    "NoiseStudy",
    "Reading",
    "SampledNoise",
    "SequenceCertificate",
    "SequenceDesign",
    "StandardKeys",
    "attend",
    "causal",
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
