"""A small certificate authority for a site: one key that signs, and a certificate and key for each agent.

Good for trials and for sites that one person keeps. Each certificate carries its agent's name, by which access is
granted, and the hosts where the agent is found, which its neighbours check when they connect. Keys are P-256; the
authority's is needed only here, to make certificates, and belongs on no device.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from laconic import _validate
from laconic._files import written_whole
from laconic.deploy.settings.site import AgentSettings, SecuritySettings, Site

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_LOCAL = ("localhost", "127.0.0.1", "::1")
_DAYS, _AUTHORITY_DAYS, _MOST_DAYS = 730, 3650, 36_500
_RENEW = datetime.timedelta(days=30)  # a certificate with less time left is renewed
_EARLIER = datetime.timedelta(days=1)  # clocks of devices may be slow
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_NEEDED = "certificates need the package cryptography: install laconic[agents]."


class Outcome(NamedTuple):
    """What became of one certificate: "made", "kept", or "renewed" and why. ``name`` is None for the authority's."""

    name: str | None
    what: str
    path: Path


class _Holder(NamedTuple):
    """Whom a certificate names, where they are found, and where their files lie."""

    name: str
    hosts: tuple[str, ...]
    certificate: Path
    key: Path


class _Authority(NamedTuple):
    certificate: x509.Certificate
    key: EllipticCurvePrivateKey


def make_certificates(
    site: Site, *, only: str | None = None, force: bool = False, days: int = _DAYS
) -> tuple[Outcome, ...]:
    """Make what is missing: the authority, and a certificate and key for each agent and each guest.

    What is there and good is kept. A certificate that another authority signed, that ends within 30 days, that does not
    fit its key, or that does not name where its agent is found now, is renewed.

    Parameters
    ----------
    site : Site
        With a ``[security]`` table.
    only : str, optional
        Make that of this agent or guest alone, with the authority that is there.
    force : bool
        Replace what is there: that one if ``only`` is given, else all, the authority included. A new authority means
        that every agent needs its new certificate before it can speak to the others.
    days : int
        For how long a certificate is good.
    """
    _validate.integer("days", days, least=1, most=_MOST_DAYS)
    security = site.security
    if security is None:
        raise ValueError(f"{site.file} has no [security] table: add one, and make the endpoints 'tls/...'.")
    wanted = _holders(site, security, only)
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ValueError(_NEEDED) from None
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    for path in (security.ca.parent, security.certificates):
        path.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    authority, first = _get_authority(site.name, security, now, new=force and only is None, needed=only is not None)
    return (first, *(_serve(holder, authority, now, days, force) for holder in wanted))


def _holders(site: Site, security: SecuritySettings, only: str | None) -> list[_Holder]:
    """All who need a certificate, or the one who is asked for."""
    folder = security.certificates
    guests = [_Holder(name, _LOCAL, folder / f"{name}.crt", folder / f"{name}.key") for name in security.guests]
    if only is not None and only in security.guests:
        return [guest for guest in guests if guest.name == only]
    agents = []
    for agent in site.agents if only is None else (site.agent(only),):
        assert agent.certificate is not None and agent.key is not None  # there is a [security] table
        agents.append(_Holder(agent.name, _hosts(agent), agent.certificate, agent.key))
    return agents if only is not None else agents + guests


def _get_authority(
    name: str, security: SecuritySettings, now: datetime.datetime, new: bool, needed: bool
) -> tuple[_Authority, Outcome]:
    """The authority that is there, or a new one."""
    if new or not (security.ca.exists() or security.ca_key.exists()):
        if needed:
            raise ValueError(f"{security.ca} does not exist yet: make certificates for the whole site first.")
        authority = _make_authority(name, now)
        # The key first: a certificate without its key could never be completed.
        _write_private(security.ca_key, authority.key)
        _write(security.ca, authority.certificate)
        return authority, Outcome(None, "made", security.ca)
    for path, what in ((security.ca, "certificate"), (security.ca_key, "key")):
        if not path.exists():
            raise ValueError(
                f"{path} is missing, the authority's {what}: bring it back, or begin anew by force, "
                "which replaces the certificates of all agents."
            )
    authority = _Authority(_load_certificate(security.ca), _load_key(security.ca_key))
    if authority.certificate.public_key() != authority.key.public_key():
        raise ValueError(f"{security.ca_key} is not the key of {security.ca}.")
    if authority.certificate.not_valid_after_utc <= now:
        raise ValueError(f"{security.ca} has expired: begin anew by force.")
    return authority, Outcome(None, "kept", security.ca)


def _serve(holder: _Holder, authority: _Authority, now: datetime.datetime, days: int, force: bool) -> Outcome:
    """One certificate and its key: kept if they are good, else made."""
    what = "made"
    if holder.certificate.exists() and holder.key.exists():
        flaw = "as asked" if force else _flaw(holder, authority, now)
        if flaw is None:
            return Outcome(holder.name, "kept", holder.certificate)
        what = f"renewed, {flaw}"
    key = _new_key()
    certificate = _make_certificate(holder, key, authority, now, days)
    for path in (holder.key, holder.certificate):
        path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    _write_private(holder.key, key)
    _write(holder.certificate, certificate)
    return Outcome(holder.name, what, holder.certificate)


def _flaw(holder: _Holder, authority: _Authority, now: datetime.datetime) -> str | None:
    """What is wrong with a certificate that is there."""
    from cryptography.exceptions import InvalidSignature

    try:
        certificate, key = _load_certificate(holder.certificate), _load_key(holder.key)
        certificate.verify_directly_issued_by(authority.certificate)
    except InvalidSignature:
        return "since another authority had signed it"
    except (ValueError, TypeError):
        return "since it could not be read or was not this authority's"
    if certificate.public_key() != key.public_key():
        return "since its key was another's"
    if certificate.not_valid_after_utc - now < _RENEW:
        return "since its time is running out"
    if _names(certificate) != (holder.name, frozenset(holder.hosts)):
        return "since the agent's name or address has changed"
    return None


def _names(certificate: x509.Certificate) -> tuple[str, frozenset[str]]:
    """The common name and the hosts of a certificate."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    common = "".join(str(part.value) for part in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    try:
        listed = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return common, frozenset()
    return common, frozenset(str(name.value) for name in listed)


def _hosts(agent: AgentSettings) -> tuple[str, ...]:
    """Where an agent may be found, addresses in their one canonical form."""
    hosts = [*_LOCAL]
    for place in (agent.listen, agent.reach):
        if not place.everywhere:
            hosts.append(str(_address(place.host) or place.host.lower()))
    return tuple(dict.fromkeys(hosts))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _make_authority(name: str, now: datetime.datetime) -> _Authority:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    subject = _called(f"authority of {name}"[:64])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _make_certificate(
    holder: _Holder, key: EllipticCurvePrivateKey, authority: _Authority, now: datetime.datetime, days: int
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    addresses = [(host, _address(host)) for host in holder.hosts]
    names: list[x509.GeneralName] = [
        x509.DNSName(host) if address is None else x509.IPAddress(address) for host, address in addresses
    ]
    end = min(now + datetime.timedelta(days=days), authority.certificate.not_valid_after_utc)
    # An agent both listens and connects, so its certificate has to serve at either end.
    both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(_called(holder.name))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def _called(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load_certificate(path: Path) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise ValueError(f"{path} is not a certificate that can be read.") from None


def _load_key(path: Path) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):  # TypeError: it is locked with a password
        raise ValueError(f"{path} is not a private key that can be read.") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError(f"{path} must be a key on an elliptic curve.")
    return key


def _write(path: Path, certificate: x509.Certificate) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    with written_whole(path) as file:
        file.write(certificate.public_bytes(Encoding.PEM))


def _write_private(path: Path, key: EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    with written_whole(path) as file:
        Path(file.name).chmod(_PRIVATE_FILE)  # before there is anything to read
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
