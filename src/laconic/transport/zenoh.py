"""Agents over zenoh: peer to peer, no broker, one TCP or TLS connection for each edge of the graph.

An agent NAME of a site SITE uses these keys:

    SITE/NAME/say         what it says to all its neighbours
    SITE/NAME/to/OTHER    what it says to one of them
    SITE/NAME/alive       its sign of life, a liveliness token
    SITE/NAME/...         samples, predictions, alerts: see ``ZenohLink.subscribe`` and ``ZenohLink.publish``;
                          what may be asked: see ``ZenohLink.answer``
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, final

from laconic import _extras, _validate
from laconic.transport.link import Connected, Disconnected, Event, Question, Received
from laconic.transport.zenoh_asking import Asked
from laconic.transport.zenoh_security import Security, access_rules
from laconic.transport.zenoh_settings import (
    THREADS,
    check_endpoint,
    check_part,
    endpoints_to_connect,
    session_settings,
)
from laconic.transport.zenoh_sockets import Caretaker, hang_up

__all__ = ["Security", "ZenohLink", "load_zenoh"]

_log = logging.getLogger(__name__)
_LONGEST_LEASE = 3600.0
_OPEN: set[ZenohLink] = set()  # kept from the garbage collector, which would close a session with Python held


class _Kept(threading.local):
    """Whether Python's view of this thread will be kept when a callback returns.

    Zenoh calls from threads of its own. Python makes a view of the thread for each such call and throws it away after,
    which takes longer than the call itself; one request for it that is never returned keeps it.
    """

    done = False

    def keep(self) -> None:
        self.done = True
        ctypes.pythonapi.PyGILState_Ensure()


_KEPT = _Kept()


@final
class ZenohLink:
    """An agent's place on a zenoh network.

    ``Connected(name)`` is delivered when the neighbour's sign of life is seen: it has subscribed to this agent before
    it gives it, so that what is sent from then on arrives, in order, until ``Disconnected(name)``. A crash is noticed
    at once, since the system closes the connection; a hung or cut-off neighbour after about ``lease`` seconds. Links
    mend themselves. A change of neighbours needs a new link.

    Parameters
    ----------
    name : str
        The agent's.
    site : str
        First part of every key.
    listen : str, optional
        Where the agent listens, ``tcp/HOST:PORT`` or, with security, ``tls/HOST:PORT``. Without, it only connects.
    neighbours : mapping of str to str or None
        Where each neighbour listens; None if it does not. If both listen, the one with the later name connects.
    deliver : callable
        Takes each event. Called from threads of zenoh: it should do no more than put it into a queue.
    security : Security, optional
        Mutual TLS and access control.
    lease : float
        Seconds of silence after which a neighbour is taken for gone. Agents that have nothing to say give a sign of
        life four times in that time.
    inlet : str, optional
        Key on which samples come, if not ``SITE/NAME/sample``: with security, only this one is open to guests.

    Raises
    ------
    ValueError
        If an argument is wrong, files of ``security`` do not fit, or zenoh is missing.
    OSError
        If the agent cannot listen there, or a file cannot be read.
    """

    def __init__(
        self,
        name: str,
        *,
        neighbours: Mapping[str, str | None],
        deliver: Callable[[Event], None],
        site: str = "site",
        listen: str | None = None,
        security: Security | None = None,
        lease: float = 1.0,
        inlet: str | None = None,
    ) -> None:
        self.name, self.site = check_part("name", name), check_part("site", site)
        if not isinstance(neighbours, Mapping):
            raise ValueError(f"neighbours must map names to endpoints, got {neighbours!r}.")
        if security is not None and not isinstance(security, Security):
            raise ValueError(f"security must be a Security, got {security!r}.")
        self.neighbours = tuple(check_part("a neighbour's name", other) for other in neighbours)
        if name in self.neighbours:
            raise ValueError(f"{name} cannot be its own neighbour.")
        if not callable(deliver):
            raise ValueError(f"deliver must be a function that takes an event, got {deliver!r}.")
        protocol = "tcp" if security is None else "tls"
        if listen is not None:
            check_endpoint("listen", listen, protocol)
        for other, endpoint in neighbours.items():
            if endpoint is not None:
                check_endpoint(f"the endpoint of {other}", endpoint, protocol)
        lease = _validate.number("lease", lease, least=0.1)
        if lease > _LONGEST_LEASE:
            raise ValueError(f"lease must be at most {_LONGEST_LEASE:g} seconds, got {lease:g}.")
        connect = endpoints_to_connect(name, listen, neighbours)
        tls = access = None
        if security is not None:
            security.check(name)
            tls = security.settings()
            inlet = inlet or f"{site}/{name}/sample"
            access = access_rules(
                site, name, self.neighbours, security.guests, inlet, security.revoked_names(), security.members
            )
        self._zenoh = load_zenoh()
        self._error = self._zenoh.ZError
        self._deliver = deliver
        self._alive: set[str] = set()
        # Of what is alive: news of it are delivered in the order in which it changes. Zenoh is never called with it,
        # since zenoh takes it with a lock of its own held.
        self._lock = threading.Lock()
        self._closed = False
        self._port = None if listen is None else int(listen.rpartition(":")[2])
        self._declared: list[Any] = []
        self._others: dict[str, Any] = {}  # publishers of what neither all neighbours nor one of them is told
        self.session = _open(self._zenoh, session_settings(listen, connect, lease, tls, access), listen)
        self._caretaker = Caretaker(lease)
        _OPEN.add(self)
        try:
            self._declare()
        except BaseException:
            self.close()
            raise

    def _declare(self) -> None:
        session, liveliness = self.session, self.session.liveliness()
        for other in self.neighbours:
            receive = self._direct(self._receiver(other))
            for key in (f"{self.site}/{other}/say", f"{self.site}/{other}/to/{self.name}"):
                self._declared.append(session.declare_subscriber(key, receive))
        self._say = self._publisher("say").put
        self._to = {other: self._publisher(f"to/{other}").put for other in self.neighbours}
        for other in self.neighbours:
            notice, key = self._direct(self._watcher(other)), f"{self.site}/{other}/alive"
            self._declared.append(liveliness.declare_subscriber(key, notice, history=True))
        # Last, since it promises that all the above is there.
        self._token = liveliness.declare_token(f"{self.site}/{self.name}/alive")

    def _publisher(self, suffix: str, *, wait: bool = True) -> Any:
        """A publisher of a key of this agent; if it may not wait for a slow reader, the reader misses something."""
        zenoh = self._zenoh
        control = zenoh.CongestionControl.BLOCK if wait else zenoh.CongestionControl.DROP
        publisher = self.session.declare_publisher(
            f"{self.site}/{self.name}/{suffix}",
            congestion_control=control,
            reliability=zenoh.Reliability.RELIABLE,
            # Express messages would fill zenoh's queue one by one: a burst of them takes ten times as long, and one
            # message alone is no faster.
            express=False,
        )
        self._declared.append(publisher)
        return publisher

    def _direct(self, call: Callable[[Any], None]) -> Any:
        """What zenoh calls in its receiving thread, with one of its locks held: that keeps messages in order."""
        return self._zenoh.handlers.Callback(call, indirect=False)

    def _receiver(self, other: str) -> Callable[[Any], None]:
        deliver, kept = self._deliver, _KEPT

        def receive(sample: Any) -> None:
            if not kept.done:
                kept.keep()
            if not self._closed:
                try:
                    deliver(Received(other, sample.payload.to_bytes()))
                except Exception:
                    _log.exception("a message of %s could not be delivered", other)

        return receive

    def _watcher(self, other: str) -> Callable[[Any], None]:
        deliver, gone, look = self._deliver, self._zenoh.SampleKind.DELETE, self._caretaker.look

        def watch(sample: Any) -> None:
            here = sample.kind != gone
            if here:
                look()
            with self._lock:
                if self._closed or here == (other in self._alive):  # zenoh may say it twice when links are remade
                    return
                (self._alive.add if here else self._alive.discard)(other)
                try:
                    deliver(Connected(other) if here else Disconnected(other))
                except Exception:
                    _log.exception("news of %s could not be delivered", other)

        return watch

    def send(self, data: bytes, to: str | None = None) -> None:
        """Send to one neighbour, or to all of them. Never raises because of the network: what is lost is repaired."""
        if to is None:
            put = self._say
        elif to in self._to:
            put = self._to[to]
        else:
            raise ValueError(f"to must be a neighbour of {self.name}, got {to!r}.")
        try:
            put(data)
        except self._error:  # the link was closed
            return

    def publish(self, suffix: str, payload: bytes) -> None:
        """Publish on ``SITE/NAME/suffix`` for whoever listens; somebody who is too slow misses some of it."""
        with contextlib.suppress(self._error):
            if suffix not in self._others:
                self._others[suffix] = self._publisher(check_part("suffix", suffix), wait=False)
            self._others[suffix].put(payload)

    def subscribe(self, suffix: str, callback: Callable[[bytes], None]) -> None:
        """Call ``callback`` with whatever comes on ``SITE/NAME/suffix``, from a thread of zenoh, until ``close``."""
        key = f"{self.site}/{self.name}/{check_part('suffix', suffix)}"
        if self._closed:
            raise ValueError(f"{self.name} cannot listen on {key}: its link is closed.")
        put = self._zenoh.SampleKind.PUT

        def receive(sample: Any) -> None:
            if sample.kind == put and not self._closed:
                try:
                    callback(sample.payload.to_bytes())
                except Exception:
                    _log.exception("what came on %s could not be taken", key)

        self._declared.append(self.session.declare_subscriber(key, self._direct(receive)))

    def answer(self, suffix: str, take: Callable[[Question], None]) -> Any:
        """Call ``take`` with whatever is asked on ``SITE/NAME/suffix``, from a thread of zenoh, until ``close``."""
        key = f"{self.site}/{self.name}/{check_part('suffix', suffix)}"
        if self._closed:
            raise ValueError(f"{self.name} cannot be asked on {key}: its link is closed.")

        def asked(query: Any) -> None:
            if not self._closed:
                try:
                    take(Asked(query, key, self._error))
                except Exception:
                    _log.exception("what was asked on %s could not be taken", key)

        self._declared.append(self.session.declare_queryable(key, self._direct(asked), complete=True))
        return self._declared[-1]

    def close(self) -> None:
        """Say goodbye: the neighbours see it go at once. No event is delivered any more."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        token = getattr(self, "_token", None)
        for thing in (*(() if token is None else (token,)), *self._declared):
            with contextlib.suppress(self._error):
                thing.undeclare()
        with contextlib.suppress(self._error):
            self.session.close()
        if self._port is not None:
            hang_up(self._port)  # on whoever was connecting: see ``zenoh_sockets``
        self._caretaker.close()
        _OPEN.discard(self)

    def __enter__(self) -> ZenohLink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_zenoh() -> Any:
    """The library, with threads that suit agents if this is the first that the process sees of it."""
    os.environ.setdefault("ZENOH_RUNTIME", THREADS)
    return _extras.need("zenoh", "an agent on a network")


def _open(zenoh: Any, settings: dict[str, Any], listen: str | None) -> Any:
    try:
        return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
    except zenoh.ZError as error:
        found = re.search(r"\(os error (\d+)\)", str(error))
        if found and listen is not None:
            number = int(found[1])
            raise OSError(number, f"cannot listen on {listen}: {os.strerror(number)}") from None
        reason = re.sub(r"\.? at /\S+", "", str(error)).strip(" .")  # where in zenoh's own code it happened
        raise OSError(f"cannot listen on {listen}: {reason}." if listen else f"zenoh cannot start: {reason}.") from None


@atexit.register
def _close_all() -> None:
    """Close what was left open: zenoh must not call a Python that is gone."""
    for link in tuple(_OPEN):
        link.close()
