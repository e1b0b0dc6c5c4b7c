"""What an agent knows of its neighbours, what it says to them, and which edges it uses.

The half of the conversation that is the agent's own; ``dialogue`` is how it takes in what others say.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

import numpy as np

from laconic.protocol.edge import Neighbour, Stage
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Edge, Position
from laconic.protocol.wire import Wire, identity

_RECENT = 8  # messages kept to be said again: lockstep needs two, and a snapshot weighs as much as fifty
_NOWHERE = Position()


class Message(NamedTuple):
    """Bytes to be carried to the neighbour ``to``, or to all neighbours if that is None."""

    to: str | None
    data: bytes


class Speaker:
    """Who there is, what can be said to them, and the edges in use: what ``Dialogue`` builds on."""

    def __init__(self, name: str, lockstep: bool, ledger: Ledger, wire: Wire) -> None:
        self.name, self.lockstep = name, lockstep
        self.ledger, self.wire = ledger, wire
        self.neighbours: dict[str, Neighbour] = {}
        self.by_identity: dict[int, Neighbour] = {}
        self.former: dict[int, str] = {}  # who was a neighbour once
        self.life = self.sequence = 0
        self.round = self.finished = 0  # the last round spoken in, and the last one listened in
        self.rejoining = False
        self.restored = False
        self.outgoing: list[Message] = []
        self.recent: deque[tuple[Position, bool, bytes]] = deque(maxlen=_RECENT)
        self.moment = 0  # counts the occasions on which a neighbour may be asked again
        self.counters: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    @property
    def position(self) -> Position:
        """Where the agent stands."""
        return Position(self.life, self.sequence, self.round)

    @property
    def degree(self) -> int:
        """Number of neighbours, there or not."""
        return len(self.neighbours)

    def waiting(self) -> list[Neighbour]:
        """Who has to be heard before the round can end."""
        if self.rejoining:
            return [n for n in self.neighbours.values() if n.stage is not Stage.GONE and not n.answered]
        if not self.lockstep:
            return []
        return [
            n
            for n in self.neighbours.values()
            if n.stage is Stage.OPENING or (n.stage is Stage.LIVE and n.heard_through() < self.round)
        ]

    def register(self, name: str, degree: int) -> Neighbour:
        """Know a neighbour of that name from now on."""
        number = identity(name)
        if name == self.name or number == self.wire.sender:
            raise ValueError(f"neighbours must be others than {self.name!r} itself, got {name!r}.")
        if number in self.by_identity:
            raise ValueError(f"neighbours {self.by_identity[number].name!r} and {name!r} share a number: rename one.")
        neighbour = Neighbour(name, number, self.degree + 1, leads=name < self.name, degree=degree)
        self.neighbours[name] = self.by_identity[number] = neighbour
        return neighbour

    # ----------------------------------------------------------------------------------------------------------------
    # Rounds

    def begin_round(self, sent: bool) -> None:
        """Count a round, and, if the model was ``sent`` in it, a broadcast."""
        self.round += 1
        self.moment += 1
        self.sequence += sent

    def end_round_alone(self) -> None:
        """The round of a learner that never speaks is over: nobody is listened to."""
        self.finished = self.round

    def count_round(self, sent: bool, bits: int) -> None:
        """Note what a round cost."""
        self.counters["sends" if sent else "censored"] += 1
        self.counters["bits"] += bits

    def take_outgoing(self) -> list[Message]:
        """The messages to be carried now, each given out once."""
        messages, self.outgoing = self.outgoing, []
        return messages

    def remind(self) -> None:
        """Ask those again that are waited for, and where something is open."""
        self.moment += 1
        for neighbour in self.waiting():
            self.ask(neighbour)
        self.ask_on()

    # ----------------------------------------------------------------------------------------------------------------
    # Speaking

    def say(self, data: bytes, spoken: bool) -> None:
        """Send a statement to everybody, and keep it in case that somebody misses it."""
        self.recent.append((self.position, spoken, data))
        self.send(None, data)

    def send(self, to: str | None, data: bytes) -> None:
        """Put a message into the queue."""
        self.outgoing.append(Message(to, data))
        copies = sum(n.stage is not Stage.GONE for n in self.neighbours.values()) if to is None else 1
        self.counters["messages_out"] += copies
        self.counters["bytes_out"] += copies * len(data)

    def ask(self, neighbour: Neighbour, again: bool = False, whole: bool = False) -> None:
        """Request what is missing of a neighbour, once on each occasion."""
        if neighbour.stage is Stage.GONE or (neighbour.asked == self.moment and not again):
            return
        neighbour.asked = self.moment
        self.counters["requests"] += 1
        whole = whole or self.rejoining or not neighbour.live
        confirm = neighbour.live and not neighbour.confirmed
        to, held, epoch = neighbour.identity, neighbour.position, neighbour.epoch
        self.send(neighbour.name, self.wire.request(self.position, self.degree, to, held, epoch, whole, confirm))

    def ask_on(self) -> None:
        """Ask again where something is still open."""
        for neighbour in self.neighbours.values():
            gap = bool(neighbour.held) and not self.lockstep
            if gap or neighbour.stage is Stage.OPENING or not neighbour.confirmed:
                self.ask(neighbour)

    def tell(self, neighbour: Neighbour, asked: Position = _NOWHERE, repeated: bool = False) -> None:
        """Send a snapshot; ``asked`` is what its request was for, ``repeated`` if that has been said again already."""
        ledger, index = self.ledger, neighbour.index
        ahead = self.round - self.finished
        own = ledger.said(0), ledger.total(0) + ahead * ledger.said(0).astype(np.float64)
        other = None
        if neighbour.position > (0, 0, 0):
            other = ledger.said(index), ledger.total(index) + ahead * ledger.said(index).astype(np.float64)
        edge = Edge(neighbour.epoch, neighbour.live, neighbour.remembers, neighbour.vector)
        self.counters["snapshots"] += 1
        self.send(
            neighbour.name,
            self.wire.snapshot(
                self.position,
                self.degree,
                neighbour.identity,
                self.rejoining,
                repeated,
                own,
                neighbour.position,
                asked,
                other,
                edge,
            ),
        )

    # ----------------------------------------------------------------------------------------------------------------
    # Edges

    def suspend(self, neighbour: Neighbour, stage: Stage) -> None:
        """Set the edge and its share aside."""
        neighbour.suspend(self.ledger.balance(neighbour.index), stage)
        self.refresh()

    def learn_degree(self, neighbour: Neighbour, degree: int) -> None:
        """Note a neighbour's number of neighbours: it decides how much it counts in a mixture."""
        if degree != neighbour.degree:
            neighbour.degree = degree
            self.hear_live_edges()

    def hear_live_edges(self) -> None:
        """Tell the ledger whom to hear, with Metropolis weights."""
        live = [n for n in self.neighbours.values() if n.live]
        weights = tuple(1.0 / (1.0 + max(self.degree, n.degree)) for n in live)
        self.ledger.listen_to(tuple(n.index for n in live), weights)

    def refresh(self) -> None:
        """An edge has come or gone."""
        self.hear_live_edges()
        self.settle()

    def settle(self) -> None:
        """The dual, from its definition over the live edges."""
        ledger = self.ledger
        ledger.settle([n.share(ledger.balance(n.index)) for n in self.neighbours.values() if n.live])
