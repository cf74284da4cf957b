"""Greedy decoding and sampling: the right tokens, whatever runs beside them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from small_models import KINDS, VOCABULARY, in_transformers, padded, random_decoder, random_rows
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from heedful.errors import ConfigError, InputError, RunError
from heedful.generation import (
    Beams,
    FastStep,
    Greedy,
    Method,
    Sampling,
    Step,
    Stops,
    filtered,
    generate,
    stream,
)
from heedful.generation.decoding import WORTH_SHARING, Prompts, continuations
from heedful.generation.methods import draw
from heedful.model import Decoder

RAGGED = [5, 1, 9, 3, 5, 2]


@torch.inference_mode()
def slow_greedy(decoder: Decoder, prompt: list[int], limit: int, ends: set[int]) -> list[int]:
    """Read the whole text again for every token."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + limit:
        tokens.append(int(decoder(torch.tensor([tokens]))[0, -1].argmax()))
        if tokens[-1] in ends:
            break
    return tokens[len(prompt) :]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_the_likeliest_token_again_and_again(kind: str) -> None:
    decoder = random_decoder(kind)
    rows = random_rows(decoder, RAGGED)
    ends = {1, 3}
    result = generate(decoder, rows, stops=Stops(tokens=12, ends=tuple(ends)))
    for row, (found,) in zip(rows, result.continuations, strict=True):
        expected = slow_greedy(decoder, row, 12, ends)
        assert list(found.tokens) == expected
        assert found.finished == (expected[-1] in ends)
        with torch.inference_mode():
            logits = decoder(torch.tensor([row + expected]))[0, len(row) - 1 : -1]
        own = logits.log_softmax(-1).gather(1, torch.tensor(expected).view(-1, 1)).squeeze(1)
        assert found.log_probabilities == pytest.approx(own.tolist(), abs=1e-9)
        assert math.isclose(found.score, sum(own.tolist()), abs_tol=1e-8)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_greedy_gives_the_tokens_of_transformers(kind: str, tmp_path: Path) -> None:
    for seed in range(4):
        decoder = random_decoder(kind, seed, torch.float32)
        peer = in_transformers(decoder, tmp_path / str(seed))
        rows = random_rows(decoder, RAGGED, seed)
        result = generate(decoder, rows, stops=Stops(tokens=12, ends=(1,)))
        theirs = peer.generate(**padded(rows), max_new_tokens=12, eos_token_id=1, do_sample=False)
        for (ours,), row in zip(result.continuations, theirs[:, max(RAGGED) :], strict=True):
            made = row.tolist()[: len(ours.tokens)]
            assert list(ours.tokens) == made
            assert ours.finished or len(made) == 12


def test_a_row_is_the_same_alone_and_in_a_batch() -> None:
    decoder = random_decoder("llama")
    rows = random_rows(decoder, RAGGED)
    method = Sampling(temperature=1.5, samples=2, seed=4)
    stops = Stops(tokens=10, ends=(0, 1, 2))
    together = generate(decoder, rows, method=method, stops=stops)
    fewer = generate(decoder, rows[:2], method=method.changed(samples=1), stops=stops)
    for all_samples, (first,) in zip(together.continuations[:2], fewer.continuations, strict=True):
        assert all_samples[0].tokens == first.tokens
    again = generate(decoder, rows, method=method, stops=stops)
    assert again.to_json() == together.to_json()
    other = generate(decoder, rows, method=method.changed(seed=5), stops=stops)
    assert other.to_json() != together.to_json()
    assert together.continuations[2][0].tokens != together.continuations[2][1].tokens


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [Greedy(), Beams(beams=2), Sampling(samples=2)])
def test_a_common_beginning_that_is_read_once_changes_nothing(kind: str, method: Method) -> None:
    decoder = random_decoder(kind)
    (start, *ends) = random_rows(decoder, [WORTH_SHARING, 2, 2, 2])
    rows, stops = [start + end for end in ends], Stops(tokens=4)
    together = generate(decoder, rows, method=method, stops=stops).continuations
    # A longer row beside them means padding, and then nothing is shared.
    padded_rows = [*rows, [0, *rows[0]]]
    apart = generate(decoder, padded_rows, method=method, stops=stops).continuations
    for one, other in zip(together, apart[:3], strict=True):
        assert [found.tokens for found in one] == [found.tokens for found in other]
        for found, again in zip(one, other, strict=True):
            assert found.log_probabilities == pytest.approx(again.log_probabilities, abs=1e-9)


def test_no_global_random_numbers_are_used() -> None:
    decoder = random_decoder("llama")
    before = torch.get_rng_state()
    generate(decoder, [[1, 2]], method=Sampling(), stops=Stops(tokens=5))
    assert torch.equal(before, torch.get_rng_state())


def test_sampled_tokens_carry_the_models_own_log_probabilities() -> None:
    decoder = random_decoder("llama")
    method = Sampling(temperature=0.7, top_k=5)
    (found,) = generate(decoder, [[3, 4]], method=method, stops=Stops(tokens=6)).continuations[0]
    with torch.inference_mode():
        logits = decoder(torch.tensor([[3, 4, *found.tokens]]))[0, 1:-1]
    own = logits.log_softmax(-1).gather(1, torch.tensor(found.tokens).view(-1, 1)).squeeze(1)
    assert found.log_probabilities == pytest.approx(own.tolist(), abs=1e-9)


def test_top_k_one_is_greedy() -> None:
    decoder = random_decoder("gpt2")
    rows = random_rows(decoder, RAGGED)
    greedy = generate(decoder, rows, stops=Stops(tokens=8))
    sampled = generate(decoder, rows, method=Sampling(top_k=1), stops=Stops(tokens=8))
    assert [c[0].tokens for c in greedy.continuations] == [
        c[0].tokens for c in sampled.continuations
    ]


@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.sampled_from([None, 1, 3, 50]),
    top_p=st.sampled_from([0.01, 0.5, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
)
def test_filters_are_those_of_transformers(
    seed: int, temperature: float, top_k: int | None, top_p: float, min_p: float
) -> None:
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(seed)) * 3
    theirs = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k is not None:
        theirs.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        theirs.append(TopPLogitsWarper(top_p))
    if min_p > 0.0:
        theirs.append(MinPLogitsWarper(min_p))
    method = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    torch.testing.assert_close(
        filtered(logits, method), theirs(torch.zeros(3, 1), logits), rtol=0, atol=0
    )


def test_tokens_come_as_often_as_their_probabilities_say() -> None:
    """A right sampler fails this with odds of 1 in 10,000; with this seed it passes."""
    logits = torch.randn(1, 30, generator=torch.Generator().manual_seed(2)) * 1.5
    kept = filtered(logits, Sampling(temperature=0.8, top_k=12, top_p=0.95))
    count = 50_000
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    tokens = draw(kept.expand(count, -1), uniform)
    found = torch.bincount(tokens, minlength=30).double()
    expected = kept[0].double().softmax(-1) * count
    assert bool((found[expected == 0] == 0).all())
    possible = expected > 0
    assert stats.chisquare(found[possible], expected[possible]).pvalue > 1e-4


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12), st.data())
def test_a_draw_never_hits_what_was_cut(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values) - 1))
    logits = torch.tensor([values])
    logits[0, sorted(cut)] = -math.inf
    for uniform in (0.0, 0.5, 1 - 2**-53):
        token = int(draw(logits, torch.tensor([uniform], dtype=torch.float64)))
        assert 0 <= token < len(values)
        assert token not in cut


def test_streaming_gives_the_tokens_of_generate() -> None:
    decoder = random_decoder("llama")
    rows = random_rows(decoder, RAGGED)
    stops = Stops(tokens=12, ends=(0, 1, 2, 3))
    heard: list[Step] = []
    result = generate(decoder, rows, stops=stops, on_step=heard.append)
    texts: list[list[int]] = [[] for _ in rows]
    for step in stream(decoder, rows, stops=stops):
        for row, token in zip(step.rows, step.tokens, strict=True):
            texts[row].append(token)
    assert [tuple(text) for text in texts] == [c[0].tokens for c in result.continuations]
    assert sum(len(step.tokens) for step in heard) == sum(map(len, texts))
    assert len({len(text) for text in texts}) > 1  # rows ended at different steps
    assert not torch.is_inference_mode_enabled()


def test_an_abandoned_stream_leaves_nothing_switched() -> None:
    decoder = random_decoder("llama")
    steps = stream(decoder, [[1, 2, 3]])
    next(steps)
    assert not torch.is_inference_mode_enabled()
    decoder(torch.tensor([[1, 2]])).sum().backward()


def test_dropout_is_off_while_generating_and_back_afterwards() -> None:
    decoder = Decoder(
        KINDS["llama"].changed(dropout={"residual": 0.5, "attention": 0.5}), seed=0
    ).train()
    first, second = (generate(decoder, [[1, 2]], stops=Stops(tokens=6)) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert decoder.training
    with pytest.raises(InputError, match="training mode"):
        stream(decoder, [[1, 2]])


def test_the_context_is_the_end_when_no_number_is_asked_for() -> None:
    decoder = random_decoder("gpt2")
    result = generate(decoder, [[1] * 20, [1]])
    assert result.limit == 24 - 20 + 1
    assert [len(found.tokens) for (found,) in result.continuations] == [5, 5]
    full = generate(decoder, [[1] * 24])
    assert len(full.continuations[0][0].tokens) == 1


@pytest.mark.parametrize("kind", ["llama", "gpt2", "alibi"])
@pytest.mark.parametrize("method", [Greedy(), Beams(beams=3, nbest=2), Sampling(samples=2)])
def test_rows_with_limits_of_their_own_go_on_as_if_alone(kind: str, method: Method) -> None:
    decoder = random_decoder(kind)
    rows = random_rows(decoder, [3, 24, 1, 20, 7])
    limits, ends = [9, 1, 24, 5, 18], (4, 5)
    prompts = Prompts.limited(decoder.config, rows, limits, ends)
    together = continuations(decoder, prompts, method, FastStep(decoder))
    for row, limit, found in zip(rows, limits, together, strict=True):
        if isinstance(method, Sampling):  # drawn by the place in the batch
            assert all(len(one.tokens) <= limit for one in found)
            continue
        alone = generate(decoder, [row], method=method, stops=Stops(tokens=limit, ends=ends))
        assert [one.tokens for one in found] == [one.tokens for one in alone.continuations[0]]


@pytest.mark.parametrize("method", [Greedy(), Beams(beams=3), Sampling(samples=40, top_k=3)])
def test_a_suppressed_token_never_comes(method: Method) -> None:
    decoder = random_decoder("llama")
    rows = random_rows(decoder, [3, 5])

    def seen(suppressed: tuple[int, ...]) -> set[int]:
        stops = Stops(tokens=6, suppressed=suppressed)
        found = generate(decoder, rows, method=method, stops=stops).continuations
        return {token for several in found for one in several for token in one.tokens}

    free = seen(())
    assert free
    assert not seen(tuple(free)) & free


@pytest.mark.parametrize(
    ("suppressed", "said"),
    [((2,), "suppressed: holds the id 2, which ends a text"),
     ((10**6,), "suppressed: holds the id 1000000; ids 0 to")],
)  # fmt: skip
def test_what_cannot_be_suppressed_is_refused(suppressed: tuple[int, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        generate(random_decoder("llama"), [[1]], stops=Stops(ends=(2,), suppressed=suppressed))


@pytest.mark.parametrize(
    ("limits", "said"),
    [([4], "limits: are 1; one for each of 2"), ([4, 0], r"limits\[1\]: is 0"),
     ([23, 4], r"limits\[0\]: is 23, after a prompt of 3 tokens; 1 to 22 new tokens fit")],
)  # fmt: skip
def test_limits_that_do_not_fit_are_refused(limits: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Prompts.limited(KINDS["llama"], [[1, 2, 3], [1]], limits, ())


def test_int8_is_an_explicit_choice_and_says_so() -> None:
    decoder = random_decoder("llama", dtype=torch.float32)
    step = FastStep(decoder, "int8")
    result = generate(decoder, [[1, 2]], stops=Stops(tokens=5), step=step)
    assert result.precision == "int8"
    assert len(result.continuations[0][0].tokens) == 5


def test_a_step_serves_many_calls_of_its_own_decoder() -> None:
    decoder = random_decoder("llama")
    step = FastStep(decoder)
    for lengths in ([3], [2, 5, 1], [4]):
        rows = random_rows(decoder, lengths)
        kept = generate(decoder, rows, stops=Stops(tokens=6), step=step)
        assert kept.to_json() == generate(decoder, rows, stops=Stops(tokens=6)).to_json()
    with pytest.raises(InputError, match="another decoder"):
        generate(random_decoder("llama"), [[1]], step=step)


@pytest.mark.parametrize(
    ("prompts", "stops", "said"),
    [
        ([], Stops(), "at least one row of token ids"),
        ("text", Stops(), "at least one row of token ids"),
        ([[]], Stops(), r"prompts\[0\]: is empty"),
        ([[1], "ab"], Stops(), r"prompts\[1\]: is 'ab'"),
        ([[1], [2.5]], Stops(), r"prompts\[1\]: holds 2.5"),
        ([[True]], Stops(), "holds True"),
        ([[VOCABULARY]], Stops(), "holds the id 29; ids 0 to 28 were expected"),
        ([[-1]], Stops(), "holds the id -1"),
        ([[1] * 25], Stops(), "has 25 tokens; the context of this model is 24"),
        ([[1] * 20], Stops(tokens=6), "6 new tokens do not fit .* ask for at most 5"),
        ([[1]], Stops(ends=(VOCABULARY,)), "stops.ends: holds the id 29"),
    ],
)
def test_what_cannot_be_continued_is_refused(prompts: object, stops: Stops, said: str) -> None:
    decoder = random_decoder("llama")
    with pytest.raises(InputError, match=said):
        generate(decoder, prompts, stops=stops)
    with pytest.raises(InputError, match=said):
        stream(decoder, prompts, stops=stops)


@pytest.mark.parametrize(
    "settings",
    [
        lambda: Sampling(temperature=0.0),
        lambda: Sampling(temperature=math.inf),
        lambda: Sampling(top_k=0),
        lambda: Sampling(top_p=0.0),
        lambda: Sampling(top_p=1.5),
        lambda: Sampling(min_p=-0.1),
        lambda: Sampling(min_p=math.nan),
        lambda: Sampling(samples=0),
        lambda: Sampling(seed=-1),
        lambda: Beams(beams=0),
        lambda: Beams(beams=2, nbest=3),
        lambda: Beams(length_penalty=math.nan),
        lambda: Stops(tokens=0),
        lambda: Stops(ends=(-1,)),
        lambda: Greedy(temperature=1.0),
    ],
)
def test_bad_settings_are_refused_at_birth(settings: object) -> None:
    with pytest.raises(ConfigError) as caught:
        settings()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [Greedy(), Sampling(), Beams(beams=2)], ids=lambda m: m.kind)
def test_logits_that_are_no_numbers_end_the_work(method: Greedy | Sampling | Beams) -> None:
    decoder = random_decoder("llama")
    with torch.no_grad():
        decoder.embedding.weight[4] = math.nan
    with pytest.raises(RunError, match="not finite"):
        generate(decoder, [[1, 2]], method=method)
