"""One agent's rounds in the core: the simulator's functions over one row, and its bits."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Undecodable, longest_message
from laconic.engine.graphs import agent_graph
from laconic.engine.native import make_experts
from laconic.engine.one import OneRow
from laconic.engine.support import kernel_of
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.schedules import Constant, Schedule
from laconic.native.arrays import aligned
from laconic.native.binding import INTEGER, POINTER, REAL, Structure, function
from laconic.native.features import feature_map
from laconic.native.run import DENSE, ENTROPY, Scratch, add_agents, make_run

_REFUSED, _TAKEN, _NO_CODE = range(3)
_BOUND = {"_address", "_predict", "_learn", "_send", "_receive", "_receive_model", "_combine", "_settle_dual"}


@final
class _Agent(Structure):
    """``Agent`` of ``core/agent.h``."""

    _fields_: ClassVar[Any] = [
        *((name, POINTER) for name in ("run", "scratch", "sample", "shares", "message")),
        *((name, INTEGER) for name in ("length", "outside")),
        *((name, REAL) for name in ("scale", "prediction")),
    ]


@final
class NativeRow(OneRow):
    """A run of one agent; each step is one call of the core."""

    def __init__(
        self, learner: Learner, features: RandomFeatures, n_agents: int, n_neighbours: int, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(learner, features, dtype)
        run = self._run = make_run(learner, features, n_agents, dtype)
        add_agents(run, 1, n_neighbours, 1, dtype, clips=self.clips > 0, half=False)
        self._memory = np.concatenate([self._memory, np.zeros(3 - len(self._memory))])
        self._n_remembered = len(learner.channel.memory) if learner.channel else 0
        run.put(memory=self._memory)
        self._experts = make_experts(learner, run, 1)
        if self._experts is not None:
            self._experts.restore(learner.init(1, self.n_features)._asdict())
        self.dense, self._coded = run.rounding == DENSE, run.rounding == ENTROPY
        n_bytes = longest_message(self.n_features) if self._coded else -(-self.n_features * run.bits // 8)
        self._written = np.zeros(n_bytes, dtype=np.uint8)
        self.message = self._written
        self._rate: Schedule = kernel_of(learner).rate
        self._steady = self._rate.value if isinstance(self._rate, Constant) else None
        self._mixes = not run.dual
        self._parts = tuple(learner.init(1, 1)._fields)
        self.shares = np.zeros((1 + n_neighbours, run.size))
        self.sums = run.array("sums") if run.sums else np.zeros(self.shares.shape)
        self.spoken = run.array("spoken")
        self._agent: _Agent = _Agent.of(run=run, message=self._written, length=n_bytes, shares=self.shares)
        self._bind()
        self._run.put(**agent_graph((), (), dtype))
        self.use(features)
        self.listen_to((), ())

    def _bind(self) -> None:
        """Look up the steps in the core."""
        precision = f"f{8 * self.dtype.itemsize}"
        self._address = self._agent.address
        self._predict = function(f"agent_predict_{precision}", POINTER, result=None)
        self._learn = function(f"agent_learn_{precision}", POINTER, REAL, REAL)
        self._send = function(f"agent_send_{precision}", POINTER, REAL)
        self._receive = function(f"agent_receive_{precision}", POINTER, INTEGER, POINTER, INTEGER, REAL)
        self._receive_model = function(f"agent_receive_model_{precision}", POINTER, INTEGER, POINTER)
        self._combine = function(f"agent_combine_{precision}", POINTER, result=None)
        self._settle_dual = function(f"agent_settle_{precision}", POINTER, result=None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _BOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies."""
        self.sample = np.zeros((1, features.n_inputs), dtype=self.dtype)
        self._scratch = Scratch.make(self._run, feature_map(features, self.dtype), 1, self.dtype)
        self._agent.put(sample=self.sample, scratch=self._scratch)

    def predict(self) -> float:
        """theta.phi(x)."""
        self._predict(self._address)
        return self._agent.prediction

    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2."""
        rate = float(self._rate(t)) if self._steady is None else self._steady
        ended = self._learn(self._address, label, rate)
        return ended, self._agent.prediction

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3."""
        sent = bool(self._send(self._address, self._threshold(t)))
        if sent and self._coded:
            self.message = self._written[: self._agent.length]
        return sent, self._agent.outside, self._agent.scale

    def hear(self, index: int, message: Array, scale: float) -> bool:
        """Step 4."""
        data = np.ascontiguousarray(message)
        taken = self._receive(self._address, index, data.ctypes.data, data.size, scale)
        if taken == _NO_CODE:
            raise Undecodable("no message of an entropy code.")
        return bool(taken)

    def hear_model(self, index: int, model: Array) -> bool:
        """Step 4."""
        row = np.ascontiguousarray(model, dtype=self.dtype)
        return bool(self._receive_model(self._address, index, row.ctypes.data))

    def listen(self) -> None:
        """Steps 4 and 5."""
        self._combine(self._address)
        if self.heeds:
            self.spoken[:] = 0

    def settle(self) -> None:
        """rho sum_j kept_j F_j."""
        self._settle_dual(self._address)

    def finish_alone(self, t: int) -> None:
        """Nothing: where nobody is heard, the learners that have kernels gain nothing from it."""

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on."""
        self._run.put(**agent_graph(live, combination, self.dtype))
        if self.clips:
            self._scratch.put(lengths=np.zeros(3 * max(1, len(live))))

    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order."""
        broadcast = aligned(1 + len(kept), self.n_features, self.dtype)
        shares, sums = np.zeros((2, *broadcast.shape))
        spoken = np.zeros(1 + len(kept), dtype=np.uint8)
        before = self._run.array("broadcast")
        for k, old in enumerate([0, *kept]):
            if old or not k:
                broadcast[k], spoken[k] = before[old], self.spoken[old]
                shares[k], sums[k] = self.shares[old], self.sums[old]
        self.shares, self.sums, self.spoken = shares, sums, spoken
        self._run.put(broadcast=broadcast, spoken=spoken, n_replicas=len(broadcast))
        if self.clips:
            self._run.put(sums=sums)
        self._agent.put(shares=shares)

    @property
    def parts(self) -> tuple[str, ...]:
        """Models, and duals if there are."""
        return self._parts

    def part(self, name: str) -> Array:
        """The row of that name."""
        if name == "sums":
            return self.sums[0, : self.n_features]
        if self._experts is not None and name != "weights":
            return self._experts.part(name)[0]
        return self._run.array(name)[0, : self.n_features]

    def put(self, name: str, row: Array) -> None:
        """Replace the row of that name."""
        if self._experts is not None and name != "weights":
            self._experts.restore({name: np.asarray(row)[None]})
        else:
            self.part(name)[:] = row

    def move(self, row: Array) -> None:
        """Be where this model is."""
        if self._experts is not None:
            by = np.asarray(row, dtype=np.float64) - self.part("weights")
            self._experts.restore({"models": self._experts.part("models") + by})
        self.put("weights", row)

    @property
    def replicas(self) -> Array:
        """theta-hat of the agent and of its neighbours."""
        return self._run.array("broadcast")[:, : self.n_features]

    @property
    def memory(self) -> Array:
        """What the censor remembers."""
        return self._memory[: self._n_remembered]

    @property
    def pull(self) -> Array:
        """The disagreement or the mixture, whichever this learner's step follows."""
        return self._scratch.array("pull")[:, : self.n_features].copy()

    @pull.setter
    def pull(self, rows: Array) -> None:
        self._scratch.array("pull")[0, : self.n_features] = rows[-1 if self._mixes else 0]

    @property
    def largest(self) -> float:
        """The yardstick of divergence."""
        return self._run.largest

    @largest.setter
    def largest(self, value: float) -> None:
        self._run.largest = value
