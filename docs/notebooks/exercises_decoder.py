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
# # The pieces of a decoder, written by you
#
# Sheet 003 asks for “the most essential parts of a Decoder-Only Transformer”. Here they are, one
# function each, from the softmax to the loss. Write the body, run the cell, and read what
# `check_layer` says: what was tried, what holds, and, where something is wrong, the mistake in
# words. NumPy is enough; torch works too, with or without a batch before the time.
#
# Three hints stand below each exercise, folded: the first only points, the second says how, the
# third is a solution. Open the next one when the last has not helped.

# %%
import numpy as np  # noqa: F401  (for what you write)

import heedful as h


def check(function):
    """Show what is found out about a function of yours."""
    try:
        return h.check_layer(function)
    except h.HeedfulError as problem:
        print(problem)


# %% [markdown]
# ## 1 Softmax
#
# `softmax(x)` turns each row of `x` into weights: positive, with sum 1, and in the ratio of their
# exponentials. It must not break where scores are large: attention has scores of a thousand.


# %%
def softmax(x):
    raise NotImplementedError("write it here")


check(softmax)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# What is exp(1000) on your machine? Which number may you add to a row without changing its
# softmax?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# Subtract the largest score of each row first: the largest exponential is then exp(0) = 1.
# `keepdims=True` keeps the axis, so that the rest is subtracted row by row.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def softmax(x):
#     powers = np.exp(x - x.max(axis=-1, keepdims=True))
#     return powers / powers.sum(axis=-1, keepdims=True)
# ```
#
# </details>

# %% [markdown]
# ## 2 The causal mask
#
# `mask(n)` says for n tokens who may attend to whom: an (n, n) array of booleans, row t for the
# query, column s for the key, True where s ≤ t. A token sees itself and what came before.


# %%
def mask(n):
    raise NotImplementedError("write it here")


check(mask)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# Draw the table for n = 3 on paper. Which triangle is True, and what about the diagonal?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# `np.tril` keeps the lower triangle with its diagonal and makes the rest 0; give it a table of
# ones of type bool.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def mask(n):
#     return np.tril(np.ones((n, n), dtype=bool))
# ```
#
# </details>

# %% [markdown]
# ## 3 Where a token stands
#
# `positions(length, width)` is the sinusoidal table: column 2i of row t is $\sin(t /
# 10000^{2i/d})$, column 2i + 1 is $\cos(t / 10000^{2i/d})$, with t counted from 0 and d the width
# (which is even).


# %%
def positions(length, width):
    raise NotImplementedError("write it here")


check(positions)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# How many different angles does one row have? Write those first, as a table of (length, width /
# 2).
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# `np.arange(length)[:, None]` is a column and `np.arange(0, width, 2)` holds the 2i. Fill
# `table[:, 0::2]` with sines and `table[:, 1::2]` with cosines.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def positions(length, width):
#     angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
#     table = np.zeros((length, width))
#     table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
#     return table
# ```
#
# </details>

# %% [markdown]
# ## 4 A layer norm
#
# `layer_norm(x, gain, bias)`: every token by itself gets mean 0 and variance 1 over its features,
# is multiplied by the gain, and the bias is added. A token whose features are all equal must not
# end in NaN.


# %%
def layer_norm(x, gain, bias):
    raise NotImplementedError("write it here")


check(layer_norm)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# Over which axis are mean and variance? What is the variance of a token with equal features?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# Mean and variance are over the last axis, with `keepdims=True`; divide by the root of the
# variance plus a small ε such as 1e-5.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def layer_norm(x, gain, bias):
#     centred = x - x.mean(axis=-1, keepdims=True)
#     variance = (centred**2).mean(axis=-1, keepdims=True)
#     return centred / np.sqrt(variance + 1e-5) * gain + bias
# ```
#
# </details>

# %% [markdown]
# ## 5 Attention
#
# `attention(q, k, v)` of one head: $\mathrm{softmax}(q k^T / \sqrt d)\, v$ with d the width of a
# query. Everyone sees everyone. (The sheet's equation 2 has no √d; a function without it is
# checked by `h.check_layer(attention, scale=1)`.)


# %%
def attention(q, k, v):
    raise NotImplementedError("write it here")


check(attention)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# Which shape have the scores, if there are 7 queries of width 4 and 7 keys? Over which axis must
# the weights sum to 1?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# `q @ k.T` has a row for each query. Divide by `np.sqrt(q.shape[-1])`, take your softmax along the
# rows, and multiply by `v`.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def attention(q, k, v):
#     scores = q @ k.T / np.sqrt(q.shape[-1])
#     return softmax(scores) @ v
# ```
#
# </details>

# %% [markdown]
# ## 6 Attention that does not see the future
#
# `causal_attention(q, k, v)`: the same, but query t reads the keys s ≤ t only. What is forbidden
# must get the weight 0, and the rest must still sum to 1.


# %%
def causal_attention(q, k, v):
    raise NotImplementedError("write it here")


check(causal_attention)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# Is it better to change the weights after the softmax, or the scores before it? Which score
# becomes the weight 0?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# `np.where(mask(len(q)), scores, -np.inf)` leaves allowed scores as they are; exp(−∞) is 0. A 0 in
# place of −∞ would be a score like any other.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def causal_attention(q, k, v):
#     scores = q @ k.T / np.sqrt(q.shape[-1])
#     return softmax(np.where(mask(len(q)), scores, -np.inf)) @ v
# ```
#
# </details>

# %% [markdown]
# ## 7 Several heads
#
# `multi_head(x, w_q, w_k, w_v, w_o, heads)`: queries are `x @ w_q`, keys and values likewise. The
# features are cut into `heads` equal parts that stand side by side; each part is one causal head
# with its own √d; their outputs stand side by side again and are multiplied by `w_o`.


# %%
def multi_head(x, w_q, w_k, w_v, w_o, heads):
    raise NotImplementedError("write it here")


check(multi_head)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# Which columns of `x @ w_q` belong to head 0? Begin with a loop over the heads: it is slow and
# clear.
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# Head i has the columns `i * size` to `(i + 1) * size` with `size = width // heads`. Put the
# outputs together with `np.concatenate(…, axis=-1)`. If you reshape instead: to (time, heads,
# size) first, then move the axis.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def multi_head(x, w_q, w_k, w_v, w_o, heads):
#     q, k, v = x @ w_q, x @ w_k, x @ w_v
#     size = q.shape[-1] // heads
#     parts = [slice(i * size, (i + 1) * size) for i in range(heads)]
#     read = [causal_attention(q[:, part], k[:, part], v[:, part]) for part in parts]
#     return np.concatenate(read, axis=-1) @ w_o
# ```
#
# </details>

# %% [markdown]
# ## 8 The block
#
# `decoder_block(x, norm_1, attention, norm_2, feed_forward)` puts the parts together; the last
# four are functions of an array like x. Each sublayer reads a normed copy of the stream, and what
# it gives is added to the stream, which is never normed itself.


# %%
def decoder_block(x, norm_1, attention, norm_2, feed_forward):
    raise NotImplementedError("write it here")


check(decoder_block)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# If both sublayers gave 0, what must come out?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# Two lines of the same form, one for each sublayer: x becomes x plus the sublayer of the norm of
# x. The second one starts from the new x.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def decoder_block(x, norm_1, attention, norm_2, feed_forward):
#     x = x + attention(norm_1(x))
#     return x + feed_forward(norm_2(x))
# ```
#
# </details>

# %% [markdown]
# ## 9 What is learned
#
# `next_token_loss(logits, tokens)`: the logits of row t say what comes after token t. The loss is
# the mean of $-\log p(\text{token}_{t+1})$ over every t that has a next token; $p$ is the softmax
# of row t.


# %%
def next_token_loss(logits, tokens):
    raise NotImplementedError("write it here")


check(next_token_loss)

# %% [markdown]
# <details><summary>Hint 1: where to look</summary>
#
# With 7 tokens there are how many predictions? Which row of the logits has seen only the first
# token?
#
# </details>
# <details><summary>Hint 2: how</summary>
#
# Take `logits[:-1]` and `tokens[1:]`. Subtract the largest logit of each row; log p is then the
# logit minus the logarithm of the sum of the exponentials.
#
# </details>
# <details><summary>Hint 3: a solution</summary>
#
# ```python
# def next_token_loss(logits, tokens):
#     given, wanted = logits[:-1], tokens[1:]
#     shifted = given - given.max(axis=-1, keepdims=True)
#     log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
#     return -log_p[np.arange(len(wanted)), wanted].mean()
# ```
#
# </details>

# %% [markdown]
# ## All of them
#
# What is left to do? Where everything holds, you have a decoder: stack the block, add `positions`
# to the embeddings, and let `h.train` do with a larger one what you would do next ([the second
# notebook](train_a_translator.py)).

# %%
pieces = [softmax, mask, positions, layer_norm, attention, causal_attention, multi_head,
          decoder_block, next_token_loss]  # fmt: skip
for piece in pieces:
    try:
        found = h.check_layer(piece)
        state = "right" if found.right else found.diagnosis
    except h.HeedfulError:
        state = "not there yet"
    print(f"{piece.__name__:<17} {state}")
