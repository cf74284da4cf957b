"""The `heed` command: its verbs, its errors and its help pages.

Verbs are registered by name and loaded when they are called, so that `heed --help` imports
no mathematics. Every error leaves here as one line on stderr and an exit code:

    0 done   1 a claim is refuted   2 bad input   3 the work failed   130/143 a signal

The docstring of a command is its help page: what stands before `Examples:` is the description,
what follows is shown below the parameters, line by line.

Two verbs live here, as they are about the verbs: `heed completion`, for your shell, and
`heed manual`, the man page.
"""

from __future__ import annotations

import codecs
import errno
import inspect
import io
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import App, CycloptsError, Parameter

from heedful import __version__
from heedful.errors import HeedfulError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""A write that failed for reasons outside the program."""
PLAINLY = {
    "─": "-", "–": "-", "—": "-", "−": "-", "…": "...", "·": "*", "×": "x", "±": "+-",
    "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "→": "->", "√": "sqrt ", "∞": "inf",
    "‘": "'", "’": "'", "“": '"', "”": '"', "α": "alpha", "β": "beta", "μ": "mu", "σ": "sigma",
    "Σ": "Sigma", "ε": "epsilon", "δ": "delta", "λ": "lambda", "π": "pi", "θ": "theta",
    "²": "^2", "ᵀ": "^T", "½": "1/2", "█": "#", "▉": "#", "▊": "#", "▋": "#", "▌": "=",
}  # fmt: skip
"""Signs of our own texts, for terminals that have only the letters of ASCII or of Latin-1."""


class Subcommand(NamedTuple):
    """One verb of the command line."""

    name: str
    target: str
    help: str


VERBS = (
    Subcommand("lab", "study:lab", "Run every part of the laboratory and write the report."),
    Subcommand("serve", "serve:serve", "Open the page in your browser."),
    Subcommand("site", "serve:site", "Write the page as a folder for any host, without a server."),
    Subcommand("attend", "attention:attend_command", "Compute attention for one query or many."),
    Subcommand(
        "design",
        "attention:design_app",
        "Design a query, heads, or K, Q and V, with a certificate.",
    ),
    Subcommand("noise", "attention:noise", "What noisy keys do to one head or several."),
    Subcommand("copyable", "attention:copyable_command", "Which keys can be copied at all."),
    Subcommand(
        "properties", "attention:properties", "What a layer does to the order of its inputs."
    ),
    Subcommand("positions", "attention:positions", "Position schemes and what they guarantee."),
    Subcommand(
        "check", "check:check", "Judge claims about attention: verdicts, counterexamples, repairs."
    ),
    Subcommand(
        "assignment",
        "assignment:app",
        "Hand out questions, and grade answers in LaTeX or Markdown.",
    ),
    Subcommand("explain", "check:explain", "Print the reasoning behind one verdict."),
    Subcommand("model", "model:app", "Inspect, convert, verify or fetch weights."),
    Subcommand("data", "train:data_app", "Inspect a corpus, or fetch a published one."),
    Subcommand("train", "train:train", "Train a decoder described by a TOML file."),
    Subcommand("resume", "train:resume", "Resume a run where it stopped."),
    Subcommand("runs", "train:runs_app", "List runs, or compare two."),
    Subcommand("generate", "model:generate", "Let a model continue a text."),
    Subcommand(
        "intervene", "model:intervene", "Change what happens inside a model; measure the effect."
    ),
    Subcommand("lens", "model:lens", "What each layer would predict, and who writes a logit."),
    Subcommand("study", "study:app", "Run a study, with a record and a report."),
    Subcommand("translate", "translate:translate", "Translate texts, files or standard input."),
    Subcommand("export", "model:export", "Write a trained model for other programs."),
    Subcommand("ask", "ask:ask", 'Ask a model: an answer with its confidence, or "I don\'t know".'),
    Subcommand(
        "doctor", "serve:doctor", "Show versions, threads, CPU features and optional parts."
    ),
    Subcommand("completion", "main:completion", "Print completions for bash, zsh or fish."),
    Subcommand("manual", "main:manual", "Print the man page."),
)

FIRST = """Heedful: a laboratory of attention.

  heed serve        open the page: attention you can drag, claims as you type
  heed check        judge every claim of the course sheets (half a minute)
  heed translate "Où est la gare ?"        French to English, by the model that comes with it
  heed lab          run everything and write a report (7 to 10 minutes)
  heed attend --n 4 --query 6 6 0 0        one query over four keys

heed --help lists all commands; every command has --help with examples.
"""
EPILOGUE = """Examples:
  heed lab
  heed attend --keys orthonormal --n 4 --query 6 6 0 0
  heed design average --keys orthonormal --n 10 --d 16 --of 0 1 --tolerance 0.01
  heed noise --n 10 --d 16 --noisy 0 --variance 0.5 --heads 0 1 --beta 50

Every verb takes --json (print the record)
and --debug (show the traceback of an error).
"""


def build_app(called: str = "") -> App:
    """Return the command line with every verb registered and only the called one loaded."""
    app = App(
        name="heed",
        help="A laboratory of attention: every statement is an experiment that you can run.",
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=f"heedful {__version__}",
        # The verbs print what they have to say; only their exit code comes back.
        result_action="return_value",
        # A path may begin with a bracket; only what a verb reads as an array may be JSON.
        default_parameter=Parameter(negative=(), show_default=shown_default, json_list=False),
    )
    for verb in VERBS:
        app.command(f"heedful.cli.{verb.target}", name=verb.name, help=verb.help)
        if verb.name == called:
            describe(app[called])
    return app


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    arguments = list(arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        if not arguments:
            print(FIRST, end="", flush=True)
            return 0
        result: Any = build_app(called=arguments[0])(
            arguments, exit_on_error=False, print_error=False, help_on_error=False
        )
        sys.stdout.flush()
    except CycloptsError as error:
        if debug:
            raise
        problem = " ".join(str(error).split()).rstrip(".")
        return _say(f"heed: {problem}; see `heed {_verb_of(arguments)}--help`", 2)
    except HeedfulError as error:
        if debug:
            raise
        return _say(_in_flags(error, arguments), error.exit_code)
    except KeyboardInterrupt:
        return _say("heed: interrupted; no partial file was kept", 128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader (head, less) went away: that is its right, not an error of ours.
        _silence()
        return 0
    except SystemExit as leaving:
        # What rich makes of a reader that went away while it printed a help page.
        if isinstance(leaving.__context__, BrokenPipeError):
            return 0
        raise
    except MemoryError:
        return _say("heed: not enough memory; use fewer keys, dimensions or draws", 3)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _silence()
            place = error.filename or "the output"
            return _say(
                f"heed: {place}: could not be written ({error.strerror}); free some space, "
                "or write it elsewhere",
                3,
            )
        found = f"{type(error).__name__}: {error}"
        return _say(f"heed: this should not happen ({found}); add --debug and report it", 3)
    return result if isinstance(result, int) else 0


def run() -> None:
    """Entry point of the `heed` command."""
    signal.signal(signal.SIGTERM, _stop)
    _print_in_any_encoding()
    sys.exit(main(sys.argv[1:]))


def _print_in_any_encoding() -> None:
    """Replace what standard output cannot say, where it is not UTF-8 or a name is no text."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever called us
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="heedful.plain")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Write characters that an encoding lacks as people write them by hand, or as "?"."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(
        PLAINLY.get(sign, "?") for sign in error.object[error.start : error.end]
    ), error.end


codecs.register_error("heedful.plain", _plainly)


def _stop(_number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + signal.SIGTERM)


def _silence() -> None:
    """Throw away what standard output still holds: nobody could read it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, code: int) -> int:
    with suppress(OSError):  # what cannot be said does not change how the work ended
        sys.stdout.flush()
    with suppress(OSError):
        print(" ".join(message.split("\n")), file=sys.stderr, flush=True)
    return code


def _in_flags(error: HeedfulError, arguments: Sequence[str]) -> str:
    """Return the message, with the flag in the place of the parameter that it set."""
    name = error.where.split("[")[0]
    flag = "--" + name.replace("_", "-")
    typed = any(argument.split("=")[0] == flag for argument in arguments)
    return flag + str(error).removeprefix(name) if typed and flag != "--" else str(error)


def _verb_of(arguments: Sequence[str]) -> str:
    """Return the words up to the command that was meant, for `heed … --help`."""
    called = next((known for known in VERBS if arguments and known.name == arguments[0]), None)
    if called is None:
        return ""
    is_group = called.target.endswith("app")
    inner = f"{arguments[1]} " if is_group and arguments[1:2] and arguments[1].isalpha() else ""
    return f"{called.name} {inner}"


def describe(app: App) -> str:
    """Set the help of `app` and of its commands from their docstrings; return the examples."""
    examples: list[str] = []
    for name in app:
        if not name.startswith("-"):
            of_command = describe(app[name])
            examples += of_command.splitlines()[:1]
    if app.default_command is not None:
        page = inspect.getdoc(app.default_command) or ""
        text, _, shown = page.partition("\n\nExamples:\n")
        # The lines of a paragraph are joined: the terminal decides where they break.
        app.help = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
        examples = textwrap.dedent(shown.strip("\n")).splitlines()
    if examples:
        app.help_epilogue = "Examples:\n" + "\n".join(f"  {line}" for line in examples)
    return "\n".join(examples)


def shown_default(value: Any) -> str | None:
    """Write a default as it would be typed; a switch that is off needs no words.

    >>> shown_default(["0", "1"]), shown_default(50.0), shown_default(False)
    ('0 1', '50', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "on" if value else None
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or None
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


ENDINGS = (
    ("0", "done"),
    ("1", "a claim is refuted"),
    ("2", "bad input"),
    ("3", "the work failed"),
    ("130, 143", "ended by a signal"),
)


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Your shell.")], /
) -> int:
    """Print a script that lets your shell complete the verbs and options of heed.

    Examples:

        heed completion bash > ~/.local/share/bash-completion/completions/heed
        heed completion zsh > ~/.zfunc/_heed
        heed completion fish > ~/.config/fish/completions/heed.fish
    """
    print(build_app().generate_completion(prog_name="heed", shell=shell))
    return 0


def manual() -> int:
    """Print the man page of heed.

    Examples:

        heed manual > heed.1; man ./heed.1
        heed manual > ~/.local/share/man/man1/heed.1
    """
    examples = [line.strip() for line in EPILOGUE.splitlines() if line.startswith("  ")]
    lines = [
        f'.TH HEED 1 "" "heedful {__version__}" "Heedful"',
        ".SH NAME",
        "heed \\- a laboratory of attention: every statement is an experiment that you can run",
        ".SH SYNOPSIS",
        ".B heed",
        ".I COMMAND",
        "[OPTIONS]",
        ".SH DESCRIPTION",
        "Computes, designs and tests attention; judges claims about it; trains, translates with",
        "and questions decoders. Every command has a help page with examples:",
        ".B heed COMMAND \\-\\-help",
        ".SH COMMANDS",
        *(part for verb in VERBS for part in (".TP", f".B {verb.name}", _roff(verb.help))),
        ".SH OPTIONS OF EVERY COMMAND",
        *(".TP", ".B \\-\\-json", "Print the record instead of the text."),
        *(".TP", ".B \\-\\-debug", "Show the traceback of an error."),
        ".SH EXIT STATUS",
        *(part for code, says in ENDINGS for part in (".TP", f".B {code}", says)),
        ".SH EXAMPLES",
        ".nf",
        *map(_roff, examples),
        ".fi",
    ]
    print("\n".join(lines))
    return 0


def _roff(text: str) -> str:
    """Return a line as roff wants it: hyphens that can be copied, nothing read as a command."""
    written = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{written}" if written.startswith((".", "'")) else written
