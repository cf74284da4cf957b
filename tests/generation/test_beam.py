"""Beam search against `transformers`, and against trying everything."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import in_transformers, padded, random_decoder, random_rows

from heedful.errors import InputError
from heedful.generation import Beams, Stops, generate, stream
from heedful.model import Decoder

LENGTHS = [4, 1, 6]


def theirs(peer: Any, rows: list[list[int]], method: Beams, stops: Stops) -> Any:
    """Return sequences and scores of the real `generate`."""
    return peer.generate(
        **padded(rows),
        do_sample=False,
        max_new_tokens=stops.tokens,
        eos_token_id=list(stops.ends) or None,
        suppress_tokens=list(stops.suppressed) or None,
        num_beams=method.beams,
        num_return_sequences=method.nbest,
        length_penalty=method.length_penalty,
        early_stopping=method.early_stopping,
        return_dict_in_generate=True,
        output_scores=True,
    )


METHODS = [
    Beams(beams=beams, nbest=nbest, length_penalty=penalty, early_stopping=early)
    for beams, nbest, penalty, early in [
        (2, 2, 1.0, False),
        (4, 4, 1.0, False),
        (4, 2, 0.0, "never"),
        (3, 3, 2.0, "never"),
        (3, 3, 2.0, False),
        (4, 3, 0.6, True),
        (5, 5, -1.0, False),
        (3, 1, -0.5, True),
    ]
]


def endings(decoder: Decoder, rows: list[list[int]]) -> list[tuple[int, ...]]:
    """Return sets of ends that searches really meet: tokens that the model likes."""
    method = Beams(beams=6, nbest=6)
    free = generate(decoder, rows, method=method, stops=Stops(tokens=9)).continuations
    liked = Counter(token for best in free for one in best for token in one.tokens)
    common = [token for token, _ in liked.most_common(6)]
    return [(), (common[1],), (common[-1],), tuple(common[-3:])]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("seed", range(3))
def test_sequences_and_scores_are_those_of_transformers(
    kind: str, seed: int, tmp_path: Path
) -> None:
    decoder = random_decoder(kind, seed, torch.float32)
    peer = in_transformers(decoder, tmp_path / "model")
    rows = random_rows(decoder, LENGTHS, seed)
    finished = 0
    for method, ends in itertools.product(METHODS, endings(decoder, rows)):
        stops = Stops(tokens=9, ends=ends)
        ours = generate(decoder, rows, method=method, stops=stops)
        peers = theirs(peer, rows, method, stops)
        flat = [found for best in ours.continuations for found in best]
        made = peers.sequences[:, max(LENGTHS) :].tolist()
        assert len(flat) == len(made) == len(rows) * method.nbest
        for found, sequence, score in zip(flat, made, peers.sequences_scores.tolist(), strict=True):
            assert list(found.tokens) == sequence[: len(found.tokens)], (method, ends)
            assert found.score == pytest.approx(score, abs=1e-4, rel=1e-4)
            finished += found.finished
    assert finished > 50  # ends are met, so that the rules of stopping are at work


def test_suppressed_tokens_are_those_of_transformers(tmp_path: Path) -> None:
    decoder = random_decoder("llama", 1, torch.float32)
    peer = in_transformers(decoder, tmp_path / "model")
    rows = random_rows(decoder, LENGTHS, 1)
    for method, ends in itertools.product(METHODS, endings(decoder, rows)):
        free = generate(decoder, rows, method=method, stops=Stops(tokens=9, ends=ends))
        liked = Counter(
            token for best in free.continuations for one in best for token in one.tokens
        )
        never = tuple(token for token, _ in liked.most_common(4) if token not in ends)
        stops = Stops(tokens=9, ends=ends, suppressed=never)
        ours = generate(decoder, rows, method=method, stops=stops)
        peers = theirs(peer, rows, method, stops)
        flat = [found for best in ours.continuations for found in best]
        made = peers.sequences[:, max(LENGTHS) :].tolist()
        for found, sequence, score in zip(flat, made, peers.sequences_scores.tolist(), strict=True):
            assert never
            assert not {*never} & {*found.tokens}
            assert list(found.tokens) == sequence[: len(found.tokens)], (method, ends)
            assert found.score == pytest.approx(score, abs=1e-4, rel=1e-4)


def test_one_beam_is_greedy() -> None:
    decoder = random_decoder("llama")
    rows = random_rows(decoder, LENGTHS)
    stops = Stops(tokens=9, ends=(3, 7))
    one = generate(decoder, rows, method=Beams(beams=1), stops=stops)
    greedy = generate(decoder, rows, stops=stops)
    for (a,), (b,) in zip(one.continuations, greedy.continuations, strict=True):
        assert a.tokens == b.tokens
        assert a.finished == b.finished
        assert a.score == pytest.approx(b.score / len(b.tokens))


@torch.inference_mode()
def every_text(decoder: Decoder, prompt: list[int], length: int) -> dict[tuple[int, ...], float]:
    """Return Σ log p of every possible continuation of this length."""
    vocabulary = decoder.config.vocabulary
    texts = list(itertools.product(range(vocabulary), repeat=length))
    tokens = torch.tensor([[*prompt, *text] for text in texts])
    own = decoder(tokens)[:, len(prompt) - 1 : -1].log_softmax(-1)
    totals = own.gather(2, tokens[:, len(prompt) :].unsqueeze(2)).sum(dim=(1, 2))
    return dict(zip(texts, totals.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_with_enough_beams_the_search_is_complete(seed: int) -> None:
    decoder = random_decoder("tiny vocabulary", seed)
    prompt, length, vocabulary = [1, 4], 3, 5
    everything = every_text(decoder, prompt, length)
    best = sorted(everything, key=lambda text: -everything[text])
    method = Beams(beams=vocabulary**length, nbest=20, length_penalty=0.0)
    (found,) = generate(decoder, [prompt], method=method, stops=Stops(tokens=length)).continuations
    assert [one.tokens for one in found] == best[:20]
    assert [one.score for one in found] == pytest.approx([everything[t] for t in best[:20]])


def test_there_may_be_fewer_texts_than_beams() -> None:
    decoder = random_decoder("tiny vocabulary")
    method = Beams(beams=9, nbest=9)
    (found,) = generate(decoder, [[1]], method=method, stops=Stops(tokens=1)).continuations
    assert sorted(one.tokens[0] for one in found) == list(range(5))
    assert sum(math.exp(one.score) for one in found) == pytest.approx(1.0)


def test_scores_follow_from_the_log_probabilities() -> None:
    decoder = random_decoder("llama")
    method = Beams(beams=4, nbest=4, length_penalty=0.7)
    result = generate(
        decoder, random_rows(decoder, LENGTHS), method=method, stops=Stops(tokens=8, ends=(3, 7))
    )
    for row, best in zip(result.prompts, result.continuations, strict=True):
        assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
        for one in best:
            assert one.score == pytest.approx(sum(one.log_probabilities) / len(one.tokens) ** 0.7)
            with torch.inference_mode():
                logits = decoder(torch.tensor([[*row, *one.tokens]]))[0, len(row) - 1 : -1]
            own = logits.log_softmax(-1).gather(1, torch.tensor(one.tokens).view(-1, 1))
            assert one.log_probabilities == pytest.approx(own.squeeze(1).tolist(), abs=1e-9)


def test_a_prompt_is_searched_the_same_alone_and_in_a_batch() -> None:
    decoder = random_decoder("alibi")
    rows = random_rows(decoder, LENGTHS)
    method, stops = Beams(beams=3, nbest=3), Stops(tokens=8, ends=(3,))
    together = generate(decoder, rows, method=method, stops=stops)
    for row, best in zip(rows, together.continuations, strict=True):
        (alone,) = generate(decoder, [row], method=method, stops=stops).continuations
        assert [one.tokens for one in alone] == [one.tokens for one in best]


def test_a_search_cannot_be_streamed() -> None:
    decoder = random_decoder("llama")
    with pytest.raises(InputError, match="cannot be streamed"):
        stream(decoder, [[1]], method=Beams())
    with pytest.raises(InputError, match="cannot be streamed"):
        generate(decoder, [[1]], method=Beams(), on_step=print)
