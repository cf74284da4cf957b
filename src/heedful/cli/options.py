"""What verbs share: what they take in, and how they print.

In come flags for keys, noise and values, and lines as they arrive; out go tables or JSON, and a
figure if one is asked for.
"""

from __future__ import annotations

import codecs
import json as json_library
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar

from cyclopts import App, Parameter

from heedful.errors import InputError, RunError
from heedful.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.views.blocks import Block

ValuesFlag = Annotated[
    str | None, Parameter(help="A file or inline JSON. [default: unit vectors, so c = α]")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class KeysFlags:
    """The keys an experiment is about."""

    keys: Annotated[
        str,
        Parameter(
            help="A standard set (orthonormal, sphere, gaussian, grid, simplex, circle), a .npz, "
            ".npy, .json, .csv or .safetensors file, or inline JSON."
        ),
    ] = "orthonormal"
    n: Annotated[int | None, Parameter(help="Number of keys of a standard set. [default: 10]")] = (
        None
    )
    d: Annotated[
        int | None, Parameter(help="Dimension of a standard set. [default: as few as it needs]")
    ] = None
    keys_seed: Annotated[int, Parameter(help="Seed of the random standard sets.")] = 0
    scale: Annotated[
        str, Parameter(help='What multiplies k·q: a number, or "sqrt_d" for 1/√d.')
    ] = "1"

    def array(self) -> Any:
        """Return the keys, (n, d)."""
        from heedful.arrays import matrix
        from heedful.attention.keys import keys_from
        from heedful.data.arrays import looks_like_array, read_array

        if not looks_like_array(self.keys):
            return keys_from(self.keys, self.n, self.d, self.keys_seed)
        for flag, value in (("--n", self.n), ("--d", self.d)):
            if value is not None:
                raise InputError(
                    flag,
                    f"is {value}, but the keys come from {self.keys}",
                    expected="the file decides how many keys there are",
                    hint=f"leave {flag} out, or use a standard set",
                )
        return matrix("--keys", read_array(self.keys, "--keys"))

    def scale_value(self) -> Any:
        """Return the scale as `attend` takes it."""
        return scale_of(self.scale)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NoiseFlags:
    """How noisy the keys are around their means."""

    noisy: Annotated[
        list[int] | None,
        Parameter(consume_multiple=True, help="Keys with noise along themselves. [default: 0]"),
    ] = None
    variance: Annotated[float, Parameter(help="Variance v of that noise: Σ = σ²I + v μμᵀ.")] = 0.5
    isotropic: Annotated[
        float, Parameter(help="Variance σ² of every key in every direction (0: vanishing).")
    ] = 0.0
    covariances: Annotated[
        str | None,
        Parameter(help="Full covariances instead: a file with (d, d) for all keys, or (n, d, d)."),
    ] = None

    def around(self, means: Any) -> Any:
        """Return the Gaussian keys with these means."""
        from heedful.arrays import indices
        from heedful.attention.noise import GaussianKeys

        if self.covariances is not None:
            return GaussianKeys.of(means, covariances=self._covariances(means))
        chosen = indices("--noisy", [0] if self.noisy is None else self.noisy, len(means))
        return GaussianKeys.of(
            means,
            isotropic=_variance("--isotropic", self.isotropic),
            noisy=dict.fromkeys(chosen, _variance("--variance", self.variance)),
        )

    def _covariances(self, means: Any) -> Any:
        import numpy as np

        from heedful.arrays import numpy64
        from heedful.data.arrays import read_array

        for flag, given in (("--noisy", self.noisy is not None), ("--isotropic", self.isotropic)):
            if given:
                raise InputError(
                    flag,
                    "was given together with --covariances",
                    expected="full covariances already say everything",
                    hint="leave one of them out",
                )
        assert self.covariances is not None
        stack = numpy64("--covariances", read_array(self.covariances, "--covariances"))
        return np.broadcast_to(stack, (len(means), *stack.shape)) if stack.ndim == 2 else stack


def _variance(flag: str, value: float) -> float:
    from heedful.arrays import number_of

    variance = number_of(flag, value)
    if variance < 0:
        raise InputError(flag, f"is {variance:g}", expected="a variance of 0 or more was expected")
    return variance


def scale_of(text: str) -> Any:
    """Return what --scale says: a number, or "sqrt_d"."""
    from heedful.arrays import number_of

    return text if text == "sqrt_d" else number_of("--scale", text)


def read_numbers(texts: list[str], flag: str) -> Any:
    """Return numbers written one by one, or the array that a file or JSON in place holds."""
    from heedful.arrays import number_of
    from heedful.data.arrays import looks_like_array, read_array

    if len(texts) == 1 and looks_like_array(texts[0]):
        return read_array(texts[0], flag)
    return [number_of(flag, text) for text in texts]


def read_values(source: str | None, count: int) -> Any:
    """Return the values that a flag names, or None for the unit vectors."""
    from heedful.arrays import matrix
    from heedful.data.arrays import read_array

    if source is None:
        return None
    values = matrix("--values", read_array(source, "--values"))
    if values.shape[0] != count:
        raise InputError(
            "--values",
            f"has {values.shape[0]} rows",
            expected=f"one row for each of the {count} keys was expected",
        )
    return values


LINE_BYTES = 1_000_000
"""Bytes of one line that are kept."""
BLOCK = 1 << 16
BOM = b"\xef\xbb\xbf"


def arriving(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what a stream holds, without waiting for more than there is."""
    read = getattr(stream, "read1", stream.read)
    while block := read(BLOCK):
        yield block


def blocks_of_lines(chunks: Iterable[bytes]) -> Iterator[list[str]]:
    """Yield the lines that each chunk completes, and finally the one without a line end.

    >>> list(blocks_of_lines([b"a\\nb", b"c\\r\\n\\n", b"d"]))
    [['a'], ['bc', ''], ['d']]
    """
    tail, start = b"", True
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = (tail + whole[0])[:LINE_BYTES]
            tail = rest[:LINE_BYTES]
            yield [_text(line, start and place == 0) for place, line in enumerate(whole)]
            start = False
        else:
            tail = (tail + rest)[:LINE_BYTES]
    if tail and not (start and tail == BOM):
        yield [_text(tail, start)]


def _text(line: bytes, first: bool) -> str:
    line = line.removeprefix(BOM) if first else line
    return line.removesuffix(b"\r").decode("utf-8", errors="surrogateescape")


JsonFlag = Annotated[bool, Parameter(help="Print the record as JSON.", negative="")]
FigurePath = Annotated[
    Path | None, Parameter(help="Also draw it: a path ending in .svg, .png or .pdf.")
]

FIGURE_KINDS = (".svg", ".png", ".pdf")

AnyRecord = TypeVar("AnyRecord", bound=Record)


def verb_group(name: str, purpose: str) -> App:
    """Return a verb that has verbs of its own, such as `heed design copy`."""
    return App(name=name, help=purpose, help_format="plaintext", result_action="return_value")


def show(record: AnyRecord, view: Callable[[AnyRecord], Iterable[Block]], *, json: bool) -> None:
    """Print the record as JSON, or as the blocks of its view."""
    if json:
        print(escaped(record.to_json()))
        return
    from heedful.views.terminal import print_blocks

    print_blocks(view(record))


def escaped(text: str) -> str:
    """Return JSON that standard output can say: where it is not UTF-8, in ASCII with escapes.

    Elsewhere a sign that an encoding lacks is replaced; JSON must lose nothing.
    """
    if codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8":
        return text
    # JSON escapes UTF-16, half by half.
    halves = re.compile(r"[^\x00-\x7f]")
    return halves.sub(lambda sign: json_library.dumps(sign[0])[1:-1], text)


def check_figure_path(figure: Path | None) -> None:
    """Refuse a figure that could not be written, before any work is done."""
    if figure is None:
        return
    if figure.suffix.lower() not in FIGURE_KINDS:
        raise InputError(
            "--figure",
            f"{figure.name!r} ends in {figure.suffix or 'nothing'}",
            expected=f"one of {', '.join(FIGURE_KINDS)} was expected",
            hint=f"try --figure {figure.with_suffix('.svg')}",
        )
    if not figure.resolve().parent.is_dir():
        raise InputError(
            "--figure",
            f"the folder {figure.resolve().parent} does not exist",
            hint="make it first, or choose another path",
        )


def draw(record: AnyRecord, figure: Path | None, figure_of: Callable[[AnyRecord], Figure]) -> None:
    """Write the figure of a record, if one was asked for."""
    if figure is None:
        return
    from heedful.views.drawing import save

    try:
        save(figure_of(record), figure)
    except OSError as error:
        raise RunError(
            "--figure",
            f"{figure} cannot be written ({error.strerror or error})",
            hint="choose another path",
        ) from None
