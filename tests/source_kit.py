"""What tests of sources share: a driver in small, what sources log, and a port that is free."""

import contextlib
import logging
import queue
import threading

LONG = 300.0  # seconds: a wait that only a mistake makes this long


class Gathered:
    """A driver in small: starts a source, takes what comes, and fails rather than waits for ever."""

    def __init__(self, source, **options):
        self.source, self.events = source, queue.SimpleQueue()
        source.start(lambda: self.events.put(None), **options)

    def take(self, n):
        samples = []
        while len(samples) < n:
            sample = self.source.next()
            if sample is None:
                assert not self.source.ended, f"ended after {len(samples)} samples"
                self.events.get(timeout=LONG)
            else:
                samples.append(sample)
        return samples

    def all(self):
        samples = []
        while not self.source.ended:
            sample = self.source.next()
            if sample is None:
                self.events.get(timeout=LONG)
            else:
                samples.append(sample)
        self.source.close()
        return samples


@contextlib.contextmanager
def logged_by_sources():
    """All that sources log meanwhile, as a queue to wait on."""
    records = queue.SimpleQueue()

    class Keep(logging.Handler):
        def emit(self, record):
            records.put(record)

    logger = logging.getLogger("laconic.deploy.source")
    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


def seen(records):
    found = []
    while not records.empty():
        found.append(records.get())
    return found


def await_event(records, event):
    while True:
        record = records.get(timeout=LONG)
        if record.getMessage() == event:
            return record


def values(samples):
    return [(*sample.x.tolist(), sample.y) for sample in samples]


GOOD = [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]


def closes(source):
    """Close on another thread, so that a source that hangs fails the test and does not hang it."""
    closer = threading.Thread(target=source.close, daemon=True)
    closer.start()
    closer.join(LONG)
    assert not closer.is_alive()
