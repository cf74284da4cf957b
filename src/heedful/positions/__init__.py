"""Where a token stands: encodings of position as pure functions, and what they promise.

Functions of arrays, without torch, over the base modules only; every room above may use them.
Begin with `encodings` (the formulas), then `schemes` (one class for each way a decoder can be
told); `properties` is what is proved or measured of them.
"""

from heedful.positions.encodings import (
    SCHEMES,
    PositionScheme,
    SchemeKind,
    alibi_bias,
    alibi_slopes,
    frequencies,
    learned,
    none,
    rotary,
    sinusoidal,
)
from heedful.positions.properties import (
    Collisions,
    PositionsStudy,
    RelativeScores,
    Shift,
    SmallestDistance,
    Uniqueness,
    Wavelengths,
    embedding_collisions,
    position_collisions,
    positions_study,
    relative_scores,
    shift,
    shift_matrix,
    smallest_distance,
    smallest_distances,
    uniqueness,
    uniqueness_of_turns,
    wavelengths,
)

__all__ = [
    "SCHEMES",
    "Collisions",
    "PositionScheme",
    "PositionsStudy",
    "RelativeScores",
    "SchemeKind",
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
