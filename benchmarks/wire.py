"""What messages of agents cost on the wire: ``python benchmarks/wire.py``.

With all that carries them: the headers of zenoh, TLS, TCP and IP, and the acknowledgements, as the system counts them
for one connection (``ss``, of iproute2; Linux). *In lockstep* both ends speak all the time, and acknowledge with what
they say. *Alone* is a message every 100 ms from one end, which the other has to acknowledge.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from network import WAIT, free_ports

IP, TCP, TIMESTAMPS = 20, 20, 12  # bytes of headers


@dataclass(frozen=True)
class Wire:
    """What went over one connection, in both directions."""

    payload: int
    segments: int
    headers: int

    @property
    def bytes(self) -> int:
        """All of it, from the IP header on."""
        return self.payload + self.headers

    def __sub__(self, other: Wire) -> Wire:
        return Wire(self.payload - other.payload, self.segments - other.segments, self.headers - other.headers)


def header_bytes() -> int:
    """Bytes of the IP and TCP headers of a segment on this machine: 40, or 52 with timestamps, as most systems send."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        options = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[5]
    return IP + TCP + (TIMESTAMPS if options & 1 else 0)


def read_wire(port: int) -> Wire:
    """What the system counted so far for the connections to a port of this machine.

    Both ends are on this machine, and each segment is counted once, where it is sent.
    """
    command = ["ss", "-tinH", "state", "established", f"( sport = :{port} or dport = :{port} )"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    payload, segments = (sum(map(int, re.findall(rf"\b{key}:(\d+)", text))) for key in ("bytes_sent", "segs_out"))
    return Wire(payload, segments, segments * header_bytes())


def wire_cost(
    size: int, *, rate: float, both_ways: bool, files: Sequence[Any] = (), seconds: float = 4.0
) -> tuple[float, float]:
    """Bytes on the wire for a message of ``size`` bytes, and bytes per second of a link on which nobody speaks.

    Parameters
    ----------
    size : int
    rate : float
        Messages per second from one end, at least 8; with ``both_ways``, the other answers each at once, as in
        lockstep.
    both_ways : bool
    files : sequence
        For TLS, the ``Security`` of both ends.
    seconds : float
        Time to measure each of the two.
    """
    from laconic.transport import Connected, Received
    from laconic.transport.zenoh import ZenohLink

    if rate < 8:
        raise ValueError(f"rate must be at least 8, got {rate}: signs of life would mix with the messages.")
    ports = free_ports(2)
    protocol = "tls" if files else "tcp"
    names, news = ("hall", "kitchen"), (queue.SimpleQueue(), queue.SimpleQueue())
    where = {name: f"{protocol}/127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}
    links = []
    for k, name in enumerate(names):
        other = names[1 - k]
        security = files[k] if files else None
        links.append(
            ZenohLink(
                name, listen=where[name], neighbours={other: where[other]}, deliver=news[k].put, security=security
            )
        )
    data = bytes(size)

    def hear(k: int) -> None:
        if not isinstance(event := news[k].get(timeout=WAIT), Received):
            raise RuntimeError(f"expected a message, got {event}")

    try:
        for k in range(2):
            if not isinstance(news[k].get(timeout=WAIT), Connected):
                raise RuntimeError("the two ends do not meet")
        time.sleep(0.5)
        before, start = read_wire(ports[0]), time.perf_counter()
        time.sleep(seconds)
        idle = (read_wire(ports[0]) - before).bytes / (time.perf_counter() - start)
        count = max(1, round(rate * seconds))
        before, start = read_wire(ports[0]), time.perf_counter()
        for number in range(count):
            links[0].send(data)
            hear(1)
            if both_ways:
                links[1].send(data)
                hear(0)
            time.sleep(max(0.0, start + (number + 1) / rate - time.perf_counter()))
        spent = time.perf_counter() - start
        total = (read_wire(ports[0]) - before).bytes
    finally:
        for link in links:
            link.close()
    # An end that speaks so often gives no other sign of life; one that only listens gives it as on an idle link.
    signs = 0.0 if both_ways else idle / 2
    return (total - signs * spent) / (count * (1 + both_ways)), idle


def make_files(folder: Path) -> list[Any]:
    """Certificates for both ends."""
    from laconic.deploy.operations.certificates import make_certificates
    from laconic.deploy.settings.site import Site
    from laconic.transport.zenoh import Security

    agents = "".join(
        f'[agents.{name}]\nlisten = "tls/127.0.0.1:{port}"\n' for name, port in (("hall", 1), ("kitchen", 2))
    )
    (folder / "site.toml").write_text(
        f'[model]\nn_inputs = 1\n[network]\nedges = [["hall", "kitchen"]]\n{agents}[security]\n'
    )
    site = Site.read(folder / "site.toml")
    make_certificates(site)
    assert site.security is not None
    return [Security(site.security.ca, agent.certificate, agent.key) for agent in site.agents]


def wire_table(sizes: Iterable[int]) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        secure = make_files(Path(folder))
        for files in ((), secure):
            for size in sizes:
                row: dict[str, Any] = {"payload": size, "protocol": "tls" if files else "tcp"}
                row["lockstep"], _ = wire_cost(size, rate=200.0, both_ways=True, files=files)
                row["alone"], row["idle"] = wire_cost(size, rate=10.0, both_ways=False, files=files)
                rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[21, 63, 832], help="bytes of messages")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "wire.json")
    options = parser.parse_args()
    rows = wire_table(options.sizes)
    print(f"{'payload':>8}{'':>6}{'in lockstep':>14}{'alone':>10}{'idle link':>14}")
    for row in rows:
        costs = f"{row['lockstep']:>12.1f} B{row['alone']:>8.1f} B{row['idle']:>10.0f} B/s"
        print(f"{row['payload']:>8}{row['protocol']:>6}{costs}")
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**machine, "header": header_bytes(), "rows": rows}, indent=1))
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
