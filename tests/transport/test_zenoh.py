"""Links over zenoh: real sessions on loopback, real processes that crash and hang, real cables that are cut."""

import json
import logging
import queue
import signal
import socket
import sys

import pytest
from ports import free_port
from zenoh_places import WAIT, Places, Processes, Relay, hang_with_much_to_hear

from laconic.transport import Connected, Disconnected, Received
from laconic.transport.zenoh import ZenohLink, load_zenoh
from laconic.transport.zenoh_settings import endpoints_to_connect, session_settings

pytestmark = pytest.mark.sockets


@pytest.fixture
def site():
    with Places() as places:
        yield places


@pytest.fixture
def processes():
    with Processes() as started:
        yield started


@pytest.fixture
def pair(site):
    edges = [("hall", "kitchen")]
    hall, kitchen = site("hall", edges), site("kitchen", edges)
    assert hall.next() == Connected("kitchen") and kitchen.next() == Connected("hall")
    return hall, kitchen


# ---------------------------------------------------------------------------------------------------------------------
# Messages


def test_what_is_said_to_all_and_to_one_arrives_in_order(pair):
    hall, kitchen = pair
    for number in range(3000):
        hall.send(number.to_bytes(4, "big"), "kitchen" if number % 3 else None)
    assert kitchen.take(3000) == [Received("hall", number.to_bytes(4, "big")) for number in range(3000)]
    kitchen.send(b"")
    kitchen.send(bytes(1 << 20), "hall")
    assert hall.take(2) == [Received("kitchen", b""), Received("kitchen", bytes(1 << 20))]


def test_agents_hear_their_neighbours_and_nobody_else(site):
    edges = [("attic", "hall"), ("hall", "kitchen")]
    attic, hall, kitchen = (site(name, edges) for name in ("attic", "hall", "kitchen"))
    assert {*hall.take(2)} == {Connected("attic"), Connected("kitchen")}
    assert attic.next() == kitchen.next() == Connected("hall")
    assert len(hall.link.session.info.peers_zid()) == 2
    assert len(attic.link.session.info.peers_zid()) == len(kitchen.link.session.info.peers_zid()) == 1
    hall.send(b"secret", "attic")
    hall.send(b"open")
    attic.send(b"from attic")
    kitchen.send(b"from kitchen")
    assert attic.take(2) == [Received("hall", b"secret"), Received("hall", b"open")]
    assert kitchen.next() == Received("hall", b"open")
    assert {*hall.take(2)} == {Received("attic", b"from attic"), Received("kitchen", b"from kitchen")}
    with pytest.raises(ValueError, match="to must be a neighbour of attic, got 'kitchen'"):
        attic.send(b"", "kitchen")


def test_only_one_of_two_needs_to_listen(site):
    edges = [("attic", "hall")]
    site.where["attic"] = None
    attic, hall = site("attic", edges), site("hall", edges)
    assert attic.next() == Connected("hall") and hall.next() == Connected("attic")
    attic.send(b"hello")
    assert hall.next() == Received("attic", b"hello")


@pytest.mark.parametrize(("comes", "times"), [("kitchen", 60), ("attic", 12)])
def test_from_the_first_message_after_connected_nothing_is_lost(site, comes, times):
    edges = [(comes, "hall")]
    hall = site("hall", edges)
    for trial in range(times):
        other = site(comes, edges)
        expected = [f"{trial}, {number}".encode() for number in range(20)]
        for one, two in ((hall, other), (other, hall)):
            assert one.next() == Connected(two.name)
            for number, data in enumerate(expected):
                one.send(data, two.name if number % 2 else None)
        assert other.take(20) == [Received("hall", data) for data in expected]
        assert hall.take(20) == [Received(comes, data) for data in expected]
        other.close()
        assert hall.next() == Disconnected(comes)


def test_samples_come_and_predictions_go(site):
    zenoh = load_zenoh()
    kitchen = site("kitchen", [("hall", "kitchen")])
    samples, predictions = queue.SimpleQueue(), queue.SimpleQueue()
    kitchen.link.subscribe("sample", samples.put)
    settings = session_settings(None, [site.where["kitchen"]], 1.0, None, None) | {"mode": "client"}
    with zenoh.open(zenoh.Config.from_json5(json.dumps(settings))) as sensor:
        reader = sensor.declare_subscriber("site/kitchen/prediction", lambda sample: predictions.put(sample.payload))
        matching = queue.SimpleQueue()
        writer = sensor.declare_publisher("site/kitchen/sample")
        writer.declare_matching_listener(lambda status: matching.put(status.matching))
        assert writer.matching_status.matching or matching.get(timeout=WAIT)
        writer.delete()
        writer.put(b"[1, 2]")
        assert samples.get(timeout=WAIT) == b"[1, 2]" and samples.empty()
        outlet = kitchen.link.session.declare_publisher("site/kitchen/prediction")
        heard = queue.SimpleQueue()
        outlet.declare_matching_listener(lambda status: heard.put(status.matching))
        assert outlet.matching_status.matching or heard.get(timeout=WAIT)  # the subscription has reached the kitchen
        kitchen.link.publish("prediction", b"3")
        assert bytes(predictions.get(timeout=WAIT)) == b"3" and predictions.empty()
        outlet.undeclare()
        reader.undeclare()
        writer.undeclare()


def test_a_failure_to_deliver_is_logged_and_passes(site, caplog):
    edges = [("hall", "kitchen")]
    heard = queue.SimpleQueue()

    def deliver(event):
        heard.put(event)
        if event != Received("kitchen", b"good"):
            raise RuntimeError("no")

    kitchen = site("kitchen", edges)
    with ZenohLink("hall", neighbours={"kitchen": site.where["kitchen"]}, deliver=deliver) as link:
        with caplog.at_level(logging.ERROR):
            assert kitchen.next() == Connected("hall")
            for data in (b"bad", b"good"):
                kitchen.send(data)
            expected = [Connected("kitchen"), Received("kitchen", b"bad"), Received("kitchen", b"good")]
            assert [heard.get(timeout=WAIT) for _ in expected] == expected
        assert "news of kitchen could not be delivered" in caplog.text
        assert "a message of kitchen could not be delivered" in caplog.text
        assert link.session.info.peers_zid()


def test_a_closed_link_is_silent(pair):
    hall, kitchen = pair
    hall.close()
    hall.close()
    assert kitchen.next() == Disconnected("hall")
    hall.send(b"too late")
    hall.send(b"too late", "kitchen")
    hall.link.publish("alert", b"too late")
    with pytest.raises(ValueError, match="its link is closed"):
        hall.link.subscribe("sample", print)
    assert hall.news.empty() and kitchen.news.empty()


# ---------------------------------------------------------------------------------------------------------------------
# Crashes, hangs, cuts

HELLO = [f"{number}".encode() for number in range(50)]


@pytest.mark.slow
@pytest.mark.parametrize("comes", ["attic", "kitchen"])
def test_an_agent_that_was_killed_is_gone_at_once_and_comes_back(site, processes, comes):
    edges = [(comes, "hall")]
    hall = site("hall", edges, lease=2 * WAIT)  # so that only the end of the connection can tell in time
    for _ in range(2):
        process = processes(comes, site.where[comes], "hall", site.where["hall"], 2 * WAIT)
        assert hall.next() == Connected(comes)
        hall.send(b"and you")
        heard = hall.take(51)
        assert [event for event in heard if event.data != b"and you"] == [Received(comes, data) for data in HELLO]
        assert Received(comes, b"and you") in heard
        process.kill()
        assert hall.next() == Disconnected(comes)


@pytest.mark.slow
def test_a_hung_agent_is_gone_after_the_lease_and_comes_back(site, processes):
    edges = [("kitchen", "hall")]
    hall = site("hall", edges, lease=0.5)
    process = processes("kitchen", site.where["kitchen"], "hall", site.where["hall"], 0.5)
    assert hall.next() == Connected("kitchen")
    hall.take(50)
    process.send_signal(signal.SIGSTOP)
    assert hall.next() == Disconnected("kitchen")
    process.send_signal(signal.SIGCONT)
    assert hall.next() == Connected("kitchen")
    assert hall.take(50) == [Received("kitchen", data) for data in HELLO]


@pytest.mark.slow
def test_while_a_neighbour_is_hung_with_much_to_hear_the_others_are_heard(site, processes):
    hang_with_much_to_hear(site, processes)


@pytest.mark.slow
def test_an_agent_that_computes_for_longer_than_the_lease_is_not_taken_for_dead(site, processes):
    edges = [("kitchen", "hall"), ("attic", "hall")]
    hall = site("hall", edges, lease=0.8)
    kitchen, attic = (
        processes(name, site.where[name], "hall", site.where["hall"], 0.8) for name in ("kitchen", "attic")
    )
    assert {*hall.take(102)} >= {Connected("kitchen"), Connected("attic")}
    hall.send(b"compute", "kitchen")
    for _ in range(1000):
        hall.send(b"more", "kitchen")
    attic.send_signal(signal.SIGSTOP)
    assert hall.next() == Disconnected("attic")  # so a lease has passed
    kitchen.stdin.write("enough")
    kitchen.stdin.flush()
    assert hall.take(1001) == [Received("kitchen", data) for data in [b"compute", *[b"more"] * 1000]]


def test_a_process_may_end_without_closing(site, processes):
    edges = [("kitchen", "hall")]
    hall = site("hall", edges)
    process = processes("kitchen", site.where["kitchen"], "hall", site.where["hall"], 1.0)
    assert hall.next() == Connected("kitchen")
    for _ in range(2000):
        hall.send(b"still talking")
    hall.send(b"stop")
    assert process.wait(timeout=WAIT) == 0
    assert process.stderr.read() == ""
    hall.until(Disconnected("kitchen"))


def test_a_cut_link_mends_itself(site):
    edges = [("kitchen", "hall")]
    hall = site("hall", edges)
    relay = Relay(("127.0.0.1", int(site.where["hall"].rpartition(":")[2])))
    try:
        site.where["hall"] = f"tcp/{relay.address}"
        kitchen = site("kitchen", edges)
        for trial in range(5):
            assert hall.next() == Connected("kitchen") and kitchen.next() == Connected("hall")
            for one, two in ((hall, kitchen), (kitchen, hall)):
                for number in range(20):
                    one.send(bytes([trial, number]))
                assert two.take(20) == [Received(one.name, bytes([trial, number])) for number in range(20)]
            relay.cut()
            assert hall.next() == Disconnected("kitchen") and kitchen.next() == Disconnected("hall")
            hall.send(b"into the void")
            relay.whole.set()
    finally:
        relay.close()


# ---------------------------------------------------------------------------------------------------------------------
# What cannot work

GOOD = {"neighbours": {"hall": "tcp/127.0.0.1:7448"}, "deliver": print, "listen": "tcp/127.0.0.1:7447"}
WRONG = {
    "name": ({"name": "a/b"}, "name must be a word without spaces and / * $ ? # @, got 'a/b'"),
    "no name": ({"name": ""}, "name must be a word"),
    "wild name": ({"name": "*"}, "name must be a word"),
    "name of another kind": ({"name": 3}, "name must be a word"),
    "site": ({"site": "my site"}, "site must be a word"),
    "neighbour": ({"neighbours": {"$x": None}}, "a neighbour's name must be a word"),
    "no mapping": ({"neighbours": ["hall"]}, "neighbours must map names to endpoints, got \\['hall'\\]"),
    "no security": ({"security": "ca.pem"}, "security must be a Security, got 'ca.pem'"),
    "itself": ({"neighbours": {"kitchen": None}}, "kitchen cannot be its own neighbour"),
    "udp": ({"listen": "udp/127.0.0.1:7447"}, "listen must begin with 'tcp/' since there is no security"),
    "tls": ({"listen": "tls/127.0.0.1:7447"}, "listen must begin with 'tcp/' since there is no security"),
    "port": ({"listen": "tcp/127.0.0.1:70000"}, "listen must be 'tcp/HOST:PORT' with a port from 1 to 65535"),
    "no port": ({"listen": "tcp/127.0.0.1"}, "listen must be 'tcp/HOST:PORT'"),
    "options": ({"listen": "tcp/127.0.0.1:7447#iface=lo"}, "listen must be 'tcp/HOST:PORT'"),
    "endpoint": ({"neighbours": {"hall": "hall"}}, "the endpoint of hall must be 'tcp/HOST:PORT'"),
    "nobody listens": ({"listen": None, "neighbours": {"hall": None}}, "kitchen and hall cannot meet: neither has"),
    "lease": ({"lease": 0.0}, "lease must be at least 0.1, got 0.0"),
    "endless lease": ({"lease": 1e9}, "lease must be at most 3600 seconds, got 1e"),
    "lease is not a number": ({"lease": float("nan")}, "lease must be finite"),
    "deliver": ({"deliver": None}, "deliver must be a function that takes an event, got None"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    arguments, message = WRONG[case]
    arguments = {"name": "kitchen"} | GOOD | arguments
    with pytest.raises(ValueError, match="^" + message.replace("$", "[$]").replace("*", "[*]").replace("?", "[?]")):
        ZenohLink(**arguments)


def test_a_place_that_is_taken():
    with socket.create_server(("127.0.0.1", free_port())) as other:
        listen = f"tcp/127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {listen}: Address already in use$"):
            ZenohLink("kitchen", **GOOD | {"listen": listen})


def test_a_place_that_is_nowhere():
    with pytest.raises(OSError, match=r"^cannot listen on tcp/no.such.host.invalid:7447: [^/]+\.$"):
        ZenohLink("kitchen", **GOOD | {"listen": "tcp/no.such.host.invalid:7447"})


def test_without_zenoh(monkeypatch):
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(ValueError, match=r"needs eclipse-zenoh: pip install eclipse-zenoh, or"):
        ZenohLink("kitchen", **GOOD)


def test_of_two_that_listen_exactly_one_connects():
    where = {"attic": "tcp/h:1", "hall": "tcp/h:2", "kitchen": None}
    for one in where:
        for two in where:
            if one < two:
                ways = (endpoints_to_connect(one, where[one], {two: where[two]}),)
                ways += (endpoints_to_connect(two, where[two], {one: where[one]}),)
                assert sorted(map(len, ways)) == [0, 1]
