"""Labels that are classes at a site: from ``laconic init`` to the model that is taken away, everything names them."""

import csv
import json
import re

import cbor2
import numpy as np
import pytest
from test_desk import Board
from test_virtual_site import VirtualSite

import laconic as lc
from laconic.cli import main
from laconic.deploy.operations import fetching
from laconic.deploy.running.classes import Classes
from laconic.deploy.running.desk import Desk
from laconic.deploy.running.metrics import make_registry
from laconic.deploy.running.record import Record
from laconic.deploy.running.runner import warm
from laconic.deploy.settings.site import Site
from laconic.deploy.sources.reading import BadSample, Reader
from laconic.model import Model
from laconic.transport.faults import Drop, Duplication

SPECIES = ("setosa", "versicolor", "virginica")
UNKNOWN, ROUNDS = 77, 60


def flowers(path, n=240):
    """Three kinds of flowers: two inputs on scales of their own; and a label is missing."""
    random = np.random.default_rng(0)
    kinds = random.integers(3, size=n)
    length, width = random.normal(kinds, 0.3), random.normal(10.0 * (kinds == 1), 3.0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["length", "width", "species"])
        for k in range(n):
            writer.writerow([f"{length[k]:.3f}", f"{width[k]:.3f}", "" if k == UNKNOWN else SPECIES[kinds[k]]])
    return path


class Garden(VirtualSite):
    """The site that ``laconic init`` wrote, on the virtual network, with a record of every agent."""

    def __init__(self, folder, file, faults):
        self.folder = folder
        self.settle(Site.read(file), faults)

    def recorder(self, name):
        named = self.site.agent(name).source
        self.rounds[name] = Record(self.folder / f"{name}.npz", named.inputs, named.target, self.site.model.classes)
        return self.rounds[name]


@pytest.fixture
def written(tmp_path, monkeypatch, capsys):
    """The folder of a site of four agents, as ``laconic init`` writes it; its files are read as fast as can be."""
    monkeypatch.chdir(tmp_path)
    flowers(tmp_path / "flowers.csv")
    assert main(["init", "garden", "--data", "flowers.csv", "--agents", "4"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Labels are 3 classes (setosa, versicolor, virginica): one model each" in said and "WaveRLS" in said
    file = tmp_path / "garden" / "site.toml"
    file.write_text(re.sub(r"(?m)^rate = .*\n", "", file.read_text()))
    return file


def rows_of(file, site):
    """Inputs (T, N, 2) and names of classes (T, N), None where there is none, of the first rounds of a site's data."""
    texts = [(file.parent / "data" / f"{name}.csv").read_text() for name in site.names]
    tables = [list(csv.DictReader(text.splitlines()))[:ROUNDS] for text in texts]
    X = np.array([[[float(row["length"]), float(row["width"])] for row in table] for table in tables]).swapaxes(0, 1)
    return X, np.array([[row["species"] or None for row in table] for table in tables], dtype=object).T


def test_init_writes_what_is_chosen_for_several_classes(written):
    site = Site.read(written)
    X, kinds = rows_of(written, site)
    chosen = lc.defaults.choose(X[:8], kinds[:8], task="classes", classes=SPECIES, seed=1)
    assert site.model.classes == SPECIES == chosen.labels.classes
    assert repr(site.learner()) == repr(chosen.learner) and site.learner().outputs == 3
    np.testing.assert_allclose(site.features().frequencies, chosen.features.frequencies, rtol=1e-7)
    assert (kinds == None).sum() == 1  # noqa: E711
    assert "the shared model alone" in written.read_text()


def test_a_site_of_classes_computes_what_the_simulator_computes_and_names_them(written, tmp_path):
    garden = Garden(tmp_path, written, [Drop(0.0, 4.0, share=0.3), Duplication(0.0, 4.0, share=0.3)])
    site = garden.site
    X, kinds = rows_of(written, site)
    garden.run()
    labels = site.labels.encode(kinds)
    trace = lc.simulate(site.learner(), site.features(), site.network(), X, labels)
    assert garden.wires.lost > 5 and trace.sent.any()
    for k, (name, agent) in enumerate(garden.agents.items()):
        assert np.array_equal(agent.weights, trace.state.weights[k])
        garden.rounds[name].write(agent)
        recorded = lc.Trace.load(tmp_path / f"{name}.npz")
        for column in ("predictions", "labels", "sent"):
            kept, simulated = getattr(recorded, column)[:, 0], getattr(trace, column)[:, k]
            assert np.array_equal(kept, simulated, equal_nan=column != "sent"), column
        said = garden.said(name, "prediction")
        assert len(said) > 5
        for one in said:
            t = one["round"] - 1
            assert one["decision"] == trace.predictions[t, k].tolist()
            assert one["prediction"] == SPECIES[int(np.argmax(one["decision"]))]
            assert one["label"] == kinds[t, k] and one["interval"] is None
            assert one["error"] == (None if kinds[t, k] is None else float(one["prediction"] != kinds[t, k]))
        named = site.labels.decode(trace.predictions[:, k])
        wrong = [a != b for a, b in zip(named, kinds[:, k], strict=True) if b is not None]
        status = garden.drivers[name].snapshot()
        assert status.status["error_rate"] == pytest.approx(np.mean(wrong)) and status.radius is None
        gaps = np.nanmean((trace.predictions[:, k] - labels[:, k]) ** 2)
        assert status.status["mean_square_error"] == pytest.approx(gaps)
        tally = garden.drivers[name].outlet.tally
        told = make_registry(name, tally, lambda agent=agent: agent.counters)
        assert told.get_sample_value("laconic_error_rate", {"agent": name}) == pytest.approx(np.mean(wrong))
        assert np.mean(wrong[20:]) < 0.1


def test_models_of_a_site_taken_away_predict_classes(written, tmp_path, monkeypatch, capsys):
    garden = Garden(tmp_path, written, [])
    garden.run()
    X, kinds = rows_of(written, garden.site)
    garden.rounds["hall"].write(garden.agents["hall"])
    monkeypatch.setattr(fetching, "ask_agent", lambda *_, **__: None)  # nobody runs: from the checkpoint
    left = fetching.fetch_model(garden.site, "hall")
    asked = Board()
    ring = lambda: desk.refresh(garden.drivers["hall"].snapshot())  # noqa: E731
    desk = Desk(garden.agents["hall"], ring, ("length", "width"), "species", classes=garden.site.model.classes)
    desk.open(asked)
    answer = json.loads(asked.ask("predict", json.dumps(X[0].tolist()).encode()).result()[1])
    running = Model.from_bytes(asked.ask("model").result()[1])
    desk.close()
    models = {"checkpoint": left.model, "queryable": running, "trace": lc.Trace.load(tmp_path / "hall.npz").model()}
    for where, model in models.items():
        assert model.classes == SPECIES and model.inputs == ("length", "width") and model.target == "species", where
        assert np.array_equal(model.weights, garden.agents["hall"].weights.T), where
        assert (model.predict(X) == kinds).mean() > 0.95
    assert answer["prediction"] == left.model.predict(X[0]).tolist()
    left.model.save(tmp_path / "model.npz")
    capsys.readouterr()
    assert main(["predict", "model.npz", "flowers.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["prediction"]) == set(SPECIES) and told["error_rate"] < 0.05


def test_a_label_that_is_no_class_is_a_bad_sample(written):
    data = written.parent / "data" / "kitchen.csv"
    lines = data.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",tulip"
    data.write_text("\n".join(lines) + "\n")
    garden = Garden(written.parent, written, [])
    garden.run()
    counts = garden.drivers["kitchen"].outlet.source.counts
    assert counts["dropped"] == 1 and counts["samples"] == 59


@pytest.mark.parametrize(
    ("classes", "label", "place"),
    [
        (SPECIES, '"virginica"', 2.0),
        ((3, 5, 8), "5", 1.0),
        ((3, 5, 8), "5.0", 1.0),
        ((3, 5, 8), '"8"', 2.0),
        (("1", "2"), "2", 1.0),
        (SPECIES, "null", np.nan),
        (SPECIES, "NaN", np.nan),
        (("na", "yes"), '"na"', 0.0),
    ],
)
def test_a_label_is_the_place_of_its_class(classes, label, place):
    reader = Reader(1, classes=classes)
    assert reader(f"[1.5, {label}]".encode())[1] == pytest.approx(place, nan_ok=True)
    cell = label.strip('"')
    assert reader.row(f"1.5,{cell}".encode())[1] == pytest.approx(place, nan_ok=True)


@pytest.mark.parametrize("label", ['"tulip"', "7", "0.5", "true", "[1]", "Infinity", "1e400", "1" + 30 * "0", '"inf"'])
def test_what_is_no_class_is_refused_in_a_sentence(label):
    with pytest.raises(BadSample, match=r"y must be one of the classes 3, 5, 8; got"):
        Reader(1, classes=(3, 5, 8))(f"[1.5, {label}]".encode())


def test_a_number_without_end_is_no_class():
    with pytest.raises(BadSample, match=r"got a number of more than 30 digits"):
        Reader(1, classes=(3, 5, 8))(cbor2.dumps([1.5, 10**5000]))


def test_bad_inputs_of_a_row_with_a_class_are_named():
    with pytest.raises(BadSample, match="a cell must be a number, got 'wide'"):
        Reader(2, classes=SPECIES).row(b"1.5,wide,setosa")


SITE = "[model]\nn_inputs = 2\n{model}\n[learner]\n{learner}\n{more}\n[agents.ann]\nlisten = 'tcp/127.0.0.1:7000'\n"
WAVES, THREE = "algorithm = 'waverls'", "classes = ['a', 'b', 'c']"


@pytest.mark.parametrize(
    ("model", "learner", "more", "message"),
    [
        ("classes = 'a'", WAVES, "", "classes must be a list of two or more words, or of whole numbers"),
        ("classes = ['a', 1]", WAVES, "", "classes must be a list of two or more words, or of whole numbers"),
        ("classes = [true, false]", WAVES, "", "classes must be a list of two or more words, or of whole numbers"),
        ("classes = []", WAVES, "", "classes must be a list of two or more words, or of whole numbers"),
        ("classes = ['a']", WAVES, "", "each once; got 1, 1 different"),
        ("classes = ['a', 'b', 'a']", WAVES, "", "each once; got 3, 2 different"),
        ("classes = ['a', ' b']", WAVES, "", "classes must be words without blanks around them; got ' b'"),
        (THREE, "", "", "must have an output for each of the 3 classes of .model., as waverls has; qc-odkla has 1"),
        (THREE, "algorithm = 'personal'", "", "an output for each of the 3 classes .* personal has 1"),
        (THREE, f"{WAVES}\noutputs = 4", "", "an output for each of the 3 classes .* waverls has 4"),
        (THREE, f"{WAVES}\noutputs = 1", "", "an output for each of the 3 classes .* waverls has 1"),
        ("classes = ['a', 'b']", f"{WAVES}\noutputs = 2", "", "unless .model. classes names three or more; got 2"),
        (THREE, WAVES, "[limits]\nlabel = [0, 1]", "label is not for classes"),
    ],
)
def test_settings_of_classes_that_cannot_be_are_said(model, learner, more, message):
    with pytest.raises(ValueError, match=message):
        Site.parse(SITE.format(model=model, learner=learner, more=more))


def test_the_order_of_classes_in_the_settings_changes_nothing():
    sites = [Site.parse(SITE.format(model=f"classes = {c}", learner=WAVES, more="")) for c in ([5, 3, 8], [8, 5, 3])]
    assert sites[0] == sites[1] and sites[0].labels.classes == (3, 5, 8)
    warm(sites[0])


@pytest.mark.parametrize("algorithm", ["qcodkla", "personal", "waverls"])
def test_two_classes_have_one_output_with_any_learner(algorithm):
    text = SITE.format(model="classes = ['yes', 'no']", learner=f"algorithm = '{algorithm}'", more="")
    site = Site.parse(text)
    classes = Classes(site.labels)
    assert site.learner().outputs == 1
    assert [classes.learned(place) for place in (0.0, 1.0)] == [-1.0, 1.0] and classes.learned(np.nan) is None
    told = classes.told(0.3, np.nan)
    assert (told["prediction"], told["label"], told["error"]) == ("yes", None, None)


def test_an_agent_without_a_site_names_classes_too():
    agent = lc.Agent("ann", [], lc.RandomFeatures.gaussian(1, 5, seed=0), lc.WaveRLS(outputs=3), n_agents=1)
    for k in range(12):
        agent.learn([k % 3], 2.0 * np.eye(3)[k % 3] - 1)
    assert agent.model(classes=SPECIES).predict([[0.0], [1.0], [2.0]]).tolist() == list(SPECIES)
