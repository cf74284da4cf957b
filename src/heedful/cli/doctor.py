"""`heed doctor`: what this installation consists of."""

from __future__ import annotations

from heedful.cli.output import JsonFlag, show


def doctor(*, json: JsonFlag = False) -> int:
    """Show versions, threads, CPU features and which optional parts are present.

    Examples:

        heed doctor
        heed doctor --json
    """
    from heedful.machine import examine
    from heedful.views.machine import installation_blocks

    show(examine(), installation_blocks, json=json)
    return 0
