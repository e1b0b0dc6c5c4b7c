"""What one agent holds in numbers: its model, its dual, what it and its neighbours have said, and the sums of that.

The rounds themselves are computed by ``engine.one``, by the simulator's kernels or in NumPy. For itself and for each
neighbour the ledger keeps, beside the broadcast theta-hat, its running sum S over all finished rounds, in float64:

    gamma_i = rho sum_j (S_i - S_j - B_ij)

with a constant B_ij of each edge (zero for one that has existed from the start). In ordinary rounds the dual grows by
rho (theta-hat_i - theta-hat_j), as in the simulator and with its bits; the sums are what it is computed from anew when
something was missed, or an edge comes or goes. A learner without duals has nothing to be computed anew.
"""

from __future__ import annotations

from numbers import Real
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.channel import Undecodable, can_code
from laconic.engine.endings import DIVERGED
from laconic.engine.one import make_row
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.losses import Squared
from laconic.protocol.messages import Kind, Refusal, Statement


@final
class Ledger:
    """The rows of one agent. Neighbours go by number, from 1 on; 0 is the agent itself."""

    def __init__(
        self,
        features: RandomFeatures,
        learner: Learner,
        n_agents: int,
        n_neighbours: int,
        dtype: str,
        engine: str = "auto",
    ) -> None:
        quantizer = learner.channel.quantizer if learner.channel else None
        if quantizer is not None and not can_code(quantizer):
            raise ValueError(
                f"learner must have a quantizer with encode(h) and decode(data) to go over the wire; got {quantizer!r}."
            )
        self.dtype = np.dtype(_validate.choice("dtype", dtype, ("float64", "float32")))
        self.features, self.learner = features, learner
        self.n_features = features.n_features
        self.row = make_row(learner, features, n_agents, n_neighbours, self.dtype, engine)
        self.has_duals = "duals" in self.row.parts
        rho = getattr(learner, "rho", None)
        # In the working precision, as in a step.
        self._rho = float(self.dtype.type(rho)) if self.has_duals and isinstance(rho, Real) else None
        self._shape = (features.n_inputs,)
        self._squared = type(learner.loss) is Squared
        self._message_bits = learner.channel.message_bits(self.n_features) if learner.channel else 0

    # ----------------------------------------------------------------------------------------------------------------
    # The steps of a round

    def take(self, x: object) -> None:
        """Make ``x`` the sample of the next ``predict`` or ``learn``."""
        if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == self._shape:  # nothing to check
            self.row.sample[0] = x
            return
        array = _validate.real_array("x", x, f"({self._shape[0]},)", ndim=1)
        if array.shape != self._shape:
            raise ValueError(f"x must have shape ({self._shape[0]},), got {array.shape}.")
        self.row.sample[0] = array

    def predict(self) -> float:
        """The prediction for the sample; NaN if it is not finite."""
        return float(self.row.predict())

    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2 of round ``t``: (how it ended, the prediction)."""
        status, prediction = self.row.learn(label, t)
        if status == DIVERGED and np.isfinite(prediction) and self._raise_yardstick():
            return self.learn(label, t)
        return status, float(prediction)

    def _raise_yardstick(self) -> bool:
        """Whether others have said larger models than the yardstick of divergence knew of.

        The simulator sees everybody's labels; an agent that has seen small ones only must not take for divergence
        what its neighbours have taught it.
        """
        said = self.row.replicas.astype(np.float64)
        largest = float(np.sqrt((said**2).sum(axis=1).max()))
        if not largest > self.row.largest:
            return False
        self.row.largest = largest
        return True

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3 of round ``t``: (whether to send, entries that saturate, scale)."""
        return self.row.speak(t)

    def listen(self) -> None:
        """Steps 4 and 5: take in what the replicas say, move the dual, add to the sums."""
        self.row.listen()

    def hear(self, index: int, statement: Statement, late: float) -> None:
        """Change a replica by what was said; ``late`` rounds of the old one are in its sum by mistake.

        ``Refusal``, and nothing changed, if the message cannot be decoded, decodes to something that is not finite, or
        ends in odd bits.
        """
        body = statement.body
        if body is None:
            return
        try:
            if statement.header.kind is Kind.DENSE:
                good = self.row.hear_model(index, body, late)
            else:
                good = self.row.hear(index, body, statement.scale, late)
        except Undecodable:
            raise Refusal("undecodable") from None
        if not good:
            raise Refusal("not finite")

    def loss(self, prediction: float, label: float) -> float:
        """The loss of a prediction; NaN without a label."""
        if self._squared:
            return (prediction - label) ** 2
        return float(self.learner.loss.value(np.asarray(prediction), np.asarray(label)))

    def message_bits(self) -> int:
        """What the last message cost, by the quantizer's own account or else by its length."""
        return 8 * len(self.row.message) if self._message_bits is None else self._message_bits

    # ----------------------------------------------------------------------------------------------------------------
    # Repair

    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order; a 0 is room for a new one."""
        self.row.resize(kept)

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on, each with its combination weight a_ij."""
        self.row.listen_to(live, combination)

    def pass_rounds(self, n_rounds: int) -> None:
        """Let rounds pass (back, if negative) in which nobody says a thing: every sum grows, the dual is due later."""
        if n_rounds:
            self.sums += n_rounds * self.row.replicas.astype(np.float64)

    def adopt(self, index: int, broadcast: Array, total: Array) -> None:
        """Put a broadcast and its sum in the place of what was known."""
        self.said(index)[:] = broadcast
        self.total(index)[:] = total

    def balance(self, index: int) -> Array:
        """S_i - S_j: what the dual share of an edge is made of."""
        gap: Array = self.total(0) - self.total(index)
        return gap

    def settle(self, shares: list[Array]) -> None:
        """gamma <- rho times the sum of the live edges' shares: the dual from its definition.

        For learners whose state has ``duals`` and that have a ``rho``; others keep nothing that an edge brings along.
        """
        if self._rho is not None:
            total = np.zeros(self.n_features)
            for share in shares:
                total += share
            self.row.put("duals", self._rho * total)

    # ----------------------------------------------------------------------------------------------------------------
    # What there is to see

    @property
    def sums(self) -> Array:
        """S of the agent and of its neighbours."""
        return self.row.sums[:, : self.n_features]

    @sums.setter
    def sums(self, rows: Array) -> None:
        self.row.sums[:, : self.n_features] = rows

    def said(self, index: int) -> Array:
        """theta-hat of the agent (0) or of a neighbour."""
        return self.row.replicas[index]

    def total(self, index: int) -> Array:
        """S of the agent (0) or of a neighbour, over all finished rounds."""
        return self.row.sums[index, : self.n_features]

    @property
    def weights(self) -> Array:
        """The model theta, without padding."""
        return self.row.part("weights")

    @weights.setter
    def weights(self, model: Array) -> None:
        self.row.put("weights", model)

    @property
    def duals(self) -> Array:
        """The dual variable."""
        return self.row.part("duals")
