"""`heed completion` and `heed manual`: the command in your shell, and as a man page."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

SHELLS = ("bash", "zsh", "fish")
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
    from heedful.cli.main import build_app

    print(build_app().generate_completion(prog_name="heed", shell=shell))
    return 0


def manual() -> int:
    """Print the man page of heed.

    Examples:

        heed manual > heed.1; man ./heed.1
        heed manual > ~/.local/share/man/man1/heed.1
    """
    from heedful import __version__
    from heedful.cli.main import EPILOGUE, VERBS

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
