"""The models of a site, from its agents while they run, else from what they have left on disk."""

from __future__ import annotations

from typing import NamedTuple

from laconic.deploy.running.runner import make_agent
from laconic.deploy.settings.site import Site
from laconic.model import Model
from laconic.protocol.checkpoint import previous
from laconic.transport.zenoh import Security, load_zenoh
from laconic.transport.zenoh_asking import ask


class Fetched(NamedTuple):
    """A model, and whether a running agent gave it away."""

    model: Model
    running: bool


def fetch_model(site: Site, name: str, timeout: float = 5.0, guest: str | None = None) -> Fetched | None:
    """The model of an agent of a site; None if it neither runs nor has a checkpoint here.

    Parameters
    ----------
    site : Site
    name : str
        The agent's.
    timeout : float
        Seconds to wait for its answer.
    guest : str, optional
        Whose certificate to show; the agent's own if not given.
    """
    answer = ask_agent(site, name, "model", timeout=timeout, guest=guest)
    if answer is not None:
        return Fetched(Model.from_bytes(answer), True)
    path = site.checkpoint_path(name)
    if path is None or not (path.exists() or previous(path).exists()):
        return None
    agent, source = make_agent(site, name), site.agent(name).source
    agent.load(path)
    return Fetched(agent.model(source.inputs, source.target, site.model.classes or None), False)


def ask_agent(
    site: Site, name: str, what: str, payload: bytes | None = None, *, timeout: float = 5.0, guest: str | None = None
) -> bytes | None:
    """What a running agent answers to ``what``: "predict", "model" or "status"; None if it does not run.

    Raises
    ------
    Refused
        If it answers that it does not.
    """
    where, key = str(site.endpoint(name)), f"{site.name}/{name}/{what}"
    return ask(load_zenoh(), key, where, payload, security=files_of(site, guest or name), timeout=timeout)


def files_of(site: Site, who: str) -> Security | None:
    """The certificate to show; None where none is needed."""
    if site.security is None:
        return None
    own = next((agent for agent in site.agents if agent.name == who), None)
    if own is not None:
        assert own.certificate is not None and own.key is not None
        certificate, key = own.certificate, own.key
    elif who in site.security.guests:
        certificate, key = (site.security.certificates / f"{who}{ending}" for ending in (".crt", ".key"))
    else:
        raise ValueError(f"--as must be an agent or a guest of {site.file}, got {who!r}.")
    for path in (certificate, key):
        if not path.exists():
            raise ValueError(f"there is no {path} here, to be shown to the agent: --as names somebody else's.")
    return Security(site.security.ca, certificate, key)
