"""Every registered learner, with every registered loss, computes as an agent what the simulator computes."""

import numpy as np
import pytest
from breadth import each
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.engine.support import supports
from laconic.learners import Speech
from laconic.testing import checks
from laconic.transport.virtual import VirtualNetwork

# Agents do not carry the messages of a learner that has its own, yet.
CARRIED = [name for name, learner in checks.every_learner().items() if learner.speech is not Speech.OWN]


@pytest.mark.parametrize(("name", "loss"), each(CARRIED, lc.losses.LOSSES))
def test_every_registered_learner_has_the_simulators_bits(name, loss, features):
    learner, network = checks.every_learner(loss)[name], NETWORKS["random"]
    X, y = make_stream(60, network.n_agents, binary=learner.loss.binary)
    y[20, 2] = np.nan
    virtual = VirtualNetwork(learner, features, network, X, y)
    virtual.run(60)
    trace = lc.simulate(learner, features, network, X, y)
    if supports(learner):
        np.testing.assert_array_equal(virtual.predictions(), trace.predictions)
    else:  # the simulator multiplies all rows at once, an agent its own
        np.testing.assert_allclose(virtual.predictions(), trace.predictions, rtol=0, atol=1e-12)
    bits = [host.agent.counters["bits"] for host in virtual.hosts.values()]
    np.testing.assert_array_equal(bits, trace.bits.sum(axis=0))
