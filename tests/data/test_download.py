"""Fetching, from a real server on this machine: archives within archives, checksums, the sentence when all fails."""

import dataclasses
import gc
import hashlib
import http.server
import io
import os
import tarfile
import threading
import warnings
import zipfile
from functools import partial

import pytest

from laconic import data
from laconic.data import files, registry

pooch = pytest.importorskip("pooch")

# After a refused request, requests leaves its socket to the garbage collector: collect it here, not in another test.
pytestmark = [pytest.mark.sockets, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]

PLANT = b"AT,V,AP,RH,PE\n14.96,41.76,1024.07,73.17,463.26\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder and the address under which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty cache, and no folder named."""
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    yield tmp_path / "cache" / "laconic"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def entry(monkeypatch):
    """Change where and how a set is published."""

    def change(**facts):
        name = "power-plant"
        facts = {"files": ("plant.csv",), **facts}
        monkeypatch.setitem(registry.REGISTRY, name, dataclasses.replace(registry.REGISTRY[name], **facts))

    return change


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.mkdir("folder")
        for name, content in members.items():
            archive.writestr(f"folder/{name.replace('_', '.', 1)}", content)
    return buffer.getvalue()


def tarred(**members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"./regression/{name.replace('_', '.', 1)}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("served", "content"),
    [
        ("a+zip.zip", zipped(readme_txt=b"words", plant_csv=PLANT)),
        ("nested.zip", zipped(other_csv=b"1", regression_tar__gz=b"")),
        ("tape.tar.gz", tarred(other_csv=b"1", plant_csv=PLANT)),
        ("plant.csv", PLANT),
        ("5976036", tarred(plant_csv=PLANT)),
    ],
)
def test_a_file_is_found_wherever_it_is_packed(server, entry, home, served, content):
    folder, address = server
    if served == "nested.zip":  # as the Buzz archive: a tar.gz within a zip
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("regression.tar.gz", tarred(other_csv=b"1", plant_csv=PLANT))
        content = buffer.getvalue()
    (folder / served).write_bytes(content)
    entry(url=f"{address}/{served}", sha256=hashlib.sha256(PLANT).hexdigest())
    plant = data.load("power-plant", progress=False)
    assert plant.y.tolist() == [463.26]
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["plant.csv"]  # and nothing else stays
    (folder / served).unlink()
    assert data.fetch("power-plant") == home / "power-plant" / "plant.csv"  # now it is at hand
    assert data.load("power-plant", download=False).y.tolist() == [463.26]


def test_downloads_go_into_the_folder_that_is_named(server, entry, home, tmp_path, monkeypatch, capsys):
    folder, address = server
    (folder / "plant.csv").write_bytes(PLANT)
    entry(url=f"{address}/plant.csv")
    named = tmp_path / "named"
    named.mkdir()
    assert data.fetch("power-plant", data_dir=named) == named / "power-plant" / "plant.csv"
    assert "100%" in capsys.readouterr().err  # the progress bar
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("LACONIC_DATA", str(other))
    assert data.fetch("power-plant", progress=False) == other / "power-plant" / "plant.csv"
    assert capsys.readouterr().err == ""
    assert not home.exists()


def test_a_folder_that_cannot_be_written_to_is_left_alone(server, entry, home, tmp_path, monkeypatch):
    folder, address = server
    (folder / "plant.csv").write_bytes(PLANT)
    entry(url=f"{address}/plant.csv")
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    real = os.access
    # Root may write anywhere, so that permissions alone would not show this.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    assert data.fetch("power-plant", data_dir=sealed, progress=False) == home / "power-plant" / "plant.csv"
    assert data.load("power-plant", data_dir=sealed, download=False).n_rows == 1  # found in the cache


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"sha256": "0" * 64}, "its checksum differs"),
        ({"archive_sha256": "0" * 64}, "its download failed .*hash"),
        ({"files": ("elsewhere.csv",)}, "does not contain it"),
        ({"url": "{address}/absent.zip"}, "its download failed \\(404"),
        ({"url": "http://127.0.0.1:9/closed.zip"}, "there is no connection to 127.0.0.1"),
        ({"url": "{address}/broken.zip", "files": ("x.csv",)}, "does not contain it"),
    ],
)
def test_when_it_cannot_be_had_one_sentence_says_which_file_to_put_where(server, entry, home, facts, sentence):
    folder, address = server
    (folder / "plant.zip").write_bytes(zipped(plant_csv=PLANT))
    (folder / "broken.zip").write_bytes(zipped(plant_csv=PLANT)[:80])
    facts = {"url": f"{address}/plant.zip", **facts}
    facts["url"] = facts["url"].format(address=address)
    entry(**facts)
    with pytest.raises(data.Unavailable, match=sentence) as caught:
        data.load("power-plant", progress=False)
    message = str(caught.value)
    assert facts.get("files", ("plant.csv",))[0] in message
    assert facts["url"] in message and f"put it into {home}" in message and "LACONIC_DATA" in message
    assert "\n" not in message and message.count(". ") == 0
    assert not list(home.rglob("*"))  # nothing half-done stays behind
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, OSError)


def test_without_pooch_and_without_leave_to_download(entry, tmp_path, monkeypatch):
    entry(url="http://127.0.0.1:9/closed.zip")
    with pytest.raises(data.Unavailable, match="downloads are switched off"):
        data.load("power-plant", download=False)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(data.Unavailable, match="pooch, which would fetch it, is not installed"):
        data.load("power-plant", data_dir=tmp_path)
    assert files.cache() == tmp_path / ".cache" / "laconic"


def test_fetch_of_what_needs_no_file_and_of_what_does_not_exist(monkeypatch):
    assert data.fetch("synthetic") is None
    with pytest.raises(ValueError, match="name must be a file or one of"):
        data.fetch("nothing")
    monkeypatch.setenv("LACONIC_DATA", "/no/such/folder")
    with pytest.raises(ValueError, match="the environment variable LACONIC_DATA must name a folder"):
        data.load("energy")


def test_a_file_in_the_folder_named_is_preferred_and_its_own_subfolder_comes_first(tmp_path, monkeypatch):
    for below in ("a-first", "power-plant"):
        (tmp_path / below).mkdir()
        (tmp_path / below / "Folds5x2_pp.csv").write_bytes(PLANT)
    assert data.fetch("power-plant", data_dir=tmp_path).parent.name == "power-plant"
    (tmp_path / "Folds5x2_pp.csv.gz").write_bytes(b"")
    assert data.fetch("power-plant", data_dir=tmp_path).parent == tmp_path
