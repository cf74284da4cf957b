"""Work that does what its task says: how the pool of child processes is put to the test."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from heedful.errors import FormulaError
from heedful.workers import report


def obey(diary: str = "") -> Callable[[str], str]:
    """Return a function that obeys orders and notes each, with its process, in a diary."""

    def work(order: str) -> str:
        if diary:
            with Path(diary).open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {order}\n")
        return _obeyed(order)

    return work


def save_when_asked(folder: str) -> Callable[[str], None]:
    """Return a function that works until SIGTERM, then saves; a second signal would lose it."""

    def work(order: str) -> None:
        def save(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(0.3)
            Path(folder, order).write_text("saved", "utf-8")
            os._exit(0)

        signal.signal(signal.SIGTERM, save)
        report(order)
        time.sleep(600)

    return work


def _obeyed(order: str) -> str:
    word, _, detail = order.partition(" ")
    match word:
        case "sleep":
            time.sleep(float(detail))
        case "loop":
            while True:
                pass
        case "hoard":
            hoard = [bytearray(2**20) for _ in range(int(detail))]
            assert hoard
        case "abort":
            os.abort()
        case "leave":
            os._exit(int(detail))
        case "divide":
            raise ZeroDivisionError("one\nby zero")
        case "refuse":
            raise FormulaError("query", "is not understood", line=3, column=5)
        case "report":
            for step in range(int(detail)):
                report((order, step))
    return order
