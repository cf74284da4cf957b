"""Completion in a real shell, and the man page by a real formatter."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import heedful
from heedful.cli.main import VERBS

ROOT = Path(__file__).parents[2]
COMPLETE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD={place}; COMPREPLY=()
_heed heed "${{COMP_WORDS[{place}]}}"
printf '%s ' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_verbs_parts_and_options(heed, tmp_path: Path) -> None:
    script = tmp_path / "heed.bash"
    script.write_text(heed("completion", "bash").out, "utf-8")

    def completed(*words: str) -> list[str]:
        asked = COMPLETE.format(
            script=script, words=" ".join(f"'{word}'" for word in words), place=len(words) - 1
        )
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert completed("heed", "att") == ["attend"]
    assert set(completed("heed", "design", "")) >= {"copy", "average", "weights", "heads", "kqv"}
    assert "--beta" in completed("heed", "noise", "--be")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_learn_every_verb(heed, shell: str) -> None:
    script = heed("completion", shell).out
    assert [verb.name for verb in VERBS if verb.name not in script] == []


def test_the_man_page_is_well_formed_and_lists_every_verb(heed, tmp_path: Path) -> None:
    page = heed("manual").out
    assert [verb.name for verb in VERBS if f".B {verb.name}\n" not in page] == []
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert not done.stderr
        assert "ended by a signal" in done.stdout


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    found = re.search(r"^version: (.*)$", text, re.MULTILINE)
    assert found is not None
    assert found[1] == heedful.__version__


STEPS = ("FROM", "WORKDIR", "COPY", "RUN", "USER", "CMD")


def test_the_container_file_builds_the_page_and_runs_as_nobody_special() -> None:
    text = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    assert {word for word, _ in lines} <= set(STEPS)
    stages = {rest.split(" AS ")[1] for word, rest in lines if word == "FROM" and " AS " in rest}
    for word, rest in lines:
        if word == "FROM":
            assert ":latest" not in rest
            assert ":" in rest  # a base that changes under us would be another image
        if word != "COPY":
            continue
        *sources, _ = [part for part in rest.split() if not part.startswith("--")]
        taken = re.search(r"--from=(\S+)", rest)
        if taken is not None:
            assert taken[1] in stages
        else:
            assert all((ROOT / source).exists() for source in sources)
    assert [rest for word, rest in lines if word == "USER"] == ["1000"]  # not root
    command = json.loads(lines[-1][1])
    assert command[0] == "heed"
    assert command[1] in [verb.name for verb in VERBS]
