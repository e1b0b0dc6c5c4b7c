"""The demonstration: its numbers are those of plain runs, and its page holds them and asks for nothing."""

import base64
import json
import re

import numpy as np
import pytest
from conftest import serious

import laconic as lc
from laconic.demo import landscape, render, show
from laconic.demo.page import VIEWS
from laconic.waves import places

pytestmark = pytest.mark.slow

N_ROUNDS, SEED = 120, 3


@pytest.fixture(scope="module")
def outcome():
    return show(n_rounds=N_ROUNDS, seed=SEED)


@pytest.fixture(scope="module")
def page(outcome):
    return render(outcome)


@pytest.fixture(scope="module")
def data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def unpack(packed):
    scales = np.array(packed["scales"])
    codes = np.frombuffer(base64.b64decode(packed["codes"]), dtype="<i2").reshape(len(scales), -1)
    return codes * scales[:, None]


@pytest.mark.parametrize("name", ["QC-ODKLA", "WaveRLS"])
def test_pieces_are_the_run_without_a_break(outcome, name):
    X, y = landscape.measure(N_ROUNDS, SEED)
    features = lc.RandomFeatures.gaussian(2, 50, 0.2, SEED)
    learner = {"QC-ODKLA": lc.QCODKLA(0.5, 1.0, alpha=0.3, beta=0.9995, bits=3), "WaveRLS": lc.WaveRLS()}[name]
    whole = lc.simulate(learner, features, lc.Network.grid(2, 5), X, y, collective=True)
    run = outcome.runs[name]
    np.testing.assert_array_equal(run.bits, whole.bits)
    np.testing.assert_array_equal(run.models[-1], whole.weights)
    assert run.row["own_error"] == pytest.approx(whole.mse()[-1], rel=1e-12)
    assert run.row["global_error"] == pytest.approx(whole.global_mse()[-1], rel=1e-12)
    assert run.row["messages"] == whole.sent.sum()


def test_the_centre_is_sent_everything_and_knows_most(outcome):
    X, y = landscape.measure(N_ROUNDS, SEED)
    features = lc.RandomFeatures.gaussian(2, 50, 0.2, SEED)
    said = lc.offline.recursive_least_squares(features, X, y, centralised=True, regularization=0.05)
    centre, rows = outcome.runs["a centre"], {row["name"]: row for row in outcome.rows}
    assert centre.row["own_error"] == pytest.approx(np.mean((said - y) ** 2), rel=1e-12)
    assert centre.row["bits"] == N_ROUNDS * 10 * 3 * 32
    # Its kept model is where the recursion stands: one sample more moves both to the same place.
    before = features(X[-1]) @ _ridge(features, X[:-1], y[:-1])
    np.testing.assert_allclose(before, said[-1], atol=1e-8)
    np.testing.assert_allclose(centre.models[-1, 0], _ridge(features, X, y), atol=1e-8)
    assert rows["a centre"]["off"] < rows["WaveRLS"]["off"] < rows["ODKLA"]["off"] < 0.3 * rows["Local"]["off"]
    assert rows["a centre"]["best"] == []
    assert "global_error" in rows["WaveRLS"]["best"]


def _ridge(features, X, y):
    phi = features(X.reshape(-1, 2))
    return np.linalg.lstsq(
        np.concatenate([phi, np.sqrt(0.05) * np.eye(100)]), np.concatenate([y.ravel(), np.zeros(100)]), rcond=None
    )[0]


def test_the_page_asks_for_nothing_and_shows_every_number(outcome, page):
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:,)", page)
    assert "http:" + "//" not in page and "https:" not in page and "@import" not in page and "url(" not in page
    assert "default-src 'none'" in page
    for row in outcome.rows:
        assert f"{row['global_error']:.4f}" in page and f"{row['messages']:,}" in page
    assert f"laconic demo --seed {SEED} --rounds {N_ROUNDS}" in page
    assert "not on this one" in page  # what was chosen by hand was chosen on seed 0


def test_the_page_holds_the_models_themselves(outcome, data):
    assert [view["name"] for view in data["views"]] == list(VIEWS)
    for view in data["views"]:
        run = outcome.runs[view["name"]]
        models = unpack(view["models"]).reshape(run.models.shape)
        points = landscape.grid(data["wide"], data["high"])
        surface = run.features(points) @ (models - run.models).reshape(-1, models.shape[2]).T
        assert np.abs(surface).max() < 2e-3  # a thousandth of the landscape's range
        assert np.shape(view["errors"]) == run.models.shape[:2]


def test_messages_go_where_they_went(outcome, data):
    X, y = landscape.measure(N_ROUNDS, SEED)
    features = lc.RandomFeatures.gaussian(2, 50, 0.2, SEED)
    trace = lc.simulate(lc.WaveRLS(), features, outcome.network, X, y)
    events = data["views"][2]["traffic"]["events"]
    assert len(events) == trace.sent.sum()
    tree = places(outcome.network)
    for t, sender, bits, to in events:
        assert trace.bits[t - 1, sender] == bits
        assert trace.info["link_bits"][t - 1, sender] == bits * len(to)
        assert set(to) == {tree[sender].parent} or set(to) == set(tree[sender].children)
    # Every wave goes up every edge of the tree once and down it once.
    ways = [(sender, end) for t, sender, _, to in events for end in to if t < trace.waves["when"][-1]]
    n_waves = len(trace.waves) - 1
    assert {ways.count(way) for way in ways} == {n_waves} and len(set(ways)) == 2 * (outcome.network.n_agents - 1)
    silence = data["views"][1]["traffic"]
    masks = np.frombuffer(base64.b64decode(silence["masks"]), dtype="<u2")
    np.testing.assert_array_equal(masks[:, None] >> np.arange(10) & 1, outcome.runs["QC-ODKLA"].bits > 0)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_browser_shows_it(outcome, page, browser, tmp_path, width, scheme):
    from playwright.sync_api import expect

    path = tmp_path / "demo.html"
    path.write_text(page)
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    wrong, asked = [], []
    tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    # What it draws is what the models say.
    for k, name in enumerate(VIEWS):
        run = outcome.runs[name]
        drawn = tab.evaluate(f"Array.from(laconic.heights(laconic.data.views[{k}], 3, 4))")
        expected = run.features(landscape.grid(125, 50)) @ run.models[3, 4] + run.centre
        np.testing.assert_allclose(drawn, expected, atol=3e-3)
    # Another agent, another learner, the end of the replay, the other colours: all by what a person touches.
    tab.locator(".truth canvas").click(
        position={"x": 5, "y": tab.locator(".truth canvas").bounding_box()["height"] - 5}
    )
    assert tab.evaluate("laconic.state.agent") == 5
    assert tab.locator("#agent").input_value() == "5"
    tab.get_by_role("button", name="the default").first.click()
    assert tab.locator("#talker-name").inner_text() == "the default"
    tab.locator("#time").fill("1000")
    assert tab.locator("#round").inner_text() == str(N_ROUNDS)
    assert int(tab.locator("#messages").inner_text()) == outcome.runs["WaveRLS"].row["messages"]
    tab.locator("#play").click()  # from the beginning again
    expect(tab.locator("#round")).to_have_text(re.compile("[2-9]|..+"), timeout=300_000)
    tab.locator("#theme").click()
    assert tab.evaluate("document.documentElement.dataset.theme") == ("dark" if scheme == "light" else "light")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("#chart polyline").count() == 7 and tab.locator("table tbody tr").count() == 9
    assert wrong == [] and asked == [path.as_uri()]
    assert serious(tab) == []
    context.close()


def test_what_is_compiled_is_not_in_the_time_of_a_learner(monkeypatch):
    ran = []

    def noted(learner, features, network, X, y, **options):
        ran.append((learner.name, options.get("collective", False), len(X)))
        return lc.simulate(learner, features, network, X, y, **options)

    monkeypatch.setattr("laconic.demo.running.simulate", noted)
    show(n_rounds=N_ROUNDS, seed=SEED)
    for place, (name, collective, rounds) in enumerate(ran):
        if not collective and rounds == N_ROUNDS:  # the run that is timed
            assert ran[place - 1] == (name, False, 1)
    assert sum(not collective and rounds == N_ROUNDS for _, collective, rounds in ran) == 8
