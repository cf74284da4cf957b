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
    from heedful.views.installation_tables import installation_tables

    show(examine(), installation_tables, json=json)
    return 0
