"""Writes `golden.json`: what Python says about cases that the page works out by itself.

Run `python tests/web/golden_numbers.py` after a change to the mathematics; a test compares.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from heedful.attention import attend, copyable
from heedful.attention.keys import standard_keys
from heedful.attention.operation import scale_of
from heedful.web.attention_api import plane_of

FILE = Path(__file__).with_name("golden.json")
DRAWS = 5


def cases() -> list[dict[str, Any]]:
    """Return the cases: keys, queries and noise, and what comes of them."""
    rng = np.random.default_rng(20)
    made = []
    for kind, n, d, heads, beta, scale, noisy, variance, isotropic in (
        ("circle", 8, 2, 1, 8.0, 1.0, 0, 0.5, 0.0),
        ("circle", 64, 2, 2, 40.0, "sqrt_d", 3, 1.2, 0.01),
        ("orthonormal", 10, 16, 2, 50.0, 1.0, 0, 0.5, 0.0),
        ("sphere", 12, 5, 3, 6.0, "sqrt_d", -1, 0.0, 0.04),
        ("gaussian", 7, 3, 4, 300.0, 1.0, 6, 2.0, 0.25),
        ("grid", 9, 2, 1, 0.1, 1.0, 4, 0.3, 0.0),
        ("gaussian", 2, 2, 1, 400.0, 1.0, 1, 0.7, 0.0),
    ):
        keys = standard_keys(kind, n, d, 1)
        queries = beta * rng.standard_normal((heads, d)) / math.sqrt(d)
        values = rng.standard_normal((n, 2))
        noise = {"key": noisy, "variance": variance, "isotropic": isotropic}
        made.append(_case(keys, values, queries, scale_of(scale, d), noise, rng))
    return made


def _case(
    keys: Any, values: Any, queries: Any, scale: float, noise: dict[str, Any], rng: Any
) -> dict[str, Any]:
    n, d = keys.shape
    each = 1 + (n * d if noise["isotropic"] > 0 else 0)
    normals = rng.standard_normal((DRAWS, each))
    reading = attend(queries, keys, values, scale=scale)
    weights = reading.weights.mean(axis=0)
    positive = weights[weights > 0]
    plane = plane_of(keys, "auto")
    moved = keys[0] + plane.T @ (np.array([0.3, -0.2]) - plane @ keys[0])
    return {
        "keys": keys.tolist(),
        "values": values.tolist(),
        "queries": queries.tolist(),
        "scale": scale,
        "noise": noise,
        "normals": normals.ravel().tolist(),
        "plane": plane.tolist(),
        "expected": {
            "heads": reading.weights.tolist(),
            "weights": weights.tolist(),
            "output": reading.output.mean(axis=0).tolist(),
            "entropy": float(-(positive * np.log(positive)).sum()),
            "noisy_outputs": _outputs(keys, values, queries, scale, noise, normals),
            "projected": (keys @ plane.T).tolist(),
            "moved": moved.tolist(),
            "ellipse": _ellipse(np.cov(values.T)),
        },
        "covariance": np.cov(values.T).tolist(),
    }


def _outputs(
    keys: Any, values: Any, queries: Any, scale: float, noise: dict[str, Any], normals: Any
) -> list[float]:
    found = []
    for draw in normals:
        drawn = keys.copy()
        if noise["key"] >= 0:
            drawn[noise["key"]] *= 1.0 + math.sqrt(noise["variance"]) * draw[0]
        if noise["isotropic"] > 0:
            drawn += math.sqrt(noise["isotropic"]) * draw[1:].reshape(keys.shape)
        found += attend(queries, drawn, values, scale=scale).output.mean(axis=0).tolist()
    return found


def _ellipse(covariance: Any) -> dict[str, float]:
    eigenvalues, vectors = np.linalg.eigh(covariance)
    angle = math.atan2(vectors[1, 1], vectors[0, 1])
    return {
        "long": math.sqrt(eigenvalues[1]),
        "short": math.sqrt(eigenvalues[0]),
        "angle": (angle + math.pi / 2) % math.pi - math.pi / 2,  # an axis has no head
    }


def hulls() -> list[dict[str, Any]]:
    """Return point sets with the corners of their hull, which are the keys that can be copied."""
    found = []
    for kind, n, seed in (
        ("gaussian", 20, 3),
        ("grid", 16, 0),
        ("sphere", 9, 5),
        ("gaussian", 3, 1),
    ):
        points = standard_keys(kind, n, 2, seed)
        corners = np.flatnonzero(copyable(points).copyable)
        found.append({"points": points.tolist(), "corners": corners.tolist()})
    return found


def golden() -> dict[str, Any]:
    """Return everything that the page must reproduce."""
    return {"cases": cases(), "hulls": hulls()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(golden(), indent=None, separators=(",", ":")) + "\n", "utf-8")
