"""What one agent holds in numbers: its model, its dual, and what it and its neighbours have said.

The rounds themselves are computed by ``engine.one``, by the simulator's kernels or in NumPy. In ordinary rounds the
dual grows by rho (theta-hat_i - theta-hat_j), as in the simulator and with its bits; ``accounts`` keeps the shares that
it is computed from anew when an edge comes or goes. A learner without duals has nothing to be computed anew.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.channel import Undecodable, can_code
from laconic.engine.endings import DIVERGED, DIVERGENCE
from laconic.engine.one import make_row
from laconic.features import RandomFeatures
from laconic.learners import Learner
from laconic.losses import Squared
from laconic.protocol.messages import Kind, Refusal

#: How many times larger than the agent's own yardstick a model that it is told may be, or the dual of an edge.
REACH = 1e6
#: And the size that its own may be dragged to by others: predictions are then still no reason to call it diverged.
STRAIN = DIVERGENCE
#: And that of a neighbour that is blamed for dragging it there.
AWAY = 10 * STRAIN
#: The same without labels. Models are longer than labels are large, and others must not blame the agent; and an honest
#: neighbour may itself have been dragged to 1000 of its yardsticks.
STRAIN_UNLABELLED, AWAY_UNLABELLED = STRAIN / 4, 2 * STRAIN
#: Labels by which an agent judges for itself; and rounds in which two neighbours contradict what one alone has said.
FEW = 8
#: How many times larger than a borrowed yardstick models may be where none has been dragged.
CALM = 64.0
#: How many times the agent's own model may be larger than what its neighbours say for them to be believed independent.
SIMILAR = 16.0


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
        self._keep_views()
        self.clips = self.row.clips > 0
        self.has_duals = "duals" in self.row.parts
        rho = getattr(learner, "rho", None)
        if self.has_duals and callable(rho):
            raise ValueError("learner must have a number for rho on agents, which keep sums over it.")
        # In the working precision, as in a step.
        self.rho = float(self.dtype.type(rho)) if self.has_duals and isinstance(rho, Real) else None
        self._live: tuple[int, ...] = ()
        self.strained = True  # whether a neighbour may be where following it means to diverge
        self.harmless = 0.0  # square of a norm that does not have to be looked at: the yardstick only grows
        self._first = {part: self.row.part(part).copy() for part in self.row.parts}
        self.labels = 0  # seen while ``taught``
        self.borrowed, self.vouched = 0.0, False  # a yardstick for want of labels; whether two neighbours agree on it
        self._contradicted = 0  # rounds in a row in which two have contradicted it
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
        row = self.row
        if self.taught:  # no prediction is beyond bounds that are not known
            largest, row.largest = row.largest, np.inf
            status, prediction = row.learn(label, t)
            row.largest = max(largest, abs(label)) if label == label else largest
            self.labels += bool(abs(label) > 0)
            return status, float(prediction)
        status, prediction = row.learn(label, t)
        if status == DIVERGED and np.isfinite(prediction) and self._raise_yardstick():
            return self.learn(label, t)
        return status, float(prediction)

    def _raise_yardstick(self) -> bool:
        """Whether most have said larger models than the yardstick of divergence knew of.

        The simulator sees everybody's labels; an agent that has seen small ones only must not take for divergence
        what its neighbours have taught it.
        """
        usual = self._usual()
        if not usual > self.row.largest:
            return False
        self.row.largest = usual
        return True

    # ----------------------------------------------------------------------------------------------------------------
    # The yardstick

    @property
    def taught(self) -> bool:
        """Whether the agent has too few labels to judge by them: its model is what its neighbours have told it.

        One label is enough if what they have said is not beyond a thousand times of it.
        """
        largest = self.row.largest
        return self.labels < FEW and not (largest and largest * STRAIN >= self.borrowed)

    @property
    def own(self) -> float:
        """The agent's own yardstick: its largest label, or what it has borrowed from its neighbours."""
        return max(self.row.largest, self.borrowed) if self.taught else self.row.largest

    def borrow(self) -> None:
        """Take the yardstick of an agent without labels from the models of its neighbours, and keep it.

        It is the lower median of the norms of what live neighbours have said, at first; later a larger one, while
        neither a neighbour nor the agent itself is far beyond it: neighbours that have been dragged by another one, or
        after this agent, prove nothing. One neighbour alone raises what two have agreed on only as fast as the agent
        can follow. What one alone has said is taken back where two contradict it by a million times, or for some rounds
        by ten thousand times.
        """
        votes = [norm for norm in self._norms() if norm > 0]
        if not votes:
            return
        vote, several = votes[(len(votes) - 1) // 2], len(votes) > 1
        contradicts = several and not self.vouched and vote * AWAY < self.borrowed
        self._contradicted = self._contradicted + 1 if contradicts else 0
        at_once = contradicts and (vote * REACH < self.borrowed or not self.said(0).any())
        if not self.borrowed or self._contradicted >= FEW or at_once:
            self.borrowed = vote
        elif vote > self.borrowed:
            size = self.size()
            calm = max(size, votes[-1]) <= CALM * self.borrowed
            independent = size <= SIMILAR * vote and (several or vote <= SIMILAR * size)
            if not self.vouched or (calm and independent):
                self.borrowed = vote
        self.vouched |= several and not vote * AWAY < self.borrowed

    def _norms(self) -> list[float]:
        """How large the models of the live neighbours are, the smallest first."""
        heard = np.asarray(self.row.replicas[list(self._live)], dtype=np.float64)
        return sorted(np.sqrt((heard**2).sum(axis=1)).tolist())

    def _usual(self) -> float:
        """The largest yardstick that more than half have at least: the agent's own, and the norms of what it hears.

        So a neighbour alone cannot raise it, not even if it is the only one. An agent without labels asks only those
        neighbours that have said something.
        """
        known = sorted([self.own, *self._norms()])
        if self.taught:
            known = [norm for norm in known if norm > 0.0]
        return known[(len(known) - 1) // 2] if known else 0.0

    def is_too_large(self, model: Array, share: Array | None = None) -> bool:
        """Whether a model that the agent is told, or the share of an edge, is beyond its reach.

            ||model|| > reach or rho |F| > reach,  reach = 10^6 times the yardstick

        Without a label, and without a yardstick that two neighbours agree on, anything within the limits of ``wire``
        is believed.
        """
        own, size = self.own if self.vouched or not self.taught else 0.0, self.size(model, share)
        self.harmless = (STRAIN / 2 * own) ** 2
        if not size <= STRAIN / 2 * own:
            self.strained = True
        if not own or size <= REACH * own:
            return False
        return not size <= REACH * self.yardstick()

    def yardstick(self) -> float:
        """How large labels are here: by the agent's own, or by what most have said if that is far more.

            y = max(own, usual / 1000)

        Thus 1000 y, which a model may be dragged to by others, is no more than what most have said: agents that follow
        each other do not drag each other further and further.
        """
        return max(self.own, self._usual() / STRAIN) if self.own else self._usual()

    def size_of(self, index: int) -> float:
        """The size of what a neighbour pulls with: its model, and the share of its edge."""
        return self.size(self.said(index), self.shares[index])

    def size(self, model: Array | None = None, share: Array | None = None) -> float:
        """The norm of a model, the agent's own if not given; or what a share makes of a dual if that is more."""
        model = self.weights if model is None else model
        with np.errstate(over="ignore"):  # a model that is lost
            norm = float(np.dot(model, model)) ** 0.5
        dual = 0.0 if share is None or self.rho is None else self.rho * float(np.abs(share).max())
        return max(norm, dual)

    def begin_with(self, model: Array, several: bool) -> None:
        """Take over a model that ``several`` neighbours agree on, or one, and with it how large models are here."""
        size = float(np.sqrt((np.asarray(model, dtype=np.float64) ** 2).sum()))
        self.strained = True
        self.weights = model
        if self.row.largest:
            self.row.largest = max(self.row.largest, size)
        elif size > self.borrowed:
            self.borrowed, self.vouched = size, several

    def begin_anew(self) -> None:
        """Know what a new agent knows, but for the yardstick."""
        for part, values in self._first.items():
            self.row.put(part, values)
        self.row.pull = 0.0 * self.row.pull
        self.said(0)[:] = 0.0

    def shorten(self, norm: float) -> None:
        """Make a model that is longer than that as long as that."""
        size = self.size()
        if size > norm:
            self.weights = self.weights * (norm / size)

    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3 of round ``t``: (whether to send, entries that saturate, scale)."""
        return self.row.speak(t)

    def listen(self) -> None:
        """Steps 4 and 5: take in what the replicas say, move the dual."""
        self.row.listen()

    def hear(self, index: int, kind: Kind, scale: float, body: Array) -> bool:
        """Change a replica by what was said; False, and nothing changed, if that is not finite or ends in odd bits.

        ``Refusal``, and nothing changed, if the message cannot be decoded.
        """
        try:
            if kind is Kind.DIFFERENCE:
                return self.row.hear(index, body, scale)
            return self.row.hear_model(index, body)
        except Undecodable:
            raise Refusal("undecodable") from None

    def loss(self, prediction: Any, label: Any) -> float:
        """The loss of a prediction; NaN without a label."""
        if self._squared:
            return float((prediction - label) ** 2)
        return float(self.learner.loss.value(np.asarray(prediction), np.asarray(label)))

    def message_bits(self) -> int:
        """What the last message cost, by the quantizer's own account or else by its length."""
        return 8 * len(self.row.message) if self._message_bits is None else self._message_bits

    # ----------------------------------------------------------------------------------------------------------------
    # Repair

    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order; a 0 is room for a new one."""
        self.row.resize(kept)
        self._keep_views()

    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on, each with its combination weight a_ij."""
        self._live = live
        self.row.listen_to(live, combination)

    def align(self, index: int, share: Array) -> None:
        """Let the share of an edge be this one, where pulls are clipped by shares."""
        self.row.align(index, share)

    def settle(self, shares: list[Array]) -> None:
        """gamma <- rho times the sum of the live edges' shares: the dual from its definition.

        For learners whose state has ``duals`` and that have a ``rho``; others keep nothing that an edge brings along.
        Where pulls are clipped, what passes of the shares counts.
        """
        if self.clips:  # whose shares are aligned
            if self.rho is not None:
                self.row.settle()
        elif self.rho is not None:
            total = np.zeros(self.n_features)
            for share in shares:
                total += share
            self.row.put("duals", self.rho * total)

    # ----------------------------------------------------------------------------------------------------------------
    # What there is to see

    def _keep_views(self) -> None:
        """Views of what is looked at most: theta-hat of the agent and of its neighbours, and their shares F."""
        self._said = list(self.row.replicas)
        self.shares = self.row.shares[:, : self.n_features]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_said", "shares")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._keep_views()  # a copy of a view is no view of the copy

    def said(self, index: int) -> Array:
        """theta-hat of the agent (0) or of a neighbour."""
        return self._said[index]

    believed = said

    @property
    def weights(self) -> Array:
        """The model theta, without padding."""
        return self.row.part("weights")

    @weights.setter
    def weights(self, model: Array) -> None:
        self.row.move(model)

    @property
    def duals(self) -> Array:
        """The dual variable."""
        return self.row.part("duals")
