"""Messages that are lost: what is shared stays shared, to the bit, and the error hardly grows."""

import numpy as np
import pytest
from waves_kit import make_stream

import laconic as lc
from laconic.testing.lossy import LossyWaves
from laconic.waves import Rule

NETWORK = lc.Network.random(9, p=0.3, seed=1)


@pytest.mark.parametrize("lost", [0.05, 0.2, 0.5])
def test_who_finished_the_same_wave_knows_the_same(lost, features):
    run = LossyWaves(Rule(), NETWORK, features, lost)
    X, y = make_stream(250, 9)
    known, late = {}, 0
    for x, label in zip(X, y, strict=True):
        run.round(x, label)
        late += len({node.adopted for node in run.nodes}) > 1
        for node in run.nodes:
            first = known.setdefault(node.adopted, node.common)
            for name, part in node.common.parts().items():
                assert np.array_equal(part, first.parts()[name]), (node.adopted, name)
            for child, link in node.links.items():
                at_home = run.nodes[child].link
                twins = [link, node.links_before[child]]
                assert any(
                    (one is None) == (at_home is None)
                    and (one is None or (one.n == at_home.n and np.array_equal(one.information, at_home.information)))
                    for one in twins
                )
    assert late > 10 and max(known) > 8
    assert min(node.adopted for node in run.nodes) >= max(known) - 1  # whoever missed something has caught up


def test_an_acknowledgement_that_was_lost_leaves_both_ends_with_one_base(features):
    """The child builds on what it knows to be acknowledged, and its parent finds it in the one before its newest."""
    run = LossyWaves(Rule(), lc.Network.path(3), features, 0.0)
    X, y = make_stream(60, 3)
    child = run.nodes[0]
    acknowledge, dropped = child.acknowledged, []
    for x, label in zip(X, y, strict=True):
        child.acknowledged = acknowledge if run.t > 20 else (lambda: dropped.append(run.t))
        run.round(x, label)
        assert child.link is None or child.link.number >= 1
    assert len(dropped) >= 3  # once a wave, since it is not said again once it is dropped on purpose
    assert np.array_equal(run.nodes[1].links[0].information, child.link.information)


@pytest.mark.parametrize(("lost", "most"), [(0.05, 1.05), (0.2, 1.2)])
def test_loss_costs_little(lost, most, features):
    """Measured with six seeds, a fifth lost: 1.01 to 1.17 of the error without loss, 1.08 in the mean."""
    X, y = make_stream(400, 9)
    errors = {}
    for share in (0.0, lost):
        run = LossyWaves(Rule(), NETWORK, features, share, seed=3)
        for x, label in zip(X, y, strict=True):
            run.round(x, label)
        errors[share] = np.mean((np.array(run.predictions) - y)[30:] ** 2)
    assert errors[lost] < most * errors[0.0]
