"""`heed generate`: let a model continue a text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.model import DEFAULT_SOURCE, SourceFlags
from heedful.cli.output import JsonFlag, show
from heedful.errors import ConfigError, InputError

if TYPE_CHECKING:
    from heedful.generation import GenerationResult, Method
    from heedful.model import Checkpoint
    from heedful.tokenization import Tokenizer
    from heedful.views.models import GeneratedTexts
else:  # these classes live beside torch, which is loaded only when a model is opened
    Checkpoint = GenerationResult = GeneratedTexts = Method = Tokenizer = Any

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
    from heedful.generation.prompts import Prompts
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
