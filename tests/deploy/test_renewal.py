"""Certificates of a site over time: the commands, and a site that learns on while its certificates change."""

import datetime
import os
import re
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography import x509
from test_runner import NAMES, House, events, run, run_all  # noqa: F401

from laconic.cli import main
from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.operations.renewal import (
    check_certificates,
    renew_certificates,
    retire_authorities,
    revoke_certificates,
)
from laconic.deploy.running.runner import make_agent, open_link
from laconic.deploy.settings.site import Site
from laconic.transport.revocation import read_revoked

pytestmark = pytest.mark.sockets

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines
TEXT = """
[model]
n_inputs = 2
[security]
guests = ["phone"]
[network]
edges = [["kitchen", "hall"]]
[agents.kitchen]
listen = "tls/192.168.1.5:7447"
[agents.hall]
listen = "tls/127.0.0.1:7448"
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site with certificates, in the folder where commands are run."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(TEXT)
    made = Site.read(tmp_path / "site.toml")
    make_certificates(made)
    return made


def files(site):
    return {path.name: path.read_bytes() for path in site.security.certificates.iterdir()}


def changed(site, before):
    after = files(site)
    return {name for name in after if after[name] != before.get(name)}


def common_name(site, name):
    content = (site.security.certificates / f"{name}.crt").read_bytes()
    return x509.load_pem_x509_certificate(content).subject.rfc4514_string()


def states(site, *names, now=None):
    return {(found.name, found.state) for found in check_certificates(site, names, now)}


# Renew, revoke, check ------------------------------------------------------------------------------------------------


def test_renewing_one_or_all_keeps_the_authority_and_the_names(site):
    before = files(site)
    renew_certificates(site, ["hall"])
    assert changed(site, before) == {"hall.crt", "hall.key"}
    renew_certificates(site, days=100)
    assert changed(site, before) == {f"{name}.{end}" for name in ("kitchen", "hall", "phone") for end in ("crt", "key")}
    assert [common_name(site, name) for name in ("kitchen", "hall", "phone")] == ["CN=kitchen", "CN=hall", "CN=phone"]
    assert stat.S_IMODE(site.agent("hall").key.stat().st_mode) == 0o600
    assert all(found.good for found in check_certificates(site))
    with pytest.raises(ValueError, match="has no agent 'hal'; did you mean 'hall'"):
        renew_certificates(site, ["hal"])
    for days in (0, 10**9):
        with pytest.raises(ValueError, match="days must be"):
            renew_certificates(site, days=days)


def test_a_new_authority_is_trusted_beside_the_old_one_until_that_is_retired(site):
    old = files(site)["ca.pem"]
    renew_certificates(site, authority=True)
    both = files(site)["ca.pem"]
    assert both.endswith(old) and both.count(b"BEGIN CERTIFICATE") == 2
    assert (None, "trusted still, signs no more") in states(site)
    assert all(found.good for found in check_certificates(site))
    assert {outcome.what for outcome in make_certificates(site)} == {"kept"}  # by the new one

    hall = site.agent("hall").certificate
    late = hall.read_bytes()
    renew_certificates(site, authority=True)
    new = hall.read_bytes()
    hall.write_bytes(late)
    with pytest.raises(ValueError, match=r"hall\.crt is by an authority before this one: renew it first\."):
        retire_authorities(site)
    hall.write_bytes(new)
    retire_authorities(site)
    assert files(site)["ca.pem"].count(b"BEGIN CERTIFICATE") == 1
    assert states(site) == {(None, "good"), ("kitchen", "good"), ("hall", "good"), ("phone", "good")}


def test_an_interrupted_change_of_authority_leaves_the_old_one_in_charge(site, monkeypatch):
    from laconic.deploy.operations import renewal

    def fail(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(renewal, "write_key", fail)
        with pytest.raises(OSError, match="the disk is full"):
            renew_certificates(site, authority=True)
    assert all(found.good for found in check_certificates(site))
    assert {outcome.what for outcome in make_certificates(site)} == {"kept"}


def test_revoking_puts_names_on_the_list_and_a_new_certificate_has_the_next_name(site):
    before = files(site)
    assert [outcome.what for outcome in revoke_certificates(site, ["kitchen"])] == ["revoked, kitchen"]
    assert changed(site, before) == {"revoked.txt"}
    (line,) = [line for line in site.security.revoked.read_text().splitlines() if not line.startswith("#")]
    serial = x509.load_pem_x509_certificate(before["kitchen.crt"]).serial_number
    assert line.split()[:2] == ["kitchen", f"{serial:x}"]
    assert states(site) == {(None, "good"), ("kitchen", "revoked"), ("hall", "good"), ("phone", "good")}

    # Nobody who was revoked gets another one by the way.
    assert ("kitchen", "left out, since it was revoked") in [outcome[:2] for outcome in make_certificates(site)]
    assert ("kitchen", "left out, since it was revoked") in [outcome[:2] for outcome in renew_certificates(site)]
    assert files(site)["kitchen.crt"] == before["kitchen.crt"]
    assert [outcome.what for outcome in revoke_certificates(site, ["kitchen"])] == ["was revoked before"]

    renew_certificates(site, ["kitchen"])
    assert common_name(site, "kitchen") == "CN=kitchen.2"
    assert {outcome.what for outcome in make_certificates(site)} == {"kept"}
    renew_certificates(site)
    assert common_name(site, "kitchen") == "CN=kitchen.2"  # that was no revocation
    revoke_certificates(site, ["kitchen", "phone"])
    make_certificates(site, only="kitchen")
    assert common_name(site, "kitchen") == "CN=kitchen.3"
    assert read_revoked(site.security.revoked) == {"kitchen", "kitchen.2", "phone"}


def test_what_is_found_wrong(site, tmp_path):
    def found(name, now=None):
        (state,) = {state for who, state in states(site, name, now=now) if who == name}
        return state

    hall, kitchen = site.agent("hall"), site.agent("kitchen")
    now = datetime.datetime.now(datetime.UTC)
    assert found("hall", now + datetime.timedelta(days=729 - 30)) == "good"
    assert found("hall", now + datetime.timedelta(days=729, hours=1) - datetime.timedelta(days=29)) == "ends in 29 days"
    assert found("hall", now + datetime.timedelta(days=731)) == "has ended"
    later = now + datetime.timedelta(days=3640)
    assert (None, "ends in 9 days") in states(site, now=later)
    key, certificate = hall.key.read_bytes(), hall.certificate.read_bytes()
    hall.key.write_bytes(kitchen.key.read_bytes())
    assert found("hall") == "its key is missing or another's"
    hall.key.write_bytes(b"")
    assert found("hall") == "its key cannot be read"
    hall.key.write_bytes(key)
    hall.certificate.write_bytes(kitchen.certificate.read_bytes())
    assert found("hall") == "for kitchen, not for hall"
    hall.certificate.write_bytes(b"")
    assert found("hall") == "cannot be read"
    hall.certificate.unlink()
    assert found("hall") == "missing"
    other = Site.parse(TEXT, tmp_path / "other" / "site.toml")
    make_certificates(other)
    hall.certificate.write_bytes(other.agent("hall").certificate.read_bytes())
    assert found("hall") == "signed by another authority"
    hall.certificate.write_bytes(certificate)
    moved = Site.parse(TEXT.replace("192.168.1.5", "192.168.1.6"), site.file)
    assert ("kitchen", "its address has changed") in states(moved)
    site.security.ca_key.write_bytes(other.security.ca_key.read_bytes())
    assert (None, f"not the key of {site.security.ca}") in states(site)
    site.security.ca_key.unlink()  # as on a device
    assert all(one.good for one in check_certificates(site))
    site.security.ca.unlink()
    assert states(site) == {(None, "missing")}


def said(capsys, code, *words):
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    assert (err == "") == (code != 2)
    return " ".join((out or err).split())


def test_the_commands(site, capsys):
    out = said(capsys, 0, "certs", "check", "site.toml")
    assert re.search(r"hall certs/hall\.crt [0-9a-f]{16} \d{4}-\d\d-\d\d good", out)
    assert "hall certs/hall.crt renewed" in said(capsys, 0, "certs", "renew", "site.toml", "hall", "--days", "20")
    assert re.search("ends in (19|20) days", said(capsys, 1, "certs", "check", "site.toml"))
    assert "hall" not in said(capsys, 0, "certs", "check", "site.toml", "kitchen")
    out = said(capsys, 0, "certs", "revoke", "site.toml", "hall")
    assert "revoked, hall" in out and "Copy certs/revoked.txt to every device" in out
    assert "`laconic certs renew site.toml hall` makes new ones" in out
    assert "revoked" in said(capsys, 1, "certs", "check", "site.toml", "hall")
    said(capsys, 0, "certs", "renew", "site.toml", "hall")
    assert "1 before it still trusted" in said(capsys, 0, "certs", "renew", "site.toml", "--authority")
    assert "1 before it no longer trusted" in said(capsys, 0, "certs", "renew", "site.toml", "--retire")
    said(capsys, 0, "certs", "check", "site.toml")
    for words, sentence in (
        (("revoke", "site.toml"), "certs revoke must be told whose certificate to revoke."),
        (("revoke", "site.toml", "cellar"), "has no agent 'cellar'"),
        (("renew",), "certs renew must be given a site.toml."),
        (("site.toml", "hall"), "names only after renew, revoke, check"),
        (("check", "site.toml", "--retire"), "--retire is for `laconic certs renew`."),
        (("renew", "site.toml", "--retire", "--authority"), "--retire must stand alone"),
        (("renew", "site.toml", "--force"), "--force is not for `laconic certs renew`: give names."),
    ):
        assert sentence in said(capsys, 2, "certs", *words)


# A site that runs ----------------------------------------------------------------------------------------------------


def secure(house):
    """Give the agents of a house certificates."""
    house.file.write_text(house.file.read_text().replace("tcp/", "tls/") + "\n[security]\n")
    house.site = Site.read(house.file)
    make_certificates(house.site)
    return house


@pytest.mark.slow
def test_a_site_learns_on_to_the_bit_while_all_its_certificates_change(tmp_path, run, events):  # noqa: F811
    house = secure(House(tmp_path, NAMES[:3], n_rounds=400, source='kind = "file"\nrate = 50', site="patience = 300"))
    agents = run_all(run, house, progress=0.1)
    for at_round, change in (
        (40, lambda: renew_certificates(house.site)),
        (100, lambda: renew_certificates(house.site, authority=True)),
        (160, lambda: retire_authorities(house.site)),
    ):
        events("progress", lambda record, at_round=at_round: record.round >= at_round)
        change()
        anew = set()
        while len(anew) < 3:
            anew.add(events("certificates changed, connects anew").agent)
    assert [agent.join() for agent in agents] == [0, 0, 0]
    traces, simulated = house.traces(), house.simulate()
    for k, name in enumerate(house.names):
        assert np.array_equal(traces[name]["predictions"], simulated.predictions[:, k])
        assert np.array_equal(traces[name]["duals"], simulated.state.duals[k])


@pytest.mark.slow
def test_a_revoked_agent_is_given_up_and_its_successor_taken_back(tmp_path, run, events):  # noqa: F811
    house = House(tmp_path, NAMES[:3], source='kind = "file"\nloop = true', site="patience = 1")
    agents = run_all(run, secure(house), progress=0.1)
    events("progress", lambda record: record.round >= 20)
    revoke_certificates(house.site, ["cyd"])
    lost = set()
    while lost != {"ada", "bob"}:
        lost.add(events("given up", lambda record: record.neighbour == "cyd" and record.agent != "cyd").agent)
    reached = events("progress", lambda record: record.agent == "ada").round
    events("progress", lambda record: record.agent == "ada" and record.round > reached + 20)  # without it
    renew_certificates(house.site, ["cyd"])
    back = set()
    while back != {"ada", "bob"}:
        back.add(events("connected", lambda record: record.neighbour == "cyd").agent)
    reached = events("progress", lambda record: record.agent == "cyd").round
    events("progress", lambda record: record.agent == "cyd" and record.round > reached + 20)
    assert [agent.stop() for agent in agents] == [143] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["requests", "rubbish"])
def test_an_agent_heeds_sigterm_while_a_neighbour_floods_it(tmp_path, kind):
    house = House(tmp_path, NAMES[:2], site='clock = "slotted"\nslot = 0.05', source='kind = "file"\nloop = true')
    command = [sys.executable, "-m", "laconic", "agent", "--config", str(house.file), "--name", "ada", "--log", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(WAIT, process.kill)
    guard.start()
    here, over = threading.Event(), threading.Event()
    link = open_link(house.site, "bob", lambda news: here.set())
    try:
        assert here.wait(WAIT)
        neighbour = make_agent(house.site, "bob")
        neighbour.rejoin()
        words = [os.urandom(200)] if kind == "rubbish" else [message.data for message in neighbour.outgoing()]

        def flood():
            while not over.is_set():
                for word in words:
                    link.send(word, "ada")

        thread = threading.Thread(target=flood)
        thread.start()
        lines = iter(process.stderr.readline, "")
        assert any('"messages dropped"' in line for line in lines)  # it cannot keep up
        process.send_signal(signal.SIGTERM)
        assert any('"stopped"' in line for line in lines)
        assert process.wait(WAIT) == 128 + signal.SIGTERM  # while the flood goes on
    finally:
        over.set()
        thread.join()
        guard.cancel()
        process.kill()
        process.wait()
        process.stderr.close()
        link.close()
