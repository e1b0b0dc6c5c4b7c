"""A budget: by hand, for any input at all, and through everything that goes on from a state."""

import math

import numpy as np
import pytest
from breadth import examples
from conftest import NETWORKS, make_stream
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import call, run_of

import laconic as lc
from laconic.native.run import BY_BIT, BY_MESSAGE

norms = st.one_of(st.just(0.0), st.floats(0, 1e300), st.floats(0.5, 2.0))
streams = st.lists(st.tuples(norms, st.integers(1, 4000)), min_size=1, max_size=120)


def run(budget, stream):
    """Which innovations of these (norm, bits) are sent, and what is remembered in the end."""
    memory, sent = budget.begin(1), []
    for norm, bits in stream:
        now, memory = budget.spend(memory, np.array([norm]), np.array([bits]))
        sent.append(bool(now[0]))
    return np.array(sent), memory[0]


def run_compiled(budget, stream):
    """The same in the core."""
    memory, sent = budget.begin(1)[0], np.zeros(len(stream), dtype=np.uint8)
    kind = BY_BIT if budget.in_bits else BY_MESSAGE
    decides = run_of(4, budget=kind, income=budget.income, burst=budget.most, gain=budget.gain)
    norms, bits = (np.array(column) for column in zip(*stream, strict=True))
    call("budget", decides, len(stream), norms.astype(np.float64), bits.astype(np.int64), memory, sent, result=None)
    return sent.astype(bool), memory


def most_in_any_window(spent, per_round):
    """The largest excess of what was spent in n rounds over n times the rate, over all windows."""
    level = np.concatenate([[0.0], np.cumsum(spent - per_round)])
    return float((level[1:] - np.minimum.accumulate(level)[:-1]).max())


@settings(max_examples=examples(300))
@given(streams, st.floats(0.001, 1.0), st.floats(1.0, 30.0), st.floats(0.0, 2.0))
def test_no_window_of_n_rounds_has_more_than_burst_and_rate_n_messages(stream, rate, burst, gain):
    sent, memory = run(lc.Budget(rate, burst, gain), stream)
    assert most_in_any_window(sent, rate) <= burst + 1e-9
    assert not sent[[norm == 0 for norm, _ in stream]].any() and np.isfinite(memory).all()


@settings(max_examples=examples(300))
@given(streams, st.floats(0.5, 5000.0), st.floats(0.0, 9000.0))
def test_no_window_of_n_rounds_has_more_bits_than_paid_for(stream, per_round, burst):
    sent, _ = run(lc.Budget(bits_per_round=per_round, burst=burst), stream)
    lengths = np.array([bits for _, bits in stream])
    assert most_in_any_window(sent * lengths, per_round) <= max(burst, lengths.max()) + 1e-6


@settings(max_examples=examples(300))
@given(streams, st.booleans(), st.floats(0.01, 1.0), st.floats(1.0, 30.0))
def test_the_compiled_budget_decides_alike(stream, in_bits, rate, burst):
    budget = lc.Budget(bits_per_round=1000 * rate, burst=1000 * burst) if in_bits else lc.Budget(rate, burst)
    sent, memory = run(budget, stream)
    compiled, remembered = run_compiled(budget, stream)
    assert compiled.tolist() == sent.tolist()
    np.testing.assert_allclose(remembered, memory, rtol=1e-12)


def test_four_rounds_by_hand():
    budget = lc.Budget(0.5, burst=1, gain=0.2)
    up, down = math.exp(0.1), math.exp(-0.1)
    memory = budget.begin(1)
    expected = [
        (0.0, False, 0.0, 1.0),  # nothing to say, and no threshold yet
        (3.0, True, 3 * up, 0.0),  # the first: tau is its norm
        (3.0, False, 3 * up * down, 0.5),  # not worth it
        (4.0, True, 3 * up * down * up, 0.0),  # credit 0.5 + 0.5
        (9.0, False, 3 * up * up * down * up, 0.5),  # worth it, and no credit
    ]
    for norm, speaks, tau, credit in expected:
        sent, memory = budget.spend(memory, np.array([norm]), np.array([0]))
        assert sent[0] == speaks
        np.testing.assert_allclose(memory[0, :2], [tau, credit], rtol=1e-15)


def test_bits_by_hand():
    budget = lc.Budget(bits_per_round=10, burst=15, gain=0.0)
    memory = budget.begin(1)
    for bits, speaks, credit in [(12, True, 3), (12, True, 1), (40, False, 11), (40, False, 21), (40, False, 31)]:
        sent, memory = budget.spend(memory, np.array([1.0]), np.array([bits]))
        assert sent[0] == speaks and memory[0, 1] == credit
    sent, memory = budget.spend(memory, np.array([1.0]), np.array([40]))  # longer than the burst: it was saved up for
    assert sent[0] and memory[0].tolist() == [1.0, 0.0, 40.0]


def spoken(budget):
    return lc.RFFDOKL(order="adapt-then-combine", listen="spoken", channel=lc.Channel(budget, lc.Quantizer(3)))


def test_where_messages_have_one_length_bits_are_messages(features):
    X, y = make_stream(200, 6)
    bits = 3 * features.n_features + 32
    budgets = lc.Budget(0.25, burst=8), lc.Budget(bits_per_round=bits / 4, burst=8 * bits)
    one, other = (lc.simulate(spoken(budget), features, NETWORKS["ring"], X, y) for budget in budgets)
    assert one.sent.any() and np.array_equal(one.sent, other.sent)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("budget", [lc.Budget(0.2, burst=3), lc.Budget(bits_per_round=25.0, burst=300)], ids=repr)
def test_a_run_keeps_to_it_and_resumes_to_the_bit(budget, engine, features, tmp_path):
    X, y = make_stream(120, 6)
    learner, network = spoken(budget), NETWORKS["random"]
    whole = lc.simulate(learner, features, network, X, y, engine=engine)
    spent = whole.bits if budget.in_bits else whole.sent
    for agent in range(6):
        assert 0.5 * budget.burst < most_in_any_window(spent[:, agent], budget.income) <= budget.burst + 1e-9
    first = lc.simulate(learner, features, network, X[:70], y[:70], engine=engine)
    kept = lc.Trace.load(first.save(tmp_path / "first.npz")).state
    rest = lc.simulate(learner, features, network, X[70:], y[70:], engine=engine, state=kept)
    assert np.array_equal(rest.sent, whole.sent[70:]) and np.array_equal(rest.weights, whole.weights)
    for name in budget.memory:
        assert np.array_equal(rest.state.channel[name], whole.state.channel[name])


def test_a_state_of_another_channel_is_refused(features):
    X, y = make_stream(5, 6)
    run = features, NETWORKS["ring"], X, y
    budgeted, plain = lc.ODKLA(channel=lc.Channel(lc.Budget(0.2))), lc.ODKLA()
    kept = lc.simulate(budgeted, *run).state
    with pytest.raises(ValueError, match="state comes from another channel: it remembers"):
        lc.simulate(plain, *run, state=kept)
    with pytest.raises(ValueError, match="it remembers nothing, Budget"):
        lc.simulate(budgeted, *run, state=lc.simulate(plain, *run).state)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "rate must be given, or else bits_per_round"),
        ({"rate": 0.1, "bits_per_round": 5}, "rate must be given, or else bits_per_round, and not both"),
        ({"rate": 1.5}, "rate must be at most 1"),
        ({"rate": 0}, "rate must be larger than 0"),
        ({"rate": 0.5, "burst": 0.5}, "burst must be at least 1"),
        ({"rate": 0.5, "gain": -1}, "gain must be at least 0"),
        ({"bits_per_round": 0}, "bits_per_round must be larger than 0"),
        ({"bits_per_round": 10, "burst": "all"}, "burst must be a number"),
    ],
)
def test_bad_budgets(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lc.Budget(**arguments)


def test_a_class_is_no_censor():
    for thing in (lc.Budget, 3):
        with pytest.raises(ValueError, match=r"censor must have a method threshold\(t\), like laconic\.Censor, or be"):
            lc.Channel(censor=thing)
