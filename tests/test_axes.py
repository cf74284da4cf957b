"""Every annotation is checked while the tests run: axes, types, arguments and results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import axes
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Float

from heedful.attention.operation import average_weights, causal

Row = Float[np.ndarray, " n"]
checked = axes.checked(typechecker=beartype)


@checked
def joined(left: Row, right: Row) -> Float[np.ndarray, "2 n"]:
    return np.stack([left, right])


@checked
def shortened(row: Row) -> Row:
    return row[1:]


@checked
def nested(left: Row, right: Row) -> Row:
    return joined(left, left)[0] + joined(right, right)[0][: len(left)]


@checked
def rows(row: Row) -> Iterator[Row]:
    yield row


@checked
@dataclass
class Pair:
    left: Float[np.ndarray, " n"]
    right: Float[np.ndarray, " n"]
    name: str = ""

    @classmethod
    @checked
    def twice(cls, row: Float[np.ndarray, " n"]) -> Pair:
        return cls(row, row)

    @property
    @checked
    def size(self) -> int:
        return self.name  # type: ignore[return-value]


def plain(count: int) -> str:
    return str(count) if count else count  # type: ignore[return-value]


def test_an_axis_has_one_length_in_one_call() -> None:
    two, three = np.ones(2), np.ones(3)
    assert joined(two, two).shape == (2, 2)
    assert joined(three, three).shape == (2, 3)
    with pytest.raises(TypeError):
        joined(two, three)
    with pytest.raises(TypeError):
        joined(two, right=np.ones((2, 1)))
    with pytest.raises(TypeError):
        joined(two, np.ones(2, dtype=int))


def test_a_result_has_the_axes_of_the_arguments() -> None:
    with pytest.raises(TypeError):
        shortened(np.ones(2))


def test_a_call_within_a_call_has_axes_of_its_own() -> None:
    with pytest.raises(TypeError):
        nested(np.ones(2), np.ones(3))
    assert len(nested(np.ones(3), np.ones(3))) == 3


def test_what_has_no_axes_is_checked_as_well() -> None:
    function = checked(plain)
    assert function(3) == "3"
    with pytest.raises(TypeError):
        function("3")
    with pytest.raises(TypeError):
        function(0)


def test_generators_dataclasses_and_properties_are_checked() -> None:
    assert len(list(rows(np.ones(2)))) == 1
    with pytest.raises(TypeError):
        rows(np.ones((2, 2)))
    assert Pair.twice(np.ones(2)).name == ""
    for wrong in ({"right": np.ones(3)}, {"right": np.ones(2), "name": 1}):
        with pytest.raises(TypeError):
            Pair(np.ones(2), **wrong)
    with pytest.raises(TypeError):
        _ = Pair.twice(np.ones(2)).size


def test_a_form_that_passed_is_remembered_and_another_is_not_taken_for_it() -> None:
    answers = [np.ones(2), np.ones(2), np.ones(3), np.ones(2, dtype=int)]

    @checked
    def next_answer(row: Row) -> Row:
        return answers.pop(0)

    for _ in range(2):
        next_answer(np.ones(2))
    for _ in range(2):  # the same arguments, but a result of another length, then of another type
        with pytest.raises(TypeError):
            next_answer(np.ones(2))
    for _ in range(2):
        assert joined(np.ones(2), np.ones(2)).shape == (2, 2)
        with pytest.raises(TypeError):
            joined(np.ones(2), np.ones(3))


def test_our_own_rooms_are_checked() -> None:
    wrong: Any = "two"
    with pytest.raises(TypeError):
        causal(wrong)
    with pytest.raises(TypeError):
        average_weights([0], wrong)
