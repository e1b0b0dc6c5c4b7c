"""The command line: its numbers are the library's, its screens fit, and whatever goes wrong is one sentence."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from raw_data import FOLDER

import laconic as lc
from laconic import data
from laconic.cli import main
from laconic.cli.inputs import prepare
from laconic.cli.learners import local_twin
from laconic.cli.networks import make_network
from laconic.cli.options import Parser, add_stream_options
from laconic.cli.reproduce import summary
from laconic.experiments.settings import SETTINGS
from laconic.experiments.streams import make_stream


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    """Eighty columns, an empty cache, and no folder of data."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path):
    """Small files of one's own, good and bad."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    rent = 100 + 50 * np.sin(4 * X[:, 0]) + 20 * X[:, 1]
    big = rent > 120

    def write(name, header, rows):
        lines = [header, *(",".join(str(cell) for cell in row) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("flats.csv", "a,b,c,rent", np.column_stack([X, rent]).tolist())
    rows = [[*x, f"s{k % 7}", "big" if above else "small"] for k, (x, above) in enumerate(zip(X, big, strict=True))]
    write("words.csv", "a,b,c,street,kind", rows)
    write("signs.csv", "a,b,c,hit", [[*x, int(above)] for x, above in zip(X, big, strict=True)])
    write("text.csv", "a,b,city", [[*x[:2], "abc"[k % 3]] for k, x in enumerate(X)])
    write("holes.csv", "a,b,y", [(1, 2, 3), (1, "", 3), (4, 5, 6), (7, 8, 8)])
    write("constant.csv", "a,y", [(1, 2), (3, 2), (5, 2)])
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "village.txt").write_text("north south\nsouth west\n")
    (tmp_path / "broken.txt").write_text("north south west\n")
    return tmp_path


def run(capsys, *words):
    """A command that must succeed: what it prints on stdout and on stderr."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out, err


def fail(capsys, *words, code=2):
    """A command that must fail: the one sentence that it says."""
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("laconic: ") and err.count("\n") == 1 and err.endswith("\n")
    assert "Traceback" not in err
    return err.strip()


def cells(screen, name):
    """The cells of the table's line that starts with ``name``."""
    line = next(line for line in screen.split("\n") if line.startswith(name) and re.search(r"\d", line))
    return line[len(name) :].split()


# A run ---------------------------------------------------------------------------------------------------------------


def test_a_run_prints_what_the_library_computes(files, capsys):
    screen, err = run(
        capsys, "run", "flats.csv", "--target", "rent", "--agents", 6, "--network", "ring", "--learner", "odkla",
        "--rho", 0.3, "--eta", 1.5, "--bandwidth", 0.7, "--frequencies", 20, "--seed", 3,
    )  # fmt: skip
    assert err == ""
    own = data.load(files / "flats.csv", target="rent")
    X, y = data.partition(data.scale(own.X, "column"), data.scale(own.y, "column"), 6, "shuffled", 3)
    features = lc.RandomFeatures.gaussian(3, 20, bandwidth=0.7, seed=3)
    network = lc.Network.ring(6)
    trace = lc.simulate(lc.ODKLA(rho=0.3, eta=1.5), features, network, X, y, collective=True)
    alone = lc.simulate(lc.Local(step=1 / (1.5 + 4 * 0.3)), features, network, X, y, collective=True)
    for name, expected in (("ODKLA", trace), ("Local, step 0.37", alone)):
        mse, late, everywhere = cells(screen, name)[:3]
        assert float(mse) == pytest.approx(expected.mse()[-1], rel=1e-3)
        assert float(late) == pytest.approx(expected.windowed_mse(5)[-1], rel=1e-3)
        assert float(everywhere) == pytest.approx(expected.global_mse()[-1], rel=1e-3)
    assert cells(screen, "ODKLA")[3:] == ["300", "384,000"]  # 50 rounds, 6 agents, 40 numbers of 32 bits
    assert float(cells(screen, "the mean of all labels")[0]) == pytest.approx(np.var(y), rel=1e-3)
    change = float(cells(screen, "talking changed")[0].rstrip("%"))
    assert change == pytest.approx(100 * (trace.mse()[-1] / alone.mse()[-1] - 1), abs=0.06)
    typical = np.sqrt(trace.mse()[-1]) * np.ptp(own.y)
    assert f"Its root mean squared error is {typical:#.4g} in units of rent." in screen
    assert "bandwidth 0.7 (as given), scaled by column" in screen
    assert "It sent every model whole in every round" in screen


def test_messages_bits_and_saving_are_counted(files, capsys):
    run(capsys, "run", "flats.csv", "--alpha", 0.5, "--beta", 0.98, "--bits", 2, "--out", "out")
    trace = lc.Trace.load("out/trace.npz")
    screen, _ = run(capsys, "run", "flats.csv", "--alpha", 0.5, "--beta", 0.98, "--bits", 2)
    messages = int(trace.sent.sum())
    assert 0 < messages < 300
    bits = messages * (2 * 100 + 32)
    assert cells(screen, "QC-ODKLA")[3:] == [f"{messages:,}", f"{bits:,}"]
    saving = 300 * 3200 / bits
    assert f"It sent {saving:.1f} times fewer bits than sending every model whole (960,000" in " ".join(screen.split())


@pytest.mark.parametrize(
    "options",
    [
        "--learner qc-odkla --range=-0.4,0.5 --partition time --scale running",
        "--learner dokl --bits 3 --network star --regularization 0.001",
        "--learner rff-dokl --alpha 0.1 --partition sorted-by-feature:1 --scale matrix",
        "--learner local --step 0.3 --partition sorted-by-target",
    ],
)
def test_run_json_is_enough_to_do_it_again(files, capsys, options):
    run(capsys, "run", "flats.csv", "--seed", 2, *options.split(), "--out", "new/folder")
    about = json.loads(Path("new/folder/run.json").read_text())
    own = data.load(about["data"]["given"], target=about["data"]["target"])
    how, n = about["data"]["scale"], about["network"]["agents"]
    X, y = own.X, own.y
    if how != "running":
        X, y = data.scale(X, how), data.scale(y, how)
    X, y = data.partition(X, y, n, about["data"]["partition"], about["seed"])
    if how == "running":
        X, y = data.scale(X, how), data.RunningScaler().rounds(y)
    features = lc.RandomFeatures.gaussian(
        X.shape[2], about["features"]["frequencies"], about["features"]["bandwidth"], about["seed"]
    )
    network = lc.Network.from_edges(n, about["network"]["edges"])
    kinds = {"QC-ODKLA": lc.ODKLA, "DOKL": lc.DOKL, "RFF-DOKL": lc.RFFDOKL, "Local": lc.Local}
    parameters = about["learner"]
    kind = kinds[parameters.pop("name")]
    parameters = {k: v for k, v in parameters.items() if k not in ("alpha", "beta", "bits", "range", "rounding")}
    if about["channel"]:
        censor, quantizer = about["channel"]["censor"], about["channel"]["quantizer"]
        if quantizer and quantizer["range"] != "adaptive":
            quantizer["range"] = tuple(quantizer["range"])
        parameters["channel"] = lc.Channel(
            lc.Censor(**censor) if censor else None, lc.Quantizer(**quantizer) if quantizer else None
        )
    again = lc.simulate(kind(**parameters), features, network, X, y)
    trace = lc.Trace.load("new/folder/trace.npz")
    np.testing.assert_array_equal(again.predictions, trace.predictions)
    np.testing.assert_array_equal(again.sent, trace.sent)
    assert about["result"]["mse"] == trace.mse()[-1]
    assert about["result"]["global_mse"] == trace.global_mse()[-1]
    assert about["laconic"] == lc.__version__
    assert Path("new/folder/picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_median_distance_is_the_usual_bandwidth(files, capsys):
    screen, _ = run(capsys, "run", "flats.csv")
    X = data.scale(data.load(files / "flats.csv").X, "column")
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))[np.triu_indices(300, 1)]
    assert f"bandwidth {np.median(distances):.3g} (the median distance of two inputs)" in " ".join(screen.split())


def test_inputs_that_are_mostly_equal_still_have_a_bandwidth(tmp_path, capsys):
    rows = [f"{0 if k % 9 else 1},{k % 4}" for k in range(200)]
    (tmp_path / "equal.csv").write_text("a,y\n" + "\n".join(rows))
    assert "bandwidth 1 (" in run(capsys, "run", "equal.csv")[0]


def test_two_words_are_classes_and_are_scored_by_errors(files, capsys):
    screen, err = run(capsys, "run", "words.csv", "--network", "complete", "--eta", 1, "--rho", 0.2)
    assert err == "laconic: words.csv: dropped the column that is not numbers: 'street' (text).\n"
    assert "target kind (big or small)" in screen and "logistic loss" in screen
    own = data.load(files / "signs.csv")
    y = np.where(own.y > 0, -1.0, 1.0)  # "big" comes first in the alphabet
    X, y = data.partition(data.scale(own.X, "column"), y, 5, "shuffled", 0)
    bandwidth = float(re.search(r"bandwidth ([\d.]+)", screen)[1])
    features = lc.RandomFeatures.gaussian(3, 50, bandwidth, 0)
    learner = lc.QCODKLA(0.2, 1.0, 0.2, 0.9995, loss="logistic")
    trace = lc.simulate(learner, features, lc.Network.complete(5), X, y, collective=True)
    assert float(cells(screen, "QC-ODKLA")[0]) == pytest.approx(trace.error_rate()[-1], rel=1e-3)
    assert float(cells(screen, "QC-ODKLA")[2]) == pytest.approx(trace.collective_loss.mean(), rel=1e-3)
    assert float(cells(screen, "the larger class")[0]) == pytest.approx(min((y > 0).mean(), (y < 0).mean()), rel=1e-3)
    assert "units of" not in screen


def test_two_numbers_are_classes_when_asked_for(files, capsys):
    screen, err = run(capsys, "run", "signs.csv", "--loss", "hinge", "--out", "out")
    assert err == "" and "error rate" in screen
    trace = lc.Trace.load("out/trace.npz")
    assert set(np.unique(trace.labels)) == {-1.0, 1.0}
    assert json.loads(Path("out/run.json").read_text())["result"]["error_rate"] == trace.error_rate()[-1]
    screen, err = run(capsys, "run", "signs.csv")
    assert "mse" in screen
    assert err == "laconic: 'hit' has only the values 0 and 1; --loss logistic would predict classes.\n"


def test_progress_is_shown_when_asked_for(files, capsys):
    err = run(capsys, "run", "flats.csv", "--progress")[1]
    assert "QC-ODKLA: 100%" in err and "60.0/60.0" in err


def test_silence_is_explained(files, capsys):
    assert "no model moved by 8.7" in run(capsys, "run", "flats.csv", "--alpha", 9)[0]
    assert "there is nobody to hear it" in run(capsys, "run", "flats.csv", "--agents", 1)[0]
    screen, _ = run(capsys, "run", "flats.csv", "--learner", "local")
    assert "Local never speaks" in screen and "talking changed" not in screen


def test_a_twin_that_diverges_does_not_stop_the_run(files, capsys):
    # The mean of five models holds together where each of them alone, with steps so long, does not.
    screen, _ = run(capsys, "run", "--rows", 3000, "--learner", "rff-dokl", "--step", 1.2, "--network", "complete")
    assert float(cells(screen, "RFF-DOKL")[1]) < 0.05
    assert cells(screen, "Local, step 1.2")[:2] == ["diverged", "in"]
    assert "talking changed" not in screen


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_the_twin_takes_the_steps_of_its_learner(loss):
    """Without neighbours and ridge ODKLA is Local, and so is DOKL where its step has a closed form."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(300, 1, 2))
    y = np.sign(np.sin(5 * X[..., 0]) - 0.3)
    features, network = lc.RandomFeatures.gaussian(2, 15, 0.5), lc.Network.ring(1)
    for kind in (lc.ODKLA, lc.DOKL):
        if kind is lc.DOKL and loss != "squared":
            continue
        learner = kind(0.7, 3.0, regularization=0.0, loss=loss)
        pair = (lc.simulate(model, features, network, X, y) for model in (learner, local_twin(learner, network)))
        np.testing.assert_allclose(next(pair).predictions, next(pair).predictions, rtol=0, atol=1e-12)


def test_a_network_from_a_file_brings_its_agents(files, capsys):
    assert "3 agents, 2 links (village.txt)" in run(capsys, "run", "flats.csv", "--network", "village.txt")[0]


@pytest.mark.parametrize(
    ("kind", "n_agents", "edges"),
    [("ring", 6, 6), ("path", 6, 5), ("star", 6, 5), ("complete", 6, 15), ("grid", 6, 7), ("grid:1x6", 6, 5)],
)
def test_networks_of_every_kind(kind, n_agents, edges):
    network = make_network(kind, n_agents, 0)
    assert (network.n_agents, len(network.edges)) == (n_agents, edges)


def test_random_networks_follow_the_seed_and_stay_thin():
    assert make_network("random", 8, 3) == lc.Network.random(8, 0.5, 3)
    assert make_network("random:0.9", 8, 3) == lc.Network.random(8, 0.9, 3)
    assert make_network("geometric:0.7", 8, 3) == lc.Network.geometric(8, 0.7, 3)
    assert make_network("small-world:6", 20, 3) == lc.Network.small_world(20, 6, seed=3)
    assert make_network("random", 500, 0).degrees.mean() < 25
    assert make_network("geometric", 200, 0).n_agents == 200


# What goes wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run nosuch", "data must be a file or one of air-quality, .*; got 'nosuch'"),
        ("run air_quality", "Did you mean 'air-quality'?"),
        ("run missing.csv", "there is no file 'missing.csv'"),
        ("run flats.csv --target rennt", "--target must be a column of flats.csv.* did you mean 'rent'?"),
        ("run text.csv", "must be numbers or two classes, but it holds 3 different words"),
        ("run empty.csv", "empty.csv is empty."),
        ("run header.csv", "has a header and no rows"),
        ("run holes.csv", "add --missing drop"),
        ("run constant.csv", "the target 'y' is 2 in every row: there is nothing to learn"),
        ("run synthetic --target y", "--target is for files of your own"),
        ("run flats.csv --rows 9999", "--rows must be at most 300"),
        ("run flats.csv --agents 301", "--agents must be at most 300"),
        ("run flats.csv --agents 0", "--agents must be at least 1, got 0"),
        ("run flats.csv --agents x", "--agents must be a whole number, got 'x'"),
        ("run flats.csv --data-dir nowhere", "--data-dir must name a folder"),
        ("run flats.csv --learner odlka", "--learner must be one of .* Did you mean 'odkla'?"),
        ("run flats.csv --learner local --bits 3", "--bits makes no sense with --learner local, which never speaks"),
        ("run flats.csv --learner rff-dokl --rho 1", "--rho makes no sense with --learner rff-dokl"),
        ("run flats.csv --learner odkla --step 1", "--step makes no sense with --learner odkla"),
        ("run flats.csv --loss logistic", "--loss logistic needs a target of two classes, but 'rent' takes 300"),
        ("run flats.csv --network village.txt --agents 5", "--agents 5 contradicts --network village.txt, which has 3"),
        ("run flats.csv --network broken.txt", "broken.txt must hold two names a line"),
        ("run flats.csv --network nofile.txt", "there is no file 'nofile.txt'"),
        ("run flats.csv --network rnig", "--network must be .* Did you mean 'ring'?"),
        ("run flats.csv --network ring:3", "--network ring takes no number"),
        ("run flats.csv --network grid:2", "grid:RxC takes two whole numbers"),
        ("run flats.csv --network grid:2x3 --agents 5", "--agents 5 contradicts --network grid:2x3, which has 6"),
        ("run flats.csv --network random:x", "--network must have a number after the colon"),
        ("run flats.csv --network random:0", "no connected network"),
        ("run flats.csv --network small-world:2.5", "small-world:K takes a whole number"),
        ("run flats.csv --partition sorted", "--partition must be 'shuffled', 'time'"),
        ("run flats.csv --partition sorted-by-feature:7", "--partition must name a feature from 0 to 2"),
        ("run flats.csv --rho -1", "--rho must be at least 0"),
        ("run flats.csv --eta 0", "--eta must be larger than 0"),
        ("run flats.csv --bits 40", "--bits must be from 1 to 16"),
        ("run flats.csv --beta 2", "--beta must be at most 1"),
        ("run flats.csv --range 1,2,3", "--range must be 'adaptive', a number X"),
        ("run flats.csv --range=0.3,0.1", "--range must be a pair"),
        ("run flats.csv --bandwidth 0", "--bandwidth must be larger than 0"),
        ("run flats.csv --bandwidth nan", "--bandwidth must be finite"),
        ("run flats.csv --frequencies 0", "--frequencies must be at least 1"),
        ("run flats.csv --seed -1", "--seed must be at least 0"),
        ("run flats.csv --out flats.csv", "--out must name a folder, and 'flats.csv' is a file"),
        ("run flats.csv --out flats.csv/deeper", "flats.csv/deeper: not a directory"),
        ("run flats.csv --learn odkla", "unrecognized arguments: --learn odkla"),
        ("tune flats.csv --prefix 2", "--prefix must be a share of the rounds"),
        ("tune flats.csv --seeds 0", "--seeds must be at least 1"),
        ("tune flats.csv --algorithm ODKL", "--algorithm must be one of .* Did you mean 'ODKLA'?"),
        ("tune flats.csv --algorithm ,", "--algorithm must name at least one"),
        ("tune text.csv", "must be numbers or two classes"),
        ("data info nope", "data must be a file or one of"),
        ("data fetch flats.csv", "data must be a file or one of"),
        ("data list --data-dir nowhere", "--data-dir must name a folder"),
        ("reproduce --set airquality", "--set must be one of .* Did you mean 'air-quality'?"),
        ("reproduce --algorithm ODKLA Lokal", "--algorithm must be one of .* Did you mean 'Local'?"),
        ("reproduce --seeds 0 --no-progress", "--seeds must be at least 1"),
        ("reproduce --out flats.csv", "--out must name a folder"),
        ("frobnicate", "COMMAND must be one of run, tune, reproduce, data, info"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(files, capsys, words, said):
    assert re.search(said, fail(capsys, *words.split()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--eta 0.01 --rho 0.01", r"diverged in round \d+: .* raise --eta \(now 0.01\) or --rho \(now 0.01\)"),
        ("--learner rff-dokl --step 3", r"diverged in round \d+: the step is too large for this data; lower --step"),
        ("--learner local --step 3", r"diverged in round \d+: .* lower --step"),
        (
            "--range 0.02 --alpha 0 --eta 1 --agents 2",
            r"outside the quantizer's range, .* widen --range or leave it adaptive",
        ),
    ],
)
def test_steps_that_diverge_are_named(capsys, words, said):
    assert re.search(said, fail(capsys, "run", *words.split(), code=1))


def test_missing_rows_are_dropped_when_asked_for(files, capsys):
    screen, err = run(capsys, "run", "holes.csv", "--missing", "drop")
    assert "3 rows" in screen and err == "laconic: holes.csv: dropped 1 of 4 rows with missing or infinite cells.\n"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_without_a_connection_it_says_which_file_to_put_where(capsys, monkeypatch, tmp_path):
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    for words in ("run energy", "data fetch energy"):
        said = fail(capsys, *words.split())
        assert "needs the file energydata_complete.csv" in said and "--data-dir or LACONIC_DATA" in said
        assert str(tmp_path / "cache") in said


def test_ctrl_c_is_one_line(files):
    """A real SIGINT, in the very moment in which the command opens its network's file."""
    code = """
import signal, sys
from laconic.cli import main

def interrupt(event, details):
    if event == "open" and str(details[0]).endswith("village.txt"):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background of a shell ignores it
sys.addaudithook(interrupt)
sys.exit(main(["run", "flats.csv", "--network", "village.txt"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nlaconic: interrupted.\n")


def test_a_reader_who_has_seen_enough_is_no_error():
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "laconic", "data", "list"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


# Tuning --------------------------------------------------------------------------------------------------------------


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
            X_dealt, y_dealt = data.partition(X, y, 4, "shuffled", seed)
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


def test_a_grid_wider_than_the_terminal_shows_the_winner(files, capsys, monkeypatch):
    words = ("tune", "flats.csv", "--seeds", "1", "--algorithm", "Q-ODKLA")
    wide, _ = run(capsys, *words)
    monkeypatch.setenv("COLUMNS", "44")
    narrow, _ = run(capsys, *words)
    assert "left out" not in wide and "columns left out" in narrow
    winner = re.search(r"\[[\d.]+\]", wide)[0]
    assert winner in narrow
    assert "--learner odkla" in narrow and "--bits 3" in narrow


# Data ----------------------------------------------------------------------------------------------------------------


def test_list_says_what_is_at_hand(tmp_path, capsys):
    (tmp_path / "raw" / "plant").mkdir(parents=True)
    (tmp_path / "raw" / "plant" / "Folds5x2_pp.csv").write_text("AT,V,AP,RH,PE\n1,2,3,4,463\n2,3,4,5,450\n")
    screen, _ = run(capsys, "data", "list", "--data-dir", "raw")
    lines = {line.split()[0]: line for line in screen.split("\n\n")[0].split("\n")[1:]}
    assert tuple(lines) == data.names()
    assert "plant/Folds5x2_pp.csv" in lines["power-plant"]
    assert "not at hand (12 MB)" in lines["energy"]
    assert "2 of 12 at hand in raw." in screen
    starts = {line.index(f" {data.info(name).target} ") for name, line in lines.items()}
    assert len(starts) == 1  # the columns are aligned
    assert run(capsys, "data", "fetch", "power-plant", "--data-dir", "raw")[0] == "raw/plant/Folds5x2_pp.csv\n"
    info, _ = run(capsys, "data", "info", "power-plant", "--data-dir", "raw")
    assert "inputs  4: AT, V, AP, RH" in info and "target  PE, from 450.0 to 463.0" in info


def test_info_knows_names_and_files(files, capsys):
    screen, _ = run(capsys, "data", "info", "energy")
    assert "not at hand: energydata_complete.csv, 12 MB to fetch" in screen and "L. M. Candanedo" in screen
    assert "rows    10,000" in run(capsys, "data", "info", "synthetic")[0]
    screen, _ = run(capsys, "data", "info", "words.csv")
    assert "inputs  3: a, b, c" in screen and "target  kind: big (-1, " in screen
    assert "target  a, from " in run(capsys, "data", "info", "flats.csv", "--target", "a")[0]
    assert "nothing to fetch" in run(capsys, "data", "fetch", "synthetic")[0]


@pytest.mark.data
def test_list_counts_inputs_rightly(capsys):
    screen, _ = run(capsys, "data", "list", "--data-dir", FOLDER)
    for line in screen.split("\n\n")[0].split("\n")[1:]:
        name, _, n_inputs = line.split()[:3]
        if "not at hand" not in line:
            assert int(n_inputs) == data.load(name, data_dir=FOLDER, n_rows=50).n_inputs, name


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


@pytest.mark.data
def test_reproduce_leaves_a_report_and_prints_a_summary(tmp_path, capsys):
    words = "reproduce --out again --set air-quality --algorithm ODKLA,Local --seeds 1 --quick --no-progress"
    screen, err = run(capsys, *words.split(), "--data-dir", FOLDER)
    assert err == ""
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


# Screens -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        "", "--help", "data", "data list", "data list --help", "data info --help", "data info synthetic",
        "data fetch --help", "run", "run --help", "run signs.csv --loss logistic", "tune --help",
        "tune --rows 500 --seeds 1", "reproduce --help", "info", "doctor --help",
    ],
)  # fmt: skip
def test_screens_fit_the_terminal(files, capsys, monkeypatch, words, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    screen, _ = run(capsys, *words.split())
    lines = screen.split("\n")
    assert max(len(line) for line in lines if str(files) not in line) <= columns  # a path is never broken
    assert all(line == line.rstrip() for line in lines)
    if "--help" in words:
        assert "example" in screen and "usage: laconic" in screen


def test_info_tests_the_engine(capsys):
    screen, _ = run(capsys, "info")
    assert f"laconic  {lc.__version__} on Python" in screen
    assert "1 of 12 sets at hand" in " ".join(screen.split())
    assert re.search(r"compiled, works: \d+ ns a sample", screen)


def test_the_module_runs_and_help_is_light():
    done = subprocess.run([sys.executable, "-m", "laconic", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: laconic") and done.stderr == ""
    heavy = ("numba", "polars", "networkx", "matplotlib", "sklearn", "scipy", "joblib", "tqdm", "laconic.data")
    code = f"import sys, laconic.cli; laconic.cli.make_parser(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_version(capsys):
    assert run(capsys, "--version")[0] == f"laconic {lc.__version__}\n"
