"""Throw sheets at the reader: mutated ones, fields of the wrong kind, soups of TOML, bytes.

    python tests/faults/fuzz_sheets.py --count 100000

Every sheet must come back as claims and problems, each problem in one printable line and,
where it names a line, one that the sheet has; every answer within a second. Claims that are
accepted must read back the same when written. Fails otherwise, with the sheet that did it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from memory_peak import peak_megabytes

from heedful.claims.sheet import FIELDS, Sheet, claim_text, load_sheet

SLOWEST_ALLOWED = 1.0
MEMORY_ALLOWED = 512  # megabytes

VALID = '''title = "An average of two"
source = "Part 1"

[defaults]
keys = "orthonormal"

[[claim]]
id = "b"
says = """The sum of two keys
averages their values."""
where = { n = [2, 3, 10], "β" = "large" }
query = "β (k_a + k_b)"
expect = "c ≈ (v_a + v_b)/2 within 0.02"  # in the limit

[[claim]]
id = 'equivariant'
where = { T = [2, 3], X = "matrix T x T", P = "permutation T" }
let = { "f(X)" = "softmax(X X^T) X", half = 0.5 }
expect = ["f(P X) = P f(X)", "1 = 1"]
disagrees_with = ["other/b"]

[[claim]]
id = "rows"
keys = [[1, 0], [0, 1.5e0], [-1, 2_000]]
heads = ["k_a", "k_b"]
draws = 100
expect = "alpha_a >= 0"
'''
PIECES = (
    "[[claim]]", "[defaults]", "[claim.where]", "[", "]", "{", "}", "=", ",", ".", "#", " ", "\n",
    "\n", "\r\n", "\t", '"', "'", '"""', "'''", "\\", "\\u0041", "\\ud800", "\\x", "nan", "inf",
    "-0", "1e400", "0x_ff", "1979-05-27", "true", "\ufeff", "\u202e", "\x00", "β", "é", "😀",
    *(f"{name} = " for name in FIELDS), 'id = "x"\n', 'expect = "1 = 1"\n',
)  # fmt: skip
VALUES = (
    '"x"', '"1 = 1"', '"k_a"', '""', "1", "-1", "0.5", "nan", "inf", "true", "[]", "{}", "[1]",
    '["1 = 1"]', "[[1, 2], [3, 4]]", "[[1], [2, 3]]", "{ n = 1 }", '{ n = "large" }',
    "{ n = [1, 2] }", '{ "f(X)" = "f(X)" }', "{ a.b = 1 }", "1979-05-27", "10" * 30, '"\\u202e"',
)  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """Return a good sheet with a few characters changed."""
    text = list(VALID)
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(text))
        match rng.randrange(4):
            case 0:
                del text[place : place + rng.randint(1, 20)]
            case 1:
                text.insert(place, rng.choice(PIECES))
            case 2:
                text[place] = chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x2FFF))))
            case _:
                start = rng.randrange(len(text))
                text[place:place] = text[start : start + rng.randint(1, 80)]
        text = text or ["x"]
    return "".join(text).encode("utf-8", "replace")


def fields(rng: random.Random) -> bytes:
    """Return claims whose fields have values of any kind."""
    parts = []
    for number in range(rng.randint(1, 4)):
        chosen = rng.sample(sorted(FIELDS), rng.randint(0, 5))
        lines = [f"{name} = {rng.choice(VALUES)}" for name in chosen]
        if rng.random() < 0.7 and not {"id", "expect"} & set(chosen):
            lines += [f'id = "{number}"', 'expect = "1 = 1"']
        parts.append("\n".join([rng.choice(("[[claim]]",) * 5 + ("[defaults]",)), *lines, ""]))
    return "".join(parts).encode()


def soup(rng: random.Random) -> bytes:
    """Return pieces of TOML in any order."""
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 60))).encode()


def repeated(rng: random.Random) -> bytes:
    """Return one piece, many times."""
    piece = rng.choice((*PIECES, "a.", '"a".', "[", "{a=", "(", "a = 1\n", "[[claim]]\n"))
    return (rng.choice(PIECES) + piece * rng.randint(1, 9_000)).encode()[: 70 * 1024]


def noise(rng: random.Random) -> bytes:
    """Return bytes."""
    return rng.randbytes(rng.randint(0, 200))


KINDS: tuple[Callable[[random.Random], bytes], ...] = (mutated, fields, soup, repeated, noise)


def outcome(path: Path, content: bytes) -> str:
    """Return what became of a sheet; anything but claims and problems escapes."""
    path.write_bytes(content)
    sheet: Sheet = load_sheet(path)
    lines = content.count(b"\n") + 1
    for problem in sheet.problems:
        message = str(problem)
        if not message.isprintable() or not 1 <= (problem.line or 1) <= lines:
            raise AssertionError(f"bad line or message: {message!r}")
    for claim in sheet.claims:
        again = load_sheet(claim_text(claim)).claims
        if again != (claim,):
            raise AssertionError(f"reads back differently: {claim_text(claim)}")
    if not sheet.claims and not sheet.problems:
        raise AssertionError("neither claims nor problems")
    return "accepted" if not sheet.problems else "in part" if sheet.claims else "refused"


def main() -> int:
    """Run the fuzzing and print its figures; 1 if anything went wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    rng = random.Random(chosen.seed)
    counts: Counter[tuple[str, str]] = Counter()
    slowest, slowest_sheet = 0.0, b""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sheet.toml")
        for number in range(chosen.count):
            kind = KINDS[number % len(KINDS)]
            content = kind(rng)
            start = time.perf_counter()
            try:
                result = outcome(path, content)
            except Exception as error:
                print(f"FAILED on {content!r}\n  {type(error).__name__}: {error}")
                return 1
            seconds = time.perf_counter() - start
            counts[kind.__name__, result] += 1
            if seconds > slowest:
                slowest, slowest_sheet = seconds, content
    total = time.perf_counter() - began
    memory = peak_megabytes()
    for kind in KINDS:
        words = ("accepted", "in part", "refused")
        found = [f"{counts[kind.__name__, word]:7} {word}" for word in words]
        print(f"{kind.__name__:10}", *found)
    print(f"{chosen.count} sheets in {total:.1f} s, seed {chosen.seed}, at most {memory:.0f} MB")
    print(f"slowest: {1000 * slowest:.0f} ms: {slowest_sheet[:80]!r}")
    return int(slowest > SLOWEST_ALLOWED or memory > MEMORY_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
