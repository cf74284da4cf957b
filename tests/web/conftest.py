"""One browser, one server and one folder of trained runs for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import chromium
from page_server import Running, running
from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a server without runs or models, for the views that need none."""
    with running(runs=tmp_path_factory.mktemp("no-runs")) as started:
        yield started


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two short trainings: a translator, and a model that can be asked."""
    from trained_runs import train_both  # only tests about models wait for torch

    folder = tmp_path_factory.mktemp("runs")
    train_both(folder)
    return folder


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that reads long sentences."""
    from trained_runs import write_reader

    folder = tmp_path_factory.mktemp("models") / "reader"
    write_reader(folder)
    return folder


@pytest.fixture(scope="session")
def opinionated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that continues any text, random and so of many opinions."""
    from model_of_bytes import model_of_bytes

    return model_of_bytes(tmp_path_factory.mktemp("models") / "opinionated")


@pytest.fixture(scope="session")
def models_server(runs: Path, reader: Path) -> Iterator[Running]:
    """Return a server over these trainings and this model."""
    with running(runs=runs, models=(reader,)) as started:
        yield started
