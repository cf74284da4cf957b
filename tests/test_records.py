"""Records become JSON, errors are one line and travel between processes."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from heedful.errors import (
    ConfigError,
    FormulaError,
    HeedfulError,
    InputError,
    MissingPartError,
    RunError,
)
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Inner(Record):
    weights: object


@dataclass(frozen=True, eq=False, kw_only=True)
class Outer(Record):
    inner: Inner
    values: object


def test_a_record_becomes_json_whatever_it_holds() -> None:
    record = Outer(
        inner=Inner(weights=torch.tensor([0.5, 0.5])),
        values={1: np.float64(2.0), "list": (np.int64(3), math.nan, None, True, "α")},
    )

    read = json.loads(record.to_json())

    assert read == {
        "inner": {"weights": [0.5, 0.5]},
        "values": {"1": 2.0, "list": [3, None, None, True, "α"]},
    }


@pytest.mark.parametrize(
    "error",
    [
        InputError("keys", "is empty", expected="a key", hint="add one"),
        FormulaError("sheet", "typo", line=3, column=7),
        ConfigError("width", "is odd"),
        MissingPartError.of("serve", "fastapi", "web"),
        RunError("train", "loss is NaN"),
    ],
)
def test_an_error_survives_the_way_between_processes(error: HeedfulError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.exit_code == error.exit_code
    assert "\n" not in str(again)


def test_an_error_says_where_what_expected_and_the_way_out() -> None:
    error = InputError("--of", "key 9 does not exist", expected="0 to 3", hint="use 3")

    assert str(error) == "--of: key 9 does not exist; 0 to 3; use 3"
