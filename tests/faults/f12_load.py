"""F12: many clients, bad requests and half-open sockets, while a training runs beside the server.

    python tests/faults/f12_load.py --seconds 300

50 clients ask what the page asks, each about once a second; a fifth of the requests are bad (no
token, a foreign Host or Origin, no JSON, wrong fields, a body that is too large); 200 sockets are
opened and never say a whole request. No answer may be 5xx; 99 of 100 good ones must come within
500 ms; the server may grow by 50 MB; the training must end with the weights of an undisturbed one.

A machine that itself stands still (suspended, or every process stopped) breaks connections that no
server could have kept: the longest pause of the clock that this process saw is in the figures.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

CLIENTS, HALF_OPEN, BAD_SHARE = 50, 200, 0.2
P99_SECONDS, GROWTH_MB = 0.5, 50.0
STEPS = 200
"""Of the training beside the server."""
TRAINING = """steps = {steps}
log_every = 5
tensorboard = false
seed = 3
[data]
source = "phrasebook"
size = 200
held_out = 20
rows = 8
[model]
preset = "tiny"
[schedule]
warmup = 5
"""


def good_questions() -> list[tuple[str, dict[str, Any]]]:
    """Return what the page asks."""
    circle = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    noise = {"keys": circle, "values": circle, "noisy": 0, "variance": 0.5, "of": [0, 1]}
    layers = [[[8.0, 8.0]], [[8.0, 0.0], [0.0, 8.0]]]
    return [
        ("/api/attention/scene", {"kind": "circle", "n": 32}),
        ("/api/attention/noise", noise | {"layers": layers}),
        ("/api/attention/design", {"kind": "average", "of": [0, 1], "keys": circle}),
        ("/api/positions/study", {"length": 128, "width": 32}),
        ("/api/positions/order", {"positions": True}),
        ("/api/claims/catalog", {}),
        ("/api/models/runs", {}),
        ("/api/about", {}),
    ]


class Client(threading.Thread):
    """One visitor: asks, waits, asks again."""

    def __init__(self, number: int, address: tuple[str, str], deadline: float) -> None:
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.host, self.cookie = address
        self.deadline = deadline
        self.seconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.broken: Counter[str] = Counter()
        self.bad_broken: Counter[str] = Counter()

    def run(self) -> None:
        """Ask until the time is over."""
        while time.monotonic() < self.deadline:
            time.sleep(self.random.uniform(0.2, 1.8))
            bad = self.random.random() < BAD_SHARE
            began = time.monotonic()
            try:
                status = self._bad() if bad else self._good()
            except (OSError, http.client.HTTPException) as error:
                # A large body is refused before it has all been sent: that may close the socket.
                broken = self.bad_broken if bad else self.broken
                broken[f"{type(error).__name__}: {error}"] += 1
                continue
            self.statuses[status] += 1
            if not bad:
                self.seconds.append(time.monotonic() - began)
                if status != 200:
                    self.broken[f"status {status}"] += 1

    def ask(self, path: str, body: bytes, **changes: str) -> int:
        """Ask one question; return the status of its answer."""
        headers = {"Origin": f"http://{self.host}", "Cookie": self.cookie}
        headers |= {"Content-Type": "application/json"} | changes
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def _good(self) -> int:
        path, question = self.random.choice(good_questions())
        return self.ask(path, json.dumps(question).encode())

    def _bad(self) -> int:
        path, question = self.random.choice(good_questions())
        body = json.dumps(question).encode()
        kind = self.random.randrange(7)
        if kind == 0:
            return self.ask(path, body, Cookie="none")
        if kind == 1:
            return self.ask(path, body, Host="evil.example")
        if kind == 2:
            return self.ask(path, body, Origin="http://evil.example")
        if kind == 3:
            return self.ask(path, b"{" * self.random.choice((1, 100, 100_000)))
        if kind == 4:
            return self.ask(path, b" " * 2_000_000)
        if kind == 5:
            return self.ask("/assets/../../etc/passwd", body)
        return self.ask(path, json.dumps(question | {"n": -1, "keys": "many"}).encode())


class Standstill(threading.Thread):
    """Notes the longest time for which this process was not let run."""

    TICK = 0.05

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0

    def run(self) -> None:
        """Look at the clock again and again."""
        before = time.monotonic()
        while True:
            time.sleep(self.TICK)
            now = time.monotonic()
            self.longest = max(self.longest, now - before - self.TICK)
            before = now


def command(*words: object) -> list[str]:
    """Return a `heed` command for a process of its own."""
    return [sys.executable, "-m", "heedful", *map(str, words)]


def begin_server(folder: Path, *words: str | Path) -> tuple[subprocess.Popen[str], tuple[str, str]]:
    """Start `heed serve`; return the process, and host and cookie for its clients."""
    server = subprocess.Popen(
        command("serve", "--port", 0, "--no-browser", "--runs", folder / "runs", *words),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=folder,
    )
    assert server.stdout is not None
    host, token = re.findall(r"http://([\d.:]+)/\?token=(\S+)", server.stdout.readline())[0]
    return server, (host, f"heedful_{host.split(':')[1]}={token}")


def resident(process: int) -> float:
    """Return the memory of a process, in MB."""
    text = Path(f"/proc/{process}/status").read_text("ascii")
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024


def train(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Begin a training."""
    return subprocess.Popen(
        command("train", folder / "training.toml", "--run", folder / "runs" / name),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )


def weights_of(folder: Path, name: str) -> str:
    """Return the hash of what a training made."""
    result = json.loads((folder / "runs" / name / "result.json").read_text("utf-8"))
    return str(result["weights_sha256"])


def half_open(host: str) -> list[socket.socket]:
    """Open sockets that begin a request and never end it."""
    name, port = host.split(":")
    sockets = [socket.create_connection((name, int(port))) for _ in range(HALF_OPEN)]
    for opened in sockets[::2]:
        opened.sendall(b"POST /api/about HTTP/1.1\r\nHost: ")
    return sockets


def load(seconds: float, steps: int) -> dict[str, Any]:
    """Run the whole experiment."""
    with tempfile.TemporaryDirectory(prefix="heedful-load-") as place:
        folder = Path(place)
        (folder / "training.toml").write_text(TRAINING.format(steps=steps), "utf-8")
        assert train(folder, "alone").wait() == 0
        server, address = begin_server(folder)
        try:
            # The first questions import what they need, torch included: that is no growth.
            warm = Client(0, address, 0.0)
            for path, question in good_questions():
                assert warm.ask(path, json.dumps(question).encode()) == 200
            before = resident(server.pid)
            training = train(folder, "beside")
            sockets = half_open(address[0])
            deadline = time.monotonic() + seconds
            still = Standstill()
            still.start()
            clients = [Client(number, address, deadline) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            longest = still.longest
            after = resident(server.pid)
            for opened in sockets:
                opened.close()
            assert training.wait() == 0
        finally:
            server.terminate()
            server.wait()
        times = sorted(second for client in clients for second in client.seconds)
        statuses = sum((client.statuses for client in clients), Counter())
        return {
            "seconds": seconds,
            "requests": sum(statuses.values()),
            "statuses": dict(sorted(statuses.items())),
            "answers_5xx": sum(n for status, n in statuses.items() if status >= 500),
            "good_ones": len(times),
            "good_ones_broken": dict(sum((client.broken for client in clients), Counter())),
            "bad_ones_broken": dict(sum((client.bad_broken for client in clients), Counter())),
            "median_ms": round(1000 * statistics.median(times), 1),
            "p99_ms": round(1000 * times[int(0.99 * len(times))], 1),
            "slowest_ms": round(1000 * times[-1], 1),
            "longest_standstill_ms": round(1000 * longest, 1),
            "memory_before_mb": round(before, 1),
            "growth_mb": round(after - before, 1),
            "training_identical": weights_of(folder, "alone") == weights_of(folder, "beside"),
        }


def reached(found: dict[str, Any]) -> bool:
    """Tell whether the figures are what they must be."""
    return bool(
        found["answers_5xx"] == 0
        and not found["good_ones_broken"]
        and found["p99_ms"] <= 1000 * P99_SECONDS
        and found["growth_mb"] <= GROWTH_MB
        and found["training_identical"]
    )


def main() -> int:
    """Run it, print the figures, and say whether they are reached."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300.0)
    options.add_argument("--steps", type=int, default=STEPS, help="steps of the training beside it")
    chosen = options.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found = load(chosen.seconds, chosen.steps)
    print(json.dumps(found, indent=2))
    print("F12 reached" if reached(found) else "F12 not reached")
    return 0 if reached(found) else 1


if __name__ == "__main__":
    sys.exit(main())
