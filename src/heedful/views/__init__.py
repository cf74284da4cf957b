"""Views: one module a subject turns records into blocks; terminal, page and notebook render them.

It may use every room below it, computes nothing, and works without torch. `view(record)` gives the
blocks of a record, for `print` and for notebooks.
"""

from __future__ import annotations

from importlib import import_module

from heedful.errors import InputError
from heedful.records import Record
from heedful.views.blocks import View

VIEWS = {
    "Reading": "attention:reading_blocks",
    "Design": "attention:design_blocks",
    "Copyable": "attention:copyable_blocks",
    "HeadsDesign": "attention:robust_heads_blocks",
    "NoiseStudy": "noise:noise_blocks",
    "SequenceDesign": "sequence:sequence_blocks",
    "OrderStudy": "properties:order_blocks",
    "PositionsStudy": "positions:positions_blocks",
    "CheckReport": "claims:check_blocks",
    "Explanation": "claims:explanation_blocks",
    "TranslationStudy": "translation:study_blocks",
    "Alignment": "translation:alignment_blocks",
    "KnowledgeStudy": "knowledge:knowledge_blocks",
    "AskReplies": "knowledge:ask_blocks",
    "HeadsStudy": "heads:heads_blocks",
    "ModelInfo": "models:info_blocks",
    "Verification": "models:verification_blocks",
    "TrainingResult": "models:training_blocks",
    "RunList": "models:runs_blocks",
    "RunComparison": "models:comparison_blocks",
    "Inspection": "data:inspection_blocks",
    "Installation": "machine:installation_blocks",
    "LabRecord": "report:lab_blocks",
}
"""Which function makes the blocks of a record, by the name of its class; loaded when needed."""


def view(record: Record) -> View:
    """Return a record as a notebook shows it and `print` writes it."""
    for kind in type(record).__mro__:
        if kind.__name__ in VIEWS:
            module, function = VIEWS[kind.__name__].split(":")
            blocks = getattr(import_module(f"heedful.views.{module}"), function)
            return View(tuple(blocks(record)))
    raise InputError("record", f"there is no view of a {type(record).__name__}")
