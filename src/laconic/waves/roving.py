"""A node of a tree that changes: agents come and go, and the wave goes on with those who are there.

What a ``Node`` leaves to its surroundings is here. A child says which U_i it builds on by a digest, and its parent says
by another what came of it, so that the two never disagree unnoticed; a link whose two ends, or whose subtree, have
changed begins again at C. What everybody knows has a *standing*, the number of waves in it and a digest: of two that
differ the higher one wins, and whoever has the lesser takes the messages down that it missed or, if it went another way
from somewhere on, the whole.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from laconic._validate import Array
from laconic.waves.common import Common
from laconic.waves.message import Said
from laconic.waves.node import Decision, Link, Message, Node, Told
from laconic.waves.own import Own
from laconic.waves.plausible import ENTRY, why_not
from laconic.waves.rule import Numbers, Rule
from laconic.waves.saving import restore_node
from laconic.waves.tree import Place

WAIT = 6  # rounds or slots that a wave waits for a silent child, for each level of the tree below
LOGGED = 64  # messages down that are kept for those who missed them
FURTHEST = 1e6  # that sums and models may be, in units of what an agent has seen itself
ASTRAY = 1000.0  # and that a common model may be wrong about the agent's own samples
FARTHER = 100.0  # without samples of its own, how many times larger than the one before it may be
_LARGEST_MODEL = 1e15
_ROUGHLY, _TINY = 1e-3, 1e-200  # how far two lengths may differ that are the same but for rounding
_COUNTED = ("n", "marked", "counted", "begun", "spoke", "before")
_MARGIN = 2  # levels more, until a wave counts as overdue


class Standing(NamedTuple):
    """Which common state an agent has: the waves in it, and its digest. Of two the larger wins."""

    waves: int
    digest: int


class Entry(NamedTuple):
    """A message down, and when the wave after it starts."""

    data: bytes
    start: int


class Whole(NamedTuple):
    """All that everybody knows after so many waves."""

    waves: int
    start: int
    n: float
    information: Array
    theta: Array
    step: Array
    energy: Numbers
    thin: float


class Unsound(ValueError):
    """What a neighbour says cannot be: not finite, or too large."""


class Astray(Unsound):
    """A common model of a neighbour cannot be that of samples like the agent's own."""


@final
class RovingNode(Node):
    """A ``Node`` whose place may change, of an agent that goes by a number of its own.

    Attributes
    ----------
    n : float
        Samples behind the common state.
    members, below
        Of the agent's subtree and of each child's, who is in it; and the height of the agent's.
    begun : bool
        On slots: the wave that is due was heard to begin.
    spoke : bool
        What there was to say up, or as the root to all, was said in this wave.
    before : int
        The digest of the standing before the last wave.
    marked, counted : float
        How many own samples were in what was last said up, or decided; and how many of them are in the last wave.
    yardstick : float
        The agent's largest label; without one, how large the common model was that it had last; 0 if it has had none.
    taught : bool
        The yardstick is not that of labels.
    weight : float
        The largest s |phi|^2 that a sample can have; infinite if nobody knows.
    left_out : list of int
        Of the root: the children whose sums would have led to where no model can be.
    forlorn : bool
        A wave should have come long ago, and none has come since.
    """

    def __init__(self, rule: Rule, agent: int, own: Own, common: Common, lockstep: bool) -> None:
        super().__init__(rule, Place(agent, None, (), 0, (1,), 0), own, common)
        self.lockstep = lockstep
        self.below = 0
        self.members: Mapping[int, frozenset[int]] = {}
        self.n = self.marked = self.counted = 0.0
        self.begun = self.spoke = self.forlorn = False
        self.yardstick, self.taught, self.weight, self.left_out = 0.0, False, math.inf, list[int]()
        self._waited = self._late = 0
        self.trail: list[tuple[int, int]] = []  # of each entry of the log: the start after it, and the digest
        self._nothing = self.before = self._digest()
        self._known: tuple[Common | None, int, int] = None, 0, 0
        self._pending_carried = 0.0

    # Where it stands ------------------------------------------------------------------------------------------------

    def move(self, place: Place, members: Mapping[int, frozenset[int]], below: int) -> None:
        """Be somewhere else in the tree: ``members`` of its own subtree and of its children's, ``below`` its height."""
        agent, before = place.agent, self.members
        moved = place.parent != self.place.parent or members[agent] != before.get(agent)
        if moved:
            self.link = None
        if moved or self.pending is not None:
            self.unsay()
        same = {child for child in place.children if members[child] == before.get(child)}
        for kept in (self.links, self.links_before, self.heard):
            for child in set(kept) - same:
                del kept[child]
        if place != self.place:
            self.fronts.clear()
        self.place, self.members, self.below = place, members, below
        self._carried = (0, 0.0)
        self._waited = self._late = 0

    def cut(self, other: int) -> None:
        """Nothing that was said between here and there counts any more."""
        if other == self.place.parent:
            self.say_again()
        for kept in (self.links, self.links_before, self.heard):
            kept.pop(other, None)
        self.fronts.forget(other)

    @property
    def standing(self) -> Standing:
        """Which common state it has."""
        if self._known[0] is not self.common or self._known[1] != self.start:
            self._known = self.common, self.start, self._digest()
        return Standing(self.wave - 1, self._known[2])

    def _digest(self) -> int:
        common = self.common
        return _digest_of(common.information, common.theta, common.step, _packed(self.start, self.n, common))

    # What it says ---------------------------------------------------------------------------------------------------

    def is_due(self, t: int) -> bool:
        """Whether it is time to speak, if all children have."""
        return t >= self.start + self.place.height - self.place.depth if self.lockstep else self.begun

    def tick(self, t: int) -> list[Message]:
        """What is to be said when ``t`` rounds are over: once all children were heard, or waited for long enough."""
        place, said = self.place, []
        self._remind(t)
        if place.n_agents == 1:
            self.relay = None
            return []
        if self.relay is not None:
            said.append(self.relay._replace(to=place.children))
            self.relay = None
        if self.lockstep:
            said += self._pass_fronts(t)
        self._late += t >= self.start + (place.height if self.lockstep else 0)
        if self.spoke or not self.is_due(t):
            return said
        if len(self.heard) < len(place.children) and self._waited < WAIT * self.below:
            self._waited += 1
            return said
        self.marked = self.own.count
        if place.parent is None:
            self.before = self.standing.digest
            self.start = max(self.start, t - place.height)
            said.append(self._decide())
        else:
            self._pending_carried = self.carried
            said.append(self._up())
            self.spoke = True
        return said

    @property
    def overdue(self) -> bool:
        """Whether the wave should have come down long ago; then that is counted from now on again."""
        if self._late <= (WAIT + 2) * (self.place.height + _MARGIN):
            return False
        self._late, self.forlorn = 0, True
        return True

    def base(self) -> int:
        """The digest of the U_i that a message up builds on; 0 for C."""
        return 0 if self.link is None else link_digest(self.link)

    # What it hears --------------------------------------------------------------------------------------------------

    def hear_up(self, child: int, data: bytes, base: int, most: float, yardstick: float) -> int:
        """Take in a child's message, made of the link with the digest ``base``: the new one's; 0 if there is none such.

        ValueError if it is no message, or cannot be: of more than ``most`` samples, say.
        """
        found: Link | None = None
        if base:
            known = (self.links.get(child), self.links_before.get(child))
            found = next((link for link in known if link is not None and link_digest(link) == base), None)
            if found is None:
                return 0
        said = self._read(data)
        if not said.n <= most:
            raise Unsound("more samples than there can be")
        with np.errstate(over="ignore", invalid="ignore"):
            link, told = self._understood(found, said)
            reach = FURTHEST * max(said.n, 1.0) * (yardstick or np.inf)
            sound = _within(link.information, FURTHEST) and _within(told.moments, reach)
            if not sound or self._why_not(child, said, link, told):
                raise Unsound("sums that cannot be")
        digest, newest = link_digest(link), self.links.get(child)
        if found is None and newest is not None and link_digest(newest) != digest:
            found = newest  # a child that took this message back before it was acknowledged still builds on that one
        if found is not None:
            self.links_before[child] = found
        self.links[child], self.heard[child] = link, told
        if len(self.heard) == len(self.place.children):
            self._fuse()
        return digest

    def _why_not(self, child: int, said: Said, link: Link, told: Told) -> str:
        members, height = len(self.members[child]), self.place.height
        return why_not(self.common, self.carried, said, link.information, told.moments, members, self.weight, height)

    def taken(self, digest: int) -> None:
        """The parent has made the link with that digest of what it was told; of what was said before, if it differs."""
        if self.pending is not None:
            link, told = self._understood(self.link, self.pending, self._pending_carried)
            if link_digest(link) == digest:
                self.link, self.told, self.pending = link, told, None

    def unsay(self) -> None:
        """What was to be said up could not be said."""
        self.pending, self.spoke, self.marked = None, False, 0.0

    def say_again(self) -> None:
        """The parent does not know the link that was built on: speak again, from C."""
        self.link = None
        self.unsay()

    def take_front(self, sender: int, data: bytes, most: float, yardstick: float) -> None:
        """Take in what a neighbour knows before the first wave.

        ValueError if it is no message, or cannot be: of more than ``most`` samples, say. It is looked at before
        anything is learned of it.
        """
        said = self._read(data)
        if self.adopted or not self.matched:
            return
        if not said.n <= most:
            raise Unsound("more samples than there can be")
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.fronts.hear(sender, said):
                return
            front = self.fronts.heard[sender]
            reach = FURTHEST * yardstick if yardstick else _LARGEST_MODEL
            if not (_within(front.information, FURTHEST * max(front.n, 1.0)) and _within(front.model, reach)):
                self.fronts.forget(sender)
                raise Unsound("sums that cannot be")
            self._fuse()

    # What everybody knows -------------------------------------------------------------------------------------------

    def follow(self, entries: Sequence[Entry], yardstick: float) -> None:
        """Apply the next messages down, in their order, and adopt what comes of it; all of them or none.

        ValueError if one is no message, or leads to where no model can be.
        """
        common, made = self.common, []
        if self.taught and not yardstick:
            yardstick = self._suggested()
        with np.errstate(over="ignore", invalid="ignore"):
            for entry in entries:
                said, bits, common = common.after(entry.data)
                made.append((entry, said, bits, common))
                self.check(common, said.n, entry.start, yardstick)
        for entry, said, bits, common in made:
            self.before = self.standing.digest
            relay = Message(self.place.children, entry.data, bits, len(said.terms), self.wave, self.start)
            self.n = said.n
            self._advance(common, entry.data)
            self._conclude(entry.start)
            self.relay = relay
        if made:
            self._adopt(self.n)

    def check(self, common: Common, n: float, start: int, yardstick: float) -> None:
        """``Astray`` if these cannot be the information and the model of samples like the agent's own.

        With y its largest label: |C| > 10^6, or 10 where |phi| = 1; |theta| > 10^6 y; or, of some output,
        c - 2 b.theta + theta'A theta > m (1000 y)^2. Without labels, |theta| > 100 y. Nor may n C + thick I be so far
        from positive that its factor, of which pivots are raised, leaves all bounds; neither that of this wave nor that
        of the next. And the last step d has the length that its energy says: |L'd|^2 = e n, L the factor of this wave.
        """
        own, theta = self.own, common.theta
        reach = (FARTHER if self.taught else FURTHEST) * yardstick if yardstick else _LARGEST_MODEL
        densest = min(FURTHEST, ENTRY * self.weight)
        if not (_within(common.information, densest) and _within(theta, reach) and np.isfinite(common.energy).all()):
            raise Astray("a model that cannot be")
        for samples in (n, self.rule.carried(start, self.place.census)):
            lower, _ = common.whitener(samples)
            if not _within(lower, 1e3 * math.sqrt(FURTHEST * samples + self.rule.thick(samples))):
                raise Astray("information that cannot be")
        length = ((common.step @ common.whitener(n)[0]) ** 2).sum(axis=-1)
        if not np.all(np.abs(length - common.energy * n) <= _ROUGHLY * (length + _TINY)):
            raise Astray("a step that cannot be")
        wrong = ((theta @ own.information - 2 * own.moments) * theta).sum(axis=-1) + own.square
        if yardstick and not np.all(wrong <= max(own.count, 1.0) * (ASTRAY * yardstick) ** 2):
            raise Astray("a model that cannot be")

    def _suggested(self) -> float:
        """How large a model is by each child's sums alone, the lower median; 0 where none says anything.

        So an agent that knows nothing itself judges the first common model, one of its own making too.
        """
        links, heard = self.links, self.heard
        labelled = [child for child in heard if links[child].n > 0]
        sizes = [size_of(self._decide_with({child}, links, heard).following.common) for child in labelled]
        self.links, self.heard = links, heard
        return next(iter(sorted(filter(None, sizes))[(len(sizes) - 1) // 2 :]), 0.0)

    def _decide(self) -> Message:
        message = super()._decide()
        self.n = self.arithmetic.decode(message.data, self.n_features, down=True, outputs=self.rule.outputs)[0].n
        self._conclude(self.start)
        return message

    def _decision(self) -> Decision:
        """Hold it to what everybody holds it to who hears of it; leave out who leads to where no model can be.

        A root that went there alone would be taken for a liar itself, since it is one of its subtree that lied.
        """
        decision = super()._decision()
        if self.taught and not self.yardstick and len(self.heard) > 1:
            self.yardstick = self._suggested()
        if self._is_sound(decision):
            return decision
        links, before, heard = self.links, self.links_before, self.heard
        alone = {child: self._decide_with({child}, links, heard) for child in (*links, *heard)}
        good = {child for child, made in alone.items() if self._is_sound(made)}
        for kept in (good, set[int]()):
            found = self._decide_with(kept, links, heard)
            if self._is_sound(found):
                self.left_out = sorted({*links, *heard} - kept)
                self.links_before = {child: link for child, link in before.items() if child in kept}
                return found
        self.links, self.heard = links, heard
        return decision  # not their doing

    def _decide_with(self, kept: set[int], links: Mapping[int, Link], heard: Mapping[int, Told]) -> Decision:
        """The decision if only these children were there."""
        self.links = {child: link for child, link in links.items() if child in kept}
        self.heard = {child: told for child, told in heard.items() if child in kept}
        with np.errstate(over="ignore", invalid="ignore"):
            return super()._decision()

    def _is_sound(self, decision: Decision) -> bool:
        following = decision.following
        start = self.rule.following(self.start, self.place.height)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                self.check(following.common, following.said.n, start, self.yardstick)
        except Unsound:
            return False
        return True

    def _conclude(self, start: int) -> None:
        """The wave is over, and the next one starts at ``start``."""
        self.counted = self.marked
        self.marked, self.start = 0.0, start
        self.begun = self.spoke = self.forlorn = False
        self._waited = self._late = 0
        self.trail = [*self.trail, (start, self.standing.digest)][-LOGGED:]
        del self.log[:-LOGGED]

    def last_entry(self) -> Entry:
        """The last message down."""
        return Entry(self.log[-1], self.trail[-1][0])

    def entries_after(self, standing: Standing) -> list[Entry] | None:
        """The messages down that somebody with that standing lacks; None if it went another way, or it is too long."""
        at = standing.waves - (self.wave - 1 - len(self.log))
        known = self._nothing if standing.waves == 0 else (self.trail[at - 1][1] if 0 < at <= len(self.log) else None)
        if at < 0 or known != standing.digest:
            return None
        return [Entry(data, start) for data, (start, _) in zip(self.log[at:], self.trail[at:], strict=True)]

    def whole(self) -> Whole:
        """All that everybody knows."""
        common = self.common
        numbers = common.energy, common.thin
        return Whole(self.wave - 1, self.start, self.n, common.information, common.theta, common.step, *numbers)

    # Its memory -----------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, float]:
        """What it counts and notes, as plain numbers."""
        counts = {name: getattr(self, name) for name in _COUNTED}
        return {**counts, "waited": self._waited, "late": self._late, "carried": self._pending_carried}

    def restore(
        self,
        parts: Mapping[str, Array],
        counts: Mapping[str, float],
        log: Sequence[tuple[Entry, int]],
        links: Mapping[int, tuple[Link, Link | None, Told | None]],
    ) -> None:
        """Know what ``saving.node_parts``, ``counts``, the log and the children's links said."""
        restore_node(self, parts)
        for name in _COUNTED:
            setattr(self, name, type(getattr(self, name))(counts[name]))
        self._waited, self._late, self._pending_carried = int(counts["waited"]), int(counts["late"]), counts["carried"]
        self.log = [entry.data for entry, _ in log]
        self.trail = [(entry.start, digest) for entry, digest in log]
        self.links = {child: link for child, (link, _, _) in links.items()}
        self.links_before = {child: before for child, (_, before, _) in links.items() if before is not None}
        self.heard = {child: told for child, (_, _, told) in links.items() if told is not None}

    # The whole ------------------------------------------------------------------------------------------------------

    def standing_of(self, whole: Whole) -> Standing:
        """The standing of somebody who knows that."""
        numbers = _packed(whole.start, whole.n, whole)
        return Standing(whole.waves, _digest_of(whole.information, whole.theta, whole.step, numbers))

    def begin_anew(self) -> None:
        """Know what a new node knows."""
        first = Common.first(self.rule, self.arithmetic, self.n_features)
        known = first.information, first.theta, first.step, first.energy, first.thin
        self.links, self.links_before, self.link = {}, {}, None
        self.take_whole(Whole(0, self.rule.first, 0.0, *known), 0.0)

    def take_whole(self, whole: Whole, yardstick: float) -> None:
        """Know that instead, and adopt it. ValueError if no model can be there."""
        common = Common(self.rule, self.arithmetic, *whole[3:])
        with np.errstate(over="ignore", invalid="ignore"):
            self.check(common, whole.n, whole.start, yardstick)
        self.common, self.n = common, whole.n
        self.wave, self.adopted, self.start = whole.waves + 1, whole.waves, whole.start
        self.heard, self.told, self.pending, self.relay = {}, None, None, None
        self.fronts.clear()
        self.log, self.trail = [], []
        self.before = 0
        self.marked = self.counted = 0.0
        self.begun = self.spoke = self.forlorn = False
        self._waited = self._late = 0
        self._adopt(whole.n)


def size_of(common: Common | Whole) -> float:
    """How large a common model is, the largest of several."""
    with np.errstate(over="ignore"):
        return float(np.sqrt((common.theta**2).sum(axis=-1)).max())


def link_digest(link: Link) -> int:
    """A number for U_i and n_i that is never 0."""
    return _digest_of(link.information, struct.pack("<d", link.n))


def _packed(start: int, n: float, known: Common | Whole) -> bytes:
    return struct.pack("<Qd", start, n) + np.array([*np.ravel(known.energy), known.thin], dtype="<f8").tobytes()


def _digest_of(*parts: Array | bytes) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.tobytes())
    return int.from_bytes(digest.digest(), "little") or 1


def _within(numbers: Array, limit: float) -> bool:
    return bool(np.isfinite(numbers).all() and np.abs(numbers).max(initial=0.0) <= limit)
