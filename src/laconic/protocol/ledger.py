"""What one agent holds in numbers: its model, its dual, and what it and its neighbours have said.

The arithmetic is the simulator's, by the same kernels (``engine.single``), a row at a time. In ordinary rounds the dual
grows by rho (theta-hat_i - theta-hat_j), as in the simulator and with its bits; ``accounts`` keeps the shares that it
is computed from anew when an edge comes or goes.
"""

from __future__ import annotations

from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.channel import Censor
from laconic.engine import coding, rounds, single
from laconic.engine.compiled import aligned, for_one, kernel_of, make_plan, padded, supports
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.learners.schedules import Constant, Schedule
from laconic.losses import Squared
from laconic.protocol.messages import Kind

_THRESHOLDS_AHEAD = 256


@final
class Ledger:
    """The rows of one agent. Neighbours go by number, from 1 on; 0 is the agent itself."""

    def __init__(self, features: RandomFeatures, learner: Learner, n_agents: int, n_neighbours: int, dtype: str):
        if not supports(learner):
            raise ValueError(f"learner must be one of laconic's own, with its own loss and quantizer; got {learner!r}.")
        self.dtype = np.dtype(_validate.choice("dtype", dtype, ("float64", "float32")))
        self.features, self.learner = features, learner
        self.n_features = features.n_features
        self.has_duals = "duals" in learner.init(1, 1)._fields
        plan = make_plan(learner, features, n_agents, self.dtype.type)
        self.numbers, self._codes = for_one(plan, largest=0.0)
        self.dense = plan.rounding == coding.DENSE
        self._frequencies = padded(features.frequencies.T, self.dtype)
        self._phases = aligned(1, features.n_frequencies, self.dtype)
        self._sample = np.zeros((1, features.n_inputs), dtype=self.dtype)
        self._shape = (features.n_inputs,)
        self.packed = np.zeros(-(-self.n_features * int(self._codes[single.BITS]) // 8), dtype=np.uint8)
        self._rate: Schedule = kernel_of(learner).rate
        self._steady = self._rate.value if isinstance(self._rate, Constant) else None
        self._censor = learner.channel.censor if learner.channel else None
        self._thresholds, self._thresholds_from = np.zeros(0), 1
        self._squared = type(learner.loss) is Squared
        self.rows = aligned(single.N_OWN_ROWS + n_neighbours, self.n_features, self.dtype)
        self.sums = np.zeros((1 + n_neighbours, self.rows.shape[1]))
        self.listen_to((), ())

    def resize(self, kept: list[int]) -> None:
        """Keep the rows of these neighbours, in this order; a 0 is room for a new one."""
        rows = aligned(single.N_OWN_ROWS + len(kept), self.n_features, self.dtype)
        sums = np.zeros((1 + len(kept), rows.shape[1]))
        rows[: single.N_OWN_ROWS], sums[0] = self.rows[: single.N_OWN_ROWS], self.sums[0]
        for k, old in enumerate(kept, 1):
            if old:
                rows[single.SAID + k], sums[k] = self.rows[single.SAID + old], self.sums[old]
        self.rows, self.sums = rows, sums

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on, each with its combination weight a_ij."""
        self._live = np.array(live, dtype=np.int64)
        self._bounds = np.array([0, len(live)])
        self._combination = np.array(combination, dtype=self.dtype)
        self.numbers[single.DEGREE] = len(live)

    # ----------------------------------------------------------------------------------------------------------------
    # The steps of a round

    def take(self, x: object) -> None:
        """Make ``x`` the sample of the next ``predict`` or ``learn``."""
        if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == self._shape:  # nothing to check
            self._sample[0] = x
            return
        array = _validate.real_array("x", x, f"({self._sample.shape[1]},)", ndim=1)
        if array.shape[0] != self._sample.shape[1]:
            raise ValueError(f"x must have shape ({self._sample.shape[1]},), got {array.shape}.")
        self._sample[0] = array

    def predict(self) -> float:
        """The prediction for the sample; NaN if it is not finite."""
        rows, numbers, codes = self.rows, self.numbers, self._codes
        return float(single.predict_one(self._sample, self._frequencies, rows, self._phases, numbers, codes))

    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2 of round ``t``: (how it ended, the prediction)."""
        rate = self._rate(t) if self._steady is None else self._steady
        rows, numbers, codes = self.rows, self.numbers, self._codes
        status, prediction = single.learn_one(
            self._sample, label, float(rate), self._frequencies, rows, self._phases, numbers, codes
        )
        if status == rounds.DIVERGED and np.isfinite(prediction) and self._raise_yardstick():
            return self.learn(label, t)
        return status, float(prediction)

    def _raise_yardstick(self) -> bool:
        """Whether most have said larger models than the yardstick of divergence knew of.

        The simulator sees everybody's labels; an agent that has seen small ones only must not take for divergence
        what its neighbours have taught it. Who has seen no label at all believes the largest; others believe most.
        """
        if not len(self._live):
            return False
        heard = self.rows[single.SAID + self._live].astype(np.float64)
        norms = np.sort(np.sqrt((heard**2).sum(axis=1)))
        usual = float(norms[len(norms) // 2 if self.numbers[single.LARGEST] else -1])
        if not usual > self.numbers[single.LARGEST]:
            return False
        self.numbers[single.LARGEST] = usual
        return True

    def begin_with(self, model: Array) -> None:
        """Take over a model, and with it how large models are here."""
        self.weights[:] = model
        self.numbers[single.LARGEST] = max(self.numbers[single.LARGEST], self.norm())

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3 of round ``t``: (whether to send, entries that saturate, scale); the codes are in ``packed``."""
        sent, outside, scale = single.speak_one(self._threshold(t), self.packed, self.rows, self.numbers, self._codes)
        return sent, outside, scale

    def listen(self) -> None:
        """Steps 4 and 5: take in what the replicas say, move the dual."""
        single.listen_one(self._bounds, self._live, self._combination, self.rows, self.sums, self.numbers, self._codes)

    def hear(self, index: int, kind: Kind, scale: float, body: Array) -> bool:
        """Change a replica by what was said; False, and nothing changed, if that is not finite or ends in odd bits."""
        if kind is Kind.DIFFERENCE:
            scale32 = np.float32(scale)
            return bool(single.hear_codes(index, body, scale32, 0.0, self.rows, self.sums, self.numbers, self._codes))
        return bool(single.hear_dense(index, body, 0.0, self.rows, self.sums))

    def loss(self, prediction: float, label: float) -> float:
        """The loss of a prediction; NaN without a label."""
        if self._squared:
            return (prediction - label) ** 2
        return float(self.learner.loss.value(np.asarray(prediction), np.asarray(label)))

    def _threshold(self, t: int) -> float:
        if self._censor is None:
            return 0.0
        if type(self._censor) is not Censor:
            return float(self._censor.threshold(t))
        # From an array, since that is what the simulator does, and powers of arrays may have other last digits.
        at = t - self._thresholds_from
        if not 0 <= at < len(self._thresholds):
            self._thresholds, self._thresholds_from = self._censor.thresholds(t, _THRESHOLDS_AHEAD), t
            at = 0
        return float(self._thresholds[at])

    # ----------------------------------------------------------------------------------------------------------------
    # Repair

    def settle(self, shares: list[Array]) -> None:
        """gamma <- rho times the sum of the live edges' shares: the dual from its definition."""
        if self.has_duals:
            rho = float(self.numbers[single.RHO])
            total = np.zeros(self.n_features)
            for share in shares:
                total += share
            self.rows[single.DUAL, : self.n_features] = rho * total

    # ----------------------------------------------------------------------------------------------------------------
    # What there is to see

    def said(self, index: int) -> Array:
        """theta-hat of the agent (0) or of a neighbour."""
        return self.rows[single.SAID + index, : self.n_features]

    @property
    def weights(self) -> Array:
        """The model theta, without its padding."""
        return self.rows[single.OWN, : self.n_features]

    @property
    def duals(self) -> Array:
        """The dual variable."""
        return self.rows[single.DUAL, : self.n_features]

    @property
    def pull(self) -> Array:
        """What was last heard: the disagreement or the mixture."""
        return self.rows[single.PULL, : self.n_features]

    def norm(self) -> float:
        """The length of the model."""
        return float(np.sqrt((self.weights.astype(np.float64) ** 2).sum()))
