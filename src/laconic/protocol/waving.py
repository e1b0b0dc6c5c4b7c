"""What one agent holds and says where waves run: its samples, its node, the chart, and what it has to tell whom.

It stands where a ``Ledger`` and its ``Accounts`` stand for other learners. What a session gives is that statements
arrive, in order and once, or that both ends know that it has ended. Everything else is in the *parts* that a statement
carries (``wave_parts``).

An agent without labels cannot judge what all are said to know. It takes a common model of at most a hundred times the
one before, and passes on what it has. An agent that finds by its labels that such a model cannot be refuses it, and
tells its own instead: of the two the smaller is right, and the agent without labels takes it though fewer waves are
behind it. When labels come it looks again at what it knows, and begins anew if they contradict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.engine.endings import BAD_INPUT, DIVERGED, FINISHED, SPOILED
from laconic.engine.one_waving import make_waver
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.protocol.chart import Chart, Spot
from laconic.protocol.ledger import FEW
from laconic.protocol.messages import Kind, Statement
from laconic.protocol.session import Session
from laconic.protocol.unshared import Unshared
from laconic.protocol.wave_parts import Begin, Down, Front, Missed, Part, PartCode, Snapshot, Taken, Up
from laconic.protocol.wire import identity
from laconic.waves import Common
from laconic.waves.message import FRONT, wave_of
from laconic.waves.node import Message
from laconic.waves.plausible import heaviest
from laconic.waves.roving import ASTRAY, Astray, RovingNode, Standing, Unsound, Whole, size_of
from laconic.waves.rule import Numbers
from laconic.waves.tree import by_name

MOST_WAITING = 64  # statements of a neighbour between two rounds
LATER, MARGIN = 4, 64  # how many times an agent's own rounds another may have lived, and how many more
LARGEST = 1e15 / 2  # of a model that was told to an agent without labels, which cannot have diverged
AHEAD = "too far ahead"  # why somebody is refused, for a while, who is honest and has lived longer
NEAR = 64  # in lockstep, where all are in one round: by how much another's clock may be ahead of it


class Ahead(Unsound):
    """On slots: what a neighbour says is of a time that nobody can have come to, as far as this agent knows."""


@final
class Waves(Unshared):
    """One agent's part in the waves.

    Attributes
    ----------
    node, chart : RovingNode, Chart
    clock : int
        Rounds that are over, as the root of the last wave counts them, without those that an agent was moved over.
    inbox : dict
        By neighbour, what it has said since the last round.
    begun : set of int
        On slots: the children that were told that the wave has begun.
    early : dict
        By neighbour, a message up that does not fit yet: its chart is not this agent's, or its wave has not begun here.
    """

    def __init__(
        self,
        name: str,
        features: RandomFeatures,
        learner: Learner,
        n_agents: int,
        lockstep: bool,
        dtype: str,
        engine: str,
    ) -> None:
        self.dtype = np.dtype(_validate.choice("dtype", dtype, ("float64", "float32")))
        self.features, self.learner, self.lockstep = features, learner, lockstep
        self.waver = make_waver(learner, features, self.dtype, engine)
        rule = learner.rule()
        common = Common.first(rule, self.waver.arithmetic, features.n_features)
        self.chart = Chart(name, n_agents)
        self.node = RovingNode(rule, self.chart.me, self.waver.own, common, lockstep)
        self.node.weight = heaviest(rule, features.unit)
        self.code = PartCode(features.n_features, rule.most, n_agents, rule.outputs)
        self.clock = 0
        self.inbox: dict[str, list[Part]] = {}
        self.early: dict[str, Up] = {}
        self.refused: list[tuple[str, str, bool]] = []  # who said what cannot be, why, and whether it is to blame
        self.labels, self.borrowed = 0, 0.0  # labels seen while ``taught``; a yardstick for want of them
        self._forgotten = False  # whether it has begun anew since the last round
        self._turns = 0
        self._told: dict[str, int] = {}  # by neighbour, when it was first told that a common model cannot be
        self.rebuilt = False  # whether the model was lost and made anew, since somebody was told
        self.ends: list[Session] = []  # whoever converses puts its own here
        self._spot: Spot | None = None
        self.begun: set[int] = set()
        self._met: set[str] = set()  # with whom a session was opened since the last round
        self._latest = self._most = 0  # what the clock of somebody else can be, and its samples
        self._others: dict[int, str] = {}
        self._out: dict[str, dict[type, Part]] = {}

    # ----------------------------------------------------------------------------------------------------------------
    # Samples

    def take(self, x: object) -> None:
        """Make ``x`` the sample of the next ``predict`` or ``learn``."""
        n_inputs = self.features.n_inputs
        array = _validate.real_array("x", x, f"({n_inputs},)", ndim=1)
        if array.shape != (n_inputs,):
            raise ValueError(f"x must have shape ({n_inputs},), got {array.shape}.")
        self.waver.sample[0] = array

    def predict(self) -> Numbers:
        """The prediction for the sample; NaN if it is not finite."""
        return self.waver.predict()

    def learn(self, label: Numbers) -> tuple[int, Numbers]:
        """Predict, and learn: (how it ended, the prediction)."""
        waver = self.waver
        if self.taught:  # no prediction is beyond bounds that are not known
            largest, waver.largest = waver.largest, np.inf
            status, prediction = waver.learn(label)
            sizes = np.abs(np.ravel(label))
            waver.largest = float(np.nanmax([largest, *sizes]))
            self.labels += bool((sizes > 0).any())
            if status in (DIVERGED, SPOILED) or not self._is_sound():
                self.begin_anew()
            return (status if status == BAD_INPUT else FINISHED), prediction
        status, prediction = waver.learn(label)
        if status == DIVERGED and np.isfinite(prediction).all():
            # Until a common model has come, what children or fronts said is in w alone, which nothing else drives far.
            known = self.node.common.theta if self.node.adopted else self.waver.own.weights
            usual = float(np.sqrt((known**2).sum(axis=-1).max()))
            if usual > self.waver.largest:
                waver.largest = usual  # the others may have larger labels
                status, prediction = waver.learn(label)
        if status in (DIVERGED, SPOILED) and self.node.rebuild():
            self.rebuilt = True
            return waver.learn(label) if status == DIVERGED else (FINISHED, prediction)
        return status, prediction

    @property
    def taught(self) -> bool:
        """Whether the agent has too few labels to judge by them what it is told.

        One is enough if a common model that it has had is not beyond a thousand times of it.
        """
        largest = self.waver.largest
        return self.labels < FEW and not (largest and largest * ASTRAY >= self.borrowed)

    @property
    def yardstick(self) -> float:
        """How large labels are here; without any, how large the common model was."""
        return max(self.waver.largest, self.borrowed) if self.taught else self.waver.largest

    def _is_sound(self) -> bool:
        """Whether the model that others have told is one; by the first labels, too, once there are enough."""
        node, weights = self.node, self.waver.own.weights
        with np.errstate(over="ignore"):
            size = max(size_of(node.common), float(np.sqrt((weights**2).sum(axis=-1)).max()))
        if self.taught:
            return size <= LARGEST
        try:
            node.check(node.common, node.n, node.start, self.waver.largest)
        except Unsound:
            return False
        return size <= ASTRAY * self.waver.largest

    def begin_anew(self) -> None:
        """Forget what others have told: without labels there was nothing to judge it by."""
        self.node.begin_anew()
        self.borrowed, self._forgotten = 0.0, True

    def loss(self, prediction: Numbers, label: Numbers) -> float:
        """The loss of a prediction, the mean over its outputs; NaN without a label."""
        return float(np.mean(self.learner.loss.value(np.asarray(prediction), np.asarray(label))))

    @property
    def weights(self) -> Array:
        """The model for anybody's data: w, or what all share where an agent has a prediction of its own.

        What all share stands still without waves. So where none can come, since there is nobody else, or none comes,
        it is w again, which learns every sample.
        """
        own, node = self.waver.own, self.node
        return own.weights if node.forlorn or node.place.n_agents == 1 else own.shared

    def believed(self, index: int) -> Array:
        """What everybody is believed to know: theta."""
        return self.node.common.theta

    # ----------------------------------------------------------------------------------------------------------------
    # A round

    def turn(self, names: Iterable[str], round: int) -> tuple[int, int]:
        """When a round is over: take in what came, and find out what to say to these neighbours; (messages, bits)."""
        self._out, self._most = {}, LATER * round + MARGIN
        self._turns += 1
        self._latest = round + round // 4 + NEAR if self.lockstep else self._most
        self._others = {identity(name): name for name in names}
        node = self.node
        node.taught = self.taught
        self._stand()
        for number in (node.place.parent, *node.place.children) if self._forgotten else ():
            self._say(number, node.standing)
        self._forgotten = False
        for name in self._met if self.node.wave > 1 else ():
            self._say(identity(name), self.node.standing)
        self._met = set()
        for name in sorted(self.inbox, key=by_name):
            for part in self.inbox[name]:
                if isinstance(part, Up):
                    self.early.pop(name, None)  # it was taken back
                self._hear(name, part)
        self.inbox = {}
        for name in sorted(self.early, key=by_name):
            self._hear(name, self.early.pop(name))
        if not self.lockstep:
            self._begin()
        node.yardstick, node.left_out = self.yardstick, []
        said = [message for message in node.tick(self.clock) if message.to]
        for message in said:
            self._send(message)
        for child in node.left_out:
            self._disown(child)
        if node.taught and node.n > 0:  # what nobody's labels are in is rounding
            self.borrowed = max(self.borrowed, size_of(node.common))
        return len(said), sum(message.bits for message in said)

    @property
    def tree(self) -> int:
        """The digest of the tree that the agent stands in; 0 before the first round."""
        return 0 if self._spot is None else self._spot.digest

    def stand_where(self, tree: int) -> bool:
        """After a restart: stand where the chart says, if that is still in the tree with this digest."""
        spot = self.chart.spot
        if spot.digest != tree:
            return False
        self.node.move(spot.place, spot.members, spot.below)
        self._spot = spot
        return True

    def _stand(self) -> None:
        """Take the place that the chart gives; new neighbours in the tree find out what the other knows."""
        spot, before = self.chart.spot, self._spot
        if before is not None and spot.digest == before.digest:
            return
        self.node.move(spot.place, spot.members, spot.below)
        self._spot, self.begun = spot, set()
        known = set() if before is None else {before.place.parent, *before.place.children}
        for number in (spot.place.parent, *spot.place.children):
            if number not in known and self.node.wave > 1:
                self._say(number, self.node.standing)
        # A tree that lasted a moment may have been this agent's alone: a child still builds on what is forgotten here.
        for child in spot.place.children if before is not None else ():
            if child not in self.node.links:
                self._disown(child)

    def _disown(self, child: int) -> None:
        """Tell a child that nothing is known of its subtree, so that it begins again at C."""
        self._say(child, Taken(self.node.wave, 0))

    def _begin(self) -> None:
        """On slots: the root begins a wave by its clock, and the others when they hear of it."""
        node, place = self.node, self.node.place
        if place.parent is None and place.n_agents > 1 and self.clock >= node.start:
            node.begun = True
        if not node.begun:
            self.begun = set()
            return
        for child in place.children:
            if child not in self.begun:
                self.begun.add(child)
                self._say(child, Begin(node.wave, node.standing.digest))

    def _send(self, message: Message) -> None:
        node = self.node
        part: Part
        if wave_of(message.data) == FRONT:
            part = Front(self.tree, message.data)
        elif message.to == (node.place.parent,):
            part = Up(node.wave, node.standing.digest, self.tree, node.base(), message.data)
        else:
            part = Down(node.wave - 1, node.before, self.clock, node.last_entry())
        for number in message.to:
            self._say(number, part)

    def _say(self, number: int | None, part: Part) -> None:
        if number in self._others:
            self._out.setdefault(self._others[number], {})[type(part)] = part

    def words(self, name: str) -> bytes:
        """What is to be said to a neighbour, once: what was heard is acknowledged first."""
        parts = self._out.pop(name, {})
        return self.code.encode(sorted(parts.values(), key=lambda part: not isinstance(part, Taken)))

    def has_words(self, name: str) -> bool:
        """Whether there is something to be said to a neighbour."""
        return name in self._out

    def drop_unsaid(self) -> None:
        """What could not be said, since there is no session at the moment, was not said."""
        if any(Up in parts for parts in self._out.values()):
            self.node.unsay()
        self.begun -= {identity(name) for name in self._out}
        for name, parts in self._out.items():
            if Front in parts:
                self.node.fronts.forget(identity(name))
        self._out = {}

    def meet(self, name: str) -> None:
        """A session was opened: find out in the next round whether the other knows the same."""
        self._met.add(name)

    # ----------------------------------------------------------------------------------------------------------------
    # What came

    def _hear(self, name: str, part: Part) -> None:
        node, number = self.node, identity(name)
        try:
            match part:
                case Up():
                    self._try(name, part)
                case Taken(wave, link):
                    if number == node.place.parent and not link:
                        node.say_again()
                    elif number == node.place.parent and wave == node.wave:
                        node.taken(link)
                case Front(tree, data):
                    if tree == self.tree and number in (node.place.parent, *node.place.children):
                        most = float(node.place.n_agents * self._most)
                        node.take_front(number, data, most, self.yardstick)
                case Begin(wave, standing):
                    if (wave, standing) == (node.wave, node.standing.digest):
                        node.begun = True
                    else:
                        self._compare(name, Standing(wave - 1, standing))
                case Down(wave, standing, clock, entry):
                    self._follow(name, Missed(Standing(wave - 1, standing), clock, (entry,)))
                case Missed():
                    self._follow(name, part)
                    if number == node.place.parent:  # which may have said before that the next wave has begun
                        self._say(number, node.standing)
                case Standing():
                    self._compare(name, part)
                case Snapshot(clock, whole):
                    if node.standing_of(whole) > node.standing or self._contradicts(whole):
                        self._check_time(clock, whole.start)
                        node.take_whole(whole, self.yardstick)
                        self._learned(clock)
                        for other in (node.place.parent, *node.place.children):
                            self._say(other, node.standing)
        except Astray:
            self._contradict(name)
        except Ahead:
            self.refused.append((name, AHEAD, False))
        except Unsound:
            self.refused.append((name, "too large", True))
        except ValueError:
            self.refused.append((name, "malformed", True))

    def _contradict(self, name: str) -> None:
        """Refuse a common model, and tell the own one: without labels the other may not know any better.

        So it is to blame only if it goes on for some rounds after it has been told.
        """
        known = self.node.adopted > 0
        told = self._told.setdefault(name, self._turns) if known else self._turns
        self.refused.append((name, "too large", self._turns - told > FEW))
        if known:
            self._say(identity(name), Snapshot(self.clock, self.node.whole()))

    def _contradicts(self, whole: Whole) -> bool:
        """Whether a neighbour refuses what an agent without labels has taken from another: of two the smaller wins."""
        node = self.node
        theirs = size_of(whole)
        if not (self.taught and whole.waves and size_of(node.common) > 2 * theirs):
            return False
        self.borrowed = theirs
        return True

    def _try(self, name: str, up: Up) -> None:
        """Take in a message up, or keep it for later."""
        node, number = self.node, identity(name)
        if (up.wave, up.standing) != (node.wave, node.standing.digest):
            self._compare(name, Standing(up.wave - 1, up.standing))
            if up.wave > node.wave:
                self.early[name] = up
        elif up.tree != self.tree or number not in node.place.children:
            self.early[name] = up
        else:
            # Rounds of others may be more than this agent's, but not by much.
            most = float(len(node.members[number]) * self._most)
            self._say(number, Taken(up.wave, node.hear_up(number, up.data, up.base, most, self.yardstick)))

    def _follow(self, name: str, missed: Missed) -> None:
        """Apply messages down, if they follow on what is known here."""
        node = self.node
        if missed.standing == node.standing:
            for entry in missed.entries:
                self._check_time(missed.clock, entry.start)
            node.follow(missed.entries, self.yardstick)
            self._learned(missed.clock)
            if identity(name) != node.place.parent:  # who has come to stand above meanwhile is told by nobody else
                self._say(node.place.parent, node.standing)
        elif not node.log or missed.standing.digest != node.before or missed.entries != (node.last_entry(),):
            # Otherwise it is the last wave again. Another message after the same one is another root's.
            self._say(identity(name), node.standing)

    def _compare(self, name: str, theirs: Standing) -> None:
        """Of two that know different things the one who knows less is told; who knows less says so."""
        node, number = self.node, identity(name)
        if theirs == node.standing:
            self._told.pop(name, None)  # it has given way
            self.begun.discard(number)  # what it was told before it knew that counted for nothing
            return
        if theirs > node.standing:
            self._say(number, node.standing)
            return
        entries = node.entries_after(theirs)
        if entries is not None and sum(len(entry.data) + 16 for entry in entries) < self.code.whole:
            self._say(number, Missed(theirs, self.clock, tuple(entries)))
        else:
            self._say(number, Snapshot(self.clock, node.whole()))

    def _check_time(self, clock: int, start: int) -> None:
        """Nobody can put off the next wave further than the rule does, or live through more rounds than there were."""
        if clock > self._latest and not self.lockstep:
            raise Ahead("more rounds than there can have been")
        if clock > self._latest or start > self.node.rule.following(clock + 1, self.chart.n_agents):
            raise Unsound("a wave that is too far away")

    def _learned(self, clock: int) -> None:
        """What everybody knows has come, and the time, a hop ago."""
        self.begun = set()
        self.clock = clock + 1

    # ----------------------------------------------------------------------------------------------------------------
    # Sessions

    def hear(self, index: int, statement: Statement, late: int, digest_of: int) -> str:
        """Keep what was said until the round is over."""
        if statement.kind is Kind.WAVE:
            kept = self.inbox.setdefault(self.ends[index - 1].name, [])
            if len(kept) + len(statement.content) > MOST_WAITING:
                return "too many"
            kept.extend(statement.content)
        return ""

    def open(self, index: int, replica: object, share: object) -> None:
        """A new session: nothing that was said in an old one counts between the two any more."""
        self.forget(self.ends[index - 1].name)

    def forget(self, name: str) -> None:
        """Nothing that was said with a neighbour counts any more."""
        self.node.cut(identity(name))
        self.begun.discard(identity(name))
        self.inbox.pop(name, None)
        self.early.pop(name, None)
