"""The documentation's own programs, importable by the tests."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path[:0] = [str(DOCS), str(DOCS / "_ext")]
