"""An agent that starts again: neither its silence, on slots, nor its old model draws the others away."""

import numpy as np
import pytest
from agent_kit import carry, check_invariants, close, end_round, make_team, puppet, speak

import laconic as lc

SQUARE = ["ann-ben", "ben-cid", "cid-dan", "ann-dan"]


def stand_at(agents, models):
    """A round in which everybody's model is its own of ``models``."""
    for agent, model in zip(agents.values(), models, strict=True):
        speak(agent, model)
    carry(agents)


def start_again(agents, name, state=None):
    """Another process in the place of an agent, which is noticed at once by all but its last neighbour."""
    old = agents[name]
    agents[name] = lc.Agent(name, old.neighbours, old.features, old.learner, n_agents=len(agents), clock="slotted")
    if state is not None:
        agents[name].restore(state)
    for other in old.neighbours:
        agents[other].disconnected(name)
    *first, last = old.neighbours
    agents[name].rejoin()
    for other in first:
        agents[name].connected(other)
        agents[other].connected(name)
    carry({who: agent for who, agent in agents.items() if who != last})
    return first, last


@pytest.mark.parametrize("remembers", [False, True])
def test_shares_do_not_grow_while_a_neighbour_starts(remembers, features):
    agents = make_team(puppet(), features, SQUARE, heartbeat=10)
    n = features.n_features
    models = np.random.default_rng(0).standard_normal((4, n))
    stand_at(agents, models)
    state = agents["ann"].state() if remembers else None
    for _ in range(30):
        stand_at(agents, models + 5.0)
    (first,), last = start_again(agents, "ann", state)
    assert agents[first].edges["ann"] == "live"
    before = agents[first].share("ann")
    assert before.any()
    for _ in range(8):  # it waits for its other neighbour meanwhile
        for who in ("ben", "cid", "dan"):
            speak(agents[who], models[0] + 5.0)
        carry({who: agent for who, agent in agents.items() if who != last})
    agents[first].end_round()
    np.testing.assert_array_equal(agents[first].share("ann"), before)
    agents["ann"].connected(last)
    agents[last].connected("ann")
    carry(agents)
    for _ in range(3):
        stand_at(agents, np.tile(models[0] + 5.0, (4, 1)))
    end_round(agents)
    check_invariants(agents)
    assert close(agents[first].share("ann"), before)  # whoever says the same adds nothing


def test_an_old_model_gives_way_to_the_median_of_it_and_the_neighbours(features):
    agents = make_team(puppet(), features, [*SQUARE, "ann-cid"], heartbeat=10)
    n = features.n_features
    stand_at(agents, np.ones((4, n)))
    state = agents["ann"].state()
    for _ in range(30):
        stand_at(agents, np.full((4, n), 2.0) + np.arange(4.0)[:, None])
    _, last = start_again(agents, "ann", state)
    agents["ann"].connected(last)
    agents[last].connected("ann")
    carry(agents)
    agents["ann"].idle()
    carry(agents)
    # Neighbours are at 3, 4, 5 and it was at 1: of the two in the middle the smaller.
    assert close(agents["ann"].weights, np.full(n, 3.0))
    assert agents["ann"].counters["recoveries"] == 1
    assert agents["ann"].round == agents["ben"].round + 1
    end_round(agents)
    for who in ("ben", "cid", "dan"):
        np.testing.assert_array_equal(agents[who].replica("ann"), agents["ann"].broadcast)


@pytest.mark.parametrize(("rounds", "model"), [(8, 1.0), (30, 3.0)], ids=["fresh", "old"])
def test_an_old_model_gives_way_in_lockstep_too(rounds, model, features):
    agents = make_team(puppet(), features, [*SQUARE, "ann-cid"], clock="lockstep")
    n = features.n_features
    stand_at(agents, np.ones((4, n)))
    old = agents.pop("ann")
    for agent in agents.values():
        agent.disconnected("ann")
    for _ in range(rounds):
        stand_at(agents, np.full((3, n), 3.0) + np.arange(3.0)[:, None])
    ann = agents["ann"] = lc.Agent("ann", old.neighbours, features, old.learner, n_agents=4, clock="lockstep")
    ann.restore(old.state())
    ann.rejoin()
    for other in old.neighbours:
        ann.connected(other)
        agents[other].connected("ann")
    carry(agents)
    ann.idle()
    carry(agents)
    assert close(ann.weights, np.full(n, model)) and ann.counters["recoveries"] == (model > 1)
    for agent in agents.values():
        if agent is not ann:
            agent.idle()
    carry(agents)
    end_round(agents)
    for who in ("ben", "cid", "dan"):
        assert agents[who].round == ann.round
        np.testing.assert_array_equal(agents[who].replica("ann"), ann.broadcast)
    check_invariants(agents)


def test_one_neighbour_alone_does_not_replace_a_remembered_model(features):
    agents = make_team(puppet(), features, ["ann-ben"], heartbeat=10)
    stand_at(agents, np.ones((2, features.n_features)))
    state = agents["ann"].state()
    for _ in range(30):
        stand_at(agents, np.full((2, features.n_features), 7.0))
    agents["ann"] = lc.Agent("ann", ["ben"], features, agents["ann"].learner, n_agents=2, clock="slotted")
    agents["ann"].restore(state)
    agents["ben"].disconnected("ann")
    agents["ann"].rejoin()
    for one, other in (("ann", "ben"), ("ben", "ann")):
        agents[one].connected(other)
    carry(agents)
    agents["ann"].idle()
    assert agents["ann"].counters["recoveries"] == 0
    assert close(agents["ann"].weights, np.ones(features.n_features))


def test_the_first_label_judges_a_model_of_neighbours_who_have_forgotten_theirs(features):
    agents = make_team(lc.ODKLA(rho=0.5, eta=4.0), features, ["ann-ben"], heartbeat=10)
    ann = agents["ann"]
    ann._ledger.row.put("weights", np.full((1, features.n_features), 0.05))  # as warm_start leaves it
    assert not ann._ledger.row.largest
    ann.learn(np.full(features.n_inputs, 0.3), 2.0)
    assert ann.round == 1
