"""What an agent tells about itself: log lines and metrics."""

import io
import json
import logging
import math
import socket
import urllib.error
import urllib.request

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from laconic.deploy.running import logs
from laconic.deploy.running.metrics import BOUNDS, WINDOW, Server, Tally

pytestmark = pytest.mark.sockets


@pytest.fixture
def logger():
    """The package's logger, as it was when the test is over."""
    own = logging.getLogger("laconic")
    before = own.handlers[:], own.level, own.propagate
    yield own.getChild("test")
    own.handlers[:], own.level, own.propagate = before
    own.setLevel(before[1])


class Terminal(io.StringIO):
    def isatty(self):
        return True


# Log lines -----------------------------------------------------------------------------------------------------------


def test_a_line_is_json_where_nobody_looks(logger):
    stream = io.StringIO()
    logs.setup("kitchen", stream=stream)
    logger.info("neighbour is back", extra={"neighbour": "hall", "after": np.float64(1.5), "round": np.int64(7)})
    logger.debug("not at this level")
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said.pop("time").endswith("Z")
    expected = {"level": "info", "agent": "kitchen", "event": "neighbour is back"}
    assert said == {**expected, "neighbour": "hall", "after": 1.5, "round": 7}


def test_a_line_is_short_on_a_terminal(logger):
    stream = Terminal()
    logs.setup("kitchen", stream=stream)
    fields = {"reason": "bad crc", "sender": "hall", "size": 1234567.0, "waiting": ["hall", "attic"], "none": []}
    logger.warning("refused", extra=fields)
    clock, rest = stream.getvalue().split(" ", 1)
    assert len(clock) == 8 and clock.count(":") == 2
    said = 'reason="bad crc" sender=hall size=1.23457e+06 waiting=hall,attic none=[]'
    assert rest == f"kitchen: warning: refused {said}\n"


@pytest.mark.parametrize("form", ["json", "text"])
def test_nothing_that_is_logged_can_end_or_forge_a_line(logger, form):
    stream = io.StringIO()
    logs.setup("kitchen", form=form, stream=stream)
    hostile = 'a"\n{"level": "error"}\r\x1b[2J\x9b2J\u2028\ud800 b=c'
    logger.warning("refused", extra={"sender": hostile, "nothing": math.nan, "most": math.inf, "event": "forged"})
    text = stream.getvalue()
    assert text.endswith("\n") and len(text.splitlines()) == 1
    assert text[:-1].isprintable()
    if form == "json":
        said = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        assert said["sender"] == hostile and said["event"] == "refused"
        assert (said["nothing"], said["most"]) == ("nan", "inf")


def test_an_exception_keeps_its_traceback(logger):
    for form, found in (("json", lambda text: json.loads(text)["traceback"]), ("text", lambda text: text)):
        stream = io.StringIO()
        logs.setup(form=form, stream=stream)
        try:
            raise RuntimeError("out of order")
        except RuntimeError:
            logger.exception("crashed")
        assert "RuntimeError: out of order" in found(stream.getvalue())


def test_a_flood_of_one_event_is_cut_short_and_counted(logger):
    stream = io.StringIO()
    handler = logs.setup("kitchen", form="json", stream=stream)
    # The clock of the records, not of the wall, so that the test does not depend on it.
    for second, event, times in ((0.0, "refused", 500), (5.0, "connected", 1), (11.0, "refused", 1)):
        record = logging.makeLogRecord({"name": "laconic.test", "msg": event, "levelname": "INFO", "created": second})
        for _ in range(times):
            handler.handle(logging.makeLogRecord(record.__dict__))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["refused"] * 20 + ["connected", "refused"]
    assert lines[-1]["left_out"] == 480
    assert all("left_out" not in line for line in lines[:-1])


def test_a_second_setup_replaces_the_first(logger):
    first, second = io.StringIO(), io.StringIO()
    logs.setup("kitchen", stream=first)
    logs.setup("hall", level="debug", stream=second)
    logger.debug("ready")
    assert first.getvalue() == ""
    assert json.loads(second.getvalue())["agent"] == "hall"


@pytest.mark.parametrize("bad", [{"form": "xml"}, {"level": "loud"}, {"level": 10}])
def test_a_bad_setup_is_one_sentence_and_changes_nothing(logger, bad):
    before = logging.getLogger("laconic").handlers[:]
    with pytest.raises(ValueError, match=r"(form|level) must be one of .*\.$"):
        logs.setup("kitchen", **bad)
    assert logging.getLogger("laconic").handlers == before


# Metrics -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def serve():
    """Starts servers, and closes them after the test."""
    servers = []

    def start(*arguments, **options):
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def scrape(port):
    """All samples that are served: {name: {labels: value}}."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
        text = answer.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_a_scrape_sees_the_numbers_of_the_moment(serve):
    tally, counters = Tally(), {"sends": 0, "refusals": {}}
    port = serve("kitchen", tally, lambda: counters, 0).port
    me = (("agent", "kitchen"),)
    before = scrape(port)
    assert before["laconic_round"] == {me: 0}
    assert math.isnan(before["laconic_mean_square_error"][me])
    assert before["laconic_loss_count"] == {me: 0}
    assert "laconic_refusals_total" not in before

    rng = np.random.default_rng(0)
    errors, seconds = rng.normal(size=50), rng.exponential(0.1, size=51)
    for error in errors.tolist():
        tally.learned(error * error / 2, error)
    for one in seconds.tolist():
        tally.took(one)
    tally.round, tally.connected, tally.suspended, tally.dropped = 51, 3, 1, 7
    counters |= {"sends": 40, "censored": 11, "bits": 12_000, "bytes_out": 1800, "bytes_in": 5400}
    counters |= {"repairs": 2, "requests": 3, "refusals": {"checksum": 4, 'odd "one"\n': 1}}
    after = scrape(port)
    assert after["laconic_round"] == {me: 51}
    assert after["laconic_loss_count"] == {me: 50}
    assert after["laconic_loss_sum"][me] == pytest.approx((errors**2).sum() / 2)
    assert after["laconic_mean_square_error"][me] == pytest.approx((errors**2).mean())
    for name in ("sends", "censored", "bits", "bytes_out", "bytes_in", "repairs", "requests"):
        assert after[f"laconic_{name}_total"] == {me: counters[name]}, name
    assert after["laconic_refusals_total"] == {
        (*me, ("reason", "checksum")): 4,
        (*me, ("reason", 'odd "one"\n')): 1,
    }
    assert after["laconic_neighbours"] == {(*me, ("state", "connected")): 3, (*me, ("state", "suspended")): 1}
    assert after["laconic_samples_dropped_total"] == {me: 7}
    assert after["laconic_round_seconds_count"] == {me: 51}
    assert after["laconic_round_seconds_sum"][me] == pytest.approx(seconds.sum())
    for bound in BOUNDS:
        assert after["laconic_round_seconds_bucket"][(*me, ("le", str(bound)))] == (seconds <= bound).sum()
    assert after["process_resident_memory_bytes"][()] > 1e6


def test_two_agents_share_no_registry(serve):
    one, two = Tally(), Tally()
    ports = serve("one", one, dict, 0).port, serve("two", two, dict, 0).port
    one.round, two.round = 1, 2
    assert [scrape(port)["laconic_round"] for port in ports] == [{(("agent", "one"),): 1}, {(("agent", "two"),): 2}]


def test_the_moving_error_forgets():
    tally = Tally()
    for error in [3.0] * WINDOW + [1.0] * (6 * WINDOW):
        tally.learned(0.0, error)
    assert 1.0 < tally.mean_square_error < 1.0 + 8.0 * math.exp(-5.9)


def test_only_the_machine_itself_is_answered_by_default(serve):
    port = serve("kitchen", Tally(), dict, 0).port
    with socket.create_server(("127.0.0.2", port)):  # taken already, were it served on all addresses
        assert scrape(port)["laconic_round"] == {(("agent", "kitchen"),): 0}


def test_a_closed_server_is_gone_and_frees_its_port():
    server = Server("kitchen", Tally(), dict, 0)
    scrape(server.port)
    server.close()
    with pytest.raises(urllib.error.URLError, match="refused"):
        scrape(server.port)
    Server("kitchen", Tally(), dict, server.port).close()


def test_a_port_that_cannot_be_had_is_one_sentence(serve):
    port = serve("kitchen", Tally(), dict, 0).port
    with pytest.raises(OSError, match=rf"^metrics cannot be served on 127.0.0.1:{port}: address already in use\.$"):
        Server("hall", Tally(), dict, port)
    for bad in (-1, 65536, True, "9100", None):
        with pytest.raises(ValueError, match=r"port must be"):
            Server("hall", Tally(), dict, bad)
