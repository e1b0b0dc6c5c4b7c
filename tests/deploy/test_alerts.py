"""How an alert reaches people: published, counted in metrics, told in progress lines and the line of a site."""

import io
import json
import logging

import pytest
from prometheus_client import generate_latest
from test_driver import FEATURES, Samples

import laconic as lc
from laconic.deploy.operations.screen import Screen
from laconic.deploy.running.driver import Driver
from laconic.deploy.running.metrics import Tally, make_registry
from laconic.deploy.running.outlet import Outlet
from laconic.protocol.actions import Progress, Save, Terms
from laconic.protocol.paces import make_pacer
from laconic.transport.link import Noticed


class Board:
    """A link to nobody that remembers what was published."""

    def __init__(self):
        self.published = []

    def send(self, data, to=None):
        pass

    def publish(self, suffix, payload):
        self.published.append((suffix, json.loads(payload)))


@pytest.fixture
def parts(tmp_path):
    agent = lc.Agent("ann", ["ben"], FEATURES, lc.ODKLA(rho=0.3, eta=1.0), n_agents=2, clock="slotted")
    board, tally = Board(), Tally()
    outlet = Outlet(agent, board, Samples(3), lambda: None, tally, tmp_path / "gone" / "ann.checkpoint", lambda: 12.5)
    return agent, board, tally, outlet


@pytest.fixture
def records():
    """What is logged, whatever others have made of the loggers."""
    found, own = [], logging.getLogger("laconic")
    handler = logging.Handler(logging.INFO)
    handler.emit = found.append
    loggers = [own, *(logging.getLogger(f"laconic.{name}") for name in ("protocol", "deploy.running.outlet"))]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.INFO)
    own.addHandler(handler)
    yield found
    own.removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def test_a_quarantine_reaches_people_in_every_way(parts, records):
    agent, board, tally, outlet = parts
    driver = Driver(make_pacer(agent, Terms(predictions=0.0)), outlet)
    driver.start(0.0)
    agent._dialogue.quarantine(agent._dialogue.ends["ben"])
    outlet.do(driver.pacer.actions())
    outlet.do([Progress(7, ())])
    assert ("alert", {"agent": "ann", "event": "quarantined", "time": 12.5, "neighbour": "ben"}) in board.published
    assert [record.neighbour for record in records if record.getMessage() == "quarantined"] == ["ben"]
    (progress,) = [record for record in records if record.getMessage() == "progress"]
    assert progress.alerts == 1
    text = generate_latest(make_registry("ann", tally, lambda: agent.counters)).decode()
    assert 'laconic_alerts_total{agent="ann",event="quarantined"} 1.0' in text


def test_an_alert_of_the_link_is_counted_like_others(parts):
    agent, board, tally, outlet = parts
    driver = Driver(make_pacer(agent, Terms(predictions=0.0)), outlet)
    said = {"agent": "ann", "event": "certificate ends soon", "time": 12.5, "days": 12}
    driver.feed([Noticed("certificate ends soon", json.dumps(said))], 0.0)
    assert driver.snapshot().status["alerts"] == 1 and driver.snapshot().status["last_alert"] == said
    assert not any(suffix == "alert" for suffix, _ in board.published)  # the link has published it itself
    text = generate_latest(make_registry("ann", tally, lambda: agent.counters)).decode()
    assert 'laconic_alerts_total{agent="ann",event="certificate ends soon"} 1.0' in text


def test_a_disk_that_fails_is_told_of_once_until_it_works_again(parts, monkeypatch, caplog):
    agent, board, tally, outlet = parts

    def full(path):
        raise OSError(28, "No space left on device")

    with caplog.at_level(logging.CRITICAL):
        monkeypatch.setattr(type(agent), "save", lambda self, path: full(path))
        outlet.do([Save(1), Save(2), Save(3)])
        assert [said["event"] for _, said in board.published] == ["checkpoint failed"]
        monkeypatch.setattr(type(agent), "save", lambda self, path: None)
        outlet.do([Save(4)])
        monkeypatch.setattr(type(agent), "save", lambda self, path: full(path))
        outlet.do([Save(5)])
    assert tally.alerts == {"checkpoint failed": 2}


def test_the_line_of_a_site_tells_how_many_alerts_there_were():
    screen = Screen(2, io.StringIO())
    screen.line("hall", "", {"event": "progress", "round": 8, "alerts": 2})
    screen.line("attic", "", {"event": "progress", "round": 7, "alerts": 1})
    assert "3 alerts  2 of 2 agents" in screen.summary()
    screen.line("hall", "", {"event": "progress", "round": 9})
    screen.line("attic", "", {"event": "progress", "round": 9})
    assert "alerts" not in screen.summary()
