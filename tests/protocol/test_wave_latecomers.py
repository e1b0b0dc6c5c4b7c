"""Agents that start on slots when the others have lived for long: with an old memory, or beside one that has one."""

import numpy as np
from agent_kit import carry, make_team

import laconic as lc
from laconic.testing.wave_aftermath import look_at_waves, waves_of

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=6, bandwidth=0.5, seed=0)
LEARNER = lc.WaveRLS(growth=1.3)


def play(agents, n_rounds):
    rng = np.random.default_rng(0)
    for _ in range(n_rounds):
        for agent in agents.values():
            x = rng.uniform(size=2)
            agent.learn(x, float(np.sin(5 * x[0]) * x[1]))
        carry(agents)


def start_again(agents, states):
    """Agents lose what they have learned since ``states``, and nobody notices that they were gone."""
    for name, state in states.items():
        options = {"n_agents": len(agents), "clock": "slotted"}
        agents[name] = lc.Agent(name, agents[name].neighbours, FEATURES, LEARNER, **options)
        agents[name].restore(state)
    for name in states:
        agents[name].rejoin()
    carry(agents)


def apart(agents):
    return len({waves_of(agent).node.standing for agent in agents.values()}) > 1


def refusals(agents):
    return {why for agent in agents.values() for why in agent.counters["refusals"]} - {"replayed", "another session"}


def test_who_comes_back_after_long_with_an_old_memory_takes_what_all_know():
    """What they know was later than it thought there could be: it shut out one honest neighbour after the other."""
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid", "cid-ann"])
    play(agents, 5)
    states = {"cid": agents["cid"].state()}
    play(agents, 200)
    start_again(agents, states)
    play(agents, 4)
    assert agents["cid"].round < 12 and not apart(agents) and not refusals(agents)
    play(agents, 60)
    assert waves_of(agents["cid"]).node.counted > 5 and not list(look_at_waves(agents))


def test_who_knows_nobody_but_a_latecomer_comes_along_in_time_and_shuts_it_not_out():
    agents = make_team(LEARNER, FEATURES, ["ann-ben", "ben-cid", "cid-dan"])
    play(agents, 5)
    states = {name: agents[name].state() for name in ("cid", "dan")}
    play(agents, 200)
    start_again(agents, states)
    rounds = 0
    while apart(agents):
        play(agents, 1)
        rounds += 1
    assert rounds < 120 and refusals(agents) == {"too far ahead"}
    assert all(stage == "live" for agent in agents.values() for stage in agent.edges.values())
    assert not any(alert.what == "quarantined" for agent in agents.values() for alert in agent.alerts())
    play(agents, 60)
    assert not list(look_at_waves(agents))
