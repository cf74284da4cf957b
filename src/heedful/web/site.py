"""A site without a server: the page and all it needs, in one folder that any file server serves.

    index.html, site.js, site.css, fonts/     the page, one plain script
    data/NAME.js                              what it would ask `heed serve` for, found beforehand
    translator/                               a decoder as ONNX with a cache, and its tokenizer
    ort/                                      onnxruntime for browsers
    heedful-site.json                         what was written, and by which version

Addresses are relative, so it works from any folder of a host. The views of attention and positions
compute in the browser (`page/src/site/`). Verdicts and their reasons are found here, and kept in
the user's cache under a digest of everything that they follow from: the second site takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.claims import Sheet, Verdict
from heedful.claims.checker import Checker
from heedful.claims.reasons import reasons
from heedful.claims.sheet import catalog
from heedful.errors import InputError, MissingPartError, RunError
from heedful.files import fsync_path, sha256, user_cache, write_atomic, write_json, write_new
from heedful.progress import Step
from heedful.records import Record, plain
from heedful.web.answers import as_json
from heedful.web.app import about, built_folder, missing_page
from heedful.web.claims_api import catalog_dict, described, ready_assignment, verdict_dict
from heedful.workers import TaskLimits

MANIFEST = "heedful-site.json"
PATIENT = TaskLimits(seconds=120.0, megabytes=1024)
"""For one claim: a site is written once, and nobody waits for a single verdict."""
JUDGED_BY = ("claims", "attention", "positions")
"""Rooms whose code decides what a verdict on the catalog says …"""
COMPUTED_BY = ("numpy", "scipy", "sympy", "python-flint")
"""… and the packages they compute with."""
BEAMS = 5
"""Beams of the model of the package in a browser, which computes more slowly."""
EXAMPLES = {
    "fr": (
        "Où est la gare ?",
        "Je voudrais deux billets pour Paris, s'il vous plaît.",
        "Il fait froid ce matin.",
        "Nous avons perdu nos clés hier soir.",
    ),
}
"""Sentences that the page offers, by language."""

Meter = Callable[[str], Step]
"""Called with what begins; returns where that tells how far it is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Site(Record):
    """A folder that was written."""

    folder: str
    """Where it lies."""
    files: int
    """How many files it has."""
    bytes: int
    """Their size together."""
    claims: dict[str, int]
    """How many claims of the catalog are proved, supported, refuted, undecided."""
    kept_verdicts: bool
    """Whether the verdicts are those that were found for an earlier site, by the same code."""
    translator: str | None
    """The model that translates there; None where there is none."""
    translator_bytes: int
    """What the browser loads for the first translation."""
    without_translator: str | None
    """Why there is none, and the way to it."""
    seconds: float
    """How long it took."""


def write_site(
    folder: Path,
    *,
    translator: Path,
    beams: int,
    meter: Meter,
    sheets: Sequence[Sheet] | None = None,
) -> Site:
    """Write the site; one that was written there before is replaced when the new one is whole.

    Its claims are those of the catalog, or of the sheets given; with `beams` it translates.
    """
    began = time.perf_counter()
    _check(folder)
    built = built_folder() / "site"
    if not (built / "index.html").is_file():
        raise missing_page("heed site", built_folder())
    sheets = catalog() if sheets is None else sheets
    parent = folder.resolve().parent
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=parent))
    try:
        shutil.copytree(built, unfinished, dirs_exist_ok=True)
        model = _write_translator(unfinished, translator, beams)  # first: a wrong path is told soon
        judged, kept = _judged(sheets, meter)
        listed = catalog_dict(sheets)
        for sheet in listed["sheets"]:
            for claim in sheet["claims"]:
                del claim["text"]  # only an editor needs it
        data = {
            "about": about(),
            "catalog": {**listed, "judged": judged["verdicts"]},
            "reasons": judged["reasons"],
            "assignment": described(ready_assignment()),
            "translator": model,
        }
        (unfinished / "data").mkdir()
        for name, content in data.items():
            text = f"heedful({json.dumps(name)}, {as_json(content)})\n"
            write_new(unfinished / "data" / f"{name}.js", text.encode("utf-8"))
        sizes = {
            path.relative_to(unfinished).as_posix(): path.stat().st_size
            for path in sorted(unfinished.rglob("*"))
            if path.is_file()
        }
        write_json(unfinished / MANIFEST, {"heedful": __version__, "files": sizes})
        _put(unfinished, folder)
    except OSError as error:
        raise RunError(str(folder), f"could not be written ({error.strerror})") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    words = [one["verdict"] for one in judged["verdicts"]]
    return Site(
        folder=str(folder),
        files=len(sizes) + 1,
        bytes=sum(sizes.values()),
        claims={word: words.count(word) for word in dict.fromkeys(sorted(words))},
        kept_verdicts=kept,
        translator=model.get("name"),
        translator_bytes=sum(model.get("files", {}).values()),
        without_translator=model.get("missing"),
        seconds=time.perf_counter() - began,
    )


def _check(folder: Path) -> None:
    """Refuse a path that holds anything but a site of ours."""
    if not folder.resolve().parent.is_dir():
        raise InputError(str(folder), f"the folder {folder.resolve().parent} does not exist")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(str(folder), "is a file", expected="a folder to write the site into")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise InputError(
            str(folder),
            f"is not empty, and no site of ours: it has no {MANIFEST}",
            expected="a new folder, or one that `heed site` wrote before",
            hint="choose another path",
        )


def _put(unfinished: Path, folder: Path) -> None:
    """Put the whole new folder in the place of the old one."""
    for path in unfinished.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        fsync_path(path)
    unfinished.chmod(0o755)
    old = None
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.resolve().parent))
        folder.rename(old / "site")
    unfinished.rename(folder)
    fsync_path(folder.resolve().parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


# Verdicts and reasons, found once for the same code


def _judged(sheets: Sequence[Sheet], meter: Meter) -> tuple[dict[str, Any], bool]:
    """Return the verdicts on the claims and the reasons, and whether they were there already."""
    path = user_cache() / f"catalog-{_digest(sheets)}.json"
    try:
        kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if set(kept) == {"verdicts", "reasons"}:
            return kept, True
    except (OSError, ValueError):
        pass
    with Checker(limits=PATIENT) as checker:
        report = checker.check(sheets, meter("judging the catalog, once"))
    step = meter("writing its reasons out")
    claims = {f"{sheet.name}/{claim.id}": claim for sheet in sheets for claim in sheet.claims}
    explained = {}
    for done, verdict in enumerate(report.claims, start=1):
        name = f"{verdict.sheet}/{verdict.id}"
        explained[name] = [_reason(one) for one in reasons(claims[name], verdict)]
        step(done, len(report.claims))
    found = {"verdicts": [_verdict(one) for one in report.claims], "reasons": explained}
    # A machine that was too busy for a claim leaves it undecided: that is not worth keeping.
    if not report.counts["undecided"]:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, json.dumps(found, ensure_ascii=False, allow_nan=False))
        except OSError:
            pass  # without a cache the next site takes as long as this one
    return found, False


def _verdict(verdict: Verdict) -> dict[str, Any]:
    made: dict[str, Any] = plain(verdict_dict(verdict))
    return made


def _reason(reason: Any) -> dict[str, Any]:
    return {"title": reason.title, "lines": list(reason.lines)}


def _digest(sheets: Sequence[Sheet]) -> str:
    """Return a digest of everything that the verdicts follow from."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for room in JUDGED_BY:
        for path in sorted((package / room).rglob("*")):
            if path.suffix in (".py", ".toml") and path.is_file():
                found.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    found.update(repr([metadata.version(name) for name in COMPUTED_BY]).encode())
    for sheet in sheets:
        for claim in sheet.claims:
            # A model may be trained again under its name; such verdicts are not kept.
            about_model = time.time_ns() if claim.model is not None else 0
            found.update(f"{sheet.name}/{claim.id} {about_model}".encode())
    return sha256(found.digest())[:16]


# The translator


def _write_translator(folder: Path, path: Path, beams: int) -> dict[str, Any]:
    """Write a translator for the browser; return what the page must know of it, or why not."""
    for package in ("torch", "onnx"):
        if find_spec(package) is None:
            problem = MissingPartError.of("heed site", package, "models,web,onnx")
            return {"missing": f"This site was written without a translator ({problem.hint})."}
    from heedful.model import parameter_count
    from heedful.model.weights.onnx import write_onnx
    from heedful.studies.translation.translator import opened

    # Not a Translator: nothing is translated here, and that would pack its weights for it, and
    # compile our kernels first where nobody has translated before.
    decoder, tokenizer, written = opened(path)
    config, marks = decoder.config, written.marks(tokenizer)
    target = folder / "translator"
    target.mkdir()
    write_onnx(decoder, target / "model.onnx", cached=True)
    compact = json.loads(tokenizer.core.to_str())
    text = json.dumps(compact, ensure_ascii=False, separators=(",", ":"))
    write_new(target / "tokenizer.json", text.encode("utf-8"))
    fetched = ("translator/model.onnx", "translator/tokenizer.json", "ort/ort.wasm")
    return {
        "name": path.name,
        "languages": list(written.languages),
        "normalise": written.normalise,
        "same_tokens": written.same_tokens,
        "begin": marks.begin,
        "between": marks.between,
        "end": marks.end,
        "context": config.context,
        "layers": config.layers,
        "heads": config.attention.heads,
        "kv_heads": config.kv_heads,
        "head_width": config.head_width,
        "vocabulary": config.vocabulary,
        "parameters": parameter_count(config),
        "beams": beams,
        "examples": list(EXAMPLES.get(written.languages[0], ())),
        "files": {name: (folder / name).stat().st_size for name in fetched},
    }
