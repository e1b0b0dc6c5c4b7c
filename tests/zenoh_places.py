"""What tests of links over zenoh share: places on loopback, processes, and a cable that can be cut."""

import queue
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

from ports import free_port

from laconic.transport import Connected, Disconnected, Received
from laconic.transport.zenoh import ZenohLink

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines


class Place:
    """One agent's link, with a queue of what it heard."""

    def __init__(self, name, where, edges, **options):
        self.name, self.news = name, queue.SimpleQueue()
        neighbours = {other: where[other] for edge in edges if name in edge for other in edge if other != name}
        self.link = ZenohLink(name, listen=where[name], neighbours=neighbours, deliver=self.news.put, **options)
        self.send, self.close = self.link.send, self.link.close

    def next(self, timeout=WAIT):
        return self.news.get(timeout=timeout)

    def take(self, count):
        return [self.next() for _ in range(count)]

    def until(self, event):
        """All that came before an event."""
        before = []
        while (item := self.next()) != event:
            before.append(item)
        return before


class Places:
    """Opens places by name, where nobody else is; closes them all."""

    def __init__(self, protocol="tcp"):
        self.protocol, self.where, self.stack = protocol, {}, ExitStack()

    def __call__(self, name, edges, **options):
        for edge in edges:
            for end in edge:
                self.where.setdefault(end, f"{self.protocol}/127.0.0.1:{free_port()}")
        place = Place(name, self.where, edges, **options)
        self.stack.callback(place.close)
        return place

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


class Relay:
    """A cable between two agents that can be cut: connections break, and new ones are refused until it is mended."""

    def __init__(self, target):
        self.target = target
        self.ends = []
        self.socket = socket.create_server(("127.0.0.1", free_port()))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.tried = queue.SimpleQueue()  # an entry for each connection
        self.whole = threading.Event()
        self.whole.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.socket.accept()
                if not self.whole.is_set():
                    near.close()
                    continue
                far = socket.create_connection(self.target)
            except OSError:
                return
            self.tried.put(near)
            self.ends += [near, far]
            for one, two in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(one, two), daemon=True).start()

    def copy(self, one, two):
        with suppress(OSError):
            while data := one.recv(65_536):
                two.sendall(data)
            two.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.whole.clear()
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.ends.clear()

    def close(self):
        self.cut()
        self.socket.close()


AGENT = """
import ctypes, queue, sys
from laconic.transport import Connected, Received
from laconic.transport.zenoh import Security, ZenohLink

name, listen, other, endpoint, lease, *files = sys.argv[1:]
news, options = queue.SimpleQueue(), {"lease": float(lease), "security": Security(*files) if files else None}
link = ZenohLink(name, listen=listen, neighbours={other: endpoint}, deliver=news.put, **options)
while True:
    event = news.get(timeout=300)
    if isinstance(event, Connected):
        for number in range(50):
            link.send(b"%d" % number)
    elif isinstance(event, Received):
        if event.data == b"compute":  # until told to stop, without letting go of the interpreter
            ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
        elif event.data == b"stop":
            break
        link.send(event.data, other)
# Leaves without closing.
"""


class Processes:
    """Starts agents in processes of their own; ends them all."""

    def __init__(self):
        self.started = []

    def __call__(self, *words):
        command = [sys.executable, "-c", AGENT, *map(str, words)]
        self.started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.started[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
            process.communicate()


def hang_with_much_to_hear(site, processes, files=None):
    """While the kitchen hangs and much is sent to it, the hall hears the attic."""
    edges = [("kitchen", "hall"), ("attic", "hall")]
    security = files or dict.fromkeys(("hall", "attic"))
    hall, attic = (site(name, edges, lease=0.5, security=security[name]) for name in ("hall", "attic"))
    assert hall.next() == Connected("attic") and attic.next() == Connected("hall")
    own = files and (files["kitchen"].ca, files["kitchen"].certificate, files["kitchen"].key)
    process = processes("kitchen", site.where["kitchen"], "hall", site.where["hall"], 0.5, *own or ())
    assert hall.next() == Connected("kitchen")
    hall.take(50)
    process.send_signal(signal.SIGSTOP)
    for _ in range(16):  # more than the system keeps for a process that does not read
        hall.send(bytes(1 << 20), "kitchen")
    assert hall.next() == Disconnected("kitchen")
    attic.send(b"still here")
    assert hall.next() == Received("attic", b"still here")
    # zenoh alone would wait for 5 seconds, and take the attic for gone meanwhile
    assert hall.news.empty() and attic.news.empty()
