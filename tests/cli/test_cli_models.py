"""``laconic export`` and ``laconic predict``: from a run to predictions, by files alone."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cli_kit import fail, run, set_terminal, write_files

import laconic as lc
from laconic import data


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def flats(capsys, *words):
    return run(capsys, "run", "flats.csv", "--target", "rent", "--learner", "waverls", "--out", "out", *words)


@pytest.mark.parametrize("scale", ["column", "matrix", "running"])
def test_a_run_leaves_a_model_in_the_units_of_its_data(scale, files, capsys):
    flats(capsys, "--scale", scale)
    own = data.load("flats.csv", target="rent")
    model = lc.Model.load("out/model.npz")
    assert (model.inputs, model.target) == (("a", "b", "c"), "rent")
    errors = model.predict(own.X) - own.y
    assert np.mean(errors**2) < (0.5 if scale == "running" else 0.01) * own.y.var()
    out, err = run(capsys, "export", "out/trace.npz", "-o", "again.npz")
    assert err == "" and out.startswith("Wrote again.npz: Model(3 inputs -> scale -> waves")
    assert Path("again.npz").read_bytes() == Path("out/model.npz").read_bytes()


def test_predictions_of_a_file_are_those_of_the_model(files, capsys):
    flats(capsys)
    out, err = run(capsys, "predict", "out/model.npz", "flats.csv")
    own = data.load("flats.csv", target="rent")
    said = out.splitlines()
    assert said[0] == "prediction" and err == ""
    expected = lc.Model.load("out/model.npz").predict(own.X)
    assert [float(line) for line in said[1:]] == expected.tolist()
    out, _ = run(capsys, "predict", "out/model.npz", "flats.csv", "-o", "p.csv")
    assert Path("p.csv").read_text().splitlines() == said
    error = float(np.mean((expected - own.y) ** 2))
    assert out == f"Wrote p.csv: 300 predictions, mean square error {error:#.4g}.\n"
    told = json.loads(run(capsys, "predict", "out/model.npz", "flats.csv", "--json")[0])
    assert told["prediction"] == expected.tolist() and told["mean_square_error"] == pytest.approx(error)
    assert (told["rows"], told["missing"], told["inputs"]) == (300, 0, ["a", "b", "c"])


def test_columns_are_found_by_name_and_missing_values_are_said(files, capsys):
    flats(capsys)
    model = lc.Model.load("out/model.npz")
    Path("new.csv").write_text("street,c,b,a\nx,0.1,0.2,0.3\ny,0.1,,0.3\nz,0.5,0.5,nan\nw,0.9,0.8,0.7\n")
    out, err = run(capsys, "predict", "out/model.npz", "new.csv")
    first, last = model.predict([[0.3, 0.2, 0.1], [0.7, 0.8, 0.9]]).tolist()
    assert out.splitlines() == ["prediction", repr(first), '""', '""', repr(last)]
    assert err == ("laconic: 2 rows of 4 with missing values (the first in column 'b', row 2): no predictions there.\n")
    Path("bare.csv").write_text("0.3,0.2,0.1\n")
    Path("words.csv").write_text("a,b,c\n1,2,x\n")
    Path("near.csv").write_text("a,b,C\n1,2,3\n")
    for name, sentence in (
        ("bare.csv", "laconic: bare.csv has no column 'a', which the model needs: its columns are 'x0', 'x1', 'x2'."),
        ("words.csv", "laconic: words.csv: the column 'c' must hold numbers, but it holds text."),
        ("near.csv", "laconic: near.csv has no column 'c', which the model needs: its columns are 'a', 'b', 'C'."),
        ("header.csv", "laconic: header.csv has a header and no rows."),
        ("absent.csv", "laconic: there is no file 'absent.csv'."),
    ):
        assert fail(capsys, "predict", "out/model.npz", name) == sentence
    lc.Model(model.feature_map, model.weights).save("nameless.npz")
    assert run(capsys, "predict", "nameless.npz", "bare.csv")[0].count("\n") == 2


def test_words_and_dates_are_made_into_inputs_as_they_were_when_learned(files, capsys):
    rng = np.random.default_rng(0)
    towns = rng.choice(["Basel", "Bern", "Chur"], 120)
    days = [f"2026-0{month}-1{day}" for month, day in rng.integers(1, 10, (120, 2))]
    rents = [f"CHF {500 + 100 * len(town) + 30 * int(day[6])}" for town, day in zip(towns, days, strict=True)]
    lines = [",".join(row) for row in zip(towns, days, rents, strict=True)]
    Path("towns.csv").write_text("\n".join(["town,since,rent", *lines]))
    run(capsys, "run", "towns.csv", "--target", "rent", "--agents", "3", "--out", "out")
    told = json.loads(run(capsys, "predict", "out/model.npz", "towns.csv", "--json")[0])
    assert told["inputs"] == ["town=Basel", "town=Bern", "town=Chur", "since"]
    assert told["mean_square_error"] < 1000 and told["missing"] == 0
    Path("new.csv").write_text("since,town\n2026-03-11,Bern\n2026-03-11,Zug\n")
    out, err = run(capsys, "predict", "out/model.npz", "new.csv")
    assert out.splitlines()[1:] != out.splitlines()[2:] and out.count("\n") == 3
    assert err == "laconic: new.csv: the model knows no 'Zug' in 'town': taken for none of its words.\n"


def test_a_model_without_names_takes_as_many_columns_as_it_has_inputs(files, capsys):
    features = lc.RandomFeatures.gaussian(2, 5)
    lc.Model(lc.model.FeatureMap.of(features), np.ones(10)).save("m.npz")
    said = fail(capsys, "predict", "m.npz", "flats.csv")
    assert said == (
        "laconic: flats.csv has 4 columns of numbers and the model takes 2 inputs, whose names it does not know."
    )


def test_classes_keep_their_words(files, capsys):
    run(capsys, "run", "words.csv", "--target", "kind", "--out", "out", "--eta", 0.2, "--rho", 0.05)
    out, _ = run(capsys, "predict", "out/model.npz", "words.csv", "--json")
    told = json.loads(out)
    assert set(told["prediction"]) == {"big", "small"} and told["error_rate"] < 0.3
    assert all(0.5 <= one <= 1 for one in told["probability"])
    run(capsys, "run", "signs.csv", "--target", "hit", "--loss", "logistic", "--out", "out", "--eta", 0.2)
    table, _ = run(capsys, "predict", "out/model.npz", "signs.csv")
    header, first, *_ = table.splitlines()
    assert header == "prediction,probability" and first.split(",")[0] in ("0", "1")


def test_exports_become_what_their_ending_says(files, capsys):
    flats(capsys)
    trace = lc.Trace.load("out/trace.npz")
    run(capsys, "export", "out/trace.npz", "--agent", 2, "-o", "two.npz")
    assert lc.Model.load("two.npz").weights.tolist() == trace.weights[2].tolist()
    told = json.loads(run(capsys, "export", "two.npz", "-o", "two.c", "--json")[0])
    assert told["out"] == "two.c" and told["inputs"] == ["a", "b", "c"] and told["about"]["agent"] == 2
    if shutil.which("cc"):
        subprocess.run(["cc", "-O2", "-DLACONIC_MAIN", "two.c", "-lm", "-o", "two"], check=True)
        done = subprocess.run(["./two"], input="0.3 0.2 0.1\n", capture_output=True, text=True, check=True)
        assert float(done.stdout) == pytest.approx(float(trace.model(2).predict([0.3, 0.2, 0.1])), abs=1e-9)
    pytest.importorskip("onnx", reason="onnx is not installed")
    run(capsys, "export", "two.npz", "-o", "two.onnx")
    assert Path("two.onnx").stat().st_size > 1000


def test_mistakes_get_a_sentence(files, capsys):
    flats(capsys)
    Path("torn.npz").write_bytes(Path("out/trace.npz").read_bytes()[:-50])
    np.savez("foreign.npz", a=np.ones(3))
    for words, sentence in (
        (["out/trace.npz", "-o", "m.pkl"], "--out must end with .npz, .onnx or .c, got 'm.pkl'."),
        (["out/trace.npz", "-o", "no/m.npz"], "--out must name a file in a folder that exists, got 'no/m.npz'."),
        (["out/trace.npz", "--agent", "9", "-o", "m.npz"], "--agent must be mean or an index below 5, got '9'."),
        (
            ["out/model.npz", "--agent", "1", "-o", "m.npz"],
            "--agent is for traces and sites; out/model.npz holds one model.",
        ),
        (["absent.npz", "-o", "m.npz"], "there is no file 'absent.npz'."),
        (["foreign.npz", "-o", "m.npz"], "foreign.npz is neither a trace nor a model of laconic."),
        (["flats.csv", "-o", "m.npz"], "flats.csv is not a complete laconic trace: File is not a zip file."),
    ):
        assert fail(capsys, "export", *words) == f"laconic: {sentence}"
    assert "torn.npz is not a complete laconic trace" in fail(capsys, "export", "torn.npz", "-o", "m.npz")
    assert not Path("m.npz").exists()
    assert "torn.npz is not a complete laconic model" in fail(capsys, "predict", "torn.npz", "flats.csv")
