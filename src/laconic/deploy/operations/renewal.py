"""Certificates over time: renewed before they end, revoked when somebody else has them, and looked over.

Running agents take up all of this by themselves, within a second or two of the files being where they look for them:
see ``transport.zenoh_renewal``.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from laconic import _validate
from laconic._files import written_whole
from laconic.deploy.operations.certificates import (
    AUTHORITY_DAYS,
    DAYS,
    MOST_DAYS,
    SOON,
    Holder,
    Outcome,
    get_security,
    holders,
    is_barred,
    issue,
    load_authority,
    this_second,
)
from laconic.deploy.operations.pem import (
    is_issued,
    load_certificates,
    load_key,
    make_authority,
    names_in,
    write_certificates,
    write_key,
)
from laconic.deploy.settings.site import Site
from laconic.transport.revocation import read_revoked

if TYPE_CHECKING:
    from cryptography import x509

_HEAD = """\
# Certificates that are no longer good: common name, serial number, day. Agents read this file again when it changes.
"""


class Finding(NamedTuple):
    """What there is to say of one certificate; ``name`` is None for an authority's."""

    name: str | None
    path: Path
    serial: str
    ends: datetime.datetime | None
    state: str
    good: bool


def renew_certificates(
    site: Site, names: Collection[str] = (), *, authority: bool = False, days: int = DAYS
) -> tuple[Outcome, ...]:
    """Make new certificates and keys, for some or for all.

    Parameters
    ----------
    site : Site
    names : collection of str
        Agents and guests; all of them if there are none, but for those who were revoked.
    authority : bool
        Also make a new authority. The one before stays trusted, so that agents which have their new certificates and
        those which do not have them yet understand each other, until ``retire_authorities``.
    days : int
        For how long a certificate is good.
    """
    _validate.integer("days", days, least=1, most=MOST_DAYS)
    security, now = get_security(site), this_second()
    wanted = holders(site, names)
    if authority and names:
        raise ValueError("--authority is for all at once: a new authority signs the certificates of everybody.")
    signer, outcomes = load_authority(security, now), [Outcome(None, "kept", security.ca)]
    if authority:
        before = [one for one in load_certificates(security.ca) if one.not_valid_after_utc > now]
        signer = make_authority(site.name, now, AUTHORITY_DAYS)
        # The key last: it decides which of the certificates is the one that signs.
        write_certificates(security.ca, signer.certificate, *before)
        write_key(security.ca_key, signer.key)
        outcomes = [Outcome(None, f"renewed, {len(before)} before it still trusted", security.ca)]
    for holder in wanted:
        if not names and is_barred(holder):
            outcomes.append(Outcome(holder.name, "left out, since it was revoked", holder.certificate))
            continue
        issue(holder, signer, now, days)
        outcomes.append(Outcome(holder.name, "renewed", holder.certificate))
    return tuple(outcomes)


def retire_authorities(site: Site) -> tuple[Outcome, ...]:
    """Trust no authority any more but the one that signs now; it must have signed all certificates that are here."""
    security, now = get_security(site), this_second()
    signer = load_authority(security, now)
    for holder in holders(site):
        if is_barred(holder):
            continue
        if not is_issued(load_certificates(holder.certificate)[0], signer.certificate):
            raise ValueError(f"{holder.certificate} is by an authority before this one: renew it first.")
    others = len(load_certificates(security.ca)) - 1
    write_certificates(security.ca, signer.certificate)
    return (Outcome(None, f"{others} before it no longer trusted", security.ca),)


def revoke_certificates(site: Site, names: Collection[str]) -> tuple[Outcome, ...]:
    """Put the certificates of some agents or guests on the list of those that are no longer good."""
    security, now = get_security(site), this_second()
    lines: list[str] = []
    outcomes: list[Outcome] = []
    for holder in holders(site, names) if names else ():
        if holder.certificate.exists() and is_barred(holder):
            outcomes.append(Outcome(holder.name, "was revoked before", holder.certificate))
            continue
        serial = "-"
        if holder.certificate.exists():
            serial = _serial(load_certificates(holder.certificate)[0])
        lines.append(f"{holder.common}  {serial}  {now:%Y-%m-%d}\n")
        outcomes.append(Outcome(holder.name, f"revoked, {holder.common}", holder.certificate))
    if lines:
        before = security.revoked.read_text() if security.revoked.exists() else _HEAD
        security.revoked.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(security.revoked) as file:
            file.write(f"{before.rstrip()}\n{''.join(lines)}".encode())
    return tuple(outcomes)


def check_certificates(
    site: Site, names: Collection[str] = (), now: datetime.datetime | None = None
) -> tuple[Finding, ...]:
    """Look over the certificates of a site, or of some of its agents: whose, until when, and what is wrong."""
    security = get_security(site)
    now = now or this_second()
    revoked = read_revoked(security.revoked)
    if not security.ca.exists():
        return (Finding(None, security.ca, "-", None, "missing", False),)
    trusted = load_certificates(security.ca)
    signs = load_key(security.ca_key).public_key() if security.ca_key.exists() else trusted[0].public_key()
    findings = []
    for one in trusted:
        flaw = _lateness(one, now)
        state = flaw or ("good" if one.public_key() == signs else "trusted still, signs no more")
        findings.append(Finding(None, security.ca, _serial(one), one.not_valid_after_utc, state, flaw is None))
    current = next((one for one in trusted if one.public_key() == signs), None)
    if current is None:
        findings.append(Finding(None, security.ca_key, "-", None, f"not the key of {security.ca}", False))
    findings += [_examine(holder, trusted, current, revoked, now) for holder in holders(site, names)]
    return tuple(findings)


def _examine(
    holder: Holder,
    trusted: list[x509.Certificate],
    current: x509.Certificate | None,
    revoked: frozenset[str],
    now: datetime.datetime,
) -> Finding:
    def found(state: str, one: x509.Certificate | None = None, good: bool = False) -> Finding:
        serial, ends = ("-", None) if one is None else (_serial(one), one.not_valid_after_utc)
        return Finding(holder.name, holder.certificate, serial, ends, state, good)

    if not holder.certificate.exists():
        return found("missing")
    try:
        own = load_certificates(holder.certificate)[0]
    except ValueError:
        return found("cannot be read")
    issuer = next((one for one in trusted if is_issued(own, one)), None)
    common, hosts = names_in(own)
    if common in revoked:
        return found("revoked", own)
    if issuer is None:
        return found("signed by another authority", own)
    if common != holder.common:
        return found(f"for {common}, not for {holder.common}", own)
    try:
        if not holder.key.exists() or load_key(holder.key).public_key() != own.public_key():
            return found("its key is missing or another's", own)
    except ValueError:
        return found("its key cannot be read", own)
    flaw = _lateness(own, now)
    if flaw:
        return found(flaw, own)
    if not hosts >= set(holder.hosts):
        return found("its address has changed", own)
    return found("good" if issuer is current else "good, by an authority that signs no more", own, good=True)


def _lateness(certificate: x509.Certificate, now: datetime.datetime) -> str | None:
    left = certificate.not_valid_after_utc - now
    if left <= datetime.timedelta(0):
        return "has ended"
    return f"ends in {left.days} days" if left < SOON else None


def _serial(certificate: x509.Certificate) -> str:
    return f"{certificate.serial_number:x}"
