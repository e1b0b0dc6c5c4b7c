"""The queues between those who bring news, on threads of their own, and the one loop that takes them in.

Each neighbour has a queue of its own, of bounded length, and the loop takes from all of them in turn: whoever floods an
agent fills its own queue and nobody else's, neither memory nor the others' news suffer. What asks the agent to stop
has a way of its own past all of them.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter, deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, final

from laconic.transport.link import Connected, Disconnected, Received

#: Messages and bytes of one neighbour that may wait. Honest ones come one a round, and a round takes them all.
MOST_MESSAGES, MOST_BYTES = 1024, 32 << 20
#: Messages that are taken at a time, so that whoever takes them soon looks up again.
AT_A_TIME = 256

_PROMPT = 0.01  # seconds that a message may lie there because more are expected

_log = logging.getLogger(__name__)


class _Queue:
    """What came from one neighbour, or from none."""

    __slots__ = ("items", "size")

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.size = 0  # bytes of its messages


@final
class Inbox:
    """Queues that wake their reader only when enough has come.

    A round needs a message of each neighbour. To wake up for each of them costs as much as the rest of a round: two
    switches of threads, with Python's lock changing hands. So the reader says how many it waits for. Whatever is not a
    message of a neighbour wakes it at once, and a message never lies longer than a moment.

    News of one neighbour, its messages and its coming and going, stay in order. When more of them wait than may, all
    its messages that wait are forgotten, and counted in ``dropped``: the protocol repairs what an honest neighbour said
    by asking for the newest, not for the oldest. That it went or came is never forgotten.

    ``put`` may be called by any thread; with a signal's number also by a signal handler that interrupts ``take``
    itself, since that way has no lock.

    Parameters
    ----------
    most_messages, most_bytes : int
        Of one neighbour that may wait; a single message may be larger.
    at_a_time : int
        Messages that ``take`` returns at most.

    Attributes
    ----------
    dropped : Counter
        Messages forgotten, by neighbour.

    Examples
    --------
    >>> inbox = Inbox()
    >>> for sender in ("hall", "hall", "attic"):
    ...     inbox.put(Received(sender, b"..."))
    >>> [news.sender for news in inbox.take(timeout=1.0)]
    ['hall', 'attic', 'hall']
    >>> inbox.put(Received("hall", b"..."))
    >>> inbox.put(15)  # a signal goes before all others, and alone
    >>> inbox.take(timeout=1.0), len(inbox)
    ([15], 1)
    """

    def __init__(
        self, most_messages: int = MOST_MESSAGES, most_bytes: int = MOST_BYTES, at_a_time: int = AT_A_TIME
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self._most, self._most_bytes, self._at_a_time = most_messages, most_bytes, at_a_time
        self._stops: deque[int] = deque()
        self._queues: dict[Any, _Queue] = {}
        self._turns: deque[Any] = deque()  # whose turn it is; each that has news is in it once
        self._length = 0
        self._lock = threading.Lock()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._enough = sys.maxsize  # messages that are worth a wake-up; nobody sleeps if it is that many

    def put(self, item: Any) -> None:
        """Add news: a signal's number, an event of a link, or anything else, of which one at a time is enough."""
        if type(item) is int:
            self._stops.append(item)
            self._bell.put(None)
            return
        lost, urgent = 0, type(item) is not Received
        with self._lock:
            if not urgent:
                lost = self._add_message(item)
            elif type(item) in (Connected, Disconnected):
                self._add(item.name, item)
            elif item not in self._queues:
                self._add(item, item)
            else:
                return
        # The reader sets what is enough, then looks what is there; here it is the other way round. So one of both sees
        # the other, and no wake-up is lost.
        if urgent or self._length >= self._enough:
            self._bell.put(None)
        if lost:
            self._say(item.sender, lost)

    def _add(self, key: Any, item: Any) -> _Queue:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
            self._turns.append(key)
        queue.items.append(item)
        self._length += 1
        if len(queue.items) > self._most:  # comes and goes without end
            self._shorten(queue)
        return queue

    def _add_message(self, item: Received) -> int:
        """Put a message into its sender's queue; how many others had to go for it."""
        queue, lost = self._queues.get(item.sender), 0
        if queue is not None and (
            len(queue.items) >= self._most or (queue.size and queue.size + len(item.data) > self._most_bytes)
        ):
            lost = self._shorten(queue)
        self._add(item.sender, item).size += len(item.data)
        return lost

    def _shorten(self, queue: _Queue) -> int:
        """Forget the messages of a queue, and all coming and going but the last; how many messages there were."""
        met = [item for item in queue.items if type(item) is not Received]
        lost = len(queue.items) - len(met)
        self._length -= len(queue.items)
        queue.items.clear()
        # They alternate: the last one alone, or, since gone and here again is not here all the time, the last two.
        queue.items.extend(met[-1:] if len(met) % 2 else met[-2:])
        queue.size = 0
        self._length += len(queue.items)
        return lost

    def _say(self, sender: str, lost: int) -> None:
        """Count what was lost, and say so each time that there is twice as much of it."""
        before = self.dropped[sender]
        self.dropped[sender] = before + lost
        if before.bit_length() != (before + lost).bit_length():
            fields = {"neighbour": sender, "count": before + lost}
            _log.warning("messages dropped", extra={**fields, "why": "they come faster than they are taken in"})

    def __len__(self) -> int:
        return self._length + len(self._stops)

    def __bool__(self) -> bool:
        return bool(self._length or self._stops)

    def take(self, timeout: float, enough: int = 1) -> list[Any]:
        """News: once there are ``enough``, or after ``timeout`` seconds, or a moment after the first.

        Of each neighbour in turn one, and at most ``at_a_time``. A signal to stop comes before all others, and alone.
        """
        bell = self._bell
        if timeout > 0:
            if enough > 1 and len(self) < enough:
                self._sleep(min(timeout, _PROMPT), enough)
                timeout -= _PROMPT
            if not self and timeout > 0:
                self._sleep(timeout, 1)
            self._enough = sys.maxsize
            while not bell.empty():  # rung twice, or for what was seen without it
                with suppress(Empty):
                    bell.get_nowait()
        if self._stops:
            return [self._stops.popleft()]
        return self._take() if self._length else []

    def _take(self) -> list[Any]:
        taken: list[Any] = []
        turns, queues = self._turns, self._queues
        with self._lock:
            while turns and len(taken) < self._at_a_time:
                key = turns.popleft()
                queue = queues[key]
                item = queue.items.popleft()
                if type(item) is Received:
                    queue.size -= len(item.data)
                taken.append(item)
                if queue.items:
                    turns.append(key)
                else:
                    del queues[key]
            self._length -= len(taken)
        return taken

    def _sleep(self, seconds: float, enough: int) -> None:
        self._enough = enough
        if len(self) < enough and not self._stops:
            with suppress(Empty):
                self._bell.get(timeout=seconds)
