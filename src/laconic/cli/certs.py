"""``laconic certs``: a site's certificates made, renewed, revoked and looked over."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from laconic._files import expanded
from laconic.cli.options import Commands, add_json, add_quiet, describe, whole
from laconic.cli.words import paragraph, table

if TYPE_CHECKING:
    from laconic.deploy.operations.certificates import Outcome
    from laconic.deploy.settings.site import Site

_ABOUT = """
Make certificates for the agents of a site: an authority of its own, and a
certificate and key for each agent. What is there and good is kept.

  renew    make new ones, of some agents or of all, before their time is over
  revoke   those of an agent that is in other hands: nobody listens to it any more
  check    who has what until when; exit code 1 if something ends within 30 days,
           is revoked, or does not fit

Running agents take up what changes by themselves, within seconds."""
_EXAMPLES = """
examples:
  laconic certs site.toml
  laconic certs site.toml --for garden       one agent that was added later
  laconic certs site.toml --force            all anew, the authority included
  laconic certs check site.toml
  laconic certs renew site.toml kitchen
  laconic certs renew site.toml --authority  all, by a new authority; the old one stays trusted
  laconic certs renew site.toml --retire     trust the old one no longer
  laconic certs revoke site.toml kitchen"""

_ACTIONS = ("renew", "revoke", "check")


def add(commands: Commands) -> None:
    """Add the command ``certs``."""
    parser = commands.add_parser(
        "certs",
        help="make, renew, revoke and check certificates",
        usage="laconic certs [renew | revoke | check] SITE [NAME ...] [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    what = "a site.toml with a [security] table, after what to do, if anything; then names of agents and guests"
    parser.add_argument("words", nargs="+", metavar="SITE", help=what)
    parser.add_argument("--for", dest="only", metavar="NAME", help="for this agent only, by the authority there is")
    parser.add_argument("--days", type=whole, default=730, metavar="N", help="how long certificates are good (730)")
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.add_argument("--authority", action="store_true", help="renew: by a new authority")
    parser.add_argument("--retire", action="store_true", help="renew: trust no authority but the newest, and no more")
    add_json(parser, "tell what was found or made as JSON")
    add_quiet(parser)
    parser.set_defaults(command=certs)


def certs(arguments: argparse.Namespace) -> int:
    """Do what is asked for, and say what was done."""
    from laconic.deploy.settings.site import Site

    words, action = list(arguments.words), None
    if words[0] in _ACTIONS:
        action = words.pop(0)
        if not words:
            raise ValueError(f"certs {action} must be given a site.toml.")
    _check(arguments, action, words[1:])
    site, names = Site.read(expanded(words[0])), tuple(dict.fromkeys(words[1:]))
    if action == "check":
        return _look(site, names, arguments.json)
    outcomes = _made(arguments, action, site, names)
    if arguments.json:
        print(json.dumps([{"name": one.name, "path": str(one.path), "what": one.what} for one in outcomes]))
    elif action == "revoke":
        _revoked(site, names, outcomes)
    else:
        tell(site, outcomes)
    return 0


def _made(arguments: argparse.Namespace, action: str | None, site: Site, names: tuple[str, ...]) -> tuple[Outcome, ...]:
    from laconic.deploy.operations import certificates, renewal

    if action == "revoke":
        return renewal.revoke_certificates(site, names)
    if action == "renew":
        if arguments.retire:
            return renewal.retire_authorities(site)
        return renewal.renew_certificates(site, names, authority=arguments.authority, days=arguments.days)
    return certificates.make_certificates(site, only=arguments.only, force=arguments.force, days=arguments.days)


def _check(arguments: argparse.Namespace, action: str | None, names: list[str]) -> None:
    if action != "renew" and (arguments.authority or arguments.retire):
        raise ValueError(f"{'--authority' if arguments.authority else '--retire'} is for `laconic certs renew`.")
    if arguments.retire and (names or arguments.authority):
        raise ValueError("--retire must stand alone: it makes no certificates.")
    if action is not None and (arguments.only or arguments.force):
        raise ValueError(f"{'--for' if arguments.only else '--force'} is not for `laconic certs {action}`: give names.")
    if action is None and names:
        raise ValueError(f"certs must be given one site.toml, and names only after {', '.join(_ACTIONS)}; got {names}.")
    if action == "revoke" and not names:
        raise ValueError("certs revoke must be told whose certificate to revoke.")


def _revoked(site: Site, names: tuple[str, ...], outcomes: tuple[Outcome, ...]) -> None:
    print(table([[outcome.name or "", str(outcome.path), outcome.what] for outcome in outcomes], "<<<"))
    assert site.security is not None  # or there would be no outcomes
    again = f"laconic certs renew {site.file} {' '.join(names)}"
    print(
        paragraph(
            f"Copy {site.security.revoked} to every device, into the folder of its certificates: agents read it when "
            "it comes, and from then on whoever has these certificates hears nothing and is not heard. "
            f"`{again}` makes new ones."
        )
    )


def _look(site: Site, names: tuple[str, ...], as_json: bool) -> int:
    from laconic.deploy.operations.renewal import check_certificates

    findings = check_certificates(site, names)
    if as_json:
        told = [
            {
                "name": found.name,
                "path": str(found.path),
                "serial": found.serial,
                "ends": None if found.ends is None else found.ends.isoformat(),
                "state": found.state,
                "good": found.good,
            }
            for found in findings
        ]
        print(json.dumps(told))
        return 0 if all(found.good for found in findings) else 1
    rows = []
    for found in findings:
        until = "-" if found.ends is None else f"{found.ends:%Y-%m-%d}"
        rows.append([found.name or "authority", str(found.path), found.serial[:16], until, found.state])
    print(table(rows, "<<<<<"))
    return 0 if all(found.good for found in findings) else 1


def tell(site: Site, outcomes: tuple[Outcome, ...]) -> None:
    """Say what became of certificates, and where their files belong."""
    assert site.security is not None  # or there would be no outcomes
    print(table([[outcome.name or "authority", str(outcome.path), outcome.what] for outcome in outcomes], "<<<"))
    ca, secret = site.security.ca, site.security.ca_key
    print(
        paragraph(
            f"A device needs {ca} and its own agent's .crt and .key. {secret} signs certificates: keep it here, "
            "and copy it to no device."
        )
    )
