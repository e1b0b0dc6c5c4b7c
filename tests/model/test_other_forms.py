"""Models as C and as ONNX: compiled and run, they predict what NumPy predicts."""

import shutil
import subprocess

import numpy as np
import pytest
from model_kit import forms

import laconic as lc

MODELS = forms(np.random.default_rng(11))
#: Some of them far off, where the linear part is cut and phases are large.
X = np.random.default_rng(1).normal(size=(200, 4)) * np.array([1.0, 1.0, 1.0, 30.0])
CC = shutil.which("cc")
STRICT = ["-O2", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]

PROBA = """
#include <stdio.h>
#include "model.c"
int main(void)
{
    double x[LACONIC_INPUTS], p[LACONIC_CLASSES];
    while (scanf(" %lf,%lf,%lf,%lf", x, x + 1, x + 2, x + 3) == 4) {
        laconic_proba(x, p);
        for (long k = 0; k < LACONIC_CLASSES; k++)
            printf("%.17g ", p[k]);
    }
    return 0;
}
"""


def lines():
    return "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())


def compiled(folder, source, *flags):
    (folder / "source.c").write_text(source)
    subprocess.run([CC, *STRICT, *flags, "source.c", "-lm", "-o", "program"], cwd=folder, check=True)
    done = subprocess.run([folder / "program"], input=lines(), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", MODELS)
def test_c_predicts_the_same(name, tmp_path):
    model = MODELS[name]
    said = compiled(tmp_path, model.to_c("my"), "-DMY_MAIN")
    expected = model.predict(X)
    if model.classes is None:
        numbers = np.array(said.split(), dtype=float).reshape(expected.shape)
        assert np.abs(numbers - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())
        assert np.abs(numbers - expected).max() < 1e-11 * max(1.0, np.abs(expected).max())  # measured: 3e-15
    else:
        assert said == "".join(f"{label}\n" for label in expected.tolist())


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", ["two classes", "classes"])
def test_c_knows_probabilities(name, tmp_path):
    model = MODELS[name]
    (tmp_path / "model.c").write_text(model.to_c())
    numbers = np.array(compiled(tmp_path, PROBA).split(), dtype=float).reshape(len(X), -1)
    np.testing.assert_allclose(numbers, model.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
def test_the_c_program_says_when_a_line_is_no_input(tmp_path):
    (tmp_path / "model.c").write_text(MODELS["plain"].to_c())
    subprocess.run([CC, *STRICT, "-DLACONIC_MAIN", "model.c", "-lm", "-o", "program"], cwd=tmp_path, check=True)
    for text, code in (("", 0), ("1 2 3 4\n", 0), ("1 2 3\n", 1), ("1 2 x 4\n", 1)):
        done = subprocess.run([tmp_path / "program"], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == code


@pytest.mark.parametrize("name", MODELS)
def test_onnx_predicts_the_same(name):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = MODELS[name]
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    answers = dict(zip((output.name for output in session.get_outputs()), session.run(None, {"X": X}), strict=True))
    expected = model.predict(X)
    if model.classes is None:
        assert np.abs(answers["prediction"] - expected).max() < 1e-11 * max(1.0, np.abs(expected).max())
    else:
        assert answers["label"].tolist() == expected.tolist()
        np.testing.assert_allclose(answers["decision"], model.decision(X), rtol=0, atol=1e-11)
    if model.loss == "logistic":
        np.testing.assert_allclose(answers["probability"], model.predict_proba(X), rtol=0, atol=1e-12)


def test_onnx_in_single_precision():
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = MODELS["plain"]
    near = X / 30
    session = runtime.InferenceSession(model.to_onnx("float32").SerializeToString())
    (said,) = session.run(["prediction"], {"X": near.astype(np.float32)})
    assert np.abs(said - model.predict(near)).max() < 1e-4 * model.scale


def test_a_missing_onnx_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r"to_onnx needs onnx: pip install onnx, or, in a clone, pip install '.\[onnx\]'\.$"
    ):
        MODELS["plain"].to_onnx()


def test_c_of_a_run_from_end_to_end(tmp_path):
    """From a run to a program, with nothing in between but files."""
    if CC is None:
        pytest.skip("there is no C compiler")
    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(300, 4, 4))
    features = lc.RandomFeatures.laplacian(4, 20, bandwidth=1.0, seed=1)
    trace = lc.simulate(lc.WaveRLS(), features, lc.Network.ring(4), inputs, np.sin(3 * inputs).sum(axis=-1))
    model = lc.Model.load(lc.Trace.load(trace.save(tmp_path / "t.npz")).model(3).save(tmp_path / "m.npz"))
    said = np.array(compiled(tmp_path, model.to_c(), "-DLACONIC_MAIN").split(), dtype=float)
    phi = features(X)
    assert np.abs(said - phi @ trace.weights[3]).max() < 1e-11
