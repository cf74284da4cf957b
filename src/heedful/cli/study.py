"""`heed study`: recipes that end in one record and one section of the report.

Each study is a verb of its own, in a file of its own: to add one, write `study_NAME.py` and add
its line to STUDIES.
"""

from __future__ import annotations

from cyclopts import App

STUDIES = (
    ("translation", "French to English: from scratch against pretrained."),
    ("knowledge", "What a model learned, what it guesses, and what it makes up."),
    ("heads", "What the heads of a trained model do, and whether the reasoning fits."),
)
"""Name and purpose; NAME is the function `NAME` of `study_NAME.py`."""

app = App(
    name="study",
    help="Run a study: it ends in one record, and one section of the report.",
    help_format="plaintext",
    result_action="return_value",
)
for _name, _purpose in STUDIES:
    app.command(f"heedful.cli.study_{_name}:{_name}", name=_name, help=_purpose)
