"""One agent's rounds: what a running agent, and a model that learns alone, compute between two messages.

A round is cut into its steps, since others have to be waited for in between:

    learn    1. predict, 2. learn             theta, from the sample and from what was last heard
    speak    3. censor, quantize              theta-hat_i, and the message that moves it at the neighbours
    hear     4. a neighbour's message         theta-hat_j, its replica
    listen   4. and 5. all that was heard     what the neighbours pull at, and the dual

There are two ways to compute them behind one interface: by the kernels of the simulator (``agent_row``), where
learner, loss and quantizer have them and the core was built, and by the learner's own ``init``, ``step``, ``hear`` over
one row of NumPy arrays (``one_plain``), which is every learner. Both move replicas by the same bits, so agents of both
kinds understand each other.

Beside each broadcast and replica lies its running sum over all rounds that were listened to, in float64, from which the
protocol repairs what was missed.

A learner that passes messages of its own instead of a broadcast model would be a third way: another subclass, in which
``speak`` returns such a message and ``hear`` takes one in, chosen by ``make_row``; whoever drives the steps need not
know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic.channel import Censor, remembers
from laconic.engine.support import compiles, supports
from laconic.features import OwnFeatures, RandomFeatures
from laconic.learners import Learner
from laconic.learners.base import SPOKEN

ENGINES = ("auto", "compiled", "reference")
_THRESHOLDS_AHEAD = 256


class OneRow(ABC):
    """What one agent holds, and the steps of its rounds. Neighbours go by number, from 1 on; 0 is the agent itself.

    Attributes
    ----------
    sample : array (1, n_inputs)
        The input: fill it in, then call ``predict`` or ``learn``.
    shares : array (1 + n_neighbours, at least n_features)
        F_ij of each neighbour, the sum of theta-hat_i - theta-hat_j over the rounds it was heard in, float64.
    sums : array (1 + n_neighbours, at least n_features)
        Where pulls are clipped: running sums S of the broadcast and of the replicas, as the simulator has them, so that
        F_ij = S_i - S_j; float64. Otherwise of no meaning.
    message : uint8 array
        What the last ``speak`` that sent something said; of no meaning where models travel as they are (``dense``).
    clips : float
        How many times the median pull a neighbour's may be; 0 where nothing is clipped.
    heeds : bool
        Whether the learner mixes only with those who have just spoken.
    spoken : uint8 array (1 + n_neighbours,)
        Who has spoken since the last ``listen``; of meaning where the learner ``heeds`` that.
    """

    sample: Array
    shares: Array
    sums: Array
    message: Array
    dense: bool
    clips: float
    spoken: Array

    def __init__(self, learner: Learner, features: RandomFeatures, dtype: np.dtype[Any]) -> None:
        self.learner, self.dtype = learner, dtype
        self.n_features = features.n_features
        self.clips, self.heeds = learner.clips(), learner.listen == SPOKEN
        self._censor: Any = learner.channel.censor if learner.channel else None
        self._remembers = remembers(self._censor)
        self._memory = learner.channel.begin(1)[0] if learner.channel else np.zeros(0)
        self._thresholds, self._thresholds_from = np.zeros(0), 1

    # The steps of a round -------------------------------------------------------------------------------------------

    @abstractmethod
    def predict(self) -> float:
        """The prediction for ``sample``, NaN if it is not finite. Changes nothing."""

    @abstractmethod
    def learn(self, label: float, t: int) -> tuple[int, float]:
        """Steps 1 and 2 of round ``t``: how it ended (``endings``), and the prediction; NaN is a missing label."""

    @abstractmethod
    def speak(self, t: int) -> tuple[bool, int, float]:
        """Step 3 of round ``t``: whether to send ``message``, entries that saturate, scale of an adaptive range."""

    @abstractmethod
    def hear(self, index: int, message: Array, scale: float) -> bool:
        """Step 4: move a replica by a message.

        False, and nothing changes, if the message is no good or moves the replica beyond all bounds; ``Undecodable`` if
        a quantizer of one's own makes nothing of it.
        """

    @abstractmethod
    def hear_model(self, index: int, model: Array) -> bool:
        """Step 4 where a neighbour's model came as it is."""

    @abstractmethod
    def listen(self) -> None:
        """Steps 4 and 5: take in what the replicas say, let the learner ``hear`` it, and add to the shares."""

    def align(self, index: int, share: Array) -> None:
        """Make F, the difference of the own sum and a replica's, be this ``share``: where pulls are clipped."""
        self.sums[index, : self.n_features] = self.sums[0, : self.n_features] - share

    @abstractmethod
    def settle(self) -> None:
        """Where pulls are clipped: the dual, from the sums of those who are heard."""

    def finish_alone(self, t: int) -> None:
        """Steps 3 to 5 of round ``t`` for an agent that nobody hears."""
        if self.learner.channel is not None:
            self.speak(t)
            self.listen()

    # Who is heard ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def listen_to(self, live: tuple[int, ...], combination: tuple[float, ...]) -> None:
        """Hear these neighbours from now on, each with its combination weight a_ij."""

    @abstractmethod
    def resize(self, kept: list[int]) -> None:
        """Keep the replicas of these neighbours, in this order; a 0 is room for a new one."""

    @abstractmethod
    def use(self, features: RandomFeatures) -> None:
        """See the world through other frequencies, as many as before: for inputs that came to have more entries."""

    # What there is to see, and to put back --------------------------------------------------------------------------

    @abstractmethod
    def part(self, name: str) -> Array:
        """The agent's row of a part of the learner's state, "weights" or whatever else it keeps. Not a copy."""

    @abstractmethod
    def put(self, name: str, row: Array) -> None:
        """Replace the agent's row of a part of the learner's state."""

    def move(self, row: Array) -> None:
        """Be where this model is: take it over as ``weights``, with all that has to follow."""
        self.put("weights", row)

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Names of all parts of the learner's state."""

    @property
    @abstractmethod
    def replicas(self) -> Array:
        """theta-hat of the agent and of its neighbours, (1 + n_neighbours, n_features). Not a copy."""

    @property
    def memory(self) -> Array:
        """What the censor remembers of the agent, float64: nothing, if it decides by the round alone. Not a copy."""
        return self._memory

    @property
    @abstractmethod
    def pull(self) -> Array:
        """What was last heard, (1 or 2, n_features): the disagreement or the mixture, or both. A copy."""

    @pull.setter
    @abstractmethod
    def pull(self, rows: Array) -> None: ...

    @property
    @abstractmethod
    def largest(self) -> float:
        """The yardstick of divergence: the largest label, or norm of a model, that was seen."""

    @largest.setter
    @abstractmethod
    def largest(self, value: float) -> None: ...

    def _threshold(self, t: int) -> float:
        """The censor's threshold in round ``t``; 0 if nothing is censored."""
        if self._censor is None or self._remembers:
            return 0.0
        if type(self._censor) is not Censor:
            return float(self._censor.threshold(t))
        # From an array, since that is what the simulator does, and powers of arrays may have other last digits.
        at = t - self._thresholds_from
        if not 0 <= at < len(self._thresholds):
            self._thresholds, self._thresholds_from = self._censor.thresholds(t, _THRESHOLDS_AHEAD), t
            at = 0
        return float(self._thresholds[at])


def make_row(
    learner: Learner,
    features: RandomFeatures,
    n_agents: int,
    n_neighbours: int,
    dtype: np.dtype[Any],
    engine: str = "auto",
) -> OneRow:
    """The rounds of one of ``n_agents`` agents: by kernels where ``engine`` is "auto" and there are, or "compiled"."""
    _validate.choice("engine", engine, ENGINES)
    if isinstance(features, OwnFeatures):  # which Python computes anyway
        engine = "reference"
    if engine == "compiled" and not supports(learner):
        raise ValueError(f"engine must be 'reference' or 'auto' for {learner!r}, which is not compiled.")
    if engine == "compiled" or (engine == "auto" and compiles(learner)):
        from laconic.engine.agent_row import NativeRow

        row: OneRow = NativeRow(learner, features, n_agents, n_neighbours, dtype)
        return row
    from laconic.engine.one_plain import PlainRow

    return PlainRow(learner, features, n_agents, n_neighbours, dtype)
