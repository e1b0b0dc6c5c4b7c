"""``laconic init --data``: a site from a file of one's own has what ``defaults.choose`` chooses, and says why."""

import csv
import re
import subprocess
import sys

import numpy as np
import pytest
from ports import free_ports

import laconic as lc
from laconic.cli import main
from laconic.deploy.settings.site import Site


def patients(path, n=300, kind="numbers", level=200):
    """Three hospitals with unequal rows: words, dates, an id, holes, and a label that is missing now and then."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "hospital", "since", "ward", "age", "dose", "days"])
        for k in range(n):
            where = ["St. Ann", "North", "St. Ann", "South"][k % 4]
            age, dose = rng.normal(50, 15), rng.exponential(1e4)
            days = level + 30 * np.sin(age / 8) + 5 * (k % 2) + rng.normal()
            words = {"one": "a", "two": "long" if days > level else "short", "more": "abc"[k % 3]}
            label = words.get(kind, f"{days:.3f}")
            date = f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}"
            holed = "" if k % 50 == 7 else f"{age:.2f}"
            writer.writerow([k, where, date, "AB"[k % 2], holed, f"{dose:.1f}", "" if k % 60 == 9 else label])
    return path


def test_a_site_from_a_file_has_the_default_and_learns(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patients(tmp_path / "p.csv")
    assert main(["init", "clinic", "--data", "p.csv", "--agent-column", "hospital"]) == 0
    said = capsys.readouterr().out
    assert (
        "'id' only numbers the rows" in said
        and "Learner: Personal" in said
        and "50 frequencies over raw inputs" in said
    )
    site = Site.read(tmp_path / "clinic" / "site.toml")
    assert site.names == ("North", "South", "St-Ann")
    text = (tmp_path / "clinic" / "site.toml").read_text()
    assert "# Learner: Personal" in text and 'kernel = "automatic"' in text
    tables = {}
    for name in site.names:
        with (tmp_path / "clinic" / "data" / f"{name}.csv").open() as file:
            rows = list(csv.reader(file))
        assert rows[0] == ["since", "ward=B", "age", "dose", "days"]
        tables[name] = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows[1:]])
    assert [len(table) for table in tables.values()] == [75, 75, 150]
    assert all(np.isfinite(table[:, :-1]).all() for table in tables.values())
    assert sum(np.isnan(table[:, -1]).sum() for table in tables.values()) == 5
    features, learner = site.features(), site.learner()
    X, y = (
        np.stack([part[:75] for part in parts], axis=1)
        for parts in zip(*((t[:, :-1], t[:, -1]) for t in tables.values()), strict=True)
    )
    chosen = lc.defaults.choose(X[:8], y[:8], seed=1)
    assert type(learner) is type(chosen.learner)
    np.testing.assert_allclose(features.scaling.scale, chosen.features.scaling.scale, rtol=1e-8)
    np.testing.assert_allclose(features.frequencies, chosen.features.frequencies, rtol=1e-7)
    trace = lc.simulate(learner, features, lc.Network.ring(3), X, y)
    late = trace.predictions[50:] - y[50:]
    assert np.nanmean(late**2) < 0.7 * np.nanvar(y[50:])


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("one", [], "'days' must hold two classes or more to be learned, and has 1"),
        ("more", ["--task", "numbers"], "--task numbers needs a target of numbers, and 'days' holds words"),
        ("two", ["--task", "numbers"], "--task numbers needs a target of numbers, and 'days' holds words"),
        ("numbers", ["--agent-column", "hospital", "--agents", "4"], "--agents 4 contradicts --agent-column"),
    ],
)
def test_what_cannot_be_a_site_is_said(tmp_path, capsys, monkeypatch, kind, options, message):
    monkeypatch.chdir(tmp_path)
    patients(tmp_path / "p.csv", 60, kind)
    assert main(["init", "clinic", "--data", "p.csv", *options]) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "clinic").exists()


def test_two_classes_are_signs_and_options_of_data_need_data(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patients(tmp_path / "p.csv", 60, "two")
    assert main(["init", "clinic", "--data", "p.csv"]) == 0
    assert "'days': long is -1 and short is +1" in " ".join(capsys.readouterr().out.split())
    assert len(Site.read(tmp_path / "clinic" / "site.toml").names) == 5
    assert main(["init", "other", "--target", "days"]) != 0
    assert "--target is for --data FILE" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.sockets
def test_a_site_of_a_file_runs_as_the_simulator_does(tmp_path, monkeypatch):
    """Three processes over zenoh, an agent for each hospital: what was written is what runs, to the bit."""
    monkeypatch.chdir(tmp_path)
    patients(tmp_path / "p.csv", 100, level=50)  # labels beyond 100 a site's limits would hold back at first
    assert main(["init", "clinic", "--data", "p.csv", "--agent-column", "hospital"]) == 0
    file = tmp_path / "clinic" / "site.toml"
    text = re.sub(r"(?m)^rate = .*\n", "", file.read_text())
    for old, new in zip((7450, 7451, 7452), free_ports(3), strict=True):
        text = text.replace(f":{old}", f":{new}")
    file.write_text(re.sub(r"(?m)^patience = \S+", "patience = 120.0", text))
    command = [sys.executable, "-m", "laconic", "up", str(file), "--rounds", "25", "--trace", "traces", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    site, tables = Site.read(file), []
    for name in site.names:
        with (file.parent / "data" / f"{name}.csv").open() as rows:
            cells = list(csv.reader(rows))[1:26]
        tables.append([[float(cell) if cell else np.nan for cell in row] for row in cells])
    columns = np.array(tables).swapaxes(0, 1)
    trace = lc.simulate(site.learner(), site.features(), lc.Network.ring(3), columns[..., :-1], columns[..., -1])
    assert trace.sent.any()
    for k, name in enumerate(site.names):
        with np.load(tmp_path / "traces" / f"{name}.npz") as kept:
            assert np.array_equal(kept["predictions"], trace.predictions[:, k])
            assert np.array_equal(kept["sent"], trace.sent[:, k])
            assert np.array_equal(kept["weights"], trace.state.weights[k])


def test_a_first_site_still_has_its_silence_after_thousands_of_rounds(tmp_path, capsys):
    assert main(["init", str(tmp_path / "home")]) == 0
    site = Site.read(tmp_path / "home" / "site.toml")
    tables = [np.loadtxt(tmp_path / "home" / "data" / f"{name}.csv", delimiter=",", skiprows=1) for name in site.names]
    table = np.concatenate([np.stack(tables, axis=1)] * 6)  # the source begins again at the end of the file
    X, y = table[..., :2], table[..., 2]
    trace = lc.simulate(site.learner(), site.features(), site.network(), X, y)
    assert trace.sent[-1000:].mean() < 0.6
    free = lc.simulate(lc.ODKLA(0.5, 2.0, regularization=1e-5), site.features(), site.network(), X, y)
    assert trace.windowed_mse(1000)[-1] < 1.2 * free.windowed_mse(1000)[-1]
