"""Which words mean which, found from pairs; and embeddings that know it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import alignment
from heedful.data.alignment import SPREAD, aligned_embeddings, aligned_lexicon
from heedful.errors import ConfigError
from heedful.model import Decoder
from heedful.studies.text_training import prepare

PLAIN: dict[str, Any] = {
    "steps": 200,
    "model": {"preset": "tiny"},
    "data": {"source": "phrasebook", "size": 300, "held_out": 20, "embeddings": "aligned"},
}


def by_the_book(
    sources: list[list[int]], targets: list[list[int]], nothing: int
) -> dict[tuple[int, int], float]:
    """Model 1 word by word, as it is written down."""
    pairs = [([nothing, *source], target) for source, target in zip(sources, targets, strict=True)]
    table = {link: 1.0 for f, e in pairs for link in itertools.product(f, e)}
    for _ in range(alignment.ROUNDS):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in pairs:
            for e in target:
                whole = sum(table[f, e] for f in source)
                for f in source:
                    counts[f, e] += table[f, e] / whole
                    totals[f] += table[f, e] / whole
        table = {(f, e): count / totals[f] for (f, e), count in counts.items()}
    return {link: share for link, share in table.items() if link[0] != nothing}


texts = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_shares_are_those_of_the_model_word_by_word(pairs: list[Any]) -> None:
    sources, targets = ([list(text) for text in side] for side in zip(*pairs, strict=True))
    found = aligned_lexicon(sources, targets, 6)
    links = zip(found.sources.tolist(), found.targets.tolist(), strict=True)
    assert dict(zip(links, found.shares, strict=True)) == pytest.approx(
        by_the_book(sources, targets, 6)
    )


def test_a_source_token_lies_beside_its_translation_and_a_shared_one_is_itself() -> None:
    # Token i is translated by i + 20, but 7 is written by both sides.
    draw = np.random.default_rng(0)
    sources = [draw.choice(20, size=6, replace=False).tolist() for _ in range(400)]
    targets = [[token if token == 7 else token + 20 for token in source] for source in sources]
    table = aligned_embeddings(sources, targets, 50, 64)
    assert table.shape == (50, 64)
    assert np.square(table).mean(axis=1) == pytest.approx(SPREAD**2)
    nearness = table @ table.T / (64 * SPREAD**2)
    for token in range(20):
        order = np.argsort(-nearness[token])
        assert order[0] == token
        if token == 7:
            assert nearness[7, 27] < 0.5
        else:
            assert order[1] == token + 20
            assert nearness[token, token + 20] > 0.95


def test_no_embedding_is_empty_where_links_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MOST_LINKS", 10)
    table = aligned_embeddings([[0, 1], [2, 3]], [[4, 5], [6, 7]], 9, 16)
    assert np.square(table).mean(axis=1) == pytest.approx(SPREAD**2)


def test_a_training_begins_with_them_and_twice_alike() -> None:
    made = prepare(PLAIN)
    assert made.adapt is not None
    weights = []
    for _ in range(2):
        decoder = Decoder(made.config.model, seed=0)
        made.adapt(decoder)
        weights.append(decoder.embedding.weight.detach())
    assert torch.equal(*weights)
    assert float(weights[0].std()) == pytest.approx(SPREAD, rel=0.05)
    assert prepare(PLAIN | {"data": PLAIN["data"] | {"embeddings": "random"}}).adapt is None


def test_texts_that_stand_alone_have_no_translations() -> None:
    with pytest.raises(ConfigError, match=r"data\.embeddings"):
        prepare(PLAIN | {"data": PLAIN["data"] | {"source": "biographies"}})
