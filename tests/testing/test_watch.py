"""The onlooker of running agents: what it makes of their checkpoints."""

import numpy as np
import pytest

import laconic as lc
from laconic.testing.watch import Watch

FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=4, bandwidth=0.8, seed=0)


@pytest.mark.parametrize("clock", ["lockstep", "slotted"])
def test_shares_are_compared_where_both_ends_have_heard_all(clock, tmp_path):
    options = {"n_agents": 2, "clock": clock, "engine": "reference"}
    pair = {"ann": ["ben"], "ben": ["ann"]}
    agents = {name: lc.Agent(name, others, FEATURES, lc.ODKLA(), **options) for name, others in pair.items()}

    def carry():
        while letters := [(name, message) for name, agent in agents.items() for message in agent.outgoing()]:
            for name, message in letters:
                agents[message.to].receive(message.data, name)

    carry()
    rng, watch = np.random.default_rng(0), Watch(tmp_path, ("ann", "ben"))
    for t in range(20):
        for name, agent in agents.items():
            if clock == "lockstep" or name == "ann" or t % 3:  # on slots one may be behind
                agent.learn(rng.uniform(size=2), 1.0)
        carry()
    for name, agent in agents.items():
        agent.save(tmp_path / f"{name}.checkpoint")
    watch.look()
    assert watch.cancelled == 1 and watch.off < 1e-12 and watch.compared == 2 and watch.wrong == 0
    state = agents["ben"].state()
    state.arrays["shares"][0] += 1.0
    (tmp_path / "ben.checkpoint").write_bytes(state.to_bytes())
    watch.look()
    assert watch.off > 0.1
