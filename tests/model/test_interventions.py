"""Interventions: what they do in every kind of decoder, and that none of them does nothing."""

from __future__ import annotations

import pytest
import torch
from small_models import KINDS
from torch import Tensor

from heedful.errors import InputError
from heedful.generation import FastStep, Stops, generate
from heedful.model import (
    PLACES,
    Decoder,
    Intervention,
    ablate,
    freeze,
    knock_out,
    patch,
    replace,
    scale,
    steer,
    value_at,
)


def decoder_of(kind: str = "llama") -> Decoder:
    """A random decoder in float64."""
    return Decoder(KINDS[kind], seed=3).double().eval()


def row(seed: int, length: int = 7, vocabulary: int = 5) -> Tensor:
    """Token ids that every kind of decoder knows."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(vocabulary, (1, length), generator=generator)


def where(place: str, layer: int = 0) -> dict[str, object]:
    """The place, in the first layer where it belongs to one."""
    return {"place": place} | ({} if place in ("embedded", "final") else {"layer": layer})


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_patching_the_whole_stream_gives_the_other_text(kind: str) -> None:
    decoder, text, other = decoder_of(kind), row(0), row(1)
    expected = decoder(other)
    for change in (
        patch("embedded", other),
        patch("before", other, layer=1),
        patch("after", other, layer=0),
        patch("final", other),
    ):
        with decoder.intervene(change):
            torch.testing.assert_close(decoder(text), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
@torch.no_grad()
def test_writing_out_what_is_there_changes_nothing_beyond_rounding(kind: str, place: str) -> None:
    decoder, text = decoder_of(kind), row(0)
    plain = decoder(text)
    now = value_at(decoder, text, **where(place))  # type: ignore[arg-type]
    with decoder.intervene(replace(change=now, **where(place)), strict=False):  # type: ignore[arg-type]
        torch.testing.assert_close(decoder(text), plain)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_a_head_without_its_output_columns_is_an_ablated_head(kind: str) -> None:
    decoder, text = decoder_of(kind), row(0)
    with decoder.intervene(ablate("head_outputs", layer=1, head=1)):
        changed = decoder(text)
    width = decoder.config.head_width
    decoder.blocks[1].attention.output.weight[:, width : 2 * width] = 0  # type: ignore[union-attr, index]
    torch.testing.assert_close(changed, decoder(text))


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_steps_of_generation_see_the_same_change_as_whole_texts(kind: str) -> None:
    decoder = Decoder(KINDS[kind], seed=3).eval()
    prompt, changes = (
        row(2, 4),
        (ablate("head_outputs", layer=0, head=0), scale("after", 0.5, layer=1)),
    )
    with decoder.intervene(*changes):
        for step in (None, FastStep(decoder)):
            result = generate(decoder, prompt.tolist(), stops=Stops(tokens=5), step=step)
            tokens = prompt
            for _ in range(5):
                tokens = torch.cat([tokens, decoder(tokens)[:, -1:].argmax(-1)], dim=1)
            assert list(result.continuations[0][0].tokens) == tokens[0, 4:].tolist()


@torch.no_grad()
def test_a_position_means_the_same_token_with_a_cache_and_without() -> None:
    decoder, text = decoder_of(), row(0)
    change = steer("after", torch.ones(decoder.config.width), layer=0, positions=4)
    with decoder.intervene(change):
        whole = decoder(text)
        cache = decoder.new_cache()
        steps = torch.cat([decoder(text[:, [place]], cache=cache) for place in range(7)], dim=1)
    torch.testing.assert_close(steps, whole)
    torch.testing.assert_close(whole[:, :4], decoder(text)[:, :4])


@torch.no_grad()
def test_a_key_that_is_knocked_out_gets_no_weight_and_the_others_share_it() -> None:
    decoder, text = decoder_of(), row(0)
    before = decoder.trace(text).layers[1].weights
    with decoder.intervene(knock_out(0, layer=1, head=2, queries=range(1, 7))):
        after = decoder.trace(text).layers[1].weights
    assert torch.equal(after[:, 2, 1:, 0], torch.zeros(1, 6, dtype=torch.float64))
    torch.testing.assert_close(after.sum(-1), torch.ones_like(after.sum(-1)))
    expected = before[:, 2, 1:, 1:] / before[:, 2, 1:, 1:].sum(-1, keepdim=True)
    torch.testing.assert_close(after[:, 2, 1:, 1:], expected)


@torch.no_grad()
def test_frozen_weights_are_those_of_the_other_text() -> None:
    decoder, text, other = decoder_of("alibi"), row(0), row(1)
    with decoder.intervene(freeze(other, layer=0, head=[1, 2])):
        frozen = decoder.trace(text).layers[0].weights
    there, here = decoder.trace(other).layers[0].weights, decoder.trace(text).layers[0].weights
    torch.testing.assert_close(frozen[:, 1:3], there[:, 1:3])
    torch.testing.assert_close(frozen[:, 3:], here[:, 3:])


@torch.no_grad()
def test_mean_and_resampled_values_come_from_the_reference() -> None:
    decoder, text, other = decoder_of(), row(0), row(1, 9)
    there = value_at(decoder, other, "head_outputs", 0)[0, 2]
    for method in ("mean", "resample"):
        change = ablate("head_outputs", layer=0, head=2, method=method, reference=other)
        with decoder.intervene(change):
            outputs = decoder.trace(text).layers[0].head_outputs[0, 2]
        if method == "mean":
            torch.testing.assert_close(outputs, there.mean(0).expand_as(outputs))
        else:
            assert all(any(torch.equal(one, old) for old in there) for one in outputs)


@torch.no_grad()
def test_blocks_nest_and_leave_nothing_behind() -> None:
    decoder, text = decoder_of(), row(0)
    plain = decoder(text)
    first, second = ablate("attended", layer=0), ablate("transformed", layer=1)
    with decoder.intervene(first, second):
        both = decoder(text)
    with decoder.intervene(first):
        with decoder.intervene(second):
            assert torch.equal(decoder(text), both)
        assert not torch.equal(decoder(text), both)
    assert torch.equal(decoder(text), plain)


@torch.no_grad()
def test_a_gradient_passes_through_an_intervention() -> None:
    decoder, text = decoder_of(), row(0)
    gate = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        with decoder.intervene(replace("attended", lambda x, _: x * gate, layer=0), strict=False):
            loss = decoder(text).square().sum()
        (gradient,) = torch.autograd.grad(loss, gate)
    assert float(gradient) != 0.0


NOTHING: dict[str, tuple[Intervention, str]] = {
    "position": (ablate("after", layer=0, positions=99), "met nothing"),
    "key": (knock_out(99, layer=0), "met nothing"),
    "same": (scale("attended", 1.0, layer=1), "changed nothing"),
    "twice": (patch("after", row(0), layer=0), "changed nothing"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_an_intervention_that_does_nothing_is_an_error(name: str) -> None:
    change, words = NOTHING[name]
    decoder = decoder_of()
    with pytest.raises(InputError, match=words), decoder.intervene(change):
        decoder(row(0))
    assert not decoder.intervened


def test_a_block_in_which_the_model_is_not_run_is_an_error() -> None:
    with (
        pytest.raises(InputError, match="was not run"),
        decoder_of().intervene(ablate("attended", layer=0)),
    ):
        pass


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ablate("nowhere", layer=0), "one of embedded"),
        (lambda: ablate("attended"), "needs a layer"),
        (lambda: ablate("final", layer=0), "belongs to no layer"),
        (lambda: ablate("attended", layer=0, head=1), "has no heads"),
        (lambda: ablate("attended", layer=0, method="mean"), "reference: is missing"),
        (lambda: ablate("attended", layer=0, method="median"), "zero, mean or resample"),
        (lambda: patch("after", row(1), layer=0, source_positions=1), "one for each position"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(build, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (ablate("attended", layer=2), "layers 0 to 1"),
        (ablate("head_outputs", layer=0, head=6), "heads 0 to 5"),
        (ablate("keys", layer=0, head=2), "key-value heads 0 to 1"),
        (patch("after", row(1, 3), layer=0), "texts of the same length"),
        (freeze(row(1, 9), layer=0), "texts of the same length"),
        (steer("after", [1.0, 2.0], layer=0), "a vector of 24"),
        (knock_out([0, 1], layer=0), "without any key"),
    ],
)
@torch.no_grad()
def test_what_the_model_does_not_have_is_refused(change: Intervention, words: str) -> None:
    decoder = decoder_of()
    with pytest.raises(InputError, match=words), decoder.intervene(change):
        decoder(row(0))


def test_positions_in_rows_of_different_beginnings_are_refused() -> None:
    decoder = decoder_of().float()
    change = ablate("after", layer=0, positions=1)
    with pytest.raises(InputError, match="one at a time"), decoder.intervene(change):
        generate(decoder, [[1, 2, 3], [1]], stops=Stops(tokens=2))
