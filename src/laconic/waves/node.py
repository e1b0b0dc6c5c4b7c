"""One agent's whole part in the waves: samples, times and bytes go in; predictions and bytes come out.

A node knows its rule and its place in the tree, and nothing of simulators, sockets or clocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic._validate import Array
from laconic.waves.common import Common, Following
from laconic.waves.describing import describe_change, lift_low
from laconic.waves.fronts import Fronts, Known
from laconic.waves.message import FRONT, Said, Term, briefly, numbered, wave_of
from laconic.waves.own import Own, Probe, Report
from laconic.waves.rule import DEEP, Numbers, Rule, at_least, at_most
from laconic.waves.tree import Place

_LEAST_SQUARE = 1e-12  # of the sum of squared labels, in which rounding may leave less than nothing of errors
CREDIBLE = 100.0  # of a mean square error, in that of own labels or errors


class Message(NamedTuple):
    """What a node sends: to whom, the bytes, their length in bits, how many terms they hold; wave number and start."""

    to: tuple[int, ...]
    data: bytes
    bits: int
    n_terms: int
    wave: int
    start: int


class Link(NamedTuple):
    """What a child and its parent both know of the child's subtree, equal to the bit: U_i and n_i.

    ``number`` counts them. A message says by one bit whether the one that it builds on is even: a parent whose
    acknowledgement was lost has one more than its child knows of, and keeps the one before for that.
    """

    information: Array
    n: float
    number: int = 1


class Told(NamedTuple):
    """The rest of a message up, good for one wave: R, q, v; pull and doubt."""

    moments: Array
    square: Numbers
    bend: Numbers
    pull: Numbers = 0.0
    doubt: Numbers = 0.0


class Sum(NamedTuple):
    """An agent's own data and its subtree's: n, S, r, q, v; and pull and doubt of samples that theta has not seen.

    ``spread`` is q, but for what a child says of errors that own labels make incredible: steps of vectors go by it.
    """

    n: float
    information: Array
    moments: Array
    square: Numbers
    bend: Numbers
    pull: Numbers
    doubt: Numbers
    spread: Numbers


class Decision(NamedTuple):
    """What a root tells everybody, and what comes of it; trust and what was asked for."""

    data: bytes
    following: Following
    trust: Numbers
    asked: float


class Node:
    """The state machine of one agent.

    ``learn`` a sample in every round. When t rounds are over, ``receive`` what neighbours sent when t-1 were, tell the
    sender (``acknowledged``), then ``tick(t)``, which returns what is to be sent.

    Attributes
    ----------
    own, common
        Its own data and model; what everybody knows.
    wave, start : int
        The number of the wave that is due or under way, from 1, and when it starts, in finished rounds.
    link : Link or None
        U_i and n_i, as its parent has them.
    links, links_before : dict
        Those of its children, and the ones before.
    fronts : Fronts
        What neighbours in a deep tree told each other before the first wave came.
    log : list of bytes
        The messages down that it has applied, verbatim, that of wave 1 first: for children that missed them.
    confirmed : dict
        Up to which wave each child is known to have them.
    trust : float, or array (K,)
        Of the root: how much more a step is damped than the information alone would ask for.
    asked : float
        Of the root: how clearly fresh samples have asked for less on the diagonal, in deviations.
    """

    def __init__(self, rule: Rule, place: Place, own: Own, common: Common) -> None:
        self.rule, self.place, self.own, self.common = rule, place, own, common
        self.arithmetic, self.n_features = common.arithmetic, len(common.information)
        self.wave, self.start = 1, rule.first
        self.trust: Numbers = 1.0 if rule.outputs == 1 else np.ones(rule.outputs)
        self.asked = 0.0
        self.adopted = 0
        self.link: Link | None = None
        self.links: dict[int, Link] = {}
        self.links_before: dict[int, Link | None] = {}
        self.log: list[bytes] = []
        self.confirmed = dict.fromkeys(place.children, 0)
        self.told: Told | None = None
        self.heard: dict[int, Told] = {}
        self.fronts = Fronts(rule, self.arithmetic, self.n_features)
        self.pending: Said | None = None
        self.relay: Message | None = None
        self._carried, self._climb = (0, 0.0), place.height - place.depth

    @property
    def weights(self) -> Array:
        """The model that predicts."""
        return self.own.model

    @property
    def probe(self) -> Probe | None:
        """What fresh samples say, those that the common model has not seen."""
        return self.own.probe

    def learn(self, phi: Array, label: Numbers) -> Numbers:
        """A round's sample: returns the prediction that was made before learning from it."""
        return self.own.learn(phi, label)

    def rebuild(self) -> bool:
        """Make the own model anew of own sums and what all share; False if the sums are no good."""
        try:
            self.own.rebuild(self.common.theta)
        except np.linalg.LinAlgError:
            return False
        return bool(np.isfinite(self.own.model).all())

    # Messages in --------------------------------------------------------------------------------------------------

    def receive(self, sender: int, data: bytes) -> bool:
        """Take in a message; False if it is of no use here, as one of another wave. ValueError if it is no message.

        What is True is to be acknowledged, again if it comes again.
        """
        down = sender == self.place.parent
        if not down and sender not in self.place.children:
            raise ValueError(f"agent {self.place.agent} has no neighbour {sender} in the tree")
        wave = wave_of(data)
        if wave == FRONT:
            return self.hear_front(sender, self._read(data))
        if down:
            return self.catch_up([data])
        if wave != numbered(self.wave):
            return False
        if sender not in self.heard:  # or it says again what was not acknowledged
            self._hear_up(sender, self._read(data))
        return True

    def _read(self, data: bytes) -> Said:
        """What a message up, or a front, says."""
        return self.arithmetic.decode(data, self.n_features, down=False, outputs=self.rule.outputs)[0]

    def catch_up(self, entries: Sequence[bytes]) -> bool:
        """Apply messages down, one or several that were missed, in their order; False if they are not the next ones.

        Those that were applied before, and their acknowledgement lost, are passed over.
        """
        known = self.log[-len(entries) - 1 :]
        entries = [data for data in entries if data not in known]
        common, n, last = self.common, 0.0, None
        for k, data in enumerate(entries):
            if wave_of(data) != numbered(self.wave + k):
                return False
        for data in entries:
            said, bits, common = common.after(data)
            n, last = said.n, Message(self.place.children, data, bits, len(said.terms), self.wave, self.start)
            self._advance(common, data)
        if last is not None:
            self._adopt(n)
            self.relay = last if self.place.children else None
        return True

    def owed(self, child: int) -> list[bytes]:
        """The messages down that a child is not known to have."""
        return self.log[self.confirmed[child] :]

    def acknowledged(self) -> None:
        """The parent has heard what was last said to it: both ends know U_i, n_i from now on."""
        if self.pending is not None:
            self.link, self.told = self._understood(self.link, self.pending)
            self.pending = None

    def _hear_up(self, child: int, said: Said) -> None:
        base = self.links.get(child)
        if said.flag != _even(base):  # the child does not know of our newest: its acknowledgement was lost
            base = self.links_before.get(child)
        self.links_before[child] = base
        self.links[child], self.heard[child] = self._understood(base, said)
        if len(self.heard) == len(self.place.children):
            self._fuse()

    def _understood(self, link: Link | None, said: Said, carried: float | None = None) -> tuple[Link, Told]:
        """U_i = B + (1/n) sum sign (L k s)(L k s)', n_i = n; R_i = L k s. B = U_i, or C the first time."""
        base = self.common.information if link is None else link.information
        lower, _ = self.common.whitener(self.carried if carried is None else carried)
        information, moments = self.arithmetic.understood(base, lower, said)
        number = 0 if link is None else link.number
        return Link(information, said.n, number + 1), Told(moments, said.q, said.v, said.pull, said.doubt)

    def hear_front(self, sender: int, said: Said) -> bool:
        """Take in a front, and learn what it says at once."""
        if self.adopted or not self.matched or not self.fronts.hear(sender, said):
            return False
        self._fuse()
        return True

    # Messages out -------------------------------------------------------------------------------------------------

    def tick(self, t: int) -> list[Message]:
        """What is to be said when ``t`` rounds are over."""
        self._remind(t)
        place, due = self.place, t == self.start + self._climb
        if (self.relay is None and not due and self.wave > 1) or (place.parent is None and not place.children):
            return []
        said = []
        if self.relay is not None:
            said.append(self.relay)
            self.relay = None
        said += self._pass_fronts(t)
        if due:
            said.append(self._up() if place.parent is not None else self._decide())
        return said

    def _remind(self, t: int) -> None:
        """Where no wave brings a new P: every sample takes a part of the ridge out of it, so put that back."""
        rule, every = self.rule, self.rule.reminding
        if not every or t % every:
            return
        apart = rule.following(self.start, self.place.height) - self.start
        if not self.adopted or apart >= every or t > self.start + every:
            self.own.remind((1 - rule.forgetting**every) * rule.ridge)

    @property
    def matched(self) -> bool:
        """Whether this is the first wave of a deep tree: fronts precede it, and its vectors match its matrices."""
        return self.wave == 1 and self.place.height >= DEEP

    @property
    def carried(self) -> float:
        """n^ of the wave that is due or under way."""
        if self._carried[0] != self.start:
            self._carried = (self.start, self.rule.carried(self.start, self.place.census))
        return self._carried[1]

    def gather(self) -> Sum:
        """Step 1 of *Up*: own data, and of the children all for n and S, those heard in this wave for the rest."""
        common, links = self.common, self.links
        own = self.own.report(common.theta, common.step)
        n, S, r = own.n, own.information, own.moments
        for child in self.place.children:
            if child in links:
                n += links[child].n
                self.arithmetic.add_share(S, links[child].n, links[child].information)
        q, v = at_least(_LEAST_SQUARE * own.energy, own.square), at_least(0.0, own.bend)
        pull, doubt = own.pull, own.doubt
        spread, credible = q, self._credible(own, q) if self.wave > 1 and self.heard else np.inf
        for child in self.place.children:
            if child in self.heard:
                told = self.heard[child]
                r = r + told.moments
                q, v, pull, doubt = q + told.square, v + told.bend, pull + told.pull, doubt + told.doubt
                spread = spread + at_most(credible * max(links[child].n, 1.0), told.square)
        return Sum(float(np.float32(n)), S, r, q, v, pull, doubt, spread)

    def _credible(self, own: Report, q: Numbers) -> Numbers:
        """The largest mean square error of others that is believed where the size of a step is at stake.

        A step that is too small for an agent's errors costs a few bits; one that is too large rounds what all know to
        nothing. In the first wave errors are labels, which may differ more. An agent without labels judges its children
        by each other: by the lower median of their errors.
        """
        heard = [(self.links[child].n, told.square) for child, told in self.heard.items()]
        means = [np.divide(square, max(n, 1.0)) for n, square in heard if n > 0]
        others = np.sort(np.array(means), axis=0)[(len(means) - 1) // 2] if means else np.inf
        mean = np.maximum(own.energy, q) / max(own.n, 1.0)
        credible = np.where(np.asarray(own.energy) > 0, CREDIBLE * mean, CREDIBLE * others)
        return credible if isinstance(q, np.ndarray) else float(credible)

    def _up(self) -> Message:
        """Steps 1 to 3 of *Up*."""
        total = self.gather()
        self.own.mark()
        place = self.place
        tau = self.rule.looseness(place.n_agents, place.inner) if place.children else 1.0
        if self.wave == 1:
            tau *= self.rule.tightness(self.start, place.census)
        base = self.common.information if self.link is None else self.link.information
        message, self.pending = self._coded((place.parent or 0,), numbered(self.wave), total, base, tau)
        return message

    def _pass_fronts(self, t: int) -> list[Message]:
        """Fronts that pass here when ``t`` rounds are over; towards the root until the wave itself says more."""
        if not self.matched:
            return []
        place = self.place
        outward, inward = self.rule.fronts(t, place.depth, place.height)
        to = place.children if outward else ()
        if inward and place.parent is not None and t < self.start + place.height - place.depth:
            to = (*to, place.parent)
        made = []
        for other in to:
            said = self.fronts.say(other, self._heard_of(other))
            if said is not None:
                data, bits = self.arithmetic.encode(said)
                made.append(Message((other,), data, bits, len(said.terms), self.wave, self.start))
        return made

    def _heard_of(self, beside: int | None = None) -> Known:
        """Own data and all that has come before the first wave, but for what came from the neighbour ``beside``."""
        own, place, fronts = self.own, self.place, self.fronts.heard
        n, S, r, q, edges = own.count, own.total(), own.moments.copy(), own.square, 0
        for other in place.children if place.parent is None else (*place.children, place.parent):
            if other == beside:
                continue
            link, front = self.links.get(other), fronts.get(other)
            if other in self.heard and link is not None and (front is None or front.n <= link.n):
                told = self.heard[other]
                n, S, r, q = n + link.n, S + link.n * link.information, r + told.moments, q + told.square
            elif front is not None:
                known = front.known(self.rule)
                n, S, r, q = n + known.n, S + known.information, r + known.moments, q + known.square
                edges += 1
        return Known(n, S, r, q, edges)

    def _coded(self, to: tuple[int, ...], wave: int, total: Sum, base: Array, tau: float) -> tuple[Message, Said]:
        """Terms of the change from n B to S, and the vector, both whitened by what everybody knows."""
        rule, carried = self.rule, self.carried
        sigma = math.sqrt(max(self.own.count, 1.0) / carried)
        lower, _ = self.common.whitener(carried)
        size = rule.delta * sigma * _root_mean(total)
        tolerance, fineness = tau * rule.coarse(self.place.height) * sigma, rule.fineness(self.n_features, self.matched)
        asked = lower, total.information, total.n, base, tolerance, fineness, rule.most
        if not self.matched:
            letter = self.arithmetic.letter(wave, _even(self.link), total[3:7], *asked, total.moments, size)
        else:
            total = total._replace(information=self.arithmetic.entire(total.information))
            turning = self.arithmetic.turning(base, lower)
            terms = self.arithmetic.told(*asked, turning)
            moments = self._matching(total, lower, base, terms, turning)
            step, codes = self.arithmetic.coded(lower, moments, size, turning, terms)
            q, v, pull, doubt = briefly(total[3:7])
            said = Said(wave, _even(self.link), total.n, q, v, terms, step, codes, pull=pull, doubt=doubt)
            letter = said, *self.arithmetic.encode(said)
        said, data, bits = letter
        return Message(to, data, bits, len(said.terms), self.wave, self.start), said

    def _matching(self, total: Sum, lower: Array, base: Array, terms: Sequence[Term], turning: Array) -> Array:
        """r + (S^ - S) w, S^ as the terms tell it: who solves with S^ finds the w that S gives.

        What S^ lacks is then an error of second order, as it is in later waves, whose vectors are residuals at a model.
        """
        S, thick = total.information, self.rule.thick(total.n)
        H = S + thick * np.eye(self.n_features)
        if not (total.n > 0 and self.arithmetic.above(H, thick / 4)):
            return total.moments
        told = total.n * self.arithmetic.raised(base, lower, terms, total.n, turning)
        return total.moments + np.linalg.solve(H, total.moments.T).T @ (told - S)

    def _decide(self) -> Message:
        """*Root*: new information and a new model for everybody."""
        self.own.mark()
        decision = self._decision()
        following, self.trust, self.asked = decision.following, decision.trust, decision.asked
        said = following.said
        message = Message(self.place.children, decision.data, following.bits, len(said.terms), self.wave, self.start)
        self._advance(self.common.keep(decision.data, following), decision.data)
        self._adopt(said.n)
        return message

    def _decision(self) -> Decision:
        """What comes of own data and of what the children said; nothing changes."""
        rule, arithmetic, total = self.rule, self.arithmetic, self.gather()
        n, S = total.n, total.information
        common, asked = self._thinned(total)
        fineness, thick = rule.fineness(self.n_features, self.matched), common.thick(n)
        kappa = rule.coarse(self.place.height)
        # 1. The change from n C + thick I to S + thick I, whitened by the former.
        lower, raised = common.whitener(n)
        # A wave without a label in it knows of nothing better: the ridge alone would forget what others have learned.
        residual = total.moments - common.thin * rule.ridge * common.theta if n > 0 else 0.0 * common.theta
        terms: Sequence[Term]
        if raised or kappa < 0.5:
            before = arithmetic.thickened(common.information, n, thick) if raised else None
            known = None if before is None else arithmetic.whitened(lower, before)
            wanted = arithmetic.whitened(lower, arithmetic.entire(S) + thick * np.eye(self.n_features))
            terms, spectrum = describe_change(arithmetic, known, wanted, kappa, fineness, rule.most)
            change = arithmetic.solved(lower, spectrum, residual)
        else:
            terms, change = arithmetic.settled(lower, S, thick, kappa, fineness, rule.most, residual)
        ahead = rule.carried(rule.following(self.start, self.place.height), self.place.census)
        low = -common.thick(ahead) / (2 * ahead)
        terms, lift, raised_to = lift_low(arithmetic, common.information, lower, terms, n, low, kappa, fineness)
        revised = common.revised(n, terms, lift, raised_to)
        # 2. The measured over the expected curvature of the last step; then the next step.
        trust = _trusted(self.trust, total.bend, common.energy * n)
        step, codes, moved = revised.stepped(n, change, residual, trust, rule.delta * _root_mean(total))
        said = Said(numbered(self.wave), lift is not None, n, 0.0, 0.0, terms, step, codes, lift, thin=common.thin)
        data, bits = arithmetic.encode(said)
        return Decision(data, Following(said, bits, moved), trust, asked)

    def _thinned(self, total: Sum) -> tuple[Common, float]:
        """With less on the diagonal, or more, if fresh samples ask for it; as it was where old ones are forgotten."""
        common, n = self.common, total.n
        if self.rule.forgetting < 1 or not n > 0:
            return common, self.asked
        worth = self.rule.worth(n, self.place.n_agents, self.place.height)
        thin, asked = self.rule.thinned(common.thin, self.asked, worth, total.pull, total.doubt, total.spread / n)
        return common.thinned(thin), asked

    # What comes of it ---------------------------------------------------------------------------------------------

    def _advance(self, common: Common, data: bytes) -> None:
        """A wave is over: what everybody knows is known, and the next one is waited for."""
        self.common = common
        self.log.append(data)
        self.adopted = self.wave
        self.start = self.rule.following(self.start, self.place.height)
        self.wave += 1
        self.heard, self.told, self.pending = {}, None, None
        self.fronts.clear()

    def _adopt(self, n: float) -> None:
        """*Adopt*: P = (L L')^-1, w = theta, then RLS with each sample since the snapshot. Those to come are fresh."""
        common = self.common
        P, direction = common.inverse(n)
        self.own.adopt(P, common.theta)
        if self.rule.forgetting == 1:
            nothing = 0.0 * self.trust
            self.own.watch(common.theta, Probe(direction, nothing, nothing, nothing))

    def _fuse(self) -> None:
        """*Fuse*: until the first adoption, what has come is learned at once, if it makes a sound matrix."""
        if self.adopted or (self.place.parent is None and not self.matched):
            return
        known = self._heard_of()
        H = known.matrix(self.rule)
        if self.arithmetic.above(H, self.rule.thick(known.n) / 4):
            P = self.arithmetic.inverted(H)
            self.own.replace(P, known.moments @ P)


def _trusted(trust: Numbers, bend: Numbers, expected: Numbers) -> Numbers:
    """The measured over the expected curvature, or half of what it was before; as it was where nothing is expected."""
    if not isinstance(expected, np.ndarray):
        return max(1.0, trust / 2, bend / expected) if expected > 0 else trust
    curvature = np.divide(bend, expected, out=np.zeros_like(expected), where=expected > 0)
    return np.where(expected > 0, np.maximum(np.maximum(1.0, trust / 2), curvature), trust)


def _even(link: Link | None) -> bool:
    """Whether a link has an even number, as is that of none at all."""
    return link is None or link.number % 2 == 0


def _root_mean(total: Sum) -> Numbers:
    """sqrt(q/n)."""
    if not total.n > 0:
        return 0.0 * total.spread
    mean = total.spread / total.n
    root: Numbers = np.sqrt(mean) if isinstance(mean, np.ndarray) else math.sqrt(mean)
    return root
