"""How many bits does a parameter of a small decoder store, and after how many readings?

    heed study capacity --output study-capacity
    python benchmarks/bench_capacity.py --study study-capacity
    python benchmarks/bench_capacity.py                            (writes the page again)

Stores benchmarks/results/capacity.json, docs/_static/capacity.svg, and the tables of
docs/capacity.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from knowledge_tables import capacity_tables, write_tables
from surroundings import surroundings

from heedful.files import write_json
from heedful.studies.knowledge.findings import CAPACITY_RECORD, CapacityPoint, CapacityStudy
from heedful.views.drawing import save
from heedful.views.knowledge import capacity_figure

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "capacity.json"
FIGURE = HERE.parent / "docs" / "_static" / "capacity.svg"
PAGE = HERE.parent / "docs" / "capacity.md"


def stored(record: dict[str, Any]) -> CapacityStudy:
    """Return a study from its record."""
    known = {field.name: record[field.name] for field in fields(CapacityStudy)}
    points = [
        CapacityPoint(**point | {"seeds": tuple(point["seeds"])}) for point in record["points"]
    ]
    return CapacityStudy(**known | {"points": tuple(points), "left_out": tuple(record["left_out"])})


def main() -> None:
    """Store the record of a study if told where it is, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", type=Path, help="folder of heed study capacity")
    asked = parser.parse_args()
    if asked.study is not None:
        record = json.loads((asked.study / CAPACITY_RECORD).read_text(encoding="utf-8"))
        question = __doc__.splitlines()[0]
        write_json(
            RESULTS, {"question": question, "study": record, "machine": surroundings("torch")}
        )
    study = stored(json.loads(RESULTS.read_text(encoding="utf-8"))["study"])
    save(capacity_figure(study), FIGURE)
    write_tables(PAGE, capacity_tables(study))
    print(f"{RESULTS}, {FIGURE} and the tables of {PAGE} are written")


if __name__ == "__main__":
    main()
