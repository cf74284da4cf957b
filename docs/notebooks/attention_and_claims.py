# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention and claims
#
# Copy one value, average two, disturb a key, and have a belief judged. Everything here is a few
# lines of NumPy's arrays; no model is trained. It takes seconds.

# %%
import numpy as np

from heedful.attention import GaussianKeys, attend, design_average, design_copy, study_noise
from heedful.attention.keys import orthonormal
from heedful.claims import claim
from heedful.claims import orthonormal as orthonormal_keys

keys = orthonormal(10, 16)
print(keys.shape)

# %% [markdown]
# ## A direction is not yet an answer
#
# The query $k_0 + k_1$ points at two keys. How much of the reading do they get?

# %%
pointing = keys[0] + keys[1]
for beta in (1, 3, 6, 10):
    weights = attend(beta * pointing, keys).weights
    print(f"β = {beta:>2}: the two keys get {weights[:2].sum():.3f}")

# %% [markdown]
# ## Copy and average to order
#
# A design is the shortest query that does what you ask, with a certificate. If there is none,
# the certificate says why.

# %%
copy, average = design_copy(keys, 3), design_average(keys, [0, 1], tolerance=0.01)
for design in (copy, average):
    assert design.query is not None
    print(f"{design.kind}: ‖q‖ = {np.linalg.norm(design.query):.2f}")
    print("  ", design.certificate.statement)

# %%
triangle = [[0, 0], [1, 0], [0, 1], [-1, -1]]  # the first key lies among the others
middle = design_copy(triangle, 0)
assert not middle.feasible
print(middle.certificate.statement)
print(middle.certificate.combination)

# %% [markdown]
# ## Noise
#
# Key 0 now varies along its own direction. One head that points at keys 0 and 1 becomes a coin;
# two heads with a key each are steadier. The means of all three look alike: look at the
# deviation.

# %%
noisy = GaussianKeys.of(keys, noisy={0: 0.5})
beta = 50.0
one_head = study_noise(noisy, beta * (keys[0] + keys[1]), of=[0, 1])
two_heads = study_noise(noisy, beta * keys[:2], of=[0, 1])
for name, study in (("one head", one_head), ("two heads", two_heads)):
    assert study.exact is not None
    print(
        f"{name:>9}: α_0 = {study.exact.mean[0]:.3f} ± {study.exact.std[0]:.3f}, "
        f"fails in {study.exact.failure_probability:.1%} of the draws"
    )

# %% [markdown]
# A single query can do better than both: it looks at neither of the two, and pushes all others
# away. Then $k_0 \cdot q = 0$ whatever the noise is.

# %%
away = -beta * keys[2:].sum(axis=0)  # keys 0 and 1 keep the logit 0, the rest falls
looks_away = study_noise(noisy, away, of=[0, 1])
assert looks_away.exact is not None
print(f"looking away: α_0 = {looks_away.exact.mean[0]:.3f} ± {looks_away.exact.std[0]:.3f}")
assert looks_away.exact.std[0] < two_heads.exact.std[0] < one_head.exact.std[0]

# %% [markdown]
# ## State what you believe
#
# A claim is a formula; the verdict is `proved`, `supported`, `refuted` or `undecided`. This one
# looks right and is wrong:

# %%
verdict = claim("c ≈ (v_a + v_b)/2", query="k_a + k_b", keys=orthonormal_keys(n=10))
print(verdict.verdict)
assert verdict.counterexample is not None
print(verdict.counterexample.statement)

# %% [markdown]
# The repair is the smallest change that makes it hold, and it was judged too:

# %%
assert verdict.repair is not None
print(verdict.repair.statement, "→", verdict.repair.verdict)

# %%
mended = claim("c ≈ (v_a + v_b)/2 within 0.01", query="6 (k_a + k_b)", keys=orthonormal_keys(n=10))
print(mended.verdict)
print(mended.evidence.statement)
assert mended.verdict == "proved"

# %% [markdown]
# **Try:** ask for an average of three of a thousand keys. By how much must the query grow? Then
# state your answer as a claim.
