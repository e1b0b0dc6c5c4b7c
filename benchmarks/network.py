"""How fast messages of agents go round in lockstep: ``python benchmarks/network.py``.

Ten processes on a graph of 20 edges; in each round every one says something to its neighbours and waits until it has
heard each of them. The yardstick is zenoh as its documentation shows it. All subjects are started first and then take
turns, so that a noisy moment of the machine hits all of them. What messages cost is in ``wire.py``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import queue
import socket
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

WAIT = 120.0  # seconds after which something is broken


@dataclass(frozen=True)
class Seat:
    """One process's part in a race: who it is, where all listen, and how many bytes it says in a round."""

    name: str
    listen: str
    neighbours: dict[str, str]
    size: int
    n_agents: int


class Player(Protocol):
    """What runs in each process. It is made with its seat, and is ready for rounds when it has been made."""

    def run(self, rounds: int) -> None:
        """Go through so many rounds with the others."""

    def close(self) -> None:
        """Leave."""


class _Lockstep:
    """Rounds in which everybody says something and hears each neighbour once; nobody can get ahead by two."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ahead = dict.fromkeys(seat.neighbours, 0)
        self.payload = bytes(seat.size)

    def rounds(self, count: int, say: Callable[[bytes], None]) -> None:
        """Go through so many rounds, and speak with ``say``."""
        ahead, get, payload = self.ahead, self.heard.get, self.payload
        for _ in range(count):
            say(payload)
            missing = 0
            for name in ahead:
                ahead[name] -= 1
                missing += ahead[name] < 0
            while missing:
                name = get(timeout=WAIT)[0]
                ahead[name] += 1
                missing -= ahead[name] == 0


class Bare(_Lockstep):
    """Zenoh as its documentation shows it, with the settings without which it loses messages."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        import zenoh

        from laconic.transport.zenoh_settings import endpoints_to_connect, session_settings

        connect = endpoints_to_connect(seat.name, seat.listen, seat.neighbours)
        settings = session_settings(seat.listen, connect, 10.0, None, None)
        self.session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
        seen: queue.SimpleQueue[str] = queue.SimpleQueue()
        put = self.heard.put
        self.things = []
        for name in seat.neighbours:

            def hear(sample: Any, name: str = name) -> None:
                put((name, sample.payload.to_bytes()))

            def see(_: Any, name: str = name) -> None:
                seen.put(name)

            self.things.append(self.session.declare_subscriber(f"race/{name}", hear))
            alive = self.session.liveliness().declare_subscriber(f"race/{name}/alive", see, history=True)
            self.things.append(alive)
        block = zenoh.CongestionControl.BLOCK
        self.publisher = self.session.declare_publisher(f"race/{seat.name}", congestion_control=block)
        self.things += [self.publisher, self.session.liveliness().declare_token(f"race/{seat.name}/alive")]
        missing = set(seat.neighbours)
        while missing:
            missing.discard(seen.get(timeout=WAIT))

    def run(self, rounds: int) -> None:
        """Go through so many rounds with the others."""
        self.rounds(rounds, self.publisher.put)

    def close(self) -> None:
        """Leave."""
        for thing in self.things:
            thing.undeclare()
        self.session.close()


class Links(_Lockstep):
    """The links of agents, without agents."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        from laconic.transport import Connected
        from laconic.transport.zenoh import ZenohLink

        self.link = ZenohLink(seat.name, listen=seat.listen, neighbours=seat.neighbours, deliver=self.heard.put)
        missing, early = set(seat.neighbours), []
        while missing:
            event = self.heard.get(timeout=WAIT)
            if isinstance(event, Connected):
                missing.discard(event.name)
            else:
                early.append(event)
        for event in early:
            self.heard.put(event)

    def run(self, rounds: int) -> None:
        """Go through so many rounds with the others."""
        self.rounds(rounds, self.link.send)

    def close(self) -> None:
        """Leave."""
        self.link.close()


#: Who races. Another subject is one more entry: a function of a ``Seat`` that makes a ``Player``, found by its name in
#: a module, since it travels to other processes. The first is the yardstick.
PLAYERS: dict[str, Callable[[Seat], Player]] = {"bare zenoh": Bare, "links": Links}


def lattice(n_agents: int = 10) -> dict[str, list[str]]:
    """The graph of the race: a ring in which everybody also knows the next but one; 10 agents, 20 edges."""
    names = [f"agent{k:02}" for k in range(n_agents)]
    return {
        name: sorted({names[(k + step) % n_agents] for step in (-2, -1, 1, 2)} - {name}) for k, name in enumerate(names)
    }


def race(
    players: dict[str, Callable[[Seat], Player]],
    graph: dict[str, list[str]],
    *,
    size: int = 64,
    rounds: int = 400,
    repeats: int = 9,
) -> dict[str, list[float]]:
    """Rounds per second of each player, in as many heats as ``repeats``; players take turns in every heat."""
    context = multiprocessing.get_context("spawn")
    teams: dict[str, list[tuple[Any, Connection]]] = {}
    results: dict[str, list[float]] = {name: [] for name in players}
    try:
        for title, make in players.items():
            where = dict(zip(graph, (f"tcp/127.0.0.1:{port}" for port in free_ports(len(graph))), strict=True))
            teams[title] = []
            for name, others in graph.items():
                seat = Seat(name, where[name], {other: where[other] for other in others}, size, len(graph))
                here, there = context.Pipe()
                process = context.Process(target=_play, args=(make, seat, there), daemon=True)
                process.start()
                there.close()
                teams[title].append((process, here))
            for _, pipe in teams[title]:
                _answer(pipe)
        for heat in range(repeats + 1):
            for title, team in teams.items():
                start = time.perf_counter()
                for _, pipe in team:
                    pipe.send(rounds)
                for _, pipe in team:
                    _answer(pipe)
                if heat:  # the first is for warming up
                    results[title].append(rounds / (time.perf_counter() - start))
    finally:
        for team in teams.values():
            for process, pipe in team:
                pipe.close()
                process.join(timeout=10.0)
                process.kill()
    return results


def _play(make: Callable[[Seat], Player], seat: Seat, pipe: Connection) -> None:
    player = make(seat)
    pipe.send("ready")
    try:
        while True:
            player.run(pipe.recv())
            pipe.send("done")
    except EOFError:
        player.close()


def _answer(pipe: Connection) -> None:
    if not pipe.poll(WAIT):
        raise RuntimeError("a process of the race does not answer")
    pipe.recv()


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses, below those of outgoing connections."""
    found: list[int] = []
    for port in range(20_000 + os.getpid() % 8000, 32_768):
        with socket.socket() as test:
            try:
                test.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _GIVEN:
            _GIVEN.add(port)
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports below 32768")


_GIVEN: set[int] = set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--size", type=int, default=64, help="bytes that everybody says in a round")
    parser.add_argument("--rounds", type=int, default=400, help="of each turn")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "network.json")
    options = parser.parse_args()
    graph = lattice(options.agents)
    speeds = race(PLAYERS, graph, size=options.size, rounds=options.rounds, repeats=options.repeats)
    first = next(iter(speeds))
    for name, values in speeds.items():
        ratio = statistics.median(own / bare for own, bare in zip(values, speeds[first], strict=True))
        print(
            f"{name:<24}{statistics.median(values):>8.0f} rounds/s  ({min(values):.0f} to {max(values):.0f})"
            f"{ratio:>8.2f} x {first}"
        )
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    asked = {"agents": options.agents, "edges": sum(map(len, graph.values())) // 2, "size": options.size}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**machine, **asked, "rounds_per_second": speeds}, indent=1))
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
