"""One agent of a site as a process: its parts are put together, driven until they are done, and taken apart."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from laconic.deploy.running.classes import Classes
from laconic.deploy.running.desk import Answering, Desk
from laconic.deploy.running.driver import ASKED, SAMPLES, Driver, Recorder
from laconic.deploy.running.exits import DIVERGED, ENDED, FAILED, heard
from laconic.deploy.running.inbox import Inbox
from laconic.deploy.running.metrics import Server, Tally
from laconic.deploy.running.outlet import Outlet
from laconic.deploy.running.outliers import Sentry
from laconic.deploy.running.record import Record
from laconic.deploy.running.service import Service
from laconic.deploy.running.trial import Trial
from laconic.deploy.settings.site import Site
from laconic.deploy.settings.sources import ZenohSettings
from laconic.deploy.sources.base import Source
from laconic.engine import Diverged
from laconic.engine.blas import one_thread
from laconic.learners import Speech
from laconic.protocol import Agent
from laconic.protocol.actions import Terms
from laconic.protocol.checkpoint import Misplaced
from laconic.protocol.paces import make_pacer
from laconic.transport.link import Event, PublicLink
from laconic.transport.zenoh import Security, ZenohLink
from laconic.transport.zenoh_renewal import RenewingLink

_HEARTBEAT = 10.0  # seconds of silence on slots after which an agent says that it is

_log = logging.getLogger(__name__)


class SiteLink(PublicLink, Protocol):
    """A link to the agents of a site; ``session`` is what sources that listen on the same network need."""

    session: Any


def run_agent(
    site: Site,
    name: str,
    *,
    rounds: int | None = None,
    trace: Path | None = None,
    predictions: float = 10.0,
    progress: float = 10.0,
    supervised: bool = False,
    news: Inbox | None = None,
) -> int:
    """Run an agent until its samples end, it diverges, or a signal stops it.

    Parameters
    ----------
    site : Site
    name : str
    rounds : int, optional
        Stop after so many: counted by the site in lockstep, by the agent itself on slots.
    trace : Path, optional
        Write there what it did: see ``Record``.
    predictions : float
        Publish at most so many predictions a second; 0 for none.
    progress : float
        Seconds between two lines that tell how far it is.
    supervised : bool
        Also stop when standard input ends, which it does when a supervisor is gone.
    news : Inbox, optional
        The agent's inbox, for whoever runs it on a thread: a signal's number in it stops the agent.

    Returns
    -------
    int
        An exit code: 0 if the samples ended, 3 if it diverged, 4 if its source of samples failed, 128 and the number
        of the signal that stopped it.
    """
    named = site.agent(name).source
    record = None if trace is None else Record(trace, named.inputs, named.target, site.model.classes)
    news = Inbox() if news is None else news
    agent = make_agent(site, name)
    with ExitStack() as stack:
        trial = stack.enter_context(Trial(site.checkpoint_path(name)))
        restore(agent, site)
        warm(site)
        stack.enter_context(heard(news.put))
        stack.enter_context(one_thread())
        if supervised:
            _watch_parent(news)
        terms = terms_of(site, rounds, predictions, progress)
        service = Service.of(os.environ)
        driver = assemble(stack, site, agent, terms, news.put, recorder=record, service=service, trial=trial)
        _log.info("started", extra={"agent": name, "round": agent.round, "pid": os.getpid()})
        try:
            stopped = driver.run(news)
        except Diverged:
            return DIVERGED
        finally:
            if record is not None:
                record.write(agent)
        _log.info("stopped", extra={"agent": name, "round": agent.round, "signal": stopped})
    if stopped is not None:
        return 128 + stopped
    return FAILED if driver.failed else ENDED


def terms_of(site: Site, rounds: int | None = None, predictions: float = 10.0, progress: float = 10.0) -> Terms:
    """The terms on which the agents of a site run."""
    every = None if site.checkpoint is None else site.checkpoint_every
    return Terms(site.patience, rounds, every, predictions, progress)


def make_agent(site: Site, name: str) -> Agent:
    """The agent of that name, as it is before it has learned anything."""
    network = site.network()
    degrees = {other: int(network.degrees[site.names.index(other)]) for other in site.neighbours(name)}
    return Agent(
        name,
        degrees,
        site.features(),
        site.learner(),
        n_agents=site.n_agents,
        clock=site.clock,
        dtype=site.model.dtype,
        heartbeat=max(1, round(_HEARTBEAT / site.slot)),
    )


def open_link(site: Site, name: str, deliver: Callable[[Event], None]) -> ZenohLink | RenewingLink:
    """The agent's place on the network; news go to ``deliver``."""
    settings, source = site.agent(name), site.agent(name).source
    options: dict[str, Any] = {
        "site": site.name,
        "listen": str(settings.listen),
        "neighbours": {other: str(site.endpoint(other)) for other in site.neighbours(name)},
        "lease": site.lease,
        "inlet": source.key if isinstance(source, ZenohSettings) else None,
    }
    if site.security is None:
        return ZenohLink(name, deliver=deliver, **options)
    assert settings.certificate is not None and settings.key is not None
    files = site.security
    security = Security(files.ca, settings.certificate, settings.key, files.guests, files.revoked, site.names)
    return RenewingLink(name, deliver=deliver, security=security, **options)


def open_source(site: Site, name: str, link: SiteLink) -> Source:
    """The agent's source of samples, not yet started."""
    return site.source(name, link.session)


def assemble(
    stack: ExitStack,
    site: Site,
    agent: Agent,
    terms: Terms,
    deliver: Callable[[Any], None],
    *,
    open_link: Callable[[Site, str, Callable[[Any], None]], SiteLink] = open_link,
    open_source: Callable[[Site, str, SiteLink], Source] = open_source,
    recorder: Recorder | None = None,
    wall: Callable[[], float] = time.time,
    service: Service | None = None,
    trial: Trial | None = None,
) -> Driver:
    """Put the parts of an agent together, ready to be driven; closing ``stack`` takes them apart.

    Parameters
    ----------
    stack : ExitStack
    site : Site
    agent : Agent
    terms : Terms
    deliver : callable
        Where news go to: what the link brings, and ``SAMPLES``.
    open_link, open_source : callables
        What connects the agent with others, and with its samples: over zenoh and by threads, unless told otherwise.
    recorder : Recorder, optional
    wall : callable
        The time of day.
    service : Service, optional
        The service manager that is told that all is well.
    trial : Trial, optional
        Of the checkpoint that the agent goes on from.
    """
    name, tally = agent.name, Tally()
    port = site.agent(name).metrics_port
    if port is not None:
        server = Server(name, tally, lambda: agent.counters, port, site.agent(name).metrics_host)
        stack.callback(server.close)
    link = open_link(site, name, deliver)
    stack.callback(link.close)
    source = open_source(site, name, link)
    stack.callback(source.close)
    sentry = Sentry(site.guard(), tally, site.agent(name).source.inputs, site.limits_path(name))
    sentry.restore(name)
    named, checkpoint = site.agent(name).source, site.checkpoint_path(name)
    wake = lambda: deliver(SAMPLES)  # noqa: E731
    classes = None if site.labels is None else Classes(site.labels)
    told: dict[str, Any] = {"with_inputs": site.publish_inputs, "inputs": named.inputs, "classes": classes}
    outlet = Outlet(agent, link, source, wake, tally, checkpoint, wall, sentry, **told)
    desk = None
    if isinstance(link, Answering):  # a virtual network has nobody who could ask
        desk = Desk(agent, lambda: deliver(ASKED), named.inputs, named.target, classes=site.model.classes)
        stack.callback(desk.close)
        desk.open(link)
    return Driver(make_pacer(agent, terms, site.slot), outlet, recorder, sentry, desk, service, classes, trial)


def warm(site: Site) -> None:
    """Load all that a round needs, so that the first one is not late: two agents of this kind exchange messages."""
    features, learner = site.features(), site.learner()
    pair = [
        Agent(name, [other], features, learner, n_agents=2, clock=site.clock, dtype=site.model.dtype)
        for name, other in (("a", "b"), ("b", "a"))
    ]
    most = 4 if learner.speech is Speech.OWN else 2  # with steps that diverge, three are too many; a wave takes four
    label = 0.5 if learner.outputs == 1 else np.full(learner.outputs, 0.5)
    for _ in range(6 + most):  # the first of them to get to know each other
        for agent in pair:
            if agent.ready and agent.round < most:
                agent.learn(np.zeros(site.model.n_inputs), label)
        for sender, receiver in (pair, pair[::-1]):
            for message in sender.outgoing():
                receiver.receive(message.data)


def restore(agent: Agent, site: Site) -> None:
    """Go on from the checkpoint, or the one before it; if neither can be read, the neighbours know most of it."""
    path = site.checkpoint_path(agent.name)
    if path is None:
        return
    try:
        agent.load(path)
    except Misplaced as error:
        raise ValueError(f"{path}: {error}. Move it away to start anew.") from None
    except ValueError as error:
        _log.error("checkpoint refused", extra={"agent": agent.name, "why": str(error)})


def _watch_parent(news: Inbox) -> None:
    """Stop when standard input ends. Read below Python's own buffers, whose lock a thread must not hold at exit."""

    def watch() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        news.put(int(signal.SIGTERM))

    threading.Thread(target=watch, name="watches the supervisor", daemon=True).start()
