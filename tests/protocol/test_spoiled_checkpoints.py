"""Thousands of spoiled checkpoints: refused whole, the one before used, and what is taken can be lived with."""

import copy
import hashlib
import json
import random
from contextlib import suppress

import numpy as np
import pytest
from agent_kit import carry, make_team
from breadth import EVERYTHING
from conftest import CHANNELS

import laconic as lc
from laconic.protocol import AgentState
from laconic.testing.spoiler import Spoiler

EDGES = ["ann-ben", "ben-cid", "ann-cid"]
VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 8, 1 << 18, 1 << 31, 1 << 46, (1 << 47) - 1, 1 << 47, 1 << 63, 1 << 64,
    -(1 << 70), 0.0, -0.0, 0.5, 1e300, float("nan"), float("inf"), "", "live", "7", "zz", "00", [], [[]], [1], {},
    {"a": 1}, "\0", "é" * 99,
)  # fmt: skip


def learn(agents, n_rounds, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(n_rounds):
        for agent in agents.values():
            x = random.uniform(size=agent.features.n_inputs)
            if agent.ready:
                agent.learn(x, float(np.sin(5 * x[0])))
        carry(agents)


@pytest.fixture(params=["lockstep", "slotted", "lockstep waves", "slotted waves"])
def team(request, features):
    """Agents in the middle of a run, one edge of which has a decision pending."""
    clock, *waves = request.param.split()
    learner = lc.WaveRLS(growth=1.2) if waves else lc.ODKLA(rho=0.3, eta=2.0, channel=CHANNELS["adaptive"])
    agents = make_team(learner, features, EDGES, clock=clock)
    learn(agents, 12)
    agents["cid"].disconnected("ben")
    agents["cid"].connected("ben")
    for name in ("cid", "ben", "cid"):  # hello, call, offer: ben decides
        for message in agents[name].outgoing():
            if message.to in ("ben", "cid"):
                agents[message.to].receive(message.data, name)
    assert agents["ben"].state().about["neighbours"]["cid"]["pend"]
    return agents


def twin(agent):
    return lc.Agent(
        agent.name, agent.neighbours, agent.features, agent.learner, n_agents=3, clock=agent.clock, incarnation=5
    )


def places(value, at=()):
    """Where there is anything in nested dicts and lists."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*at, key))


def put(value, at, new):
    """A copy with something else there, or with nothing if ``new`` is an ellipsis."""
    if not at:
        return new
    value = copy.copy(value)
    if len(at) == 1 and new is ...:
        del value[at[0]]
    else:
        value[at[0]] = put(value[at[0]], at[1:], new)
    return value


def spoiled_about(about, chance):
    spots = [at for at in places(about) if at]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.choice(spots)
        try:
            about = put(about, at, chance.choice((*VALUES, ...)))
        except (KeyError, TypeError, IndexError):
            continue
    return about


def spoiled_arrays(arrays, chance):
    arrays, name = dict(arrays), chance.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name].copy()
    what = chance.randrange(8)
    if what == 0:
        with suppress(ValueError, OverflowError):  # whole numbers cannot be all of these
            array.flat[chance.randrange(array.size)] = chance.choice((np.nan, np.inf, -np.inf, 1e300, 1e31, 1.1e15))
    elif what == 1:
        array = array[..., : chance.randrange(array.shape[-1])]
    elif what == 2:
        array = array.astype(chance.choice(("f4", "i8", "u1", "?", "f2", ">f8", "c16")))
    elif what == 3:
        array = array.reshape(-1) if array.ndim > 1 else array[None]
    elif what == 4:
        array = np.zeros((0, 5))
    elif what == 5:
        array = np.concatenate([array, array])
    elif what == 6:
        del arrays[name]
        return arrays
    else:
        arrays[chance.choice(("more", "", "weights"))] = np.zeros(chance.randrange(4))
        return arrays
    return {**arrays, name: array}


def sealed(payload):
    return b"lacheck1" + hashlib.blake2b(payload, digest_size=16).digest() + payload


def spoiled_files(state, n, seed):
    """Bytes of files: torn, rotten, and well-sealed with nonsense in them."""
    chance, spoiler, good = random.Random(seed), Spoiler(seed), state.to_bytes()
    for k in range(n):
        way = k % 4
        if way == 0:
            yield spoiler.spoil([good])
        elif way == 1:
            yield sealed(spoiler.spoil([good[24:]]))
        elif way == 2:
            about = spoiled_about(state.about, chance)
            yield AgentState(about, state.arrays).to_bytes()
        else:
            arrays = spoiled_arrays(state.arrays, chance)
            try:
                yield AgentState(state.about, arrays).to_bytes()
            except (TypeError, ValueError):
                continue


@pytest.mark.parametrize("seed", range(4 if EVERYTHING else 1))
def test_spoiled_checkpoints_are_refused_whole_or_can_be_lived_with(team, seed, tmp_path, caplog):
    """(M4) 1,000 of them for each clock; and 240 where waves run, whose memory is large."""
    caplog.set_level("CRITICAL")
    ben = team["ben"]
    good = ben.state()
    path, previous = tmp_path / "ben.state", tmp_path / "ben.state.previous"
    previous.write_bytes(good.to_bytes())
    taken = refused = 0
    fresh = twin(ben)
    before = fresh.state()
    n_files = 240 if isinstance(ben.learner, lc.WaveRLS) else 1000
    for data in spoiled_files(good, n_files, seed):
        why = reason(fresh, data)
        if why:
            assert why.startswith(("not a", "state ")), why
            assert fresh.state() == before  # nothing was changed
            refused += 1
            if refused % 10 == 0:  # files are slow
                path.write_bytes(data)
                other = twin(ben)
                assert other.load(path)
                assert other.round == ben.round and other.alerts() == [("checkpoint refused", "")]
            continue
        taken += 1
        live_with(fresh, team)
        fresh = twin(ben)
    assert refused > 0.6 * n_files and taken > 0.01 * n_files, (refused, taken)


def reason(agent, data):
    """Why these bytes are refused, nothing if they are not; whatever else is raised is a fault."""
    try:
        agent.restore(AgentState.from_bytes(data))
    except ValueError as error:
        return str(error)
    return ""


def live_with(agent, team):
    """What was taken is good enough to agree with others on, to learn with, and to be saved."""
    assert AgentState.from_bytes(agent.state().to_bytes()) == agent.state()
    agents = {name: copy.deepcopy(one) for name, one in team.items() if name != "ben"}
    agents["ben"] = agent
    agent.rejoin()
    for _ in range(4):
        carry(agents)
        for one in agents.values():
            one.remind()
    carry(agents)
    with suppress(lc.Diverged):  # a model that is lost, but nothing else is
        learn(agents, 3)
    for name, one in agents.items():
        assert set(one.edges.values()) <= {"live", "opening", "gone"}
        for values in one.state().arrays.values():
            assert np.isfinite(values).all(), name


def test_a_checkpoint_names_its_version(team):
    state = team["ben"].state()
    text = state.to_bytes()[28:]
    about, _ = json.JSONDecoder().raw_decode(text[: text.find(b'"arrays"')].decode().rstrip(", ") + "}")
    assert about["about"]["version"] == state.about["version"] == 3
    for version in (None, 1, 2, 4, "3", 3.5, True):
        with pytest.raises(ValueError, match="state is of version"):
            twin(team["ben"]).restore(AgentState({**state.about, "version": version}, state.arrays))
