"""One agent's rounds in NumPy, by the learner's own ``step`` and ``hear`` over one row: for every learner, anywhere.

The lines are those of ``reference`` for one agent. Nothing but NumPy is needed. What moves a replica is computed with
the kernels' bits (``channel.Quantizer`` and ``coding`` do the same operations in the same order), so that replicas at
compiled neighbours, and of them, are the same to the bit; the agent's own model agrees with theirs to rounding.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from laconic._clipping import weigh
from laconic._validate import Array
from laconic.channel import Codes, Quantizer, can_code, decode_row, encode_row, pack, unpack
from laconic.engine.chunk import make_sample
from laconic.engine.endings import BAD_INPUT, DIVERGED, DIVERGENCE, FINISHED, NORM_LIMIT
from laconic.engine.one import OneRow
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.network import Heard


@final
class PlainRow(OneRow):
    """State, replicas and shares as arrays of one row, and of a row for each neighbour."""

    def __init__(
        self, learner: Learner, features: RandomFeatures, n_agents: int, n_neighbours: int, dtype: np.dtype[Any]
    ) -> None:
        super().__init__(learner, features, dtype)
        first = learner.init(1, self.n_features)
        kinds = dict.fromkeys(learner.precise(), np.dtype(np.float64))
        parts = first._asdict().items()
        self._state = type(first)(*(np.array(part, dtype=kinds.get(name, dtype)) for name, part in parts))
        self._quantizer: Any = learner.channel.quantizer if learner.channel else None
        self.dense = self._quantizer is None
        self.message = np.zeros(0, dtype=np.uint8)
        self._n_agents = n_agents
        self._said = np.zeros((1 + n_neighbours, self.n_features), dtype=dtype)
        self.shares, self.sums = np.zeros(self._said.shape), np.zeros(self._said.shape)
        self.spoken = np.zeros(1 + n_neighbours, dtype=np.uint8)
        self._pull = np.zeros((2, self.n_features), dtype=dtype)
        self._largest = 0.0
        self.use(features)
        self.listen_to((), ())

    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies."""
        self._features = features
        self.sample = np.zeros((1, features.n_inputs), dtype=self.dtype)

    def _phi(self) -> Array | None:
        """The features of the sample, (1, n_features); None if some phase is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            phases = self._features.phases(self.sample)
        if not (np.isfinite(phases).all() and np.isfinite(self.sample).all()):
            return None
        return self._features.join(phases, self.sample)

    def predict(self) -> float:
        """theta.phi(x)."""
        phi = self._phi()
        return np.nan if phi is None else float((self._state.weights * phi).sum())

    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2."""
        phi = self._phi()
        if phi is None:
            return BAD_INPUT, np.nan
        # A diverging run may overflow on its last round; that is told by how it ends, not by a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            prediction = float((self._state.weights * phi).sum())
            if not abs(prediction) <= DIVERGENCE * self._largest:
                return DIVERGED, prediction
            if abs(label) > self._largest:
                self._largest = abs(label)
            sample = make_sample(self._features, phi, np.array([label], dtype=self.dtype), t)
            heard = self._heard()
            if self.heeds:  # what was said has been heard, and is not heard again
                heard = heard._replace(mixture=np.zeros_like(heard.mixture))
            self._state, _ = self.learner.step(self._state, sample, heard)
            weights = self._state.weights
            if not np.isfinite((weights * weights).sum()):
                return DIVERGED, prediction
        return FINISHED, prediction

    def _heard(self) -> Heard:
        disagreement, mixture = self._pull[:1], self._pull[1:]
        return Heard(self._said[:1].copy(), disagreement.copy(), mixture.copy(), self._degrees, self._n_agents)

    def _listen_with_care(self) -> Array:
        """Disagreement and mixture of clipped pulls; returns sum_j kept_j F_j."""
        disagreement, mixture = self._pull = np.zeros_like(self._pull)
        shares = np.zeros((1, self.n_features), dtype=self.dtype)
        live = list(self._live)
        apart, behind = self._said[0] - self._said[live], self.sums[0] - self.sums[live]
        taken, kept = weigh(apart, behind, self._said[0], self.sums[0], self.clips)
        for k, combination in enumerate(self._combination):
            disagreement += self.dtype.type(taken[k]) * apart[k]
            mixture -= self.dtype.type(taken[k]) * combination * apart[k]
            shares[0] += kept[k] * behind[k]
        return shares

    def settle(self) -> None:
        """rho sum_j kept_j F_j."""
        pull = self._pull
        shares = self._listen_with_care()
        self._pull = pull
        rho = self.dtype.type(self.learner.rho)  # type: ignore[attr-defined]
        self.put("duals", rho * shares)

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3."""
        innovation = self._state.weights[0] - self._said[0]
        norm = np.sqrt((innovation * innovation).sum())
        if not self._remembers:
            if norm < self._threshold(t):
                return False, 0, 0.0
            said, outside, scale = self._compose(innovation)
        else:
            norms, memory = np.array([norm]), self.memory[None]
            wish = bool(self._censor.wishes(memory, norms)[0])
            said, outside, scale = self._compose(innovation) if wish else (None, 0, 0.0)
            sent, remembered = self._censor.spend(memory, norms, np.array([self._price() if wish else 0]))
            self.memory[:] = remembered[0]
            if not sent[0]:
                return False, 0, 0.0
        if said is not None:
            self._said[0] = said
        return True, outside, scale

    def _compose(self, innovation: Array) -> tuple[Array | None, int, float]:
        """Write the ``message``: the replica that it makes, None if the same; entries that saturate; the scale."""
        own, quantizer = self._said[0], self._quantizer
        if quantizer is None:
            return self._state.weights[0].copy(), 0, 0.0
        if type(quantizer) is Quantizer:
            codes = quantizer.quantize(innovation)
            self.message = pack(codes.codes, quantizer.bits)
            scale = 0.0 if codes.scale is None else float(codes.scale)
            # With a scale of zero h = 0, and so is Q(h).
            moves = codes.scale is None or scale > 0
            said = own + quantizer.dequantize(codes, self.dtype) if moves else None
            return said, int(quantizer.outside(innovation)), scale
        if not can_code(quantizer):  # one for the simulator only, alone
            return own + quantizer(innovation[None])[0], 0, 0.0
        data = encode_row(quantizer, innovation)
        self.message = np.frombuffer(data, dtype=np.uint8)
        outside = quantizer.outside(innovation[None])[0] if hasattr(quantizer, "outside") else 0
        return own + decode_row(quantizer, data, self.n_features, self.dtype), int(outside), 0.0

    def _price(self) -> int:
        """Bits of the ``message``."""
        assert self.learner.channel is not None
        known = self.learner.channel.message_bits(self.n_features)
        return 8 * len(self.message) if known is None else known

    def hear(self, index: int, message: Array, scale: float) -> bool:
        """Step 4."""
        quantizer, replica = self._quantizer, self._said[index]
        if type(quantizer) is not Quantizer:
            change = decode_row(quantizer, message.tobytes(), self.n_features, self.dtype)
            return self._replace(index, replica + change)
        try:
            codes = unpack(message, self.n_features, quantizer.bits)
        except ValueError:
            return False
        if quantizer.adaptive and scale == 0:
            return True
        travels = np.asarray(scale, dtype=np.float32) if quantizer.adaptive else None
        with np.errstate(over="ignore", invalid="ignore"):
            moved = replica + quantizer.dequantize(Codes(codes, travels), self.dtype)
        return self._replace(index, moved)

    def hear_model(self, index: int, model: Array) -> bool:
        """Step 4."""
        return self._replace(index, model.astype(self.dtype))

    def _replace(self, index: int, replica: Array) -> bool:
        """Take a new replica; False, and nothing is taken, if it is beyond all bounds."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not (replica * replica).sum() <= NORM_LIMIT * NORM_LIMIT:
                return False
        self._said[index] = replica
        return True

    def listen(self) -> None:
        """Steps 4 and 5."""
        hat = self._said[0].astype(np.float64)
        for index in self._live:
            self.shares[index] += hat - self._said[index]
        if self.clips:
            self.sums += self._said
            shares = self._listen_with_care()
            self._state = self.learner.hear(self._state, self._heard()._replace(shares=shares))
            return
        disagreement, mixture = self._pull = np.zeros_like(self._pull)
        own, model = self._said[0], self._state.weights[0]
        for index, share in zip(self._live, self._combination, strict=True):
            apart = own - self._said[index]
            disagreement += apart
            if not self.heeds:
                mixture -= share * apart
            elif self.spoken[index]:
                mixture += share * (self._said[index] - model)
        self.spoken[:] = 0
        self._state = self.learner.hear(self._state, self._heard())

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on."""
        self._live = live
        self._combination = tuple(self.dtype.type(share) for share in combination)
        self._degrees = np.array([[len(live)]], dtype=self.dtype)

    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order."""
        said = np.zeros((1 + len(kept), self.n_features), dtype=self.dtype)
        shares, sums = np.zeros(said.shape), np.zeros(said.shape)
        spoken = np.zeros(len(said), dtype=np.uint8)
        for k, old in enumerate([0, *kept]):
            if old or not k:
                said[k], shares[k], sums[k] = self._said[old], self.shares[old], self.sums[old]
                spoken[k] = self.spoken[old]
        self._said, self.shares, self.sums, self.spoken = said, shares, sums, spoken

    @property
    def parts(self) -> tuple[str, ...]:
        """All that the learner keeps."""
        return tuple(self._state._fields)

    def part(self, name: str) -> Array:
        """The agent's row of a part of the state."""
        row: Array = getattr(self._state, name)[0]
        return row

    def put(self, name: str, row: Array) -> None:
        """Replace the agent's row of a part of the state."""
        before = getattr(self._state, name)
        self._state = self._state._replace(**{name: np.array(row, dtype=before.dtype).reshape(before.shape)})
        if self.clips and name == "sums":
            self.sums[0] = row

    def move(self, row: Array) -> None:
        """Be where this model is."""
        weights = np.array(row, dtype=self._state.weights.dtype).reshape(1, -1)
        self._state = self.learner.moved(self._state, weights)

    @property
    def replicas(self) -> Array:
        """theta-hat of the agent and of its neighbours."""
        return self._said

    @property
    def pull(self) -> Array:
        """The disagreement and the mixture."""
        return self._pull.copy()

    @pull.setter
    def pull(self, rows: Array) -> None:
        self._pull = np.array(np.broadcast_to(rows, self._pull.shape), dtype=self.dtype)

    @property
    def largest(self) -> float:
        """The yardstick of divergence."""
        return self._largest

    @largest.setter
    def largest(self, value: float) -> None:
        self._largest = value
