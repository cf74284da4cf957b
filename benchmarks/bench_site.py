"""Does the translator of a site say what Python says? How large is the folder, how long the wait?

    python benchmarks/bench_site.py

Writes a site, serves it from a subpath by a plain file server, and opens it in Chromium. 200
sentences (the phrasebook's, and proverbs and dialogue with typographic signs) are typed and
translated there, one by one; their tokens are compared with those of `heed translate --json`. Every
request that does not go to the site is counted. The first translation is timed from the click, with
an empty browser cache: everything is loaded and opened in that time.

Prints one JSON line; stores benchmarks/results/site.json.
"""

from __future__ import annotations

import functools
import http.server
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from surroundings import surroundings

from heedful.data.synthetic.phrasebook import phrasebook, typeset
from heedful.files import SHIPPED
from heedful.web.site import BEAMS, write_site

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / name) for name in ("", "web")]
from browsing import chromium  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "site.json"
SENTENCES = 200
OTHERS = (
    "« Pierre qui roule n’amasse pas mousse », disait ma grand-mère.",
    "L’État, c’est moi… ou bien toi ?",
    "Prix : 12,50 € — réservé aux moins de 26 ans.",
    "Qu'est-ce que c'est que ça ?!",
    "À l’œuvre on connaît l’artisan.",
    "Le 14 juillet 1789, le peuple prit la Bastille.",
    "OK, d'accord, j'arrive dans 5 min.",
    "Noël approche ; les enfants attendent le père Noël avec impatience.",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def sentences() -> list[str]:
    """Return the sentences: every second one typeset as print has it."""
    pairs = phrasebook(SENTENCES - len(OTHERS), seed=22).train
    plain = [pair.french for pair in pairs]
    return [*OTHERS, *(typeset(one) if i % 2 else one for i, one in enumerate(plain))][:SENTENCES]


def translated(address: str, lines: list[str]) -> dict[str, Any]:
    """Translate in the browser: tokens, seconds, and requests that leave the site."""
    tokens, seconds, outside = [], [], 0
    with chromium() as browser:
        page = browser.new_context().new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}#/models")
        button = page.get_by_role("button", name="Translate", exact=True)
        for line in lines:
            page.get_by_label("French sentence").fill(line)
            began = time.perf_counter()
            button.click()
            page.wait_for_function(
                "line => document.querySelector('ol[data-tokens]')?.dataset.source === line",
                arg=line, timeout=120_000,
            )  # fmt: skip
            seconds.append(time.perf_counter() - began)
            found = page.locator("ol[data-tokens]").get_attribute("data-tokens") or ""
            tokens.append([int(one) for one in found.split()])
            page.wait_for_function("() => !document.querySelector('form button.strong').disabled")
        outside = sum(not url.startswith((address, "data:", "blob:")) for url in asked)
    return {"tokens": tokens, "seconds": seconds, "outside": outside}


def main() -> None:
    """Write, translate, compare, store."""
    from heedful.studies.translation import Translator

    lines = sentences()
    translator = Translator.open(SHIPPED["fr-en"], reverse=False)
    known = list(translator.translate(lines, beam=BEAMS))
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "course" / "site"
        folder.parent.mkdir()
        quiet = lambda _: lambda *_: None  # noqa: E731
        site = write_site(folder, translator=SHIPPED["fr-en"], beams=BEAMS, meter=quiet)
        handler = functools.partial(_Quiet, directory=root)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = translated(f"http://127.0.0.1:{server.server_port}/course/site/", lines)
        server.shutdown()
    equal = [
        list(one.hypotheses[0].tokens) == tokens
        for one, tokens in zip(known, found["tokens"], strict=True)
    ]
    later = sorted(found["seconds"][1:])
    record = {
        "machine": surroundings("torch"),
        "sentences": len(lines),
        "same_tokens": sum(equal),
        "unlike": [line for line, same in zip(lines, equal, strict=True) if not same],
        "requests_outside": found["outside"],
        "folder_megabytes": round(site.bytes / 1e6, 1),
        "files": site.files,
        "translator_megabytes": round(site.translator_bytes / 1e6, 1),
        "first_translation_seconds": round(found["seconds"][0], 2),
        "median_translation_seconds": round(later[len(later) // 2], 2),
    }
    print(json.dumps(record, ensure_ascii=False))
    RESULTS.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
