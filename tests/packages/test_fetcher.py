"""Fetching: resumed, verified, and one clear line when an index does not give what the lock says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gpuyard import indexes
from gpuyard.indexes import Settings, pip_settings, public_index
from gpuyard.packages import download
from gpuyard.packages.fetcher import Fetcher, carry
from gpuyard.packages.index import indexes_of
from gpuyard.packages.locked import Locked, best, rank, read
from gpuyard.store.store import Store
from tests.layers.wheels import make
from tests.packages.faulty import Index, serve
from tests.refusals import refused


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(download, "PAUSE", 0)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index with one wheel of some size."""
    wheel = make(tmp_path / "index", files={"sample/data.bin": bytes(range(256)) * 4000})
    with serve(Index(wheel)) as served:
        yield served


def fetcher(index: Index, tmp_path: Path, offline: bool = False) -> Fetcher:
    """A fetcher that knows this index only."""
    return Fetcher(Store(tmp_path / "store"), "3.13", offline, Settings(indexes=(index.url,)))


def locked(index: Index) -> Locked:
    """What a lock says of the wheel, with the hash of another platform's file beside its own."""
    return Locked("sample", "1.0", ("0" * 64, index.wheel.sha))


def files(tmp_path: Path) -> list[str]:
    """The names of the files among the wheels of the store."""
    return [path.name for path in (tmp_path / "store" / "wheels").rglob("*") if path.is_file()]


def test_a_wheel_comes_once(index: Index, tmp_path: Path) -> None:
    """The second time it is in the store, also without an index."""
    first = fetcher(index, tmp_path).ensure(locked(index))
    assert first.path.read_bytes() == index.wheel.path.read_bytes()
    assert fetcher(index, tmp_path, offline=True).ensure(locked(index)) == first
    assert len(index.ranges) == 1


@pytest.mark.parametrize("fault", ["half", "500", "503", "429", "other"])
def test_a_fault_that_passes_is_tried_again(index: Index, tmp_path: Path, fault: str) -> None:
    """Server errors, half files and files damaged on the way."""
    index.faults = [fault]
    assert fetcher(index, tmp_path).ensure(locked(index)).sha == index.wheel.sha


def test_half_a_file_is_resumed_where_it_stopped(index: Index, tmp_path: Path) -> None:
    """The next request asks for the rest only; so does the next run."""
    half = index.wheel.size // 2
    index.faults = ["half", "404"]
    with refused("download-failed", "404"):
        fetcher(index, tmp_path).ensure(locked(index))
    assert files(tmp_path) == [index.wheel.path.name + ".part"]
    fetcher(index, tmp_path).ensure(locked(index))
    assert index.ranges == ["", f"bytes={half}-", f"bytes={half}-"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [("html", "a web page came"), ("404", "HTTP 404"), ("500", "HTTP 500"), ("other", "the lock has")],
)
def test_a_fault_that_stays_is_one_line(index: Index, tmp_path: Path, fault: str, words: str) -> None:
    """The file, the address and the reason; nothing wrong is in the store."""
    index.faults = [fault] * 20
    with refused("download-failed", index.wheel.path.name, index.url.split("/")[2], words):
        fetcher(index, tmp_path).ensure(locked(index))
    assert index.wheel.path.name not in files(tmp_path)


def test_a_break_without_words_is_named_by_its_kind(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many of the client's exceptions carry no text."""

    def broken(*_arguments: object) -> None:
        raise httpx2.ReadTimeout("")

    monkeypatch.setattr(download, "_receive", broken)
    with refused("download-failed", "ReadTimeout"):
        fetcher(index, tmp_path).ensure(locked(index))


@pytest.mark.parametrize("page", ["404", "500"])
def test_an_index_without_the_project_is_named(index: Index, tmp_path: Path, page: str) -> None:
    """The line says what was looked for, and where."""
    index.page = page
    with refused("wheel-not-found", "sample==1.0", "3.13", "127.0.0.1"):
        fetcher(index, tmp_path).ensure(locked(index))


def test_an_index_that_does_not_answer_is_one_line(index: Index, tmp_path: Path) -> None:
    """Nothing listens there."""
    index.url = "http://127.0.0.1:9/simple/"
    with refused("index-unreadable", "sample==1.0"):
        fetcher(index, tmp_path).ensure(locked(index))


def test_a_wheel_that_the_lock_does_not_name_is_not_taken(index: Index, tmp_path: Path) -> None:
    """Its name and version are right and its hash is not."""
    with refused("wheel-not-found", "sample==1.0"):
        fetcher(index, tmp_path).ensure(Locked("sample", "1.0", ("0" * 64,)))


def test_a_wheel_damaged_in_the_store_is_fetched_again(index: Index, tmp_path: Path) -> None:
    """A changed byte is noticed before it is used."""
    path = fetcher(index, tmp_path).ensure(locked(index)).path
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert fetcher(index, tmp_path).ensure(locked(index)).path.read_bytes() == index.wheel.path.read_bytes()


def test_offline_a_missing_wheel_is_named_with_the_way_out(index: Index, tmp_path: Path) -> None:
    """No request leaves."""
    with refused("wheel-not-stored", "sample==1.0", "gpuyard fetch"):
        fetcher(index, tmp_path, offline=True).ensure(locked(index))
    assert index.ranges == []


def test_wheels_are_carried_to_another_store(index: Index, tmp_path: Path) -> None:
    """Out by --export, in by --import, and the build there needs no index; a damaged one is refused."""
    here, stick, there = (Store(tmp_path / name) for name in ("store", "stick", "there"))
    fetcher(index, tmp_path).ensure(locked(index))
    assert carry([locked(index)], "3.13", here, stick) == 1
    assert carry([locked(index)], "3.13", here, stick) == 0
    assert carry([locked(index)], "3.13", stick, there) == 1
    assert Fetcher(there, "3.13", offline=True).ensure(locked(index)).sha == index.wheel.sha
    path = stick.wheel_place(index.wheel.sha, index.wheel.path.name)
    path.write_bytes(b"")
    with refused("wheel-not-stored", "sample==1.0", stick.folder):
        carry([locked(index)], "3.13", stick, Store(tmp_path / "third"))


def test_the_best_wheel_for_the_python_is_chosen() -> None:
    """A wheel for exactly this Python wins over a pure one; others don't count."""
    names = [
        "sample-1.0-py3-none-any.whl",
        "sample-1.0-cp313-cp313-manylinux_2_28_x86_64.whl",
        "sample-1.0-cp313-cp313-manylinux_2_28_aarch64.whl",
        "sample-1.0-cp314-cp314-manylinux_2_28_x86_64.whl",
    ]
    assert best(names, "3.13") == names[1]
    assert rank(names[2], "3.13") is None
    assert rank(names[3], "3.13") is None
    assert rank("sample-1.0.tar.gz", "3.13") is None


def test_pip_reads_its_own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment included, which wins over files."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert pip_settings()["index-url"] == "https://mirror.example/simple"
    assert Settings.read().indexes[0] == "https://mirror.example/simple"


def test_without_a_named_index_the_public_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """And none at all with pip's no-index, as pip does."""
    assert [url.startswith("https://") for url in indexes_of(Settings())] == [True]
    assert indexes_of(Settings(indexes=("https://mirror.example/simple",))) == ("https://mirror.example/simple",)
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(indexes, "pip_settings", lambda: {"extra-index-url": "https://second.example/simple"})
    assert Settings.read().indexes == (public_index(), "https://second.example/simple")
    monkeypatch.undo()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert indexes_of(Settings.read()) == ()


def test_a_requirement_without_a_hash_is_refused(tmp_path: Path) -> None:
    """A lock that verifies nothing is none."""
    (tmp_path / "lock.txt").write_text("sample==1.0\n")
    with refused("lock-without-hash", "sample==1.0"):
        read(tmp_path / "lock.txt")
