"""What an agent of a site records is a trace: ``lc.Trace.load`` reads it."""

import numpy as np
import pytest
from agent_kit import carry

import laconic as lc
from laconic.deploy.running.record import Record

NAMES = ("ann", "ben", "cid")


def run_recorded(folder, learner, X, y, dtype="float64"):
    """Three agents on a path in lockstep, each with a record; the traces in their files."""
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=1)
    neighbours = {"ann": {"ben": 2}, "ben": {"ann": 1, "cid": 1}, "cid": {"ben": 2}}
    agents = {name: lc.Agent(name, neighbours[name], features, learner, n_agents=3, dtype=dtype) for name in NAMES}
    records = {name: Record(folder / f"{name}.npz") for name in NAMES}
    carry(agents)
    for t in range(len(y)):
        for k, (name, agent) in enumerate(agents.items()):
            records[name].add(agent.learn(X[t, k], y[t, k]))
        carry(agents)
    for name, agent in agents.items():
        agent.end_round()
        records[name].write(agent)
    return agents, lc.simulate(learner, features, lc.Network.path(3), X, y, dtype=dtype)


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 3, 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1]
    y[7, 1] = np.nan
    return X, y


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("learner", [lc.QCODKLA(alpha=0.3, beta=0.95), lc.RFFDOKL(), lc.Local()], ids=repr)
def test_the_file_of_an_agent_is_a_trace_of_one_agent(learner, dtype, stream, tmp_path):
    agents, simulated = run_recorded(tmp_path, learner, *stream, dtype=dtype)
    for k, name in enumerate(NAMES):
        trace = lc.Trace.load(tmp_path / f"{name}.npz")
        assert (trace.n_rounds, trace.n_agents) == (50, 1)
        for column in ("predictions", "labels", "sent", "saturated", "bits"):
            expected = getattr(simulated, column)[:, k : k + 1]
            assert np.array_equal(getattr(trace, column), expected, equal_nan=True), column
        assert trace.degrees.tolist() == [simulated.degrees[k]]
        assert np.array_equal(trace.link_bits, simulated.link_bits[:, k : k + 1])
        assert set(trace.state.learner) == set(simulated.state.learner)
        for part, rows in simulated.state.learner.items():
            assert np.array_equal(trace.state.learner[part], rows[k : k + 1]), part
        assert np.array_equal(trace.state.broadcast, agents[name].broadcast[None])
        assert trace.state.round == 50
        assert trace.consensus_error.tolist() == [0.0] * 50
        assert trace.energy[-1] == pytest.approx((trace.weights.astype(float) ** 2).sum(), rel=1e-12)
        assert np.isnan(trace.energy[:-1]).all()
        errors = (simulated.predictions[:, k] - simulated.labels[:, k]) ** 2
        assert trace.mse()[-1] == pytest.approx(np.nanmean(errors), rel=1e-6)
        assert (trace.about["name"], trace.about["agent"], trace.about["rounds"]) == (learner.name, name, 50)
        assert trace.about["learner"] == repr(learner)
        assert learner.name in repr(trace)
        assert trace.to_frame()["round"].to_list() == list(range(1, 51))


def test_what_an_agent_knew_of_its_neighbours_is_in_the_info_of_its_trace(stream, tmp_path):
    agents, _ = run_recorded(tmp_path, lc.QCODKLA(alpha=0.3, beta=0.95), *stream)
    info = lc.Trace.load(tmp_path / "ben.npz").info
    assert info["neighbours"].tolist() == ["ann", "cid"]
    for name, replica, heard in zip(info["neighbours"], info["replicas"], info["heard"], strict=True):
        assert np.array_equal(replica, agents[name].broadcast)
        assert tuple(heard) == tuple(agents[name].position("ben"))
    spoken = [agents["ben"].position(name) for name in info["neighbours"]]
    assert [tuple(position) for position in info["position"]] == spoken
    assert info["rounds"].tolist() == list(range(1, 51))


def test_the_file_of_an_agent_is_plain_arrays_for_numpy(stream, tmp_path):
    _, simulated = run_recorded(tmp_path, lc.QCODKLA(alpha=0.3, beta=0.95), *stream)
    with np.load(tmp_path / "cid.npz") as arrays:
        assert np.array_equal(arrays["predictions"], simulated.predictions[:, 2])
        assert np.array_equal(arrays["weights"], simulated.weights[2])
        assert np.array_equal(arrays["duals"], simulated.state.duals[2])


def test_a_loaded_trace_of_an_agent_can_be_saved_and_gone_on_from(stream, tmp_path):
    run_recorded(tmp_path, lc.Local(), *stream)
    trace = lc.Trace.load(tmp_path / "ann.npz")
    again = lc.Trace.load(trace.save(tmp_path / "again.npz"))
    assert np.array_equal(again.predictions, trace.predictions)
    assert set(again.info) == set(trace.info)
    assert again.info["neighbours"].tolist() == ["ben"]


def test_rounds_that_an_agent_slept_through_are_told_in_the_table(tmp_path):
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=1)
    agent = lc.Agent("ann", [], features, lc.ODKLA(), n_agents=1, clock="slotted")
    record = Record(tmp_path / "ann.npz")
    record.add(agent.learn(np.zeros(2), 1.0))
    agent.skip_to(7)
    record.add(agent.idle())
    record.write(agent)
    trace = lc.Trace.load(tmp_path / "ann.npz")
    assert trace.to_frame()["round"].to_list() == [1, 8]
    assert trace.state.round == 8


def test_a_record_without_rounds_is_a_trace_too(tmp_path):
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=1)
    record = Record(tmp_path / "ann.npz")
    record.write(lc.Agent("ann", ["ben"], features, lc.ODKLA(), n_agents=2))
    assert lc.Trace.load(tmp_path / "ann.npz").n_rounds == 0
