"""Tuning and reproducing from the command line."""

import re
import shlex

import numpy as np
import pytest
from cli_kit import cells, run, set_terminal, write_files
from raw_data import FOLDER

import laconic as lc
from laconic import data
from laconic.cli.inputs import prepare
from laconic.cli.options import Parser, add_stream_options
from laconic.cli.reproduce import beside, summary
from laconic.experiments.settings import SETTINGS
from laconic.experiments.streams import make_stream


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def test_tuning_finds_the_smallest_error_and_says_how_to_use_it(files, capsys):
    words = "tune flats.csv --agents 4 --network ring --prefix 0.5 --seeds 2 --algorithm odkla,LOCAL --bandwidth 0.7"
    screen, _ = run(capsys, *words.split())
    assert "4 agents, 38 rounds (the first 50%), 2 seeds" in screen
    own = data.load(files / "flats.csv")
    X, y = data.scale(own.X, "column"), data.scale(own.y, "column")
    grids = {
        "ODKLA": {(r, e): lc.ODKLA(r, e) for r in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) for e in (1.0, 1.5, 2.0, 3.0, 4.0)},
        "Local": {(s,): lc.Local(s) for s in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)},
    }
    for name, grid in grids.items():
        scores = dict.fromkeys(grid, 0.0)
        for seed in (0, 1):
            X_dealt, y_dealt = data.partition(X, y, 4, "time", seed)
            features = lc.RandomFeatures.gaussian(3, 50, 0.7, seed)
            traces = lc.sweep(grid, features, lc.Network.ring(4), X_dealt[:38], y_dealt[:38])
            for point, trace in traces.items():
                scores[point] += trace.mse()[-1] / 2
        best = min(scores, key=scores.get)
        found = re.search(rf"^{name}: (?:rho ([\d.]+), eta|step) ([\d.]+) with mse ([\d.]+)", screen, re.MULTILINE)
        assert tuple(float(step) for step in found.groups()[:2] if step) == best
        assert float(found[3]) == pytest.approx(scores[best], rel=1e-3)
        assert f"[{scores[best] * 100:.4g}]" in screen  # in the grid, in units of 1e-2
    command = screen.rstrip().split("\n")[-1].strip()
    assert command.startswith("laconic run flats.csv --agents 4 --network ring --bandwidth 0.7 --learner ")
    assert "4 agents, 4 links (ring)" in run(capsys, *shlex.split(command)[1:])[0]


def test_a_learner_without_steps_has_nothing_to_tune(files, capsys):
    screen, _ = run(capsys, "tune", "flats.csv", "--seeds", "1", "--algorithm", "waverls,local", "--bandwidth", "0.7")
    own = data.load(files / "flats.csv")
    X, y = data.partition(data.scale(own.X, "column"), data.scale(own.y, "column"), 5, "time", 0)
    network = lc.Network.random(5, p=0.5, seed=0)
    error = lc.simulate(lc.WaveRLS(), lc.RandomFeatures.gaussian(3, 50, 0.7, 0), network, X, y).mse()[-1]
    assert f"WaveRLS: nothing to tune; as it is, its mse is {error:.4g}" in screen
    assert "The best of all is WaveRLS:\n  laconic run flats.csv --bandwidth 0.7 --learner waverls\n" in screen


def test_bandwidths_are_halved(files, capsys):
    words = ("tune", "flats.csv", "--seeds", "1", "--algorithm", "local", "--bandwidth", "0.1")
    narrow, _ = run(capsys, *words)
    screen, _ = run(capsys, *words, "--widths", "1,4,16")
    shares = re.findall(r"bandwidths on ([\d.]+)% of the rounds, with mse: (.*)", screen)
    assert [(share, told.count(":")) for share, told in shares] == [("12.5", 3), ("25", 2), ("100", 1)]
    assert shares[0][1].startswith("0.1: ") and "bandwidth 0.4 (4 times as given)" in " ".join(screen.split())
    mse = [float(re.search(r"Local: step [\d.]+ with mse ([\d.e-]+)", text)[1]) for text in (narrow, screen)]
    assert mse[1] < 0.5 * mse[0]
    command = screen.rstrip().split("\n")[-1].strip()
    assert command.startswith("laconic run flats.csv --bandwidth 0.4 --kernel gaussian --learner local --step ")
    timed, _ = run(capsys, *words, "--budget", "1h")
    assert re.search(
        r"bandwidths on 12.5% of the rounds, with mse: 0.025: .* 0.05: .* 0.1: .* 0.2: .* 0.4: ",
        " ".join(timed.split()),
    )


def test_a_grid_wider_than_the_terminal_shows_the_winner(files, capsys, monkeypatch):
    words = ("tune", "flats.csv", "--seeds", "1", "--algorithm", "Q-ODKLA")
    wide, _ = run(capsys, *words)
    monkeypatch.setenv("COLUMNS", "44")
    narrow, _ = run(capsys, *words)
    assert "left out" not in wide and "columns left out" in narrow
    winner = re.search(r"\[[\d.]+\]", wide)[0]
    assert winner in narrow
    assert "--learner odkla" in narrow and "--bits 3" in narrow


# The paper's sets ----------------------------------------------------------------------------------------------------


def arguments(*words):
    parser = Parser()
    add_stream_options(parser)
    parser.set_defaults(alpha=None, beta=None)
    return parser.parse_args(words)


@pytest.mark.data
def test_the_papers_sets_run_as_the_paper_runs_them():
    source = prepare(arguments("air-quality", "--data-dir", str(FOLDER)), None)
    assert source.setting == SETTINGS["air-quality"]
    mine, paper = source.stream(1), make_stream(SETTINGS["air-quality"], 1, data_dir=str(FOLDER))
    np.testing.assert_array_equal(mine.X, paper.X)
    np.testing.assert_array_equal(mine.y, paper.y)
    np.testing.assert_array_equal(mine.features.frequencies, paper.features.frequencies)
    assert mine.network == paper.network
    # Scaled otherwise, the paper's bandwidth means nothing.
    source = prepare(arguments("air-quality", "--data-dir", str(FOLDER), "--scale", "column"), None)
    assert source.bandwidth_from == "the median distance of two inputs"


@pytest.mark.slow
@pytest.mark.data
def test_reproduce_leaves_a_report_and_prints_a_summary(tmp_path, capsys):
    words = "reproduce --out again --set air-quality --algorithm ODKLA,Local --seeds 1 --quick"
    screen, err = run(capsys, *words.split(), "--data-dir", FOLDER)
    assert err == ""  # no progress bar where nobody looks
    assert "The report: again/report.html" in screen and (tmp_path / "again" / "report.html").stat().st_size > 1000
    assert "mean of 1 seed, rows shuffled" in screen
    assert 2 < float(cells(screen, "ODKLA")[0]) < float(cells(screen, "Local")[0]) < 8
    assert cells(screen, "ODKLA")[1] == "100.0%" and cells(screen, "Local")[1] == "-"


def test_the_summary_is_the_mean_over_seeds():
    def row(name, algorithm, seed, mse, bits, partition="shuffled"):
        return {"set": name, "partition": partition, "algorithm": algorithm, "seed": seed, "mse": mse, "bits": bits}

    rows = [
        row("energy", "ODKLA", 0, 0.020, 1000),
        row("energy", "ODKLA", 1, 0.030, 1000),
        row("energy", "QC-ODKLA", 0, 0.026, 90),
        row("energy", "QC-ODKLA", 1, 0.028, 110),
        row("energy", "QC-ODKLA", 0, 9.0, 5, partition="sorted-by-target"),
        row("twitter", "ODKLA", 0, 0.004, 500),
        row("twitter", "QC-ODKLA", 0, None, 150),
    ]
    text = summary(rows)
    assert "mean of 2 seeds" in text
    assert cells(text, "ODKLA") == ["25.0", "4.00", "100.0%"]
    assert cells(text, "QC-ODKLA") == ["27.0", "diverged", "20.0%"]


def test_what_is_not_the_papers_is_explained_below_the_tables():
    said = beside([{"algorithm": name} for name in ("ODKLA", "WaveRLS", "Local RLS", "Best centre", "Default")])
    words = " ".join(said.split())
    assert "It needs what ODKLA does not: O(D^2) work and memory" in words and "a tree, and lockstep or slots" in words
    assert "Default: what `laconic run` takes where nothing is said." in words and "Centralised" not in words
    assert max(len(line) for line in said.split("\n")) <= 80 and beside([{"algorithm": "ODKLA"}]) == ""


def test_a_wide_summary_folds_its_heading(monkeypatch):
    rows = [
        {"set": name, "partition": "shuffled", "algorithm": algorithm, "seed": 0, "mse": 0.01, "bits": 10}
        for name in SETTINGS
        for algorithm in ("ODKLA", "Centralised RLS")
    ]
    narrow = summary(rows).split("\n")
    assert max(len(line) for line in narrow) <= 80
    assert narrow[2].split() == ["toms", "air"] and narrow[3].split()[:2] == ["hardware", "twitter"]
    monkeypatch.setenv("COLUMNS", "120")
    assert summary(rows).split("\n")[2].split() == [*SETTINGS, "bits"]
