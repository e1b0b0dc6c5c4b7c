"""The loop around a pacer, on a clock and a queue that the tests make up: how long it sleeps, and when it ends."""

import signal

import pytest

import laconic as lc
from laconic.deploy.running.driver import Driver
from laconic.deploy.running.metrics import Tally
from laconic.deploy.running.outlet import Outlet
from laconic.deploy.sources.base import Reading
from laconic.protocol.actions import Terms
from laconic.protocol.paces import make_pacer
from laconic.transport.link import Connected, Disconnected, Received

FEATURES = lc.RandomFeatures.gaussian(2, 5, bandwidth=0.5, seed=0)


class Samples:
    """A source that has all its samples at once, each the same."""

    def __init__(self, number, sample=(0.2, 0.7)):
        self.left, self.sample, self.counts = number, sample, {"dropped": 0, "lost": 0}
        self.skipped = self.failure = None

    def start(self, wake, skip):
        self.skipped = skip

    def next(self):
        self.left -= 1
        return Reading(self.sample, 0.5) if self.left >= 0 else None

    @property
    def ended(self):
        return self.left <= 0


class Silence:
    """A link to nobody."""

    def __init__(self):
        self.sent, self.published = [], []

    def send(self, data, to=None):
        self.sent.append(to)

    def publish(self, suffix, payload):
        self.published.append(suffix)


class Sleeper:
    """A queue and a clock in one: to wait for news lets time pass, and news come when a test says so."""

    def __init__(self, news=()):
        self.now, self.sleeps, self.coming = 1000.0, [], sorted(news, key=lambda item: item[0])

    def take(self, timeout, enough=1):
        until = self.now + max(timeout, 0.0)
        if timeout > 0:
            self.sleeps.append(timeout)
        if self.coming and self.coming[0][0] <= until:
            self.now, item = self.coming.pop(0)
            return [item]
        self.now = until
        return []

    def clock(self):
        return self.now


def drive(neighbours=(), samples=3, clock="lockstep", news=(), slot=1.0, sample=(0.2, 0.7), **terms):
    agent = lc.Agent("ann", neighbours, FEATURES, lc.ODKLA(rho=0.3, eta=1.0), n_agents=5, clock=clock)
    pacer = make_pacer(agent, Terms(**{"predictions": 0.0, **terms}), slot)
    driver = Driver(pacer, Outlet(agent, Silence(), Samples(samples, sample), lambda: None, Tally(), wall=lambda: 0.0))
    sleeper = Sleeper(news)
    stopped = driver.run(sleeper, sleeper.clock, lambda: sleeper.now)
    return driver, sleeper, stopped


def test_it_ends_as_soon_as_the_pacer_does():
    driver, sleeper, stopped = drive()
    assert stopped is None
    assert driver.pacer.agent.round == 3
    assert sleeper.now == pytest.approx(1000.3)  # rounds take no time; then it lingers until it is quiet
    assert max(sleeper.sleeps) <= 0.3


def test_a_signal_ends_it():
    driver, sleeper, stopped = drive(["ben"], news=[(1001.5, int(signal.SIGTERM))])
    assert stopped == signal.SIGTERM == driver.stopped
    assert sleeper.now == 1001.5
    assert driver.outlet.source.skipped is None  # it never joined


def test_it_sleeps_until_something_is_due():
    driver, sleeper, _ = drive(["ben"], patience=5.0)
    assert [round(sleep, 6) for sleep in sleeper.sleeps[:4]] == [0.25, 0.5, 1.0, 2.0]
    assert driver.pacer.agent.round == 3  # after it had given up whom it waited for
    assert driver.outlet.link.published == ["alert"]
    assert driver.outlet.tally.suspended == 1
    assert len(sleeper.sleeps) < 20


def test_on_slots_it_wakes_at_every_tick():
    driver, sleeper, _ = drive(samples=10, clock="slotted", slot=0.125)
    assert driver.pacer.agent.round == 10
    assert sleeper.now == 1000.0 + 11 * 0.125
    assert max(sleeper.sleeps) == 0.125


def test_news_of_the_link_reach_the_pacer():
    news = [(1000.1, Connected("ben")), (1000.2, Received("ben", b"nonsense")), (1000.3, Disconnected("ben"))]
    driver, _, _ = drive(["ben", "cid"], news=[*news, (1000.4, Connected("cid")), (1000.5, 2)])
    assert driver.pacer.here == {"cid"} and driver.outlet.tally.connected == 1
    assert driver.pacer.agent.counters["messages_in"] == 1


def test_a_sample_that_is_refused_is_counted():
    driver, _, _ = drive(samples=3, sample=[float("inf"), 0.0])
    assert driver.pacer.agent.round == 0
    assert driver.outlet.source.counts["dropped"] == driver.outlet.tally.dropped == 3


def test_a_model_that_left_all_bounds_is_raised():
    agent = lc.Agent("ann", [], FEATURES, lc.ODKLA(rho=0.01, eta=0.01), n_agents=1)
    driver = Driver(
        make_pacer(agent, Terms(predictions=0.0)), Outlet(agent, Silence(), Samples(1000), lambda: None, Tally())
    )
    sleeper = Sleeper()
    with pytest.raises(lc.Diverged):
        driver.run(sleeper, sleeper.clock)
    assert driver.outlet.link.published == ["alert"]
    assert driver.outlet.source.counts["dropped"] == 0
