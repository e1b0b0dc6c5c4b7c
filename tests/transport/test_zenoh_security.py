"""Links over zenoh with mutual TLS: neighbours talk, and those who do not belong are refused."""

import json
import queue
import sys
from contextlib import ExitStack

import pytest
from ports import free_port
from zenoh_places import WAIT, Places, Processes, Relay, hang_with_much_to_hear

from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.settings.site import Site
from laconic.transport import Connected, Disconnected, Received
from laconic.transport.zenoh import Security, ZenohLink, load_zenoh
from laconic.transport.zenoh_settings import session_settings

pytestmark = pytest.mark.sockets

EDGES = [("attic", "kitchen"), ("hall", "kitchen")]


def make_files(folder, names=("attic", "hall", "kitchen", "monitor")):
    """Certificates of a new authority, by name."""
    folder.mkdir()
    agents = "".join(f'[agents.{name}]\nlisten = "tls/127.0.0.1:{7447 + k}"\n' for k, name in enumerate(names))
    edges = json.dumps([[names[0], name] for name in names[1:]])
    text = f"[model]\nn_inputs = 2\n[network]\nedges = {edges}\n{agents}[security]\n"
    (folder / "site.toml").write_text(text)
    described = Site.read(folder / "site.toml")
    make_certificates(described)
    ca = described.security.ca
    return {agent.name: Security(ca, agent.certificate, agent.key) for agent in described.agents}


@pytest.fixture
def site():
    with Places("tls") as places:
        yield places


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("security") / "own")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("security") / "foreign")


@pytest.fixture
def guarded(site, files):
    """The kitchen with the hall beside it, and the attic away."""
    kitchen, hall = (site(name, EDGES, security=files[name], lease=5.0) for name in ("kitchen", "hall"))
    assert kitchen.next() == Connected("hall") and hall.next() == Connected("kitchen")
    return kitchen, hall


@pytest.fixture
def intrude():
    """Opens plain zenoh sessions that connect to somebody, or fail at once."""
    zenoh = load_zenoh()
    with ExitStack() as stack:

        def connect(endpoint, tls):
            settings = session_settings(None, [endpoint], 5.0, tls, None)
            settings["mode"] = "client"
            settings["connect"] |= {"timeout_ms": 0, "exit_on_failure": True}
            session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
            stack.callback(session.close)
            return session

        yield connect


def assert_at_peace(kitchen, hall):
    """The honest still talk, and have heard nobody else."""
    kitchen.send(b"to all")
    hall.send(b"to you", "kitchen")
    assert hall.next() == Received("kitchen", b"to all")
    assert kitchen.next() == Received("hall", b"to you")
    assert kitchen.news.empty() and hall.news.empty()


def test_neighbours_talk_over_tls(guarded, site, files):
    kitchen, hall = guarded
    attic = site("attic", EDGES, security=files["attic"])
    assert kitchen.next() == Connected("attic") and attic.next() == Connected("kitchen")
    for number in range(200):
        kitchen.send(bytes([number]), "attic" if number % 2 else None)
        attic.send(bytes([number]))
    assert attic.take(200) == [Received("kitchen", bytes([number])) for number in range(200)]
    assert kitchen.take(200) == [Received("attic", bytes([number])) for number in range(200)]
    assert hall.take(100) == [Received("kitchen", bytes([number])) for number in range(0, 200, 2)]
    attic.close()
    assert kitchen.next() == Disconnected("attic")
    assert_at_peace(kitchen, hall)


@pytest.mark.slow
def test_while_a_neighbour_is_hung_with_much_to_hear_the_others_are_heard(site, files):
    with Processes() as processes:
        hang_with_much_to_hear(site, processes, files)


def test_no_certificate(guarded, site, files, intrude):
    tls = {"root_ca_certificate": str(files["hall"].ca), "enable_mtls": False}
    with pytest.raises(load_zenoh().ZError):
        intrude(site.where["kitchen"], tls)
    assert_at_peace(*guarded)


def test_a_certificate_of_another_authority(guarded, site, files, foreign, intrude):
    tls = Security(files["hall"].ca, foreign["hall"].certificate, foreign["hall"].key).settings()
    with pytest.raises(load_zenoh().ZError):
        intrude(site.where["kitchen"], tls)
    assert_at_peace(*guarded)


def test_plain_tcp(guarded, site, intrude):
    with pytest.raises(load_zenoh().ZError):
        intrude(site.where["kitchen"].replace("tls/", "tcp/"), None)
    assert_at_peace(*guarded)


def test_whoever_connects_checks_the_other_side(site, files, foreign):
    """Where the attic should be, somebody has a certificate of another authority that says "attic"."""
    zenoh = load_zenoh()
    endpoint = f"tls/127.0.0.1:{free_port()}"
    false = Security(files["attic"].ca, foreign["attic"].certificate, foreign["attic"].key).settings()
    settings = session_settings(endpoint, [], 5.0, false, None)
    relay = Relay(("127.0.0.1", int(endpoint.rpartition(":")[2])))
    site.where["attic"] = f"tls/{relay.address}"
    with zenoh.open(zenoh.Config.from_json5(json.dumps(settings))) as stranger:
        token = stranger.liveliness().declare_token("site/attic/alive")
        try:
            kitchen, hall = (site(name, EDGES, security=files[name]) for name in ("kitchen", "hall"))
            assert kitchen.next() == Connected("hall") and hall.next() == Connected("kitchen")
            for _ in range(3):  # the next attempt is made when the one before has failed
                relay.tried.get(timeout=WAIT)
            assert_at_peace(kitchen, hall)
            assert not stranger.info.peers_zid()
        finally:
            token.undeclare()
            relay.close()


def test_an_agent_cannot_speak_for_another(guarded, site, files, intrude):
    kitchen, hall = guarded
    hall.close()
    assert kitchen.next() == Disconnected("hall")
    session = intrude(site.where["kitchen"], files["hall"].settings())
    tokens = []
    for name in ("attic", "kitchen", "hall"):
        tokens.append(session.liveliness().declare_token(f"site/{name}/alive"))
        for key in ("say", "to/kitchen", "to/attic", "sample"):
            session.put(f"site/{name}/{key}", f"{name} {key}")
    session.put("site/hall/say", b"the end")
    heard = kitchen.until(Received("hall", b"the end"))
    # All that the attic is supposed to have said was refused, and all that the hall said was taken.
    assert heard == [Connected("hall"), Received("hall", b"hall say"), Received("hall", b"hall to/kitchen")]


def test_wild_keys_open_no_door(guarded, site, files, intrude):
    kitchen, hall = guarded
    hall.close()
    assert kitchen.next() == Disconnected("hall")
    session = intrude(site.where["kitchen"], files["hall"].settings())
    for key in ("site/*/say", "site/**", "**", "site/attic$*/say", "site/hall/**"):
        session.put(key, b"to whom it may concern")
        session.delete(key)
    session.put("site/hall/say", b"the end")
    assert kitchen.next() == Received("hall", b"the end")


def test_nobody_overhears_what_is_for_another(guarded, site, files, intrude):
    kitchen, hall = guarded
    attic = site("attic", EDGES, security=files["attic"])
    assert attic.next() == Connected("kitchen") and kitchen.next() == Connected("attic")
    hall.close()
    assert kitchen.next() == Disconnected("hall")
    session, heard = intrude(site.where["kitchen"], files["hall"].settings()), queue.SimpleQueue()
    for key in ("site/kitchen/to/attic", "site/attic/**", "**", "site/kitchen/say"):
        session.declare_subscriber(key, lambda sample: heard.put(sample.payload.to_bytes()))
    session.put("site/hall/say", b"listening", allowed_destination=load_zenoh().Locality.REMOTE)
    assert kitchen.next() == Received("hall", b"listening")
    kitchen.send(b"secret", "attic")
    attic.send(b"secret", "kitchen")
    kitchen.send(b"the end")
    assert attic.take(2) == [Received("kitchen", b"secret"), Received("kitchen", b"the end")]
    assert heard.get(timeout=WAIT) == b"the end"


def test_guests_feed_samples_and_read_predictions_and_no_more(site, files, intrude):
    own = files["kitchen"]
    guarded = Security(own.ca, own.certificate, own.key, guests=["monitor"])
    kitchen = site("kitchen", EDGES, security=guarded)
    samples, heard = queue.SimpleQueue(), queue.SimpleQueue()
    kitchen.link.subscribe("sample", samples.put)
    monitor = intrude(site.where["kitchen"], files["monitor"].settings())
    owner = intrude(site.where["kitchen"], own.settings())
    stranger = intrude(site.where["kitchen"], files["attic"].settings())  # a neighbour, but no guest
    for session, word in ((stranger, b"stranger"), (monitor, b"monitor"), (owner, b"owner")):
        for key in ("say", "prediction", "alert"):
            session.declare_subscriber(f"site/kitchen/{key}", lambda sample, word=word: heard.put((word, sample)))
        session.put("site/kitchen/sample", word)
        session.put("site/hall/say", word)
    assert {samples.get(timeout=WAIT) for _ in range(2)} == {b"monitor", b"owner"}
    kitchen.send(b"not for guests")
    kitchen.link.publish("prediction", b"1")
    kitchen.link.publish("alert", b"2")
    readers = [heard.get(timeout=WAIT) for _ in range(5)]
    assert sorted((word, str(sample.key_expr)) for word, sample in readers) == [
        (b"monitor", "site/kitchen/alert"),
        (b"monitor", "site/kitchen/prediction"),
        (b"owner", "site/kitchen/alert"),
        (b"owner", "site/kitchen/prediction"),
        (b"stranger", "site/kitchen/say"),
    ]
    assert samples.empty() and kitchen.news.empty()


def test_files_that_do_not_fit(tmp_path, files, foreign):
    own, other = files["kitchen"], files["hall"]
    nothing, empty = tmp_path / "nothing.pem", tmp_path / "empty.pem"
    empty.write_bytes(b"")
    for given, kind, message in (
        (Security(nothing, own.certificate, own.key), FileNotFoundError, f"cannot read {nothing}: No such file"),
        (Security(own.ca, nothing, own.key), FileNotFoundError, f"cannot read {nothing}: No such file"),
        (Security(own.ca, own.certificate, nothing), FileNotFoundError, f"cannot read {nothing}: No such file"),
        (Security(tmp_path, own.certificate, own.key), IsADirectoryError, f"cannot read {tmp_path}: Is a directory"),
        (Security(empty, own.certificate, own.key), ValueError, f"^{empty} must hold a certificate in PEM.$"),
        (Security(own.ca, own.key, own.key), ValueError, f"^{own.key} must hold a certificate in PEM.$"),
        (Security(own.ca, own.certificate, own.ca), ValueError, f"^{own.ca} must hold a private key in PEM, without"),
        (Security(own.ca, own.certificate, other.key), ValueError, f"{other.key} is not the key of {own.certificate}"),
        (other, ValueError, f"^{other.certificate} is for hall, not for kitchen.$"),
        (Security(foreign["hall"].ca, own.certificate, own.key), ValueError, "kitchen.crt was not signed by .*ca.pem"),
    ):
        with pytest.raises(kind, match=message):
            ZenohLink("kitchen", listen="tls/127.0.0.1:7447", neighbours={}, deliver=print, security=given)
    with pytest.raises(ValueError, match="listen must begin with 'tls/' since there is security"):
        ZenohLink("kitchen", listen="tcp/127.0.0.1:7447", neighbours={}, deliver=print, security=own)


def test_without_cryptography(monkeypatch, files):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ValueError, match=r"mutual TLS needs cryptography: pip install cryptography, or"):
        files["kitchen"].check("kitchen")
