"""A card for every trained model: what it learned from, how well it does, what it is not for.

The card is put together from the files of the run, so that it cannot disagree with them; the
study that trained it adds the figures that it measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.data.corpus import LANGUAGES
from heedful.errors import RunError
from heedful.files import write_atomic
from heedful.model import DecoderConfig, parameter_count
from heedful.model.weights.huggingface import read_json
from heedful.studies.translation.translator import FILE, TranslationFormat
from heedful.training.folder import flat
from heedful.training.runs import finished_run

CARD = "MODEL_CARD.md"

TRANSLATION_LIMITS = (
    "It translates one line at a time and knows nothing of the lines before it.",
    "It was judged on text like its training text; on other text expect worse, without a warning.",
    "It can leave out, add or invent words, and its own probability does not tell when it does.",
    "Names, numbers and rare words are where it errs most.",
)
TEXT_LIMITS = (
    "It continues texts; what it says may be false, and its own probability does not tell.",
    "It knows what its training text said and nothing else.",
)
NOT_FOR = (
    "medical, legal, safety or financial text, or anything that somebody will act upon unread",
    "deciding about people",
    "passing its output off as the work of a human translator or author",
)


def write_card(
    run: Path | str,
    *,
    figures: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    limits: Sequence[str] = (),
    title: str | None = None,
) -> Path:
    """Write MODEL_CARD.md into a run's folder and return its path.

    `figures` are what was measured, by name (a text, a number, or a table of these); `notes`
    say what a reader of the figures must know; `limits` are added to those of every model.
    """
    run = Path(run)
    text = "\n".join(_card(run, figures or {}, notes, limits, title)) + "\n"
    try:
        write_atomic(run / CARD, text)
    except OSError as error:
        raise RunError(str(run / CARD), f"could not be written ({error.strerror})") from None
    return run / CARD


def _card(
    run: Path,
    figures: Mapping[str, Any],
    notes: Sequence[str],
    limits: Sequence[str],
    title: str | None,
) -> Iterator[str]:
    config = _read(run / "config.json")
    manifest, result = _read(run / "manifest.json"), _read(run / "result.json")
    written = TranslationFormat.read(run / "model") if (run / "model" / FILE).is_file() else None
    yield f"# {title or run.resolve().name}"
    yield ""
    yield _purpose(config, written)
    yield from _section("Data", _data(config, manifest))
    yield from _section("Model", _model(config, written))
    yield from _section("Training", _training(run, config, manifest, result))
    yield from _section("Figures", [*_figures(figures, result), *(f"- {note}" for note in notes)])
    general = TEXT_LIMITS if written is None else TRANSLATION_LIMITS
    yield from _section("Limits", [f"- {limit}" for limit in (*general, *limits)])
    yield from _section("Not to be used for", [f"- {use}" for use in NOT_FOR])
    yield from _section("Use", _use(written))


def _purpose(config: Mapping[str, Any], written: TranslationFormat | None) -> str:
    size = parameter_count(DecoderConfig.of(config["model"])) if "model" in config else None
    kind = "A decoder-only Transformer" + (f" of {size:,} parameters" if size else "")
    if written is None:
        return f"{kind} that continues texts, trained with Heedful."
    source, target = (LANGUAGES.get(code, code) for code in written.languages)
    return f"{kind} that translates {source} into {target}, trained with Heedful."


def _data(config: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
    for name, value in dict(config.get("data", {})).items():
        if value not in (None, [], (), ""):
            yield f"- {name}: {_shown(value)}"
    for name, value in dict(manifest.get("data", {})).items():
        yield f"- SHA-256 of {name}: `{value}`"


def _model(config: Mapping[str, Any], written: TranslationFormat | None) -> Iterator[str]:
    for name, value in _flat(config.get("model", {})):
        yield f"- {name}: {_shown(value)}"
    if written is not None:
        opening = f"{written.begin} " if written.begin else ""
        yield f"- a pair is read as `{opening}source {written.between} target {written.end}`"
        yield f"- a source is normalised: {written.normalise}"
        if written.same_tokens:
            yield "- a word has the same tokens wherever in a text it stands"


def _training(
    run: Path, config: Mapping[str, Any], manifest: Mapping[str, Any], result: Mapping[str, Any]
) -> Iterator[str]:
    if result:
        # result.json tells the minutes of the last session; a run may have had several.
        whole = finished_run(run)
        minutes = (result["seconds"] if whole is None else whole.seconds) / 60
        epochs, tokens = f"{result['epoch']:.2f}", f"{result['tokens']:,}"
        yield f"- {result['step']:,} steps, {epochs} epochs, {tokens} tokens"
        yield f"- {minutes:.1f} minutes, computed as {result['computed_as']}"
        yield f"- SHA-256 of the weights: `{result['weights_sha256']}`"
    if manifest.get("initial"):
        yield "- began from weights that were trained before"
    for name in ("cpu", "cores", "threads"):
        if manifest.get(name):
            yield f"- {name}: {manifest[name]}"
    versions = manifest.get("versions", {})
    known = [f"{name} {versions[name]}" for name in ("heedful", "torch") if name in versions]
    if known:
        yield f"- made with {', '.join(known)}"
    for group in ("optimiser", "schedule"):
        settings = ", ".join(f"{name} {_shown(v)}" for name, v in _flat(config.get(group, {})))
        if settings:
            yield f"- {group}: {settings}"


def _figures(figures: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    for name, value in _flat(figures):
        yield f"- {name}: {_shown(value)}"
    evaluations = result.get("evaluations") or []
    if evaluations:
        last = evaluations[-1]
        for name, value in last["values"].items():
            yield f"- {name} at step {last['step']:,}: {_shown(value)}"
    if not figures and not evaluations:
        yield "- none was measured"


def _use(written: TranslationFormat | None) -> Iterator[str]:
    yield "```"
    if written is None:
        yield 'heed generate RUN/model "The beginning of a text"'
    else:
        yield 'heed translate RUN "Où est la gare ?"'
    yield "heed export RUN FOLDER --to hf"
    yield "```"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "", *lines)


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in flat(values) if value is not None)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return " ".join(str(value).split())


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
