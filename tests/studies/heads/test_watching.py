"""What is said of heads, keys and noise, against heads made by hand and slow formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import POSITIONS, small_config

from heedful.attention import attend
from heedful.model import Decoder, DecoderConfig, LayerTrace
from heedful.model.config import Attention
from heedful.stats import Estimate
from heedful.studies.heads.behaviour import IN_SIGHT, Watch, key_sets, watch_repeats
from heedful.studies.heads.keys import KeyWatch, equal_norms, equivalent_beta, token_spreads
from heedful.studies.heads.robustness import (
    LossBatch,
    NoiseWatch,
    disturbed,
    losses_without,
    measure_robustness,
    wrapped,
)
from heedful.studies.heads.sample import Amount, Row, Sample, text_rows
from heedful.studies.heads.small_models import sign_verdict


def a_decoder(positions: str = "interleaved", **changes: Any) -> Decoder:
    return Decoder(small_config(positions, **changes), seed=0).eval()


def a_sample(config: DecoderConfig, rows: int = 3, length: int = 12, seed: int = 0) -> Sample:
    drawn = np.random.default_rng(seed).integers(0, config.vocabulary, (rows, length))
    return Sample(name="random", rows=tuple(Row(tokens=tuple(map(int, row))) for row in drawn))


def watched(decoder: Decoder, sample: Sample, *watches: Any) -> None:
    for row in sample.rows:

        def see(layer: int, trace: LayerTrace, row: Row = row) -> None:
            for watch in watches:
                watch.see(layer, trace, row)

        with torch.no_grad():
            decoder.visit(row.tensor(), see)


def made_trace(weights: Any) -> LayerTrace:
    """A layer in which every head has these weights; nothing else is looked at."""
    weights = torch.as_tensor(weights, dtype=torch.float64)
    heads, time, _ = weights.shape
    nothing, stream = torch.zeros(1, heads, time, 4), torch.zeros(1, time, 4)
    return LayerTrace(
        queries=nothing,
        keys=nothing,
        values=nothing,
        weights=weights.unsqueeze(0),
        head_outputs=nothing,
        attended=stream,
        middle=stream,
        transformed=stream,
        after=stream,
        mask=None,
        bias=None,
    )


@pytest.mark.parametrize("positions", POSITIONS)
def test_visited_layers_are_those_of_the_trace(positions: str) -> None:
    decoder = a_decoder(positions)
    tokens = a_sample(decoder.config, 1).rows[0].tensor()
    seen: list[LayerTrace] = []
    with torch.no_grad():
        trace = decoder.trace(tokens)
        logits = decoder.visit(tokens, lambda layer, one: seen.append(one))
    assert torch.equal(logits, trace.logits)
    for one, other in zip(seen, trace.layers, strict=True):
        assert torch.equal(one.weights, other.weights)
        assert torch.equal(one.weights_of(one.keys), other.weights)
        assert torch.equal(one.after, other.after)


def test_heads_made_by_hand_get_their_names() -> None:
    time = 20
    tokens = tuple(range(10)) * 2
    row = Row(tokens=tokens, source=(1, 9))
    sets = key_sets(row)
    rows = torch.arange(time)
    made = {
        "previous": torch.eye(time).roll(-1, dims=1).tril(-1),
        "self": torch.eye(time),
        "first": torch.zeros(time, time),
        "source": torch.zeros(time, time),
        "diffuse": torch.ones(time, time).tril() / (rows + 1).view(-1, 1),
    }
    made["first"][:, 0] = 1
    for query in range(9, time):  # reads the source from left to right
        made["source"][query, 1 + (query - 9) * 7 // 10] = 1
    watch = Watch(a_decoder(layers=1, attention=Attention(heads=6)))
    weights = torch.stack([*made.values(), made["diffuse"]])
    watch.see(0, made_trace(weights), row)
    watch.see_repeated(0, made_trace(weights), 10, 0)

    found = watch.behaviour().heads
    assert [head.looks_for for head in found] == [*list(made)[:-1], "", ""]
    assert [head.kind for head in found[:3]] == ["copies"] * 3
    assert found[4].kind == "diffuse"
    assert math.isclose(found[4].effective_keys.value, np.mean(range(IN_SIGHT, time)), rel_tol=0.2)
    assert sets["duplicate"][13].nonzero().flatten().tolist() == [3]
    assert sets["induction"][13].nonzero().flatten().tolist() == [4]


def test_a_head_that_reads_evenly_does_not_follow_the_source() -> None:
    time, end = 24, 12
    row = Row(tokens=tuple(range(time)), source=(1, end))
    even = torch.ones(time, time).tril()
    leaning = even.clone()
    for query in range(end, time):  # a thousandth more on the place that answers to this one
        leaning[query, 1 + (query - end) * 10 // 11] += 0.001
    following = leaning.clone()
    for query in range(end, time):
        following[query, 1 + (query - end) * 10 // 11] += 20
    weights = torch.stack([even, leaning, following])
    watch = Watch(a_decoder(layers=1, width=24, attention=Attention(heads=3)))
    watch.see(0, made_trace(weights / weights.sum(dim=-1, keepdim=True)), row)
    found = watch.behaviour()
    assert [head.looks_for for head in found.heads] == ["", "", "source"]
    leans, follows = found.heads[1], found.heads[2]
    assert leans.follows is not None
    assert leans.moves is not None
    assert follows.moves is not None
    assert leans.follows.value > 0.9 > 0.01 > leans.moves.value
    assert 0.5 < follows.moves.value < 1
    # What an even reader puts on a set is called chance.
    masses = found.heads[0].masses
    for name in ("previous", "first", "source"):
        assert math.isclose(found.chance[name], masses[name].value, rel_tol=1e-6)


@pytest.mark.parametrize(("shift", "name"), [(0, "duplicate"), (1, "induction")])
def test_a_head_that_finds_the_earlier_copy_is_recognised(shift: int, name: str) -> None:
    length = 8
    weights = torch.zeros(6, 2 * length, 2 * length)
    for query in range(length, 2 * length):
        weights[:, query, query - length + shift] = 1
    weights[:, :length, 0] = 1
    watch = Watch(a_decoder(layers=1, attention=Attention(heads=6)))
    watch.see(0, made_trace(weights), Row(tokens=tuple(range(length)) * 2))
    watch.see_repeated(0, made_trace(weights), length, 0)
    assert watch.behaviour().heads[0].looks_for == name


def test_masses_are_those_of_attention_itself() -> None:
    decoder = a_decoder("none")
    sample = a_sample(decoder.config, rows=1)
    watch = Watch(decoder)
    watched(decoder, sample, watch)
    with torch.no_grad():
        trace = decoder.trace(sample.rows[0].tensor()).layers[1]
    group = decoder.config.attention.heads // decoder.config.kv_heads
    length = len(sample.rows[0].tokens)
    for head in range(decoder.config.attention.heads):
        reading = attend(
            trace.queries[0, head],
            trace.keys[0, head // group],
            scale="sqrt_d",
            mask=torch.ones(length, length, dtype=torch.bool).tril(),
        )
        effective = reading.effective_keys[IN_SIGHT - 1 :]
        found = watch.behaviour().heads[decoder.config.attention.heads + head]
        assert math.isclose(found.effective_keys.value, float(effective.mean()), rel_tol=1e-6)


def test_repeats_leave_one_number_a_row() -> None:
    decoder = a_decoder()
    sample, watch = a_sample(decoder.config), Watch(decoder)
    watched(decoder, sample, watch)
    watch_repeats(decoder, sample, watch)
    head = watch.behaviour().heads[0]
    assert head.masses["induction"].count == 4
    assert 0 <= head.masses["induction"].value <= 1
    assert sum(head.kinds.values()) == pytest.approx(1)
    assert len(head.by_position) == 12


def test_norms_and_their_effect_follow_the_definition() -> None:
    decoder = a_decoder("none")
    sample = a_sample(decoder.config, rows=1)
    watch = KeyWatch(decoder, margins=4)
    watched(decoder, sample, watch)
    keys = watch.keys()
    with torch.no_grad():
        trace = decoder.trace(sample.rows[0].tensor()).layers[0]
    norms = trace.keys[0, 0].double().norm(dim=-1)
    one = keys.norms[0]
    assert one.mean == pytest.approx(float(norms.mean()))
    assert one.spread == pytest.approx(float(norms.std(unbiased=False) / norms.mean()))
    equal = equal_norms(trace.keys[0].double())
    moved = []
    for head in range(3):
        for query in range(IN_SIGHT - 1, 12):
            q = trace.queries[0, head, query].double()
            before = attend(q, trace.keys[0, 0, : query + 1].double(), scale="sqrt_d").weights
            after = attend(q, equal[0, : query + 1], scale="sqrt_d").weights
            moved.append(float((before - after).abs().sum()) / 2)
    assert one.effect.value == pytest.approx(np.mean(moved), abs=1e-5)


def test_no_query_leads_by_more_than_its_norm_times_the_margin() -> None:
    decoder = a_decoder()
    watch = KeyWatch(decoder, margins=12)
    watched(decoder, a_sample(decoder.config, rows=1), watch)
    attended = watch.keys().attended
    assert len(attended) == 12
    for key in attended:
        assert key.lead <= key.best_lead + 1e-5 or not key.copyable
        assert equivalent_beta(key.mass, key.in_sight) == key.equivalent_beta


def test_adding_one_vector_to_all_keys_changes_norms_but_not_the_centred_effect() -> None:
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(2, 9, 4, generator=generator, dtype=torch.float64)
    shifted = keys + torch.tensor([5.0, 0.0, -3.0, 1.0])
    centred = [equal_norms(part - part.mean(dim=1, keepdim=True)) for part in (keys, shifted)]
    torch.testing.assert_close(*centred)


def test_spreads_within_and_across_tokens() -> None:
    row = Row(tokens=(9, 1, 2, 1, 2))
    constant = token_spreads([(row, np.array([7.0, 1.0, 3.0, 1.0, 3.0]))])
    assert constant == (0.0, pytest.approx(0.5))
    assert token_spreads([(Row(tokens=(0, 1, 2)), np.ones(3))]) == (None, None)


@given(seed=st.integers(0, 50))
@settings(max_examples=10)
def test_disturbed_keys_keep_their_direction(seed: int) -> None:
    keys = torch.randn(1, 3, 5, 4, generator=torch.Generator().manual_seed(seed))
    changed = disturbed(keys, torch.Generator().manual_seed(seed), shared=True)
    cosines = torch.nn.functional.cosine_similarity(keys, changed, dim=-1)
    torch.testing.assert_close(cosines.abs(), torch.ones_like(cosines))
    factors = (changed / keys)[0, :, :, 0]
    torch.testing.assert_close(factors[0], factors[1])


def test_without_noise_nothing_changes_and_ablation_is_exact() -> None:
    decoder = a_decoder()
    sample = a_sample(decoder.config)
    batch = LossBatch.of(sample)
    noise = NoiseWatch(decoder, draws=2)
    watched(decoder, sample, noise)
    kernels = [block.attention.kernel for block in decoder.blocks]
    found = measure_robustness(decoder, batch, noise, work=1e15)
    assert [block.attention.kernel for block in decoder.blocks] == kernels
    assert found.measured == len(found.ablations) == 12
    silent = Decoder(decoder.config, seed=0).eval()
    with torch.no_grad():
        width = decoder.config.head_width
        silent.blocks[1].attention.output.weight[:, 2 * width : 3 * width] = 0
        expected = batch.losses(silent) - batch.losses(decoder)
        measured = losses_without(decoder, batch, 1, 2) - batch.losses(decoder)
    torch.testing.assert_close(measured, expected, rtol=1e-4, atol=1e-5)
    one = next(one for one in found.ablations if (one.layer, one.head) == (1, 2))
    assert one.exact is not None
    assert one.exact.value == pytest.approx(float(expected.mean()), abs=1e-5)
    with torch.no_grad(), wrapped(decoder, lambda _layer, kernel: kernel):
        assert batch.estimate(batch.losses(decoder)).value == pytest.approx(found.loss.value)


def test_the_loss_of_a_translation_counts_its_target_only() -> None:
    decoder = a_decoder()
    row = Row(tokens=(1, 2, 3, 4, 5, 6), source=(1, 3))
    batch = LossBatch.of(Sample(name="x", rows=(row, Row(tokens=(1, 2), source=(0, 0)))))
    assert batch.targets.tolist() == [[-100, -100, -100, 5, 6], [2, -100, -100, -100, -100]]
    with torch.no_grad():
        logits = decoder(row.tensor())[0].log_softmax(dim=-1)
        losses = batch.losses(decoder)
    assert float(losses[0]) == pytest.approx(-float(logits[3, 5]), abs=1e-5)


def test_a_sign_is_judged_by_the_whole_interval() -> None:
    assert sign_verdict(Estimate.of([1.0, 1.1, 1.2])) == "refuted"
    assert sign_verdict(Estimate.of([-1.0, 1.1, 0.2])) == "undecided"


def test_rows_fit_the_context() -> None:
    rows = text_rows(range(100), Amount(rows=3, tokens=50), 16, begin=0)
    assert [len(row.tokens) for row in rows] == [16, 16, 16]
    assert text_rows(range(3), Amount(), 16) == ()
