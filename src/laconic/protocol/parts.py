"""What an agent is made of: who computes, encodes and converses, where models are broadcast and where waves run."""

from __future__ import annotations

from laconic.features import RandomFeatures
from laconic.learners import Learner, Speech
from laconic.protocol.dialogue import Dialogue
from laconic.protocol.fingerprint import fingerprint
from laconic.protocol.ledger import Ledger
from laconic.protocol.wave_dialogue import WaveDialogue
from laconic.protocol.waving import Waves
from laconic.protocol.wire import Wire

LOCKSTEP, SLOTTED = "lockstep", "slotted"


def make_dialogue(
    name: str,
    features: RandomFeatures,
    learner: Learner,
    n_agents: int,
    n_neighbours: int,
    *,
    clock: str,
    dtype: str,
    engine: str,
    inc: int,
    heartbeat: int,
) -> Dialogue:
    """A conversation in which nothing has been said, with all that it needs."""
    lockstep = clock == LOCKSTEP
    if learner.speech is Speech.OWN:
        waves = Waves(name, features, learner, n_agents, lockstep, dtype, engine)
        mark = fingerprint(features, learner, n_agents, waves.dtype, clock)
        wire = Wire(name, mark, 0, None, waves.dtype, lockstep, waves.code)
        return WaveDialogue(name, lockstep, waves, wire, inc, heartbeat)
    ledger = Ledger(features, learner, n_agents, n_neighbours, dtype, engine)
    mark = fingerprint(features, learner, n_agents, ledger.dtype, clock)
    wire = Wire(name, mark, features.n_features, learner.channel, ledger.dtype, lockstep)
    return Dialogue(name, lockstep, ledger, wire, inc, heartbeat)
