"""One agent's rounds by the simulator's kernels, a row at a time and with its bits. Importing this imports numba."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._validate import Array
from laconic.channel import Undecodable
from laconic.engine import coding, single, steps
from laconic.engine.compiled import aligned, make_front, make_panel, padded, room_for_codes
from laconic.engine.one import OneRow
from laconic.engine.planning import for_one, make_plan
from laconic.engine.support import kernel_of
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.schedules import Constant, Schedule

_ROWS = {"weights": single.OWN, "duals": single.DUAL}


@final
class CompiledRow(OneRow):
    """Everything is kept ready between calls and handed to compiled functions with few arguments."""

    def __init__(
        self, learner: Learner, features: RandomFeatures, n_agents: int, n_neighbours: int, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(learner, features, dtype)
        plan = make_plan(learner, features, n_agents, dtype.type)
        self._numbers, self._codes = for_one(plan, largest=0.0)
        self.memory[:] = self._memory
        self.dense = plan.rounding == coding.DENSE
        self.message = np.zeros(-(-self.n_features * int(self._codes[single.BITS]) // 8), dtype=np.uint8)
        self._coded = plan.rounding == coding.ENTROPY
        self._chosen, self._written = room_for_codes(plan.rounding, self.n_features)
        self._phases = aligned(1, features.n_frequencies, dtype)
        self._rate: Schedule = kernel_of(learner).rate
        self._steady = self._rate.value if isinstance(self._rate, Constant) else None
        self._mixes = plan.algorithm in (steps.COMBINE_THEN_ADAPT, steps.ADAPT_THEN_COMBINE)
        self._parts = tuple(learner.init(1, 1)._fields)
        self._rows = aligned(single.N_OWN_ROWS + n_neighbours, self.n_features, dtype)
        self._experts = make_panel(learner, 1, self.n_features, dtype)
        self._panel = None if self._experts is None else self._experts.arrays
        if self._experts is not None:
            self._experts.restore(learner.init(1, self.n_features)._asdict())
        self.shares = np.zeros((1 + n_neighbours, self._rows.shape[1]))
        self.sums = np.zeros(self.shares.shape)
        self.spoken = np.zeros(1 + n_neighbours, dtype=np.uint8)
        self.use(features)
        self.listen_to((), ())

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies."""
        self._frequencies = padded(features.frequencies.T, self.dtype)
        self.sample = np.zeros((1, features.n_inputs), dtype=self.dtype)
        self._front = make_front(features, 1, self.dtype)
        self._mapped = self.sample if features.scaling is None else self._front.lifted

    def _lift(self) -> None:
        if self._mapped is not self.sample:
            single.lift_one(self._front, self.sample, self._rows, self._codes)

    def predict(self) -> float:
        """theta.phi(x)."""
        self._lift()
        prediction: float = single.predict_one(
            self._mapped, self._frequencies, self._rows, self._phases, self._numbers, self._codes
        )
        return prediction

    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2."""
        rate = float(self._rate(t)) if self._steady is None else self._steady
        self._lift()
        ended: tuple[int, float] = single.learn_one(
            self._mapped,
            label,
            rate,
            self._frequencies,
            self._rows,
            self._panel,
            self._phases,
            self._numbers,
            self._codes,
        )
        return ended

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3."""
        if self._coded:
            sent, outside, length = single.speak_coded(
                self._threshold(t), self._chosen, self._written, self._rows, self._numbers, self._codes
            )
            self.message = self._written[:length]
            return sent, outside, 0.0
        said: tuple[bool, int, float] = single.speak_one(
            self._threshold(t), self.message, self._rows, self._numbers, self._codes
        )
        return said

    def hear(self, index: int, message: Array, scale: float) -> bool:
        """Step 4."""
        if self._coded:
            good, taken = single.hear_coded(index, message, self._chosen, self._rows, self._codes)
            if not good:
                raise Undecodable("no message of an entropy code.")
            return bool(taken)
        return bool(single.hear_codes(index, message, np.float32(scale), self._rows, self._numbers, self._codes))

    def hear_model(self, index: int, model: Array) -> bool:
        """Step 4."""
        return bool(single.hear_dense(index, model, self._rows))

    def listen(self) -> None:
        """Steps 4 and 5."""
        if self.heeds:
            heard = self._bounds, self._live, self._combination, self.spoken
            single.listen_to_spoken(*heard, self._rows, self._panel, self.shares, self._numbers, self._codes)
            self.spoken[:] = 0
            return
        single.listen_one(
            self._bounds, self._live, self._combination, self._rows, self.shares, self.sums, self._numbers, self._codes
        )

    def settle(self) -> None:
        """rho sum_j kept_j F_j."""
        single.settle_one(self._live, self._rows, self.sums, self._numbers)

    def finish_alone(self, t: int) -> None:
        """Nothing: where nobody is heard, the learners that have kernels gain nothing from it."""

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on."""
        self._live = np.array(live, dtype=np.int64)
        self._bounds = np.array([0, len(live)])
        self._combination = np.array(combination, dtype=self.dtype)
        self._numbers[single.DEGREE] = len(live)

    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order."""
        rows = aligned(single.N_OWN_ROWS + len(kept), self.n_features, self.dtype)
        shares, sums = np.zeros((2, 1 + len(kept), rows.shape[1]))
        spoken = np.zeros(1 + len(kept), dtype=np.uint8)
        rows[: single.SAID] = self._rows[: single.SAID]
        for k, old in enumerate([0, *kept]):
            if old or not k:
                rows[single.SAID + k] = self._rows[single.SAID + old]
                shares[k], sums[k], spoken[k] = self.shares[old], self.sums[old], self.spoken[old]
        self._rows, self.shares, self.sums, self.spoken = rows, shares, sums, spoken

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
        return self._rows[_ROWS[name], : self.n_features]

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
        return self._rows[single.SAID :, : self.n_features]

    @property
    def memory(self) -> Array:
        """It lies behind the numbers of the plan."""
        return self._numbers[single.MEMORY : single.MEMORY + len(self._memory)]

    @property
    def pull(self) -> Array:
        """The disagreement or the mixture, whichever this learner's step follows."""
        return self._rows[single.PULL : single.PULL + 1, : self.n_features].copy()

    @pull.setter
    def pull(self, rows: Array) -> None:
        self._rows[single.PULL, : self.n_features] = rows[-1 if self._mixes else 0]

    @property
    def largest(self) -> float:
        """The yardstick of divergence."""
        return float(self._numbers[single.LARGEST])

    @largest.setter
    def largest(self, value: float) -> None:
        self._numbers[single.LARGEST] = value
