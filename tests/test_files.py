"""Files that are written whole: what killed writers leave, and which permissions there are meanwhile."""

import os
import stat
import subprocess
import sys

import pytest

from laconic._files import written_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes and permissions are those of POSIX")

HOLD = """
import sys
from pathlib import Path
from laconic._files import written_whole
with written_whole(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
"""


@pytest.fixture
def writers(tmp_path):
    """Processes that have written half of a file, each when asked for."""
    started = []

    def start():
        command = [sys.executable, "-c", HOLD, str(tmp_path / "state")]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"writing\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def write(path, content=b"new"):
    with written_whole(path) as file:
        file.write(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_killed_writers_left_is_removed_and_what_others_write_stays(tmp_path, writers):
    killed, living = [writers() for _ in range(3)], writers()
    for process in killed:
        process.kill()
        process.wait()
    dead = killed[0].pid
    others = [f".state.previous.{dead}.tmp", f".estate.{dead}.tmp", ".state.word.tmp", ".state..tmp", ".stateX1.tmp"]
    for name in (*others, f".state.{10**30}.tmp"):
        (tmp_path / name).write_bytes(b"")
    assert len(names(tmp_path)) == 4 + len(others) + 1
    write(tmp_path / "state")
    assert names(tmp_path) == sorted([*others, f".state.{living.pid}.tmp", "state"])
    living.communicate(b"\n")
    assert living.returncode == 0 and (tmp_path / "state").read_bytes() == b"half and half"
    assert names(tmp_path) == sorted([*others, "state"])


def test_two_processes_that_write_the_same_file_do_not_mix(tmp_path, writers):
    first, second = writers(), writers()
    for process in (second, first):
        process.communicate(b"\n")
        assert process.returncode == 0 and (tmp_path / "state").read_bytes() == b"half and half"
    assert names(tmp_path) == ["state"]


def test_a_key_is_for_its_owner_alone_from_the_moment_that_it_exists(tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    from laconic.deploy.operations.pem import new_key, write_key

    made, real = [], os.open

    def note(path, flags, mode=0o777, **options):
        number = real(path, flags, mode, **options)
        made.append(stat.S_IMODE(os.fstat(number).st_mode))
        return number

    monkeypatch.setattr(os, "open", note)
    umask = os.umask(0)
    try:
        left = tmp_path / f".key.{os.getpid()}.tmp"
        left.write_bytes(b"of an earlier process of this number, for all to read")
        write_key(tmp_path / "key", new_key())
        write(tmp_path / "state")
    finally:
        os.umask(umask)
    assert made == [0o600, 0o666]
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("key", "state")] == [0o600, 0o666]


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "state", b"old")
    with pytest.raises(TypeError):
        write(tmp_path / "state", "no bytes")
    assert names(tmp_path) == ["state"] and (tmp_path / "state").read_bytes() == b"old"
