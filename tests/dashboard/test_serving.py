"""The page and its stream, from a real server: to a client, and to a browser that watches a real site."""

import json
import re
import threading
from contextlib import contextmanager
from importlib import resources

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import laconic as lc
from laconic.dashboard import Board, Gate, Lane, make_app
from laconic.dashboard.serving import listen_on, server_of

pytestmark = [pytest.mark.sockets, pytest.mark.slow]
WAIT = 300.0


@contextmanager
def served(*boards, gate=Gate(), port=0, **options):  # noqa: B008 (never changed)
    lanes = [Lane(name, board) for name, board in zip(("ODKLA", "Local"), boards, strict=False)]
    server = server_of(make_app("home", lanes, lc.Network.path(len(boards[0].names)), gate, **options))
    with listen_on("127.0.0.1", port) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()


@pytest.fixture
def board():
    board = Board(["hall", "study", "attic"])
    board.status("hall", {"round": 3, "mean_square_error": 0.25, "bits": 64, "sends": 2}, 1.0)
    board.look(1.5)
    return board


def next_message(socket):
    return json.loads(socket.recv(timeout=WAIT))


def test_the_page_and_its_stream(board):
    with served(board) as where:
        page = httpx.get(f"http://{where}/")
        assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
        assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:,)", page.text) and "https:" + "//" not in page.text
        assert httpx.get(f"http://{where}/", headers={"host": "evil.example"}).status_code == 403
        for broken in ({"host": "[::1"}, {"origin": "http://["}):
            assert httpx.get(f"http://{where}/", headers=broken).status_code == 403
        assert httpx.get(f"http://{where}/etc/passwd").status_code == 404
        with pytest.raises((InvalidStatus, ConnectionClosed)):
            connect(f"ws://{where}/changes", origin="http://evil.example").recv(timeout=WAIT)
        with connect(f"ws://{where}/changes") as socket:
            (told,) = next_message(socket)["lanes"]
            (point,) = told["past"]
            assert point["error"] == 0.25 and point["errors"] == [0.25, None, None]
            assert told["agents"] == [[0, 1, 3, 0.25, 64, 2, 0, 0, 0, 0]]
            for junk in ("", "[]", "{", '{"watch": 7}', '{"watch": "eve"}', "[" * 900, "[" * 1000):
                socket.send(junk)
            board.prediction("study", {"round": 1, "prediction": 0.5, "label": 0.75}, 2.0)
            assert [row[0] for row in next_message(socket)["lanes"][0]["agents"]] == [1]
            socket.send('{"watch": "study"}')
            assert next_message(socket)["lanes"][0]["predictions"] == [[1, 0.5, 0.75]]


def test_from_elsewhere_one_needs_the_token(board):
    with served(board, gate=Gate("s3cret")) as where:
        assert httpx.get(f"http://{where}/").status_code == 403
        assert httpx.get(f"http://{where}/?token=guess").status_code == 403
        assert httpx.get(f"http://{where}/?token=s3cret").status_code == 200
        with pytest.raises((InvalidStatus, ConnectionClosed)):
            connect(f"ws://{where}/changes").recv(timeout=WAIT)
        with connect(f"ws://{where}/changes?token=s3cret") as socket:
            assert "past" in next_message(socket)["lanes"][0]


def opened(browser, where, **options):
    """A tab that looks at the page, what went wrong in it, and what it asked for."""
    context = browser.new_context(**options)
    tab = context.new_page()
    wrong, asked = [], []
    tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("websocket", lambda channel: asked.append(channel.url))
    tab.goto(f"http://{where}/")
    return tab, wrong, asked


@pytest.mark.browser
def test_a_browser_lives_through_a_restart_of_the_server(board, browser):
    from playwright.sync_api import expect

    with served(board) as where:
        tab, wrong, asked = opened(browser, where, viewport={"width": 390, "height": 800}, color_scheme="dark")
        expect(tab.locator("#here0")).to_have_text("1 of 3", timeout=1000 * WAIT)
        expect(tab.locator("#empty")).to_be_hidden()
        tab.locator("#network0").press("ArrowRight")
        expect(tab.locator("#name")).to_have_text("hall")
        board.status("hall", {"round": 9, "mean_square_error": 0.125, "bits": 1064, "sends": 3, "censored": 9}, 3.0)
        board.status("study", {"round": 9, "mean_square_error": 0.375, "bits": 1000, "sends": 3}, 3.0)
        board.alert("study", {"event": "neighbour is silent", "neighbour": "attic"}, 3.0)
        board.agree(0.125)
        board.look(3.0)
        expect(tab.locator("#error0")).to_have_text("0.25")
        expect(tab.locator("#apart0")).to_have_text("12.5%")
        expect(tab.locator("#facts")).to_contain_text("75.0%")
        expect(tab.locator("#events")).to_contain_text("study hears nothing of attic and goes on without")
        tab.keyboard.press("Space")  # stands still, while the site goes on
        expect(tab.locator("#pause")).to_have_attribute("aria-label", "Back to now")
        board.status("hall", {"round": 99, "mean_square_error": 0.1, "bits": 2000, "sends": 4}, 4.0)
        tab.locator("#time").fill("0")
        expect(tab.locator("#round0")).to_have_text("3")
        tab.locator("#pause").click()
        expect(tab.locator("#round0")).to_have_text("9")  # study's, which is the last
        tab.locator("#agents").select_option("attic")
        expect(tab.locator("#facts")).to_contain_text("away")
        tab.locator("#network0").press("Escape")
        expect(tab.locator("#name")).to_have_text("Farthest off")
        tab.locator("#ranks button").first.click()
        expect(tab.locator("#name")).to_have_text("study")  # 0.375, and hall has 0.1
        tab.locator("#theme").click()
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    expect(tab.locator("#link")).to_have_text("connection lost, trying again", timeout=1000 * WAIT)
    again = Board(board.names)
    again.status("attic", {"round": 1, "mean_square_error": 2.0}, 5.0)
    with served(again, port=int(where.split(":")[1])):
        expect(tab.locator("#link")).to_have_text("live", timeout=1000 * WAIT)
        expect(tab.locator("#events")).not_to_contain_text("study")
    assert [
        text for text in wrong if "ERR_CONNECTION" not in text
    ] == []  # a server that is gone, in the browser's words
    assert {url.split("/")[2] for url in asked} == {where}
    tab.context.close()


@pytest.mark.browser
def test_no_axis_has_ticks_without_end(browser):
    """Browsers have Infinity, and axes narrower than the spacing of their numbers."""
    script = resources.files("laconic.dashboard").joinpath("charts.js").read_text()
    tab = browser.new_page()
    ask = lambda *axis: tab.evaluate(f"{script}; ticks({', '.join(axis)}, 10)")  # noqa: E731
    assert ask("1000", "500000", "true") == [k * 10**j for j in (3, 4, 5) for k in (1, 2, 5)]
    assert ask("-0.5", "0.25", "false") == [-0.5, -0.4, -0.3, -0.2, -0.1, 0, 0.1, 0.2]
    for low, high in ("1e17", "1e17 + 16"), ("1e25", "1e25 + 2**31"), ("1e6", "1e6 + 1e-12"), ("1e-3", "1.7e308 * 1.1"):
        for logarithmic in ("true", "false"):
            assert len(ask(low, high, logarithmic)) <= 11, (low, high, logarithmic)
    for low, high in (
        ("0", "Infinity"),
        ("-Infinity", "Infinity"),
        ("Infinity", "-Infinity"),
        ("NaN", "1"),
        ("5e-324",) * 2,
    ):
        for logarithmic in ("true", "false"):
            assert ask(low, high, logarithmic) == [], (low, high, logarithmic)
    tab.close()


@pytest.mark.browser
def test_a_page_goes_on_whatever_numbers_an_agent_reports(board, browser):
    from playwright.sync_api import expect

    with served(board) as where:
        tab, wrong, _ = opened(browser, where)
        for value in (1e25, 1e25 + 2**31, 10**400, 2**53 - 1, 2**53):
            board.status("study", {"round": value, "mean_square_error": 1.7e308, "bits": value, "sends": value}, 2.0)
            board.status("attic", {"round": value, "mean_square_error": 1.7e308, "bits": -value, "sends": value}, 2.0)
            board.look(2.0)
        board.status("hall", {"round": 4, "mean_square_error": 0.125, "bits": 99, "sends": 3}, 3.0)
        board.look(3.0)
        expect(tab.locator("#here0")).to_have_text("all 3", timeout=1000 * WAIT)
        expect(tab.locator("#error0")).to_have_text("0.125", timeout=1000 * WAIT)
        assert wrong == []
        tab.context.close()
