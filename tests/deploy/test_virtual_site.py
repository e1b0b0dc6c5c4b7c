"""A whole site on the virtual network: settings, files, checkpoints, alerts, metrics and logs, but no zenoh.

The agents are put together by the same function as those of ``laconic agent``, and driven by the same driver; only
their links, and the moments at which they are called, are virtual.
"""

import json
import logging
import sys
from contextlib import ExitStack

import numpy as np
import pytest

import laconic as lc
from laconic.deploy.running.metrics import make_registry
from laconic.deploy.running.runner import assemble, make_agent, restore, terms_of
from laconic.deploy.settings.site import Site
from laconic.deploy.sources.unthreaded import UnthreadedFile
from laconic.transport.faults import Crash, Drop, Duplication, Skew
from laconic.transport.hosts import Host, VirtualLink
from laconic.transport.wires import Wires

NAMES = ("ada", "bob", "cyd", "dan")
EDGES = [["ada", "bob"], ["bob", "cyd"], ["cyd", "dan"], ["dan", "ada"], ["ada", "cyd"]]
LONGEST = 600.0  # virtual seconds after which somebody is stuck
QCODKLA = """
            algorithm = "qcodkla"
            [channel]
            alpha = 0.6
            beta = 0.99
            bits = 4
"""


class VirtualSite:
    """A site in a folder, and a virtual network that it runs on."""

    def __init__(
        self, folder, n_rounds=60, *, site="", source="", learner=QCODKLA, faults=(), seed=0, names=NAMES, **options
    ):
        random = np.random.default_rng(seed)
        self.X = random.uniform(size=(n_rounds, len(names), 2))
        self.y = np.sin(4 * self.X[..., 0]) + self.X[..., 1] - 0.7
        for k, name in enumerate(names):
            rows = np.column_stack([self.X[:, k], self.y[:, k]]).tolist()
            lines = ["a,b,y", *(",".join(map(repr, row)) for row in rows)]
            (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        edges = [edge for edge in EDGES if set(edge) <= set(names)]
        text = f"""
            [site]
            {site}
            [model]
            n_inputs = 2
            n_frequencies = 10
            bandwidth = 0.5
            [learner]
            {learner}
            [network]
            edges = {json.dumps(edges)}
            [source]
            kind = "file"
            path = "{{name}}.csv"
            inputs = ["a", "b"]
            target = "y"
            {source}
        """
        text += "".join(f'\n[agents.{n}]\nlisten = "tcp/127.0.0.1:{7000 + k}"\n' for k, n in enumerate(names))
        (folder / "site.toml").write_text(text)
        self.settle(Site.read(folder / "site.toml"), faults, seed, **options)

    def settle(self, site, faults=(), seed=0, **options):
        """Give each agent of a site its host on a virtual network."""
        self.site, self.options, names = site, options, site.names
        self.wires = Wires(faults, seed)
        self.rounds = {name: {} for name in names}  # what was predicted in each round
        self.taken = {name: [] for name in names}  # labels that were taken from each file
        self.drivers, self.started = {}, dict.fromkeys(names, 0)
        for name in names:
            around = self.site.neighbours(name)
            self.wires.hosts[name] = Host(self.wires, name, around, self.boot, lambda name=name: self.wipe(name), 0.05)
        self._stack = ExitStack()

    def boot(self, host):
        agent = make_agent(self.site, host.name)
        restore(agent, self.site)
        self.started[host.name] += 1
        self.drivers[host.name] = assemble(
            self._stack,
            self.site,
            agent,
            terms_of(self.site, **self.options),
            host.deliver,
            open_link=lambda site, name, deliver: VirtualLink(host),
            open_source=lambda site, name, link: self.source(name),
            recorder=self.recorder(host.name),
            wall=lambda: self.wires.timeline.now,
        )
        return self.drivers[host.name]

    def source(self, name):
        source = UnthreadedFile(self.site.source(name))
        take = source.next

        def note():
            sample = take()
            if sample is not None:
                self.taken[name].append(sample.y)
            return sample

        source.next = note
        return source

    def recorder(self, name):
        return Keep(self.rounds[name])

    def wipe(self, name):
        for file in self.site.checkpoint.glob(f"{name}.*"):
            file.unlink()

    def run(self, until=LONGEST):
        """Let time pass until all programs are over."""
        with self._stack:
            self.wires.start()
            self.wires.timeline.run(until, lambda: all(driver.pacer.over for driver in self.drivers.values()))

    @property
    def agents(self):
        return {name: driver.pacer.agent for name, driver in self.drivers.items()}

    def said(self, name, kind):
        return [json.loads(data) for suffix, data in self.wires.hosts[name].published if suffix == kind]

    def predictions(self):
        return np.array([[self.rounds[name].get(t + 1, np.nan) for name in self.rounds] for t in range(len(self.X))])

    def simulate(self):
        return lc.simulate(self.site.learner(), self.site.features(), self.site.network(), self.X, self.y)


class Keep:
    def __init__(self, predictions):
        self.predictions = predictions

    def add(self, info):
        self.predictions[info.round] = info.prediction


def check_replicas(agents):
    for name, agent in agents.items():
        for other in agent.neighbours:
            assert agent.heard(other) == agents[other].position(name)
            assert np.array_equal(agent.replica(other), agents[other].broadcast), (name, other)


@pytest.fixture(autouse=True)
def without_zenoh(monkeypatch):
    monkeypatch.setitem(sys.modules, "zenoh", None)


@pytest.fixture
def events(caplog):
    caplog.set_level(logging.INFO, "laconic")
    return lambda event: [record for record in caplog.records if record.msg == event]


def test_a_site_computes_what_the_simulator_computes_to_the_bit(tmp_path, events):
    house = VirtualSite(tmp_path, faults=[Drop(0.0, 4.0, share=0.3), Duplication(0.0, 4.0, share=0.3)])
    house.run()
    simulated = house.simulate()
    assert np.array_equal(house.predictions(), simulated.predictions)
    for k, agent in enumerate(house.agents.values()):
        assert np.array_equal(agent.weights, simulated.state.weights[k])
        assert np.array_equal(agent.duals, simulated.state.duals[k])
    check_replicas(house.agents)
    assert house.wires.lost > 20 and 0.1 < simulated.sent.mean() < 0.9
    assert {record.agent for record in events("joined")} == set(NAMES)
    assert not events("given up")


@pytest.mark.slow
def test_an_agent_that_crashes_goes_on_from_its_checkpoint_file_to_the_bit(tmp_path):
    site = 'checkpoint = "disk"\ncheckpoint_every = 1'
    house = VirtualSite(tmp_path, site=site, faults=[Crash(2.0, 4.0, "bob", disk=True)])
    house.run()
    assert house.started == {"ada": 1, "bob": 2, "cyd": 1, "dan": 1}
    simulated = house.simulate()
    assert np.array_equal(house.predictions(), simulated.predictions)
    assert 0 < house.drivers["bob"].outlet.source.counts["samples"] < 60  # the first ones of the file were passed over
    for k, (name, agent) in enumerate(house.agents.items()):
        assert np.array_equal(agent.duals, simulated.state.duals[k])
        kept = lc.Agent(name, agent.neighbours, agent.features, agent.learner, n_agents=4)
        assert kept.load(tmp_path / "disk" / f"{name}.checkpoint")
        assert kept.round == 60 and np.array_equal(kept.weights, agent.weights)


def test_an_agent_that_loses_its_disk_gets_its_model_back_from_its_neighbours(tmp_path):
    site = 'checkpoint = "disk"\ncheckpoint_every = 10'
    # Files that begin again: who went ahead a round when cyd came back would have a sample left, and nobody to hear it.
    faults = [Crash(3.0, 5.0, "cyd", disk=False)]
    house = VirtualSite(tmp_path, site=site, source="loop = true", rounds=60, faults=faults)
    house.run()
    agents = house.agents
    assert agents["cyd"].counters["recoveries"] == 1
    assert {agent.round for agent in agents.values()} == {60}
    assert all(set(agent.edges.values()) == {"live"} for agent in agents.values())
    check_replicas(agents)
    for name, agent in agents.items():
        for other in agent.neighbours:
            assert np.array_equal(agent.share(other), -agents[other].share(name))
    assert np.abs(sum(agent.duals for agent in agents.values())).max() < 1e-9


LEARNERS = {"qcodkla": QCODKLA, "waverls": 'algorithm = "waverls"', "personal": 'algorithm = "personal"'}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_each_row_of_a_file_is_learned_once_whatever_happens_to_the_rounds(tmp_path, clock, learner):
    """Bob is killed twice: the first time the others go on without it, so that its rounds are no longer its samples."""
    site = f'clock = "{clock}"\nslot = 0.1\npatience = 1\ncheckpoint = "disk"\ncheckpoint_every = 1'
    faults = [Crash(3.0, 6.0, "bob", disk=True), Crash(8.0, 8.1, "bob", disk=True)]
    house = VirtualSite(tmp_path, n_rounds=120, site=site, learner=LEARNERS[learner], faults=faults)
    house.run()
    assert house.started["bob"] == 3
    assert house.agents["bob"].round > 120 or clock == "slotted"  # where waves run, each counts its own slots
    for k, name in enumerate(NAMES):
        assert house.taken[name] == house.y[:, k].tolist(), name
        assert house.agents[name].samples == 120
        if learner == "waverls":
            assert house.agents[name].state().arrays["wave.count"] == 120


def test_an_agent_without_memory_reads_its_file_from_the_beginning(tmp_path, events):
    """One that comes late, or has lost its disk: what it has not learned itself it has to read."""
    site = 'checkpoint = "disk"\ncheckpoint_every = 1\npatience = 1'
    house = VirtualSite(tmp_path, site=site, faults=[Crash(2.0, 4.0, "cyd", disk=False)])
    house.run()
    column = house.y[:, NAMES.index("cyd")].tolist()
    before = len(house.taken["cyd"]) - 60
    assert 0 < before < 60 and house.taken["cyd"] == column[:before] + column
    assert [(record.agent, record.samples) for record in events("joined") if record.round] == [("cyd", 0)]


def test_a_checkpoint_of_other_settings_stops_the_start(tmp_path):
    VirtualSite(tmp_path, n_rounds=5, site='checkpoint = "disk"', names=("ada",)).run()
    house = VirtualSite(tmp_path, n_rounds=5, site='checkpoint = "disk"', names=("ada", "bob"))
    with pytest.raises(ValueError, match=r"Move it away to start anew\."):
        house.run()


def test_the_neighbours_of_a_silent_agent_raise_an_alert_and_go_on(tmp_path, events):
    faults = [Crash(3.0, 9.0, "bob", disk=True)]
    options = {"site": "patience = 2", "source": "loop = true", "rounds": 200, "faults": faults}
    house = VirtualSite(tmp_path, n_rounds=200, **options)
    house.run()
    for name in ("ada", "cyd"):
        alerts = house.said(name, "alert")
        assert [(alert["event"], alert["neighbour"]) for alert in alerts] == [
            ("neighbour is silent", "bob"),
            ("neighbour is back", "bob"),
        ]
        assert 5.0 < alerts[0]["time"] < 7.0 and 9.0 < alerts[1]["time"] < 11.0  # virtual seconds
        assert alerts[0]["agent"] == name
    assert house.said("dan", "alert") == []
    assert {record.agent for record in events("given up")} == {"ada", "cyd"}
    assert len(set(range(1, 201)) - set(house.rounds["ada"])) <= 1  # who is behind by one when bob is back jumps
    assert {agent.round for agent in house.agents.values()} == {200}


def test_metrics_count_rounds_samples_and_neighbours(tmp_path):
    house = VirtualSite(tmp_path, progress=0.5)
    (tmp_path / "ada.csv").write_text((tmp_path / "ada.csv").read_text() + "no,number,here\n")
    house.run(until=4.0)

    def read(name, metric, **labels):
        registry = make_registry(name, house.drivers[name].outlet.tally, lambda: house.agents[name].counters)
        return registry.get_sample_value(f"laconic_{metric}", {"agent": name, **labels})

    reached = house.agents["ada"].round
    assert 10 < reached < 60
    for name, driver in house.drivers.items():
        rounds = house.agents[name].round
        assert abs(rounds - reached) <= 1
        assert read(name, "round") == read(name, "loss_count") == rounds == len(house.rounds[name])
        assert read(name, "round_seconds_count") == rounds
        seconds = read(name, "round_seconds_sum")
        assert 0.05 * rounds < seconds < 4.0  # virtual ones
        assert read(name, "neighbours", state="connected") == len(house.site.neighbours(name))
        assert read(name, "sends_total") + read(name, "censored_total") == rounds
        assert not driver.pacer.over


def test_progress_and_predictions_come_at_the_pace_that_was_asked_for(tmp_path, events):
    house = VirtualSite(tmp_path, n_rounds=100, predictions=2.0, progress=1.5)
    house.run(until=6.5)
    for name in NAMES:
        told = [record for record in events("progress") if record.agent == name]
        assert len(told) == 4
        assert 0 < told[0].round < told[-1].round
        assert told[-1].mean_square_error < 1.0
        said = house.said(name, "prediction")
        assert 9 <= len(said) <= 12
        for one in said:
            assert house.rounds[name][one["round"]] == one["prediction"]


def test_on_slots_too_a_site_computes_what_the_simulator_computes(tmp_path):
    house = VirtualSite(tmp_path, n_rounds=30, site='clock = "slotted"\nslot = 1.0')
    house.run()
    assert np.array_equal(house.predictions(), house.simulate().predictions)
    assert 30.0 < house.wires.timeline.now < 33.0


@pytest.mark.slow
def test_on_slots_a_clock_that_runs_too_fast_and_a_crash_leave_replicas_exact(tmp_path, events):
    faults = [Skew(2.0, 9.0, "ada", rate=1.7), Crash(12.0, 20.0, "dan", disk=True)]
    site = 'clock = "slotted"\nslot = 0.5\ncheckpoint = "disk"\ncheckpoint_every = 4'
    house = VirtualSite(tmp_path, site=site, source="loop = true", faults=faults)
    house.run(until=60.3)
    assert len(events("joined")) == 5
    assert all(agent.edges == dict.fromkeys(agent.neighbours, "live") for agent in house.agents.values())
    last = max(agent.round for agent in house.agents.values())
    for agent in house.agents.values():
        agent.skip_to(last)
        agent.end_round()
    for name, agent in house.agents.items():
        for other in agent.neighbours:
            assert np.array_equal(agent.replica(other), house.agents[other].broadcast), (name, other)


def test_a_signal_stops_an_agent_which_saves_what_it_has(tmp_path):
    house = VirtualSite(tmp_path, site='checkpoint = "disk"\ncheckpoint_every = 1000\npatience = 2')
    house.wires.timeline.at(3.0, lambda: house.wires.hosts["ada"].deliver(15))
    house.run()
    ada = house.drivers["ada"]
    assert ada.stopped == 15 and ada.pacer.over and ada.pacer.agent.round < 60
    kept = make_agent(house.site, "ada")
    restore(kept, house.site)
    assert kept.round == ada.pacer.agent.round > 5
    assert house.agents["bob"].round == 60  # the others went on without it


def test_the_same_seed_gives_the_same_run(tmp_path):
    runs = []
    for k in range(2):
        folder = tmp_path / str(k)
        folder.mkdir()
        house = VirtualSite(folder, site="patience = 2", faults=[Drop(0.0, 9.0, 0.4), Crash(2.0, 7.0, "dan", True)])
        house.run()
        runs.append((house.wires.timeline.now, house.wires.carried, house.predictions(), house.said("ada", "alert")))
    assert runs[0][:2] == runs[1][:2] and runs[0][3] == runs[1][3]
    np.testing.assert_array_equal(runs[0][2], runs[1][2])
