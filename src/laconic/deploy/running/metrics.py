"""What an agent does, as Prometheus metrics.

A round must cost next to nothing, so the agent's loop only adds to plain numbers (``Tally``); metrics are made of them
when somebody scrapes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from laconic import _extras, _validate
from laconic.deploy.running.scrapes import ScrapeServer

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

#: Upper ends, in seconds, of the classes that rounds are counted in; a last one takes the rest.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
#: Samples that the moving mean of squared errors remembers.
WINDOW = 100
#: Share of labels that an interval around a prediction is to hold.
COVERAGE = 0.9

_COUNTERS = {
    "sends": "Broadcasts made.",
    "censored": "Rounds in which nothing was worth saying.",
    "bits": "Bits broadcast, by the account of the paper.",
    "bytes_out": "Payload bytes handed to the network.",
    "bytes_in": "Payload bytes that came in.",
    "repairs": "Neighbours restored from a snapshot after something was missed.",
    "requests": "Snapshots asked for.",
}


class Tally:
    """Plain numbers about a run, which its loop adds to; read by anyone at any time.

    Attributes
    ----------
    round : int
    loss, samples : float, int
        Sum of the losses of all samples learned from, and their number.
    mean_square_error : float
        Moving mean over about the last hundred samples; NaN before the first.
    error_rate : float or None
        Moving mean of wrong classes over about as many; None where labels are numbers.
    dropped : int
        Samples that came faster than rounds.
    beyond : Counter
        Samples beyond the limits, by ("label" or "input", what was done with it).
    connected, suspended : int
        Neighbours that are there, and edges that rest because their other end is gone.
    alerts : Counter
        Alerts by what they say.
    last_alert : dict or None
        The last of them, as it was published.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.learned(loss=0.5, error=1.0)
    >>> tally.learned(loss=1.5, error=-2.0)
    >>> tally.samples, tally.loss, tally.mean_square_error
    (2, 2.0, 2.5)
    """

    def __init__(self) -> None:
        self.round = 0
        self.samples = 0
        self.loss = 0.0
        self.mean_square_error = math.nan
        self.error_rate: float | None = None
        self.dropped = 0
        self.beyond: Counter[tuple[str, str]] = Counter()
        self.connected = 0
        self.suspended = 0
        self.alerts: Counter[str] = Counter()
        self.last_alert: dict[str, Any] | None = None
        self._errors: deque[float] = deque(maxlen=WINDOW)
        self._seconds = 0.0
        self._classes = [0] * (len(BOUNDS) + 1)

    def learned(self, loss: float, error: float, wrong: bool | None = None) -> None:
        """A sample was learned from: its loss, by how much its prediction was off, and whether its class was wrong."""
        self.samples += 1
        self.loss += loss
        self._errors.append(abs(error))
        square = error * error
        if self.samples == 1:
            self.mean_square_error = square
        else:
            self.mean_square_error += (square - self.mean_square_error) / min(self.samples, WINDOW)
        if wrong is not None:
            before = self.error_rate or 0.0
            self.error_rate = before + (wrong - before) / min(self.samples, WINDOW)

    def alert(self, event: str, said: dict[str, Any]) -> None:
        """There was an alert, published as ``said``."""
        self.alerts[event] += 1
        self.last_alert = said

    def radius(self, *, before_last: bool = False) -> float | None:
        """How far off a prediction will be with a probability of 0.9, if errors stay what they were; None if unknown.

        Of the last n errors, at most 100, the one of rank ceil(0.9 (n + 1)) by size: if the next error is as likely to
        take any rank among them as any other, whatever their distribution, it is at most that large with this
        probability. Needs 9 of them. ``before_last`` leaves out the last error, that of a prediction which is to get
        its interval only now.

        >>> tally = Tally()
        >>> for k in range(10):
        ...     tally.learned(0.0, error=-float(k))
        >>> tally.radius(), tally.radius(before_last=True)
        (9.0, 8.0)
        """
        errors = list(self._errors)[: -1 if before_last else None]
        rank = math.ceil(COVERAGE * (len(errors) + 1))
        return sorted(errors)[rank - 1] if rank <= len(errors) else None

    def took(self, seconds: float) -> None:
        """A round is over, so many seconds after the one before."""
        self._seconds += seconds
        self._classes[bisect_left(BOUNDS, seconds)] += 1

    def times(self) -> tuple[list[int], float]:
        """Rounds that took as long as each of ``BOUNDS`` at most, then all of them; and the sum of their seconds."""
        return list(accumulate(self._classes)), self._seconds


class Collector:
    """Makes metrics of a tally and an agent's counters, each labelled with the agent's name, when it is asked to."""

    def __init__(self, agent: str, tally: Tally, counters: Callable[[], Mapping[str, Any]]) -> None:
        self.agent, self.tally, self.counters = agent, tally, counters

    def collect(self) -> Iterator[Metric]:
        """All metrics, as they are now."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
            SummaryMetricFamily,
        )

        who, tally, counters = [self.agent], self.tally, self.counters()

        def gauge(name: str, about: str, value: float) -> Metric:
            family = GaugeMetricFamily(f"laconic_{name}", about, labels=["agent"])
            family.add_metric(who, value)
            return family

        def counter(name: str, about: str, value: float) -> Metric:
            family = CounterMetricFamily(f"laconic_{name}", about, labels=["agent"])
            family.add_metric(who, value)
            return family

        yield gauge("round", "Rounds completed.", tally.round)
        loss = SummaryMetricFamily("laconic_loss", "Losses of the samples learned from.", labels=["agent"])
        loss.add_metric(who, count_value=tally.samples, sum_value=tally.loss)
        yield loss
        yield gauge("mean_square_error", f"Moving mean over about {WINDOW} samples.", tally.mean_square_error)
        if tally.error_rate is not None:
            yield gauge("error_rate", f"Wrong classes, moving mean over about {WINDOW} samples.", tally.error_rate)
        for name, about in _COUNTERS.items():
            yield counter(name, about, counters.get(name, 0))
        if "waves" in counters:
            yield counter("waves", "Waves finished.", counters["waves"])
        refusals = CounterMetricFamily("laconic_refusals", "Messages refused.", labels=["agent", "reason"])
        for reason, count in dict(counters.get("refusals", {})).items():
            refusals.add_metric([self.agent, reason], count)
        yield refusals
        alerts = CounterMetricFamily("laconic_alerts", "What somebody should look at.", labels=["agent", "event"])
        for event, count in dict(tally.alerts).items():
            alerts.add_metric([self.agent, event], count)
        yield alerts
        counts, seconds = tally.times()
        times = HistogramMetricFamily("laconic_round_seconds", "From round to round.", labels=["agent"])
        ends = [*(str(float(bound)) for bound in BOUNDS), "+Inf"]
        times.add_metric(who, list(zip(ends, counts, strict=True)), seconds)
        yield times
        neighbours = GaugeMetricFamily("laconic_neighbours", "Neighbours by state.", labels=["agent", "state"])
        neighbours.add_metric([self.agent, "connected"], tally.connected)
        neighbours.add_metric([self.agent, "suspended"], tally.suspended)
        yield neighbours
        yield counter("samples_dropped", "Samples that came faster than rounds.", tally.dropped)
        beyond = CounterMetricFamily(
            "laconic_samples_beyond_limits", "Samples beyond the limits.", labels=["agent", "what", "outcome"]
        )
        for (what, outcome), count in dict(tally.beyond).items():
            beyond.add_metric([self.agent, what, outcome], count)
        yield beyond


class Server:
    """Serves an agent's metrics, and those of its process, over HTTP until it is closed.

    Who opens connections and asks nothing, or asks and does not listen, takes neither threads nor memory, and keeps
    nobody from being answered: see ``ScrapeServer``.

    Parameters
    ----------
    agent : str
    tally : Tally
    counters : callable
        Gives the agent's counters.
    port : int
        0 for any that is free; ``port`` then tells which.
    address : str
        The machine itself alone, unless told otherwise: metrics are not secret, but nobody else's business.
    **limits
        Of ``ScrapeServer``.
    """

    def __init__(
        self,
        agent: str,
        tally: Tally,
        counters: Callable[[], Mapping[str, Any]],
        port: int,
        address: str = "127.0.0.1",
        **limits: Any,
    ) -> None:
        _validate.integer("port", port, least=0, most=65535)
        make_wsgi_app = _extras.need("prometheus_client", "a metrics port").make_wsgi_app
        try:
            self._server = ScrapeServer(make_wsgi_app(make_registry(agent, tally, counters)), address, port, **limits)
        except OSError as error:
            why = (error.strerror or str(error)).partition(" (while")[0]  # where is said before
            raise OSError(f"metrics cannot be served on {address}:{port}: {why[0].lower()}{why[1:]}.") from None
        self.port = self._server.port

    def close(self) -> None:
        """Close the metrics server."""
        self._server.close()


def make_registry(agent: str, tally: Tally, counters: Callable[[], Mapping[str, Any]]) -> CollectorRegistry:
    """A registry of the agent's own, with its metrics and those of its process (memory, CPU, files)."""
    from prometheus_client import ProcessCollector
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry()
    registry.register(Collector(agent, tally, counters))
    ProcessCollector(registry=registry)
    return registry
