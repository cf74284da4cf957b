"""What does it cost to know the effect of noisy keys? Naive draws, our sampler, our quadrature.

    python benchmarks/bench_noise.py [--quick]

n = 64 unit keys in d = 512 dimensions, key 0 noisy along itself with variance ½, all keys with
vanishing isotropic noise; heads 50 μ_0 and 50 μ_1; 10,000 draws.

What is timed, each time from NumPy arrays of means and queries:
- naive: a NumPy loop; each turn draws all 64 × 512 numbers of the keys and computes softmax and c;
- sampler: `GaussianKeys.of`, then `sampled_noise`: means, standard deviations, covariance,
  standard errors, failure probability and quantiles;
- exact: `GaussianKeys.of`, then `exact_moments`: mean, standard deviation and covariance with a
  certified error of 1e-6.

Rounds are interleaved, and medians of processor time are compared (one thread: set
OMP_NUM_THREADS=1). Prints a table, then one line of JSON, and
stores the line with machine and date in benchmarks/results/noise.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import surroundings

from heedful.attention.distribution import exact_moments, sampled_noise
from heedful.attention.noise import GaussianKeys

N, D, DRAWS, BETA, VARIANCE = 64, 512, 10_000, 50.0, 0.5
VANISHING = 1e-24
"""The isotropic variance that the naive way draws; ours takes it as 0."""
RESULTS = Path(__file__).parent / "results" / "noise.json"


def naive(means: Any, queries: Any, draws: int, isotropic: float, seed: int) -> Any:
    """Return c of each draw of whole keys (values are the unit vectors)."""
    rng = np.random.default_rng(seed)
    values = np.eye(len(means))
    outputs = np.empty((draws, len(means)))
    for draw in range(draws):
        keys = means + np.sqrt(isotropic) * rng.standard_normal(means.shape)
        keys[0] += np.sqrt(VARIANCE) * rng.standard_normal() * means[0]
        logits = queries @ keys.T
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        outputs[draw] = (weights @ values).mean(axis=0)
    return outputs


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """Return the median processor time of a call.

    Not the time on the clock: on a busy machine that would favour the shortest calls.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def unit_keys(n: int, d: int) -> Any:
    """Return n perpendicular unit keys that are not the axes."""
    return np.linalg.qr(np.random.default_rng(0).standard_normal((d, n)))[0].T.copy()


def one_noisy_key(rounds: int) -> dict[str, Any]:
    """Time the three ways in interleaved rounds, and check that they agree."""
    means = unit_keys(N, D)
    queries = BETA * means[:2]

    def exact() -> Any:
        return exact_moments(GaussianKeys.of(means, noisy={0: VARIANCE}), queries)

    def sampled() -> Any:
        return sampled_noise(GaussianKeys.of(means, noisy={0: VARIANCE}), queries, draws=DRAWS)

    exact(), sampled()
    times: dict[str, list[float]] = {"naive": [], "sampler": [], "exact": []}
    for turn in range(rounds):
        times["naive"].append(seconds(partial(naive, means, queries, DRAWS, VANISHING, turn)))
        times["sampler"].append(seconds(sampled, 20))
        times["exact"].append(seconds(exact, 200))
    medians = {name: statistics.median(each) for name, each in times.items()}
    outputs = naive(means, queries, DRAWS, VANISHING, 12345)
    return {
        "seconds": medians,
        "sampler_ratio": medians["naive"] / medians["sampler"],
        "exact_ratio": medians["naive"] / medians["exact"],
        "certified_error": exact().certified_error,
        "nodes": exact().nodes,
        **agreement(outputs, exact(), sampled()),
    }


def agreement(outputs: Any, exact: Any, sampled: Any) -> dict[str, float]:
    """Return the largest differences of mean and covariance, in standard errors of the draws."""
    centred = outputs - outputs.mean(axis=0)
    products = centred[:, :, None] * centred[:, None]
    mean_se = outputs.std(axis=0) / np.sqrt(len(outputs))
    covariance = products.mean(axis=0)
    covariance_se = products.std(axis=0) / np.sqrt(len(outputs))

    def largest(difference: Any, se: Any) -> float:
        return float((np.abs(difference) / np.hypot(se, exact.certified_error)).max())

    two = np.sqrt(2.0)
    return {
        "exact_mean_in_se": largest(exact.mean - outputs.mean(axis=0), mean_se),
        "exact_covariance_in_se": largest(exact.covariance - covariance, covariance_se),
        "sampler_mean_in_se": largest(sampled.mean - outputs.mean(axis=0), two * mean_se),
        "sampler_covariance_in_se": largest(sampled.covariance - covariance, two * covariance_se),
    }


def all_keys_noisy(draws: int) -> dict[str, Any]:
    """Time the sampler when every key is noisy in every direction."""
    means = unit_keys(N, D)
    queries = BETA * means[:2]
    keys = GaussianKeys.of(means, isotropic=0.01, noisy={0: VARIANCE})
    slow = seconds(lambda: naive(means, queries, draws // 10, 0.01, 0)) * 10
    fast = seconds(lambda: sampled_noise(keys, queries, draws=draws), 3)
    return {"naive": slow, "sampler": fast, "ratio": slow / fast}


def growth(largest: int) -> dict[str, dict[str, float]]:
    """Return seconds against n (all keys noisy) and against draws, and memory against draws."""
    by_n = {}
    for n in (512, 1024, 2048, 4096):
        rng = np.random.default_rng(n)
        keys = GaussianKeys.of(rng.standard_normal((n, 16)), isotropic=0.1)
        queries = rng.standard_normal((2, 16))
        by_n[str(n)] = seconds(partial(sampled_noise, keys, queries, draws=500), 5)
    means = unit_keys(N, D)
    one = GaussianKeys.of(means, noisy={0: VARIANCE})
    by_draws, peak = {}, {}
    for draws in (largest // 100, largest // 10, largest):
        call = partial(sampled_noise, one, BETA * means[:2], draws=draws)
        by_draws[str(draws)] = seconds(call, 3)
        tracemalloc.start()
        call()
        peak[str(draws)] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return {"seconds_by_n": by_n, "seconds_by_draws": by_draws, "peak_MiB_by_draws": peak}


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    one, every, grown = result["one_noisy_key"], result["all_keys_noisy"], result["growth"]
    print(f"one noisy key of {N}, d = {D}, {DRAWS:,} draws, two heads of length {BETA:g}")
    print(f"{'way':<34}{'seconds':>12}{'times faster':>14}{'wanted':>10}")
    print(f"{'naive loop over whole keys':<34}{one['seconds']['naive']:>12.4f}{1:>14}{'':>10}")
    for name, wanted in (("sampler", 200), ("exact", 10_000)):
        spent, ratio = one["seconds"][name], one[f"{name}_ratio"]
        print(f"{name:<34}{spent:>12.6f}{ratio:>14,.0f}{wanted:>10,}")
    print(f"{'sampler, every key noisy':<34}{every['sampler']:>12.4f}{every['ratio']:>14,.0f}")
    print(f"certified error {one['certified_error']:.1e} with {one['nodes']} nodes")
    for name in ("exact_mean", "exact_covariance", "sampler_mean", "sampler_covariance"):
        label = f"{name.replace('_', ' ')} against naive"
        print(f"{label:<34}{one[name + '_in_se']:>12.2f} standard errors (at most 3 wanted)")
    for name, unit in (("seconds_by_n", "s"), ("seconds_by_draws", "s"), ("peak_MiB_by_draws", "")):
        row = "   ".join(f"{size}: {value:.3g}{unit}" for size, value in grown[name].items())
        print(f"{name.replace('_', ' '):<20} {row}")


def main() -> None:
    """Run everything; `--quick` runs fewer rounds and stores nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds; results not stored")
    quick = parser.parse_args().quick
    result = {
        "benchmark": "noise",
        "machine": surroundings("scipy"),
        "one_noisy_key": one_noisy_key(1 if quick else 5),
        "all_keys_noisy": all_keys_noisy(DRAWS),
        "growth": growth(100_000 if quick else 1_000_000),
    }
    one = result["one_noisy_key"]
    agrees = max(value for name, value in one.items() if name.endswith("_in_se")) <= 3
    result["reached"] = {
        "sampler_200": one["sampler_ratio"] >= 200,
        "exact_10000": one["exact_ratio"] >= 10_000,
        "agrees_within_3_se": agrees,
    }
    show(result)
    line = json.dumps(result)
    print(line)
    if not quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
