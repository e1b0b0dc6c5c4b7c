"""A member of a site that lies: ``python benchmarks/liar.py SITE NAME``, until it is stopped. For ``chaos.py``.

It is a real agent over zenoh with the site's own settings, so that its handshakes carry the numbers that others have
just drawn. Between its own messages it sends others: spoiled ones, ones that are spoiled and have the right checksum,
old ones, bursts of requests and greetings, calls and offers from far rounds, and differences and shares of any size.
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import Any

import numpy as np

from laconic.deploy.running.exits import heard
from laconic.deploy.running.inbox import Inbox
from laconic.deploy.running.runner import assemble, make_agent, open_link, terms_of, warm
from laconic.deploy.settings.site import Site
from laconic.protocol import Agent
from laconic.protocol.messages import Call, Hello, Kind, Request, Statement
from laconic.testing.spoiler import Spoiler

KEPT = 200  # own messages that are used again


class LyingLink:
    """The link of an agent, by which more goes out than the agent says."""

    def __init__(self, link: Any, agent: Agent) -> None:
        self._link, self._agent = link, agent
        self.session = link.session
        self.close, self.publish = link.close, link.publish
        self._spoiler, self._dice, self._own = Spoiler(0), random.Random(0), [b"lc"]

    def send(self, data: bytes, to: str | None = None) -> None:
        """Send it, and something else besides; now and then something else instead."""
        self._own = [*self._own, data][-KEPT:]
        if self._dice.random() > 0.05:
            self._link.send(data, to)
        for _ in range(self._dice.choice((0, 0, 1, 1, 2, 20))):
            self._link.send(self._lie(to), to)

    def _lie(self, to: str | None) -> bytes:
        way = self._dice.randrange(6)
        if way == 0:
            return self._spoiler.spoil(self._own)
        if way == 1:
            return self._spoiler.seal(self._own)
        if way == 2:
            return self._dice.choice(self._own)
        return self._forged(str(to), way)

    def _forged(self, to: str, way: int) -> bytes:
        dialogue, dice = self._agent._dialogue, self._dice
        end, wire = dialogue.ends[to], dialogue.wire
        far = dialogue.round + dice.choice((2, 100, 1 << 20, (1 << 46)))
        if way == 3:
            return wire.encode(Request(end.tag, dice.choice((0, end.heard, far))), end.number, not end.leads)
        if way == 4:
            letter = Call(dialogue.inc, end.call, far, 4, end.tag, False) if end.leads else Hello(dialogue.inc, end.tag)
            return wire.encode(letter, end.number, not end.leads)
        packed = np.frombuffer(dice.randbytes(wire.packed_size), dtype=np.uint8)
        body = wire.difference(packed, dice.choice((1e3, 1e14, 1e30, 3e38)))
        n, label = end.spoken + dice.choice((0, 1, 2, 50)), end.k + dice.choice((0, 1, 5, far))
        statement = Statement(end.tag, n, label, 4, dice.getrandbits(32), Kind.DIFFERENCE, body)
        return wire.encode(statement, end.number, not end.leads)


def main() -> None:
    site, name = Site.read(sys.argv[1]), sys.argv[2]
    agent, news = make_agent(site, name), Inbox()
    warm(site)
    with ExitStack() as stack:
        stack.enter_context(heard(news.put))

        def lying_link(site: Site, name: str, deliver: Any) -> LyingLink:
            return LyingLink(open_link(site, name, deliver), agent)

        assemble(stack, site, agent, terms_of(site, progress=1.0), news.put, open_link=lying_link).run(news)


if __name__ == "__main__":
    main()
