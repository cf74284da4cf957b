"""`heed serve` and `heed doctor`: the page in your browser, and what is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show


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
    holds the key of the session: anyone who has it can use the page.

    Examples:

        heed serve
        heed serve --port 8000 --no-browser
        heed serve --runs my-runs --model smollm2
    """
    from heedful.files import SHIPPED
    from heedful.web import serve as begin

    # Whoever has no run yet finds the models of the package; without torch none can be read.
    known = tuple(filter(Path.is_dir, SHIPPED.values())) if find_spec("torch") else ()

    def ready(address: str) -> None:
        print(f"Heedful is at {address}", flush=True)
        print("Ctrl-C ends it.", file=sys.stderr, flush=True)

    try:
        begin(port=port, runs=runs, models=(*(model or ()), *known), browser=browser, ready=ready)
    except KeyboardInterrupt:  # how a server is meant to end
        print("Heedful has ended.", file=sys.stderr)
    return 0


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
