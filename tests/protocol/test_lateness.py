"""On slots: what a neighbour can do to others by being late, or by saying that it is."""

import numpy as np
import pytest

import laconic as lc
from laconic.protocol.dialogue import LATEST, ON_TIME, TARDY
from laconic.protocol.messages import Statement

FEATURES = lc.RandomFeatures.gaussian(2, 20, bandwidth=0.5, seed=1)
RING = {"ann": ["ben", "dan"], "ben": ["ann", "eve"], "dan": ["ann", "eve"], "eve": ["ben", "dan"]}
PAIR = {"ben": ["eve"], "eve": ["ben"]}
CLIPPED = lc.ODKLA(rho=0.5, eta=4.0, robust="clip")


def target(x):
    return np.sin(5 * x[..., 0]) + x[..., 1]


def run(graph, learner, n_rounds, delayed=frozenset(), delay=0, liar=None):
    """Errors of the agents' models; messages on the ``delayed`` edge take that many slots, the liar's say 20 more."""
    random = np.random.default_rng(0)
    options = {"n_agents": len(graph), "clock": "slotted", "heartbeat": 10}
    agents = {
        name: lc.Agent(name, others, FEATURES, learner, incarnation=k, **options)
        for k, (name, others) in enumerate(graph.items(), 1)
    }
    under_way, alerts = [], []

    def carry(now):
        for _ in range(40):
            for name, agent in agents.items():
                for message in agent.outgoing():
                    data = lie(agents, message) if name == liar else message.data
                    late = delay if {name, message.to} == delayed else 0
                    under_way.append((now + late, name, message.to, data))
            arrived = [item for item in under_way if item[0] <= now]
            under_way[:] = [item for item in under_way if item[0] > now]
            for _, name, to, data in arrived:
                agents[to].receive(data, name)
            if not arrived:
                return

    def lie(agents, message):
        dialogue = agents[liar]._dialogue
        letter = dialogue.wire.decode(message.data).letter
        if not isinstance(letter, Statement):
            return message.data
        edge_round = agents[message.to]._dialogue.ends[liar].k
        letter = letter._replace(label=max(0, edge_round + 1 - 20))
        leads = dialogue.ends[message.to].leads
        return dialogue.wire.encode(letter, agents[message.to]._wire.sender, not leads)

    carry(0)
    for t in range(1, n_rounds + 1):
        for agent in agents.values():
            x = random.uniform(size=2)
            agent.learn(x, target(x))
            carry(t)
        alerts += [(name, *alert) for name, agent in agents.items() for alert in agent.alerts()]
    X = random.uniform(size=(200, 2))
    errors = {n: float(np.mean((FEATURES(X) @ a.weights - target(X)) ** 2)) for n, a in agents.items()}
    return agents, errors, alerts


@pytest.mark.parametrize("learner", [CLIPPED, lc.RFFDOKL(step=0.2, order="adapt-then-combine")], ids=["clip", "mixes"])
def test_a_false_lateness_of_one_of_two_neighbours_slows_nobody_down(learner):
    _, honest, alerts = run(RING, learner, 300)
    assert not alerts
    agents, errors, alerts = run(RING, learner, 300, liar="eve")
    assert agents["ben"]._dialogue.ends["eve"].late > ON_TIME
    assert [agents[name]._dialogue.lateness for name in ("ann", "ben", "dan")] == [0.0] * 3
    for name in ("ann", "ben", "dan"):
        assert errors[name] < 1.5 * honest[name]
    assert {("ben", "neighbour is late", "eve"), ("dan", "neighbour is late", "eve")} == set(alerts)
    assert len(alerts) == 2 * (1 + (300 - TARDY) // 256)


def test_the_only_neighbour_slows_an_agent_down_by_a_bounded_factor_and_is_reported():
    agents, _, alerts = run(PAIR, CLIPPED, 100, liar="eve")
    assert agents["ben"]._dialogue.lateness == LATEST < agents["ben"]._dialogue.ends["eve"].late
    assert ("ben", "neighbour is late", "eve") in alerts


@pytest.mark.parametrize("robust", [None, "clip"])
def test_one_late_edge_between_agents_with_other_neighbours_does_not_make_them_diverge(robust):
    """Unless pulls are clipped, one of its ends has to shorten its steps: what half the neighbours do is not enough."""
    names = ["ann", "ben", "cid", "dan"]
    everybody = {name: [other for other in names if other != name] for name in names}
    _, errors, _ = run(everybody, lc.ODKLA(rho=0.5, eta=4.0, robust=robust), 400, frozenset({"ann", "ben"}), delay=3)
    assert max(errors.values()) < 0.2
