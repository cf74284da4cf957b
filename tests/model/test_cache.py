"""A cached pass gives the logits of an uncached one, however it is cut and padded."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import POSITIONS, random_decoder, random_tokens, small_config
from torch import Tensor

from heedful.errors import InputError
from heedful.model import Cache, Decoder, left_padded, preset

each_scheme = pytest.mark.parametrize("positions", list(POSITIONS))


def in_pieces(decoder: Decoder, tokens: Tensor, pieces: list[int], cache: Cache) -> Tensor:
    with torch.inference_mode():
        return torch.cat([decoder(part, cache=cache) for part in tokens.split(pieces, 1)], dim=1)


@each_scheme
@settings(max_examples=15)
@given(pieces=st.lists(st.integers(1, 5), min_size=1, max_size=4), batch=st.integers(1, 3))
def test_pieces_give_the_logits_of_the_whole(positions: str, pieces: list[int], batch: int) -> None:
    decoder = random_decoder(small_config(positions, context=20))
    tokens = random_tokens(decoder.config, batch, sum(pieces))
    cached = in_pieces(decoder, tokens, pieces, decoder.new_cache(batch))
    torch.testing.assert_close(cached, decoder(tokens), rtol=1e-12, atol=1e-12)


@each_scheme
@settings(max_examples=15)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=2, max_size=4),
    more=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_padded_rows_give_the_logits_of_each_row_alone(
    positions: str, lengths: list[int], more: int, seed: int
) -> None:
    decoder = random_decoder(small_config(positions))
    longest = max(lengths)
    drawn = random_tokens(decoder.config, len(lengths), longest + more, seed)
    ragged = [row[: length + more].tolist() for row, length in zip(drawn, lengths, strict=True)]
    tokens, skipped = left_padded(ragged, fill=decoder.config.vocabulary - 1)
    padding = skipped.tolist()
    cache = decoder.new_cache(len(lengths), padding=padding)
    cached = in_pieces(decoder, tokens, [longest] + [1] * more, cache)
    for row, skip in enumerate(padding):
        alone = decoder(tokens[row : row + 1, skip:])
        torch.testing.assert_close(cached[row : row + 1, skip:], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["a5", "tiny"])
def test_float32_agrees_to_one_in_a_hundred_thousand(name: str) -> None:
    decoder = Decoder(preset(name), seed=0).eval()
    tokens = random_tokens(decoder.config, 2, 40)
    cached = in_pieces(decoder, tokens, [24] + [1] * 16, decoder.new_cache(2))
    with torch.no_grad():
        torch.testing.assert_close(cached, decoder(tokens), rtol=0, atol=1e-5)


def test_rows_can_be_chosen_again_as_beams_are() -> None:
    decoder = random_decoder(small_config())
    tokens = random_tokens(decoder.config, 3, 6)
    cache = decoder.new_cache(3, padding=[0, 2, 1])
    in_pieces(decoder, tokens, [6], cache)
    rows = torch.tensor([2, 2, 0, 1])
    cache.select(rows)
    following = random_tokens(decoder.config, 4, 1, seed=5)
    chosen = in_pieces(decoder, following, [1], cache)
    fresh = decoder.new_cache(4, padding=[1, 1, 0, 2])
    whole = in_pieces(decoder, torch.cat([tokens[rows], following], dim=1), [7], fresh)
    torch.testing.assert_close(chosen, whole[:, -1:], rtol=1e-12, atol=1e-12)


def test_beams_of_one_prompt_exchange_only_what_is_new() -> None:
    decoder = random_decoder(small_config())
    prompt = random_tokens(decoder.config, 1, 4).expand(3, -1)
    new = random_tokens(decoder.config, 3, 2, seed=1)
    rows = torch.tensor([1, 1, 0])
    caches = [decoder.new_cache(3) for _ in range(2)]
    for cache in caches:
        in_pieces(decoder, torch.cat([prompt, new], dim=1), [4, 2], cache)
    caches[0].select(rows)
    caches[1].select(rows, since=4)
    following = random_tokens(decoder.config, 3, 1, seed=5)
    first, second = (in_pieces(decoder, following, [1], cache) for cache in caches)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@given(chosen=st.sets(st.integers(0, 5), min_size=1))
def test_rows_that_stay_go_on_as_before(chosen: set[int]) -> None:
    decoder = random_decoder(small_config())
    tokens = random_tokens(decoder.config, 6, 5)
    padding = [0, 3, 1, 0, 2, 1]
    cache = decoder.new_cache(6, capacity=7, padding=padding)
    in_pieces(decoder, tokens, [5], cache)
    order = cache.keep(sorted(chosen))
    assert sorted(order) == sorted(chosen)
    assert cache.batch == len(chosen)
    following = random_tokens(decoder.config, len(order), 2, seed=5)
    kept = in_pieces(decoder, following, [1, 1], cache)
    fresh = decoder.new_cache(len(order), padding=[padding[row] for row in order])
    whole = in_pieces(decoder, torch.cat([tokens[order], following], dim=1), [7], fresh)
    torch.testing.assert_close(kept, whole[:, -2:], rtol=1e-12, atol=1e-12)


def test_rewinding_forgets() -> None:
    decoder = random_decoder(small_config())
    tokens = random_tokens(decoder.config, 1, 8)
    cache = decoder.new_cache()
    first = in_pieces(decoder, tokens, [8], cache)
    cache.rewind(3)
    again = in_pieces(decoder, tokens[:, 3:], [5], cache)
    torch.testing.assert_close(again, first[:, 3:], rtol=1e-12, atol=1e-12)
    with pytest.raises(InputError, match="0 to 8 columns can be kept"):
        cache.rewind(9)


def test_keys_are_stored_after_their_rotation() -> None:
    decoder = random_decoder(small_config(layers=1))
    tokens = random_tokens(decoder.config, 1, 5)
    cache = decoder.new_cache()
    in_pieces(decoder, tokens, [5], cache)
    (layer,) = decoder.trace(tokens).layers
    assert torch.equal(cache.keys[0, :, :, :5], layer.keys)


def test_what_does_not_fit_is_refused_and_leaves_the_cache_as_it_was() -> None:
    decoder = Decoder(small_config())
    cache = decoder.new_cache(1, capacity=6)
    tokens = random_tokens(decoder.config, 1, 4)
    with torch.inference_mode():
        decoder(tokens, cache=cache)
        with pytest.raises(InputError, match="has room for 2 more tokens, not for 4"):
            decoder(tokens, cache=cache)
        with pytest.raises(InputError, match="has 2 rows; the cache has 1 rows"):
            decoder(tokens.expand(2, 4), cache=cache)
        with pytest.raises(InputError, match="holds the id 99"):
            decoder(torch.tensor([[99]]), cache=cache)
        assert cache.length == 4
        large = decoder.new_cache(1, capacity=40)
        decoder(random_tokens(decoder.config, 1, 10), cache=large)
        with pytest.raises(InputError, match=r"7 tokens after 10 already read; the context .* 16"):
            decoder(random_tokens(decoder.config, 1, 7), cache=large)
    with pytest.raises(InputError, match="gradients are recorded"):
        decoder(tokens[:, :1], cache=cache)


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"batch": 0}, "cache.batch: is 0"),
        ({"batch": 1, "capacity": 0}, "cache.capacity: is 0"),
        ({"batch": 2, "padding": [1]}, "one whole number for each of the 2 rows"),
        ({"batch": 1, "padding": [0.5]}, "one whole number"),
        ({"batch": 1, "padding": [-1]}, "runs from -1 to -1"),
        ({"batch": 1, "padding": [16]}, "0 to 15 columns can be skipped"),
    ],
)
def test_an_impossible_cache_is_refused(sizes: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Cache(small_config(), **sizes)  # type: ignore[arg-type]


def test_empty_sequences_are_refused() -> None:
    with pytest.raises(InputError, match="number 1 is empty"):
        left_padded([[1], []])
    with pytest.raises(InputError, match="none was given"):
        left_padded([])
