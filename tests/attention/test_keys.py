"""Properties of the standard sets of keys: every entry of the one list is what it says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heedful.attention.keys import STANDARD_KEYS, StandardKeys, keys_from, standard_keys
from heedful.errors import InputError

ENTRIES = pytest.mark.parametrize("entry", STANDARD_KEYS.values(), ids=lambda entry: entry.name)


@ENTRIES
def test_a_name_alone_is_enough(entry: StandardKeys) -> None:
    keys = keys_from(entry.name)
    assert keys.shape == (10, entry.least_dimension(10))
    assert np.isfinite(keys).all()


@ENTRIES
def test_the_seed_matters_exactly_where_the_list_says_so(entry: StandardKeys) -> None:
    first, second = standard_keys(entry.name, 5, 5, 0), standard_keys(entry.name, 5, 5, 1)
    assert (not np.array_equal(first, second)) == entry.random


@ENTRIES
def test_too_many_keys_are_refused_exactly_where_the_list_says_so(entry: StandardKeys) -> None:
    d = 3
    if entry.surplus is None:
        assert standard_keys(entry.name, 50, d).shape == (50, d)
        return
    assert standard_keys(entry.name, d + entry.surplus, d).shape == (d + entry.surplus, d)
    with pytest.raises(InputError):
        standard_keys(entry.name, d + entry.surplus + 1, d)


@ENTRIES
def test_the_page_can_be_told_every_entry(entry: StandardKeys) -> None:
    assert json.loads(json.dumps(entry.to_dict()))["name"] == entry.name


def test_rows_come_with_their_own_number_of_keys() -> None:
    assert keys_from([[1, 0], [0, 1]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(InputError, match="the rows decide"):
        keys_from([[1, 0], [0, 1]], n=3)


def test_an_unknown_name_is_answered_with_the_list() -> None:
    with pytest.raises(InputError, match="simplex, circle"):
        keys_from("hexagon")
