"""A simulation that is watched: it is the simulation, round for round, and its page shows two learners at once."""

import threading

import numpy as np
import pytest
from conftest import make_stream, serious
from test_serving import WAIT, opened

import laconic as lc
from laconic.dashboard import Board, Gate, Lane, Play, make_app, play
from laconic.dashboard.playing import TICK, at
from laconic.dashboard.serving import listen_on, server_of

NETWORK = lc.Network.path(4)
QUIET = lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.05, beta=0.99, bits=3)
T = 60


class Clock:
    """Time that passes when somebody rests."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now

    def rest(self, seconds):
        self.now += seconds


def make_plays(features, *learners):
    X, y = make_stream(T, 4)
    y[5, 1] = np.nan
    return [Play(Board(NETWORK.names), one, features, NETWORK, X, y) for one in learners], X, y


def run(plays, start=0.0, **options):
    clock = Clock(start)
    play(plays, clock=clock, rest=clock.rest, wall=clock, **options)
    return clock.now - start


@pytest.mark.parametrize("pace", [None, 5.0])
def test_it_is_the_simulation(features, pace):
    plays, X, y = make_plays(features, QUIET, lc.WaveRLS())
    seconds = run(plays, pace=pace)
    assert seconds == pytest.approx(T * TICK if pace is None else T / pace, abs=0.3)
    for one in plays:
        trace = lc.simulate(one.learner, features, NETWORK, X, y)
        told = one.board.changes(0, "1")
        rows = np.array([row[2:] for row in told["agents"]], dtype=float)
        np.testing.assert_array_equal(rows[:, 0], T)
        np.testing.assert_array_equal(rows[:, 2], trace.bits.sum(axis=0))
        np.testing.assert_array_equal(rows[:, 3], trace.sent.sum(axis=0))
        np.testing.assert_array_equal(rows[:, 4], T - trace.sent.sum(axis=0))
        # Fewer samples than the window has: the plain mean.
        np.testing.assert_allclose(rows[:, 1], np.nanmean(trace.squared_errors(), axis=0), rtol=1e-3)
        last = told["past"][-1]
        np.testing.assert_allclose(last["disagreement"], trace.consensus()[-1] / np.sqrt(trace.energy[-1]), rtol=1e-3)
        assert last["bits"] == trace.bits.sum() and last["round"] == T
        guesses = np.array([[t, p] for t, p, _ in told["predictions"]])
        np.testing.assert_allclose(guesses[:, 1], trace.predictions[guesses[:, 0].astype(int) - 1, 1], rtol=1e-3)
        assert [event[3] for event in told["events"]][-1].endswith("all 60 rounds are over")
    waves = [event[3] for event in plays[1].board.changes()["events"] if event[2] == "wave"]
    assert len(waves) == len(trace.waves) and waves[0].startswith("wave 1 began after round 1: 2 hops up to 1")


def test_waves_run_along_the_tree(features):
    plays, *_ = make_plays(features, lc.WaveRLS())
    (one,) = plays
    version, links = one.board.changes()["version"] or 1, []
    for stop in range(1, T + 1):
        one.advance(stop, float(stop))
        told = one.board.changes(version)
        links += told["links"]
        version = told["version"]
    tree = set(one.tree)
    assert len(tree) == 3 and all(tuple(link) in tree or tuple(link[::-1]) in tree for link in links)
    n_waves = sum(event[2] == "wave" for event in one.board.changes()["events"])
    assert {links.count(link) for link in links} <= {
        n_waves,
        n_waves - 1,
    }  # up and down each link once; the last may run
    assert len({tuple(link) for link in links}) == 6


def test_who_diverges_says_so_and_the_other_goes_on(features):
    plays, *_ = make_plays(features, lc.Local(1e9), QUIET)
    run(plays)
    words = [[event[2:] for event in one.board.changes()["events"]] for one in plays]
    assert words[0][-1][0] == "fault" and words[0][-1][1].startswith("Local has diverged in round")
    assert words[1][-1] == ["done", "QC-ODKLA: all 60 rounds are over"]


def test_the_first_rounds_pass_slowly():
    rounds = [at(share, 1000) for share in np.linspace(0, 1, 50)]
    steps = np.diff(rounds)
    assert rounds[0] == 0 and rounds[-1] == 1000 and steps[0] < 3 and (np.diff(steps) >= -1).all()


@pytest.mark.browser
@pytest.mark.sockets
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_two_learners_side_by_side_in_a_browser(features, browser):
    from playwright.sync_api import expect

    plays, *_ = make_plays(features, lc.WaveRLS(), QUIET)
    seen = threading.Event()
    lanes = [Lane(one.name, one.board, one.tree) for one in plays]
    server = server_of(make_app("a run", lanes, NETWORK, Gate(), hint="Soon.", n_rounds=T, seen=seen.set))
    with listen_on("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            where = f"127.0.0.1:{listener.getsockname()[1]}"
            tab, wrong, asked = opened(browser, where, viewport={"width": 1280, "height": 800}, color_scheme="light")
            assert seen.wait(WAIT)
            expect(tab.locator("#empty")).to_contain_text("Soon.")
            assert serious(tab) == []
            for stop in (5, 20):
                for one in plays:
                    one.advance(stop, float(stop))
                    one.board.look(float(stop))
            expect(tab.locator("#round1")).to_have_text("20")
            expect(tab.locator("#empty")).to_be_hidden()
            frames = tab.evaluate("laconic.view.frames")
            run(plays, start=30.0)
            expect(tab.locator("#link")).to_have_text("finished", timeout=1000 * WAIT)
            tab.wait_for_function("before => laconic.view.frames > before", arg=frames)  # it moves
            tab.locator("#network1").press("ArrowRight")
            expect(tab.locator("#facts thead")).to_contain_text("QC-ODKLA")
            expect(tab.locator("#facts tbody tr", has_text="messages")).to_contain_text(str(plays[1]._sends[0]))
            tab.locator("#time").fill("0")
            expect(tab.locator("#when")).to_have_text("round 5")
            expect(tab.locator("#round0")).to_have_text("5")
            for _ in range(2):  # light, then dark
                assert serious(tab) == []
                tab.locator("#theme").click()
            tab.emulate_media(media="print")
            expect(tab.locator(".player")).to_be_hidden()
            assert wrong == [] and {url.split("/")[2] for url in asked} == {where}
            tab.context.close()
        finally:
            server.should_exit = True
            thread.join(WAIT)
