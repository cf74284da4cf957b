"""`heed serve`, `heed site` and `heed doctor`: the page here or anywhere, what is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from heedful.cli.options import JsonFlag, show

if TYPE_CHECKING:
    from heedful.progress import Step
    from heedful.web.site import Site


def serve(
    *,
    port: Annotated[
        int | None, Parameter(help="Port on this machine. [default: 8710, or any free one]")
    ] = None,
    browser: Annotated[
        bool, Parameter(negative="--no-browser", help="Open the page in the browser.")
    ] = True,
    runs: Annotated[Path, Parameter(help="Folder whose runs are shown.")] = Path("runs"),
    model: Annotated[
        list[Path] | None,
        Parameter(consume_multiple=True, help="More models to show: folders or files."),
    ] = None,
) -> int:
    """Open the page: attention you can drag, claims as you type, positions, models as they learn.

    It serves this machine only, loads nothing from the network, and ends with Ctrl-C. The address
    holds the key of the session: anyone who has it can use the page. Models that `heed model get`
    has fetched, and model folders and GGUF files in the folder of runs, are shown too.

    Examples:

        heed serve
        heed serve --port 8000 --no-browser
        heed serve --runs my-runs --model smollm2
    """
    from heedful.files import SHIPPED, fetched_models
    from heedful.web import serve as begin

    # Whoever has no run yet finds the models of the package, and those that were fetched; without
    # torch none can be read.
    fetched = fetched_models()
    named = [one if one.exists() else fetched.get(str(one), one) for one in model or ()]
    known = (
        (*filter(Path.is_dir, SHIPPED.values()), *fetched.values()) if find_spec("torch") else ()
    )

    def ready(address: str) -> None:
        print(f"Heedful is at {address}", flush=True)
        print("Ctrl-C ends it.", file=sys.stderr, flush=True)

    try:
        begin(
            port=port,
            runs=runs,
            models=tuple(dict.fromkeys([*named, *known])),
            browser=browser,
            ready=ready,
        )
    except KeyboardInterrupt:  # how a server is meant to end
        print("Heedful has ended.", file=sys.stderr)
    return 0


def site(
    folder: Annotated[Path, Parameter(help="Where to write it; one written before is replaced.")],
    *,
    translator: Annotated[
        str | None,
        Parameter(help="A run trained on pairs, or a translator. [default: fr-en of the package]"),
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Write the page as a folder that any file server serves: no server of ours, no network.

    Attention and Positions compute in the browser. The catalog comes with verdicts and
    explanations, an assignment to read, and a translator that runs there with its alignment and
    heads. Addresses are relative: it may lie in any folder of a host. The first time the catalog
    is judged, which takes about a minute; verdicts of the same code are kept in the user's cache.

    Examples:

        heed site public
        python -m http.server --directory public
        heed site public --translator runs/phrasebook
    """
    from heedful.cli.translate import DEFAULT_MODEL
    from heedful.files import SHIPPED
    from heedful.progress import meter
    from heedful.web.site import BEAMS, write_site

    shipped = translator in (None, DEFAULT_MODEL)
    path = SHIPPED[DEFAULT_MODEL] if shipped else Path(str(translator))
    with ExitStack() as stack:

        def begin(what: str) -> Step:
            stack.close()  # one meter at a time
            return stack.enter_context(meter(what))

        beams = BEAMS if shipped else 1
        made = write_site(folder, translator=path, beams=beams, meter=begin)
    show(made, _site_blocks, json=json)
    return 0


def _site_blocks(record: Site) -> Iterator[Any]:
    from heedful.views.blocks import Command, Text
    from heedful.views.formatting import size

    counts = ", ".join(f"{many} {word}" for word, many in record.claims.items())
    yield Text(f"{record.folder}: {record.files} files, {size(record.bytes)}", tone="strong")
    yield Text("attention, positions: computed in the browser", indent=2)
    kept = " (verdicts of the same code, found before)" if record.kept_verdicts else ""
    yield Text(f"claims: {counts}{kept}; an assignment to read", indent=2)
    if record.translator is not None:
        loads = size(record.translator_bytes)
        yield Text(f"translator: {record.translator}, loads {loads} when first used", indent=2)
    if record.without_translator is not None:
        yield Text(f"translator: none. {record.without_translator}", indent=2)
    yield Text("Copy the folder to any host, or look at it here:")
    yield Command(f"python -m http.server --bind 127.0.0.1 --directory {record.folder}")


def doctor(*, json: JsonFlag = False) -> int:
    """Show versions, threads, CPU features, speed, and which optional parts are present.

    With torch, it also measures how fast this machine multiplies and reads, and says in which
    precision a training computes here, how a row of tokens is decoded, and why.

    Examples:

        heed doctor
        heed doctor --json
    """
    from dataclasses import replace

    from heedful.machine import examine, measured_speed
    from heedful.views.models import installation_blocks

    found = examine()
    if found.has("models"):
        from heedful.generation.fast import examined

        found = replace(found, speed=replace(measured_speed(), decoding=examined()))
    show(found, installation_blocks, json=json)
    return 0
