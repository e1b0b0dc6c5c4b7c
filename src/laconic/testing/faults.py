"""Schedules of faults, drawn from a seed, and what must hold after each: the protocol's claims, put to the test.

A schedule is a small network, some agents of which have no labels, a learner, a clock, and faults that all end at the
same moment, when the network is healed. After that the agents run on for a number of rounds, and then

- no agent is stuck: all have finished all rounds, and every edge is in use on both sides;
- every replica equals its origin, to the bit, and the two shares of every edge cancel;
- the duals are what the shares say, and add up to zero over all agents, to 1e-8 of their size;
- where waves run, instead: all stand in one tree; who has finished the same wave knows the same, to the bit, and nobody
  is more than a wave behind; a parent knows of a subtree what its child knows, to the bit; and the samples in the last
  wave are those that the agents have put into it, each once;
- everything is finite, and nothing was raised;
- the mean square error is at most 5% above that of agents to whom nothing happened, after 60 rounds or after 180: what
  fades away may take its time, and what stays is found (2% with waves, at least two of which come in that time, unless
  samples were lost for good; 10%, if a neighbour is hostile; where it stays so to the end, all this is about the
  others);
- where a neighbour is hostile, all this need hold after one of the two only: it can have two waves meet at any moment;
- and where no crash or long absence took rounds away, lockstep has computed what ``lc.simulate`` computes, to the bit.

``check`` runs one schedule and returns what is violated; ``shrink`` takes faults away, and shortens them, as long as
something still is. ``schedules`` draws them, and ``aftermath`` is what is looked at.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from laconic.engine import simulate
from laconic.engine.support import supports
from laconic.learners import Learner, Speech
from laconic.testing.aftermath import LONGEST, compare_errors, look_at_agents, make_data, without_labels
from laconic.testing.hostile import Liar
from laconic.testing.schedules import HEALED, KINDS, LEARNERS, PIECES, RARE, RAW, Schedule, draw_schedule
from laconic.transport.faults import Hostile
from laconic.transport.virtual import VirtualNetwork

__all__ = ["KINDS", "LEARNERS", "PIECES", "RARE", "Schedule", "check", "draw_schedule", "shrink"]

AFTERWARDS = 60, 180  # rounds from healing on; and until the error must have settled
_LIMIT = 1000.0  # virtual seconds after which an agent counts as stuck
_SLOWED = 2  # times as many where a liar is among them: it may be the only neighbour of an agent without labels
_TALKING = 30.0  # virtual seconds for which agents that have nothing to learn may go on talking because of a lie
_TOLERANCE, _WITH_WAVES, _AMONG_HOSTILE = 0.05, 0.02, 0.1


def check(schedule: Schedule) -> list[str]:
    """Run a schedule, and return a sentence for everything that should have held and did not.

    That nothing is raised is among it: of thousands of schedules all are run, and this one is told.
    """
    try:
        return _violations(schedule)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__} was raised, {error} ({Path(place.filename).name}, line {place.lineno})."]


def _violations(schedule: Schedule) -> list[str]:
    learner, raw = {**LEARNERS, **RARE}[schedule.learner], schedule.learner in RAW
    features, X, y, _, _ = make_data(schedule.network.n_agents, learner.outputs, raw)
    y = without_labels(y, schedule.network.names, schedule.unlabelled)
    virtual = VirtualNetwork(
        learner,
        features,
        schedule.network,
        X,
        y,
        clock=schedule.clock,
        faults=schedule.faults,
        seed=schedule.seed,
        checkpoint_every=schedule.checkpoint_every,
        heartbeat=6,
        sensors=schedule.sensors or None,
        dtype=schedule.dtype,
        thin=schedule.thin,
    )
    liars = {fault: Liar(fault.way, schedule.seed) for fault in schedule.faults if isinstance(fault, Hostile)}
    virtual.wires.lie = lambda fault, host, to, data: liars[fault](host.agent, to, data)
    strict = learner.speech is Speech.OWN and not schedule.forgetful
    tolerance = _AMONG_HOSTILE if liars else _WITH_WAVES if strict else _TOLERANCE
    virtual.run(LONGEST - AFTERWARDS[-1] - 1, until=HEALED)
    healed = dict(virtual.learned)
    for afterwards in AFTERWARDS:
        # In lockstep who is behind jumps to where the others are, and has not learned meanwhile.
        while (learned := min(virtual.learned[name] - healed[name] for name in virtual.honest)) < afterwards:
            target = max(virtual.reached(name) for name in virtual.honest) + afterwards - learned
            _come_to_rest(virtual, target, liars.values())
            if not virtual.settled(target):
                return [_stuck(virtual, target)]
        for host in virtual.honest.values():
            host.agent.end_round()
        violations = list(look_at_agents({name: host.agent for name, host in virtual.honest.items()}))
        error, calm = compare_errors(virtual, learner, schedule.network, raw)
        if not violations and error <= (1 + tolerance) * calm:
            break
        if violations and not liars:  # a liar has two waves meet now and then, for some rounds
            break
    else:
        if not violations:
            violations.append(f"the mean square error is {error:.4g}, without faults it is {calm:.4g}.")
    if schedule.clock == "lockstep" and schedule.harmless:
        trace = simulate(learner, features, schedule.network, X[:target], y[:target], dtype=schedule.dtype)
        differs = ~(np.abs(virtual.predictions() - trace.predictions) <= _near(learner, schedule))
        if differs.any():
            t, i = np.argwhere(differs)[0][:2]
            violations.append(f"lockstep differs from the simulator, first in round {t + 1} of agent {i}.")
    return violations


def _come_to_rest(virtual: VirtualNetwork, target: int, liars: Collection[Liar]) -> None:
    """Run until round ``target`` is over, and nothing is under way.

    An idle network may talk for ever about who hears whom: what one agent writes of another is put right by that one,
    which the liar has to pass on, with another lie. So who has lied to agents at rest for long falls silent.
    """
    limit = _LIMIT * (_SLOWED if liars else 1)
    virtual.run(target, limit=limit, talking=_TALKING if liars else math.inf)
    if liars and virtual.resting and not virtual.settled(target):
        for liar in liars:
            liar.silent = True
        virtual.run(target, limit=limit)
        for liar in liars:
            liar.silent = False


def _near(learner: Learner, schedule: Schedule) -> float:
    """How near to the simulator lockstep is: the kernels compute a row as they compute many, to the bit; NumPy may not.

    And a last digit may tip what a quantizer rounds.
    """
    if supports(learner) and not schedule.thin:
        return 0.0
    rounded = learner.channel is not None and learner.channel.quantizer is not None
    return 1e-2 if rounded else 1e-12 if schedule.dtype == "float64" else 1e-4


def _stuck(virtual: VirtualNetwork, target: int) -> str:
    states = ", ".join(
        f"{name} in round {host.agent.round} waits for {'/'.join(host.agent.waiting) or 'nobody'}"
        for name, host in virtual.hosts.items()
    )
    return f"some agent is stuck before round {target}: {states}."


def shrink(schedule: Schedule, violated: Callable[[Schedule], bool] = lambda s: bool(check(s))) -> Schedule:
    """A schedule with as few and as short faults as will do to violate something still."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(schedule):
            if violated(smaller):
                schedule, changed = smaller, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    faults = schedule.faults
    for k in range(len(faults)):
        yield replace(schedule, faults=faults[:k] + faults[k + 1 :])
    for k in range(len(schedule.unlabelled)):
        yield replace(schedule, unlabelled=schedule.unlabelled[:k] + schedule.unlabelled[k + 1 :])
    for k, fault in enumerate(faults):
        length = fault.stop - fault.start
        if 0.5 < length < math.inf:  # what lasts for ever has no half
            for shorter in (
                replace(fault, stop=fault.start + length / 2),
                replace(fault, start=fault.start + length / 2),
            ):
                yield replace(schedule, faults=(*faults[:k], shorter, *faults[k + 1 :]))
