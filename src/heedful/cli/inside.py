"""`heed intervene` and `heed lens`: change what happens inside a model, and look into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.model import Intervention
else:  # torch is loaded only when a model is opened
    Intervention = Any


def intervene(
    model: Path,
    *,
    ablate: Annotated[
        tuple[str, ...],
        Parameter(help="Take away a head (2.3) or a part (transformed.2, neurons.0@-1)."),
    ] = (),
    method: Annotated[
        Literal["zero", "mean", "resample"],
        Parameter(help="What stands in the place of what is taken away."),
    ] = "zero",
    scale: Annotated[
        tuple[str, ...], Parameter(help="Multiply a place: 2.3=0.5 halves what head 2.3 reads.")
    ] = (),
    sheet: Annotated[
        Path | None, Parameter(help="A TOML file with [[intervention]] tables, for every kind.")
    ] = None,
    text: Annotated[
        Path | None, Parameter(help="Texts to measure on. [default: held out, or the phrasebook]")
    ] = None,
    rows: Annotated[int, Parameter(help="Number of texts.")] = 8,
    tokens: Annotated[int, Parameter(help="Tokens of each text.")] = 128,
    prompt: Annotated[
        str | None, Parameter(help="Also compare the likeliest next tokens after this.")
    ] = None,
    at_least: Annotated[
        float | None,
        Parameter(help="Judge the statement that the loss rises by at least this much."),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Change what happens inside a model and measure what it does to the loss.

    The change of the loss comes with its interval over texts. An intervention that meets nothing
    or changes nothing is an error. Exit code 1 when the statement of --at-least is refuted.

    In a sheet, `do` is ablate, patch, scale, steer, knock_out or freeze; layers, heads and
    positions are numbered from 0:

        [[intervention]]
        do = "patch"
        place = "after"
        layer = 1
        positions = [3]
        source = "Another text"

    Examples:

        heed intervene runs/phrasebook --ablate 0.1
        heed intervene smollm2 --ablate 3.2 --method mean --prompt "The capital of France is"
        heed intervene runs/phrasebook --ablate 1.0 --at-least 0.1
        heed intervene my-model/ --sheet changes.toml --text story.txt --json
    """
    from heedful.studies.causal import InterventionReport, compare_predictions, measure_effect
    from heedful.studies.heads import Amount
    from heedful.studies.heads.sample import open_subject
    from heedful.views.causal import intervention_blocks

    amount = Amount(rows=rows, tokens=tokens, pairs=max(rows, 2))
    subject = open_subject(model, text=text, amount=amount)
    subject.decoder.eval()
    texts = [row.tensor() for row in subject.sample.rows[: max(rows, 2)]]
    changes = _interventions(subject, texts, ablate, method, scale, sheet)
    prediction = None
    if prompt is not None:
        if subject.tokenizer is None:
            raise InputError("--prompt", "needs a tokenizer, and this model has none")
        prediction = compare_predictions(subject.decoder, subject.tokenizer, prompt, changes)
    effect = measure_effect(subject.decoder, texts, changes)
    verdict = None if at_least is None else effect.judge(at_least)
    record = InterventionReport(
        model=subject.name,
        sample=subject.sample.name,
        effect=effect,
        verdict=verdict,
        prediction=prediction,
    )
    show(record, intervention_blocks, json=json)
    return 1 if verdict is not None and verdict.verdict == "refuted" else 0


def _interventions(
    subject: Any,
    texts: list[Any],
    ablate: tuple[str, ...],
    method: Literal["zero", "mean", "resample"],
    scale: tuple[str, ...],
    sheet: Path | None,
) -> list[Intervention]:
    import torch

    from heedful import model
    from heedful.model.interventions import from_table, place_from
    from heedful.training.config import read_values

    shortest = min(row.shape[1] for row in texts)
    reference = torch.cat([row[:, :shortest] for row in texts])
    changes = [
        model.ablate(method=method, reference=reference, **place_from(one)) for one in ablate
    ]
    for one in scale:
        spelled, _, factor = one.partition("=")
        try:
            changes.append(model.scale(factor=float(factor), **place_from(spelled)))
        except ValueError:
            raise InputError("--scale", f"is {one!r}", expected="a place and a factor") from None
    if sheet is not None:
        tables = read_values(sheet).get("intervention", [])
        for number, table in enumerate(tables):
            where = f"{sheet}: intervention {number + 1}"
            changes.append(from_table(table, subject.tokenizer.encode, where))
    if not changes:
        raise InputError("intervene", "needs an intervention", hint="for instance --ablate 0.1")
    return changes


def lens(
    model: Path,
    text: str,
    *,
    token: Annotated[
        str | None, Parameter(help="Attribute the logit of this token. [default: the likeliest]")
    ] = None,
    against: Annotated[
        str | None, Parameter(help="Attribute the difference to the logit of this token.")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Show what each layer would predict next, and which parts write the logit of the answer.

    Examples:

        heed lens smollm2 "The capital of France is"
        heed lens smollm2 "The capital of France is" --token " Paris" --against " London"
    """
    import torch

    from heedful.model import load
    from heedful.studies.causal import direct_attribution, logit_lens
    from heedful.views.causal import lens_blocks

    opened = load(model)
    decoder, tokenizer = opened.decoder.eval(), opened.tokenizer
    if tokenizer is None:
        raise InputError("model", "has no tokenizer", hint="use one with tokenizer.json beside it")
    row = torch.tensor([tokenizer.encode_opened(text)])
    record = logit_lens(decoder, row)
    wanted = record.likeliest[-1][-1] if token is None else _one_id(tokenizer, token, "--token")
    other = None if against is None else _one_id(tokenizer, against, "--against")
    attribution = direct_attribution(decoder, row, wanted, against=other)
    if json:
        import json as encoder

        print(encoder.dumps({"lens": record.to_dict(), "attribution": attribution.to_dict()}))
        return 0
    show(
        record,
        lambda one: lens_blocks(one, attribution, lambda token: tokenizer.decode([token])),
        json=False,
    )
    return 0


def _one_id(tokenizer: Any, text: str, flag: str) -> int:
    ids = list(tokenizer.encode(text))
    if len(ids) != 1:
        pieces = ", ".join(repr(tokenizer.decode([one])) for one in ids)
        raise InputError(flag, f"{text!r} is {len(ids)} tokens ({pieces})", expected="one token")
    return int(ids[0])
