"""E, P, var, std, cov and quantile of a value over the draws of a world."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.claims.language import show
from heedful.claims.language.tree import Call
from heedful.claims.values import Value, scalar
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.numeric import Evaluator

NAMES = ("E", "P", "var", "std", "cov", "quantile")


def statistic(evaluator: Evaluator, node: Call) -> Value:
    """Return a statistic over all draws, or over those that meet its condition.

    The variance of a vector is the trace of its covariance: E‖x − E x‖².
    """
    weights = _weights(evaluator, node)
    if node.function == "P":
        holds = np.broadcast_to(evaluator.truth(node.arguments[0]).holds, weights.shape)
        return scalar(float(np.sum(weights * holds)))
    x = evaluator.value(node.arguments[0])
    rows = np.broadcast_to(x.array, (len(weights), *x.shape))
    average = np.tensordot(weights, rows, axes=(0, 0))
    if node.function == "E":
        return Value(average[None], x.kind, x.formal)
    if node.function == "quantile":
        return _quantile(evaluator, node, rows, weights)
    other = evaluator.value(node.arguments[1]) if node.function == "cov" else x
    second = np.broadcast_to(other.array, (len(weights), *other.shape))
    if second.shape != rows.shape:
        raise FormulaError(
            "formula",
            f"cov of a {x.describe()} and a {other.describe()}",
            expected="two of one shape",
        )
    apart = second - np.tensordot(weights, second, axes=(0, 0))
    products = ((rows - average) * apart).reshape(len(weights), -1).sum(axis=1)
    moment = float(np.sum(weights * products))
    if node.function == "cov":
        return scalar(moment)
    return scalar(math.sqrt(max(0.0, moment)) if node.function == "std" else max(0.0, moment))


def _quantile(evaluator: Evaluator, node: Call, rows: Any, weights: Any) -> Value:
    level = float(evaluator.value(node.arguments[1]).array.flat[0])
    if rows.ndim != 1 or not 0 <= level <= 1:
        raise FormulaError(
            "formula", f"{show(node)} is not a quantile", expected="a scalar and 0 ≤ p ≤ 1"
        )
    order = np.argsort(rows, kind="stable")
    place = min(int(np.searchsorted(np.cumsum(weights[order]), level)), len(rows) - 1)
    return scalar(float(rows[order[place]]))


def _weights(evaluator: Evaluator, node: Call) -> Any:
    world = evaluator.world
    values = (*world.symbols.values(), *world.families.values())
    count = max((len(value.array) for value in values), default=1)
    weights = np.full(count, 1.0 / count) if world.weights is None else world.weights
    if node.given is None:
        return weights
    holds = np.broadcast_to(evaluator.truth(node.given).holds, weights.shape)
    total = float(np.sum(weights * holds))
    if total <= 0:
        raise FormulaError(
            "formula",
            f"the condition {show(node.given)} never holds",
            expected="a condition with some probability",
        )
    return weights * holds / total
