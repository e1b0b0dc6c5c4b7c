"""On slots ticks come at different moments: whoever ticks first is heard too, and nobody stays a round behind."""

import numpy as np
import pytest
from agent_kit import carry, check_invariants, end_round, make_team, puppet, speak

import laconic as lc

STAR = ["ann-hub", "ben-hub", "cid-hub"]
MODELS = {"ann": 1.0, "ben": 2.0, "cid": 3.0, "hub": 7.0}


def tick(agents, order, n_rounds, models=MODELS):
    """Rounds in which each agent is heard by all before the next one's tick comes."""
    for _ in range(n_rounds):
        for name in order:
            speak(agents[name], np.full(agents[name].features.n_features, models[name]))
            carry(agents)


@pytest.mark.parametrize("robust", [None, "clip"])
def test_whoever_ticks_first_pulls_as_hard_as_who_ticks_last(robust, features):
    """Its next statement comes before the round is over that its last one belongs to, so the edge has counted that."""
    learner = lc.ODKLA(rho=0.3, eta=1e300, regularization=0.0, robust=robust)
    pulls = {}
    for order in (["ann", "ben", "cid", "hub"], ["hub", "cid", "ben", "ann"]):
        agents = make_team(learner, features, STAR)
        tick(agents, order, 5)
        for name in order[:-1] if order[-1] == "hub" else ():  # they tick once more before the hub's round is over
            speak(agents[name], np.full(features.n_features, MODELS[name]))
        carry(agents)
        end_round(agents)
        pulls[order[0]] = agents["hub"]._ledger.row.pull.sum(axis=0)
        if robust is None:  # otherwise duals are what passes of the shares
            check_invariants(agents)
    np.testing.assert_allclose(pulls["ann"], pulls["hub"])
    assert np.abs(pulls["ann"]).max() > 1.0


def test_diffusion_mixes_with_whoever_ticks_first(features):
    learner = lc.RFFDOKL(step=1e-300, order="adapt-then-combine")
    agents = make_team(learner, features, ["ann-ben"])
    ann, ben = agents.values()
    ann._ledger.weights = np.ones(features.n_features)
    ann._ledger.row.largest = 1e6
    for _ in range(20):
        for agent in (ann, ben):
            agent.idle()
            carry(agents)
    end_round(agents)
    np.testing.assert_allclose(ben.weights, ann.weights, atol=1e-3)
    assert ben.weights.min() > 0.2  # it has come towards ann, and not ann all the way to it


def test_who_has_counted_a_round_that_the_other_has_not_waits_for_one(features):
    """A tick came while the edge was opened: what the other says would be a round late for ever."""
    agents = make_team(puppet(), features, ["ann-ben"])
    ann, ben = agents.values()
    speak(ann, np.ones(features.n_features))
    assert ann._dialogue.ends["ben"].label == 1 > ben._dialogue.ends["ann"].label
    late = []
    for t in range(60):
        for agent in agents.values():  # at the same time
            speak(agent, agent.weights + 1.0 + t % 3)
        carry(agents)
        late.append(ann._dialogue.ends["ben"].late)
    assert late[5] > 0.9 and late[-1] == 0.0
    end_round(agents)
    check_invariants(agents)


def test_where_messages_take_longer_than_a_slot_waiting_is_seldom_tried(features):
    agents = make_team(puppet(), features, ["ann-ben"])
    under_way = [[], []]
    for t in range(400):
        letters = []
        for name, agent in agents.items():
            speak(agent, agent.weights + 1.0 + t % 3)
            letters += [(name, message) for message in agent.outgoing()]
        under_way.append(letters)
        for sender, message in under_way.pop(0):
            agents[message.to].receive(message.data, sender)
    rounds = [agent.edge_round(other) for agent, other in zip(agents.values(), ("ben", "ann"), strict=True)]
    assert all(edges == {"live"} for edges in ({*agent.edges.values()} for agent in agents.values()))
    assert min(rounds) > 380
