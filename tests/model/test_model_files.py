"""Files of models: what is written is read, and whatever else there is gets one sentence."""

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from model_kit import forms

import laconic as lc

MODELS = forms(np.random.default_rng(7))


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_loaded(name, tmp_path):
    model = MODELS[name]
    path = model.save(tmp_path / "model.npz")
    again = lc.Model.load(path)
    X = np.random.default_rng(0).normal(size=(9, 4))
    assert again.decision(X).tobytes() == model.decision(X).tobytes()
    assert (again.predict(X) == model.predict(X)).all()
    assert repr(again) == repr(model) and again.to_c() == model.to_c()
    kept = ("loss", "centre", "scale", "classes", "inputs", "target", "about")
    assert [getattr(again, one) for one in kept] == [getattr(model, one) for one in kept]
    assert [file.name for file in tmp_path.iterdir()] == ["model.npz"]


def refused(data, tmp_path):
    """The sentence with which a file is refused; the same, but for its name, as for its bytes."""
    path = tmp_path / "model.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is not a complete laconic model") as raised:
        lc.Model.load(path)
    said = str(raised.value)
    assert said.startswith(str(path)) and "\n" not in said and said.endswith(".") and len(said) < 500
    with pytest.raises(ValueError, match="data is not a complete laconic model"):
        lc.Model.from_bytes(data)
    return said


def test_damaged_files_are_refused(tmp_path):
    whole = MODELS["parts"].to_bytes()
    for end in (0, 1, 30, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        refused(whole[:end], tmp_path)
    rng = np.random.default_rng(0)
    good = MODELS["parts"].decision(np.ones(4))
    for where in rng.integers(0, len(whole), size=150):
        spoiled = bytearray(whole)
        spoiled[where] ^= 1 << int(rng.integers(8))
        with suppress(ValueError):  # but for a date or an attribute of the archive, which mean nothing
            assert lc.Model.from_bytes(bytes(spoiled)).decision(np.ones(4)) == good


def test_foreign_files_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    features = lc.RandomFeatures.gaussian(2, 5)
    X = rng.uniform(size=(5, 3, 2))
    trace = lc.simulate(lc.Local(), features, lc.Network.ring(3), X, X[..., 0])
    data = trace.save(tmp_path / "trace.npz").read_bytes()
    assert "its header is not that of a model" in refused(data, tmp_path)
    for foreign in (b"", b"hello", b"PK\x03\x04", rng.bytes(1000), "ü".encode("utf-16")):
        refused(foreign, tmp_path)
    with pytest.raises(FileNotFoundError):
        lc.Model.load(tmp_path / "absent.npz")


def rewritten(model, change, arrays=None):
    """A model's file with another header, and other arrays beside it."""
    with np.load(io.BytesIO(model.to_bytes())) as stored:
        parts = dict(stored)
    header = json.loads(parts.pop("header").tobytes())
    change(header)
    out = io.BytesIO()
    words = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(out, header=words, **{**parts, **(arrays or {})})
    return out.getvalue()


HOSTILE = {
    "no inputs": lambda h: h["map"].update(n_inputs=0),
    "inputs beyond all memory": lambda h: h["map"].update(n_inputs=10**15),
    "inputs that are no number": lambda h: h["map"].update(n_inputs="4"),
    "another kind of part": lambda h: h["map"]["blocks"][0].update(kind="exec"),
    "an argument that no part has": lambda h: h["map"]["blocks"][1].update(command="rm"),
    "a limit that is no number": lambda h: h["map"]["blocks"][1].update(limit="5"),
    "a part less": lambda h: h["map"]["blocks"].pop(),
    "no parts": lambda h: h["map"].update(blocks=[], stages=[]),
    "parts that are no list": lambda h: h["map"].update(blocks=7),
    "a map that is none": lambda h: h.update(map=[]),
    "a scale that is none": lambda h: h.update(scale=True),
    "classes that are none": lambda h: h.update(classes={"a": 1}),
    "classes that are lists": lambda h: h.update(classes=[[1], [2]]),
    "inputs without names": lambda h: h.update(inputs=[1, 2, 3, 4]),
    "a target that is none": lambda h: h.update(target=["y"]),
    "a loss that is none": lambda h: h.update(loss=None),
    "no origin": lambda h: h.update(about=None),
    "a later format": lambda h: h.update(format=2),
    "a header cut short": lambda h: h.pop("classes"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_headers_are_refused(what, tmp_path):
    refused(rewritten(MODELS["parts"], HOSTILE[what]), tmp_path)


def test_hostile_arrays_are_refused(tmp_path):
    model = MODELS["parts"]
    same = lambda header: None  # noqa: E731
    for arrays in (
        {"weights": np.full_like(model.weights, np.nan)},
        {"weights": model.weights[:-1]},
        {"weights": model.weights[:, None, None]},
        {"weights": model.weights.astype(complex)},
        {"weights": model.weights.astype(object)},
        {"weights": np.array(["1.0"] * 44)},
        {"map.stages.0.columns": np.array([0, 2, 9])},
        {"map.stages.0.columns": np.array([0, -2, 3])},
        {"map.stages.0.columns": np.array([0.0, 2.0, 3.0])},
        {"map.stages.0.scale": np.array([1.0, np.inf, 2.0])},
        {"map.blocks.0.frequencies": np.ones((20, 5))},
        {"map.blocks.0.frequencies": np.ones(6)},
        {"map.blocks.9.frequencies": np.ones((2, 6))},
        {"map.blocks.1.first": np.array(3)},
        {"evil": np.ones(3)},
    ):
        refused(rewritten(model, same, arrays), tmp_path)


def test_an_archive_that_unpacks_to_far_more_than_it_is_takes_no_memory(tmp_path):
    out = io.BytesIO(MODELS["plain"].to_bytes())
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("map.blocks.3.x.npy", huge.getvalue() + bytes(10**6))
    assert "not as long as its header says" in refused(out.getvalue(), tmp_path)
