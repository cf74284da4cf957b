"""More than a hundred sheets that somebody might send who means no good, or slipped.

Each is written into a folder by `write_all`: as files in the repository, bad bytes, pipes
and links would trouble every other tool. The name of a case says what it tries.
"""

from __future__ import annotations

import os
from pathlib import Path

LIMIT = 64 * 1024


def claim(expect: str = "1 = 1", **fields: str) -> str:
    """Return a claim; the fields are TOML as it stands."""
    lines = [f"{name} = {value}" for name, value in fields.items()]
    return "\n".join(["[[claim]]", 'id = "x"', f"expect = {toml(expect)}", *lines, ""])


def toml(text: str) -> str:
    """Return a basic TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


FORMULAS = {
    "import": "__import__('os').system('id') = 0",
    "import-statement": "import os",
    "dunder-class": "().__class__.__bases__[0].__subclasses__() = 1",
    "dunder-name": "__builtins__ = 1",
    "dunder-globals": "alpha.__globals__ = 1",
    "eval": "eval('1') = 1",
    "exec": 'exec("x = 1") = 1',
    "open-file": "open('/etc/passwd') = 1",
    "lambda": "(lambda: 0)() = 0",
    "walrus": "(x := 1) = 1",
    "f-string": "f'{1}' = 1",
    "list-comprehension": "[x for x in y] = 1",
    "star-arguments": "max(*x) = 1",
    "keyword-argument": "sum(x, axis=0) = 1",
    "semicolon": "1 = 1; import os",
    "backtick": "`id` = 1",
    "dollar": "$HOME = 1",
    "percent-format": "'%s' % 1 = 1",
    "template": "{{ 7 * 7 }} = 49",
    "shell": "$(touch owned) = 1",
    "sql": "x = 1 -- drop",
    "path": "../../etc/passwd = 1",
    "comment": "1 = 1 # and more",
    "string": "'a' = 'a'",
    "sympify": "sympify(1) = 1",
    "attribute": "x.shape = 2",
    "index-slice": "x[1:2] = 1",
    "unknown-function": "softmx(x) = x",
    "wrong-arity": "exp(1, 2, 3) = 1",
    "empty-call": "exp() = 1",
    "no-relation": "beta + 1",
    "relation-without-left": "= 1",
    "relation-without-right": "1 =",
    "unbalanced": "((1 = 1)",
    "unbalanced-bar": "|x = 1",
    "bare-operator": "+",
    "double-operator": "1 * / 2 = 1",
    "too-long": "1 = " + "1+" * 300 + "1",
    "too-deep": "(" * 100 + "1" + ")" * 100 + " = 1",
    "too-many-nodes": " + ".join(["a"] * 120) + " = 1",
    "long-name": "a" * 490 + " = 1",
    "many-digits": "9" * 100 + " = 1",
    "huge-exponent": "1e99999 = 1",
    "tower-of-powers": "9^9^9^9 = 1",
    "minus-tower": "2^-9^9^9 = 1",
    "factorial-by-product": "prod(i, i) = 1",
    "full-width-dots": "ｘ．ｙ = 1",
    "cyrillic-look-alike": "аlpha_a = 1",
    "emoji": "😀 = 1",
    "combining-marks": "a" + "\u0301" * 50 + " = 1",
    "zero-width-joiner": "al\u200dpha = 1",
    "superscript-chain": "x" + "²" * 60 + " = 1",
    "transpose-chain": "x" + "ᵀ" * 300 + " = 1",
    "minus-chain": "-" * 300 + "1 = 1",
    "not-chain": "not " * 100 + "1 = 1",
    "root-chain": "√" * 300 + "1 = 1",
    "for-all-nothing": "1 = 1 for all",
    "for-all-itself": "1 = 1 for all i != i",
    "within-nothing": "1 ≈ 1 within",
    "negative-tolerance": "1 ≈ 1 within -1",
    "given-nothing": "E(x given) = 1",
}

SILLY = {
    "division-by-zero": claim("1/0 = 1"),
    "division-by-a-hidden-zero": claim("1/(n - 3) = 1", where="{ n = 3 }"),
    "logarithm-of-zero": claim("ln(0) = 1"),
    "root-of-minus-one": claim("sqrt(-1) = 1"),
    "zero-to-the-zero": claim("0^(-1) = 1"),
    "power-of-powers": claim("n^n^n^n = 1", where="{ n = 1000 }"),
    "exponential-of-exponentials": claim("exp(exp(exp(n))) = 1", where="{ n = 1000 }"),
    "undeclared-name": claim("zork = 1"),
    "huge-matrix": claim("X = X", where='{ T = 1000000, X = "matrix T x T" }'),
    "huge-number-of-keys": claim("alpha_a = 1", keys='"orthonormal"', where="{ n = 1000000000 }",
                                 query='"k_a"'),
    "negative-number-of-keys": claim("alpha_a = 1", keys='"orthonormal"', where="{ n = -5 }",
                                     query='"k_a"'),
    "half-a-key": claim("alpha_a = 1", keys='"orthonormal"', where="{ n = 2.5 }", query='"k_a"'),
    "huge-ones": claim("sum(ones(1000000, 1000000), i) = 1"),
    "positions-that-repeat": claim("phi(s) = phi(t) for all s != t < T",
                                   positions='{ kind = "sinusoidal", width = 100000000 }',
                                   where="{ T = 1000000000 }"),
    "unknown-keys": claim(keys='"__import__"'),
    "unknown-domain": claim(where='{ n = "os.system" }'),
    "empty-interval": claim(where='{ x = "[1, 0]" }'),
    "interval-of-nothing": claim(where='{ x = "[nan, nan]" }'),
    "unknown-size": claim("X = X", where='{ X = "matrix ? x R" }'),
    "unknown-positions": claim("phi(1) = 1", positions='{ kind = "../../x" }'),
    "query-without-keys": claim(query='"k_a"'),
    "query-and-heads": claim(keys='"orthonormal"', query='"k_a"', heads='["k_b"]'),
    "shapes-that-do-not-fit": claim("X Y = Y", where='{ X = "matrix 2 x 3", Y = "matrix 2 x 3" }'),
    "doubling-definitions": claim("f_0(x) = 1", where="{ x = 1 }", let="{ " + ", ".join(
        f'"f_{i}(y)" = "f_{i + 1}(y) f_{i + 1}(y)"' for i in range(18)) + ', "f_18(y)" = "y" }'),
    "wrong-number-of-arguments": claim("f(1, 2) = 1", let='{ "f(X)" = "X" }'),
    "thousands-of-cases": claim("a + b + c + d + e = -1", where="{ " + ", ".join(
        f"{name} = {list(range(5))}" for name in "abcde") + " }"),
}  # fmt: skip
"""Sheets that are sheets, with claims that make no sense or would take for ever."""

WHOLE: dict[str, bytes] = {
    "empty": b"",
    "only-a-comment": b"# nothing here\n",
    "only-a-title": b'title = "x"\n',
    "not-toml": b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>",
    "python": b"import os\nos.system('touch owned')\n",
    "pickle": b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94.",
    "zip": b"PK\x03\x04" + b"\x00" * 26,
    "null-bytes": b'title = "a\x00b"\n' + claim().encode(),
    "bad-utf-8": b'title = "\xc3\x28"\n' + claim().encode(),
    "overlong-utf-8": b'title = "\xc0\xaf"\n' + claim().encode(),
    "surrogate-utf-8": b'title = "\xed\xa0\x80"\n' + claim().encode(),
    "latin-1": 'title = "Erklärung"\n'.encode("latin-1") + claim().encode(),
    "utf-16": claim().encode("utf-16"),
    "bidi-override": 'title = "a\u202eb"\n'.encode() + claim().encode(),
    "bidi-in-a-comment": "# \u2066 admin \u2069\n".encode() + claim().encode(),
    "bidi-by-escape": b'title = "a\\u202eb"\n' + claim().encode(),
    "invisible-in-an-id": b'[[claim]]\nid = "a\\u200bb"\nexpect = "1 = 1"\n',
    "line-separator": 'title = "a\u2028b"\n'.encode() + claim().encode(),
    "escape-sequence": b'title = "\\u001b[2J"\n' + claim().encode(),
    "carriage-return": b'title = "x"\rsource = "y"\n' + claim().encode(),
    "seventy-kilobytes": b"# " + b"x" * 70_000 + b"\n" + claim().encode(),
    "one-byte-too-many": claim().encode().ljust(LIMIT + 1, b"\n"),
    "two-thousand-and-one-claims": b"[[claim]]\n" * 2001,
    "deep-lists": b"a = " + b"[" * 30_000 + b"]" * 30_000,
    "deep-tables": b"a = " + b"{a=" * 15_000 + b"1" + b"}" * 15_000,
    "deep-lists-in-a-claim": claim(keys="[" * 400 + "1" + "]" * 400).encode(),
    "endless-dotted-key": b".".join([b"a"] * 32_000) + b" = 1",
    "endless-quoted-key": b".".join([b'"a"'] * 16_000) + b" = 1",
    "endless-header": b"[" + b".".join([b"a"] * 32_000) + b"]",
    "endless-integer": b"a = " + b"9" * 60_000,
    "endless-hexadecimal": claim(draws="0x" + "f" * 60_000).encode(),
    "endless-float": claim(tolerance="1e" + "9" * 50_000).encode(),
    "key-twice": b'title = "a"\ntitle = "b"\n' + claim().encode(),
    "key-twice-in-a-claim": (claim() + 'id = "y"\n').encode(),
    "table-twice": b"[defaults]\n[defaults]\n" + claim().encode(),
    "claim-is-a-number": b"claim = 7\n",
    "claim-is-a-table": b'[claim]\nid = "x"\nexpect = "1 = 1"\n',
    "claims-are-numbers": b"claim = [1, 2]\n",
    "defaults-are-a-list": b"defaults = []\n" + claim().encode(),
    "default-id": b'[defaults]\nid = "x"\n' + claim().encode(),
    "unknown-top-level": b"[tool.heedful]\nplugins = ['evil']\n" + claim().encode(),
    "unknown-field": claim(command='"rm -rf /"').encode(),
    "private-field": claim(__class__='"x"').encode(),
    "mistyped-field": b'[[claim]]\nid = "x"\nexpct = "1 = 1"\n',
    "no-id": b'[[claim]]\nexpect = "1 = 1"\n',
    "no-expect": b'[[claim]]\nid = "x"\n',
    "same-id-twice": (claim() + claim()).encode(),
    "id-is-empty": b'[[claim]]\nid = ""\nexpect = "1 = 1"\n',
    "id-is-a-path": b'[[claim]]\nid = "../../x"\nexpect = "1 = 1"\n',
    "id-is-a-list": b'[[claim]]\nid = ["x"]\nexpect = "1 = 1"\n',
    "id-is-long": b'[[claim]]\nid = "' + b"x" * 5000 + b'"\nexpect = "1 = 1"\n',
    "says-is-long": claim(says='"' + "x" * 5000 + '"').encode(),
    "says-is-a-date": claim(says="1979-05-27T07:32:00Z").encode(),
    "expect-is-a-number": b'[[claim]]\nid = "x"\nexpect = 1\n',
    "expect-is-a-table": b'[[claim]]\nid = "x"\nexpect = { a = 1 }\n',
    "expect-is-nested": b'[[claim]]\nid = "x"\nexpect = [["1 = 1"]]\n',
    "expect-is-empty": b'[[claim]]\nid = "x"\nexpect = []\n',
    "where-is-a-list": claim(where="[1]").encode(),
    "where-holds-a-table": claim(where="{ n = { m = 1 } }").encode(),
    "where-holds-a-date": claim(where="{ n = 2020-01-01 }").encode(),
    "where-holds-nan": claim(where="{ n = nan }").encode(),
    "where-holds-infinity": claim(where="{ n = -inf }").encode(),
    "where-holds-a-billion-billion": claim(where="{ n = 1000000000000000000 }").encode(),
    "where-names-a-dunder": claim(where='{ "__class__" = 1 }').encode(),
    "where-names-a-sentence": claim(where='{ "a b" = 1 }').encode(),
    "where-names-nothing": claim(where='{ "" = 1 }').encode(),
    "where-names-at-length": claim(where='{ "' + "a" * 500 + '" = 1 }').encode(),
    "let-itself": claim(let='{ a = "a" }').encode(),
    "let-in-a-circle": claim(let='{ a = "b", b = "c", c = "a" }').encode(),
    "let-recursion": claim(let='{ "f(X)" = "f(X)" }').encode(),
    "let-mutual-recursion": claim(let='{ "f(X)" = "g(X)", "g(X)" = "f(X)" }').encode(),
    "let-redefines-exp": claim(let='{ "exp(x)" = "x" }').encode(),
    "let-imports": claim(let="{ f = \"__import__('os')\" }").encode(),
    "let-without-a-name": claim(let='{ "(X)" = "X" }').encode(),
    "keys-are-ragged": claim(keys="[[1, 2], [3]]").encode(),
    "keys-are-empty": claim(keys="[[]]").encode(),
    "keys-are-nan": claim(keys="[[nan]]").encode(),
    "keys-are-mixed": claim(keys='[[1], "k"]').encode(),
    "draws-without-end": claim(draws="1000000000000").encode(),
    "draws-negative": claim(draws="-1").encode(),
    "seed-is-a-word": claim(seed='"random"').encode(),
    "tolerance-zero": claim(tolerance="0").encode(),
    "quote-left-open": b'[[claim]]\nid = "x\nexpect = "1 = 1"\n',
    "long-quote-left-open": b'[[claim]]\nid = """x\nexpect = "1 = 1"\n',
    "bracket-left-open": b'[[claim]]\nid = "x"\nexpect = ["1 = 1"\n',
    "bad-escape": b'[[claim]]\nid = "\\x41"\nexpect = "1 = 1"\n',
    "surrogate-escape": b'[[claim]]\nid = "\\ud800"\nexpect = "1 = 1"\n',
}


def cases() -> dict[str, bytes]:
    """Return every case that is a plain file."""
    formulas = {f"formula-{name}": claim(text).encode() for name, text in FORMULAS.items()}
    silly = {f"silly-{name}": text.encode() for name, text in SILLY.items()}
    return {**WHOLE, **formulas, **silly}


def write_all(folder: Path, outside: Path) -> list[str]:
    """Write every case into a folder, with pipes and links; return the names."""
    for name, content in cases().items():
        (folder / f"{name}.toml").write_bytes(content)
    outside.write_text(claim(), "utf-8")
    (folder / "link-outside.toml").symlink_to(outside)
    (folder / "link-to-itself.toml").symlink_to(folder / "link-to-itself.toml")
    (folder / "link-to-nothing.toml").symlink_to(folder / "nothing")
    (folder / "link-to-a-device.toml").symlink_to("/dev/zero")
    (folder / "linked-folder").symlink_to(outside.parent, target_is_directory=True)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "a-folder.toml").mkdir()
    os.mkfifo(folder / "pipe.toml")
    links = ["link-outside", "link-to-itself", "link-to-nothing", "link-to-a-device"]
    return sorted([*cases(), *links, "pipe"])
