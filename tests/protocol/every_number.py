"""Every number of a checkpoint or of a trace's state, replaced by what it cannot be: a program, since it may crash.

``python every_number.py LEARNER WHAT SHARE [SEED]`` tries that share of the cases, and says which of them are wrong.
WHAT is "lockstep" or "slotted" for an agent's checkpoint, and an engine, "compiled" or "reference", for a trace's
state, with "moving" behind it for one of a network that changes.
"""

import copy
import dataclasses
import faulthandler
import itertools
import logging
import math
import sys

import numpy as np
from agent_kit import carry, make_team

import laconic as lc
from laconic._timetable import read
from laconic.engine import make_engine
from laconic.protocol import AgentState

VALUES = (-1, 10**6, 10**15, 1e300, math.nan)
CHANNEL = lc.Channel(lc.Budget(0.7, burst=5), lc.Quantizer(4))
SMALL = {"growth": 1.2, "first": 2}
LEARNERS = {
    **{name: lambda name=name: lc.checks.every_learner()[name] for name in lc.checks.every_learner()},
    "budget": lambda: lc.ODKLA(rho=0.4, eta=4.0, channel=CHANNEL),
    "entropy": lambda: lc.ODKLA(rho=0.4, eta=4.0, channel=lc.Channel(lc.Censor(0.1, 0.9), lc.EntropyQuantizer(0.1))),
    "robust": lambda: lc.QCODKLA(rho=0.4, eta=4.0, alpha=0.3, beta=0.97, bits=4, robust="clip"),
    "drifting experts": lambda: lc.Experts(steps=(0.05, 0.2), forgetting=(0.999,), drift=True),
    "waves": lambda: lc.WaveRLS(**SMALL),
    "waves that forget": lambda: lc.WaveRLS(forgetting=0.97, **SMALL),
    "waves of classes": lambda: lc.WaveRLS(loss="logistic", **SMALL),
    "waves of two outputs": lambda: lc.WaveRLS(outputs=2, **SMALL),
    "personal": lambda: lc.Personal(lc.WaveRLS(**SMALL)),
    "personal that forgets": lambda: lc.Personal(lc.WaveRLS(forgetting=0.97, **SMALL), usual=1.0),
}
NAMES, ROUNDS, AFTER = ("ann", "ben", "cid"), 21, 5
FEATURES = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=3, bandwidth=1.0, seed=1)


def play(agents, first, n_rounds):
    """Rounds in which every agent that may learns a sample of its own."""
    for t in range(first, first + n_rounds):
        for k, agent in enumerate(agents.values()):
            x = np.random.default_rng(10 * t + k).uniform(size=2)
            label = np.sin(5 * x[0]) + x[1]
            if agent.learner.loss.binary:
                label = 1.0 if label > 0.5 else -1.0
            if agent.learner.outputs > 1:
                label = np.array([label, -label])
            if agent.ready:
                agent.learn(x, label)
            else:
                agent.remind()
        carry(agents)


def team_of(name, clock):
    """Agents in the middle of a run; on their way to ben, whose checkpoint it is, nothing is left."""
    agents = make_team(LEARNERS[name](), FEATURES, ["ann-ben", "ben-cid"], clock=clock)
    play(agents, 0, ROUNDS)
    return agents


def places(value, at=()):
    """Where there is a number in nested dicts and lists."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*at, key))


def numbers_of(state):
    """All numbers of a checkpoint: paths in its plain values, and entries of its arrays."""
    yield from (("about", *at) for at in places(state.about))
    for name, array in state.arrays.items():
        yield from (("arrays", name, k) for k in range(array.size))


def changed(state, at, value):
    """The checkpoint with another number in one place; None if there is no room for that one."""
    about, arrays = copy.deepcopy(state.about), {name: array.copy() for name, array in state.arrays.items()}
    if at[0] == "about":
        inside = about
        for key in at[1:-1]:
            inside = inside[key]
        inside[at[-1]] = value
    else:
        try:
            with np.errstate(over="raise"):
                arrays[at[1]].reshape(-1)[at[2]] = value
        except (OverflowError, ValueError, FloatingPointError):
            return None
    return AgentState(about, arrays)


def fault_of(team, state, clock):
    """What goes wrong where an agent is given that checkpoint; nothing if it is refused whole, or lived with."""
    old = team["ben"]
    ben = lc.Agent("ben", old.neighbours, FEATURES, old.learner, n_agents=3, clock=clock, incarnation=5)
    before = ben.state().to_bytes()
    try:
        ben.restore(AgentState.from_bytes(state.to_bytes()))
    except ValueError as error:
        return "" if ben.state().to_bytes() == before else f"refused ({error}), and something was changed"
    try:
        agents = {**{name: copy.deepcopy(team[name]) for name in NAMES}, "ben": ben}
        ben.rejoin()
        carry(agents)
        play(agents, ROUNDS, AFTER)
        again = AgentState.from_bytes(ben.state().to_bytes())
        lc.Agent("ben", old.neighbours, FEATURES, old.learner, n_agents=3, clock=clock).restore(again)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


NETWORK = lc.Network.from_edges(3, [(0, 1), (1, 2)])
MOVING = [(1, NETWORK), (8, lc.Network.from_edges(3, [(0, 1), (0, 2)])), (20, NETWORK)]


def stream_of(learner, n_rounds):
    X = np.random.default_rng(5).uniform(size=(n_rounds, 3, 2))
    y = np.sin(5 * X[..., 0]) + X[..., 1]
    y = np.where(y > 0.5, 1.0, -1.0) if learner.loss.binary else y
    return X, np.stack([y, -y], axis=-1) if learner.outputs > 1 else y


def run_of(name, engine, network, state=None, n_rounds=AFTER):
    learner = LEARNERS[name]()
    X, y = stream_of(learner, ROUNDS)
    return lc.simulate(learner, FEATURES, network, X[:n_rounds], y[:n_rounds], engine=engine, state=state).state


def spoiled_states(state):
    """States of a trace, each with another number in one place, and which."""
    columns = {"learner": state.learner, "channel": state.channel, "edges": state.edges}
    places = [(field, name, k) for field, part in columns.items() for name in part for k in range(part[name].size)]
    for at in [*places, *(("broadcast", "", k) for k in range(state.broadcast.size)), ("round", "", 0)]:
        for value in VALUES:
            field, name, k = at
            if field == "round":
                yield at, value, dataclasses.replace(state, round=value)
                continue
            array = (state.broadcast if field == "broadcast" else columns[field][name]).copy()
            try:
                with np.errstate(over="raise"):
                    array.reshape(-1)[k] = value
            except (OverflowError, ValueError, FloatingPointError):
                continue
            made = array if field == "broadcast" else {**columns[field], name: array}
            yield at, value, dataclasses.replace(state, **{field: made})


def trace_fault(name, engine, network, state):
    """What goes wrong where a run goes on from that state of a trace."""
    try:
        make_engine(LEARNERS[name](), FEATURES, read(network), engine, state=state)
    except ValueError:
        return ""
    try:
        run_of(name, engine, network, state)
    except lc.Diverged:  # an offline run says so, and has its trace
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def cases_of(name, what):
    """What is tried: pairs of a place with its value, and a function that says what is wrong."""
    if what in ("lockstep", "slotted"):
        team = team_of(name, what)
        state = AgentState.from_bytes(team["ben"].state().to_bytes())
        assert not fault_of(team, state, what), fault_of(team, state, what)
        for at, value in itertools.product(numbers_of(state), VALUES):
            yield at, value, lambda at=at, value=value: fault_in_file(team, changed(state, at, value), what)
        return
    engine, moving = what.split()[0], "moving" in what
    network = MOVING if moving else NETWORK
    state = run_of(name, engine, network, n_rounds=ROUNDS)
    assert not trace_fault(name, engine, network, state)
    for at, value, spoiled in spoiled_states(state):
        yield at, value, lambda spoiled=spoiled: trace_fault(name, engine, network, spoiled)


def fault_in_file(team, state, clock):
    return "" if state is None else fault_of(team, state, clock)


def main(name, what, share, seed="0"):
    logging.disable(logging.CRITICAL)
    np.seterr(all="ignore")
    chance = np.random.default_rng(int(seed))
    n_tried = 0
    for at, value, fault_of_case in cases_of(name, what):
        if chance.uniform() >= float(share):
            continue
        n_tried += 1
        print("trying", at, value, flush=True)
        faulthandler.dump_traceback_later(120, exit=True)  # only a hang reaches that
        fault = fault_of_case()
        faulthandler.cancel_dump_traceback_later()
        if fault:
            print("WRONG", at, value, fault, flush=True)
    print("tried", n_tried, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
