"""The metrics port under those who ask half, ask too much, ask nonsense, or do not listen to the answer."""

import gzip
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from laconic.deploy.running.metrics import Server, Tally
from laconic.deploy.running.scrapes import LONGEST, MOST, ScrapeServer

pytestmark = pytest.mark.sockets

WAIT = 300.0  # seconds after which something is broken, on the slowest of machines
HALF = b"GET /metrics HTTP/1.1\r\nX-a: "


@pytest.fixture
def connect():
    """Opens connections to a port, and closes them after the test."""
    opened = []

    def connect(port, said=b""):
        end = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        opened.append(end)
        end.sendall(said)
        return end

    yield connect
    for end in opened:
        end.close()


@pytest.fixture
def serve():
    servers = []

    def serve(**limits):
        servers.append(Server("kitchen", Tally(), dict, 0, **limits))
        return servers[-1].port

    yield serve
    for server in servers:
        server.close()


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT) as answer:
        return answer.read()


def rest(end):
    """All that comes until the other side closes."""
    got = b""
    try:
        while data := end.recv(65_536):
            got += data
    except ConnectionError:  # closed with something of ours unread
        pass
    return got


def status(end):
    return rest(end).partition(b"\r\n")[0]


def test_hundreds_of_half_requests_take_no_threads_and_a_scrape_is_answered_amid_them(serve, connect):
    """(L) Before, each had a thread of its own, for ever."""
    port = serve(seconds=3600.0)  # no time limit comes to the rescue
    before = threading.active_count()
    halves = []
    for number in range(400):
        halves.append(connect(port, HALF))
        if number % 100 == 99:
            assert b"laconic_round" in scrape(port)
    assert threading.active_count() == before
    # The oldest had to go; the newest are still being waited for, and are answered when they come to an end.
    assert all(rest(end) == b"" for end in halves[: 400 - MOST])
    halves[-1].sendall(b"b\r\n\r\n")
    assert status(halves[-1]) == b"HTTP/1.1 200 OK"


def test_a_half_request_is_ended_when_its_time_is_over(serve, connect):
    port = serve(seconds=0.05)
    silent, half = connect(port), connect(port, HALF)
    assert rest(silent) == b"" and rest(half) == b""
    assert b"laconic_round" in scrape(port)


def test_there_is_a_time_limit_unless_another_is_asked_for(serve, connect, monkeypatch):
    now = time.monotonic
    port = serve()
    half = connect(port, HALF)
    assert b"laconic_round" in scrape(port)  # so the half request was seen, too
    monkeypatch.setattr(time, "monotonic", lambda: now() + 10.0)
    with suppress(ConnectionError):
        scrape(port)  # whatever happens next, the server looks at its clock
    assert rest(half) == b""


def test_saying_a_little_now_and_then_gains_no_time(serve, connect):
    end = connect(serve(seconds=0.2), HALF)
    end.settimeout(0.02)
    for _ in range(3000):  # a minute, were it answered each time with more patience
        try:
            end.sendall(b"a")
            assert end.recv(1) == b""
            return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    pytest.fail("it was never ended")


def test_one_that_does_not_read_its_answer_is_ended_and_holds_up_nobody(connect):
    large = bytes(64 << 20)  # more than sockets buffer
    server = ScrapeServer(lambda environ, start: (start("200 OK", []), [large])[1], "127.0.0.1", 0, seconds=0.2)
    try:
        deaf = connect(server.port, b"GET / HTTP/1.1\r\n\r\n")
        other = connect(server.port, b"GET / HTTP/1.1\r\n\r\n")
        assert len(rest(other)) >= 1  # began to be answered though the first has not read
        assert len(rest(deaf)) < len(large)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (b"\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"\xff\xfe\x00 / HTTP/2\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /metrics\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 Method Not Allowed"),
        (HALF + b"a" * LONGEST, b"HTTP/1.1 431 Request Header Fields Too Large"),
        (b"GET /metrics HTTP/1.0\n\n", b"HTTP/1.1 200 OK"),
        (b"GET /%6d?name[]=laconic_round HTTP/1.1\r\nno colon\r\n\r\n", b"HTTP/1.1 200 OK"),
    ],
)
def test_requests_by_hand(serve, connect, asked, answer):
    port = serve()
    assert status(connect(port, asked)) == answer
    assert b"laconic_round" in scrape(port)


def test_a_request_in_pieces_is_one(serve, connect):
    end = connect(serve())
    for letter in b"GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n":
        end.sendall(bytes([letter]))
    head, _, body = rest(end).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head and b"laconic_round" in gzip.decompress(body)


def test_an_application_that_fails_is_an_answer_too(connect, caplog):
    def fail(environ, start):
        raise RuntimeError("out of order")

    server = ScrapeServer(fail, "127.0.0.1", 0)
    try:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            scrape(server.port)
    finally:
        server.close()
    assert "metrics failed" in caplog.text


def test_closing_ends_half_requests_and_the_thread(serve, connect):
    server = Server("kitchen", Tally(), dict, 0, seconds=3600.0)
    half = connect(server.port, HALF)
    scrape(server.port)
    before = threading.active_count()
    server.close()
    assert rest(half) == b"" and threading.active_count() == before - 1
