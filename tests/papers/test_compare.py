"""The table of a paper: numbers are those of the runs, p-values those of another formulation, words are escaped."""

import csv
import io
import itertools
import math
import re

import numpy as np
import pytest

import laconic as lc
from laconic.papers.table import number
from laconic.papers.testing import holm, p_value


@pytest.fixture(scope="module")
def swept():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 5, 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1] + 0.1 * rng.standard_normal((120, 5))
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=8, bandwidth=0.5, seed=0)
    learners = {"Local": lc.Local(), "ODKLA": lc.ODKLA(), "a & <b>_1": lc.QCODKLA(alpha=1.0, beta=0.98)}
    network = lc.Network.random(5, p=0.6, seed=0)
    return lc.sweep(learners, features, network, X, y, seeds=6, engine="reference"), (learners, features, network, X, y)


def test_a_seed_draws_order_features_and_network(swept):
    runs, (learners, features, network, X, y) = swept
    order = np.random.default_rng(3).permutation(120)
    again = lc.simulate(
        learners["ODKLA"], features.redrawn(3), network.redrawn(3), X[order], y[order], engine="reference"
    )
    assert np.array_equal(runs["ODKLA"][3].predictions, again.predictions)
    assert runs["ODKLA"].seeds == (0, 1, 2, 3, 4, 5)
    assert runs["ODKLA"][:2].seeds == (0, 1)
    assert isinstance(runs["ODKLA"], lc.Runs)
    graphs = {run.about["network"] for run in runs["ODKLA"]}
    assert len(graphs) > 1


def test_what_is_not_varied_stays(swept):
    _, (learners, features, network, X, y) = swept
    options = {"engine": "reference", "vary": ["features"]}
    (runs,) = lc.sweep([learners["ODKLA"]], features, network, X, y, seeds=[0, 4], **options)
    assert runs.seeds == (0, 4)
    assert np.array_equal(runs[0].labels, runs[1].labels)
    assert np.array_equal(
        runs[0].predictions, lc.simulate(learners["ODKLA"], features, network, X, y, engine="reference").predictions
    )
    assert not np.array_equal(runs[0].predictions, runs[1].predictions)


def test_what_has_no_seed_is_not_varied_or_refused(swept):
    _, (learners, features, _, X, y) = swept
    ring = lc.Network.ring(5)
    (runs,) = lc.sweep([learners["ODKLA"]], features, ring, X, y, seeds=2, engine="reference")
    assert {run.about["network"] for run in runs} == {repr(ring)}
    with pytest.raises(ValueError, match="vary names 'network'"):
        lc.sweep([learners["ODKLA"]], features, ring, X, y, seeds=2, vary=["network"])
    with pytest.raises(ValueError, match="pass seeds"):
        lc.sweep([learners["ODKLA"]], features, ring, X, y, vary=["order"])
    for wrong in (0, [], [1, 1], "many", 2.5):
        with pytest.raises(ValueError, match="seeds must be"):
            lc.sweep([learners["ODKLA"]], features, ring, X, y, seeds=wrong)
    with pytest.raises(ValueError, match="cannot be drawn again"):
        ring.redrawn(1)
    with pytest.raises(ValueError, match="cannot be drawn again"):
        lc.RandomFeatures([[1.0]]).redrawn(1)


@pytest.mark.parametrize(
    "features",
    [
        lc.RandomFeatures.gaussian(2, 4, bandwidth=0.3, orthogonal=True),
        lc.RandomFeatures.laplacian(2, 4, bandwidth=0.3),
        lc.RandomFeatures.matern(2, 4, nu=2.5, bandwidth=0.3),
        lc.RandomFeatures.mixture(2, 4, (0.5, 2.0)),
        lc.RandomFeatures.automatic(np.random.default_rng(0).normal(size=(9, 2)), 4, reach=25.0),
    ],
    ids=str,
)
def test_features_drawn_again_from_their_own_seed_are_the_same(features):
    assert np.array_equal(features.redrawn(0).frequencies, features.frequencies)
    assert repr(features.redrawn(0)) == repr(features)
    other = features.redrawn(5)
    assert not np.array_equal(other.frequencies, features.frequencies)
    assert np.array_equal(other.redrawn(0)(np.ones(2)), features(np.ones(2)))


@pytest.mark.parametrize(
    "network",
    [lc.Network.random(9, 0.4), lc.Network.geometric(9, 0.5), lc.Network.small_world(9, connect=True)],
    ids=["random", "geometric", "small world"],
)
def test_networks_drawn_again_from_their_own_seed_are_the_same(network):
    assert network.redrawn(0) == network
    assert network.redrawn(3).n_agents == 9
    assert network.redrawn(3) != network


def test_numbers_are_those_of_the_runs(swept):
    runs, _ = swept
    table = lc.compare(runs, ["mse", "bits", "recent"])
    assert [row.name for row in table.rows] == list(runs)
    assert table.titles == ["MSE", "kbit an agent", "MSE, last fifth"]
    for row, traces in zip(table.rows, runs.values(), strict=True):
        assert np.array_equal(row.values[0], [trace.mse()[-1] for trace in traces])
        assert np.array_equal(row.values[1], [trace.bits.sum() / 5e3 for trace in traces])
        assert row.values[2] == pytest.approx([trace.squared_errors()[-24:].mean() for trace in traces])
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(rows) == 3 * 3 * 6
    told = [float(r["value"]) for r in rows if r["learner"] == "ODKLA" and r["measure"] == "MSE"]
    assert told == [trace.mse()[-1] for trace in runs["ODKLA"]]


def test_p_values_by_an_independent_formulation():
    """t from its definition, and the signed ranks from all sign patterns."""
    from scipy.special import betainc

    rng = np.random.default_rng(1)
    one, other = rng.normal(size=7), rng.normal(size=7) + 0.6
    apart = one - other
    t = apart.mean() / (apart.std(ddof=1) / math.sqrt(7))
    assert p_value("t", one, other) == pytest.approx(betainc(3.0, 0.5, 6 / (6 + t * t)))
    ranks = np.argsort(np.argsort(np.abs(apart))) + 1
    seen = abs(ranks @ np.sign(apart))
    sums = [abs(ranks @ np.array(signs)) for signs in itertools.product((-1, 1), repeat=7)]
    assert p_value("wilcoxon", one, other) == pytest.approx(np.mean(np.array(sums) >= seen - 1e-9))
    assert p_value("t", one, one) == 1.0
    assert p_value("t", one, one + 1) < 1e-12
    assert math.isnan(p_value("t", one[:1], other[:1]))
    assert math.isnan(p_value("t", np.append(one, np.nan), np.append(other, 1.0)))


def test_holm_from_its_definition():
    """Reject the k-th smallest at level a iff all up to it are below a / (m - j + 1): the corrected p is that level."""
    p = [0.03, 0.001, 0.2, 0.013]
    corrected = holm(p)
    for level in np.linspace(0.001, 0.999, 1999):
        rejected, order = set(), np.argsort(p)
        for j, k in enumerate(order):
            if p[k] > level / (len(p) - j):
                break
            rejected.add(int(k))
        assert rejected == {k for k, q in enumerate(corrected) if q <= level}
    assert holm([0.5, math.nan])[0] == 0.5


def test_words_are_escaped_in_every_language(swept):
    table = lc.compare(swept[0], against="ODKLA")
    assert r"a \& $<$b$>$\_1" in table.to_latex()
    assert "a &amp; &lt;b&gt;_1" in table._repr_html_()
    assert "<b>_1" not in table.to_markdown()
    assert table.to_markdown().count("|\n") == 5
    latex = table.to_latex(caption="Errors.", label="tab:errors")
    assert latex.count(r"\\") == 4
    assert r"\caption{Errors.}" in latex and r"\label{tab:errors}" in latex and r"\begin{table}" in latex
    assert r"\textbf{" in latex
    assert r"$\pm$" in latex
    notes = " ".join(table.notes)
    assert "paired t-test (scipy.stats.ttest_rel)" in notes and "Holm" in notes and "normally distributed" in notes
    assert "Wilcoxon" in " ".join(lc.compare(swept[0], test="wilcoxon").notes)
    assert "no p can be below 0.0312" in " ".join(lc.compare(swept[0], test="wilcoxon").notes)
    assert str(table).splitlines()[0].split() == [
        "learner",
        "MSE",
        "messages",
        "an",
        "agent",
        "kbit",
        "an",
        "agent",
        "p",
    ]


def test_one_run_each_has_no_spread_and_no_test(swept):
    table = lc.compare(
        {name: runs[0] for name, runs in swept[0].items()}, {"worst agent": lambda t: t.squared_errors().mean(0).max()}
    )
    assert not table.tested
    assert table.notes == []
    assert "±" not in table.to_markdown()
    assert re.search(r"\| ODKLA \| (\*\*)?0\.\d+", table.to_markdown())


def test_a_run_that_diverged_is_said_to_have():
    X = np.random.default_rng(0).uniform(size=(300, 4, 2))
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=0.5)
    learners = {"good": lc.ODKLA(eta=4.0), "bad": lc.ODKLA(eta=0.01)}
    table = lc.compare(lc.sweep(learners, features, lc.Network.ring(4), X, X.prod(axis=2), seeds=2, engine="reference"))
    assert "| bad | diverged |" in table.to_markdown()
    assert "Diverged: bad in 2 of 2." in table.notes


def test_numbers_have_the_digits_of_their_spread():
    assert number(0.012345, 0.00021) == "0.01235"
    assert number(12345.6, 210.0) == "12350"
    assert number(0.1234567) == "0.1235"
    assert number(0.0) == "0"
    assert number(512000.0) == "512000"
    assert number(3.2e-12, 1e-13) == "3.200e-12"


def test_what_is_no_result_is_refused(swept):
    runs, _ = swept
    with pytest.raises(ValueError, match="results must be a dict"):
        lc.compare(list(runs.values()))
    with pytest.raises(ValueError, match="results must hold traces"):
        lc.compare({"x": 3})
    with pytest.raises(ValueError, match="as many runs"):
        lc.compare({"a": runs["ODKLA"], "b": runs["ODKLA"][:2]})
    with pytest.raises(ValueError, match="against must be one of"):
        lc.compare(runs, against="nobody")
    with pytest.raises(ValueError, match="measures must be"):
        lc.compare(runs, [])
    with pytest.raises(ValueError, match="test must be one of"):
        lc.compare(runs, test="z")
    with pytest.raises(ValueError, match="one for each trace"):
        lc.Runs(runs["ODKLA"], [1])
    with pytest.raises(ValueError, match="at least one trace"):
        lc.Runs([])
