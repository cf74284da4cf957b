"""Claim sheets: what a student writes, read with line and column, and written back.

This room touches text only: it knows the formula language but judges nothing.
"""

from heedful.claims.sheet.claim import FIELDS, MOST_DRAWS, MOST_FORMULAS, Claim, nearest
from heedful.claims.sheet.sheet import (
    MOST_CLAIMS,
    Sheet,
    catalog,
    claim_named,
    claim_tables,
    claim_text,
    find_sheets,
    load_sheet,
    only,
    setting_text,
    toml_lines,
    with_changes,
    with_fields,
)

__all__ = [
    "FIELDS",
    "MOST_CLAIMS",
    "MOST_DRAWS",
    "MOST_FORMULAS",
    "Claim",
    "Sheet",
    "catalog",
    "claim_named",
    "claim_tables",
    "claim_text",
    "find_sheets",
    "load_sheet",
    "nearest",
    "only",
    "setting_text",
    "toml_lines",
    "with_changes",
    "with_fields",
]
