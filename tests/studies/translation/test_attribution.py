"""Methods of attribution: each is what its formula says, and the trial counts as it should."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from small_translators import all_bytes, gpt2_like, llama_like, translator

from heedful.data.synthetic.phrasebook.corpus import linked_pairs
from heedful.errors import InputError
from heedful.model import Decoder
from heedful.studies.translation import TranslationFormat, Translator
from heedful.studies.translation.attribution import (
    CONTROLS,
    METHODS,
    ForcedTranslation,
    _error,
    _Path,
    _target_log_probabilities,
    align_tokens,
    gold_links,
    gradient_products,
    head_weights,
    integrated_products,
    reading_of,
    scores,
    study_attribution,
    words_of,
)
from heedful.views.terminal import written
from heedful.views.translation import attribution_blocks, attribution_figure

SMALL = translator()


def forced(text: str = "ab cd e.") -> ForcedTranslation:
    tokens = SMALL.tokenizer.encode("de ab")
    sources, _, _ = words_of(SMALL, text, tokens)
    return reading_of(SMALL, text, tokens, sources)


def log_p(reading: ForcedTranslation, baseline: torch.Tensor, point: float) -> torch.Tensor:
    """Return log p of the target with the embeddings of the source on the way to their place."""
    rows = torch.tensor([reading.row()])
    path = _Path(reading.decoder, rows.shape[1], reading.sources, baseline)
    path.point = point
    with torch.enable_grad():
        return _target_log_probabilities(reading.decoder, rows, reading.target, path)[0].detach()


@pytest.mark.parametrize("like", [llama_like, gpt2_like])
def test_integrated_gradients_add_up_to_the_difference_of_both_ends(like) -> None:
    decoder = Decoder(like(SMALL.tokenizer.size), seed=3).double().eval()
    plain = forced()
    reading = ForcedTranslation(decoder, plain.prompt, plain.opening, plain.target, plain.owners)
    mean = decoder.embedding.weight.detach().mean(dim=0)
    ends = log_p(reading, mean, 1.0) - log_p(reading, mean, 0.0)
    added = integrated_products(reading, 200).sum(dim=(1, 2))
    torch.testing.assert_close(added, ends, atol=2e-3, rtol=0)
    step, zero = 1e-5, torch.zeros_like(mean)
    slope = (log_p(reading, zero, 1 + step) - log_p(reading, zero, 1 - step)) / (2 * step)
    torch.testing.assert_close(
        gradient_products(reading).sum(dim=(1, 2)), slope, atol=1e-7, rtol=1e-6
    )


def test_a_word_that_is_taken_out_is_not_read() -> None:
    reading = forced("ab cd e.")
    tokens = SMALL.tokenizer.encode("de ab")
    nothing, gone = frozenset[int](), frozenset([1])
    found = reading.log_probabilities([nothing, gone])
    assert reading.row(gone) == forced("ab e.").row()
    np.testing.assert_allclose(found[gone], forced("ab e.").log_probabilities([nothing])[nothing])
    aligned = align_tokens(SMALL, "ab cd e.", tokens, "erasure")
    falls = np.maximum(found[nothing] - found[gone], 0)
    words = words_of(SMALL, "ab cd e.", tokens)[1].owners
    means = [np.mean([fall for fall, own in zip(falls, words) if own == word]) for word in (0, 1)]  # noqa: B905
    np.testing.assert_allclose((aligned.weights * aligned.mass[:, None])[:, 1], means, atol=1e-12)


def test_value_norms_change_nothing_where_all_values_are_alike() -> None:
    decoder = Decoder(gpt2_like(SMALL.tokenizer.size), seed=3).eval()
    with torch.no_grad():
        for block in decoder.blocks:
            values = block.attention.qkv
            width = decoder.config.width
            values.weight[-width:] = 0  # only the bias is left: one value for every token
            values.bias[-width:] = 1
    plain = forced()
    reading = ForcedTranslation(decoder, plain.prompt, plain.opening, plain.target, plain.owners)
    np.testing.assert_allclose(head_weights(reading, norms=True), head_weights(reading))


def test_the_alignment_error_is_that_of_och_and_ney() -> None:
    # Two sentences: |A∩S| = 1 and 2, |A∩P| = 2 and 2, |A| = 3 and 2; |S| = 2 and 2.
    counts, sure = np.array([[1, 2, 3], [2, 2, 2]]), np.array([2, 2])
    assert _error(counts, sure) == pytest.approx(1 - (3 + 4) / (5 + 4))


def test_gold_links_join_words_that_the_spans_meet() -> None:
    pair = next(one for one in linked_pairs(30) if one.pair.french == "Vous étiez fières.")
    sources, targets = [(0, 4), (5, 10), (11, 17), (17, 18)], [(0, 3), (4, 8), (9, 14), (14, 15)]
    sure, possible = gold_links(pair, sources, targets)
    assert sure == possible == {(0, 0), (1, 1), (2, 2)}


def test_the_study_tries_every_method_and_says_what_it_cannot_tell() -> None:
    tokenizer = all_bytes()
    decoder = Decoder(llama_like(tokenizer.size, context=160), seed=1).eval()
    known = Translator(decoder, tokenizer, TranslationFormat())
    again = {"erasure again": lambda reading: scores(reading, "erasure")}
    record = study_attribution(known, "random weights", sentences=3, others=again)
    assert [one.method for one in record.trials] == [*METHODS, "erasure again", *CONTROLS]
    ours, other = (record.trials[METHODS.index("erasure") + place] for place in (0, 1))
    kept = ("alignment_error", "deletion", "mean_deletion")
    assert [other.to_dict()[name] for name in kept] == [ours.to_dict()[name] for name in kept]
    for one in record.trials:
        assert 0 <= one.alignment_error.low <= one.alignment_error.high <= 1
        assert len(one.deletion) == 3
    # Nothing falls further than what erasure chose for its first word.
    first = {one.method: one.deletion[0].value for one in record.trials}
    assert max(first.values()) == first["erasure"]
    assert json.loads(record.to_json())["sentences"] == 3
    assert "erasure" in written(attribution_blocks(record))
    assert len(attribution_figure(record).axes) == 2
    assert "No conclusion about which method aligns best" in record.conclusions[0].text
    other = Translator(decoder, tokenizer, TranslationFormat(languages=("de", "en")))
    with pytest.raises(InputError, match="translates de into en"):
        study_attribution(other, "other")
