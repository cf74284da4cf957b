"""However the work is laid out, the gradient is that of one batch."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_training import Numbers, small_config
from torch.nn import functional

from heedful.machine import peak_flops
from heedful.model import Decoder, flops_per_token
from heedful.model.config import Dropout
from heedful.model.cost import unlearned_flops
from heedful.training import Compute
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice, Lanes, Single, choose
from heedful.training.feed import Rows, rows_of
from heedful.training.loss import Objective
from heedful.training.randomness import Stream, StreamAttention, StreamDropout, draw_from, keeping
from heedful.training.session import Session, measured


def plain_decoder(**changes: Any) -> Decoder:
    config = small_config().model.changed(dropout=Dropout(), **changes)
    return Decoder(config, seed=1).double()


def oracle(decoder: Decoder, batches: list[Rows], smoothing: float = 0.0) -> float:
    """Leave the gradient of the mean loss on the parameters, in the slow and obvious way."""
    decoder.zero_grad()
    losses = []
    for batch in batches:
        for row in range(len(batch)):
            documents = None if batch.documents is None else batch.documents[row : row + 1]
            logits = decoder(batch.tokens[row : row + 1], documents=documents)[0]
            for place, target in enumerate(batch.targets[row].tolist()):
                if target != -100:
                    log_p = logits[place].log_softmax(-1)
                    losses.append(-(1 - smoothing) * log_p[target] - smoothing * log_p.mean())
    loss = torch.stack(losses).mean()
    loss.backward()
    return float(loss.detach())


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("lanes", "micro_rows"), [(1, None), (1, 2), (2, None), (3, 1), (9, None)])
def test_lanes_compute_the_gradient_of_the_whole(
    lanes: int, micro_rows: int | None, smoothing: float
) -> None:
    batches = [rows_of(Numbers().batch(index)) for index in (0, 3)]
    reference, decoder = plain_decoder(), plain_decoder()
    expected = oracle(reference, batches, smoothing)
    objective = Objective(decoder, smoothing, "float32")
    engine = Lanes(objective, [Stream(lane) for lane in range(lanes)], micro_rows=micro_rows)
    count = sum(batch.learned for batch in batches)
    found = engine.gradients(batches, count) / count
    engine.close()
    assert found == pytest.approx(expected, rel=1e-6)  # the loss itself is taken in float32
    for (name, one), two in zip(reference.named_parameters(), decoder.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize(("lanes", "micro_rows"), [(1, None), (1, 2), (2, None), (3, 1)])
@pytest.mark.parametrize("tied", [True, False])
def test_matrices_rounded_once_a_step_give_the_gradient_of_rounding_them_each_time(
    lanes: int, micro_rows: int | None, tied: bool
) -> None:
    batch = rows_of(Numbers().batch(0))
    decoder = plain_decoder(tied=tied).float()
    expected: list[torch.Tensor] | None = None
    for part in batch.split(lanes, micro_rows):
        plain = Objective(plain_decoder(tied=tied).float(), 0.0, "bfloat16")
        draw_from(plain.decoder, Stream(0))
        for piece in part:  # torch's autocast rounds all weights here, for every piece
            (plain(piece.tokens, piece.targets, piece.documents) / batch.learned).backward()
        found = [parameter.grad for parameter in plain.parameters()]
        assert all(gradient is not None for gradient in found)
        if expected is not None:
            found = [one + two for one, two in zip(expected, found, strict=True)]
        expected = found
    engine = Lanes(
        Objective(decoder, 0.0, "bfloat16"),
        [Stream(lane) for lane in range(lanes)],
        micro_rows=micro_rows,
    )
    for _ in range(2):  # the second step rounds anew
        engine.gradients([batch], batch.learned)
        assert expected is not None
        for one, two in zip(expected, decoder.parameters(), strict=True):
            assert two.grad is not None
            assert two.grad.dtype == torch.float32
            assert torch.equal(one, two.grad)
    with torch.no_grad():
        decoder.blocks[0].attention.output.weight.zero_()
    engine.gradients([batch], batch.learned)
    changed = decoder.blocks[0].feed_forward.up.weight.grad
    engine.close()
    assert changed is not None
    names = [name for name, _ in decoder.named_parameters()]
    before = expected[names.index("blocks.0.feed_forward.up.weight")]
    assert not torch.equal(changed, before)


def test_a_single_objective_gives_the_same_gradient() -> None:
    batches = [rows_of(Numbers().batch(0))]
    reference, decoder = plain_decoder(), plain_decoder()
    oracle(reference, batches)
    exchanged: list[bool] = []
    engine = Single(
        Objective(decoder, 0.0, "float32"),
        micro_rows=4,
        ranks=1,
        exchange=exchanged.append,
    )
    engine.gradients(batches, batches[0].learned)
    assert exchanged == [False, True]
    for one, two in zip(reference.parameters(), decoder.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-4, atol=1e-6)


def test_documents_are_left_out_where_the_causal_rule_is_enough() -> None:
    arrays = Numbers().batch(0)
    assert rows_of(arrays).documents is not None
    alone = type(arrays)(arrays.tokens[1:], arrays.targets[1:], arrays.documents[1:])
    rows = rows_of(alone)
    assert rows.documents is None
    with_documents = Rows(rows.tokens, rows.targets, torch.from_numpy(alone.documents))
    one, two = plain_decoder(), plain_decoder()
    assert oracle(one, [rows]) == pytest.approx(oracle(two, [with_documents]), rel=1e-12)
    for first, second in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(first.grad, second.grad, rtol=1e-9, atol=1e-12)


@given(rows=st.integers(1, 12), parts=st.integers(1, 5), most=st.integers(1, 4) | st.none())
def test_split_rows_are_all_rows_in_order(rows: int, parts: int, most: int | None) -> None:
    batch = rows_of(Numbers(rows=max(rows, 2)).batch(0)).take(slice(0, rows))
    pieces = [piece for part in batch.split(parts, most) for piece in part]
    assert torch.equal(torch.cat([piece.tokens for piece in pieces]), batch.tokens)
    assert all(1 <= len(piece) <= (most or rows) for piece in pieces)


@given(rate=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_dropout_drops_its_share_and_keeps_the_mean(rate: float, seed: int) -> None:
    kept = keeping(torch.empty(20_000), rate, Stream(seed))
    share = float((kept == 0).double().mean())
    # Six standard deviations: less than one false alarm in 10⁸ draws.
    assert abs(share - rate) < 6 * math.sqrt(rate * (1 - rate) / 20_000) + 1 / 65_536
    assert float(kept.max()) == pytest.approx(1 / (1 - rate), rel=1e-3)


def test_dropout_sleeps_outside_of_training() -> None:
    x = torch.randn(50)
    layer = StreamDropout(0.5, Stream(0))
    assert not torch.equal(layer(x), x)
    assert torch.equal(layer.eval()(x), x)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_dropout_averages_to_attention_without(masked: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    queries = torch.randn(1, 4, 6, 8, generator=generator)
    keys, values = (torch.randn(1, 2, 6, 8, generator=generator) for _ in range(2))
    mask = torch.ones(6, 6, dtype=torch.bool).tril().view(1, 1, 6, 6) if masked else None
    settings: dict[str, Any] = {
        "attn_mask": mask,
        "is_causal": not masked,
        "enable_gqa": True,
    }
    expected = functional.scaled_dot_product_attention(queries, keys, values, **settings)
    kernel = StreamAttention(Stream(0))
    assert torch.equal(kernel(queries, keys, values, **settings), expected)
    draws = torch.stack(
        [kernel(queries, keys, values, dropout_p=0.2, **settings) for _ in range(4_000)]
    )
    error = draws.std(0) / math.sqrt(len(draws))
    # 192 entries at six standard errors: less than one false alarm in a million seeds.
    assert bool(((draws.mean(0) - expected).abs() <= 6 * error + 1e-6).all())


def test_lanes_with_dropout_repeat_exactly() -> None:
    def gradient() -> list[torch.Tensor]:
        session = Session(
            small_config(),
            Numbers(),
            SingleProcess(),
            Choice(precision="float32", lanes=3, compiled=False),
        )
        session.take_step()
        session.close()
        return [value.detach().clone() for value in session.parameters.values()]

    assert all(torch.equal(one, two) for one, two in zip(gradient(), gradient(), strict=True))


def test_a_trial_takes_time_and_nothing_else() -> None:
    choice = Choice(precision="float32", lanes=2, compiled=False)
    assert measured(small_config(), Numbers(), choice) > 0


def test_the_peak_is_of_the_precision_and_leaves_no_trace() -> None:
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    peaks = [peak_flops(precision, threads) for precision in ("float32", "bfloat16")]
    assert min(peaks) > 0
    assert peaks == [peak_flops(precision, threads) for precision in ("float32", "bfloat16")]
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_operations_count_what_unlearned_tokens_save() -> None:
    config, feed = small_config(), Numbers()
    session = Session(
        config, feed, SingleProcess(), Choice(precision="float32", lanes=1, compiled=False)
    )
    step = session.take_step()
    session.close()
    batch = feed.batch(0)
    learned = int((batch.targets >= 0).sum())
    assert learned < step.real == int((batch.documents >= 0).sum())
    whole = flops_per_token(config.model, feed.width, training=True)
    saved = unlearned_flops(config.model)
    assert step.flops == whole * learned + (whole - saved) * (step.real - learned)


class Clock:
    """A machine on which every way of computing takes a known time."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[str] = []

    def __call__(self, choice: Choice) -> float:
        name = "compiled" if choice.compiled else f"{choice.precision}{choice.lanes}"
        self.asked.append(name)
        return self.seconds[name]


def test_the_fastest_way_is_chosen_by_measuring() -> None:
    clock = Clock(float321=1.0, float322=0.8, bfloat162=0.7, compiled=2.0)
    trial = choose(Compute(), 1_000, 2, clock, gain=lambda: 2.0)
    assert trial.chosen == Choice(precision="bfloat16", lanes=2, compiled=False)
    assert clock.asked == ["float321", "float322", "bfloat162", "compiled"]
    assert len(trial.seconds) == 4


def test_bfloat16_is_not_even_tried_where_its_products_are_slow() -> None:
    clock = Clock(float321=1.0, float322=0.8, compiled=2.0)
    trial = choose(Compute(), 1_000, 2, clock, gain=lambda: 0.3)
    assert trial.chosen == Choice(precision="float32", lanes=2, compiled=False)
    assert "bfloat16" not in " ".join(clock.asked)


def test_a_processor_without_bfloat16_trains_in_float32() -> None:
    # oneDNN can be told not to use what the processor has; it reads that when torch is loaded.
    code = (
        "from heedful.machine import bfloat16_gain, measured_speed\n"
        "from heedful.training.config import Compute\n"
        "from heedful.training.engine import choose\n"
        "trial = choose(Compute(), 1_000, 1, lambda way: 1e-6)\n"
        "print(trial.chosen.precision, list(trial.seconds), bfloat16_gain() < 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["float32", "['float32,", "1", "lane']", "True"]


def test_threads_do_not_spin_unless_somebody_wants_them_to() -> None:
    code = "import os, heedful; print(os.environ.get('GOMP_SPINCOUNT'))"
    for wanted, found in (({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7")):
        names = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
        clean = {name: value for name, value in os.environ.items() if name not in names}
        done = subprocess.run(
            [sys.executable, "-c", code], env=clean | wanted, capture_output=True, text=True
        )
        assert done.stdout.strip() == found


def test_a_gain_within_noise_changes_nothing() -> None:
    clock = Clock(float321=1.0, float322=0.98, bfloat161=0.99, compiled=0.975)
    trial = choose(Compute(), 1_000, 2, clock, gain=lambda: 2.0)
    assert trial.chosen == Choice(precision="float32", lanes=1, compiled=False)


def test_what_the_config_decides_is_not_measured() -> None:
    clock = Clock(float321=1.0)
    forced = choose(Compute(lanes=4, precision="float32", compile=False), 1_000, 2, clock)
    assert forced.chosen.lanes == 4
    short = choose(Compute(), 50, 2, clock)
    assert (short.chosen.lanes, short.chosen.precision) == (1, "float32")
    assert clock.asked == []
    clock = Clock(float321=0.001, float322=0.0005, bfloat162=0.01)
    assert choose(Compute(), 1_000, 2, clock, gain=lambda: 2.0).chosen.lanes == 2
    assert "compiled" not in clock.asked  # one second of training: not worth half a minute
    compiled = choose(Compute(compile=True, lanes=8, precision="float32"), 10, 2, clock)
    assert (compiled.chosen.compiled, compiled.chosen.lanes) == (True, 1)
