"""What does a model that others have trained know, what does it invent, and can it be told?

    python benchmarks/bench_ask.py                        SmolLM2, after: heed model get smollm2
    python benchmarks/bench_ask.py --model my-model.gguf --store other.json
    python benchmarks/bench_ask.py --ship     the package then brings this calibration and its test
    python benchmarks/bench_ask.py --study study-knowledge   with what `heed study knowledge` found

Asks the 600 questions of `studies/knowledge/questions.tsv` in five wordings each: half of them
calibrate, half are the test. Prints the tables of `heed ask --calibrate`, then stores the record
with the machine in `benchmarks/results/ask.json`: promised and observed error, the AUROC of every
signal, the error for other mixtures, every test answer, and what an error costs those who check.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from surroundings import surroundings

from heedful.files import write_json
from heedful.progress import meter
from heedful.studies.knowledge import pretrained
from heedful.studies.knowledge.findings import RECORD, ModelCalibration
from heedful.studies.knowledge.questions import LEVELS
from heedful.studies.knowledge.stored import STORED, written_measurement
from heedful.views.knowledge import model_calibration_blocks
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results"
SHIPPED = Path(pretrained.__file__).parent / pretrained.SHIPPED_CALIBRATIONS
MEASURED = SHIPPED.with_name(STORED)
ERRORS = (0.1, 0.2, 0.3)


def main() -> None:
    """Ask, print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--store", type=Path, default=RESULTS / "ask.json")
    parser.add_argument("--ship", action="store_true", help="put the calibration into the package")
    parser.add_argument("--study", type=Path, help="folder of a study with models of our own")
    chosen = parser.parse_args()
    asker = pretrained.PretrainedAsker(chosen.model)
    with meter("asking 600 questions") as step:
        calibrated, record = asker.calibrate(progress=step)
    if chosen.ship:
        shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))
        write_json(SHIPPED, {**shipped, asker.digest: calibrated.model_dump(mode="json")})
        write_json(MEASURED, measured(record, asker.checkpoint.path.stem, surroundings("torch")))
    print_blocks(model_calibration_blocks(record))
    stored = {
        "question": "What does a model that others have trained know, and can it be told?",
        **record.to_dict(),
        "promises": [calibrated.promise(error).to_dict() for error in ERRORS],
        "told": told(record),
        "embedded": embedded(chosen.study) if chosen.study else None,
        "machine": surroundings("torch"),
    }
    write_json(chosen.store, stored)


def measured(record: ModelCalibration, name: str, machine: dict[str, Any]) -> dict[str, Any]:
    """Return what the report of every laboratory shows of this measurement."""
    threads = machine["threads"]
    return written_measurement(
        record,
        name=name,
        command=f"heed ask {record.model} --calibrate",
        date=machine["date"][:10],
        machine=f"{machine['cpu']}, {machine['cores']} cores, threads: {threads}, "
        f"Python {machine['python']}, torch {machine['torch']}",
    )


def embedded(folder: Path) -> dict[str, Any]:
    """Return what a study of people who do not exist says about the same questions."""
    study = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    risk = {name: value for name, value in study["risk_coverage"].items()
            if name not in ("coverage", "risk")}  # fmt: skip
    arms = [{name: value for name, value in arm.items() if name != "curve"}
            for arm in study["arms"]]  # fmt: skip
    kept = (
        "questions",
        "documents",
        "seed",
        "labels",
        "confusion",
        "auroc",
        "ece",
        "names",
        "minutes",
    )
    return {"arms": arms, "risk_coverage": risk} | {name: study[name] for name in kept}


def told(record: ModelCalibration) -> dict[str, Any]:
    """Return what the test answers say about those who rely on a model, and those who check it."""
    confidence = np.array([one.confidence for one in record.answers])
    chance = np.array([one.signals["probability"] for one in record.answers])
    right = np.array([one.right for one in record.answers])
    unreal = np.array([one.level == LEVELS[0] for one in record.answers])
    said = np.array([bool(one.answer) for one in record.answers])
    error = 1 - float(right.mean())
    order = np.argsort(-confidence, kind="stable")
    wrong_so_far = np.cumsum(~right[order]) / np.arange(1, len(right) + 1)
    return {
        "wrong if everything is answered": error,
        "things that do not exist": int(unreal.sum()),
        "of these answered with a name": int((unreal & said).sum()),
        "of these only repeating the question": int((unreal & (confidence == 0)).sum()),
        "of these saying that it is not known": sum(
            one.level == LEVELS[0] and bool(re.search("unknown|not known", one.answer))
            for one in record.answers
        ),
        "of these surer than half of the right answers, by probability": int(
            (chance[unreal] > np.median(chance[right])).sum()
        ),
        "of these surer than half of the right answers, by all signals": int(
            (confidence[unreal] > np.median(confidence[right])).sum()
        ),
        "left unanswered for an error": [
            {
                "error": wanted,
                "by a perfect signal": max(0.0, (error - wanted) / (1 - wanted)),
                "by all signals": 1
                - float(
                    np.flatnonzero(np.append(wrong_so_far <= wanted, False)).max(initial=-1) + 1
                )
                / len(right),
            }
            for wanted in ERRORS
        ],
    }


if __name__ == "__main__":
    main()
