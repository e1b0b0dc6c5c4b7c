"""Certificates of a site: what is in them, what is kept and what renewed, and that zenoh lets in whom they name."""

import datetime
import ipaddress
import json
import os
import queue
import re
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from ports import free_port

from laconic.cli import main
from laconic.deploy.operations import certificates
from laconic.deploy.operations.certificates import make_certificates
from laconic.deploy.settings.site import Site

TEXT = """
[model]
n_inputs = 2
[security]
[network]
edges = [["kitchen", "hall"]]
[agents.kitchen]
listen = "tls/192.168.1.5:7447"
[agents.hall]
listen = "tls/0.0.0.0:7448"
reach = "tls/Hall.example.org:7448"
"""
LONG = 300.0  # seconds: a wait that only a mistake makes this long


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A site's file in a folder of its own, where commands are run."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(TEXT)
    return tmp_path / "site.toml"


def certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def extension(path, kind):
    return certificate(path).extensions.get_extension_for_class(kind)


def what(outcomes):
    return {outcome.name: outcome.what for outcome in outcomes}


def test_what_is_in_them(file):
    site = Site.read(file)
    make_certificates(site)
    ca = site.security.ca
    assert extension(ca, x509.BasicConstraints).value == x509.BasicConstraints(ca=True, path_length=0)
    assert extension(ca, x509.BasicConstraints).critical
    usage = extension(ca, x509.KeyUsage)
    assert usage.value.key_cert_sign and not usage.value.digital_signature and usage.critical

    now = datetime.datetime.now(datetime.UTC)
    for name in ("kitchen", "hall"):
        agent = site.agent(name)
        made = certificate(agent.certificate)
        made.verify_directly_issued_by(certificate(ca))
        assert made.version is x509.Version.v3
        assert [part.value for part in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [name]
        assert made.not_valid_before_utc < now - datetime.timedelta(hours=1)
        assert datetime.timedelta(days=729) < made.not_valid_after_utc - now <= datetime.timedelta(days=730)
        assert not extension(agent.certificate, x509.BasicConstraints).value.ca
        assert extension(agent.certificate, x509.KeyUsage).value.digital_signature
        both = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
        assert set(extension(agent.certificate, x509.ExtendedKeyUsage).value) == both
        assert load_key(agent.key.read_bytes(), None).public_key() == made.public_key()
        assert made.public_key().curve.name == "secp256r1"
    local = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    names = extension(site.agent("kitchen").certificate, x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [*local, ipaddress.ip_address("192.168.1.5")]
    names = extension(site.agent("hall").certificate, x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "hall.example.org"]
    assert names.get_values_for_type(x509.IPAddress) == local  # that it listens everywhere is no name

    serials = {certificate(path).serial_number for path in (ca, *(agent.certificate for agent in site.agents))}
    assert len(serials) == 3


def test_keys_are_private(file):
    old = os.umask(0)
    try:
        site = Site.read(file)
        make_certificates(site)
    finally:
        os.umask(old)
    for path in (site.security.ca_key, *(agent.key for agent in site.agents)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.security.certificates.stat().st_mode) == 0o700
    assert sorted(path.name for path in site.security.certificates.iterdir()) == [
        "ca-key.pem", "ca.pem", "hall.crt", "hall.key", "kitchen.crt", "kitchen.key",
    ]  # fmt: skip


def files(site):
    return {path.name: path.read_bytes() for path in site.security.certificates.iterdir()}


def test_what_is_good_is_kept(file):
    site = Site.read(file)
    assert what(make_certificates(site)) == {None: "made", "kitchen": "made", "hall": "made"}
    before = files(site)
    assert what(make_certificates(site)) == {None: "kept", "kitchen": "kept", "hall": "kept"}
    assert files(site) == before


def test_an_agent_is_added_later(file):
    site = Site.read(file)
    with pytest.raises(ValueError, match=r"ca.pem does not exist yet: make certificates for the whole site first"):
        make_certificates(site, only="hall")
    make_certificates(site)
    before = files(site)
    text = TEXT.replace('"hall"]', '"hall"], ["hall", "attic"]') + '[agents.attic]\nlisten = "tls/127.0.0.1:7449"\n'
    file.write_text(text)
    grown = Site.read(file)
    assert what(make_certificates(grown, only="attic")) == {None: "kept", "attic": "made"}
    after = files(grown)
    assert set(after) - set(before) == {"attic.crt", "attic.key"} and before.items() <= after.items()
    certificate(grown.agent("attic").certificate).verify_directly_issued_by(certificate(grown.security.ca))
    with pytest.raises(ValueError, match=r"has no agent 'attik'; did you mean 'attic'\?"):
        make_certificates(grown, only="attik")


def test_force_replaces_one_or_all(file):
    site = Site.read(file)
    make_certificates(site)
    before = files(site)
    assert what(make_certificates(site, only="hall", force=True)) == {None: "kept", "hall": "renewed, as asked"}
    after = files(site)
    assert {name for name in after if after[name] != before[name]} == {"hall.crt", "hall.key"}
    make_certificates(site, force=True)
    assert not set(files(site).values()) & set(after.values())
    for agent in site.agents:
        certificate(agent.certificate).verify_directly_issued_by(certificate(site.security.ca))


def test_what_is_not_good_is_renewed(file, tmp_path):
    site = Site.read(file)
    make_certificates(site)
    hall, kitchen = site.agent("hall"), site.agent("kitchen")

    hall.key.write_bytes(kitchen.key.read_bytes())
    assert what(make_certificates(site)) == {
        None: "kept",
        "kitchen": "kept",
        "hall": "renewed, since its key was another's",
    }
    hall.key.unlink()
    assert what(make_certificates(site))["hall"] == "made"
    hall.certificate.write_text("rubbish")
    assert "could not be read" in what(make_certificates(site))["hall"]
    hall.key.write_text("")
    assert "could not be read" in what(make_certificates(site))["hall"]
    make_certificates(site, only="hall", force=True, days=29)
    assert what(make_certificates(site))["hall"] == "renewed, since its time is running out"
    file.write_text(TEXT.replace("192.168.1.5", "192.168.1.6"))
    moved = what(make_certificates(Site.read(file)))
    assert moved == {None: "kept", "kitchen": "renewed, since the agent's name or address has changed", "hall": "kept"}

    other = Site.parse(TEXT, tmp_path / "other" / "site.toml")
    make_certificates(other)
    for theirs, ours in ((other.agent("hall").certificate, hall.certificate), (other.agent("hall").key, hall.key)):
        ours.write_bytes(theirs.read_bytes())
    assert what(make_certificates(site))["hall"] == "renewed, since another authority had signed it"
    assert {outcome.what for outcome in make_certificates(site)} == {"kept"}


def test_a_certificate_does_not_outlive_its_authority(file):
    site = Site.read(file)
    make_certificates(site, days=36_500)
    assert (
        certificate(site.agent("hall").certificate).not_valid_after_utc
        == certificate(site.security.ca).not_valid_after_utc
    )


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def test_a_broken_authority_is_not_replaced_by_itself(file, tmp_path, monkeypatch):
    site = Site.read(file)
    make_certificates(site)
    security, good = site.security, files(site)
    other = Site.parse(TEXT, tmp_path / "other" / "site.toml")
    make_certificates(other)
    elsewhere = load_key(other.security.ca_key.read_bytes(), None)
    locked = pem(elsewhere, BestAvailableEncryption(b"word"))
    broken = {
        "is not a private key that can be read": (security.ca_key, b"-----BEGIN"),
        "ca-key.pem is not a private key": (security.ca_key, locked),
        "must be a key on an elliptic curve": (security.ca_key, pem(rsa.generate_private_key(65537, 2048))),
        "is not the key of": (security.ca_key, pem(elsewhere)),
        "is not a certificate that can be read": (security.ca, b""),
        "ca-key.pem is missing, the authority's key": (security.ca_key, None),
        "ca.pem is missing, the authority's certificate": (security.ca, None),
    }
    for expected, (path, content) in broken.items():
        kept = path.read_bytes()
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(expected)):
            make_certificates(site)
        assert path.exists() == (content is not None)
        path.write_bytes(kept)
    assert files(site) == good

    monkeypatch.setattr(certificates, "AUTHORITY_DAYS", 0)
    make_certificates(site, force=True)
    with pytest.raises(ValueError, match="ca.pem has expired: begin anew by force"):
        make_certificates(site)


def test_guests_have_certificates_too(file):
    file.write_text(TEXT.replace("[security]", '[security]\nguests = ["sensor", "phone"]'))
    site = Site.read(file)
    assert site.security.guests == ("sensor", "phone")
    made = {None: "made", "kitchen": "made", "hall": "made", "sensor": "made", "phone": "made"}
    assert what(make_certificates(site)) == made
    path = site.security.certificates / "phone.crt"
    assert certificate(path).subject.rfc4514_string() == "CN=phone"
    assert what(make_certificates(site)) == dict.fromkeys(made, "kept")
    assert what(make_certificates(site, only="phone", force=True)) == {None: "kept", "phone": "renewed, as asked"}


def test_bad_input(file):
    plain = Site.parse(TEXT.replace("[security]", "").replace("tls/", "tcp/"), file)
    with pytest.raises(ValueError, match=r"has no \[security\] table: add one"):
        make_certificates(plain)
    for days in (0, -1, 1.5, 10**9):
        with pytest.raises(ValueError, match="days must be"):
            make_certificates(Site.read(file), days=days)
    assert not (file.parent / "certs").exists()


# ---- from the command line --------------------------------------------------------------------------------------


def said(capsys, code, *words):
    assert main([str(word) for word in words]) == code
    out, err = capsys.readouterr()
    assert (out == "") == (code != 0) and (err == "") == (code == 0)
    return out or err


def test_certs_tells_what_it_did(file, capsys):
    out = said(capsys, 0, "certs", "site.toml")
    assert re.search(r"^authority +certs/ca.pem +made$", out, re.MULTILINE)
    assert re.search(r"^kitchen +certs/kitchen.crt +made$", out, re.MULTILINE)
    assert "certs/ca-key.pem signs certificates: keep it here" in " ".join(out.split())
    assert re.search(r"^hall +certs/hall.crt +kept$", said(capsys, 0, "certs", "site.toml"), re.MULTILINE)
    out = said(capsys, 0, "certs", "site.toml", "--for", "hall", "--force", "--days", "100")
    assert "renewed, as asked" in out and "kitchen" not in out
    assert "has no agent 'hal'; did you mean 'hall'?" in said(capsys, 2, "certs", "site.toml", "--for", "hal")
    assert "there is no file 'absent.toml'" in said(capsys, 2, "certs", "absent.toml")


def test_init_can_be_secure_at_once(file, capsys):
    out = said(capsys, 0, "init", "home", "--secure", "--agents", "3")
    assert "laconic up home/site.toml" in out and "home/certs/study.crt" in out
    site = Site.read("home/site.toml")
    assert all(agent.listen.startswith("tls/") for agent in site.agents)
    assert {outcome.what for outcome in make_certificates(site)} == {"kept"}
    before = files(site)
    said(capsys, 0, "init", "home", "--secure", "--agents", "3", "--force")
    assert files(site) == before  # not even force takes an authority that certificates depend on


def test_init_can_be_made_secure_later(file, capsys):
    said(capsys, 0, "init", "home")
    path = file.parent / "home" / "site.toml"
    text = path.read_text()
    for line in ("[security]", 'certificates = "certs"', 'ca = "certs/ca.pem"'):
        assert f"\n# {line}" in text
        text = text.replace(f"\n# {line}", f"\n{line}")
    path.write_text(text.replace("tcp/", "tls/"))
    assert "cellar" in said(capsys, 0, "certs", path)


# ---- zenoh ------------------------------------------------------------------------------------------------------


def opened(way, place, agent, ca, **more):
    """A zenoh session by mutual TLS with an agent's certificate, or with none."""
    import zenoh

    config = zenoh.Config()
    settings = {"mode": "peer", "listen/endpoints": [], f"{way}/endpoints": [place]}
    settings |= {"scouting/multicast/enabled": False, "scouting/gossip/enabled": False, "scouting/delay": 0}
    tls = {"root_ca_certificate": str(ca), "enable_mtls": True, "verify_name_on_connect": True, **more}
    if agent is not None:
        both = (str(agent.certificate), str(agent.key))
        tls |= dict(zip(("listen_certificate", "listen_private_key"), both, strict=True))
        tls |= dict(zip(("connect_certificate", "connect_private_key"), both, strict=True))
    settings["transport/link/tls"] = tls
    if way == "connect":
        settings |= {"connect/timeout_ms": 0, "connect/exit_on_failure": True}
    for key, value in settings.items():
        config.insert_json5(key, json.dumps(value))
    return zenoh.open(config)


@pytest.mark.sockets
def test_zenoh_lets_in_whom_the_authority_vouches_for(file, tmp_path):
    import zenoh

    port = free_port()
    text = TEXT.replace("192.168.1.5:7447", f"localhost:{port}")
    site, other = Site.parse(text, file), Site.parse(text, tmp_path / "other" / "site.toml")
    make_certificates(site)
    make_certificates(other)
    ca = site.security.ca
    listener = opened("listen", f"tls/127.0.0.1:{port}", site.agent("kitchen"), ca)
    heard = queue.SimpleQueue()
    subscriber = listener.declare_subscriber("said", lambda sample: heard.put(bytes(sample.payload)))
    here = queue.SimpleQueue()
    watch = listener.liveliness().declare_subscriber(
        "here/*", lambda sample: here.put(str(sample.key_expr)) if sample.kind == zenoh.SampleKind.PUT else None
    )
    try:
        for host in ("127.0.0.1", "localhost"):  # by address and by name, both of which its certificate has
            session = opened("connect", f"tls/{host}:{port}", site.agent("hall"), ca)
            token = session.liveliness().declare_token(f"here/{host}")  # so that the other side can be waited for
            assert here.get(timeout=LONG) == f"here/{host}"
            session.put("said", host.encode(), congestion_control=zenoh.CongestionControl.BLOCK)
            assert heard.get(timeout=LONG) == host.encode()
            token.undeclare()
            session.close()
        strangers = {
            "another authority's": (other.agent("hall"), ca),
            "none": (None, ca),
            "one who does not trust us": (site.agent("hall"), other.security.ca),
        }
        for agent, trusted in strangers.values():
            with pytest.raises(zenoh.ZError):
                opened("connect", f"tls/127.0.0.1:{port}", agent, trusted).close()
        assert heard.empty()
    finally:
        subscriber.undeclare()
        watch.undeclare()
        listener.close()
