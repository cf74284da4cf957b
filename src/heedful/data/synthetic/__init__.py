"""Synthetic corpora, written by programs: the phrasebook and the biographies.

Here is what both share: random draws that are the same on every machine, and vocabulary read from
TOML. A corpus is a function of its settings and its seed; `tests/data` pins them by digest.

Python promises that `random.Random(text).random()` gives the same floats in every version; it
promises nothing of the kind for `choice` or `shuffle`. So everything is made from that one
function, and nothing depends on the order of a set or on hash randomisation.
"""

from __future__ import annotations

import hashlib
import random
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import InputError

__all__ = ["Draws", "read_vocabulary", "running_sum", "stable_number", "whole_number"]

Item = TypeVar("Item")


class Draws:
    """A stream of random decisions; one text names one stream."""

    def __init__(self, name: str) -> None:
        self.share = random.Random(name).random
        """The next number, at least 0 and below 1."""

    def chance(self, probability: float) -> bool:
        """Decide with a probability."""
        return self.share() < probability

    def below(self, count: int) -> int:
        """Draw a whole number from 0 to count - 1."""
        return int(self.share() * count)

    def of(self, items: Sequence[Item]) -> Item:
        """Draw one item, each as likely as any other."""
        return items[int(self.share() * len(items))]

    def other(self, items: Sequence[Item], than: Item) -> Item:
        """Draw one item that is not `than`."""
        item = self.of(items)
        return item if item != than else self.other(items, than)

    def weighted(self, items: Sequence[Item], cumulated: Sequence[float]) -> Item:
        """Draw one item by weights that `running_sum` has added up."""
        place = bisect_right(cumulated, self.share() * cumulated[-1])
        return items[min(place, len(items) - 1)]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in random order (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result


def running_sum(weights: Sequence[int | float]) -> tuple[float, ...]:
    """Add up weights for `Draws.weighted`.

    >>> running_sum([1.0, 2.0])
    (1.0, 3.0)
    """
    return tuple(accumulate(map(float, weights)))


def stable_number(text: str) -> int:
    """Return a number that depends on the text alone: the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as a whole number from low to high, or say what is wrong."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(name, f"is {value!r}", expected="a whole number was expected")
    if not low <= value <= high:
        raise InputError(
            name, f"is {value}", expected=f"a number from {low} to {high:,} was expected"
        )
    return value


def read_vocabulary(module: str, name: str) -> dict[str, Any]:
    """Return the TOML file that lies beside a module, given as its `__file__`."""
    return tomllib.loads(Path(module).with_name(f"{name}.toml").read_text("utf-8"))
