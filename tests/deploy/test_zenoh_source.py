"""Samples that are pushed, by a zenoh key: the oldest go first, and nothing stops an agent."""

import json
import queue
from contextlib import suppress

import cbor2
import pytest
from ports import free_port
from source_kit import GOOD, LONG, Gathered, logged_by_sources, seen, values

from laconic.deploy.settings.site import Site
from laconic.deploy.sources import Reader
from laconic.deploy.sources.zenoh import ZenohSource

pytestmark = pytest.mark.sockets


@pytest.fixture
def logged():
    with logged_by_sources() as records:
        yield records


class FakeSession:
    """Stands for a session only where no message is to travel."""

    def declare_subscriber(self, key, handler):
        return None


def test_what_is_pushed_too_fast_pushes_out_the_oldest(logged):
    source = ZenohSource(Reader(1), "kitchen", 4, session=FakeSession(), key="k")
    gathered = Gathered(source)
    for k in range(10):
        source._take(b"[0, %d]" % k)
    assert [sample.y for sample in gathered.take(4)] == [6, 7, 8, 9] and source.next() is None
    assert source.counts == {"samples": 10, "unlabelled": 0, "dropped": 0, "lost": 6}
    assert [record.count for record in seen(logged)] == [1, 2, 4]
    source._take(b"[0, 10]")
    assert [sample.y for sample in gathered.take(1)] == [10]
    source.close()
    source._take(b"[0, 11]")
    assert source.next() is None and source.ended


def test_a_callback_never_raises(logged):
    source = ZenohSource(Reader(1), "kitchen", 4, session=FakeSession(), key="k")

    def wake():
        raise RuntimeError("the driver is gone")

    source.start(wake)
    source._take(b"[0, 1]")
    assert seen(logged)[0].getMessage() == "samples cannot be read"
    assert source.failure == "RuntimeError: the driver is gone"
    source.close()


# ---- zenoh ------------------------------------------------------------------------------------------------------


@pytest.fixture
def sessions():
    """Two zenoh sessions that know each other by one endpoint and by nothing else."""
    import zenoh

    place = f"tcp/127.0.0.1:{free_port()}"
    opened = []
    for way in ("listen", "connect"):
        config = zenoh.Config()
        settings = {"mode": "peer", f"{way}/endpoints": [place], "scouting/multicast/enabled": False}
        settings |= {"scouting/gossip/enabled": False, "scouting/delay": 0}
        if way == "connect":
            settings["listen/endpoints"] = []
        for key, value in settings.items():
            config.insert_json5(key, json.dumps(value))
        opened.append(zenoh.open(config))
    yield opened
    for session in opened:
        with suppress(zenoh.ZError):  # of one whose other end closed amid a handshake, zenoh says that it timed out
            session.close()


def test_samples_come_by_a_zenoh_key(sessions):
    import zenoh

    here, there = sessions
    site = Site.parse('[model]\nn_inputs = 2\n[agents.kitchen]\nlisten = "tcp/127.0.0.1:7447"\n')
    source = site.source("kitchen", here)
    gathered = Gathered(source)
    matching = queue.SimpleQueue()
    publisher = there.declare_publisher("site/kitchen/sample", congestion_control=zenoh.CongestionControl.BLOCK)
    publisher.declare_matching_listener(lambda status: matching.put(status.matching))
    assert publisher.matching_status.matching or matching.get(timeout=LONG)
    send = publisher.put

    send(b'{"x": [1, 2], "y": 3}', encoding="application/cbor")  # which is not true
    there.put("site/hall/sample", b"[9, 9, 9]")
    send(b"nonsense")
    send(b"")
    send(cbor2.dumps({"x": [4, 5], "y": 6}))
    send(b"[7, 8, 9]", encoding="application/json")
    assert values(gathered.take(3)) == [*GOOD, (7, 8, 9)]
    assert source.counts["dropped"] == 2 and source.counts["lost"] == 0 and not source.ended
    source.close()
    assert source.ended


def test_a_zenoh_source_outlives_its_session_without_noise(sessions):
    source = ZenohSource(Reader(2), "kitchen", session=sessions[0], key="site/kitchen/sample")
    source.start(lambda: None)
    sessions[0].close()
    source.close()


def test_a_key_that_zenoh_dislikes(sessions):
    source = ZenohSource(Reader(2), "kitchen", session=sessions[0], key="a*b/c")
    with pytest.raises(ValueError, match=r"kitchen: zenoh cannot listen on 'a\*b/c'"):
        source.start(lambda: None)
    source.close()
    site = Site.parse('[model]\nn_inputs = 2\n[agents.kitchen]\nlisten = "tcp/127.0.0.1:7447"\n')
    with pytest.raises(ValueError, match="kitchen: a zenoh source needs the agent's zenoh session"):
        site.source("kitchen")
