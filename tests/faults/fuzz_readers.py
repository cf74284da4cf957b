"""Throw files at every reader of corpora: mutated ones, soups of their syntax, bombs, bytes.

    python tests/faults/fuzz_readers.py --count 100000

`--count` files for each of seven readers. Every file must come back as a corpus or as one
InputError in one printable line, within a second. A corpus must hold at least one text, only text
that can be written as UTF-8 and holds no NUL, and the SHA-256 of the file; what was read from
TSV, plain text and parallel files must be the lines of the file. Every 50th corpus is inspected
and split as well. An audit hook fails on a socket, another process, code that is run, and files
opened elsewhere. Fails otherwise, with the file that did it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import random
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from memory_peak import peak_megabytes

from heedful.data.corpus import Documents, Pairs
from heedful.data.inspection import inspect_corpus
from heedful.data.readers import (
    read_json_lines,
    read_parallel,
    read_po,
    read_text,
    read_tmx,
    read_tsv,
)
from heedful.data.splits import linked_groups, split
from heedful.errors import InputError

SLOWEST_ALLOWED = 1.0
MEMORY_ALLOWED = 512  # megabytes

ANY = (
    b"\n", b"\n", b"\r\n", b"\r", b"\t", b"\t", b" ", b"a", b"the cat", b"le chat", b"\xef\xbb\xbf",
    b"\xc3\xa9", b"e\xcc\x81", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\xc2\x85", b"\x0b", b"\x1c",
    b"\xff", b"\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80", b"\0",
    b"\xc0\xaf", b'"', b"'", b"\\", b"\x1b[31m", b"\xc2\xa0",
)  # fmt: skip
JSON = (
    b'{"text": "a"}\n', b'{"fr": "un", "en": "one"}\n', b'{"translation": {"fr": "", "en": "x"}}\n',
    b'{"source": "a", "target": "b"}\n', b"{", b"}", b"[", b"]", b":", b",", b'"text"',
    b'"\\ud800"', b'"\\u0000"', b"null", b"NaN", b"1e999", b"9" * 5000, b"[" * 3000,
    b'{"a":' * 2000, b"\n",
    b'{"text": "a", "text": "b"}\n', b'{"text": 1}\n', b'{"text": "\\ud83d\\ude00"}\n',
)  # fmt: skip
PO = (
    b'msgid ""\nmsgstr "Language: fr\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n',
    b'msgid "cat"\nmsgstr "chat"\n\n', b"#, fuzzy\n", b'#~ msgid "x"\n', b'msgctxt "c"\n',
    b'msgid_plural "cats"\n', b'msgstr[0] "chat"\n', b'msgstr[1] "chats"\n', b'msgstr[99] "x"\n',
    b'msgid "a"\n', b'msgstr "b"\n', b'"more"\n', b'"\\n\\t\\\\ \\""\n', b'"\\q"\n', b'"open\n',
    b"# note\n", b"#: file.c:1\n", b'#| msgid "old"\n', b"\n", b"msgstr[", b"]", b"charset=latin1",
)  # fmt: skip
TMX = (
    b'<?xml version="1.0" encoding="UTF-8"?>', b'<tmx version="1.4">', b'<header srclang="en"/>',
    b"<body>", b"<tu>", b'<tuv xml:lang="en">', b'<tuv xml:lang="fr-FR">', b'<tuv lang="de">',
    b"<seg>", b"cat", b"</seg>", b"</tuv>", b"</tu>", b"</body>", b"</tmx>", b"<bpt>x</bpt>",
    b"<hi>", b"</hi>", b"&amp;", b"&#0;", b"&#xD800;", b"&unknown;", b"<![CDATA[x]]>",
    b"<!-- x -->",
    b"<!DOCTYPE tmx [<!ENTITY a 'b'>]>", b"<?php x?>", b"<ph/>", b"<seg><sub>x</sub></seg>",
    b'<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv></tu>',
)  # fmt: skip
TMX_VALID = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="en"/><body>\n'
    + b'<tu><tuv xml:lang="en"><seg>a <bpt i="1">x</bpt>cat</seg></tuv>'
    b'<tuv xml:lang="fr"><seg>un chat</seg></tuv></tu>\n' * 3 + b"</body></tmx>\n"
)
LINES = "Go.\tVa !\nRun!\tCours\u202f!\nHe is here.\tIl est là.\n".encode()


FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn",
             "os.remove", "os.rename", "urllib.", "http.", "ftplib.", "webbrowser.")  # fmt: skip


watched: list[str] = []
"""The folder of the file that is read just now."""


class Reader(NamedTuple):
    """A reader, a good file of its kind, and pieces of its syntax."""

    read: Callable[[Path], Pairs | Documents]
    valid: bytes
    pieces: tuple[bytes, ...]


def parallel(path: Path) -> Pairs:
    """Read a file beside one with as many lines, or with one more."""
    other = path.with_name("other.en")
    count = path.read_bytes().count(b"\n")
    other.write_bytes(b"x\n" * (count + (hashlib.sha256(path.read_bytes()).digest()[0] < 64)))
    return read_parallel(path, other)


READERS = {
    "tsv": Reader(read_tsv, LINES, ANY),
    "parallel": Reader(parallel, b"un\ndeux\ntrois\n", ANY),
    "text": Reader(read_text, LINES, ANY),
    "jsonl": Reader(read_json_lines, b'{"text": "a \\u00e9"}\n{"text": "b"}\n', (*JSON, *ANY)),
    "po": Reader(read_po, b"".join(PO[:3]) + b'msgid "a"\nmsgstr "b"\n\n' + PO[1], (*PO, *ANY)),
    "tmx": Reader(read_tmx, TMX_VALID, (*TMX, *ANY)),
    "gzip": Reader(read_tsv, LINES, ANY),
}


def mutated(rng: random.Random, reader: Reader) -> bytes:
    """Return a good file with a few changes."""
    content = bytearray(reader.valid * rng.randint(1, 3))
    for _ in range(rng.randint(0, 4)):
        place = rng.randrange(len(content) + 1)
        match rng.randrange(4):
            case 0:
                del content[place : place + rng.randint(1, 12)]
            case 1:
                content[place:place] = rng.choice(reader.pieces)
            case 2:
                content[place : place + 1] = rng.randbytes(1)
            case _:
                start = rng.randrange(len(content) + 1)
                content[place:place] = content[start : start + rng.randint(1, 60)]
    return bytes(content)


def soup(rng: random.Random, reader: Reader) -> bytes:
    """Return pieces of the syntax in any order."""
    return b"".join(rng.choice(reader.pieces) for _ in range(rng.randint(0, 40)))


def repeated(rng: random.Random, reader: Reader) -> bytes:
    """Return one piece, many times; now and then more than a line may hold."""
    piece = rng.choice(reader.pieces)
    most = 1_500_000 if rng.random() < 0.01 else 3_000
    return rng.choice(reader.pieces) + piece * (rng.randint(1, most) // len(piece) + 1)


def noise(rng: random.Random, reader: Reader) -> bytes:
    """Return bytes."""
    return rng.randbytes(rng.randint(0, 120))


KINDS: tuple[Callable[[random.Random, Reader], bytes], ...] = (mutated, soup, repeated, noise)


def packed(rng: random.Random, content: bytes) -> bytes:
    """Return content as gzip, often damaged, now and then a bomb."""
    if rng.random() < 0.0005:
        content = content + b"\n" * 30_000_000
    level = rng.choice((0, 1, 9)) if len(content) < 100_000 else 1
    whole = bytearray(gzip.compress(content, level, mtime=0))
    match rng.randrange(8):
        case 0:
            del whole[rng.randrange(len(whole)) :]
        case 1:
            whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        case 2:
            whole += rng.choice((b"\0" * 20, b"rest", bytes(whole[:30]), bytes(whole)))
        case 3:
            whole = bytearray(gzip.compress(b"", mtime=0)) * rng.randint(1, 200) + whole
        case _:
            pass
    return bytes(whole)


def check(name: str, content: bytes, corpus: Pairs | Documents) -> None:
    """Raise if a corpus is not what its file says."""
    if len(corpus) < 1:
        raise AssertionError("an empty corpus")
    if corpus.origins[0].sha256 != hashlib.sha256(content).hexdigest():
        raise AssertionError("another SHA-256")
    for side in corpus.sides:
        if "\0" in "".join(side):
            raise AssertionError("a NUL")
    int(corpus.fingerprint, 16)  # encodes every text
    if name in ("tsv", "parallel", "text", "gzip"):
        if name == "gzip":
            content = unpacked(content)
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        lines = [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]
        rows = zip(*corpus.sides, strict=True)
        read = ["\t".join(row) if name in ("tsv", "gzip") else row[0] for row in rows]
        wanted = [line.decode() for line in lines]
        if name in ("tsv", "gzip"):
            wanted = ["\t".join(line.split("\t")[:2]) for line in wanted]
        if read != wanted:
            raise AssertionError("other lines")


def unpacked(content: bytes) -> bytes:
    """Unpack gzip with the standard library's own reader, where it can."""
    found = b""
    while content:
        unpacker = zlib.decompressobj(wbits=31)
        found += unpacker.decompress(content)
        content = unpacker.unused_data.lstrip(b"\0")
    return found


def outcome(name: str, path: Path, content: bytes, *, thorough: bool) -> tuple[str, float]:
    """Return what became of a file, and how soon; what is neither corpus nor refusal escapes."""
    start = time.process_time()
    try:
        corpus = READERS[name].read(path)
        seconds = time.process_time() - start
    except InputError as error:
        message = str(error)
        if not message.isprintable() or len(message) > 800:
            raise AssertionError(f"bad message: {message!r}") from None
        return "refused", time.process_time() - start
    check(name, content, corpus)
    if thorough:
        inspect_corpus(corpus).to_json()
        parts = split(corpus, {"train": 0.5, "test": 0.5}).parts
        if sum(len(part.indices) for part in parts) != len(corpus):
            raise AssertionError("a split that loses texts")
        linked_groups(corpus, "source")
    return "accepted", seconds


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Stop whatever a file has no business to cause (an audit hook)."""
    if not watched:
        return
    if event.startswith(FORBIDDEN):
        raise RuntimeError(f"audit: {event} {arguments!r}")
    if event == "open" and not str(arguments[0]).startswith((watched[0], sys.prefix, "/usr/lib")):
        raise RuntimeError(f"audit: open {arguments!r}")


def run(name: str, count: int, seed: int) -> tuple[Counter[str], float, bytes]:
    """Throw files at one reader; return outcomes, the slowest time and its file."""
    rng = random.Random(f"{seed} {name}")
    counts: Counter[str] = Counter()
    slowest, slowest_file = 0.0, b""
    ending = {"parallel": "file.fr", "gzip": "file.tsv.gz"}.get(name, "file.txt")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, ending)
        for number in range(count):
            content = KINDS[number % len(KINDS)](rng, READERS[name])
            content = packed(rng, content) if name == "gzip" else content
            path.write_bytes(content)
            watched[:] = [folder]
            try:
                result, seconds = outcome(name, path, content, thorough=number % 50 < 4)
            except Exception as error:
                raise AssertionError(
                    f"{name}: {type(error).__name__}: {error} on {content[:3000]!r}"
                ) from error
            watched.clear()
            counts[result] += 1
            if seconds > slowest:
                slowest, slowest_file = seconds, content
    return counts, slowest, slowest_file


def warm_up() -> None:
    """Let everything be imported that is imported on first use."""
    corpus = Documents(name="x", texts=("a", "b"))
    pairs = Pairs(name="x", sources=("a",), targets=("b",))
    for made in (corpus, pairs):
        inspect_corpus(made)
        split(made)


def main() -> int:
    """Run the fuzzing and print its figures; 1 if anything went wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2000, help="files for each reader")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", choices=sorted(READERS), nargs="*")
    chosen = options.parse_args()
    warm_up()
    sys.addaudithook(watch)
    worst = 0.0
    for name in chosen.only or READERS:
        began = time.perf_counter()
        try:
            counts, slowest, file = run(name, chosen.count, chosen.seed)
        except AssertionError as error:
            print(f"FAILED {error}")
            return 1
        total = time.perf_counter() - began
        print(
            f"{name:9} {counts['accepted']:7} accepted {counts['refused']:7} refused "
            f"in {total:6.1f} s; slowest {1000 * slowest:5.0f} ms ({len(file):,} bytes)",
            flush=True,
        )
        worst = max(worst, slowest)
    memory = peak_megabytes()
    print(f"{chosen.count} files a reader, seed {chosen.seed}, at most {memory:.0f} MB")
    return int(worst > SLOWEST_ALLOWED or memory > MEMORY_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
