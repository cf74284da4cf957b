"""The documentation site: Sphinx, MyST and furo, built strictly and readable offline."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

# The trees of all pages are kept to the end: to look through them for garbage again and again
# finds next to nothing.
gc.freeze()
gc.set_threshold(200_000, 50, 1000)

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

# autodoc imports with TYPE_CHECKING set, under which pydantic cannot build FastAPI's models.
import fastapi.openapi.models  # noqa: E402, F401

from heedful import __version__  # noqa: E402

project = "Heedful"
author = "The Heedful authors"
copyright = "The Heedful authors, Apache-2.0"  # noqa: A001
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "mathtext",
    "docstrings",
    "records",
    "settings",
    "measurements",
    "constants",
    "language",
]
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathtext"

autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
default_role = "code"
nitpicky = True
# Types in signatures: many belong to other libraries, which have no page here, and the site asks
# no other host for theirs. Nothing else on the site makes references of this kind.
nitpick_ignore_regex = [("py:(class|data|exc|obj)", ".*")]

html_theme = "furo"
html_title = f"Heedful {version}"
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
