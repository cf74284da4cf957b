"""The door: help pages, exit codes, one line for each error."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys

import pytest

from heedful import __version__
from heedful.cli.main import VERBS, build_app, main
from heedful.errors import InputError

PLAIN = ("attend", "noise", "copyable", "properties", "positions", "doctor")
DESIGNS = ("copy", "average", "weights", "heads", "kqv")


def test_version(heed) -> None:
    assert heed("--version").out.strip() == f"heedful {__version__}"


def test_the_help_lists_every_verb(heed) -> None:
    answer = heed("--help")
    assert answer.code == 0
    assert all(verb.name in answer.out for verb in VERBS)


def test_without_words_the_first_steps_are_shown(heed) -> None:
    answer = heed()
    assert answer.code == 0
    named = re.findall(r"heed ([a-z]+)", answer.out)
    assert (
        {"serve", "check", "lab", "translate"}
        <= set(named)
        <= {verb.name for verb in VERBS} | {"lists"}
    )
    assert len(answer.out.splitlines()) <= 12


@pytest.mark.parametrize("words", [(verb,) for verb in PLAIN] + [("design", d) for d in DESIGNS])
def test_a_help_page_has_its_own_examples_unbroken(heed, monkeypatch, words) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = heed(*words, "--help")
    assert answer.code == 0
    _, _, examples = answer.out.partition("\nExamples:\n")
    lines = [line for line in examples.split("\n") if line]
    assert lines
    assert all(line.startswith(f"  heed {' '.join(words)}") for line in lines), lines
    assert "None]" not in answer.out
    assert "--empty" not in answer.out
    assert all(len(line) <= 80 for line in answer.out.split("\n"))


def test_the_examples_of_a_group_are_those_of_its_commands(heed) -> None:
    examples = heed("design", "--help").out.partition("Examples:\n")[2]
    assert [f"heed design {name}" in examples for name in DESIGNS] == [True] * len(DESIGNS)


def test_help_is_quick_and_loads_no_mathematics() -> None:
    code = (
        "import sys; from heedful.cli.main import main; main(['--help']); "
        "print([m for m in ('numpy', 'torch', 'scipy', 'matplotlib', 'sympy') if m in sys.modules])"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # Of a processor, so that other programs on the machine count little; usually 0.2.
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert done.stdout.strip().endswith("[]"), done.stdout[-200:]
    assert spent < 1.0


def test_unknown_verbs_and_flags_are_one_line(refused) -> None:
    assert "heed --help" in refused("atend").err
    assert "heed attend --help" in refused("attend", "--kyes", "x").err
    assert "heed design copy --help" in refused("design", "copy").err
    assert "heed design --help" in refused("design", "--of", "1").err


def test_an_error_names_the_flag_that_was_typed(refused) -> None:
    assert refused("design", "copy", "--n", 4, "--of", 9).err.startswith("--of: key 9")
    assert refused("design", "copy", "--n", 4, "--of=9").err.startswith("--of: key 9")
    assert refused("noise", "--radius", 0).err.startswith("--radius: is 0")


def test_debug_gives_the_traceback(capsys) -> None:
    with pytest.raises(InputError):
        main(["design", "copy", "--n", "4", "--of", "9", "--debug"])


def test_what_nobody_expected_is_one_line_too(monkeypatch, heed) -> None:
    def broken(self: object) -> None:
        raise ZeroDivisionError("never")

    monkeypatch.setattr("heedful.cli.options.KeysFlags.array", broken)
    answer = heed("copyable")
    assert answer.code == 3
    assert answer.err.count("\n") == 1
    assert "--debug" in answer.err


def test_a_reader_that_leaves_is_no_error() -> None:
    python = shlex.quote(sys.executable)
    command = f"{python} -m heedful attend --n 2000 --toward 0 --json | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("{")
    assert done.stderr == ""


def test_a_refusal_in_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "heedful", "design", "copy", "--keys", "[[0],[1],[2]]", "--of", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "impossible" in done.stdout


def test_only_the_called_verb_is_loaded() -> None:
    code = (
        "import sys; from heedful.cli.main import build_app; build_app('doctor'); "
        "print('heedful.cli.serve' in sys.modules, 'heedful.cli.attention' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True False"
    assert build_app().name == ("heed",)
