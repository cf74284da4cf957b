"""The decoder against the slow reference, and the promises of its trace, packing and start."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import (
    POSITIONS,
    configs,
    random_decoder,
    random_tokens,
    reference_logits,
    small_config,
)
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import Decoder, DecoderConfig, preset
from heedful.model.config import Attention, Dropout, Norm
from heedful.model.decoder import RMSNorm

each_config = pytest.mark.parametrize(
    "config", [pytest.param(config, id=name) for name, config in configs().items()]
)
each_scheme = pytest.mark.parametrize("positions", list(POSITIONS))


@each_config
def test_logits_and_gradients_equal_the_reference(config: DecoderConfig) -> None:
    decoder = random_decoder(config)
    tokens = random_tokens(config, 2, 9)
    targets = random_tokens(config, 2, 9, seed=1)
    fast, slow = decoder(tokens), reference_logits(decoder, tokens)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-11)

    parameters = dict(decoder.named_parameters())
    gradients = [
        torch.autograd.grad(
            functional.cross_entropy(logits.flatten(0, 1), targets.flatten()),
            list(parameters.values()),
        )
        for logits in (fast, slow)
    ]
    for name, ours, theirs in zip(parameters, *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11, msg=name)


@each_config
def test_streams_at_some_places_are_those_of_the_whole_pass(config: DecoderConfig) -> None:
    decoder = random_decoder(config)
    tokens, places = random_tokens(config, 3, 7), torch.tensor([0, 4, 5, 6, 12, 20])
    some = decoder.hidden(tokens, places=places)
    same = decoder.hidden(tokens).flatten(0, 1)[places]
    torch.testing.assert_close(some, same, rtol=1e-11, atol=1e-11)

    parameters = dict(decoder.named_parameters())
    gradients = [
        torch.autograd.grad((decoder.logits(streams) ** 2).sum(), list(parameters.values()))
        for streams in (some, same)
    ]
    for name, ours, theirs in zip(parameters, *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11, msg=name)


@each_scheme
def test_changing_the_future_leaves_past_logits_untouched(positions: str) -> None:
    decoder = random_decoder(small_config(positions))
    tokens = random_tokens(decoder.config, 1, 8)
    before = decoder(tokens)
    tokens[0, 5] = (tokens[0, 5] + 1) % decoder.config.vocabulary
    after = decoder(tokens)
    torch.testing.assert_close(after[:, :5], before[:, :5], rtol=0, atol=1e-13)
    assert not torch.allclose(after[:, 5:], before[:, 5:])


@each_config
def test_a_trace_is_the_same_pass_and_explains_it(config: DecoderConfig) -> None:
    decoder = random_decoder(config)
    tokens = random_tokens(config, 2, 7)
    with torch.no_grad():
        plain, trace = decoder(tokens), decoder.trace(tokens)
    assert torch.equal(trace.logits, plain)
    assert len(trace.layers) == config.layers
    group = config.attention.heads // config.kv_heads
    before = trace.embedded
    for layer in trace.layers:
        torch.testing.assert_close(layer.weights.sum(-1), torch.ones_like(layer.weights[..., 0]))
        assert torch.equal(layer.weights, layer.weights.tril())
        read = layer.weights @ layer.values.repeat_interleave(group, dim=1)
        torch.testing.assert_close(read, layer.head_outputs, rtol=0, atol=1e-13)
        if config.norm.placement == "pre":
            assert torch.equal(layer.middle, before + layer.attended)
            assert torch.equal(layer.after, layer.middle + layer.transformed)
        before = layer.after


def test_a_trace_becomes_json() -> None:
    decoder = random_decoder(small_config(layers=1))
    record = decoder.trace(random_tokens(decoder.config, 1, 2)).to_dict()
    assert record["layers"][0]["weights"][0][0][0] == [1.0, 0.0]


@each_scheme
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_packed_documents_read_as_if_they_were_alone(
    positions: str, lengths: list[int], seed: int
) -> None:
    decoder = random_decoder(small_config(positions, context=24))
    texts = [random_tokens(decoder.config, 1, length, seed) for length in lengths]
    # Any numbers will do, as long as neighbours differ; a number may return later.
    numbers = torch.cat([torch.full((1, n), i % 2 - 1) for i, n in enumerate(lengths)], dim=1)
    with torch.no_grad():
        packed = decoder(torch.cat(texts, dim=1), documents=numbers)
        alone = torch.cat([decoder(text) for text in texts], dim=1)
    torch.testing.assert_close(packed, alone, rtol=1e-11, atol=1e-11)


def test_a_traced_packed_row_looks_at_its_own_document_only() -> None:
    decoder = random_decoder(small_config("alibi"))
    documents = torch.tensor([[0, 0, 0, 1, 1]])
    with torch.no_grad():
        trace = decoder.trace(random_tokens(decoder.config, 1, 5), documents=documents)
    for layer in trace.layers:
        assert float(layer.weights[..., 3:, :3].abs().max()) == 0.0


@given(rows=st.integers(1, 3), width=st.integers(1, 9), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_rms_norm_and_its_written_backward_equal_the_formula(
    rows: int, width: int, scale: float
) -> None:
    generator = torch.Generator().manual_seed(rows * 100 + width)
    x = torch.randn(2, rows, width, generator=generator, dtype=torch.float64) * scale
    x.requires_grad_()
    norm = RMSNorm(width, eps=1e-5).double()
    with torch.no_grad():
        norm.weight.copy_(torch.randn(width, generator=generator, dtype=torch.float64))
    upstream = torch.randn(2, rows, width, generator=generator, dtype=torch.float64)
    formula = x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5) * norm.weight
    torch.testing.assert_close(norm(x), formula)
    expected = torch.autograd.grad(formula, (x, norm.weight), upstream)
    found = torch.autograd.grad(norm(x), (x, norm.weight), upstream)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    with torch.no_grad():
        assert torch.equal(norm(x), norm(x.detach()))


def test_rms_norm_of_large_half_precision_numbers_does_not_overflow() -> None:
    norm = RMSNorm(4, eps=1e-5).half()
    with torch.no_grad():
        scaled = norm(torch.tensor([[3e4, -3e4, 3e4, -3e4]]).half())
    torch.testing.assert_close(scaled.abs().float(), torch.ones(1, 4), rtol=0, atol=2e-3)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_half_precision_follows_float32(layout: str) -> None:
    decoder = Decoder(small_config(layout, initial_std=0.1), seed=0).eval()
    tokens = random_tokens(decoder.config, 1, 6)
    with torch.no_grad():
        exact = decoder(tokens)
        rounded = decoder.bfloat16()(tokens)
    torch.testing.assert_close(rounded.float(), exact, rtol=0, atol=0.05)


def test_new_weights_have_the_spread_that_was_asked_for() -> None:
    # A standard deviation of N draws is off by more than 5/√(2N) once in two million runs.
    decoder = Decoder(preset("a5"), seed=0)
    block = decoder.blocks[0]
    for tensor, expected in (
        (decoder.embedding.weight, 0.02),
        (block.attention.qkv.weight, 0.02),
        (block.attention.output.weight, 0.02 / math.sqrt(8)),
        (block.feed_forward.down.weight, 0.02 / math.sqrt(8)),
    ):
        spread = float(tensor.detach().std()) / expected
        assert abs(spread - 1) < 5 / math.sqrt(2 * tensor.numel())
    assert float(block.attention.qkv.bias.detach().abs().max()) == 0.0


def test_a_seed_makes_the_weights() -> None:
    first, again, other = (Decoder(preset("tiny"), seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.embedding.weight, again.embedding.weight)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


@each_scheme
def test_generating_first_does_not_spoil_training(positions: str) -> None:
    # Sizes of this test's own, so that nothing it needs has been made before.
    decoder = Decoder(small_config(positions, context=300, attention=Attention(heads=3)))
    tokens = random_tokens(decoder.config, 1, 290)
    documents = torch.zeros_like(tokens)
    with torch.inference_mode():
        decoder(tokens, cache=decoder.new_cache())
        decoder.trace(tokens, documents=documents)
    decoder.trace(tokens, documents=documents).logits.sum().backward()
    decoder(tokens).sum().backward()


def test_an_untrained_decoder_predicts_almost_evenly() -> None:
    decoder = Decoder(preset("a5"), seed=0).eval()
    tokens = random_tokens(decoder.config, 4, 32)
    with torch.no_grad():
        logits = decoder(tokens)[:, :-1]
    loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    assert abs(float(loss) - math.log(256)) < 0.1


def test_dropout_acts_in_training_only() -> None:
    dropout = Dropout(embedding=0.2, attention=0.2, residual=0.2)
    decoder = Decoder(small_config(dropout=dropout), seed=0)
    tokens = random_tokens(decoder.config, 1, 8)
    with torch.no_grad():
        assert not torch.equal(decoder.train()(tokens), decoder(tokens))
        assert torch.equal(decoder.eval()(tokens), decoder(tokens))


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (torch.zeros(1, 17, dtype=torch.long), "has 17 tokens; the context of this model is 16"),
        (torch.zeros(0, 4, dtype=torch.long), "is empty (shape 0 × 4)"),
        (torch.tensor([[1, 23]]), "holds the id 23; ids 0 to 22"),
        (torch.tensor([[1, -1]]), "holds the id -1"),
    ],
)
def test_bad_tokens_are_refused(tokens: torch.Tensor, problem: str) -> None:
    with pytest.raises(InputError) as error:
        Decoder(small_config())(tokens)
    assert problem in str(error.value)


def test_documents_must_fit() -> None:
    decoder = Decoder(small_config())
    tokens = torch.zeros(1, 4, dtype=torch.long)
    with pytest.raises(InputError, match="one number for each token"):
        decoder(tokens, documents=tokens[:, :3])
    with torch.no_grad(), pytest.raises(InputError, match="together with a cache"):
        decoder(tokens, documents=tokens, cache=decoder.new_cache())


def test_a_post_norm_decoder_has_no_final_norm() -> None:
    assert Decoder(small_config(norm=Norm(placement="post"))).norm is None
    assert Decoder(small_config(attention=Attention(heads=2))).norm is not None


@pytest.mark.parametrize("config", [preset("tiny"), preset("a5", width=32)], ids=["tiny", "a5"])
def test_a_grown_decoder_begins_where_the_smaller_one_ended(config: DecoderConfig) -> None:
    before = Decoder(config.changed(layers=2), seed=0).eval()
    grown = Decoder(config.changed(layers=5, dropout=Dropout(residual=0.1)), seed=1).eval()
    grown.grow_from(before)
    tokens = torch.arange(12).view(2, 6)
    torch.testing.assert_close(grown(tokens), before(tokens), rtol=0, atol=1e-6)
    grown(tokens).sum().backward()
    new = grown.get_submodule("blocks.1")  # the old ones are layers 0 and 2
    assert new.attention.output.weight.grad.abs().max() > 0.0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"layers": 1}, "layers"),
        ({"vocabulary": 300}, "vocabulary"),
        ({"norm": Norm(kind="rms", placement="post")}, "norm"),
    ],
)
def test_other_shapes_are_no_ground_to_grow_from(changes: dict[str, object], problem: str) -> None:
    grown = Decoder(preset("tiny", **changes), seed=0)
    with pytest.raises(InputError, match=f"{problem}.* differ"):
        grown.grow_from(Decoder(preset("tiny"), seed=0))
