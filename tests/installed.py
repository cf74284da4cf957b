"""Does the package work where only the package is? `python tests/installed.py`, about 5 minutes.

Builds the sdist from this tree and the wheel from the sdist, installs the wheel into a new
environment elsewhere, under the bound of constraints.txt, and uses it as somebody would who has
never seen this repository: `heed translate`, `heed check`, `heed serve`. Every step prints a line;
the first that fails ends it. Not part of the suite: it downloads torch.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "models,web"
SHEET = """\
[[claim]]
id = "weights"
says = "The weights add up to one."
keys = "any"
query = "x"
where = { n = [1, 2, 3], d = 2, x = "vector d" }
expect = "sum(alpha_i, i) = 1"

[[claim]]
id = "average"
says = "k_a + k_b averages the values of a and b."
keys = "orthonormal"
where = { n = [2, 10] }
query = "k_a + k_b"
expect = "c ≈ (v_a + v_b)/2 within 0.02"
"""
START_SECONDS = 60.0
"""How long a server may take until it says its address."""


def run(*words: str | Path, cwd: Path, ends: int = 0) -> str:
    """Run a command without anything of this tree in its environment; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=kept, capture_output=True, encoding="utf-8"
    )
    if done.returncode != ends:
        said = f"{done.stdout}\n{done.stderr}".strip()[-2000:]
        raise SystemExit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{said}")
    return done.stdout


def step(what: str, work: Callable[[], str]) -> None:
    """Do a step, and print what it found and how long it took."""
    began = time.monotonic()
    found = work()
    print(f"{what:<10} {found} ({time.monotonic() - began:.0f} s)", flush=True)


def environment(place: Path) -> Path:
    """Make a new environment; return the folder of its programs."""
    run(sys.executable, "-m", "venv", place, cwd=place.parent)
    return place / "bin"


def built(folder: Path) -> str:
    """Build the sdist, and the wheel from it."""
    programs = environment(folder / "builder")
    run(programs / "pip", "install", "--quiet", "build", cwd=folder)
    run(programs / "python", "-m", "build", "--outdir", folder / "dist", ROOT, cwd=folder)
    files = sorted((folder / "dist").iterdir())
    return ", ".join(f"{file.name} {file.stat().st_size / 1e6:.1f} MB" for file in files)


def installed(folder: Path) -> str:
    """Install the wheel into an environment of its own."""
    programs = environment(folder / "environment")
    wheel = next((folder / "dist").glob("*.whl"))
    constraints = ROOT / "constraints.txt"
    run(programs / "pip", "install", "--quiet", "--constraint", constraints,
        f"{wheel}[{EXTRAS}]", cwd=folder)  # fmt: skip
    code = "import heedful, torch; print(heedful.__version__, torch.__version__, heedful.__file__)"
    version, torch, place = run(programs / "python", "-c", code, cwd=folder).split(maxsplit=2)
    assert str(folder) in place, f"imported from {place}"
    return f"heedful {version} beside torch {torch}"


def translated(folder: Path) -> str:
    """Translate with the model that comes with the package."""
    said = run(_heed(folder), "translate", "Où est la gare ?", cwd=folder).strip()
    assert "station" in said, said
    return f"Où est la gare ? → {said}"


def checked(folder: Path) -> str:
    """Judge two claims: one that holds and one that does not."""
    (folder / "sheet.toml").write_text(SHEET, encoding="utf-8")
    # 1 is what `heed check` ends with where a claim is refuted.
    said = json.loads(run(_heed(folder), "check", "sheet.toml", "--json", cwd=folder, ends=1))
    verdicts = {one["id"]: one["verdict"] for one in said["claims"]}
    assert verdicts == {"weights": "proved", "average": "refuted"}, verdicts
    return ", ".join(f"{name} {verdict}" for name, verdict in verdicts.items())


def served(folder: Path) -> str:
    """Open the page as a browser would: by the address with the key, then its files."""
    server = subprocess.Popen(
        [str(_heed(folder)), "serve", "--no-browser"], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, encoding="utf-8",
    )  # fmt: skip
    try:
        assert server.stdout is not None
        found = re.search(r"https?://\S+", server.stdout.readline())
        assert found, "it said no address"
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        asks = urllib.request.build_opener(jar)
        # What browsers send with an address that somebody typed; without it nothing is served.
        asks.addheaders = [("Sec-Fetch-Site", "none")]
        page = asks.open(found[0], timeout=START_SECONDS).read().decode()
        script = re.search(r'src="(/assets/[^"]+\.js)"', page)
        assert script, "the page has no script: it was not built"
        origin = re.match(r"https?://[^/]+", found[0])
        assert origin
        size = len(asks.open(origin[0] + script[1], timeout=START_SECONDS).read())
        return f"the page, with a script of {size / 1e3:.0f} kB"
    finally:
        server.terminate()
        server.wait(timeout=START_SECONDS)


def _heed(folder: Path) -> Path:
    return folder / "environment" / "bin" / "heed"


def main() -> None:
    """Take every step in a folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="heedful-installed-") as place:
        folder = Path(place)
        for what, work in (
            ("built", built), ("installed", installed), ("translated", translated),
            ("checked", checked), ("served", served),
        ):  # fmt: skip
            step(what, lambda work=work: work(folder))


if __name__ == "__main__":
    main()
