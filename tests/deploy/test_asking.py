"""Running agents that are asked over real zenoh: for predictions, for their model, and how they are."""

import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from test_runner import WAIT, House, Running, listen

import laconic as lc
from laconic.cli import main
from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.operations.fetching import ask_agent, fetch_model
from laconic.deploy.settings.site import Site
from laconic.transport.zenoh import Security, load_zenoh
from laconic.transport.zenoh_asking import Refused, ask

pytestmark = [pytest.mark.sockets]

LOOP = 'kind = "file"\nloop = true'


@pytest.fixture
def start():
    started = []

    def make(house, *names, **options):
        started.extend(Running(house, name, progress=0.1, **options) for name in names)
        return started[-len(names) :]

    yield make
    for running in started:
        running.stop()


def answer(house, name, what, payload=None):
    """What an agent answers, once it is there and answers at all."""
    last = time.monotonic() + WAIT  # a number of questions would be over too soon where agents start slowly
    while time.monotonic() < last:
        try:
            said = ask_agent(house.site, name, what, payload, timeout=WAIT)
        except Refused:  # not yet in its loop
            continue
        if said is not None:
            return said
    raise AssertionError(f"{name} does not answer")


def wait_for_round(house, name, least):
    for _ in range(10_000):
        status = json.loads(answer(house, name, "status"))
        if status["round"] >= least:
            return status
    raise AssertionError(f"{name} does not get on")


def test_a_running_agent_answers_while_it_learns(tmp_path, start):
    house = House(tmp_path, ("ada", "bob"), (("ada", "bob"),), source=LOOP)
    start(house, "ada", "bob")
    status = wait_for_round(house, "ada", 100)
    assert status["agent"] == "ada" and status["neighbours"] == {"bob": "connected"}
    assert status["mean_square_error"] < 1.0 and status["bits"] > 0 and status["last_alert"] is None
    model = lc.Model.from_bytes(answer(house, "ada", "model"))
    assert model.inputs == ("a", "b") and model.target == "y" and model.about["round"] >= status["round"]
    told = json.loads(answer(house, "ada", "predict", b'{"a": 0.5, "b": 0.1}'))
    low, high = told["interval"]
    assert low < told["prediction"] < high and told["round"] >= status["round"]
    with pytest.raises(Refused, match="an input must have a value for 'b'"):
        ask_agent(house.site, "ada", "predict", b'{"a": 0.5}', timeout=WAIT)
    several = json.loads(answer(house, "bob", "predict", json.dumps([[0.1, 0.2]] * 3).encode()))
    assert np.shape(several["prediction"]) == (3,) and np.ptp(several["prediction"]) < 1e-12


USES = """
import json, sys, laconic as lc
print(json.dumps(lc.Model.load(sys.argv[1]).predict([[0.5, 0.1], [0.2, 0.9]]).tolist()))
"""


@pytest.mark.slow
def test_a_model_is_fetched_from_a_running_site_and_used_in_another_process(tmp_path, start, capsys):
    house = House(tmp_path, ("ada", "bob"), (("ada", "bob"),), source=LOOP, site='checkpoint = "disk"')
    ada, _ = start(house, "ada", "bob")
    wait_for_round(house, "ada", 150)
    wait_for_round(house, "bob", 150)
    out = tmp_path / "model.npz"
    assert main(["export", str(house.file), "--agent", "ada", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Wrote") and said.err == ""
    done = subprocess.run([sys.executable, "-c", USES, str(out)], capture_output=True, text=True, check=True)
    fetched = lc.Model.load(out)
    assert json.loads(done.stdout) == fetched.predict([[0.5, 0.1], [0.2, 0.9]]).tolist()
    assert fetched.about["round"] >= 150 and fetched.weights.any()
    assert main(["export", str(house.file), "-o", str(tmp_path / "mean.npz")]) == 0  # of both
    assert lc.Model.load(tmp_path / "mean.npz").about["agents"] == ["ada", "bob"]
    # What does not run is taken from its disk, to the bit.
    assert ada.stop() == 143
    capsys.readouterr()
    assert main(["export", str(house.file), "--agent", "ada", "-o", str(out)]) == 0
    stored = lc.Model.load(out)
    said = capsys.readouterr().err
    assert said == f"laconic: ada does not answer: taken from its checkpoint of round {stored.about['round']}.\n"
    agent = lc.Agent("ada", ["bob"], house.site.features(), house.site.learner(), n_agents=2)
    agent.load(house.site.checkpoint_path("ada"))
    assert stored.weights.tolist() == agent.weights.tolist() and stored.inputs == ("a", "b")
    assert not fetch_model(house.site, "ada").running


def test_an_agent_that_neither_runs_nor_ever_did_is_named(tmp_path, capsys):
    house = House(tmp_path, ("ada", "bob"), (("ada", "bob"),))
    assert main(["export", str(house.file), "--agent", "ada", "-o", str(tmp_path / "m.npz")]) == 2
    said = capsys.readouterr().err
    assert said == f"laconic: ada of {house.file} does not run, and has left no checkpoint here.\n"
    assert main(["export", str(house.file), "--agent", "eve", "-o", str(tmp_path / "m.npz")]) == 2
    assert "has no agent 'eve'" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [True, False])
def test_predictions_are_published_with_all_that_is_known(asked, tmp_path, start):
    site = f"publish_inputs = {str(asked).lower()}"
    house = House(tmp_path, ("ada",), (), source='kind = "zenoh"', site=site)
    start(house, "ada", predictions=1e6)
    answer(house, "ada", "status")  # it is there
    alone = lc.Agent("ada", [], house.site.features(), house.site.learner(), n_agents=1)
    with house.session("ada") as session:
        said = listen(session, "site/ada/prediction")
        errors = []
        for k in range(40):
            label = None if k % 7 == 6 else 0.5
            session.put("site/ada/sample", json.dumps({"a": 0.1 * (k % 5), "b": 0.2, "y": label}))
            told = said.get(timeout=WAIT)
            assert alone.learn([0.1 * (k % 5), 0.2], label).prediction == pytest.approx(told["prediction"], abs=1e-12)
            assert told["round"] == k + 1 and told["time"] > 1e9
            assert told.get("x") == ({"a": 0.1 * (k % 5), "b": 0.2} if asked else None)
            rank = int(np.ceil(0.9 * (len(errors) + 1)))
            radius = sorted(errors)[rank - 1] if rank <= len(errors) else None
            if radius is None:
                assert told["interval"] is None
            else:
                expected = [told["prediction"] - radius, told["prediction"] + radius]
                assert told["interval"] == pytest.approx(expected, abs=1e-12)
            if label is None:
                assert told["label"] is None and told["error"] is None
            else:
                assert told["error"] == told["prediction"] - 0.5
                errors.append(abs(told["error"]))
    # Nothing is learned any more: what it answers is what the same agent without a network answers.
    wait_for_round(house, "ada", 40)  # an answer may be as old as the last one that was given
    told = json.loads(answer(house, "ada", "predict", b'{"b": 0.4, "a": 0.3}'))
    assert told["round"] == 40 and told["prediction"] == pytest.approx(alone.predict([0.3, 0.4]), abs=1e-12)
    model = lc.Model.from_bytes(answer(house, "ada", "model"))
    np.testing.assert_allclose(model.weights, alone.weights, rtol=0, atol=1e-12)


FLOOD = """
import json, sys, zenoh
settings = {"mode": "client", "connect": {"endpoints": [sys.argv[1]]}, "scouting": {"multicast": {"enabled": False}}}
session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
print("open", flush=True)
payload = json.dumps([[0.1, 0.2]] * 256)
while True:
    session.get("site/ada/predict", lambda reply: None, payload=payload, timeout=1.0)
"""


@pytest.mark.slow
def test_a_flood_of_questions_does_not_stop_learning(tmp_path, start):
    """On slots of 20 ms: while thousands ask, an agent has its rounds, and answers others in time."""
    house = House(tmp_path, ("ada",), (), source=LOOP, site='clock = "slotted"\nslot = 0.02')
    start(house, "ada")
    first = wait_for_round(house, "ada", 20)
    where = f"tcp/127.0.0.1:{house.ports['ada']}"
    flood = subprocess.Popen([sys.executable, "-c", FLOOD, where], stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(WAIT, flood.kill)
    guard.start()
    try:
        assert flood.stdout.readline() == "open\n"
        refused, status = False, first
        while not refused or status["round"] < first["round"] + 100:
            try:
                said = ask_agent(house.site, "ada", "status", timeout=WAIT)
            except Refused as error:
                refused = refused or "too many questions" in str(error)
                continue
            status = status if said is None else json.loads(said)
        assert status["samples"] >= first["samples"] + 50
    finally:
        guard.cancel()
        flood.kill()
        flood.communicate()


def secure(folder):
    """A site of two with certificates, and those of a guest and of somebody who is none."""
    house = House(folder, ("ada", "bob"), (("ada", "bob"),), source=LOOP)
    text = house.file.read_text().replace("tcp/", "tls/")
    house.file.write_text(text + '\n[security]\nguests = ["meter", "thief"]\n')
    house.site = Site.read(house.file)
    make_certificates(house.site)
    house.file.write_text(text + '\n[security]\nguests = ["meter"]\n')
    house.site = Site.read(house.file)
    return house


@pytest.mark.slow
def test_members_and_guests_may_ask_and_nobody_else(tmp_path, start, capsys):
    house = secure(tmp_path)
    start(house, "ada", "bob")
    status = json.loads(answer(house, "ada", "status"))  # with the agent's own certificate
    assert status["agent"] == "ada"
    for who in ("bob", "meter"):
        assert json.loads(ask_agent(house.site, "ada", "status", timeout=WAIT, guest=who))["agent"] == "ada"
    certs = house.site.security.certificates
    thief = Security(house.site.security.ca, certs / "thief.crt", certs / "thief.key")
    where = str(house.site.endpoint("ada"))
    assert ask(load_zenoh(), "site/ada/status", where, security=thief, timeout=1.0) is None
    assert ask(load_zenoh(), "site/ada/model", where.replace("tls/", "tcp/"), timeout=1.0) is None  # no certificate
    out = tmp_path / "m.npz"
    assert main(["export", str(house.file), "--agent", "ada", "--as", "meter", "-o", str(out)]) == 0
    assert lc.Model.load(out).about["agent"] == "ada"
    assert main(["export", str(house.file), "--agent", "ada", "--as", "thief", "-o", str(out)]) == 2
    assert "--as must be an agent or a guest" in capsys.readouterr().err
    (certs / "ada.key").unlink()
    assert main(["export", str(house.file), "--agent", "ada", "-o", str(out)]) == 2
    assert "--as names somebody else's" in capsys.readouterr().err
