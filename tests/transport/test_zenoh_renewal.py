"""Certificates replaced and revoked while links are open, with real sessions over TLS."""

import json
import logging
import queue
import threading
from contextlib import ExitStack, suppress

import pytest
from ports import free_port
from zenoh_places import WAIT

from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.operations.renewal import renew_certificates, retire_authorities, revoke_certificates
from laconic.deploy.settings.site import Site
from laconic.transport import Connected, Disconnected, Received, zenoh_renewal
from laconic.transport.link import Noticed
from laconic.transport.revocation import read_revoked
from laconic.transport.zenoh import Security, ZenohLink, load_zenoh
from laconic.transport.zenoh_asking import ask
from laconic.transport.zenoh_renewal import DAY, SOON, RenewingLink
from laconic.transport.zenoh_settings import session_settings

pytestmark = pytest.mark.sockets

NAMES = ("attic", "hall", "kitchen")
NOW = 1_800_000_000.0


class House:
    """Links of three agents on a line, attic - hall - kitchen, and their certificates."""

    def __init__(self, folder, stack):
        self.stack, self.folder = stack, folder
        self.where = {name: f"tls/127.0.0.1:{free_port()}" for name in NAMES}
        agents = "".join(f'[agents.{name}]\nlisten = "{place}"\n' for name, place in self.where.items())
        text = '[model]\nn_inputs = 2\n[network]\nedges = [["attic", "hall"], ["hall", "kitchen"]]\n[security]\n'
        (folder / "site.toml").write_text(text + agents)
        self.site = Site.read(folder / "site.toml")
        make_certificates(self.site)

    def security(self, name):
        agent, files = self.site.agent(name), self.site.security
        return Security(files.ca, agent.certificate, agent.key, (), files.revoked, NAMES)

    def open(self, name, security=None, listen=True, kind=RenewingLink, **options):
        """A link of an agent, and what it delivers."""
        news, notices = queue.SimpleQueue(), []
        if kind is RenewingLink:
            options = {"every": None, **options}
        link = kind(
            name,
            deliver=lambda item: notices.append(item) if isinstance(item, Noticed) else news.put(item),
            security=security or self.security(name),
            listen=self.where[name] if listen else None,
            neighbours={other: self.where[other] for other in self.site.neighbours(name)},
            **options,
        )
        self.stack.callback(link.close)
        link.next = lambda: news.get(timeout=WAIT)
        link.news, link.notices = news, notices
        return link

    def copy(self, name, folder):
        """The files of an agent as they are now, kept by somebody."""
        folder = self.folder / folder
        folder.mkdir()
        own = self.security(name)
        kept = Security(*(folder / path.name for path in (own.ca, own.certificate, own.key)))
        for old, new in zip((own.ca, own.certificate, own.key), (kept.ca, kept.certificate, kept.key), strict=True):
            new.write_bytes(old.read_bytes())
        return kept

    def spy(self, name, security, patience=WAIT):
        """A session with somebody's certificate and no manners, connected to an agent."""
        zenoh = load_zenoh()
        settings = session_settings(None, [self.where[name]], 5.0, security.settings(), None)
        settings["connect"] |= {"timeout_ms": int(1000 * patience), "exit_on_failure": True}
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
        self.stack.callback(session.close)
        return session


@pytest.fixture
def house(tmp_path):
    with ExitStack() as stack:
        yield House(tmp_path, stack)


def talk(one, two):
    """Each hears the other."""
    one.send(b"to you", two.name)
    two.send(b"to you", one.name)
    assert two.next() == Received(one.name, b"to you") and one.next() == Received(two.name, b"to you")


def meet(one, two):
    assert one.next() == Connected(two.name) and two.next() == Connected(one.name)


def part(one, two):
    assert one.next() == Disconnected(two.name) and two.next() == Disconnected(one.name)


@pytest.fixture
def pair(house):
    """The hall and the kitchen, who have met."""
    hall, kitchen = house.open("hall"), house.open("kitchen")
    meet(hall, kitchen)
    return hall, kitchen


def events(caplog):
    return [record.msg for record in caplog.records if record.name == zenoh_renewal.__name__]


# Renewed -------------------------------------------------------------------------------------------------------------


def test_a_renewed_certificate_is_taken_up_and_the_neighbours_see_a_moment_of_absence(house, pair):
    hall, kitchen = pair
    kitchen.look(NOW)
    talk(hall, kitchen)  # nothing has changed
    renew_certificates(house.site, ["kitchen"])
    kitchen.look(NOW)
    part(kitchen, hall)
    meet(hall, kitchen)
    talk(hall, kitchen)
    hall.look(NOW)  # nobody else had to do anything
    talk(hall, kitchen)


def test_a_session_sees_no_new_files_by_itself(house):
    """Why sessions are opened anew: zenoh goes on with what it read at first."""
    hall = house.open("hall", kind=ZenohLink)
    old = house.copy("kitchen", "old")
    make_certificates(house.site, force=True)  # another authority
    meet(hall, house.open("kitchen", old, kind=ZenohLink))


def test_a_new_authority_one_agent_after_the_other_and_the_old_one_retired(house):
    attic, hall, kitchen = links = [house.open(name) for name in NAMES]
    assert {hall.next(), hall.next()} == {Connected("attic"), Connected("kitchen")}
    assert attic.next() == kitchen.next() == Connected("hall")
    old = house.copy("kitchen", "old")
    with pytest.raises(ValueError, match="--authority is for all at once"):
        renew_certificates(house.site, ["hall"], authority=True)
    renew_certificates(house.site, authority=True)
    for step in ("renewed", "retired"):
        if step == "retired":
            retire_authorities(house.site)
        for link in links:
            link.look(NOW)
        for one, two in ((attic, hall), (hall, attic), (hall, kitchen), (kitchen, hall)):
            reach(one, two, step.encode())
        # One that has heard of the new authority and has no new certificate yet.
        late = Security(house.site.security.ca, old.certificate, old.key)
        if step == "renewed":
            house.spy("hall", late).close()
    with pytest.raises(load_zenoh().ZError):
        house.spy("hall", late, patience=0.0)


def reach(one, two, word):
    """Say a word until it is heard, however often both see each other come and go meanwhile."""
    for _ in range(int(20 * WAIT)):
        one.send(word, two.name)
        with suppress(queue.Empty):
            while True:
                if two.news.get(timeout=0.05) == Received(one.name, word):
                    return
    pytest.fail(f"{two.name} never heard {one.name}")


def test_the_thread_finds_what_has_changed(house):
    hall, kitchen = house.open("hall"), house.open("kitchen", every=0.02)
    meet(hall, kitchen)
    for _ in range(2):
        renew_certificates(house.site, ["kitchen"])
        part(kitchen, hall)
        meet(hall, kitchen)
    talk(hall, kitchen)


def test_whoever_listens_on_a_key_goes_on_to(house):
    hall = house.open("hall")
    heard = queue.SimpleQueue()
    subscription = hall.session.declare_subscriber(
        "site/hall/sample", lambda sample: heard.put(sample.payload.to_bytes())
    )
    for word in (b"before", b"after"):
        sensor = house.spy("hall", house.security("hall"))  # an agent's own certificate may feed it
        sensor.put("site/hall/sample", word)
        assert heard.get(timeout=WAIT) == word
        sensor.close()
        renew_certificates(house.site, ["hall"])
        hall.look(NOW)
    subscription.undeclare()
    renew_certificates(house.site, ["hall"])
    hall.look(NOW)


@pytest.mark.slow
def test_what_is_sent_meanwhile_does_no_harm(house, pair):
    hall, kitchen = pair
    over = threading.Event()
    failures = []

    def send():
        try:
            while not over.is_set():
                kitchen.send(b"x")
                kitchen.publish("prediction", b"x")
        except BaseException as error:
            failures.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(5):
        renew_certificates(house.site, ["kitchen"])
        kitchen.look(NOW)
        while hall.next() != Connected("kitchen"):
            pass
    over.set()
    sender.join()
    assert not failures
    kitchen.send(b"the end")
    while hall.next() != Received("kitchen", b"the end"):
        pass


def test_a_port_that_is_not_free_at_once_is_tried_again(house, pair, monkeypatch, caplog):
    hall, kitchen = pair
    renew_certificates(house.site, ["kitchen"])

    def fail(*_, **__):
        raise OSError("cannot listen on there: address in use.")

    with monkeypatch.context() as patch:
        patch.setattr(zenoh_renewal, "ZenohLink", fail)
        for _ in range(2):
            kitchen.look(NOW)
            kitchen.send(b"lost")
            kitchen.publish("alert", b"lost")
    part(kitchen, hall)
    assert events(caplog).count("cannot connect anew") == 1
    kitchen.look(NOW)
    meet(hall, kitchen)
    talk(hall, kitchen)


def test_files_that_do_not_fit_change_nothing_and_are_told_if_they_stay(house, pair, caplog):
    hall, kitchen = pair
    own = house.security("kitchen")
    good = own.certificate.read_bytes()
    for content, why in (
        (house.security("hall").certificate.read_bytes(), "is not the key of"),
        (b"rubbish", "must hold a certificate in PEM"),
        (None, "cannot read"),
    ):
        caplog.clear()
        own.certificate.unlink() if content is None else own.certificate.write_bytes(content)
        kitchen.look(NOW)
        assert "certificates refused" not in events(caplog)  # the rest may be on its way
        kitchen.look(NOW)
        kitchen.look(NOW)
        (record,) = [record for record in caplog.records if record.msg == "certificates refused"]
        assert why in record.why
        talk(hall, kitchen)
    own.certificate.write_bytes(good)
    kitchen.look(NOW)  # as it was: no reason to part
    talk(hall, kitchen)


# Revoked -------------------------------------------------------------------------------------------------------------


def test_a_revoked_certificate_is_neither_heard_nor_told_and_its_successor_is(house, caplog):
    """(M5) Before, a certificate that was replaced was still admitted."""
    hall, attic, kitchen = (house.open(name) for name in ("hall", "attic", "kitchen"))
    assert {hall.next(), hall.next()} == {Connected("attic"), Connected("kitchen")}
    assert attic.next() == kitchen.next() == Connected("hall")
    stolen = house.copy("kitchen", "stolen")
    revoke_certificates(house.site, ["kitchen"])
    kitchen.close()
    hall.look(NOW)
    news = [hall.next() for _ in range(3)]
    assert sorted(news[:2]) == [("attic",), ("kitchen",)] and news[2] == Connected("attic")
    assert [attic.next(), attic.next()] == [Disconnected("hall"), Connected("hall")]

    watcher, alerts = house.spy("hall", house.security("hall")), queue.SimpleQueue()
    watcher.declare_subscriber("site/hall/alert", lambda sample: alerts.put(json.loads(sample.payload.to_bytes())))
    thief, heard = house.spy("hall", stolen), queue.SimpleQueue()
    for key in ("**", "site/hall/say", "site/hall/to/kitchen", "site/hall/alert"):
        thief.declare_subscriber(key, heard.put)
    token = thief.liveliness().declare_token("site/kitchen/alive")
    for key in ("say", "to/hall"):
        thief.put(f"site/kitchen/{key}", b"from the thief", allowed_destination=load_zenoh().Locality.REMOTE)
    alert = None
    for day in range(int(20 * WAIT)):  # until the watcher listens
        hall.send(b"secret", "kitchen")
        hall.look(NOW + day * DAY)
        with suppress(queue.Empty):
            alert = alerts.get(timeout=0.05)
            break
    assert (alert["agent"], alert["event"], alert["certificate"]) == ("hall", "revoked certificate in use", "kitchen")
    assert "revoked certificate in use" in events(caplog)

    renew_certificates(house.site, ["kitchen"])
    kitchen = house.open("kitchen")
    meet(hall, kitchen)  # and the thief, who said so before, had not been there
    talk(hall, kitchen)
    thief.put("site/kitchen/say", b"from the thief", allowed_destination=load_zenoh().Locality.REMOTE)
    talk(hall, attic)
    token.undeclare()
    talk(hall, kitchen)
    assert hall.news.empty() and heard.empty()


def test_an_agent_answers_no_revoked_certificate_be_it_a_neighbours_or_not(house):
    """The attic is no neighbour of the kitchen, but may be asked by all members."""
    attic = house.open("attic")
    attic.answer("status", lambda question: question.reply(b"well"))
    stolen = house.copy("kitchen", "stolen")

    def ask_attic(security, patience=WAIT):
        return ask(load_zenoh(), "site/attic/status", house.where["attic"], security=security, timeout=patience)

    assert ask_attic(stolen) == b"well"
    revoke_certificates(house.site, ["kitchen"])
    attic.look(NOW)
    assert ask_attic(stolen, patience=1.0) is None
    assert ask_attic(house.security("hall")) == b"well"
    renew_certificates(house.site, ["kitchen"])
    assert ask_attic(house.security("kitchen")) == b"well"


def test_every_use_of_a_revoked_certificate_is_reported_however_short(house):
    attic = house.open("attic")
    stolen = house.copy("kitchen", "stolen")

    def attempts(expected):
        """What is reported until so many attempts are."""
        attic.notices.clear()
        for _ in range(int(20 * WAIT)):
            attic.look(NOW)
            told = [json.loads(notice.said) for notice in attic.notices]
            if sum(one.get("attempts", 0) for one in told) >= expected:
                return {(one["event"], one["certificate"], one["at"].rpartition(":")[0]) for one in told}
            threading.Event().wait(0.05)
        pytest.fail(f"not all of {expected} attempts were reported: {attic.notices}")

    house.spy("attic", stolen).close()
    revoke_certificates(house.site, ["kitchen"])
    reported = {("revoked certificate in use", "kitchen", "tls/127.0.0.1")}
    assert attempts(1) == reported  # before the attic knew
    for number in (3, 1):
        for _ in range(number):
            house.spy("attic", stolen).close()
        assert attempts(number) == reported
    house.spy("attic", house.security("hall")).close()
    attic.notices.clear()
    attic.look(NOW)
    assert not attic.notices


def test_a_revoked_neighbour_that_others_connect_to_is_not_heard_either(house):
    """The attic is the one that others connect to; somebody with its old certificate sits in its place."""
    stolen = house.copy("attic", "stolen")
    revoke_certificates(house.site, ["attic"])
    thief = house.open("attic", stolen, kind=ZenohLink)
    hall, kitchen = house.open("hall"), house.open("kitchen")
    meet(hall, kitchen)
    for _ in range(int(20 * WAIT)):
        thief.send(b"from the thief")
        hall.send(b"secret", "attic")
        talk(hall, kitchen)
        if thief.session.info.peers_zid():  # it has a connection, and nothing by it
            break
    else:
        pytest.fail("nobody ever connected")
    thief.send(b"from the thief")
    talk(hall, kitchen)
    assert hall.news.empty() and thief.news.empty()


def test_an_agent_whose_certificate_is_revoked_says_so_and_takes_up_a_new_one(house, pair, caplog):
    hall, kitchen = pair
    revoke_certificates(house.site, ["kitchen"])
    with pytest.raises(ValueError, match=r"kitchen\.crt was revoked: kitchen needs a new one\."):
        house.security("kitchen").check("kitchen")
    for _ in range(2):
        kitchen.look(NOW)
    assert "certificates refused" in events(caplog)
    hall.look(NOW)
    part(hall, kitchen)
    renew_certificates(house.site, ["kitchen"])
    kitchen.look(NOW)
    meet(hall, kitchen)
    talk(hall, kitchen)


def test_a_list_that_is_no_list_or_vanishes_lets_nobody_in(house, pair, caplog):
    hall, kitchen = pair
    path = house.site.security.revoked
    path.write_text("")
    hall.look(NOW)
    for content in (b"{'kitchen': 1}\n", None):
        caplog.clear()
        path.unlink() if content is None else path.write_bytes(content)
        for _ in range(2):
            hall.look(NOW)
        assert events(caplog) == ["certificates refused"]
    talk(hall, kitchen)
    path.write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match=r"revoked\.txt must have a common name at the beginning of each line"):
        house.open("attic")


def test_what_is_on_a_list(tmp_path):
    path = tmp_path / "revoked.txt"
    assert read_revoked(path) == read_revoked(None) == frozenset()
    path.write_text("# of no interest\nkitchen  12ab  2030-01-01\n\n  hall.2 # twice\n")
    assert read_revoked(path) == {"kitchen", "hall.2"}
    path.write_bytes(b"kitchen\n" * 200_000)
    with pytest.raises(ValueError, match="at most"):
        read_revoked(path)


# Soon over -----------------------------------------------------------------------------------------------------------


def test_a_certificate_that_ends_within_a_month_is_warned_of_once_a_day(house, caplog):
    renew_certificates(house.site, ["hall"], days=100)
    hall = house.open("hall")
    end = hall.security.ends()[hall.security.certificate].timestamp()

    def warned(now):
        caplog.clear()
        hall.look(now)
        return [(record.path, record.days) for record in caplog.records if record.msg == "certificate ends soon"]

    caplog.set_level(logging.WARNING)
    assert warned(end - SOON - DAY) == []
    own = str(hall.security.certificate)
    assert warned(end - SOON + 1) == [(own, 29)]
    assert warned(end - SOON + 2) == warned(end - SOON + DAY) == []
    assert warned(end - SOON + DAY + 1) == [(own, 28)]
    of_authority = hall.security.ends()[hall.security.ca].timestamp()
    assert [path for path, _ in warned(of_authority - DAY)] == [own, str(hall.security.ca)]
    assert [(notice.event, json.loads(notice.said)["days"]) for notice in hall.notices][:2] == [
        ("certificate ends soon", 29),
        ("certificate ends soon", 28),
    ]
