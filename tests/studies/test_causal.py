"""Effects with intervals, the lens, attribution that adds up, paths and circuits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_models import GPT2, KINDS, config
from torch import Tensor

from heedful.errors import InputError
from heedful.model import Decoder, ablate
from heedful.model.config import Norm
from heedful.model.interventions import from_table, place_from
from heedful.studies.causal import (
    composition,
    direct_attribution,
    logit_lens,
    measure_effect,
    path_effect,
    smallest_circuit,
)


def rows(count: int, length: int = 10, seed: int = 0) -> list[Tensor]:
    """Random texts."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(5, (1, length), generator=generator) for _ in range(count)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("post")])
def test_the_parts_of_a_logit_add_up_to_it(kind: str) -> None:
    decoder = Decoder(KINDS[kind], seed=1).double().eval()
    for against in (None, 3):
        parts = direct_attribution(decoder, rows(1)[0], 2, against=against, position=-2)
        total = parts.embedding + parts.heads.sum() + parts.feed_forward.sum() + parts.rest
        assert total == pytest.approx(parts.total, abs=1e-10)


def test_a_model_that_normalises_last_has_no_parts() -> None:
    decoder = Decoder(config(norm=Norm(kind="layer", placement="post")), seed=1)
    with pytest.raises(InputError, match="pre-norm"):
        direct_attribution(decoder, rows(1)[0], 2)


def test_the_last_row_of_the_lens_is_the_model() -> None:
    decoder, text = Decoder(GPT2, seed=1).double().eval(), rows(1)[0]
    lens, logits = logit_lens(decoder, text), decoder(text)[0]
    assert lens.likeliest[-1] == tuple(logits.argmax(-1).tolist())
    assert lens.probability[-1] == pytest.approx(logits.softmax(-1).amax(-1).detach().numpy())
    assert len(lens.likeliest) == len(lens.loss) == 3


@torch.no_grad()
def test_an_effect_is_judged_by_its_interval() -> None:
    decoder, texts = Decoder(GPT2, seed=1).double().eval(), rows(8)
    effect = measure_effect(decoder, texts, [ablate("transformed", layer=0)])
    losses = [
        [float(torch.nn.functional.cross_entropy(model(row)[0, :-1], row[0, 1:])) for row in texts]
        for model in (decoder, _without_feed_forward())
    ]
    assert effect.change.value == pytest.approx(np.mean(losses[1]) - np.mean(losses[0]))
    assert effect.judge(effect.change.low - 0.01).verdict == "supported"
    assert effect.judge(effect.change.value).verdict == "undecided"
    assert effect.judge(effect.change.high + 0.01).verdict == "refuted"
    with pytest.raises(InputError, match="at least two"):
        measure_effect(decoder, texts[:1], [ablate("transformed", layer=0)])


def _without_feed_forward() -> Decoder:
    decoder = Decoder(GPT2, seed=1).double().eval()
    down = decoder.blocks[0].feed_forward.down  # type: ignore[union-attr]
    for parameter in down.parameters():  # type: ignore[union-attr]
        parameter.data.zero_()
    return decoder


@torch.no_grad()
def test_composition_is_what_the_matrices_say() -> None:
    decoder = Decoder(config(), seed=1).double()
    scores = composition(decoder)
    assert scores.keys.shape == (2, 6, 2, 6)
    assert np.isnan(scores.keys[1]).all()
    assert np.isnan(scores.keys[0, :, 0]).all()
    block, later = decoder.blocks[0], decoder.blocks[1]
    wide = [one.attention.qkv.weight for one in (block, later)]  # type: ignore[union-attr]
    value, output = wide[0][32:36], block.attention.output.weight[:, :4]  # type: ignore[union-attr, index]
    query, key = wide[1][20:24], wide[1][28:32]  # head 5 reads key-value head 1
    written, matching = output @ value, query.T @ key
    expected = (matching @ written).norm() / (matching.norm() * written.norm())
    assert scores.keys[0, 0, 1, 5] == pytest.approx(float(expected))
    assert 0.0 < scores.chance < 1.0


@torch.no_grad()
def test_a_path_carries_what_nothing_else_does() -> None:
    decoder = Decoder(config(), seed=1).double().eval()
    texts, source = torch.cat(rows(4)), torch.cat(rows(4, seed=1))
    assert path_effect(decoder, texts, source, (0, 1), (1, 3)).divergence > 0
    width = decoder.config.head_width
    decoder.blocks[0].attention.output.weight[:, width : 2 * width] = 0  # type: ignore[union-attr, index]
    with pytest.raises(InputError, match="carries nothing"):
        path_effect(decoder, texts, source, (0, 1), (1, 3))
    with pytest.raises(InputError, match="a later layer"):
        path_effect(decoder, texts, source, (1, 1), (0, 3))


@torch.no_grad()
def test_a_circuit_finds_the_heads_that_matter() -> None:
    decoder = Decoder(config(initial_std=0.3), seed=1).double().eval()
    for layer, block in enumerate(decoder.blocks):
        weight = block.attention.output.weight  # type: ignore[union-attr]
        for head in range(6):
            if (layer, head) != (0, 4):
                weight[:, head * 4 : head * 4 + 4] *= 1e-6  # type: ignore[index, operator]
    # Texts that the model itself finds likely: there its heads must help.
    texts = [_likely(decoder, seed) for seed in range(12)]
    circuit = smallest_circuit(decoder, texts[:6], texts[6:], share=0.99)
    assert circuit.heads == ((0, 4),)
    assert circuit.kept == pytest.approx(1.0, abs=1e-3)
    assert circuit.checked.value == pytest.approx(1.0, abs=1e-3)


def _likely(decoder: Decoder, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(29, (1, 1), generator=generator)
    for _ in range(15):
        chances = (decoder(row)[:, -1] * 2).softmax(-1)
        row = torch.cat([row, torch.multinomial(chances, 1, generator=generator)], dim=1)
    return row


@pytest.mark.parametrize("spelled", ["2", "x.y", "1.2.z", "after.1@b", ""])
def test_places_that_cannot_be_read_are_refused(spelled: str) -> None:
    with pytest.raises(InputError):
        ablate(**place_from(spelled))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"do": "remove"}, "one of ablate"),
        ({"do": "scale", "place": "after", "layer": 0, "by": 2}, "its fields are"),
        ({"do": "scale", "place": "after", "layer": 0}, "lacks"),
    ],
)
def test_a_table_with_a_mistake_names_it(table: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_table(table, lambda text: [1])
