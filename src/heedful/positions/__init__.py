"""Where a token stands: encodings of position as pure functions, and what they promise."""

from heedful.positions.distance import SmallestDistance, smallest_distance, smallest_distances
from heedful.positions.encodings import (
    KINDS,
    alibi_bias,
    alibi_slopes,
    frequencies,
    learned,
    none,
    rotary,
    sinusoidal,
)
from heedful.positions.precision import Collisions, embedding_collisions, position_collisions
from heedful.positions.promises import (
    RelativeScores,
    Shift,
    Wavelengths,
    relative_scores,
    shift,
    shift_matrix,
    wavelengths,
)
from heedful.positions.proofs import Uniqueness, uniqueness, uniqueness_of_turns
from heedful.positions.study import PositionsStudy, positions_study

__all__ = [
    "KINDS",
    "Collisions",
    "PositionsStudy",
    "RelativeScores",
    "Shift",
    "SmallestDistance",
    "Uniqueness",
    "Wavelengths",
    "alibi_bias",
    "alibi_slopes",
    "embedding_collisions",
    "frequencies",
    "learned",
    "none",
    "position_collisions",
    "positions_study",
    "relative_scores",
    "rotary",
    "shift",
    "shift_matrix",
    "sinusoidal",
    "smallest_distance",
    "smallest_distances",
    "uniqueness",
    "uniqueness_of_turns",
    "wavelengths",
]
