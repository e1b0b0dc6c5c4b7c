"""The queue between those who bring news, on threads of their own, and the one loop that takes them in."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, final

from laconic.transport.link import Received

_PROMPT = 0.01  # seconds that a message may lie there because more are expected


@final
class Inbox:
    """A queue that wakes its reader only when enough has come.

    A round needs a message of each neighbour. To wake up for each of them costs as much as the rest of a round: two
    switches of threads, with Python's lock changing hands. So the reader says how many it waits for. Whatever is not a
    message of a neighbour wakes it at once, and a message never lies longer than a moment.

    ``put`` may be called by any thread, and by a signal handler that interrupts ``take`` itself: all that it does is
    atomic, or harmless if done twice.

    Examples
    --------
    >>> inbox = Inbox()
    >>> for news in (Received("hall", b"..."), 15):
    ...     inbox.put(news)
    >>> inbox.take(timeout=1.0)
    [Received(sender='hall', data=b'...'), 15]
    >>> inbox.take(timeout=0.001)
    []
    """

    def __init__(self) -> None:
        self._news: deque[Any] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._enough = sys.maxsize  # messages that are worth a wake-up; nobody sleeps if it is that many

    def put(self, item: Any) -> None:
        """Add an item, and wake the reader if it waits for that; from any thread."""
        self._news.append(item)
        # The reader sets what is enough, then looks what is there; here it is the other way round. So one of both sees
        # the other, and no wake-up is lost.
        if len(self._news) >= self._enough or type(item) is not Received:
            self._bell.put(None)

    def __bool__(self) -> bool:
        return bool(self._news)

    def take(self, timeout: float, enough: int = 1) -> list[Any]:
        """All news there are: once it is ``enough``, or after ``timeout`` seconds, or a moment after the first."""
        news, bell = self._news, self._bell
        if timeout > 0:
            if enough > 1 and len(news) < enough:
                self._sleep(min(timeout, _PROMPT), enough)
                timeout -= _PROMPT
            if not news and timeout > 0:
                self._sleep(timeout, 1)
            self._enough = sys.maxsize
            while not bell.empty():  # rung twice, or for what was seen without it
                bell.get()
        taken = []
        while news:
            taken.append(news.popleft())
        return taken

    def _sleep(self, seconds: float, enough: int) -> None:
        self._enough = enough
        if len(self._news) < enough:
            with suppress(Empty):
                self._bell.get(timeout=seconds)
