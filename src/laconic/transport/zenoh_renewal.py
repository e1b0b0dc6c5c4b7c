"""A link whose certificates are replaced while it is used.

Zenoh reads certificates and access rules when a session is opened, and never again. So when the files change, this link
closes its session and opens another one: its neighbours see it go and come back within a moment, as after a cut cable,
and what the agent knows is not touched. Changes are found by looking at the files from time to time.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from laconic.transport.link import Connected, Disconnected, Event, Noticed, Question
from laconic.transport.zenoh import ZenohLink, load_zenoh
from laconic.transport.zenoh_security import Security

#: Seconds between two looks at the files.
EVERY = 0.5
#: Seconds of a certificate's life that are left when people are warned, and between two warnings.
SOON, DAY = 30 * 86_400.0, 86_400.0

_ARRIVALS = 4096  # links opened and closed between two looks that are remembered; a handshake of TLS takes milliseconds
_IN_USE = "revoked certificate in use"

_log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int] | None, ...]


class _Subscription:
    """What listens on a key, in whatever session there is."""

    def __init__(self, declare: Callable[[ZenohLink], Any], forget: Callable[[_Subscription], None]) -> None:
        self.declare, self._forget = declare, forget
        self.now: Any = None

    def undeclare(self) -> None:
        """Stop listening."""
        self._forget(self)
        if self.now is not None:
            self.now.undeclare()


@final
class RenewingLink:
    """A ``ZenohLink`` with security that opens its session anew when certificates or the list of revoked ones change.

    Files that do not fit each other, half of them replaced perhaps, or that are no good, change nothing: the session
    that there is stays. If they are still so at the next look, that is logged and published as an alert; and so is,
    once a day, that a certificate has less than a month left. Every link that was opened with a revoked certificate
    since the last look is reported, however short it was, and once a day one that stays open.

    Parameters
    ----------
    name : str
    deliver : callable
        As for ``ZenohLink``. When the session is opened anew, each neighbour is first said to be gone.
    security : Security
    every : float, optional
        Seconds between two looks, from a thread; None if ``look`` is called by somebody else.
    **options
        Of ``ZenohLink``.
    """

    def __init__(
        self,
        name: str,
        *,
        deliver: Callable[[Event], None],
        security: Security,
        every: float | None = EVERY,
        **options: Any,
    ) -> None:
        self.name, self.security = name, security
        self.session: Any = self  # what a source of samples declares its subscriber with
        self._deliver, self._options = deliver, options
        self._here: set[str] = set()  # neighbours that were said to be there
        self._subscriptions: list[_Subscription] = []
        self._gate = threading.Lock()  # no session is closed while it is used
        self._looks = threading.Lock()
        self._seen = self._stamps()  # of the files as they are in use
        self._doubted: _Stamp | None = None  # that were no good at the last look
        self._listed = security.revoked is not None and security.revoked.exists()
        self._warned: dict[object, float] = {}  # when people were last warned of something
        self._link: ZenohLink | None = None
        self._arrivals: Any = None  # links that were opened in this session, and have not been looked at
        self._open()
        self._over = threading.Event()
        self._thread = None
        if every is not None:
            run = threading.Thread(target=self._run, args=(every,), name="looks after certificates", daemon=True)
            self._thread = run
            run.start()

    # ----------------------------------------------------------------------------------------------------------------
    # As a link

    def send(self, data: bytes, to: str | None = None) -> None:
        """Send to one neighbour, or to all of them; see ``ZenohLink.send``."""
        with self._gate:
            if self._link is not None:
                self._link.send(data, to)

    def publish(self, suffix: str, payload: bytes) -> None:
        """Publish for whoever listens; see ``ZenohLink.publish``."""
        with self._gate:
            if self._link is not None:
                self._link.publish(suffix, payload)

    def declare_subscriber(self, key: str, handler: Callable[[Any], None]) -> _Subscription:
        """Hand what comes on ``key`` to ``handler``, also after the session was opened anew."""
        return self._keep(lambda link: link.session.declare_subscriber(key, handler))

    def answer(self, suffix: str, take: Callable[[Question], None]) -> _Subscription:
        """Hand what is asked to ``take``, also after the session was opened anew; see ``ZenohLink.answer``."""
        return self._keep(lambda link: link.answer(suffix, take))

    def _keep(self, declare: Callable[[ZenohLink], Any]) -> _Subscription:
        made = _Subscription(declare, self._forget)
        with self._gate:
            if self._link is not None:
                made.now = made.declare(self._link)
            self._subscriptions.append(made)
        return made

    def close(self) -> None:
        """Say goodbye: the neighbours see it go at once. No event is delivered any more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        with self._gate:
            link, self._link = self._link, None
        if link is not None:
            link.close()

    def _forget(self, subscription: _Subscription) -> None:
        with self._gate:
            self._subscriptions.remove(subscription)

    def _news(self, event: Event) -> None:
        if isinstance(event, Connected):
            self._here.add(event.name)
        elif isinstance(event, Disconnected):
            self._here.discard(event.name)
        self._deliver(event)

    # ----------------------------------------------------------------------------------------------------------------
    # What changes

    def _run(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                self.look(time.time())
            except Exception:  # whatever it is, the next look may be better, and the link as it is is of use
                _log.exception("certificates could not be looked at", extra={"agent": self.name})

    def look(self, now: float) -> None:
        """Do what is due at ``now``, in seconds since 1970: warn, and open a new session if files have changed."""
        with self._looks:
            self._warn(now)
            if self._link is None or self._changed(now):  # None: the last attempt failed
                self._reopen(now)
            else:
                self._watch(now)

    def _changed(self, now: float) -> bool:
        """Whether there are other files than those in use, and they are good."""
        seen = self._stamps()
        if seen == self._seen:
            return False
        try:
            fresh = self._contents(now)
        except (ValueError, OSError) as error:
            if seen == self._doubted:  # not only on their way
                self._tell(now, logging.ERROR, "certificates refused", seen, why=str(error))
            self._doubted = seen
            return False
        self._seen, self._doubted = seen, None
        return fresh != self._used

    def _stamps(self) -> _Stamp:
        """What tells that a file was replaced."""
        return tuple(_stamp(path) for path in self._files())

    def _files(self) -> list[Path]:
        files = self.security
        return [files.ca, files.certificate, files.key, *(() if files.revoked is None else (files.revoked,))]

    def _contents(self, now: float) -> tuple[dict[str, Any], frozenset[str]]:
        """All that a session is made of, if it is any good: its certificates, and the names on the list.

        All members of a site may ask an agent, its neighbours or not. So a session is opened anew for any name.
        """
        security = self.security
        if security.revoked is not None:
            if self._listed and not security.revoked.exists():  # that would let in whom it kept out
                raise ValueError(f"{security.revoked} is gone, the list of revoked certificates: bring it back.")
            self._listed = security.revoked.exists()
        security.check(self.name, datetime.datetime.fromtimestamp(now, datetime.UTC))
        return security.settings(), security.revoked_names()

    def _open(self) -> None:
        self._used = self._contents(time.time())  # before they are read again: what changes meanwhile is noticed
        link = ZenohLink(self.name, deliver=self._news, security=self.security, **self._options)
        # A channel within zenoh, since its threads must not call a Python that is about to end.
        channel = load_zenoh().handlers.RingChannel(_ARRIVALS)
        arrivals = link.session.info.declare_link_events_listener(channel, history=True)
        with self._gate:
            self._link, self._arrivals = link, arrivals
            for one in self._subscriptions:
                one.now = one.declare(link)

    def _reopen(self, now: float) -> None:
        self._watch(now)  # what this session has seen goes with it
        with self._gate:
            link, self._link = self._link, None
        if link is not None:
            link.close()
            _log.info("certificates changed, connects anew", extra={"agent": self.name})
        for name in sorted(self._here):
            self._deliver(Disconnected(name))
        self._here.clear()
        try:
            self._open()
        except (ValueError, OSError) as error:  # a port that is not free again yet, or files that changed once more
            self._tell(now, logging.ERROR, "cannot connect anew", "open", why=str(error))

    # ----------------------------------------------------------------------------------------------------------------
    # What people should know

    def _warn(self, now: float) -> None:
        """Warn of certificates that end soon."""
        with contextlib.suppress(ValueError, OSError):  # files that cannot be read are another matter
            for path, end in self.security.ends().items() if self._due(now, "looked") else ():
                left = end.timestamp() - now
                if left < SOON:
                    fields = {"path": str(path), "ends": f"{end:%Y-%m-%d}", "days": int(left // DAY)}
                    self._tell(now, logging.WARNING, "certificate ends soon", path, **fields)

    def _watch(self, now: float) -> None:
        """Report revoked certificates in use: each link that was opened with one, and once a day one that is open."""
        with self._gate:
            if self._link is None:
                return
            gone = load_zenoh().SampleKind.DELETE
            arrived = [event.link for event in iter(self._arrivals.try_recv, None) if event.kind != gone]
            there = self._link.session.info.links()
        revoked = self._used[1]
        with contextlib.suppress(ValueError, OSError):  # a list that cannot be read: the one in use still holds
            revoked |= self.security.revoked_names()
        attempts: dict[tuple[str, str], list[str]] = {}  # by certificate and host
        for link in arrived:
            if link.auth_identifier in revoked:
                at = str(link.dst)
                attempts.setdefault((link.auth_identifier, at.rpartition(":")[0]), []).append(at)
        for (name, _), places in attempts.items():
            self._warned[_IN_USE, name] = now
            fields = {"certificate": name, "at": places[-1], "attempts": len(places)}
            self._report(now, logging.WARNING, _IN_USE, **fields)
        for link in there:
            name = link.auth_identifier
            if name in revoked:
                self._tell(now, logging.WARNING, _IN_USE, name, certificate=name, at=str(link.dst))

    def _due(self, now: float, what: object) -> bool:
        if now - self._warned.get(what, -DAY) < DAY:
            return False
        self._warned[what] = now
        return True

    def _tell(self, now: float, level: int, event: str, what: object, **fields: object) -> None:
        """Report the same thing once a day."""
        if self._due(now, (event, what)):
            self._report(now, level, event, **fields)

    def _report(self, now: float, level: int, event: str, **fields: object) -> None:
        """Log, publish and deliver."""
        _log.log(level, event, extra={"agent": self.name, **fields})
        said = json.dumps({"agent": self.name, "event": event, "time": now, **fields})
        self.publish("alert", said.encode())
        self._deliver(Noticed(event, said))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
