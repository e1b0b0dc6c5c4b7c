"""A neighbour that is one, and hostile: an agent like the others, whose messages are changed before they leave.

It knows what its own agent knows: tags, incarnations and numbers that others have just drawn, so that what it says is
well-formed, comes from where it says, and answers what was asked. What it says is what nobody should do: rounds and
counters from far away, models that are too large, accounts of sessions that never were, floods. It does not merely lie
about its own model, within bounds: that is its right, and what robust mixing is for.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from laconic.protocol import Agent
from laconic.protocol.dialogue import Dialogue
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Letter,
    Offer,
    Refused,
    Request,
    Statement,
    Survey,
)
from laconic.protocol.session import Session
from laconic.protocol.wave_parts import Begin, Down, Front, Part, Snapshot, Taken, Up
from laconic.protocol.waving import Waves
from laconic.protocol.wire import identity
from laconic.testing.spoiler import Spoiler
from laconic.waves.message import FRONT, Said, numbered
from laconic.waves.roving import Entry, Standing

WAYS = ("far", "huge", "forged", "flood", "nonsense")
_OFTEN = 0.4  # how many of its messages are accompanied by a lie
_INSTEAD = 0.1  # and how many are replaced by one
_FAR = (1, 11, 1000, 1 << 19, 1 << 21, 1 << 40, (1 << 47) - 1)


@final
class Liar:
    """Changes what a hostile agent says.

    Parameters
    ----------
    way : str
        One of ``WAYS``.
    seed : int

    Attributes
    ----------
    silent : bool
        Whether it says what its agent says, and nothing else.
    """

    def __init__(self, way: str, seed: int) -> None:
        self.way, self.silent = way, False
        self._dice = random.Random(seed)
        self._spoiler = Spoiler(seed)
        self._said: list[bytes] = []

    def __call__(self, agent: Agent, to: str, data: bytes) -> list[bytes]:
        """What goes out to a neighbour in the place of ``data``."""
        dialogue, draw = agent._dialogue, self._dice.random
        end = dialogue.ends.get(to)
        self._said = [*self._said, data][-100:]
        if self.silent:
            return [data]
        lies = list(self._lies(dialogue, end, data)) if end is not None and draw() < _OFTEN else []
        said = [] if lies and draw() < _INSTEAD / _OFTEN else [data]
        return [*said, *lies] if draw() < 0.5 else [*lies, *said]

    def _lies(self, dialogue: Dialogue, end: Session, data: bytes) -> Iterator[bytes]:
        if self.way == "nonsense":
            yield self._spoiler.seal(self._said)
            return
        letter = dialogue.wire.decode(data).letter
        make = {"far": self._far, "huge": self._huge, "forged": self._forged, "flood": self._flood}[self.way]
        for lie in make(dialogue, end, letter):
            try:
                yield dialogue.wire.encode(lie, identity(end.name), not end.leads)
            except (OverflowError, ValueError):  # so large that it cannot even be said
                continue

    def _far(self, dialogue: Dialogue, end: Session, letter: Letter) -> Iterator[Letter]:
        """Rounds, numbers and generations from far away."""
        far = self._dice.choice(_FAR)
        if _waves_of(dialogue) is not None and self._dice.random() < 0.5:
            yield from self._waves(dialogue, end, letter, far, 1.0)
        elif isinstance(letter, Statement):
            yield self._dice.choice([letter._replace(n=letter.n + far), letter._replace(label=letter.label + far)])
        elif isinstance(letter, (Offer, Decide)):
            yield self._dice.choice([letter._replace(round=letter.round + far), letter._replace(g=letter.g + far)])
        elif isinstance(letter, Call):
            yield letter._replace(round=letter.round + far, call=letter.call + self._dice.choice((0, far)))

    def _huge(self, dialogue: Dialogue, end: Session, letter: Letter) -> Iterator[Letter]:
        """Models, shares and scales beyond all bounds."""
        size = self._dice.choice((2e15, 1e18, 3e38, np.inf, np.nan))
        n = dialogue.ledger.n_features
        huge: Any = np.full(n, size)
        if _waves_of(dialogue) is not None and self._dice.random() < 0.8:
            yield from self._waves(dialogue, end, letter, 1, self._dice.choice((1e8, 1e15, 1e300)))
        elif isinstance(letter, (Offer, Decide)) and letter.hat is not None:
            yield self._dice.choice([letter._replace(hat=huge), letter._replace(share=1e20 * huge)])
        elif isinstance(letter, Statement):
            wire = dialogue.wire
            if letter.kind is Kind.DIFFERENCE and wire.packed_size:
                data = wire.difference(np.full(wire.packed_size, 255, dtype=np.uint8), size)
                yield letter._replace(data=data)
            else:
                yield letter._replace(kind=Kind.FULL, data=wire.model(huge))

    def _waves(self, dialogue: Dialogue, end: Session, letter: Letter, far: int, size: float) -> Iterator[Letter]:
        """Where waves run: standings and clocks from far away, models and sums beyond all bounds, forged charts."""
        waves, dice = _waves_of(dialogue), self._dice
        assert waves is not None
        node, digest = waves.node, dice.getrandbits(64)
        whole = node.whole()
        worse = whole._replace(
            waves=whole.waves + far, theta=size * (1 + np.abs(whole.theta)), n=min(whole.n * size, 1e308)
        )
        late = whole._replace(waves=whole.waves + far, start=min(whole.start + far, (1 << 47) - 1))
        clock = min(waves.clock + far, (1 << 47) - 1)
        false = Said(numbered(node.wave), False, 3e38, 3e38, 3e38, (), 255, np.full(len(whole.theta), 1 << 39))
        message = waves.waver.arithmetic.encode(false)[0]
        lies: list[Part] = [
            Standing(min(node.wave - 1 + far, (1 << 47) - 1), digest),
            Snapshot(waves.clock, worse) if size > 1 else Snapshot(clock, late),
            Down(node.wave, node.standing.digest, clock, Entry(message, node.start)),
            Up(node.wave, node.standing.digest, waves.tree, dice.choice((0, digest)), message),
            Taken(node.wave, dice.choice((0, digest))),
            Begin(node.wave, node.standing.digest),
        ]
        if node.matched:
            most = dice.choice((4.0, 3e38))
            front = false._replace(wave=FRONT, n=most, step=dice.choice((128, 255)), codes=np.full(len(whole.theta), 9))
            lies += 2 * [Front(waves.tree, waves.waver.arithmetic.encode(front)[0])]
        if isinstance(letter, Statement):
            yield letter._replace(kind=Kind.WAVE, data=waves.code.encode([dice.choice(lies)]))
        elif isinstance(letter, Survey) and waves.chart.records:  # or it has forgotten everything since it wrote this
            record = dice.choice(list(waves.chart.records.values()))
            number = min(record.number + far, (1 << 46) - 1)
            changed = record._replace(number=number, term=record.term + dice.choice((0, 1)), hears=record.hears[:1])
            yield letter._replace(data=waves.chart.encode([changed]))

    def _forged(self, dialogue: Dialogue, end: Session, letter: Letter) -> Iterator[Letter]:
        """Accounts of what never was, in offers, decisions, confirmations, farewells and digests."""
        dice, inc = self._dice, dialogue.inc
        number, tag = dice.getrandbits(40), dice.getrandbits(63) << 1
        if isinstance(letter, Offer):
            yield letter._replace(**dice.choice(_falsehoods(number, tag)))
        elif isinstance(letter, Decide):
            false: list[dict[str, Any]] = [{"echo": (number, 1)}, {"ctr": number}, {"goes_on": True}]
            yield letter._replace(**dice.choice(false))
        elif isinstance(letter, Statement):
            yield letter._replace(digest=dice.getrandbits(32))
        else:
            zero = np.zeros(dialogue.ledger.n_features)
            letters: list[Letter] = [
                Confirm(tag),
                Farewell(dice.choice((tag, end.tag))),
                Refused(number),
                Decide((end.inc, number), inc, 1, dialogue.round, 1, 1, False, zero, zero),
                Offer((end.inc, 0), inc, number, 0, 1, tag, 9, 9, 9, 9, 9, True, False, zero, zero),
            ]
            yield dice.choice(letters)

    def _flood(self, dialogue: Dialogue, end: Session, letter: Letter) -> Iterator[Letter]:
        """Many requests, greetings and calls."""
        for _ in range(30):
            letters: list[Letter] = [
                Request(end.tag, self._dice.choice((0, end.heard, end.heard + 5, 1 << 40))),
                Hello(dialogue.inc, self._dice.getrandbits(63) << 1),
                Call(dialogue.inc, self._dice.randrange(50), dialogue.round, 1, 2, False),
            ]
            yield self._dice.choice(letters)


def _waves_of(dialogue: Dialogue) -> Waves | None:
    """What a dialogue has to do with waves."""
    return dialogue.ledger if isinstance(dialogue.ledger, Waves) else None


def _falsehoods(number: int, tag: int) -> list[dict[str, Any]]:
    """What an offer may say of itself that is not so."""
    return [
        {"echo": (number, 0)},
        {"tag": tag},
        {"g": number},
        {"k": number},
        {"spoken": number},
        {"heard": number},
        {"logged": number},
        {"intact": True},
        {"fresh": True},
        {"inc": number},
    ]
