"""Who may say what over zenoh: mutual TLS, and rules by the name in a certificate.

A certificate's common name is its agent's name, followed by a number once one was revoked: see ``revocation``. Each
agent takes messages and signs of life on ``<site>/NAME/...`` only from the link whose certificate says NAME, and gives
its own only to its neighbours. All else is denied.
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from laconic import _extras
from laconic.transport.revocation import belongs, common_name, read_revoked

if TYPE_CHECKING:
    from cryptography import x509

#: What an agent tells those who are not its neighbours.
OUTLETS = ("prediction", "alert")
#: What it may be asked by members of its site and guests.
ASKED = ("predict", "model", "status")

_SAY = ["put", "liveliness_token"]
_ASK = ["declare_subscriber", "declare_liveliness_subscriber", "liveliness_query"]


@final
@dataclass(frozen=True)
class Security:
    """The files of one agent for mutual TLS, all in PEM.

    Parameters
    ----------
    ca : path
        Certificate of the authority that all agents of a site trust.
    certificate : path
        The agent's own, signed by that authority. Its common name is the agent's name, and it names the hosts where the
        agent listens, since those who connect check that.
    key : path
        The private key of ``certificate``.
    guests : sequence of str
        Common names of those who may feed the agent samples and read its predictions and alerts, besides whoever has
        the agent's own certificate.
    revoked : path, optional
        List of certificates that are no longer good; there need not be such a file.
    members : sequence of str
        Names of all agents of the site: they may ask the agent what guests may ask.
    """

    ca: Path
    certificate: Path
    key: Path
    guests: Sequence[str] = ()
    revoked: Path | None = None
    members: Sequence[str] = ()

    def check(self, name: str, now: datetime.datetime | None = None) -> None:
        """Raise a ValueError or OSError if these files cannot serve the agent ``name`` at a time, or now."""
        _extras.need("cryptography", "mutual TLS")
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        authorities = _certificates(self.ca)
        chain = _certificates(self.certificate)
        own = chain[0]
        try:
            key = load_pem_private_key(_read(self.key), None)
        except (ValueError, TypeError):  # no key at all; one that asks for a password
            raise ValueError(f"{self.key} must hold a private key in PEM, without a password.") from None
        if key.public_key() != own.public_key():
            raise ValueError(f"{self.key} is not the key of {self.certificate}.")
        names = [str(part.value) for part in own.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        revoked = read_revoked(self.revoked)
        if len(names) != 1 or not belongs(names[0], name):
            raise ValueError(f"{self.certificate} is for {', '.join(names) or 'nobody'}, not for {name}.")
        if names[0] in revoked:
            raise ValueError(f"{self.certificate} was revoked: {name} needs a new one.")
        now = now or datetime.datetime.now(datetime.UTC)
        if own.not_valid_after_utc <= now:
            raise ValueError(f"{self.certificate} expired on {own.not_valid_after_utc:%Y-%m-%d}: renew it.")
        if own.not_valid_before_utc > now:
            raise ValueError(f"{self.certificate} is good only from {own.not_valid_before_utc:%Y-%m-%d} on.")
        if not any(_issued(own, issuer) for issuer in (*chain[1:], *authorities)):
            raise ValueError(f"{self.certificate} was not signed by {self.ca}.")

    def ends(self) -> dict[Path, datetime.datetime]:
        """When the agent's certificate ends, and the last of those of its authority."""
        own = _certificates(self.certificate)[0].not_valid_after_utc
        return {self.certificate: own, self.ca: max(one.not_valid_after_utc for one in _certificates(self.ca))}

    def revoked_names(self) -> frozenset[str]:
        """Common names of certificates that are no longer good."""
        return read_revoked(self.revoked)

    def settings(self) -> dict[str, Any]:
        """Zenoh's settings of TLS. Contents, not paths: zenoh gives some letters of a path a meaning of their own."""
        ca, certificate, key = (
            base64.b64encode(_read(path)).decode() for path in (self.ca, self.certificate, self.key)
        )
        return {
            "root_ca_certificate_base64": ca,
            "enable_mtls": True,  # without it, whoever comes without a certificate gets in
            "listen_certificate_base64": certificate,
            "listen_private_key_base64": key,
            "connect_certificate_base64": certificate,
            "connect_private_key_base64": key,
            # Zenoh trusts the web's authorities too when it connects; the name of the host keeps those out.
            "verify_name_on_connect": True,
            "close_link_on_expiration": True,
        }


def access_rules(
    site: str,
    name: str,
    neighbours: Iterable[str],
    guests: Iterable[str],
    inlet: str,
    revoked: Collection[str] = (),
    members: Iterable[str] = (),
) -> dict[str, Any]:
    """Zenoh's settings of access control for one agent, to which certificates that are ``revoked`` open nothing."""
    rules: list[dict[str, Any]] = []
    subjects: list[dict[str, Any]] = []
    policies: list[dict[str, Any]] = []

    def grant(whom: str, given: list[str], taken: list[str]) -> None:
        """Let ``whom`` hear the keys ``given``, and say those ``taken``; and each side ask the other for them."""
        subjects.append({"id": whom, "cert_common_names": [common_name(whom.partition(" ")[2], revoked)]})
        flows = (
            ("hears", "egress", _SAY, given),
            ("asks for", "ingress", _ASK, given),
            ("says", "ingress", _SAY, taken),
            ("is asked for", "egress", _ASK, taken),
        )
        names = [f"{whom} {verb}" for verb, *_ in flows]
        for rule, (_, flow, messages, keys) in zip(names, flows, strict=True):
            rules.append({"id": rule, "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": keys})
        policies.append({"rules": names, "subjects": [whom]})

    for other in neighbours:
        given = [f"{site}/{name}/say", f"{site}/{name}/to/{other}", f"{site}/{name}/alive"]
        taken = [f"{site}/{other}/say", f"{site}/{other}/to/{name}", f"{site}/{other}/alive"]
        grant(f"neighbour {other}", given, taken)
    for guest in dict.fromkeys((name, *guests)):
        grant(f"guest {guest}", [f"{site}/{name}/{key}" for key in (*OUTLETS, "alive")], [inlet])
    may_ask = dict.fromkeys((name, *guests, *members))
    subjects += [{"id": f"asks {who}", "cert_common_names": [common_name(who, revoked)]} for who in may_ask]
    keys = [f"{site}/{name}/{key}" for key in ASKED]
    flows = (("a question", "ingress", ["query"]), ("an answer", "egress", ["reply", "declare_queryable"]))
    for rule, flow, messages in flows:
        rules.append({"id": rule, "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": keys})
    policies.append({"rules": [flow[0] for flow in flows], "subjects": [f"asks {who}" for who in may_ask]})
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }


def _read(path: Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise type(error)(error.errno, f"cannot read {path}: {error.strerror}") from None


def _certificates(path: Path) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError:
        raise ValueError(f"{path} must hold a certificate in PEM.") from None


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
