"""Files are found, checked and downloaded; nothing is left half-written, and messages help."""

import hashlib
import re
import sys
from http.client import IncompleteRead
from pathlib import Path

import pytest

from clustruct.datasets import _files
from clustruct.datasets._files import DataFile, locate

CONTENT = b"some data\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """A folder for CLUSTRUCT_DATA and one for the cache, neither of them there yet."""
    named, cache = tmp_path / "named", tmp_path / "cache"
    monkeypatch.setenv("CLUSTRUCT_DATA", str(named))
    monkeypatch.setattr(_files, "_cache_folder", lambda: cache)
    return named, cache


def data_file(url=None, name="data.csv"):
    return DataFile(name=name, sha256=SHA256, source="the archive of data", url=url)


def put(folder, content=CONTENT, name="data.csv"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_the_named_folder_comes_before_the_cache(places):
    named, cache = places
    in_cache = put(cache)
    assert locate(data_file(), data_home=None) == in_cache
    in_named = put(named)
    assert locate(data_file(), data_home=None) == in_named


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_named_folder(places, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("CLUSTRUCT_DATA")
    else:
        monkeypatch.setenv("CLUSTRUCT_DATA", value)
    in_cache = put(places[1])
    assert locate(data_file(), data_home=None) == in_cache


def test_a_given_folder_replaces_both(places, tmp_path):
    put(places[0])
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        locate(data_file(), data_home=tmp_path / "elsewhere")
    path = put(tmp_path / "elsewhere")
    assert locate(data_file(), data_home=tmp_path / "elsewhere") == path
    assert locate(data_file(), data_home=str(tmp_path / "elsewhere")) == path


def test_a_tilde_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = put(tmp_path / "mine")
    assert locate(data_file(), data_home="~/mine") == path
    monkeypatch.setenv("CLUSTRUCT_DATA", "~/mine")
    assert locate(data_file(), data_home=None) == path


def test_the_first_of_equivalent_files(places):
    second = put(places[1], name="b.csv")
    files = [data_file(name="a.csv"), data_file(name="b.csv")]
    assert locate(*files, data_home=None) == second
    first = put(places[1], name="a.csv")
    assert locate(*files, data_home=None) == first


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [
        ("linux", "XDG_CACHE_HOME", "base/clustruct"),
        ("linux", None, "home/.cache/clustruct"),
        ("darwin", None, "home/Library/Caches/clustruct"),
        ("win32", "LOCALAPPDATA", "base/clustruct"),
        ("win32", None, "home/AppData/Local/clustruct"),
    ],
)
def test_cache_of_each_system(tmp_path, monkeypatch, platform, variable, end):
    monkeypatch.undo()  # the cache of the fixture
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path / "base"))
    assert _files._cache_folder() == tmp_path / end


def refused(kind, parts, *args, **kwargs):
    with pytest.raises(kind) as caught:
        locate(*args, **kwargs)
    for part in parts:
        assert part in str(caught.value), f"no {part!r} in: {caught.value}"


def test_missing_file(places):
    parts = ["data.csv", *map(str, places), "the archive of data", "CLUSTRUCT_DATA", "put it in"]
    refused(FileNotFoundError, parts, data_file(), data_home=None)


def test_missing_file_that_is_not_to_be_downloaded(places, tmp_path):
    url = put(tmp_path / "web").as_uri()
    refused(
        FileNotFoundError, ["data.csv"], data_file(url), data_home=None, download_if_missing=False
    )
    assert not places[1].exists()


def test_corrupted_file(places):
    path = put(places[0], b"other data\n")
    found = hashlib.sha256(b"other data\n").hexdigest()
    parts = [str(path), SHA256, found, "Delete it", "the archive of data"]
    refused(OSError, parts, data_file(), data_home=None)
    assert path.exists()  # it is the user's to delete


def test_download(places, tmp_path):
    source = put(tmp_path / "web")
    path = locate(data_file(source.as_uri()), data_home=None)
    assert path == places[1] / "data.csv"
    assert path.read_bytes() == CONTENT
    assert not places[0].exists()  # downloads go to the cache, not to the folder that was named
    source.unlink()
    assert locate(data_file(source.as_uri()), data_home=None) == path


def test_download_to_a_given_folder(tmp_path):
    url = put(tmp_path / "web").as_uri()
    path = locate(data_file(url), data_home=tmp_path / "mine")
    assert path == tmp_path / "mine" / "data.csv"


def test_download_of_something_else_leaves_nothing(places, tmp_path):
    url = put(tmp_path / "web", b"an error page").as_uri()
    parts = ["downloaded from", url, "data.csv", SHA256, "Try again", "the archive of data"]
    refused(OSError, parts, data_file(url), data_home=None)
    assert list(places[1].iterdir()) == []


def test_download_that_fails_leaves_nothing(places, tmp_path):
    url = (tmp_path / "nothing.csv").as_uri()
    parts = ["data.csv", url, "could not be downloaded", "the archive of data", "CLUSTRUCT_DATA"]
    refused(OSError, parts, data_file(url), data_home=None)
    assert list(places[1].iterdir()) == []


@pytest.mark.parametrize(
    "error", [ConnectionResetError("connection reset by peer"), IncompleteRead(b"some", 100)]
)
def test_download_that_breaks_off_leaves_nothing(places, monkeypatch, error):
    class Broken:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self, size):
            raise error

    monkeypatch.setattr("urllib.request.urlopen", lambda url, timeout: Broken())
    file = data_file("https://example.org/data.csv")
    refused(OSError, ["example.org", str(error), "Try again"], file, data_home=None)
    assert list(places[1].iterdir()) == []


@pytest.mark.parametrize("module", ["multitask", "reviews", "tables"])
def test_files_are_described_in_full(module):
    module = pytest.importorskip(f"clustruct.datasets.{module}")
    files = [value for value in vars(module).values() if isinstance(value, DataFile)]
    assert files
    for file in files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.source
        assert file.url is None or file.url.startswith("https://")
