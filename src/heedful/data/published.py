"""Published corpora that can be fetched by name: known address, checksum and licence.

Nothing is fetched unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError, RunError
from heedful.files import Progress, RemoteFile, download, user_cache
from heedful.records import Record


@dataclass(frozen=True, kw_only=True)
class RemoteCorpus:
    """A corpus that others publish."""

    title: str
    licence: str
    files: tuple[RemoteFile, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class FetchedFile(Record):
    """A file that is here now, and whole."""

    path: str
    bytes: int
    checksum: str
    """Checked just now."""
    fresh: bool
    """Whether it was fetched now; else it was there already."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FetchedCorpus(Record):
    """A corpus that is here now."""

    name: str
    title: str
    licence: str
    files: tuple[FetchedFile, ...]


_GITHUB = "https://raw.githubusercontent.com"
_MULTI30K = f"{_GITHUB}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
_MULTI30K_SHA256 = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}
CORPORA: dict[str, RemoteCorpus] = {
    "tatoeba": RemoteCorpus(
        title="French-English sentence pairs of Tatoeba, as manythings.org gave them in April 2019",
        licence="CC BY 2.0 (attribution: tatoeba.org and manythings.org/anki)",
        files=(
            RemoteFile(
                name="fra.txt",
                address=f"{_GITHUB}/modelexlab/data/adddaf33ac35572bcfeb421efec29435e7ea9332"
                "/fra-eng.zip",
                # The archive itself has no published checksum; Git names its content.
                checksum="git:bc1f1f6c8baedecfc033f081290172f0506ee37b",
                most_bytes=50_000_000,
                member="fra.txt",
            ),
        ),
    ),
    "multi30k": RemoteCorpus(
        title="Multi30k, task 1: captions in French and English",
        licence="research and education only (derived from Flickr30K)",
        files=tuple(
            RemoteFile(
                name=name,
                address=f"{_MULTI30K}/{name}",
                checksum=f"sha256:{digest}",
                most_bytes=5_000_000,
            )
            for name, digest in _MULTI30K_SHA256.items()
        ),
    ),
}


def data_folder(name: str) -> Path:
    """Return where a corpus is once it is fetched: in the user's cache."""
    return user_cache() / "data" / name


def fetch_corpus(
    name: str, folder: Path | None = None, progress: Progress | None = None
) -> FetchedCorpus:
    """Download the files of a known corpus to a folder, unless whole copies are there already."""
    if name not in CORPORA:
        raise InputError(
            "corpus",
            f"{name!r} is not a corpus that can be fetched",
            expected=f"one of {', '.join(CORPORA)} was expected",
        )
    corpus = CORPORA[name]
    target = data_folder(name) if folder is None else folder
    files = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in corpus.files:
            fresh, path = download(file, target, progress), target / file.name
            size = path.stat().st_size
            files.append(
                FetchedFile(path=str(path), bytes=size, checksum=file.checksum, fresh=fresh)
            )
    except OSError as error:
        raise RunError(
            str(target),
            f"cannot be written ({error.strerror or error})",
            hint="free some space, or choose another folder with --to",
        ) from None
    return FetchedCorpus(name=name, title=corpus.title, licence=corpus.licence, files=tuple(files))
