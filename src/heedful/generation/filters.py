"""What sampling leaves of a distribution: logits in, logits out, −∞ for what is cut.

Each filter renormalises what it gets, and always keeps the likeliest token:

    temperature   z / T
    top-k         z_i ≥ the k-th largest z (ties stay)
    top-p         cut the least likely tokens whose probabilities sum to at most 1 − p
    min-p         p_i ≥ min_p · max p
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import RunError
from heedful.generation.methods import Sampling

Logits = Float[Tensor, "rows vocabulary"]


def log_probabilities(logits: Logits) -> Logits:
    """Return log softmax of the logits, or say that they are no numbers."""
    own = logits.log_softmax(dim=-1)
    # A NaN or +∞ anywhere makes its whole row NaN, so that one column tells.
    if bool(own[:, 0].isnan().any()):
        raise RunError(
            "generation",
            "the model's logits are not finite",
            expected="numbers were expected",
            way_out="check the weights with: heed model verify PATH",
        )
    return own


def filtered(logits: Logits, sampling: Sampling) -> Logits:
    """Return the logits from which a token is drawn.

    >>> logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> filtered(logits, Sampling(temperature=0.5, top_k=2))
    tensor([[-inf, -inf, 4., 6.]])
    """
    if sampling.temperature != 1.0:
        logits = logits / sampling.temperature
    if sampling.top_k is not None:
        logits = top_k(logits, sampling.top_k)
    if sampling.top_p < 1.0:
        logits = top_p(logits, sampling.top_p)
    if sampling.min_p > 0.0:
        logits = min_p(logits, sampling.min_p)
    return logits


def top_k(logits: Logits, k: int) -> Logits:
    """Cut everything below the k-th largest logit."""
    k = min(k, logits.shape[-1])
    least = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < least, -math.inf)


def top_p(logits: Logits, p: float) -> Logits:
    """Cut the tail: the least likely tokens that sum to at most 1 − p."""
    ascending, order = logits.sort(dim=-1)
    cut = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
    cut[:, -1] = False
    return logits.masked_fill(cut.scatter(-1, order, cut), -math.inf)


def min_p(logits: Logits, share: float) -> Logits:
    """Cut tokens less likely than this share of the likeliest one."""
    probabilities = logits.softmax(dim=-1)
    largest = probabilities.amax(dim=-1, keepdim=True)
    cut = (probabilities < share * largest) & (probabilities < largest)
    return logits.masked_fill(cut, -math.inf)


def draw(logits: Logits, uniform: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """Return the token at the quantile `uniform` (0 ≤ u < 1) of each row's distribution.

    One number a row and step decides, so that a row's tokens depend on nothing but its own
    logits and its own numbers.
    """
    distribution = logits.double().softmax(dim=-1).cumsum(dim=-1)
    total = distribution[:, -1:]
    # Rounding must not carry the target past the last token that has any probability.
    target = torch.minimum(uniform.view(-1, 1) * total, total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(distribution, target, right=True).squeeze(1)
