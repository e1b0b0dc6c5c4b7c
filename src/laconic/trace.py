"""What a run leaves behind: every prediction, every message, and the state to go on from. Metrics are computed from it.

Predictions are made before the round's label is learned from, so every error below is an honest forecast error. Where a
label was missing (NaN) there is nothing to score and the average runs over the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from laconic import _extras, _late, _tracefile, _validate, losses
from laconic._validate import Array
from laconic._version import __version__
from laconic._worded import ArgumentError
from laconic.model import FeatureMap, Model
from laconic.waves import records

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


#: Fields of a trace that are no columns of its file.
_APART = ("state", "about", "info", "feature_map")
#: What ``about["data"]`` may say of the data, for the models that were learned from it.
_DATA = ("inputs", "target", "classes", "centre", "scale")


class Hindsight(Protocol):
    """What regret is measured against: ``laconic.offline.Comparator``, or whatever knows its losses a round."""

    @property
    def loss(self) -> losses.Loss:
        """The loss that the model is best for."""

    def round_losses(self, *, collective: bool = False) -> Array:
        """sum_i L_it(theta*) of each round."""


@final
@dataclass(frozen=True, eq=False)
class State:
    """All that the next round needs: where the run stands, what the learner holds, what the neighbours believe.

    Attributes
    ----------
    round : int
        Rounds finished so far.
    learner : dict of arrays
        The learner's own state, a row an agent: ``weights`` and whatever else it keeps.
    broadcast : array (n_agents, n_features)
        theta-hat, the replica that every neighbour holds of each agent.
    channel : dict of arrays
        What a censor with a memory remembers, a row an agent: ``tau``, ``credit`` and ``cost`` of a ``Budget``.
    edges : dict of arrays
        Where the network changes and the learner has duals: ``pairs`` (n, 2) of agents that ever were neighbours,
        whether they still are (``live``), and the ``shares`` (n, n_features) of their edges in the dual of the first.
    origin : str
        A digest of the feature map, and where waves run of the network; empty where nobody knows.
    """

    round: int
    learner: Mapping[str, Array]
    broadcast: Array
    channel: Mapping[str, Array] = field(default_factory=dict)
    edges: Mapping[str, Array] = field(default_factory=dict)
    origin: str = ""

    @property
    def weights(self) -> Array:
        """The models theta, a row an agent."""
        return self.learner["weights"]

    @property
    def duals(self) -> Array:
        """The duals gamma, a row an agent, of a learner that has them."""
        if "duals" not in self.learner:
            raise AttributeError("this learner keeps no duals.")
        return self.learner["duals"]


@final
@dataclass(frozen=True, eq=False)
class Trace:
    """The record of a run of T rounds of N agents.

    Attributes
    ----------
    predictions, labels : array (T, N), or (T, N, K) of a learner with K outputs
    sent : bool array (T, N)
        Who broadcast in which round; of a run that kept only some rounds (``every=``) how often since the last one.
    saturated : array (T, N)
        Share of a message's entries that lay outside the quantizer's range.
    state : State
        All that is needed to go on: ``lc.simulate(..., state=trace.state)``.
    about : dict
        Learner, parameters, data shape, engine, seconds: what the run was.
    message_sizes : array (T, N) or None
        Bits of each message, 0 where there was none, if they vary; None where ``about["message_bits"]`` is their size.
    feature_map : FeatureMap or None
        What the agents saw the inputs through, for ``model``; None of features of one's own.
    """

    predictions: Array
    labels: Array
    sent: Array
    saturated: Array
    consensus_error: Array
    energy: Array
    replica_error: Array
    degrees: Array
    state: State
    about: Mapping[str, Any]
    collective_square: Array | None = None
    collective_loss: Array | None = None
    info: Mapping[str, Array] = field(default_factory=dict)
    message_sizes: Array | None = None
    feature_map: FeatureMap | None = None

    # Size and cost ----------------------------------------------------------------------------------------------

    @property
    def n_rounds(self) -> int:
        """Number T of rounds."""
        return int(self.predictions.shape[0])

    @property
    def n_agents(self) -> int:
        """Number N of agents."""
        return int(self.predictions.shape[1])

    @property
    def weights(self) -> Array:
        """The models after the last round, (n_agents, n_features)."""
        return self.state.weights

    @property
    def bits(self) -> Array:
        """Bits of each broadcast, (T, N): one broadcast counts once, whatever the number of neighbours."""
        if self.message_sizes is not None:
            return self.message_sizes
        return self.sent * np.int64(self.about["message_bits"] or 0)

    @property
    def link_bits(self) -> Array:
        """Bits over all links, (T, N): each broadcast once for every neighbour that hears it."""
        if "link_bits" in self.info:  # of a learner that addresses its messages
            return np.asarray(self.info["link_bits"])
        return self.bits * self.degrees + self.info.get("greetings", 0)

    @property
    def stack(self) -> Array:
        """Of a run with ``Personal``, how much each agent trusted each of its arms in each prediction, (T, N, 5).

        The arms are, in their order, the wave's model, the same with more ridge, the agent's own data around it, its
        recent data, and gradient steps. Empty, (T, N, 0), of other learners.
        """
        return np.asarray(self.info.get("stack", np.empty((*self.predictions.shape, 0))))

    @property
    def waves(self) -> Array:
        """The waves of a run with ``WaveRLS``, a record each: number, when, root, depth, terms, bits, trust.

        ``when`` is the round after which it started, ``depth`` the height of the tree, ``terms`` and ``bits`` are those
        of all its messages together, relays included, and ``trust`` is by how much the root divided its step. A wave of
        which these rounds hold only a part has that part's bits. Other learners have none.

        Examples
        --------
        >>> import numpy as np, laconic as lc
        >>> X = np.random.default_rng(0).uniform(size=(60, 3, 1))
        >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5)
        >>> lc.simulate(lc.WaveRLS(), features, lc.Network.path(3), X, X[..., 0]).waves["when"]
        array([ 1,  4,  7, 11, 17, 26, 39, 59])
        """
        return records.records(self.info, self.bits)

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return float(self.about["seconds"])

    @property
    def diverged(self) -> bool:
        """Whether the run was given up because it diverged (only ``sweep`` returns such traces)."""
        return bool(self.about.get("diverged", False))

    # Accuracy ---------------------------------------------------------------------------------------------------

    def squared_errors(self) -> Array:
        """(prediction - label)^2, (T, N), NaN where there was no label; of several outputs their mean."""
        squares: Array = (self.predictions - self.labels) ** 2
        return squares if squares.ndim == 2 else squares.mean(axis=2)

    def mse(self) -> Array:
        """MSE(t) = (1/(tN)) sum over the first t rounds and all agents of (prediction - label)^2, for t = 1..T."""
        return _running_mean(self.squared_errors())

    def windowed_mse(self, window: int) -> Array:
        """The same average over the last ``window`` rounds only (over all of them while there are fewer)."""
        window = _validate.integer("window", window, least=1)
        totals, counts = _sums(self.squared_errors())
        totals[window:] -= totals[:-window].copy()
        counts[window:] -= counts[:-window].copy()
        return _ratio(totals, counts)

    def error_rate(self) -> Array:
        """Share of wrong signs up to each round: for labels -1 and +1; of several outputs, of wrong largest ones."""
        if self.labels.ndim == 2:
            wrong, missing = (self.predictions > 0) != (self.labels > 0), np.isnan(self.labels)
        else:
            wrong = self.predictions.argmax(axis=2) != self.labels.argmax(axis=2)
            missing = np.isnan(self.labels.sum(axis=2))
        return _running_mean(np.where(missing, np.nan, wrong))

    def global_mse(self) -> Array:
        """As ``mse``, but every agent's model is scored on every agent's sample: what collaboration is for.

        Needs a run with ``collective=True``.
        """
        return _running_mean(self._collective("collective_square"))

    def consensus(self) -> Array:
        """Distance of the models from their mean after each round, |Theta - mean|_F."""
        return self.consensus_error

    def broadcast_error(self) -> Array:
        """Distance of the models from their replicas when the round's talking was over, |E_t|_F."""
        return self.replica_error

    def losses(self, loss: str | losses.Loss | None = None) -> Array:
        """The loss of each prediction, (T, N[, K]), NaN where there was no label; by default the learner's loss."""
        if loss is None:
            loss = self.about["loss"]
            if loss not in losses.LOSSES:
                raise ValueError(f"this run used a loss of one's own, {loss!r}: pass it to losses().")
        return losses.get(loss).value(self.predictions, self.labels)

    def regret(self, comparator: Hindsight) -> Array:
        """sum_t sum_i [L_it(theta_it) - L_it(theta*)] up to each round (eq. stat_reg), L with its ridge.

        Own data only: isolated learners have small regret too. ``collective_regret`` is the one that tells.
        """
        best = self._hindsight(comparator, collective=False)
        own = np.nansum(self.losses(comparator.loss), axis=1)
        return np.cumsum(own + self._ridge() - best)

    def collective_regret(self, comparator: Hindsight) -> Array:
        """As ``regret``, with each model's loss averaged over all agents' samples. Needs ``collective=True``."""
        best = self._hindsight(comparator, collective=True)
        own = np.nansum(self._collective("collective_loss"), axis=1)
        return np.cumsum(own + self._ridge() - best)

    def _hindsight(self, comparator: Hindsight, collective: bool) -> Array:
        """The comparator's loss of each round, if it is one and has seen as many rounds of as many agents."""
        if isinstance(comparator, type) or not (
            isinstance(getattr(comparator, "loss", None), losses.Loss)
            and callable(getattr(comparator, "round_losses", None))
        ):
            shown = _validate.shown(comparator)
            raise ArgumentError("comparator", f"must be a laconic.offline.Comparator, got {shown}.")
        best = np.asarray(comparator.round_losses(collective=collective))
        seen = np.shape(getattr(comparator, "labels", self.labels))
        if best.shape != (self.n_rounds,) or seen != self.labels.shape:
            raise ArgumentError(
                "comparator", f"must be that of this stream: it saw {seen}, the run had {self.labels.shape}."
            )
        return best

    def _ridge(self) -> Array:
        """(lambda/N) sum_i |theta_i|^2 of the models that each round started from."""
        before = np.concatenate([[self.about["energy_before"]], self.energy[:-1]])
        return self.about["regularization"] / self.n_agents * before

    def _collective(self, name: str) -> Array:
        scores: Array | None = getattr(self, name)
        if scores is None:
            raise ValueError("this run kept no collective scores: run it with collective=True.")
        return scores

    # What was learned -------------------------------------------------------------------------------------------

    def model(self, agent: int | str = "mean") -> Model:
        """The model of an agent, by its index, or the mean of all models: to predict with, to save, to take away.

        Names of inputs and target, the centre and scale of labels and the labels of classes are those in
        ``about["data"]``, where whoever made the stream has left them, as ``laconic run`` does.

        Examples
        --------
        >>> import numpy as np, laconic as lc
        >>> X = np.random.default_rng(0).uniform(size=(500, 3, 1))
        >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=10, bandwidth=0.3)
        >>> trace = lc.simulate(lc.ODKLA(eta=1.0), features, lc.Network.path(3), X, np.sin(6 * X[..., 0]))
        >>> bool(abs(trace.model().predict([0.25]) - np.sin(1.5)) < 0.1)
        True
        >>> trace.model(agent=2).about["agent"]
        2
        """
        if self.feature_map is None:
            raise ValueError("this run had features of its own, or its file does not tell them: no model can be made.")
        if isinstance(agent, str):
            _validate.choice("agent", agent, ("mean",))
            weights = self.weights.mean(axis=0)
        else:
            agent = _validate.integer("agent", agent, least=0, most=self.n_agents - 1)
            weights = self.weights[agent]
        weights = weights.T  # of several outputs a column each
        error = float(self.mse()[-1]) if self.n_rounds else float("nan")
        about: dict[str, Any] = {
            "name": self.about["name"],
            "learner": self.about.get("learner", self.about["name"]),
            "agents": self.n_agents,
            "agent": self.about.get("agent", agent),
            "rounds": self.state.round,
            "mean square error": error if np.isfinite(error) else None,
            "laconic": __version__,
        }
        data = self.about.get("data")
        known = {name: data[name] for name in _DATA if name in data} if isinstance(data, dict) else {}
        return Model(self.feature_map, weights, loss=self.about["loss"], about=about, **known)

    # Files, tables and pictures ---------------------------------------------------------------------------------

    def to_frame(self) -> pl.DataFrame:
        """A polars table with a row for each round and agent; of several outputs label_0, label_1, .., and so on."""
        pl = _extras.need("polars", "a table of a trace")
        first = self.state.round - self.n_rounds
        # An agent that slept through some rounds has recorded which ones it was awake for.
        rounds = np.asarray(self.info.get("rounds", ()))
        if rounds.shape != (self.n_rounds,):
            rounds = np.arange(first + 1, first + self.n_rounds + 1)
        return pl.DataFrame(
            {
                "round": np.repeat(rounds, self.n_agents),
                "agent": np.tile(np.arange(self.n_agents), self.n_rounds),
                **_flat("label", self.labels),
                **_flat("prediction", self.predictions),
                "sent": np.asarray(self.sent).ravel(),
                "bits": self.bits.ravel(),
            }
        )

    def plot(
        self,
        label: str | None = None,
        figure: Figure | None = None,
        *,
        panels: str | Sequence[str] | None = None,
        width: float | None = None,
    ) -> Figure:
        """Draw the run: MSE against time, messages and bits, or what ``panels`` ask for.

        Parameters
        ----------
        label : str, optional
            Name of the run in the legend; the learner's by default.
        figure : Figure, optional
            What an earlier call returned, to draw several runs into one; or an empty one.
        panels : name or list of names, optional
            "rounds", "messages" and "bits" (MSE so far against these) by default; further "recent" (MSE of the last
            fifth), "global" and "global-bits" (on everybody's data; needs ``collective=True``), "wrong" (share of
            wrong classes) and "consensus".
        width : float, optional
            Width of a new figure in inches: 3.5 for a column of a paper, 7 for two. Fonts are embedded as type 42.

        Examples
        --------
        >>> import numpy as np, laconic as lc
        >>> X = np.random.default_rng(0).uniform(size=(100, 3, 1))
        >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5)
        >>> trace = lc.simulate(lc.ODKLA(), features, lc.Network.path(3), X, X[..., 0])
        >>> figure = trace.plot(panels=["bits", "consensus"], width=7)
        >>> len(figure.axes)
        2
        """
        _extras.need("matplotlib", "a picture")
        name = str(self.about["name"]) if label is None else label
        drawn: Figure = _late.find("draw traces")((self,), name, figure, panels, width)
        return drawn

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = _late.find("show runs")((self,), f"Trace of {self.about['name']}")
        return shown

    def plot_waves(self, figure: Figure | None = None) -> Figure:
        """The waves of a run with ``WaveRLS``: when each ran and how long, its bits and terms, below the error."""
        _extras.need("matplotlib", "a picture")
        drawn: Figure = _late.find("draw waves")(self, figure)
        return drawn

    def save(self, path: str | Path) -> Path:
        """Write the trace, state and all, as one ``.npz`` file: complete or not at all."""
        path = _validate.path("path", path)
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _APART}
        kept = {name: array for name, array in columns.items() if array is not None}
        state = self.state
        _tracefile.write(
            path,
            _tracefile.Content(
                kept,
                dict(self.info),
                dict(self.about),
                state.round,
                dict(state.learner),
                state.broadcast,
                None if self.feature_map is None else self.feature_map.pack(),
                dict(state.channel),
                dict(state.edges),
                state.origin,
            ),
        )
        return path

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what ``save`` wrote, or ``laconic agent --trace`` (a trace of one agent; see ``info`` for the rest).

        Files from anywhere may be read: nothing in them is executed, and what is damaged, or would unpack to far more
        than it is, is refused with a ValueError before memory is taken.
        """
        path = _validate.path("path", path)
        stored = _tracefile.read(path)
        state = State(stored.round, stored.learner, stored.broadcast, stored.channel, stored.edges, stored.origin)
        feature_map = None
        if stored.map is not None:
            try:
                feature_map = FeatureMap.unpack(*stored.map)
            except Exception as error:  # whatever somebody has written there
                why = " ".join(str(error).split())[:200].rstrip(".")
                raise ValueError(f"{path} is not a complete laconic trace: {why}.") from error
        return cls(state=state, about=stored.about, info=stored.info, feature_map=feature_map, **stored.columns)

    def __repr__(self) -> str:
        end = f"{self.mse()[-1]:.4g}" if self.n_rounds else "none"
        return (
            f"Trace({self.about['name']}, {self.n_rounds} rounds x {self.n_agents} agents, mse {end}, "
            f"{int(self.sent.sum())} messages, {int(self.bits.sum())} bits, {self.seconds:.3g} s)"
        )


def _sums(scores: Array) -> tuple[Array, Array]:
    """Running sum of the scores that exist, and how many they are."""
    scored = ~np.isnan(scores)
    totals = np.cumsum(np.where(scored, scores, 0.0).sum(axis=1, dtype=np.float64))
    return totals, np.cumsum(scored.sum(axis=1)).astype(np.float64)


def _flat(name: str, values: Array) -> dict[str, Array]:
    """A column of all rounds and agents, or one for each output."""
    values = np.asarray(values)
    if values.ndim == 2:
        return {name: values.ravel()}
    return {f"{name}_{k}": values[..., k].ravel() for k in range(values.shape[2])}


def _ratio(totals: Array, counts: Array) -> Array:
    return np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)


def _running_mean(scores: Array) -> Array:
    return _ratio(*_sums(scores))
