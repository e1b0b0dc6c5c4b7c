"""A run from the command line: what it prints is what the library computes, and it can be done again."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_kit import cells, fail, run, set_terminal, write_files

import laconic as lc
from laconic import data
from laconic.cli.learners import local_twin
from laconic.cli.networks import make_network


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def test_a_run_prints_what_the_library_computes(files, capsys):
    screen, err = run(
        capsys, "run", "flats.csv", "--target", "rent", "--agents", 6, "--network", "ring", "--learner", "odkla",
        "--rho", 0.3, "--eta", 1.5, "--bandwidth", 0.7, "--frequencies", 20, "--seed", 3,
    )  # fmt: skip
    assert err == ""
    own = data.load(files / "flats.csv", target="rent")
    X, y = data.partition(data.scale(own.X, "column"), data.scale(own.y, "column"), 6, "time", 3)
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
    screen, _ = run(capsys, "run", "flats.csv", "--learner", "qc-odkla")
    X = data.scale(data.load(files / "flats.csv").X, "column")
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))[np.triu_indices(300, 1)]
    assert f"bandwidth {np.median(distances):.3g} (the median distance of two inputs)" in " ".join(screen.split())


def test_inputs_that_are_mostly_equal_still_have_a_bandwidth(tmp_path, capsys):
    rows = [f"{0 if k % 9 else 1},{k % 4}" for k in range(200)]
    (tmp_path / "equal.csv").write_text("a,y\n" + "\n".join(rows))
    assert "bandwidth 1 (" in run(capsys, "run", "equal.csv", "--learner", "odkla")[0]


def test_two_words_are_classes_and_are_scored_by_errors(files, capsys):
    screen, err = run(capsys, "run", "words.csv", "--network", "complete", "--eta", 1, "--rho", 0.2)
    assert err == "laconic: words.csv: dropped the column that is not numbers: 'street' (text: 's0', for one).\n"
    assert "target kind (big or small)" in screen and "logistic loss" in screen
    own = data.load(files / "signs.csv")
    y = np.where(own.y > 0, -1.0, 1.0)  # "big" comes first in the alphabet
    X, y = data.partition(data.scale(own.X, "column"), y, 5, "time", 0)
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
    screen, err = run(capsys, "run", "signs.csv", "--loss", "squared")
    assert "mse" in screen
    assert err == "laconic: 'hit' has only the values 0 and 1; --loss logistic would predict classes.\n"


def test_progress_is_shown_when_asked_for(files, capsys):
    err = run(capsys, "run", "flats.csv", "--progress", "--bits", 3)[1]
    assert "QC-ODKLA: 100%" in err and "60.0/60.0" in err


def test_silence_is_explained(files, capsys):
    assert "no model moved by 8.7" in run(capsys, "run", "flats.csv", "--alpha", 9)[0]
    assert "there is nobody to hear it" in run(capsys, "run", "flats.csv", "--agents", 1, "--bits", 3)[0]
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
        pair = (
            lc.simulate(model, features, network, X, y) for model in (learner, local_twin(learner, network, len(X)))
        )
        np.testing.assert_allclose(next(pair).predictions, next(pair).predictions, rtol=0, atol=1e-12)


def test_waves_are_counted_and_compared_with_the_same_learner_alone(files, capsys):
    words = ("run", "flats.csv", "--learner", "wave-rls", "--network", "path", "--bandwidth", 0.7, "--out", "out")
    screen, _ = run(capsys, *words)
    own = data.load(files / "flats.csv")
    X, y = data.partition(data.scale(own.X, "column"), data.scale(own.y, "column"), 5, "time", 0)
    given = (lc.RandomFeatures.gaussian(3, 50, 0.7, 0), lc.Network.path(5), X, y)
    trace = lc.simulate(lc.WaveRLS(), *given)
    shown = [cell.replace(",", "") for cell in cells(screen, "WaveRLS")]
    assert float(shown[0]) == pytest.approx(trace.mse()[-1], rel=1e-3)
    assert [int(cell) for cell in shown[-2:]] == [trace.sent.sum(), trace.bits.sum()]
    said = " ".join(screen.split())
    assert f"{len(trace.waves)} waves over a tree of depth 2, {trace.sent.sum() / 5:.3g} messages an agent" in said
    assert "ridge 0.05, waves at rounds that grow by 1.5" in said and "ridge 0;" not in said
    alone = lc.offline.recursive_least_squares(given[0], X, y, centralised=False, regularization=0.05)
    shown = cells(screen, "WaveRLS, alone")
    assert float(shown[0]) == pytest.approx(np.mean((alone - y) ** 2), rel=1e-3) and shown[-2:] == ["0", "0"]
    assert "written to out: trace.npz, model.npz, picture.png, waves.png, run.json" in screen
    assert Path("out/waves.png").read_bytes().startswith(b"\x89PNG")
    about = json.loads(Path("out/run.json").read_text())
    assert about["learner"]["kappa"] == 1.0 and about["channel"] is None and about["result"]["local_step"] is None
    later, _ = run(capsys, "run", "flats.csv", "--learner", "waverls", "--parameter", "first=100")
    assert "the first wave starts after 60 rounds or more" in later
    assert "nobody to hear it" in run(capsys, "run", "flats.csv", "--learner", "waverls", "--agents", 1)[0]


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


RUN = """
[run]
rounds = {}
checkpoint = "kept"
checkpoint_every = 10
[network]
kind = "ring"
agents = 12
[model]
n_inputs = 2
n_frequencies = 5
bandwidth = 0.5
[learner]
algorithm = "odkla"
"""


def test_a_run_in_a_file_says_what_it_did_and_where_that_is(tmp_path, capsys):
    (tmp_path / "big.toml").write_text(RUN.format(20))
    screen, err = run(capsys, "run", "big.toml")
    words = " ".join(screen.split())
    assert "12 agents, 12 edges, 1 process " in words and "between processes" not in words
    assert "written every round, to kept/rounds.csv" in words and err == ""
    assert (tmp_path / "kept" / "rounds.csv").read_text().count("\n") == 21
    (tmp_path / "big.toml").write_text(RUN.format(30))
    screen, _ = run(capsys, "run", "big.toml", "--resume", "--out", "there")
    assert "written every round, to there/rounds.csv" in " ".join(screen.split())
    assert (tmp_path / "there" / "rounds.csv").read_text() == (tmp_path / "kept" / "rounds.csv").read_text()


def test_runs_and_sites_are_told_apart(tmp_path, capsys):
    run(capsys, "init", "home")
    assert "is a site and not a run: `laconic up home/site.toml`" in fail(capsys, "run", "home/site.toml")
    (tmp_path / "big.toml").write_text(RUN.format(20).replace("agents", "agnts"))
    assert fail(capsys, "run", "big.toml").endswith("[network] has no key 'agnts'; did you mean 'agents'?")
    assert "is a run and not a site: `laconic run big.toml` starts it" in fail(capsys, "up", "big.toml")
