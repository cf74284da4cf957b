"""Downloads against a server of our own: cut, gone on with, wrong, too large, unreachable."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heedful.cli.train import data_app
from heedful.data import published
from heedful.data.published import CORPORA, RemoteCorpus, data_folder, fetch_corpus
from heedful.errors import InputError, RunError
from heedful.files import RemoteFile, git_name_of

CONTENT = bytes(range(256)) * 2000
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one file, and misbehaves on demand."""

    content = CONTENT
    cut_after: int | None = None
    ignores_ranges = False
    wrong_range = False
    redirects_to = ""
    asked: list[str | None]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        if self.path == "/missing":
            self.send_error(404)
            return
        if server.redirects_to:
            self.send_response(302)
            self.send_header("Location", server.redirects_to)
            self.end_headers()
            return
        asked = self.headers.get("Range")
        server.asked.append(asked)
        start = 0
        if asked and not server.ignores_ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(server.content):
                self.send_error(416)
                return
            self.send_response(206)
            shown = start + server.wrong_range
            self.send_header("Content-Range", f"bytes {shown}-{len(server.content) - 1}/*")
        else:
            self.send_response(200)
        body = server.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if server.cut_after is None else body[: server.cut_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def known(monkeypatch: pytest.MonkeyPatch, address: str, **changes: object) -> None:
    """Make `small` a corpus of one file at this address."""
    settings = {"name": "small.txt", "address": address, "checksum": SHA256, "most_bytes": 10**6}
    file = RemoteFile(**(settings | changes))  # type: ignore[arg-type]
    corpus = RemoteCorpus(title="A small file", licence="CC0", files=(file,))
    monkeypatch.setitem(CORPORA, "small", corpus)


def test_a_file_is_fetched_checked_and_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    steps: list[tuple[int, int]] = []
    record = fetch_corpus("small", tmp_path, lambda done, total: steps.append((done, total)))
    (file,) = record.files
    assert Path(file.path).read_bytes() == CONTENT
    assert file.fresh
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["small.txt"]
    assert not fetch_corpus("small", tmp_path).files[0].fresh
    assert len(server.asked) == 1
    Path(file.path).write_bytes(b"damaged")
    assert fetch_corpus("small", tmp_path).files[0].fresh


def test_a_cut_download_goes_on_where_it_stopped(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    server.cut_after = 100_000
    with pytest.raises(RunError, match=r"the connection broke .*100,000 bytes are kept"):
        fetch_corpus("small", tmp_path)
    assert (tmp_path / "small.txt.part").read_bytes() == CONTENT[:100_000]
    assert not (tmp_path / "small.txt").exists()
    server.cut_after = None
    fetch_corpus("small", tmp_path)
    assert server.asked == [None, "bytes=100000-"]
    assert (tmp_path / "small.txt").read_bytes() == CONTENT
    assert not (tmp_path / "small.txt.part").exists()


def test_a_server_without_ranges_starts_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    server.ignores_ranges = True
    (tmp_path / "small.txt.part").write_bytes(b"something else")
    fetch_corpus("small", tmp_path)
    assert (tmp_path / "small.txt").read_bytes() == CONTENT


def test_a_part_that_is_whole_is_only_checked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    (tmp_path / "small.txt.part").write_bytes(CONTENT)
    fetch_corpus("small", tmp_path)
    assert (tmp_path / "small.txt").read_bytes() == CONTENT


def test_a_wrong_part_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    server.wrong_range = True
    (tmp_path / "small.txt.part").write_bytes(CONTENT[:10])
    with pytest.raises(RunError, match="another part than was asked for"):
        fetch_corpus("small", tmp_path)
    assert (tmp_path / "small.txt.part").read_bytes() == CONTENT[:10]


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    server.content = CONTENT[:-1] + b"x"
    (tmp_path / "small.txt").write_bytes(b"an older copy")
    with pytest.raises(RunError, match="gave a file with the checksum sha256:"):
        fetch_corpus("small", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["small.txt"]
    assert (tmp_path / "small.txt").read_bytes() == b"an older copy"


def test_a_larger_file_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address, most_bytes=1000)
    with pytest.raises(RunError, match="is larger than 1,000 bytes"):
        fetch_corpus("small", tmp_path)
    assert not (tmp_path / "small.txt").exists()


def archive(member: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(member, CONTENT)
    return buffer.getvalue()


def test_a_member_of_an_archive_is_checked_by_its_git_name(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    known(monkeypatch, server.address, checksum=f"git:{blob}", member="inner.txt")
    server.content = archive("inner.txt")
    fetch_corpus("small", tmp_path)
    assert (tmp_path / "small.txt").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["small.txt"]
    (tmp_path / "small.txt").unlink()
    for content in (archive("other.txt"), b"no archive", server.content[:-30]):
        server.content = content
        with pytest.raises(RunError, match=r"gave no zip archive that holds inner\.txt"):
            fetch_corpus("small", tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_git_names_are_those_of_git(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"test content\n")
    # The example of the Git book, section "Git Objects".
    assert git_name_of(path) == "d670460b4b4aece5915caf5c68d12f560a9fe3e4"


def test_what_to_do_without_a_network_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, "http://127.0.0.1:9/file")  # the discard port: nobody listens
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(RunError) as error:
        fetch_corpus("small", tmp_path)
    message = str(error.value)
    assert "cannot be reached" in message
    assert f"on a machine that is online, and put it at {tmp_path / 'small.txt'}" in message
    assert "\n" not in message
    (tmp_path / "small.txt").write_bytes(CONTENT)
    assert not fetch_corpus("small", tmp_path).files[0].fresh


def test_missing_files_and_other_protocols_are_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address.replace("/file", "/missing"))
    with pytest.raises(RunError, match="the server answered 404"):
        fetch_corpus("small", tmp_path)
    known(monkeypatch, server.address)
    for address in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
        server.redirects_to = address
        with pytest.raises(RunError, match="the server answered 302"):
            fetch_corpus("small", tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, server.address)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot be written"):
        fetch_corpus("small", tmp_path / "file")
    known(monkeypatch, server.address, most_bytes=10**18)
    with pytest.raises(RunError, match="bytes left; up to 1,000,000,000,000,000,000"):
        fetch_corpus("small", tmp_path / "folder")


def test_known_corpora_have_addresses_checksums_and_licences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for corpus in CORPORA.values():
        assert corpus.licence
        for file in corpus.files:
            assert file.address.startswith("https://")
            kind, _, digest = file.checksum.partition(":")
            assert len(digest) == {"sha256": 64, "git": 40}[kind]
            assert Path(file.name).name == file.name
    with pytest.raises(InputError, match="one of tatoeba, multi30k"):
        fetch_corpus("wmt")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder("tatoeba") == tmp_path / "heedful" / "data" / "tatoeba"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_folder("tatoeba").is_relative_to(Path.home())


def test_the_verb_shows_where_the_files_are(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known(monkeypatch, server.address)
    assert published.CORPORA is CORPORA
    assert data_app(["get", "small", "--to", str(tmp_path)], exit_on_error=False) == 0
    assert "Licence: CC0." in capsys.readouterr().out
    assert data_app(["get", "small", "--to", str(tmp_path), "--json"], exit_on_error=False) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["fresh"] is False
