"""The inbox of an agent under floods: bounded, fair, and heedful of signals to stop."""

import logging
import os
import signal
import threading
from collections import Counter
from itertools import pairwise

import pytest

from laconic.deploy.running.exits import STOPS, heard
from laconic.deploy.running.inbox import AT_A_TIME, MOST_BYTES, MOST_MESSAGES, Inbox
from laconic.transport.link import Connected, Disconnected, Received

LONG = 300.0  # seconds: a wait that only a mistake makes this long
FLOOD = 100_000


def drain(inbox):
    """All that waits, taken in as many turns as it needs."""
    taken = []
    while inbox:
        taken += inbox.take(0)
    return taken


def test_a_flood_of_one_neighbour_leaves_a_bounded_rest_and_is_counted(caplog):
    inbox = Inbox()
    longest = 0
    with caplog.at_level(logging.WARNING, logger="laconic"):
        for number in range(FLOOD):
            inbox.put(Received("loud", number.to_bytes(4, "big")))
            longest = max(longest, len(inbox))
    assert longest == MOST_MESSAGES
    left = [int.from_bytes(item.data, "big") for item in drain(inbox)]
    assert left == list(range(FLOOD - len(left), FLOOD))  # the newest ones, none missing among them
    assert inbox.dropped == {"loud": FLOOD - len(left)}
    counts = [record.count for record in caplog.records if record.msg == "messages dropped"]
    assert len(counts) < 20 and all(later >= 2 * sooner - MOST_MESSAGES for sooner, later in pairwise(counts))


def test_a_flood_of_large_messages_is_bounded_in_bytes():
    inbox = Inbox()
    large = bytes(1 << 20)
    for _ in range(FLOOD // 100):
        inbox.put(Received("loud", large))
    assert sum(len(item.data) for item in drain(inbox)) <= MOST_BYTES
    inbox = Inbox(most_bytes=10)
    inbox.put(Received("loud", bytes(100)))  # larger than all that may wait, but alone
    inbox.put(Received("loud", bytes(5)))
    inbox.put(Received("loud", bytes(5)))
    assert [len(item.data) for item in drain(inbox)] == [5, 5] and inbox.dropped == {"loud": 1}


def test_a_quiet_neighbour_is_taken_in_with_the_first_of_a_flood():
    inbox = Inbox()
    for number in range(FLOOD):
        inbox.put(Received("loud", b"x"))
        if number == FLOOD // 2:
            inbox.put(Received("quiet", b"hear me"))
            inbox.put(Received("quiet", b"and me"))
    first = inbox.take(0)
    assert len(first) == AT_A_TIME
    assert [item.data for item in first[:4] if item.sender == "quiet"] == [b"hear me", b"and me"]


def test_neighbours_take_turns_and_each_keeps_its_order():
    inbox = Inbox()
    for sender, count in (("a", 5), ("b", 1), ("c", 3)):
        for number in range(count):
            inbox.put(Received(sender, bytes([number])))
    taken = inbox.take(0)
    assert [item.sender for item in taken] == ["a", "b", "c", "a", "c", "a", "c", "a", "a"]
    assert [item.data[0] for item in taken if item.sender == "a"] == [0, 1, 2, 3, 4]
    assert not inbox and len(inbox) == 0


def test_coming_and_going_stays_in_order_with_messages_and_survives_a_flood():
    inbox = Inbox()
    story = [Connected("a"), Received("a", b"1"), Disconnected("a"), Connected("a"), Received("a", b"2")]
    for item in story:
        inbox.put(item)
    assert inbox.take(0) == story
    for item in (Disconnected("a"), *[Received("a", b"x")] * FLOOD, Connected("a"), *[Received("a", b"y")] * FLOOD):
        inbox.put(item)
    met = [item for item in drain(inbox) if type(item) is not Received]
    assert met == [Disconnected("a"), Connected("a")]


@pytest.mark.parametrize("times", [FLOOD, FLOOD + 1])
def test_one_that_comes_and_goes_without_end_is_where_it_was_last(times):
    inbox = Inbox()
    for number in range(times):
        inbox.put(Disconnected("a") if number % 2 == 0 else Connected("a"))
    assert len(inbox) <= MOST_MESSAGES
    met = drain(inbox)
    assert [type(item) for item in met] == [(Disconnected, Connected)[k % 2] for k in range(len(met))]
    assert type(met[-1]) is (Connected if times % 2 == 0 else Disconnected)


def test_a_signal_comes_first_and_alone():
    inbox = Inbox()
    for _ in range(FLOOD):
        inbox.put(Received("loud", b"x"))
    inbox.put(15)
    inbox.put(2)
    before = len(inbox)
    assert inbox.take(LONG, enough=10) == [15] and inbox.take(LONG) == [2]
    assert len(inbox) == before - 2


def test_news_that_say_the_same_are_one():
    inbox, samples = Inbox(), object()
    for _ in range(FLOOD):
        inbox.put(samples)
    assert inbox.take(LONG) == [samples] and not inbox
    inbox.put(samples)
    assert inbox.take(LONG) == [samples]


@pytest.mark.parametrize("news", [15, Connected("a"), object()])
def test_whatever_is_no_message_wakes_a_reader_that_waits_for_many(news):
    inbox = Inbox()
    inbox.put(Received("b", b"x"))
    reader = threading.Timer(0, lambda: inbox.put(news))
    reader.start()
    taken = []
    while news not in taken:
        taken += inbox.take(LONG, enough=1000)
    reader.join()


def test_a_real_signal_is_heard_amid_floods_from_several_threads():
    inbox, over = Inbox(), threading.Event()

    def flood(sender):
        while not over.is_set():
            inbox.put(Received(sender, b"x" * 50))

    threads = [threading.Thread(target=flood, args=(name,)) for name in ("a", "b", "c")]
    seen, after = Counter(), None
    with heard(inbox.put):
        for thread in threads:
            thread.start()
        try:
            while after is None:
                taken = inbox.take(LONG)
                seen.update(item.sender for item in taken if type(item) is Received)
                assert len(taken) <= AT_A_TIME and len(inbox) <= 3 * MOST_MESSAGES
                if sum(seen.values()) >= 10_000 and len(seen) == 3:
                    # In the main thread it is heard before the next instruction, wherever that is.
                    os.kill(os.getpid(), signal.SIGTERM)
                    after = inbox.take(LONG)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert after == [signal.SIGTERM]


def test_a_signal_that_does_not_wake_the_main_thread_is_heard_by_who_waits_there():
    """One that comes in the moment before a wait does not; here none ever does, for this thread takes none."""
    inbox, over = Inbox(), threading.Event()
    other = threading.Thread(target=over.wait)  # somebody must take it
    other.start()
    before = set(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    try:
        with heard(inbox.put):
            signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
            for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)
                assert inbox.take(LONG) == [number]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        over.set()
        other.join()
