"""A small certificate authority for a site: one key that signs, and a certificate and key for each agent.

Good for trials and for sites that one person keeps. Each certificate carries its agent's name, by which access is
granted, and the hosts where the agent is found, which its neighbours check when they connect. Keys are P-256; the
authority's is needed only here, to make certificates, and belongs on no device.

The file of the authority may hold several certificates: that whose key is there signs, and all are trusted.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from laconic import _extras, _validate
from laconic.deploy.operations.pem import (
    Authority,
    as_address,
    is_issued,
    load_certificates,
    load_key,
    make_authority,
    make_certificate,
    names_in,
    new_key,
    write_certificates,
    write_key,
)
from laconic.deploy.settings.site import AgentSettings, SecuritySettings, Site
from laconic.transport.revocation import common_name, read_revoked

if TYPE_CHECKING:
    from cryptography import x509

_LOCAL = ("localhost", "127.0.0.1", "::1")
#: How long certificates are good, how long those of authorities are, and how long they may be.
DAYS, AUTHORITY_DAYS, MOST_DAYS = 730, 3650, 36_500
#: A certificate with less time left is renewed, and people are warned of it.
SOON = datetime.timedelta(days=30)
_PRIVATE_FOLDER = 0o700


class Outcome(NamedTuple):
    """What became of one certificate: "made", "kept", or "renewed" and why. ``name`` is None for the authority's."""

    name: str | None
    what: str
    path: Path


class Holder(NamedTuple):
    """Who has a certificate, what it has to call them, where they are found, and where their files lie."""

    name: str
    common: str
    hosts: tuple[str, ...]
    certificate: Path
    key: Path


def make_certificates(
    site: Site, *, only: str | None = None, force: bool = False, days: int = DAYS
) -> tuple[Outcome, ...]:
    """Make what is missing: the authority, and a certificate and key for each agent and each guest.

    What is there and good is kept. A certificate that another authority signed, that ends within 30 days, that does not
    fit its key, or that does not name where its agent is found now, is renewed. Whoever was revoked gets another one
    only if asked for by name.

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
    _validate.integer("days", days, least=1, most=MOST_DAYS)
    security, now = get_security(site), this_second()
    wanted = holders(site, () if only is None else (only,))
    for path in (security.ca.parent, security.certificates):
        path.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    if (force and only is None) or not (security.ca.exists() or security.ca_key.exists()):
        if only is not None:
            raise ValueError(f"{security.ca} does not exist yet: make certificates for the whole site first.")
        authority = make_authority(site.name, now, AUTHORITY_DAYS)
        # The key first: a certificate without its key could never be completed.
        write_key(security.ca_key, authority.key)
        write_certificates(security.ca, authority.certificate)
        outcomes = [Outcome(None, "made", security.ca)]
    else:
        authority = load_authority(security, now)
        outcomes = [Outcome(None, "kept", security.ca)]
    for holder in wanted:
        if only is None and is_barred(holder):
            outcomes.append(Outcome(holder.name, "left out, since it was revoked", holder.certificate))
        else:
            outcomes.append(_serve(holder, authority, now, days, force))
    return tuple(outcomes)


def this_second() -> datetime.datetime:
    """The present time, as certificates can say it."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def get_security(site: Site) -> SecuritySettings:
    """The site's settings of security, and the package that they need."""
    if site.security is None:
        raise ValueError(f"{site.file} has no [security] table: add one, and make the endpoints 'tls/...'.")
    _extras.need("cryptography", "a certificate")
    return site.security


def holders(site: Site, names: Collection[str] = ()) -> list[Holder]:
    """All who need a certificate, or those who are asked for."""
    security = get_security(site)
    revoked, folder = read_revoked(security.revoked), security.certificates
    found, hosts = [], _LOCAL  # type: list[Holder], tuple[str, ...]
    for name in names or (*site.names, *security.guests):
        if name in security.guests:
            hosts, certificate, key = _LOCAL, folder / f"{name}.crt", folder / f"{name}.key"
        else:
            agent = site.agent(name)
            assert agent.certificate is not None and agent.key is not None  # there is a [security] table
            hosts, certificate, key = _hosts(agent), agent.certificate, agent.key
        found.append(Holder(name, common_name(name, revoked), hosts, certificate, key))
    return found


def is_barred(holder: Holder) -> bool:
    """Whether the last certificate of a holder was revoked, and there is no other one yet."""
    if holder.common == holder.name:
        return False
    try:
        return names_in(load_certificates(holder.certificate)[0])[0] != holder.common
    except (OSError, ValueError):
        return True


def load_authority(security: SecuritySettings, now: datetime.datetime) -> Authority:
    """The authority that is there."""
    for path, what in ((security.ca, "certificate"), (security.ca_key, "key")):
        if not path.exists():
            raise ValueError(
                f"{path} is missing, the authority's {what}: bring it back, or begin anew by force, "
                "which replaces the certificates of all agents."
            )
    trusted, key = load_certificates(security.ca), load_key(security.ca_key)
    own = [one for one in trusted if one.public_key() == key.public_key()]
    if not own:
        raise ValueError(f"{security.ca_key} is not the key of {security.ca}.")
    if own[0].not_valid_after_utc <= now:
        raise ValueError(f"{security.ca} has expired: begin anew by force.")
    return Authority(own[0], key)


def _serve(holder: Holder, authority: Authority, now: datetime.datetime, days: int, force: bool) -> Outcome:
    """One certificate and its key: kept if they are good, else made."""
    what = "made"
    if holder.certificate.exists() and holder.key.exists():
        flaw = "as asked" if force else _flaw(holder, authority.certificate, now)
        if flaw is None:
            return Outcome(holder.name, "kept", holder.certificate)
        what = f"renewed, {flaw}"
    issue(holder, authority, now, days)
    return Outcome(holder.name, what, holder.certificate)


def issue(holder: Holder, authority: Authority, now: datetime.datetime, days: int) -> None:
    """Make a new key for a holder, and a certificate of it."""
    key = new_key()
    certificate = make_certificate(holder.common, holder.hosts, key, authority, now, days)
    for path in (holder.key, holder.certificate):
        path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    write_key(holder.key, key)
    write_certificates(holder.certificate, certificate)


def _flaw(holder: Holder, issuer: x509.Certificate, now: datetime.datetime) -> str | None:
    """What is wrong with a certificate that is there."""
    try:
        certificate, key = load_certificates(holder.certificate)[0], load_key(holder.key)
    except ValueError:
        return "since it could not be read"
    if not is_issued(certificate, issuer):
        return "since another authority had signed it"
    if certificate.public_key() != key.public_key():
        return "since its key was another's"
    if certificate.not_valid_after_utc - now < SOON:
        return "since its time is running out"
    common, hosts = names_in(certificate)
    if common != holder.common:
        return "since it was revoked or was another's"
    if hosts != frozenset(holder.hosts):
        return "since the agent's name or address has changed"
    return None


def _hosts(agent: AgentSettings) -> tuple[str, ...]:
    """Where an agent may be found, addresses in their one canonical form."""
    hosts = [*_LOCAL]
    for place in (agent.listen, agent.reach):
        if not place.everywhere:
            hosts.append(str(as_address(place.host) or place.host.lower()))
    return tuple(dict.fromkeys(hosts))
