"""Tokens that can never be predicted, and what is known about order: against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import POSITIONS, small_config

from heedful.attention import copyable
from heedful.errors import InputError
from heedful.model import Decoder
from heedful.model.config import Attention, Norm
from heedful.studies.heads.order import order_tests, probe_positions, stream_function
from heedful.studies.heads.predictable import OutputLayer, best_in_ball, decide, predictable_tokens
from heedful.studies.heads.small_models import find_witness, reachable_directions


def plane(seed: int, tokens: int, shift: float) -> OutputLayer:
    """An output layer over a disk, in which brute force can look everywhere."""
    random = np.random.default_rng(seed)
    return OutputLayer(
        random.normal(size=(tokens, 2)), shift * random.normal(size=tokens), 1.5, "a disk"
    )


def winners(layer: OutputLayer) -> set[int]:
    angles, sizes = np.linspace(0, 2 * np.pi, 361), np.linspace(0.01, layer.radius * 0.999, 30)
    y = np.stack([np.outer(sizes, turn(angles)).ravel() for turn in (np.cos, np.sin)], axis=1)
    return set((y @ layer.a.T + layer.c).argmax(axis=1).tolist())


@given(seed=st.integers(0, 200), tokens=st.integers(3, 12), shift=st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=15)
def test_what_can_win_wins_somewhere_and_what_never_can_never_does(
    seed: int, tokens: int, shift: float
) -> None:
    layer = plane(seed, tokens, shift)
    decided = decide(layer)
    found = winners(layer)
    assert not found & set(np.flatnonzero(decided.never).tolist())
    assert found <= set(np.flatnonzero(decided.can | decided.open).tolist())
    assert int(decided.open.sum()) <= 1  # only what touches the edge of winning
    for token in np.flatnonzero(decided.can).tolist():
        best = best_in_ball(layer.a, layer.c, token, layer.radius)
        assert best.lead > 0
        leads = layer.a[token] @ best.y + layer.c[token] - layer.a @ best.y - layer.c
        assert np.delete(leads, token).min() == pytest.approx(best.lead)
        assert np.linalg.norm(best.y) <= layer.radius * (1 + 1e-12)


def test_without_constants_the_question_is_which_rows_are_corners() -> None:
    layer = plane(3, 30, 0.0)
    assert np.array_equal(decide(layer).can, copyable(layer.a).copyable)


def test_equal_rows_tie_and_a_row_inside_never_wins() -> None:
    a = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.1, 0.1], [1.0, 0.0]])
    for c in (np.zeros(5), np.array([0.2, 0.0, 0.0, 0.0, 0.2])):
        decided = decide(OutputLayer(a, c, 2.0, ""))
        assert decided.tie.tolist() == [True, False, False, False, True]
        assert decided.never.tolist() == [False, False, False, True, False]
        assert decided.can.tolist() == [False, True, True, False, False]


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_output_layer_is_what_the_decoder_computes(kind: str, placement: str) -> None:
    norm = Norm.model_validate({"kind": kind, "placement": placement})
    decoder = Decoder(small_config(norm=norm), seed=1).double().eval()
    last = decoder.norm if decoder.norm is not None else decoder.blocks[-1].feed_forward_norm
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        last.weight.normal_(1.0, 0.3, generator=generator)
        if kind == "layer":
            last.bias.normal_(0.0, 0.5, generator=generator)
        stream = torch.randn(5, 24, generator=generator, dtype=torch.float64)
        logits = decoder.logits(last(stream)).numpy()
    layer = OutputLayer.of(decoder)
    centred = stream.numpy()
    if kind == "layer":
        centred = centred - centred.mean(axis=1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + decoder.config.norm.eps)
    assert (np.linalg.norm(y, axis=1) < layer.radius).all()
    np.testing.assert_allclose(y @ layer.a.T + layer.c, logits, atol=1e-10)
    assert layer.level == (kind == "rms")


def test_no_text_makes_a_never_token_the_most_likely() -> None:
    config = small_config("none", vocabulary=60, width=6, attention=Attention(heads=2))
    decoder = Decoder(config, seed=0).eval()
    found = predictable_tokens(decoder)
    assert found.can + found.never + found.tie + found.open == 60
    assert found.never > 0
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        tokens = torch.randint(0, 60, (64, 16), generator=generator)
        predicted = set(decoder(tokens).argmax(dim=-1).flatten().tolist())
    assert predicted.isdisjoint(token.id for token in found.never_tokens)


def test_few_searches_leave_keys_open_and_never_guess() -> None:
    keys = np.random.default_rng(0).normal(size=(400, 8))
    whole, hurried = copyable(keys), copyable(keys, searches=0)
    assert set(hurried.undecided) >= set(np.flatnonzero(~whole.copyable).tolist())
    assert not (hurried.copyable & ~whole.copyable).any()
    with pytest.raises(InputError, match="searches"):
        copyable(keys, searches=-1)


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_without_positions_and_mask_is_a_decoder_equivariant(positions: str) -> None:
    decoder = Decoder(small_config(positions), seed=0).eval()
    masked, free = order_tests(decoder, length=4, trials=2)
    assert not masked.holds
    assert free.holds == (positions == "none")


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_decoder_as_a_function_of_embeddings_is_the_decoder(positions: str) -> None:
    decoder = Decoder(small_config(positions), seed=0).eval()
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        expected = decoder.hidden(tokens)[0]
        found = stream_function(decoder, masked=True)(decoder.embedding.weight[tokens[0]])
    torch.testing.assert_close(found, expected)


def test_a_probe_finds_positions_that_are_added_and_none_in_embeddings_alone() -> None:
    added = probe_positions(
        Decoder(small_config("sinusoidal", initial_std=0.02), seed=0).eval(), rows=(24, 8, 12)
    )
    nothing = probe_positions(Decoder(small_config("none"), seed=0).eval(), rows=(24, 8, 12))
    assert added.r2[0].value > 0.8
    assert abs(nothing.r2[0].value) < 0.2
    assert len(added.r2) == 3
    assert added.best.value >= added.r2[-1].value


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_equally_long_streams_have_keys_of_very_different_norms(kind: str) -> None:
    norm = Norm.model_validate({"kind": kind, "bias": False})
    decoder = Decoder(small_config(norm=norm), seed=0).eval()
    witness = find_witness(decoder)
    assert witness is not None
    assert witness.stream_norms[0] == pytest.approx(witness.stream_norms[1])
    assert witness.key_norms[1] < 1e-9 < witness.key_norms[0]
    assert witness.kernel == 24 - 4 - (kind == "layer")
    basis = reachable_directions(24, kind)
    torch.testing.assert_close(basis.T @ basis, torch.eye(basis.shape[1], dtype=torch.float64))
    assert kind == "rms" or float(basis.sum(dim=0).abs().max()) < 1e-12
