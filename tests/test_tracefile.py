"""Files of traces that are damaged or hostile: one ValueError each, before memory is taken."""

import io
import json
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc

REFUSED = "is not a complete laconic trace: .*[.]$"


@pytest.fixture(scope="module")
def trace(features):
    X, y = make_stream(40, 6)
    return lc.simulate(lc.QCODKLA(), features, NETWORKS["ring"], X, y, engine="reference", collective=True)


@pytest.fixture
def path(trace, tmp_path):
    return trace.save(tmp_path / "run.npz")


def arrays_of(path):
    with np.load(path) as stored:
        return dict(stored)


def assert_refused(path, why=REFUSED):
    with pytest.raises(ValueError, match=why) as caught:
        lc.Trace.load(path)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 600


def test_every_truncation_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, 400, 7), *range(400, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert_refused(path)


def test_a_flipped_byte_is_refused_or_changes_nothing(path, trace):
    """Some bytes of an archive say nothing, the time of day for instance; no other may go unnoticed."""
    whole = bytearray(path.read_bytes())
    dice = np.random.default_rng(0)
    refused = 0
    for at in dice.choice(len(whole), size=600, replace=False):
        damaged = whole.copy()
        damaged[at] ^= int(dice.integers(1, 256))
        path.write_bytes(damaged)
        try:
            again = lc.Trace.load(path)
        except ValueError:
            refused += 1
        else:
            assert np.array_equal(again.predictions, trace.predictions)
            assert again.about == trace.about
            assert np.array_equal(again.weights, trace.weights)
    assert refused > 450


def test_random_bytes_are_refused(path):
    dice = np.random.default_rng(1)
    for length in (0, 1, 21, 22, 100, 5000):
        path.write_bytes(dice.bytes(length))
        assert_refused(path)
        path.write_bytes(b"PK\x03\x04" + dice.bytes(length) + b"PK\x05\x06" + bytes(18))
        assert_refused(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"predictions": np.zeros((40, 6, 2))}, "predictions have shape"),
        ({"predictions": np.zeros((39, 6))}, "expected"),
        ({"predictions": np.zeros((0, 0))}, "predictions have shape"),
        ({"labels": np.zeros((40, 5))}, "labels are float64 of shape"),
        ({"labels": np.zeros((40, 6), dtype=complex)}, "only numbers and words"),
        ({"labels": np.full((40, 6), "x")}, "labels are"),
        ({"sent": np.zeros((40, 6))}, "sent are float64"),
        ({"energy": np.zeros(41)}, "energy are"),
        ({"degrees": np.zeros(6)}, "degrees are float64"),
        ({"degrees": np.zeros(7, dtype=int)}, "degrees are int64"),
        ({"broadcast": np.zeros((5, 22))}, "broadcast has shape"),
        ({"broadcast": np.zeros(22)}, "broadcast has shape"),
        ({"state.weights": np.zeros((6, 21))}, "state.weights are"),
        ({"state.duals": np.zeros((3, 22))}, "a row for each agent"),
        ({"unheard_of": np.zeros(3)}, "an unknown array 'unheard_of'"),
        ({"neighbours": np.zeros(3)}, "an unknown array 'neighbours'"),
        ({"energy": None}, "it lacks energy"),
        ({"state.weights": None}, "it lacks weights"),
        ({"predictions": None}, "it lacks predictions"),
        ({"header": None}, "it has no header"),
        ({"header": np.zeros(9 << 20, dtype=np.uint8)}, "far too long"),
        ({"labels": np.array([[object()] * 6] * 40, dtype=object)}, "only numbers and words"),
        ({"labels": np.zeros((40, 6), dtype="datetime64[s]")}, "only numbers and words"),
        ({"labels": np.zeros((40, 6), dtype=[("a", "f8")])}, "unknown form"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(path, change, why):
    arrays = {name: array for name, array in (arrays_of(path) | change).items() if array is not None}
    np.savez_compressed(path, allow_pickle=True, **arrays)
    assert_refused(path, f"is not a complete laconic trace: .*{why}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda h: [], r"its format is \[\]"),
        (lambda h: "x" * 1000, "its format is"),
        (lambda h: h | {"format": 2}, "its format is 2, this version reads 1"),
        (lambda h: h | {"round": -1}, "not that of a trace"),
        (lambda h: h | {"round": 39}, "more rounds than it says"),
        (lambda h: h | {"round": "40"}, "not that of a trace"),
        (lambda h: h | {"round": 10**40}, "not that of a trace"),
        (lambda h: h | {"about": None}, "not that of a trace"),
        (lambda h: h | {"about": {**h["about"], "message_bits": "many"}}, "says 'many' for message_bits"),
        (lambda h: h | {"about": {**h["about"], "message_bits": 10**40}}, "for message_bits"),
        (lambda h: h | {"about": {**h["about"], "seconds": None}}, "says 'None' for seconds"),
        (lambda h: h | {"about": {}}, "says 'None' for name"),
    ],
)
def test_a_wrong_header_is_refused(path, change, why):
    arrays = arrays_of(path)
    header = json.loads(arrays["header"].tobytes())
    arrays["header"] = np.frombuffer(json.dumps(change(header)).encode(), dtype=np.uint8)
    np.savez_compressed(path, **arrays)
    assert_refused(path, f"is not a complete laconic trace: .*{why}")


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"", b"1" * 10_000, b"nonsense"])
def test_a_header_that_is_no_json_is_refused(path, text):
    np.savez_compressed(path, **(arrays_of(path) | {"header": np.frombuffer(text, dtype=np.uint8)}))
    assert_refused(path)


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def with_member(path, name, data, **options):
    """The archive at ``path`` with one of its members replaced by ``data``."""
    kept = {}
    with zipfile.ZipFile(path) as archive:
        kept = {info.filename: archive.read(info) for info in archive.infolist()}
    kept[f"{name}.npy"] = data
    with zipfile.ZipFile(path, "w", **({"compression": zipfile.ZIP_DEFLATED} | options)) as archive:
        for filename, content in kept.items():
            archive.writestr(filename, content)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x02\x00" + (2**32 - 1).to_bytes(4, "little") + b" " * 1000,
        npy_header(b"(" * 3000),
        npy_header(b"[" * 90 + b"]" * 90),
        npy_header(b"__import__('os').system('true')"),
        npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1" + b"0" * 300 + b",)}"),
        npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 6)}"),
        npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1e3, 6)}"),
        npy_header(b"{'descr': '|O', 'fortran_order': False, 'shape': (40, 6)}") + bytes(1920),
        npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (40, 6)}") + bytes(1919),
        npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (40, 6)}") + bytes(1921),
        npy_header(b"{'descr': '<U2000000000', 'fortran_order': False, 'shape': (40, 6)}"),
        npy_header(b"{'descr': [('a', '<f8', (10**9,))], 'fortran_order': False, 'shape': (40, 6)}"),
        npy_header(b"{'fortran_order': False}"),
    ],
)
def test_a_wrong_array_header_is_refused(path, data):
    with_member(path, "labels", data)
    assert_refused(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_unknown_compression_is_refused(path, compression):
    with_member(path, "labels", npy_header(b"{}"), compression=compression)
    assert_refused(path, "packed in an unknown way")


def test_encrypted_and_doubled_members_are_refused(path):
    whole = path.read_bytes()
    encrypted = bytearray(whole)
    with zipfile.ZipFile(path) as archive:
        directory = archive.start_dir
    encrypted[directory + 8] |= 1
    path.write_bytes(encrypted)
    assert_refused(path, "encrypted")
    path.write_bytes(whole)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", b"")
    assert_refused(path, "twice")


def bomb(rounds):
    """A trace of zeros whose arrays belong together: a thousandth of their size."""
    about = {"name": "x", "loss": "squared", "message_bits": 1, "regularization": 0, "energy_before": 0, "seconds": 0}
    header = json.dumps({"format": 1, "round": rounds, "about": about}).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        small = {"header": np.frombuffer(header, dtype=np.uint8), "degrees": np.zeros(1, dtype=int)}
        small |= {"broadcast": np.zeros((1, 2)), "state.weights": np.zeros((1, 2))}
        for name, array in small.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, array)
        for name in ("predictions", "labels", "sent", "saturated", "consensus_error", "energy", "replica_error"):
            descr, size = ("|b1", 1) if name == "sent" else ("<f8", 8)
            shape = (rounds, 1) if size == 1 or name in ("predictions", "labels", "saturated") else (rounds,)
            text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".encode()
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy_header(text))
                for start in range(0, rounds * size, 1 << 22):
                    member.write(bytes(min(1 << 22, rounds * size - start)))
    return buffer.getvalue()


MEMORY = """
import resource, sys
import laconic as lc
small, large = sys.argv[1:]
lc.Trace.load(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    lc.Trace.load(large)
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_unpacked(path, tmp_path):
    large = tmp_path / "bomb.npz"
    large.write_bytes(bomb(6_000_000))
    assert large.stat().st_size < 2**20
    done = subprocess.run([sys.executable, "-c", MEMORY, path, large], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert "is not a complete laconic trace: its" in said
    assert "would unpack to 294000188." in said
    unit = 1024 if sys.platform == "linux" else 1
    assert int(grown) * unit < 32 * 2**20


def test_a_small_file_of_zeros_is_no_bomb(tmp_path):
    small = tmp_path / "zeros.npz"
    small.write_bytes(bomb(1000))
    assert lc.Trace.load(small).mse()[-1] == 0


def test_members_that_share_their_bytes_are_refused(path):
    """A directory that names the same bytes many times unpacks to many times the file."""
    with zipfile.ZipFile(path) as archive:
        start, end = archive.start_dir, path.stat().st_size - 22
    whole = path.read_bytes()
    directory = whole[start:end]
    renamed = [directory.replace(b"predictions", f"info.{k:06}".encode()) for k in range(100)]
    data = whole[:start] + directory + b"".join(renamed)
    count = (101 * directory.count(b"PK\x01\x02")).to_bytes(2, "little")
    size = (101 * len(directory)).to_bytes(4, "little")
    path.write_bytes(data + b"PK\x05\x06" + bytes(4) + count * 2 + size + start.to_bytes(4, "little") + bytes(2))
    assert_refused(path)


def test_a_declared_size_that_is_a_lie_is_refused(path, trace):
    """The stream holds less, or more, than the directory says; of more, no byte is unpacked."""
    data = npy_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (40, 6)}") + bytes(1920)

    def write(wrong):
        trace.save(path)
        with_member(path, "labels", wrong)
        lengths = len(wrong).to_bytes(4, "little"), len(data).to_bytes(4, "little")
        checksums = zlib.crc32(wrong).to_bytes(4, "little"), zlib.crc32(data).to_bytes(4, "little")
        path.write_bytes(path.read_bytes().replace(*lengths).replace(*checksums))

    write(data[:-8])
    assert_refused(path)
    write(data + bytes(10_000))
    assert not lc.Trace.load(path).labels.any()


def test_long_traces_of_zeros_are_written_so_that_they_can_be_read(tmp_path, features, monkeypatch):
    """What would shrink to less than a thirtieth is not compressed at all."""
    monkeypatch.setattr("laconic._npz._ALWAYS", 1000)
    X = np.zeros((4000, 6, 3))
    trace = lc.simulate(lc.Local(), features, NETWORKS["ring"], X, np.zeros((4000, 6)))
    again = lc.Trace.load(trace.save(tmp_path / "zeros.npz"))
    assert np.array_equal(again.predictions, trace.predictions)
    assert (tmp_path / "zeros.npz").stat().st_size > 100_000


def test_memory_orders_and_words_survive(trace, tmp_path):
    import dataclasses

    info = {"names": np.array(["ann", "ben"]), "upside": np.asfortranarray(np.arange(12.0).reshape(3, 4))}
    odd = dataclasses.replace(trace, predictions=np.asfortranarray(trace.predictions), info=info)
    again = lc.Trace.load(odd.save(tmp_path / "odd.npz"))
    assert np.array_equal(again.predictions, trace.predictions)
    assert again.info["names"].tolist() == ["ann", "ben"]
    assert np.array_equal(again.info["upside"], info["upside"])


def test_a_folder_is_no_trace(tmp_path):
    assert_refused(tmp_path)
