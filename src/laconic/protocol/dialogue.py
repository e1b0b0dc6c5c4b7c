"""The conversation of one agent with its neighbours: who has been heard how far, what was missed, and its repair.

Everything an agent says carries its position (life, sequence, round). A neighbour that hears the next sequence number
adds it to its replica. One that hears a later one has missed something: it holds that back and sends a *request*,
which is answered with the missed messages themselves, if they are recent, or else with a *snapshot*. A snapshot puts
replica and running sum where they would have been, whatever was lost, so the dual can be computed anew. A message
that comes late was counted as silence for some rounds; its sum is corrected by as many times its content.

An agent that starts asks everybody for a snapshot and takes from them the latest that anybody knows of itself.
"""

from __future__ import annotations

import logging
from typing import NamedTuple, final

import numpy as np

from laconic._validate import Array
from laconic.protocol.edge import Neighbour, Stage, follows, is_stale
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Edge, Farewell, Kind, Position, Refusal, Request, Snapshot, Statement
from laconic.protocol.speaker import Message, Speaker
from laconic.protocol.wire import Wire

__all__ = ["APART", "Backup", "Dialogue", "Message"]

log = logging.getLogger("laconic.protocol")

_FURTHEST = 64  # rounds ahead that lockstep holds a message for
_FURTHEST_SLOT = 1 << 20  # rounds ahead that an agent on slots believes another to be
APART = 10  # rounds that two ends of a live edge may be apart


class Backup(NamedTuple):
    """What a neighbour knows of the agent itself; the sum runs through ``through``."""

    position: Position
    broadcast: Array
    total: Array
    through: int


@final
class Dialogue(Speaker):
    """How an agent takes in what its neighbours say, and repairs what it missed."""

    def __init__(self, name: str, lockstep: bool, ledger: Ledger, wire: Wire) -> None:
        super().__init__(name, lockstep, ledger, wire)
        self.backup: Backup | None = None

    # ----------------------------------------------------------------------------------------------------------------
    # Who is there

    def add_neighbour(self, name: str, degree: int) -> None:
        """Have a neighbour more, whose edge has yet to open; ``degree`` is 0 if not known."""
        neighbour = self.register(name, degree or self.degree + 1)
        self.former.pop(neighbour.identity, None)
        neighbour.stage = Stage.OPENING
        neighbour.forget()
        self.ledger.resize([n.index if n is not neighbour else 0 for n in self.neighbours.values()])
        self.refresh()
        self.ask(neighbour)

    def remove_neighbour(self, neighbour: Neighbour) -> None:
        """Have a neighbour less, and tell it."""
        if neighbour.stage is not Stage.GONE:
            farewell = self.wire.farewell(self.position, self.degree, neighbour.identity, neighbour.epoch)
            self.send(neighbour.name, farewell)
        del self.neighbours[neighbour.name], self.by_identity[neighbour.identity]
        self.former[neighbour.identity] = neighbour.name
        self.ledger.resize([n.index for n in self.neighbours.values()])
        for index, other in enumerate(self.neighbours.values(), 1):
            other.index = index
        self.refresh()
        if self.rejoining:
            self.complete()

    def meet(self, neighbour: Neighbour) -> None:
        """A neighbour is there: find out what was missed."""
        if neighbour.stage is Stage.GONE:
            neighbour.stage = Stage.OPENING
        if self.rejoining or self.round > 0 or neighbour.stage is Stage.OPENING:
            self.ask(neighbour, again=True)

    def miss(self, neighbour: Neighbour) -> None:
        """A neighbour is gone: suspend the edge, and wait for it no longer."""
        self.suspend(neighbour, Stage.GONE)
        if self.rejoining:
            self.complete()

    def stand_at(self, position: Position, finished: int, recent: list[tuple[Position, bool, bytes]]) -> None:
        """Be where a checkpoint was taken; ``recent`` is what was last said."""
        self.life, self.sequence, self.round = position
        self.finished = finished
        self.recent.clear()
        self.recent.extend(recent)
        self.restored = True

    # ----------------------------------------------------------------------------------------------------------------
    # Hearing

    def receive(self, data: bytes, sender: str | None) -> None:
        """Take a message in, or refuse it: then it is counted, and nothing else changes."""
        self.counters["messages_in"] += 1
        self.counters["bytes_in"] += len(data)
        try:
            message = self.wire.decode(data)
            neighbour = self.by_identity.get(message.header.sender)
            if neighbour is None:
                self.dismiss(message)
                raise Refusal("stranger")
            if sender is not None and sender != neighbour.name:
                raise Refusal("spoofed")
            if isinstance(message, Statement):
                self.hear(neighbour, message)
            elif message.to != self.wire.sender:
                raise Refusal("misaddressed")
            elif isinstance(message, Request):
                self.answer(neighbour, message)
            elif isinstance(message, Snapshot):
                self.repair(neighbour, message)
            else:
                self.part(neighbour, message)
        except Refusal as refusal:
            self.refuse(refusal.reason, sender)

    def dismiss(self, message: Statement | Request | Snapshot | Farewell) -> None:
        """Tell a former neighbour, which still asks, that it is none: the farewell it was told must have been lost."""
        name = self.former.get(message.header.sender)
        if name is not None and isinstance(message, Request) and message.to == self.wire.sender:
            self.send(name, self.wire.farewell(self.position, self.degree, message.header.sender, message.epoch))

    def refuse(self, reason: str, sender: str | None) -> None:
        """Count a message that was not taken; log the first, the second, the fourth and so on of each kind."""
        self.refusals[reason] += 1
        count = self.refusals[reason]
        if count & (count - 1) == 0:
            # Repetitions are part of every repair; the rest should make somebody look.
            level = logging.DEBUG if reason == "replayed" else logging.WARNING
            log.log(level, "refused: %s", reason, extra={"agent": self.name, "sender": sender, "count": count})

    def hear(self, neighbour: Neighbour, statement: Statement) -> None:
        """A difference, a model, or silence."""
        position = statement.header.position
        if is_stale(statement, neighbour.position):
            raise Refusal("replayed")
        if position.round > self.round + (_FURTHEST if self.lockstep else _FURTHEST_SLOT):
            raise Refusal("too far ahead")
        next_one = follows(statement, neighbour.position)
        if not next_one or (self.lockstep and position.round > self.round):
            neighbour.hold(statement)
            self.learn_degree(neighbour, statement.header.degree)
            if not next_one and not self.rejoining:
                self.ask(neighbour)
            return
        self.apply(neighbour, statement)
        if neighbour.held:
            self.hear_held(neighbour)
        if position.round > self.round + 1:
            self.catch_up(position.round)

    def hear_held(self, neighbour: Neighbour) -> None:
        """Use what was said too early and no longer is."""
        while statement := neighbour.next_held(self.round if self.lockstep else None):
            try:
                self.apply(neighbour, statement)
            except Refusal as refusal:
                self.refuse(refusal.reason, neighbour.name)

    def follow_up(self) -> None:
        """After having spoken: use what was said too early, and ask for what is missing."""
        for neighbour in self.neighbours.values():
            if neighbour.held:
                self.hear_held(neighbour)
        self.ask_on()

    def apply(self, neighbour: Neighbour, statement: Statement) -> None:
        """Change the replica, and its sum for as many rounds as the news are late (or early, if negative)."""
        position = statement.header.position
        late = self.finished - position.round + 1
        self.ledger.hear(neighbour.index, statement, float(late))
        neighbour.position = position
        self.learn_degree(neighbour, statement.header.degree)
        if late and statement.header.kind is not Kind.SILENCE and neighbour.live:
            if abs(late) > APART:
                self.suspend(neighbour, Stage.OPENING)
                self.ask(neighbour)
            else:
                self.settle()

    def catch_up(self, round: int) -> None:
        """Never stay far behind what is heard: clocks differ, and the parts of a cut network go on at their own pace.

        On slots that is a round. In lockstep others wait, so a difference comes from a cut or a long absence only; a
        small one is made up round by round.
        """
        if self.rejoining:
            return
        if self.lockstep and round > self.round + APART:
            self.skip_to(round)
        elif not self.lockstep and round > self.round + 1:
            self.skip_to(round - 1)

    def skip_to(self, round: int) -> None:
        """Let rounds pass in silence until ``round`` is the last one; after many of them, edges have to be reopened."""
        if round <= self.round:
            return
        self.finish()
        if round - self.round > APART:
            for neighbour in self.neighbours.values():
                if neighbour.live:
                    self.suspend(neighbour, Stage.OPENING)
        self.moment += 1
        self.move_to(round)
        if self.lockstep:
            self.recent.clear()  # they no longer lead to where the agent stands
        for neighbour in self.neighbours.values():
            if neighbour.stage is Stage.OPENING:
                self.ask(neighbour)

    def finish(self) -> None:
        """Listen, if that is still to be done."""
        if self.finished < self.round:
            self.ledger.listen()
            self.finished = self.round

    def move_to(self, round: int) -> None:
        """Stand where ``round`` has been spoken in and not yet been listened in; sums move along."""
        self.round = round
        self.ledger.pass_rounds(max(round - 1, 0) - self.finished)
        self.finished = max(round - 1, 0)
        self.settle()

    # ----------------------------------------------------------------------------------------------------------------
    # Requests and snapshots

    def answer(self, neighbour: Neighbour, request: Request) -> None:
        """Say again what was missed, or tell everything."""
        if request.header.position > neighbour.position:
            self.ask(neighbour)
        held = request.held
        behind = neighbour.live and not neighbour.leads and request.epoch < neighbour.epoch
        if request.epoch > neighbour.epoch:
            self.ask(neighbour, again=True, whole=True)
        elif request.confirm and request.epoch == neighbour.epoch and neighbour.live:
            self.ask(neighbour, again=True)
        if request.epoch == neighbour.epoch and not request.whole:
            neighbour.confirmed = True
        repeated = held.life == self.life and self._recent_since(held)
        if repeated:
            for position, _, data in self.recent:
                if position > held:
                    self.counters["repeats"] += 1
                    self.send(neighbour.name, data)
        if request.whole or behind or not repeated:
            self.tell(neighbour, held, repeated)

    def _recent_since(self, held: Position) -> bool:
        """Whether all that was said after ``held`` is still at hand."""
        if held[:2] == (self.life, self.sequence) and (held.round >= self.round or not self.lockstep):
            return True
        if not self.recent:
            return False
        position, spoken, _ = self.recent[0]
        return (
            position.life == held.life
            and position.sequence - spoken <= held.sequence
            and (not self.lockstep or position.round <= held.round + 1)
        )

    def repair(self, neighbour: Neighbour, snapshot: Snapshot) -> None:
        """Take over the sender's account of itself, of the agent, and of their edge."""
        position = snapshot.header.position
        if position.round > self.round + _FURTHEST_SLOT and not self.rejoining:
            raise Refusal("too far ahead")
        if position[:2] < neighbour.position[:2]:
            # Overtaken by what was said later. Of the edge it may still tell something new.
            if position.life < neighbour.position.life or snapshot.edge.epoch <= neighbour.epoch:
                raise Refusal("replayed")
            if neighbour.stage is not Stage.GONE:
                self._agree(neighbour, snapshot)
            return
        news = position[:2] > neighbour.position[:2]
        if not self._ahead(neighbour, snapshot) or self._needed(neighbour, snapshot):
            self._adopt(neighbour, snapshot)
        self.learn_degree(neighbour, snapshot.header.degree)
        neighbour.answered = True
        if snapshot.replica is not None and snapshot.replica_total is not None:
            self._consider(Backup(snapshot.held, snapshot.replica, snapshot.replica_total, position.round))
        if neighbour.stage is not Stage.GONE:
            self._agree(neighbour, snapshot, news)
        self.hear_held(neighbour)
        self.catch_up(position.round)
        if self.rejoining:
            self.complete()

    def _ahead(self, neighbour: Neighbour, snapshot: Snapshot) -> bool:
        """Whether a snapshot shows the neighbour as it will be when the agent, in lockstep, has come so far."""
        position = snapshot.header.position
        return self.lockstep and position.round > self.round and position[:2] > neighbour.position[:2]

    def _needed(self, neighbour: Neighbour, snapshot: Snapshot) -> bool:
        """Whether a snapshot from the future has to do, since what comes before it cannot be had any more."""
        newcomer = self.rejoining and not self.restored
        if newcomer or snapshot.header.position.life > neighbour.position.life:
            return True
        if snapshot.repeated or neighbour.heard_through() >= self.round:
            return False
        return snapshot.asked == neighbour.position and not neighbour.holds_all_until(snapshot.header.position)

    def _adopt(self, neighbour: Neighbour, snapshot: Snapshot) -> None:
        position = snapshot.header.position
        total = snapshot.total + (self.finished - position.round) * snapshot.broadcast.astype(np.float64)
        before = self.ledger.total(neighbour.index)
        news = position[:2] > neighbour.position[:2]
        # Rounding differs between two ways of adding up; the dual keeps its bits unless there is more to it.
        moved = bool((np.abs(total - before) > 1e-9 * (1 + np.abs(before))).any())
        if news or moved:
            self.counters["repairs"] += 1
            self.ledger.adopt(neighbour.index, snapshot.broadcast, total)
        neighbour.position = max(position, neighbour.position)
        if moved and neighbour.live:
            self.settle()

    def _consider(self, backup: Backup) -> None:
        """Is that more than the agent knows of itself?"""
        if self.rejoining:
            if self.backup is None or backup.position > self.backup.position:
                self.backup = backup
        elif backup.position[:2] > self.position[:2]:
            self.rejoin()  # it stands where it has already been: its memory is old

    def _agree(self, neighbour: Neighbour, snapshot: Snapshot, news: bool = False) -> None:
        """Open or reopen the edge: who leads decides, the other follows; ``news`` if the sender has spoken since."""
        theirs = snapshot.edge
        newer = theirs.epoch > neighbour.epoch or (theirs.epoch == neighbour.epoch and not neighbour.live)
        if theirs.live and newer and (neighbour.leads or theirs.epoch > neighbour.epoch or not neighbour.remembers):
            neighbour.open(theirs.epoch, None if theirs.vector is None else -theirs.vector, confirmed=True)
            self.refresh()
            self.ask(neighbour, again=True)  # by which the other learns that its word has arrived
        elif neighbour.leads:
            if neighbour.live and not theirs.live and theirs.epoch < neighbour.epoch and not news:
                # From before the edge was opened, and overtaken; or the sender has forgotten it. An answer will tell.
                self.ask(neighbour, whole=True)
            elif not theirs.live:
                self.suspend(neighbour, Stage.OPENING)
                if not self.rejoining:
                    self.tell(neighbour)
        elif not (neighbour.live and theirs.live and theirs.epoch == neighbour.epoch):
            if not neighbour.remembers and theirs.remembers and not theirs.live:
                neighbour.vector, neighbour.remembers = (None if theirs.vector is None else -theirs.vector), True
            if neighbour.live and theirs.epoch < neighbour.epoch:
                self.tell(neighbour)
            elif not self.rejoining and not snapshot.rejoining:
                self._open(neighbour, theirs)

    def _open(self, neighbour: Neighbour, theirs: Edge) -> None:
        """Open an edge anew where its share stood when it was last used: by the memory of who leads, if it has any."""
        balance = self.ledger.balance(neighbour.index)
        share = neighbour.share(balance) if neighbour.live else neighbour.vector
        if neighbour.live and theirs.remembers and not theirs.live:
            share = None if theirs.vector is None else -theirs.vector
        vector = balance.copy() if share is None else balance - share
        epoch = max(neighbour.epoch, theirs.epoch) + 1
        neighbour.open(epoch, vector if vector.any() else None, confirmed=False)
        self.refresh()
        self.tell(neighbour)

    def part(self, neighbour: Neighbour, farewell: Farewell) -> None:
        """The other end takes the edge away."""
        if farewell.epoch != neighbour.epoch or farewell.header.position < neighbour.position:
            raise Refusal("replayed")
        neighbour.forget()
        neighbour.epoch += 1  # so that the same farewell, should it come twice, is an old one
        neighbour.stage = Stage.GONE
        self.refresh()
        if self.rejoining:
            self.complete()

    # ----------------------------------------------------------------------------------------------------------------
    # Starting, and starting again

    def rejoin(self) -> None:
        """Ask everybody what the agent last said."""
        self.rejoining, self.backup = True, None
        self.moment += 1
        for neighbour in self.neighbours.values():
            neighbour.answered = False
            if not self.restored and neighbour.stage is not Stage.GONE:
                neighbour.stage = Stage.OPENING
                neighbour.forget()
        if not self.restored:
            self.refresh()
        for neighbour in self.neighbours.values():
            self.ask(neighbour)
        self.complete()

    def complete(self) -> None:
        """End the asking, once everybody there has answered: go on from the latest that anybody knows."""
        if self.waiting():
            return
        self.rejoining = False
        backup, known = self.backup, list(self.neighbours.values())
        latest = max([n.position.round for n in known if n.answered] + [self.round])
        everybody = all(n.answered for n in known)
        outdated = backup is not None and backup.position > self.position
        self.restored = True
        self.moment += 1
        if everybody and not outdated and latest <= self.round + 1:
            for neighbour in known:
                if neighbour.stage is Stage.OPENING:
                    self.ask(neighbour)
            return
        if outdated and backup is not None:
            latest = max(latest, backup.position.round)
            if backup.position[:2] > self.position[:2]:
                self._take_back(backup)
        last_life = max(self.life, backup.position.life if backup else 0)
        self.life = max(latest, last_life + 1)
        self.recent.clear()
        self.move_to(latest)
        for neighbour in known:
            if neighbour.stage is not Stage.GONE:
                self.tell(neighbour)
                if neighbour.stage is Stage.OPENING:
                    self.ask(neighbour)

    def _take_back(self, backup: Backup) -> None:
        """Be again what the neighbours remember; the model is what they believe it to be."""
        total = backup.total + (self.finished - backup.through) * backup.broadcast.astype(np.float64)
        self.ledger.adopt(0, backup.broadcast, total)
        self.ledger.weights = backup.broadcast
        self.sequence = backup.position.sequence
        self.counters["recoveries"] += 1
