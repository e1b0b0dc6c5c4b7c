"""Certificates and keys: made, signed, read and written, as PEM."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from laconic._files import written_whole

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_EARLIER = datetime.timedelta(days=1)  # clocks of devices may be slow
_PRIVATE_FILE = 0o600


class Authority(NamedTuple):
    """A certificate by which others are signed, and its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey


def names_in(certificate: x509.Certificate) -> tuple[str, frozenset[str]]:
    """The common name and the hosts of a certificate."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    common = "".join(str(part.value) for part in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    try:
        listed = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return common, frozenset()
    return common, frozenset(str(name.value) for name in listed)


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is given by; None if it is given by a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def new_key() -> EllipticCurvePrivateKey:
    """A new private key on the curve P-256."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def make_authority(name: str, now: datetime.datetime, days: int) -> Authority:
    """A new authority, of which ``name`` says whose it is."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = new_key()
    subject = _called(f"authority of {name}"[:64])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def make_certificate(
    common: str,
    hosts: Iterable[str],
    key: EllipticCurvePrivateKey,
    authority: Authority,
    now: datetime.datetime,
    days: int,
) -> x509.Certificate:
    """A certificate that says: whoever has ``key`` is ``common``, and is found at ``hosts``."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    addresses = [(host, as_address(host)) for host in hosts]
    names: list[x509.GeneralName] = [
        x509.DNSName(host) if address is None else x509.IPAddress(address) for host, address in addresses
    ]
    end = min(now + datetime.timedelta(days=days), authority.certificate.not_valid_after_utc)
    # An agent both listens and connects, so its certificate has to serve at either end.
    both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(_called(common))
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


def load_certificates(path: Path) -> list[x509.Certificate]:
    """All certificates of a file, at least one."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except ValueError:
        raise ValueError(f"{path} is not a certificate that can be read.") from None


def load_key(path: Path) -> EllipticCurvePrivateKey:
    """The private key of a file."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):  # TypeError: it is locked with a password
        raise ValueError(f"{path} is not a private key that can be read.") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError(f"{path} must be a key on an elliptic curve.")
    return key


def write_certificates(path: Path, *certificates: x509.Certificate) -> None:
    """Write certificates to a file, whole or not at all."""
    from cryptography.hazmat.primitives.serialization import Encoding

    with written_whole(path) as file:
        file.write(b"".join(one.public_bytes(Encoding.PEM) for one in certificates))


def write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    """Write a private key to a file that its owner alone can read."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    with written_whole(path, _PRIVATE_FILE) as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def is_issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether ``issuer`` signed the certificate."""
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
