"""An agent's memory: whoever is restored goes on with the same bits, and no torn file is ever taken for a whole one."""

import contextlib
import json
import logging
import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from agent_kit import carry, check_invariants, deliver, make_team, post, puppet, speak
from conftest import CHANNELS, make_learner, make_stream

import laconic as lc
from laconic.protocol import AgentState
from laconic.protocol.checkpoint import previous, read_checkpoint, write_checkpoint

TRIANGLE = ["ann-ben", "ben-cid", "ann-cid"]


def run(agents, X, y, start, stop):
    for t in range(start, stop):
        for i, agent in enumerate(agents.values()):
            agent.learn(X[t, i], y[t, i])
        carry(agents)


def twin(agent):
    """Another agent like it, which has just been made."""
    options = {"n_agents": 3, "clock": agent.clock, "dtype": agent._ledger.dtype.name}
    return lc.Agent(agent.name, agent.neighbours, agent.features, agent.learner, **options)


# --------------------------------------------------------------------------------------------------------------------
# Restoring


@pytest.mark.parametrize("clock", ["slotted", "lockstep"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("kind", "channel"), [("odkla", "dense"), ("odkla", "both"), ("dokl", "fixed"), ("adapt-then-combine", "adaptive")]
)
def test_who_is_restored_goes_on_with_the_same_bits(kind, channel, dtype, clock, features):
    """Killed between rounds, after speaking, after hearing; restored; and it is as if nothing had happened."""
    learner = make_learner(kind, channel=CHANNELS[channel])
    X, y = make_stream(30, 3)
    calm = make_team(learner, features, TRIANGLE, clock=clock, dtype=dtype)
    run(calm, X, y, 0, 24)
    agents = make_team(learner, features, TRIANGLE, clock=clock, dtype=dtype)
    run(agents, X, y, 0, 15)
    for t in range(15, 24):
        moment = t % 3 if t < 21 else -1
        if moment == 0:
            restart(agents, "ben")
        for i, agent in enumerate(agents.values()):
            agent.learn(X[t, i], y[t, i])
        if moment == 1:
            agents["ben"].state()
            restart(agents, "ben")
        if moment == 2:
            deliver(agents, post(agents))
            restart(agents, "ben")
        carry(agents)
    for name, agent in agents.items():
        agent.end_round()
        calm[name].end_round()
        np.testing.assert_array_equal(agent.weights, calm[name].weights)
        np.testing.assert_array_equal(agent.broadcast, calm[name].broadcast)
        for other in agent.neighbours:
            np.testing.assert_array_equal(agent.share(other), calm[name].share(other))
        if kind != "adapt-then-combine":
            np.testing.assert_array_equal(agent.duals, calm[name].duals)
        assert agent.counters["repairs"] == 0 and set(agent.edges.values()) == {"live"}


def restart(agents, name):
    """Kill an agent, and start it from its newest checkpoint; what it last said may or may not have left."""
    old = agents[name]
    state = AgentState.from_bytes(old.state().to_bytes())
    agents[name] = new = twin(old)
    new.restore(state)
    assert same(new.state(), state)
    assert set(new.edges.values()) == {"opening"} and new.counters["sends"] == 0
    new.rejoin()
    carry(agents)
    assert set(new.edges.values()) == {"live"}


def same(one, two):
    """Whether two states are equal but for where edges stand, since after a restart none is live."""
    states = [AgentState.from_bytes(state.to_bytes()) for state in (one, two)]
    for state in states:
        for kept in state.about["neighbours"].values():
            kept["stage"] = "opening"
    return states[0] == states[1]


def test_edges_are_remembered(features):
    """One edge reopened, one suspended, one forgotten by both."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, [*TRIANGLE, "ben-dan"], n_agents=4)
    random = np.random.default_rng(0)

    def play(n_rounds):
        for _ in range(n_rounds):
            for agent in agents.values():
                speak(agent, random.standard_normal(features.n_features))
            carry(agents)

    play(5)
    for change in ("disconnected", "connected"):
        getattr(agents["ann"], change)("ben")
        getattr(agents["ben"], change)("ann")
        play(2)
    agents["ben"].disconnected("cid")
    agents["cid"].disconnected("ben")
    agents["dan"].leave()
    play(2)
    ben = agents["ben"]
    assert ben.edges == {"ann": "live", "cid": "gone", "dan": "gone"}
    options = {"n_agents": 4, "clock": "slotted"}
    double = lc.Agent("ben", ["dan", "cid", "ann"], features, ben.learner, **options)  # in another order
    double.restore(ben.state())
    assert double.edges == {"dan": "gone", "cid": "opening", "ann": "opening"}
    for name in ben.neighbours:
        np.testing.assert_array_equal(double.replica(name), ben.replica(name))
        np.testing.assert_array_equal(double.share(name), ben.share(name))
        assert double.heard(name) == ben.heard(name)
    np.testing.assert_array_equal(double.duals, ben.duals)
    agents["ben"] = double
    del agents["dan"]
    double.remove("dan")
    double.rejoin()
    for name, other in (("ben", "cid"), ("cid", "ben")):
        agents[name].connected(other)
    carry(agents)
    play(3)
    for agent in agents.values():
        agent.end_round()
    check_invariants(agents)


def test_neighbours_that_the_state_does_not_know(features):
    """Those are new, and open an edge; those that are no longer neighbours take their share along."""
    agents = make_team(puppet(), features, ["ann-ben", "ben-cid"], n_agents=4)
    random = np.random.default_rng(0)
    for _ in range(5):
        for agent in agents.values():
            speak(agent, random.standard_normal(features.n_features))
        carry(agents)
    ben = agents["ben"]
    ben.end_round()
    double = lc.Agent("ben", ["dan", "cid"], features, ben.learner, n_agents=4, clock="slotted")
    double.restore(ben.state())
    assert double.edges == {"dan": "opening", "cid": "opening"}
    np.testing.assert_array_equal(double.replica("cid"), ben.replica("cid"))
    np.testing.assert_array_equal(double.share("cid"), ben.share("cid"))
    np.testing.assert_allclose(double.duals, 0.3 * ben.share("cid"), rtol=1e-12)


def test_a_state_is_a_copy(features):
    agents = make_team(puppet(), features, ["ann-ben"], n_agents=3)
    state = agents["ann"].state()
    before = state.to_bytes()
    speak(agents["ann"], np.ones(features.n_features))
    assert state.to_bytes() == before
    double = twin(agents["ann"])
    double.restore(state)
    speak(double, np.ones(features.n_features))
    assert state.to_bytes() == before


# --------------------------------------------------------------------------------------------------------------------
# Files


@pytest.fixture
def states(features):
    """ben in three moments, and how to make another ben."""
    agents = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE)
    random = np.random.default_rng(0)
    kept = []
    for _ in range(3):
        for agent in agents.values():
            speak(agent, random.standard_normal(features.n_features))
        carry(agents)
        kept.append(agents["ben"].state())
    return kept


@pytest.fixture
def ben(features):
    return make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE)["ben"]


def test_save_and_load(tmp_path, states, ben):
    path = tmp_path / "deep" / "down" / "ben.state"
    ben.restore(states[0])
    assert ben.save(path) is None
    assert [file.name for file in path.parent.iterdir()] == ["ben.state"]
    for state in states[1:]:
        ben.restore(state)
        ben.save(str(path))
    assert sorted(file.name for file in path.parent.iterdir()) == ["ben.state", "ben.state.previous"]
    other = twin(ben)
    assert other.load(str(path)) is True
    assert same(other.state(), states[2])
    assert same(read_checkpoint(previous(path)), states[1])


def test_no_file(tmp_path, ben):
    before = ben.state()
    assert ben.load(tmp_path / "nothing" / "here") is False
    assert ben.state() == before


def test_torn_at_every_length(states):
    data = states[2].to_bytes()
    assert AgentState.from_bytes(data) == states[2]
    for length in range(len(data)):
        with pytest.raises(ValueError, match="not a whole checkpoint of an agent."):
            AgentState.from_bytes(data[:length])
    for more in (b"\x00", b"\n", data):
        with pytest.raises(ValueError, match="not a whole checkpoint"):
            AgentState.from_bytes(data + more)


def test_every_byte_counts(states):
    data = states[2].to_bytes()
    for at in range(len(data)):
        spoiled = bytearray(data)
        spoiled[at] ^= 1 << (at % 8)
        with pytest.raises(ValueError, match="not a whole checkpoint"):
            AgentState.from_bytes(bytes(spoiled))


def spoil(path, how):
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "torn":
        path.write_bytes(data[: len(data) // 2])
    elif how == "rotten":
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 4]) + data[-8:])
    elif how == "zeros":  # what some file systems leave after a power cut
        path.write_bytes(bytes(len(data)))
    elif how == "text":
        path.write_text(json.dumps({"about": {}}))
    elif how == "huge":
        os.truncate(path, (1 << 30) + 1)
    else:
        path.unlink()
        path.mkdir()


DAMAGES = ["empty", "torn", "rotten", "zeros", "text", "huge", "directory"]


@pytest.mark.parametrize("how", ["missing", *DAMAGES])
def test_the_previous_is_used_when_the_newest_is_no_good(how, tmp_path, states, ben, caplog):
    path = tmp_path / "ben.state"
    for state in states[:2]:
        write_checkpoint(path, state)
    spoil(path, how)
    with caplog.at_level(logging.WARNING, "laconic.protocol"):
        assert ben.load(path) is True
    assert same(ben.state(), states[0])
    assert [record.path for record in caplog.records] == ([] if how == "missing" else [str(path)])
    if how != "directory":
        ben.restore(states[2])
        ben.save(path)
        assert same(read_checkpoint(path), states[2])


@pytest.mark.parametrize("how", DAMAGES)
def test_no_good_file_at_all(how, tmp_path, states, ben):
    path = tmp_path / "ben.state"
    for state in states[:2]:
        write_checkpoint(path, state)
    spoil(path, how)
    spoil(previous(path), how)
    before = ben.state()
    sentence = r"^no good checkpoint in .*: ben.state \(.*\); ben.state.previous \(.*\)$"
    with pytest.raises(ValueError, match=sentence):
        ben.load(path)
    assert ben.state() == before
    previous(path).rmdir() if how == "directory" else previous(path).unlink()
    with pytest.raises(ValueError, match=r"^no good checkpoint in .*: ben.state \(.*\)$"):
        ben.load(path)


def test_a_crash_while_saving(tmp_path, states, ben):
    """At any of its steps: the old one moved aside, and the new one absent or half written under another name."""
    path = tmp_path / "ben.state"
    write_checkpoint(path, states[0])
    path.replace(previous(path))
    for written in (None, 0, 1000):
        if written is not None:
            (tmp_path / ".ben.state.123.tmp").write_bytes(states[1].to_bytes()[:written])
        other = twin(ben)
        assert other.load(path) is True
        assert same(other.state(), states[0])
    write_checkpoint(path, states[2])
    assert read_checkpoint(path) == states[2]
    assert read_checkpoint(previous(path)) == states[0]


def test_killed_while_saving(tmp_path, states, ben):
    """A process that does nothing but save, and is killed: what it leaves can always be read."""
    path = tmp_path / "ben.state"
    (tmp_path / "state").write_bytes(states[0].to_bytes())
    program = (
        "import sys; from pathlib import Path; from laconic.protocol.checkpoint import AgentState, write_checkpoint\n"
        "state = AgentState.from_bytes(Path(sys.argv[1]).read_bytes())\n"
        "for k in range(10**9):\n"
        "    state.about['round'] = state.about['finished'] = k\n"
        "    write_checkpoint(Path(sys.argv[2]), state)\n"
        "    print(k, flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state"), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for count in range(1, 20):
            seen = int(process.stdout.readline())
            assert seen == count - 1
            assert read_checkpoint(path).about["round"] >= seen  # also while it is being written
        process.kill()
        written = [seen, *map(int, process.stdout.read().split())]
    assert ben.load(path) is True
    assert ben.round in (written[-1], written[-1] + 1)


@contextlib.contextmanager
def full_disk(n_bytes):
    """No file may grow beyond ``n_bytes``."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 1000])
def test_a_full_disk(room, tmp_path, states, ben):
    path = tmp_path / "ben.state"
    ben.restore(states[0])
    ben.save(path)
    ben.restore(states[1])
    for _ in range(3):
        with full_disk(room), pytest.raises(OSError):
            ben.save(path)
        assert same(ben.state(), states[1])
        assert twin(ben).load(path)
        assert same(read_checkpoint(path), states[0])
        assert not list(tmp_path.glob(".*"))
    ben.save(path)
    assert same(read_checkpoint(path), states[1])


@contextlib.contextmanager
def as_nobody():
    """Root may write anywhere, so be somebody else."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_that_cannot_be_written(states, ben):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "ben.state"
        for state in states[:2]:
            write_checkpoint(path, state)
        folder.chmod(0o555)
        with as_nobody():
            ben.restore(states[2])
            with pytest.raises(OSError):
                ben.save(path)
            with pytest.raises(OSError):
                ben.save(folder / "another" / "place")
            assert ben.load(path) is True
        folder.chmod(0o755)
        assert same(ben.state(), states[1])
        assert same(read_checkpoint(previous(path)), states[0])


def test_a_torn_file_does_not_take_the_place_of_a_good_one(tmp_path, states, ben):
    """The newest is torn, the previous was used; then the disk is full. The previous is all there is, and must stay."""
    path = tmp_path / "ben.state"
    for state in states[:2]:
        write_checkpoint(path, state)
    spoil(path, "torn")
    assert ben.load(path) is True
    with full_disk(1000), pytest.raises(OSError):
        ben.save(path)
    assert twin(ben).load(path) is True


def test_a_directory_is_not_moved_aside(tmp_path, states, ben):
    path = tmp_path / "agents"
    path.mkdir()
    (path / "precious").write_text("data")
    with pytest.raises(OSError):
        ben.save(path)
    assert (path / "precious").read_text() == "data"


# --------------------------------------------------------------------------------------------------------------------
# Somebody else's


def test_another_agents_state(tmp_path, states, ben, features):
    path = tmp_path / "state"
    write_checkpoint(path, states[0])
    ann = make_team(puppet(CHANNELS["adaptive"]), features, TRIANGLE)["ann"]
    before = ann.state()
    with pytest.raises(ValueError, match="state belongs to agent 'ben', not to 'ann'."):
        ann.load(path)
    assert ann.state() == before


@pytest.mark.parametrize("other", ["rho", "features", "channel", "n_agents", "dtype"])
def test_a_state_from_other_settings(other, tmp_path, states, ben, features):
    path = tmp_path / "state"
    write_checkpoint(path, states[0])
    learner, options = ben.learner, {"n_agents": 3, "clock": "slotted"}
    if other == "rho":
        learner = lc.ODKLA(rho=0.4, eta=1e300, regularization=0.0, channel=CHANNELS["adaptive"])
    elif other == "features":
        features = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=12, bandwidth=0.6, seed=4)
    elif other == "channel":
        learner = puppet(CHANNELS["both"])
    elif other == "n_agents":
        options["n_agents"] = 4
    else:
        options["dtype"] = "float32"
    agent = lc.Agent("ben", ["ann", "cid"], features, learner, **options)
    before = agent.state()
    sentence = "state comes from an agent with other features, learner, channel, clock or size."
    with pytest.raises(ValueError, match=sentence):
        agent.load(path)
    assert agent.state() == before


def test_states_compare(states):
    assert states[0] == AgentState.from_bytes(states[0].to_bytes())
    assert states[0] != states[1]
    assert states[0] != "a state"
    changed = AgentState.from_bytes(states[0].to_bytes())
    changed.arrays["shares"][0, 0] = np.nextafter(changed.arrays["shares"][0, 0], np.inf)
    assert states[0] != changed
    with pytest.raises(TypeError):
        hash(states[0])


# ---------------------------------------------------------------------------------------------------------------------
# States that are none


def signed(text, arrays=b""):
    """Bytes with the right magic word and digest, whatever they say."""
    from laconic.protocol.checkpoint import _MAGIC, _digest

    payload = len(text).to_bytes(4, "little") + text + arrays
    return _MAGIC + _digest(payload) + payload


@pytest.mark.parametrize(
    "data",
    [
        signed(b"[" * 100_000),
        signed(b"not json"),
        signed(b"[]"),
        signed(b"{}"),
        signed(b'{"about": 3, "arrays": {}}'),
        signed(b'{"about": {}, "arrays": 7}'),
        signed(b'{"about": {}, "arrays": {"weights": 5}}'),
        signed(b'{"about": {}, "arrays": {"weights": ["<f8", [100000000000000]]}}'),
        signed(b'{"about": {}, "arrays": {"weights": ["<f8", [-1]]}}', bytes(80)),
        signed(b'{"about": {}, "arrays": {"weights": ["|O", [2]]}}', bytes(80)),
        signed(b'{"about": {}, "arrays": {"weights": ["nonsense", [2]]}}', bytes(80)),
        signed(b'{"about": {}, "arrays": {"weights": ["<f8", [3]]}}', bytes(8)),
    ],
)
def test_bytes_with_a_right_digest_and_wrong_content_are_refused(data, tmp_path):
    with pytest.raises(ValueError, match="^not a checkpoint of an agent: .*[.]$"):
        AgentState.from_bytes(data)
    (tmp_path / "ann").write_bytes(data)
    with pytest.raises(ValueError, match="no good checkpoint"):
        read_checkpoint(tmp_path / "ann")


@pytest.mark.parametrize("data", [None, "text", 5, [1, 2], object()])
def test_what_is_no_bytes_is_no_checkpoint(data):
    with pytest.raises(ValueError, match="data must be the bytes of a checkpoint"):
        AgentState.from_bytes(data)


def spoiled(state, **changes):
    """A copy of a state with some of its values or arrays changed, or left out where the change is None."""
    about = {k: v for k, v in (state.about | changes).items() if v is not None and k in state.about}
    arrays = {k: v for k, v in (state.arrays | changes).items() if v is not None and k in state.arrays}
    return AgentState(about, arrays)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": None}, "state is not that of an agent: KeyError"),
        ({"name": "cid"}, "state belongs to agent 'cid', not to 'ann'"),
        ({"fingerprint": 1}, "other features, learner, channel"),
        ({"version": None}, "state is of version 1"),
        ({"round": None}, "state is not that of an agent: KeyError"),
        ({"round": "x"}, "state "),
        ({"finished": 2**60}, "state "),
        ({"neighbours": [1]}, "state "),
        ({"neighbours": {"ben": {}}}, "state "),
        ({"largest": "much"}, "state "),
        ({"largest": math.inf}, "state has rounds or a yardstick that no agent can have"),
        ({"weights": None}, "state is not that of an agent: KeyError"),
        ({"weights": np.zeros(3)}, r"state has weights of shape \(3,\)"),
        ({"weights": "text"}, "state "),
        ({"said": np.zeros((1, 2))}, "state has said of shape"),
        ({"shares": np.full((1, 8), np.nan)}, "state has shares that are not finite"),
    ],
)
def test_a_state_that_is_not_whole_changes_nothing(changes, why):
    ann, _ = agent_pair()
    before = ann.state()
    with pytest.raises(ValueError, match=why) as caught:
        ann.restore(spoiled(before, **changes))
    assert "\n" not in str(caught.value)
    assert ann.state() == before


@pytest.mark.parametrize("state", [None, "state", {}, b"", 3.0, object()])
def test_what_is_no_state_is_not_restored(state):
    ann, _ = agent_pair()
    before = ann.state()
    with pytest.raises(ValueError, match="state must be an AgentState"):
        ann.restore(state)
    assert ann.state() == before


def agent_pair():
    features = lc.RandomFeatures.gaussian(2, 4, seed=1)
    agents = make_team(lc.ODKLA(), features, ["ann-ben"], clock="lockstep")
    for t in range(3):
        for agent in agents.values():
            agent.learn(np.full(2, 0.1 * t), 1.0)
        carry(agents)
    return agents["ann"], agents["ben"]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    "learner", [lc.ODKLA(), lc.QCODKLA(), lc.Experts(), lc.WaveRLS(), lc.WaveRLS(outputs=3), lc.Personal()], ids=repr
)
def test_a_state_stays_what_it_was_while_its_agent_learns_on(learner, engine, features):
    agents = make_team(learner, features, ["ada-bob", "bob-cyd"], clock="lockstep", engine=engine)
    rng, taken = np.random.default_rng(0), []
    for t in range(16):
        for agent in agents.values():
            x = rng.uniform(size=features.n_inputs)
            agent.learn(x, x[0] if learner.outputs == 1 else x[0] * np.arange(learner.outputs))
            taken += [(state := agent.state(), state.to_bytes())]
            if t == 8:
                agent.restore(state)
        carry(agents)
        taken += [(state, state.to_bytes()) for state in (agent.state() for agent in agents.values())]
    assert all(state.to_bytes() == data for state, data in taken)
