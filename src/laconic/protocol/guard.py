"""A step that a neighbour has dragged out of all bounds is taken back, or shortened, before anybody hears of it.

A model from a neighbour is taken if it is within reach (``Ledger.is_too_large``), which is wide, since agents of one
network may have labels of very different sizes. Within it a lie, of a model or of a share, could still throw the model
to where predictions are beyond ``DIVERGENCE`` times any label: that would end the agent, and what it says before would
end its other neighbours. So, with y the agent's yardstick and ||j|| the larger of a neighbour's ||theta-hat_j|| and
rho |F_ij|, whenever a step ends with ||theta|| > 1000 y:

- neighbours with ||theta-hat_j|| > 10000 y, or with a share as large that they have imposed when the session began, are
  quarantined, and the step is made again without them;
- if then some ||j|| > 500 y is left, the model is shortened to 1000 y. So it is before the step is made again, if it
  was within bounds when it was last said and a mixture has taken it to where it predicts beyond them.

An honest agent that is lied to thus never says more than 1000 y, and is not blamed by its own neighbours, whose
yardsticks may be ten times smaller; what its shares have grown to by what it heard is not held against it. A run that
diverges by itself is not helped by any of that, and ends as it should.

An agent without labels has learned nothing that could diverge, and never ends so. It judges its neighbours by each
other (``Ledger.borrow``): a neighbour beyond 2000 y is quarantined at once, for a short while, the agent goes where the
others are, and its model is shortened to 250 y in any case. If it has said more than 2000 y, as when only a liar was
there to teach it and then others come, or labels, it begins anew, which costs it nothing: others would refuse to hear
it. Of two neighbours the smaller is believed. An agent with one neighbour, or with one that speaks, believes that one.

On slots, messages may be late. Agents that lean on what others thought some slots ago, and on shares that have grown
all the while, swing ever further: so a step is made (1.5/l)^2 as long while messages come l > 1.5 slots late, l at most
10. It leads to the same place, the more slowly the later they come. ``Dialogue.lateness`` is l. A learner without duals
does not swing, and l is 0. Where pulls are clipped, a late edge does little, and l is that of more than half the
neighbours. Otherwise one late edge is enough to swing, and l is that of the latest neighbour.
"""

from __future__ import annotations

import numpy as np

from laconic._validate import Array
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED
from laconic.engine.one import OneRow
from laconic.guard import LARGEST_LABEL
from laconic.protocol.dialogue import BRIEFLY, ON_TIME, QUARANTINE, Dialogue
from laconic.protocol.ledger import AWAY, AWAY_UNLABELLED, STRAIN, STRAIN_UNLABELLED, Ledger
from laconic.protocol.session import LIVE, Session
from laconic.protocol.waving import Waves
from laconic.waves.rule import Numbers

#: What the model of an agent without labels is shortened to in any case: neighbours refuse entries of twice as much.
LARGEST = DIVERGENCE * LARGEST_LABEL / 2

#: How much longer a model may be that has been shortened to a length.
NEARLY = 1.001


def learn_guarded(dialogue: Dialogue, label: Numbers, t: int) -> tuple[int, Numbers]:
    """Steps 1 and 2 of round ``t``: how it ended, and the prediction."""
    ledger = dialogue.ledger
    if isinstance(ledger, Waves):  # what a wave brings is looked at when it comes
        ended = ledger.learn(label)
        if ledger.rebuilt:
            ledger.rebuilt = False
            dialogue.news.append(("model rebuilt", ""))
        return ended
    assert isinstance(label, float)  # only waves have several outputs
    return _learn_bounded(dialogue, label, t) if ledger.strained else _learn_late(dialogue, label, t)


def _learn_late(dialogue: Dialogue, label: float, t: int) -> tuple[int, float]:
    """A step that is the shorter the later messages come."""
    ledger, late = dialogue.ledger, dialogue.lateness
    assert not isinstance(ledger, Waves)
    if late <= ON_TIME:
        return ledger.learn(label, t)
    before = ledger.weights.copy()
    ended = ledger.learn(label, t)
    ledger.weights = before + (ON_TIME / late) ** 2 * (ledger.weights - before)
    return ended


def _learn_bounded(dialogue: Dialogue, label: float, t: int) -> tuple[int, float]:
    """A step that neighbours do not drag out of bounds."""
    ledger = dialogue.ledger
    assert not isinstance(ledger, Waves)
    row, taught = ledger.row, ledger.taught
    if taught:
        ledger.borrow()
    before = {part: row.part(part).copy() for part in row.parts}
    known = row.largest, ledger.labels
    ended = _learn_late(dialogue, label, t)
    if ended[0] == BAD_INPUT:
        return ended
    most, farthest = _bounds(ledger, taught)
    live = [end for end in dialogue.ends.values() if end.stage is LIVE]
    size = {end.name: ledger.size_of(end.index) for end in live}
    strains = {name for name, value in size.items() if not value <= most / 2}
    away = _find_away(ledger, live, farthest)
    ledger.strained = bool(strains) or ledger.taught
    if ledger.taught and dialogue.is_outvoted(away):
        ledger.borrowed, ledger.vouched = 0.0, False  # and is taken from them in the next round
        most = farthest = LARGEST
        away = _find_away(ledger, live, farthest)
    if not (strains or taught) or (ledger.size() <= most and not (taught and away)):
        return ended
    # Listening may have moved a model that was within bounds when it was last said to where it predicts beyond them.
    moved = ledger.size(before["weights"]) > most >= ledger.size(ledger.said(0)) / NEARLY
    if away or (moved and ended[0] == DIVERGED and np.isfinite(ended[1])):
        _put(row, before)
        row.largest, ledger.labels = known
        row.pull = 0.0 * row.pull  # what was heard in this round is not to be told apart
        for end in away:
            dialogue.quarantine(end, BRIEFLY if taught else QUARANTINE)
        if taught:
            dialogue.follow()
        elif moved:
            ledger.weights = ledger.said(0)
        ended = _learn_late(dialogue, label, t)
    if taught:
        _end_taught(dialogue, before, most, farthest)
        return FINISHED, ended[1]
    if strains.difference(end.name for end in away):
        ledger.shorten(most)
    return ended


def _find_away(ledger: Ledger, live: list[Session], farthest: float) -> list[Session]:
    """The neighbours whose models are beyond that, or shares that they have imposed."""
    sizes = [(end, ledger.size(ledger.said(end.index))) for end in live]
    return [
        end for end, size in sizes if not size <= farthest or (end.imposed and ledger.size_of(end.index) > farthest)
    ]


def _bounds(ledger: Ledger, taught: bool) -> tuple[float, float]:
    """How long a model may be that neighbours have dragged, and theirs that have dragged it."""
    yardstick = ledger.yardstick()
    if not taught:
        return STRAIN * yardstick, AWAY * yardstick
    most, farthest = STRAIN_UNLABELLED * yardstick, AWAY_UNLABELLED * yardstick
    return min(most or LARGEST, LARGEST), min(farthest or LARGEST, LARGEST)


def _end_taught(dialogue: Dialogue, before: dict[str, Array], most: float, farthest: float) -> None:
    """Shorten the model of an agent without labels, or begin anew where others would refuse it, or its labels do."""
    ledger = dialogue.ledger
    assert not isinstance(ledger, Waves)
    if not np.isfinite(ledger.size()):
        _put(ledger.row, before)
    beyond = ledger.size() > most and not ledger.taught
    ledger.shorten(most)
    if beyond or ledger.size(ledger.said(0)) > farthest:
        dialogue.begin_anew()


def _put(row: OneRow, parts: dict[str, Array]) -> None:
    for part, values in parts.items():
        row.put(part, values)
