"""A step that a neighbour has dragged out of all bounds is taken back, or shortened, before anybody hears of it.

What a neighbour says is taken if it is within reach (``Ledger.is_too_large``), which is wide, since agents of one
network may have labels of very different sizes. Within it a lie, of a model or of a share, could still throw the model
to where predictions are beyond ``DIVERGENCE`` times any label: that would end the agent, and what it says before would
end its other neighbours. So, with y the agent's yardstick and ||j|| the larger of a neighbour's ||theta-hat_j|| and
rho |F_ij|, whenever a step ends with ||theta|| > 1000 y:

- neighbours with ||theta-hat_j|| > 10000 y, or with a share as large that they have imposed when the session began, are
  quarantined, and the step is made again without them;
- if then some ||j|| > 500 y is left, the model is shortened to 1000 y.

An honest agent that is lied to thus never says more than 1000 y, and is not blamed by its own neighbours, whose
yardsticks may be ten times smaller; what its shares have grown to by what it heard is not held against it. A run that
diverges by itself is not helped by any of that, and ends as it should.

On slots, what is heard may be late. Agents that lean on what others thought some slots ago, and on shares that have
grown all the while, swing ever further: so a step is made (1.5/l)^2 as long while the messages of half the neighbours
come l > 1.5 slots late. It leads to the same place, the more slowly the later they come.
"""

from __future__ import annotations

from laconic.protocol.dialogue import Dialogue
from laconic.protocol.ledger import AWAY, STRAIN
from laconic.protocol.session import LIVE
from laconic.protocol.waving import Waves
from laconic.waves.rule import Numbers

#: Slots by which messages may be late without a step being shortened.
ON_TIME = 1.5


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
    late = dialogue.lateness
    if late <= ON_TIME:
        return _learn_bounded(dialogue, label, t)
    before = ledger.weights.copy()
    ended = _learn_bounded(dialogue, label, t)
    ledger.weights = before + (ON_TIME / late) ** 2 * (ledger.weights - before)
    return ended


def _learn_bounded(dialogue: Dialogue, label: float, t: int) -> tuple[int, float]:
    """A step that neighbours do not drag out of bounds."""
    ledger = dialogue.ledger
    assert not isinstance(ledger, Waves)
    if not ledger.strained:
        return ledger.learn(label, t)
    row = ledger.row
    before = {part: row.part(part).copy() for part in row.parts}
    ended = ledger.learn(label, t)
    yardstick = ledger.yardstick()
    live = [end for end in dialogue.ends.values() if end.stage is LIVE]
    size = {end.name: ledger.size_of(end.index) for end in live}
    strains = {name for name, value in size.items() if not value <= STRAIN / 2 * yardstick}
    ledger.strained = bool(strains) or not yardstick
    if not strains or not yardstick or ledger.size() <= STRAIN * yardstick:
        return ended
    most = AWAY * yardstick
    away = [e for e in live if not ledger.size(ledger.said(e.index)) <= most or (e.imposed and size[e.name] > most)]
    if away:
        for part, values in before.items():
            row.put(part, values)
        row.pull = 0.0 * row.pull  # what was heard in this round is not to be told apart
        for end in away:
            dialogue.quarantine(end)
        ended = ledger.learn(label, t)
    if strains.difference(end.name for end in away):
        ledger.shorten(STRAIN * yardstick)
    return ended
