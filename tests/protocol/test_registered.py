"""Every registered learner, with every registered loss, computes as an agent what the simulator computes."""

import numpy as np
import pytest
from conftest import NETWORKS, make_stream

import laconic as lc
from laconic.engine.compiled import supports
from laconic.testing import checks
from laconic.transport.virtual import VirtualNetwork


@pytest.mark.parametrize("name", checks.every_learner())
@pytest.mark.parametrize("loss", lc.losses.LOSSES)
def test_every_registered_learner_has_the_simulators_bits(name, loss, features):
    learner, network = checks.every_learner(loss)[name], NETWORKS["random"]
    if not supports(learner):
        pytest.skip("it has no kernels, which agents need")
    X, y = make_stream(60, network.n_agents, binary=learner.loss.binary)
    y[20, 2] = np.nan
    virtual = VirtualNetwork(learner, features, network, X, y)
    virtual.run(60)
    trace = lc.simulate(learner, features, network, X, y)
    np.testing.assert_array_equal(virtual.predictions(), trace.predictions)
    bits = [host.agent.counters["bits"] for host in virtual.hosts.values()]
    np.testing.assert_array_equal(bits, trace.bits.sum(axis=0))
