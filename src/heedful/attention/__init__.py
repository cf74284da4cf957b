"""The mathematics of a query, keys and values: pure functions of arrays."""

from heedful.attention.operation import Attention, attend, causal, softmax

__all__ = ["Attention", "attend", "causal", "softmax"]
