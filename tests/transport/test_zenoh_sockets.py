"""Zenoh's sockets, where zenoh leaves something open."""

import os
import queue
import socket
import threading
from contextlib import ExitStack, suppress

import pytest
from ports import free_port
from zenoh_places import WAIT

from laconic.transport.zenoh import ZenohLink
from laconic.transport.zenoh_sockets import hang_up

pytestmark = pytest.mark.sockets


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def both_ends(stack, server):
    """A connection: the end that asked for it, and the one that was accepted."""
    near = stack.enter_context(socket.create_connection(server.getsockname(), WAIT))
    far = stack.enter_context(server.accept()[0])
    return near, far


def test_only_what_was_accepted_where_nobody_listens_any_more_is_cut(stack):
    one = stack.enter_context(socket.create_server(("127.0.0.1", free_port())))
    port = one.getsockname()[1]
    two = stack.enter_context(socket.create_server(("127.0.0.2", port)))  # of somebody else in this process
    here, there = both_ends(stack, one), both_ends(stack, two)
    hang_up(port)  # there may be a new session already
    for near, far in (here, there):
        far.sendall(b"still here")
        assert near.recv(10) == b"still here"
    one.close()
    hang_up(port)
    assert here[0].recv(1) == b""
    near, far = there
    far.sendall(b"still here")
    assert near.recv(10) == b"still here"
    os.fstat(here[1].fileno())  # whose it is closes it


class Door:
    """A place before a link, where each message of a handshake is let through by hand."""

    def __init__(self, stack, port):
        self.stack, self.port = stack, port
        self.server = stack.enter_context(socket.create_server(("127.0.0.1", free_port())))
        self.server.settimeout(WAIT)
        self.endpoint = f"tcp/127.0.0.1:{self.server.getsockname()[1]}"

    def knock(self):
        """Who connects, and the link to which it is let."""
        outside = self.stack.enter_context(self.server.accept()[0])
        inside = self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))
        for end in (outside, inside):
            end.settimeout(WAIT)
        return outside, inside


def let_through(whence, whither):
    """Hand on one message: two bytes that say how long it is, and so many more."""
    header = whence.recv(2, socket.MSG_WAITALL)
    whither.sendall(header + whence.recv(int.from_bytes(header, "little"), socket.MSG_WAITALL))


def until_the_end(end):
    while end.recv(4096):
        pass


def test_who_connects_while_a_link_is_closed_is_not_left_with_what_is_no_more(stack):
    """Zenoh finishes what it is accepting after it has closed all it had: that connection nobody closed."""
    port, news = free_port(), queue.SimpleQueue()

    def open_link(name, listen, neighbours):
        # A lease that does not end: what holds a connection open, and what cuts it, is not time.
        link = ZenohLink(name, listen=listen, neighbours=neighbours, deliver=news.put, lease=3600)
        stack.callback(link.close)
        return link

    hall = open_link("hall", f"tcp/127.0.0.1:{port}", {"attic": None, "kitchen": None})
    door = Door(stack, port)
    open_link("attic", None, {"hall": door.endpoint})
    attic, of_attic = door.knock()
    for way in ((attic, of_attic), (of_attic, attic)) * 2:
        let_through(*way)
    open_link("kitchen", None, {"hall": door.endpoint})
    kitchen, of_kitchen = door.knock()
    for way in ((kitchen, of_kitchen), (of_kitchen, kitchen)):
        let_through(*way)

    closing = threading.Thread(target=hall.close)
    closing.start()
    until_the_end(of_attic)  # so far it has got
    with suppress(ConnectionError):  # cut already, on a machine on which zenoh has lost patience with the kitchen
        let_through(kitchen, of_kitchen)
        until_the_end(of_kitchen)
    closing.join()

    kitchen.close()
    door.server.accept()[0].close()  # the kitchen tries again
