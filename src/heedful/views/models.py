"""Models: weights, trainings, runs, exports, generated texts; and the installation they run on.

Also what happens inside one: interventions, the logit lens and direct attribution.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.machine import BUSY, Installation, Speed
from heedful.records import Record
from heedful.stats import percent
from heedful.views.blocks import Block, Bullets, Span, Table, Text, facts, table
from heedful.views.formatting import at_most, number, size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.model import Trace
    from heedful.model.weights.checkpoint import ModelInfo, Verification
    from heedful.model.weights.published import Fetched
    from heedful.stats import Estimate
    from heedful.studies.causal import DirectAttribution, InterventionReport, LogitLens
    from heedful.studies.exporting import Export
    from heedful.training import RunComparison, TrainingResult
    from heedful.training.runs import Difference, FinishedRun, RunList
else:  # these records live beside torch, without which the views must work
    Figure = object  # nothing here draws unless it is asked to: commands start without Matplotlib
    Export = Fetched = ModelInfo = Verification = Record
    Difference = FinishedRun = RunComparison = RunList = TrainingResult = Record
    DirectAttribution = InterventionReport = LogitLens = Trace = Record


def info_blocks(record: ModelInfo) -> Iterator[Block]:
    """Yield what `heed model info` prints."""
    stored = ", ".join(f"{count} × {kind}" for kind, count in record.stored_as.items())
    tokenizer = "none beside the weights"
    if record.tokenizer_size is not None:
        ends = ", ".join(map(str, record.ends)) or "none"
        tokenizer = f"{record.tokenizer_size:,} ids; a text ends at id {ends}"
    yield facts(
        record.title or f"A {record.family} model",
        ("where", record.path),
        ("format", f"{record.format}, family {record.family}"),
        ("stored as", f"{stored}; {size(record.file_bytes)}"),
        ("parameters", f"{record.parameters:,}"),
        ("weights in memory", f"{size(record.weight_bytes)} (float32)"),
        (
            "cache",
            f"{size(record.cache_bytes_per_token)} a token, {size(record.cache_bytes)} at full "
            "context (float32)",
        ),
        ("operations", f"{number(record.flops_per_token / 1e6)} million a token, forward"),
        ("tokenizer", tokenizer),
    )
    config = table("Config", "setting", "value", left=(0, 1))
    for name, value in _flat(record.config):
        config.row(name, str(value))
    yield config


def verification_blocks(record: Verification) -> Iterator[Block]:
    """Yield what `heed model verify` prints."""
    checks = table("Verification", "check", "result", left=(0, 1))
    checks.row("names and shapes", f"{record.tensors} tensors, as the config says")
    checks.row("parameters", f"{record.parameters:,}")
    checks.row(
        "finite", "every number" if record.sound else f"not in {len(record.damaged)} tensors"
    )
    checks.row("largest", f"{number(record.largest.largest)} in {record.largest.name}")
    for file, digest in record.sha256.items():
        checks.row(f"SHA-256 of {file}", digest)
    if record.published_as is not None:
        checks.row("published as", record.published_as)
    yield checks
    if record.damaged:
        damaged = table("Damaged", "tensor", "shape", "NaN or infinite", left=(0, 1))
        for check in record.damaged[:20]:
            damaged.row(check.name, " × ".join(map(str, check.shape)), f"{check.not_finite:,}")
        yield damaged


def fetched_blocks(record: Fetched) -> Iterator[Block]:
    """Yield what `heed model get` prints."""
    yield facts(
        record.name,
        ("where", record.path),
        ("state", "fetched and checked" if record.fresh else "there already, checked"),
        ("size", size(record.bytes)),
        ("SHA-256", record.sha256),
        ("licence", record.licence),
    )


def export_blocks(record: Export) -> Iterator[Block]:
    """Yield what `heed export` prints."""
    yield facts(
        f"{record.model} exported",
        ("where", record.folder),
        ("form", f"{record.form}, family {record.family}"),
        ("weights", f"{record.parameters:,} parameters as {record.dtype}"),
        None if record.translates is None else ("translates", " → ".join(record.translates)),
        None if record.form != "onnx" else ("checked", _onnx_check(record.difference)),
        *((name, size(count)) for name, count in record.files.items()),
    )


def _onnx_check(difference: float | None) -> str:
    if difference is None:
        return "not run: onnxruntime is not installed (pip install 'heedful[onnx]')"
    return f"onnxruntime gives our logits within {at_most(difference, 2)}"


def _flat(config: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


MOST_CURVES = 4
"""Numbers of an evaluation that a figure draws, one below the other."""
HASH = re.compile(r"[0-9a-f]{64}")


def training_blocks(record: TrainingResult) -> Iterator[Block]:
    """Yield what `heed train` and `heed resume` print."""
    verb = "ended" if record.finished else "stopped"
    state = f"{verb} by {record.stopped_by} at step {record.step:,}, epoch {record.epoch:.2f}"
    evaluation = None
    if record.evaluations:
        last = record.evaluations[-1]
        values = ", ".join(f"{name} {number(value)}" for name, value in last.values.items())
        evaluation = (f"evaluation at step {last.step:,}", values)
    resumed = record.resumed_from
    yield facts(
        "Training",
        ("run", record.run),
        ("state", state),
        None if resumed is None else ("resumed from", f"step {resumed:,}"),
        ("loss", number(record.loss)),
        evaluation,
        ("read", f"{record.tokens:,} tokens by {record.parameters:,} parameters"),
        (
            "speed",
            f"{record.tokens_per_second:,.0f} tokens/s ({record.computed_as}), "
            f"{record.utilisation:.0%} of the machine's matrix products",
        ),
        (
            "took",
            f"{record.seconds / 60:.1f} minutes, {record.processor_seconds / 60:.1f} of a "
            "processor",
        ),
        ("checkpoint", record.checkpoint),
        ("SHA-256 of the weights", record.weights_sha256),
    )
    warnings = [f"{name} was skipped: {why}" for name, why in record.skipped.items()]
    warnings += [f"not as when the run began: {note}" for note in record.notes]
    if warnings:
        yield Bullets(tuple(warnings))
    if record.finished and record.resumed_from == record.step:
        yield Text("The run was already finished: nothing was done.")
    if not record.finished:
        yield Text(f"To go on: heed resume {record.run}")


def finished_blocks(record: FinishedRun) -> Iterator[Block]:
    """Yield how the training of a run ended."""
    yield from training_blocks(record.result)


def finished_figure(record: FinishedRun) -> Figure | None:
    """Draw its evaluations."""
    return training_figure(record.result)


def training_figure(record: TrainingResult) -> Figure | None:
    """Draw what was evaluated during a training, step by step; None: it was not, or only once."""
    if len(record.evaluations) < 2:
        return None
    from heedful.views.drawing import house_style, new_figure

    names = list(record.evaluations[-1].values)[:MOST_CURVES]
    with house_style():
        figure = new_figure(7.2, 0.6 + 2.4 * len(names))
        for place, name in enumerate(names, start=1):
            points = [(one.step, one.values[name]) for one in record.evaluations
                      if name in one.values]  # fmt: skip
            axes = figure.add_subplot(len(names), 1, place)
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3)
            axes.set(ylabel=name, xlabel="step" if place == len(names) else "")
        figure.axes[0].set_title("Evaluations of the training")
        return figure


def runs_blocks(record: RunList) -> Iterator[Block]:
    """Yield what `heed runs` prints."""
    if not record.runs:
        yield Text(f"There are no runs in {record.folder}.")
        return
    grid = table(
        f"Runs in {record.folder}",
        *("run", "state", "step", "of", "loss", "evaluation", "parameters", "tokens/s"),
        left=(0, 1, 5),
    )
    for run in record.runs:
        evaluation = ", ".join(f"{name} {number(v)}" for name, v in run.evaluation.items())
        grid.row(
            run.run,
            run.state,
            f"{run.step:,}",
            f"{run.steps:,}",
            number(run.loss),
            evaluation or "–",
            f"{run.parameters:,}",
            "–" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}",
        )
    yield grid


def comparison_blocks(record: RunComparison) -> Iterator[Block]:
    """Yield what `heed runs compare` prints."""
    for title, found in (
        ("Settings", record.config),
        ("Data and machine", record.machine),
        ("Results", record.results),
    ):
        yield _differences(title, found, record)
    if record.same_weights is not None:
        same = "the same" if record.same_weights else "different"
        yield Text(f"The two runs ended with {same} weights.")


def _differences(title: str, found: Sequence[Difference], record: RunComparison) -> Block:
    if not found:
        return Text(f"{title}: no difference.")
    grid = table(title, "", record.first, record.second, left=(0, 1, 2))
    for difference in found:
        grid.row(difference.name, _shown(difference.first), _shown(difference.second))
    return grid


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str) and HASH.fullmatch(value):
        return f"{value[:12]}…"
    return "–" if value is None else str(value)


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedText(Record):
    """One continuation of a prompt, as text."""

    text: str
    """What follows the prompt; marks such as the end of a text are left out."""
    tokens: tuple[int, ...]
    """Its token ids; the last one is an end if `finished`."""
    pieces: tuple[str, ...]
    """Each token by itself, as text."""
    log_probabilities: tuple[float, ...]
    """Of each token under the model itself: temperature 1, nothing filtered."""
    score: float
    """Their sum; from beam search, divided by length^length_penalty."""
    finished: bool
    """Whether the model ended it; otherwise it reached the token limit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedTexts(Record):
    """What `heed generate` gives."""

    model: str
    """Path of the model."""
    method: dict[str, Any]
    """How tokens were chosen, with every setting."""
    limit: int
    """Maximum number of new tokens per continuation."""
    precision: str
    """Precision of the weights: float32 or int8."""
    prompts: tuple[str, ...]
    """The texts that were continued."""
    texts: tuple[tuple[GeneratedText, ...], ...]
    """For each prompt its continuations: beams best first, samples in the order drawn."""


def running_text(record: GeneratedTexts) -> str:
    """Return prompts with their continuation as plain text, a blank line between two of them."""
    return "\n\n".join(
        prompt + best.text
        for prompt, found in zip(record.prompts, record.texts, strict=True)
        for best in found
    )


def generation_blocks(record: GeneratedTexts, *, scores: bool) -> Iterator[Block]:
    """Yield the continuations of each prompt with their scores; `scores` shows every token."""
    for prompt, found in zip(record.prompts, record.texts, strict=True):
        columns = ("", "score", "tokens", "end", "text")
        grid = Table(_shortened(prompt), columns, left=(0, 3, 4), long_title="cut")
        for rank, one in enumerate(found, start=1):
            end = "by itself" if one.finished else f"cut at {record.limit}"
            grid.row(str(rank), number(one.score), str(len(one.tokens)), end, one.text.strip())
        yield grid
        if scores:
            for rank, one in enumerate(found, start=1):
                yield _token_table(one, rank if len(found) > 1 else None)


def _token_table(one: GeneratedText, rank: int | None) -> Block:
    title = "Tokens" if rank is None else f"Tokens of {rank}"
    grid = table(title, "id", "token", "log p", "p", left=(1,))
    rows = zip(one.tokens, one.pieces, one.log_probabilities, strict=True)
    for token, piece, value in rows:
        grid.row(str(token), repr(piece), number(value), number(math.exp(value), 3))
    return grid


def _shortened(text: str, most: int = 80) -> str:
    line = " ".join(text.split()) or "(an empty prompt)"
    return line if len(line) <= most else "… " + line[-most:]


def _speed_blocks(speed: Speed) -> Iterator[Block]:
    busy = speed.load is not None and speed.load > BUSY
    yield facts(
        "Speed" + (f", while other programs ran (load {speed.load:.1f})" if busy else ""),
        (
            "matrix products",
            f"{speed.float32_gflops:.0f} · 10⁹ operations/s in float32, "
            f"{speed.bfloat16_gflops:.0f} in bfloat16 "
            f"({speed.threads} thread{'s' if speed.threads > 1 else ''})",
        ),
        ("memory", f"{speed.read_gb:.0f} GB/s read, {speed.read_gb_one_thread:.0f} by one thread"),
        ("training", f"{speed.precision}: {speed.reason}"),
        None if speed.decoding is None else ("decoding", speed.decoding),
    )


def installation_blocks(record: Installation) -> Iterator[Block]:
    """Yield what `heed doctor` prints."""
    limits = [f"{name}={value}" for name, value in record.threads.items() if value]
    yield facts(
        "This machine",
        ("heedful", record.heedful),
        ("Python", record.python),
        ("system", record.system),
        ("CPU", f"{record.cpu}, {record.cores} cores"),
        ("CPU features", ", ".join(record.cpu_features) or "none known"),
        None if record.memory_gb is None else ("memory", f"{record.memory_gb} GB"),
        ("threads", ", ".join(limits) or "not limited by the environment"),
    )
    if record.speed is not None:
        yield from _speed_blocks(record.speed)
    core = table("Core", "package", "version", left=(0, 1))
    for name, version in record.core.items():
        core.row(name, version or Span("missing", "bad"))
    yield core
    parts = table("Optional parts", "part", "present", "packages", "to install", left=(0, 1, 2, 3))
    for part in record.parts:
        versions = ", ".join(
            f"{name} {version or 'missing'}" for name, version in part.versions.items()
        )
        present = "yes" if part.present else "no"
        parts.row(part.name, present, versions, "" if part.present else part.install)
    yield parts


MOST_HEADS = 12
"""Layers, and heads of a layer, that a figure of a trace draws: smaller maps show nothing."""
SHOWN_PARTS = 10
"""Rows of the table of an attribution; the others are summed in its last row."""


def intervention_blocks(record: InterventionReport) -> Iterator[Block]:
    """Yield what `heed intervene` prints."""
    effect = record.effect
    yield facts(
        f"{record.model}: {' and '.join(effect.interventions)}",
        ("texts", f"{effect.texts} ({effect.tokens:,} predicted tokens) from {record.sample}"),
        ("loss before", _interval(effect.loss)),
        ("change of the loss", _interval(effect.change, sign="+")),
        ("another likeliest token", f"at {percent(effect.changed_tokens)} of the positions"),
        ("divergence of predictions", f"{number(effect.divergence)} nats a token"),
    )
    if record.verdict is not None:
        verdict = record.verdict
        yield Text(f"{verdict.statement}: {verdict.verdict}; {verdict.reason}.")
    if record.prediction is not None:
        grid = table(f"After {record.prediction.prompt!r}", "next token", "before", "after")
        for token, before, after in zip(
            record.prediction.tokens,
            record.prediction.before,
            record.prediction.after,
            strict=True,
        ):
            grid.row(repr(token), percent(before), percent(after))
        yield grid


def trace_figure(record: Trace) -> Figure:
    """Draw the attention weights of every head in the first row, one line a layer."""
    from heedful.model.config import head_name  # a package beside torch, as the record is
    from heedful.views.drawing import house_style, new_figure

    layers = record.layers[:MOST_HEADS]
    heads = min(layers[0].weights.shape[1], MOST_HEADS)
    with house_style():
        figure = new_figure(0.8 + 1.15 * heads, 0.5 + 1.15 * len(layers))
        grid = figure.subplots(len(layers), heads, squeeze=False)
        for line, (row, layer) in enumerate(zip(grid, layers, strict=True)):
            for head, axes in enumerate(row):
                weights = layer.weights[0, head].detach().cpu().numpy()
                axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.grid(visible=False)
                axes.set_title(head_name(line, head), fontsize=7, fontweight="normal", pad=2)
        return figure


def lens_blocks(
    record: LogitLens, attribution: DirectAttribution, text_of: Callable[[int], str]
) -> Iterator[Block]:
    """Yield what `heed lens` prints: the last position layer by layer, and who wrote its logit."""
    final = record.likeliest[-1][-1]
    grid = table(
        f"What each layer would predict after {text_of(record.tokens[-1])!r}",
        "after",
        "likeliest",
        f"probability of {text_of(final)!r}",
        "loss on the whole text",
        left=(0, 1),
    )
    for depth, row in enumerate(record.likeliest):
        grid.row(
            "the embedding" if depth == 0 else f"layer {depth - 1}",
            repr(text_of(row[-1])),
            percent(float(record.probability[depth, -1])),
            f"{record.loss[depth]:.3f}",
        )
    yield grid
    yield from _attribution_blocks(attribution, text_of)


def _attribution_blocks(
    record: DirectAttribution, text_of: Callable[[int], str]
) -> Iterator[Block]:
    parts = {"the embedding": record.embedding, "biases": record.rest}
    parts |= {f"feed-forward {layer}": float(x) for layer, x in enumerate(record.feed_forward)}
    parts |= {
        f"head {layer}.{head}": float(x)
        for layer, row in enumerate(np.asarray(record.heads))
        for head, x in enumerate(row)
    }
    order = sorted(parts, key=lambda name: -abs(parts[name]))
    shown, others = order[:SHOWN_PARTS], order[SHOWN_PARTS:]
    against = "" if record.against is None else f" over {text_of(record.against)!r}"
    grid = table(f"Who writes the logit of {text_of(record.token)!r}{against}", "part", "writes")
    for name in shown:
        grid.row(name, f"{parts[name]:+.3f}")
    if others:
        grid.row(f"{len(others)} others", f"{sum(parts[name] for name in others):+.3f}")
    grid.row("all together", f"{record.total:+.3f}")
    yield grid


def _interval(estimate: Estimate, sign: str = "") -> str:
    return (
        f"{estimate.value:{sign}.4f} (95 % interval over texts "
        f"{estimate.low:{sign}.4f} to {estimate.high:{sign}.4f})"
    )
