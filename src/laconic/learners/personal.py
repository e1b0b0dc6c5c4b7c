"""Personal: one model that all share, by waves, and at every agent a prediction of its own beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.learners.base import Learner, Sample, Speech
from laconic.learners.wave import WaveRLS, WaveState
from laconic.network import Heard
from laconic.waves import Rule
from laconic.waves.rule import ArmNumbers


@final
class Personal(Learner):
    r"""A shared model by waves, and every agent's own prediction by a stack of five arms; no bits beyond the waves'.

    One model for all cannot exploit that an agent sees one corner of the world, and waves that grow rare follow no
    drift. So each agent keeps beside the wave's model ``w`` four more over its own samples, and predicts by a mixture
    that learns from their errors which of them to trust: see ``laconic.waves.arms`` for the arms and
    ``laconic.waves.arms.Stack`` for their weights. Labels are held to what is usual at each agent before anything is
    learned of them: see ``laconic.guard.labels``. Nothing peeks: all of it is what the stream has shown so far.

    ``trace.weights`` is the model that all share, for anybody's data; ``trace.predictions`` are each agent's own, and
    ``trace.stack`` says how much it trusted each arm. Between waves a sample costs about four times what it costs
    ``WaveRLS``; a run of a thousand rounds of five agents, D = 100, waves included, 1.7 times (62 against 36
    microseconds a sample).

    Its loss is the squared one; of classes, take labels of -1 and +1, or one of each for every class.

    Parameters
    ----------
    shared : WaveRLS
        The model that all share, and what is said.
    deviations : float or None
        How many deviations from their mean labels may lie before they are clipped; None clips nothing, as is right
        where labels are classes.
    usual : float, optional
        The deviation of labels from 0, if something is known of it beforehand; else it is learned from each agent's
        first eight, which are not clipped.

    Examples
    --------
    An agent that sees one corner of the world predicts better there than a model that is made for all of it:

    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(400, 5, 2)) * 0.2 + 0.2 * np.arange(5)[:, None]
    >>> y = np.sin(20 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=20, bandwidth=0.3)
    >>> own, waves = (
    ...     lc.simulate(learner, features, lc.Network.ring(5), X, y) for learner in (lc.Personal(), lc.WaveRLS())
    ... )
    >>> bool(own.mse()[-1] < waves.mse()[-1] and own.bits.sum() == waves.bits.sum())
    True
    """

    name = "Personal"
    speech = Speech.OWN

    def __init__(
        self,
        shared: WaveRLS = WaveRLS(),  # noqa: B008 (never changed)
        *,
        deviations: float | None = 20.0,
        usual: float | None = None,
    ) -> None:
        _validate.instance("shared", shared, WaveRLS, "a laconic.WaveRLS")
        if shared.loss.name != "squared":
            raise ArgumentError("shared", f"must have the squared loss, got {shared.loss.name!r}.")
        if shared.outputs > 1:
            raise ArgumentError("shared", f"must have one output, got {shared.outputs}.")
        super().__init__(regularization=0.0, loss=shared.loss, channel=None)
        self.shared = shared
        self.deviations = None if deviations is None else _validate.number("deviations", deviations, least=1)
        self.usual = None if usual is None else _validate.number("usual", usual, above=0)

    def rule(self) -> Rule:
        """The shared learner's, and the numbers of an agent's own prediction."""
        return self.shared.rule()._replace(arms=ArmNumbers(deviations=self.deviations, usual=self.usual))

    def alone(self, n_rounds: int) -> Personal:
        """The same with nobody to talk to: the wave's arm is then least squares alone."""
        return Personal(self.shared.alone(n_rounds), deviations=self.deviations, usual=self.usual)

    def describe(self) -> str:
        """What it shares."""
        return f"shared: {self.shared.describe()}"

    def advice(self) -> str:
        """As of what it shares."""
        return self.shared.advice()

    def init(self, n_agents: int, n_features: int) -> WaveState:
        """That of what it shares."""
        return self.shared.init(n_agents, n_features)

    def step(self, state: WaveState, sample: Sample, heard: Heard) -> tuple[WaveState, dict[str, Array]]:
        """What the wave's arm does in a round without a wave."""
        return self.shared.step(state, sample, heard)

    def blend(self, parts: Mapping[str, Array]) -> Array:
        """One model for everybody's data after a whole table was learned: for estimators; of ``trace.state.learner``.

        Of each agent the model that all share and its shrunk arm, by its stack's weights of these two; of that the mean
        over agents. A table that is small for its noise is thus given more ridge than a stream would be.
        """
        trust = parts["stack"][:, :2]
        trust = trust / trust.sum(axis=1, keepdims=True)
        blended = trust[:, :1] * parts["weights"] + trust[:, 1:] * parts["arms"][:, 1]
        return np.asarray(blended.mean(axis=0))
