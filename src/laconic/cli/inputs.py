"""From the options of the command line to the stream of a run: load, scale, deal, connect.

The six sets of the paper are run as the paper runs them (agents, bandwidth, censoring thresholds, rows and scaling)
wherever an option does not say otherwise.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from laconic import data, losses
from laconic._validate import Array
from laconic.cli.networks import agents_of, make_network
from laconic.cli.options import N_FREQUENCIES, has_header
from laconic.cli.words import note
from laconic.experiments.settings import SETTINGS, Setting
from laconic.experiments.streams import SCALING, Stream
from laconic.features import KERNELS

_AGENTS = 5
#: On data scaled to [0, 1] this leaves out about half of the messages from the first round to the last. The paper's
#: (4, 0.99) silences the first hundred rounds, which may be all there are, and hardly any later.
ALPHA, BETA = 0.2, 0.9995
_SAMPLE = 1000  # rows whose distances make the median: half a million pairs


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """Data, and how it becomes a stream.

    Attributes
    ----------
    dataset : Dataset
        As it was loaded.
    X, y : array (n, d) and (n,)
        Scaled, unless scaling is to be ``running``: that can only be done in the order of the rounds.
    setting : Setting
        Agents, bandwidth and censoring thresholds.
    loss : str
    scale, partition, network : str
    n_frequencies : int
    bandwidth_from : str
        Where the bandwidth comes from, in words.
    unit : float or None
        What 1 in the labels is worth in the target's own unit; None where that changes or means nothing.
    kernel : str
    """

    dataset: data.Dataset
    X: Array
    y: Array
    setting: Setting
    loss: str
    scale: str
    partition: str
    network: str
    n_frequencies: int
    bandwidth_from: str
    unit: float | None
    kernel: str = "gaussian"

    @property
    def binary(self) -> bool:
        """Whether classes are predicted."""
        return losses.get(self.loss).binary

    def stream(self, seed: int) -> Stream:
        """Everything that one seed decides: who gets which rows, the frequencies, and the graph."""
        n_agents = self.setting.n_agents
        X, y = data.partition(self.X, self.y, n_agents, self.partition, seed)
        if self.scale == "running":
            X = data.scale(X, "running")
            if not self.binary and self.dataset.classes is None:
                y = data.RunningScaler().rounds(y)
        features = KERNELS[self.kernel](X.shape[2], self.n_frequencies, bandwidth=self.setting.bandwidth, seed=seed)
        return Stream(X, y, features, make_network(self.network, n_agents, seed))


def prepare(arguments: argparse.Namespace, loss: str | None) -> Prepared:
    """Load and scale what the options name; ``loss`` None means the one that suits the target."""
    dataset = data.load(
        arguments.data,
        protocol=arguments.protocol,
        data_dir=arguments.data_dir,
        target=arguments.target,
        n_rows=arguments.rows,
        missing=arguments.missing or "refuse",
        header=has_header(arguments),
    )
    loss = loss or ("squared" if dataset.classes is None else "logistic")
    usual = SETTINGS.get(dataset.name) if not _is_file(arguments.data) else None
    scale = arguments.scale or ("column" if usual is None else SCALING[arguments.protocol])
    y, unit = _labels(dataset, loss, scale)
    X = dataset.X if scale == "running" else data.scale(dataset.X, scale)
    setting = usual or Setting(dataset.name, dataset.name, min(_AGENTS, len(dataset)), 1.0, ALPHA, BETA)
    bandwidth, bandwidth_from = arguments.bandwidth, "as given"
    if bandwidth is None and usual is not None and scale == SCALING[arguments.protocol]:
        bandwidth, bandwidth_from = usual.bandwidth, "the paper's"
    elif bandwidth is None:
        bandwidth, bandwidth_from = _median_distance(X, scale), "the median distance of two inputs"
    return Prepared(
        dataset,
        X,
        y,
        replace(
            setting,
            n_agents=n_agents_of(arguments, setting.n_agents),
            bandwidth=bandwidth,
            alpha=setting.alpha if arguments.alpha is None else arguments.alpha,
            beta=setting.beta if arguments.beta is None else arguments.beta,
        ),
        loss,
        scale,
        partition_of(arguments),
        arguments.network,
        N_FREQUENCIES if arguments.frequencies is None else arguments.frequencies,
        bandwidth_from,
        unit,
        arguments.kernel or "gaussian",
    )


def _is_file(name: str) -> bool:
    return name not in data.names()


def _labels(dataset: data.Dataset, loss: str, scale: str) -> tuple[Array, float | None]:
    """Labels as the loss wants them, and what 1 is worth in the target's own unit."""
    values = np.unique(dataset.y)
    name = dataset.target
    if len(values) == 1:
        raise ValueError(f"the target {name!r} is {values[0]:g} in every row: there is nothing to learn.")
    if losses.get(loss).binary:
        if len(values) != 2:
            raise ValueError(
                f"--loss {loss} needs a target of two classes, but {name!r} takes {len(values)} different values."
            )
        return np.where(dataset.y == values[1], 1.0, -1.0), None
    if dataset.classes is not None:
        return dataset.y, None
    if len(values) == 2:
        note(f"{name!r} has only the values {values[0]:g} and {values[1]:g}; --loss logistic would predict classes.")
    if scale == "running":
        return dataset.y, None
    return data.scale(dataset.y, scale), float(values[-1] - values[0])


def partition_of(arguments: argparse.Namespace) -> str:
    """How rows are dealt: the rows of a file keep their order, and sets with a name are shuffled as in the paper."""
    return arguments.partition or ("time" if _is_file(arguments.data) else "shuffled")


def n_agents_of(arguments: argparse.Namespace, usual: int) -> int:
    """As many as are asked for; a network that knows its size has the last word, or an objection."""
    asked: int | None = arguments.agents
    fixed = agents_of(arguments.network)
    if fixed is not None and asked is not None and asked != fixed:
        raise ValueError(f"--agents {asked} contradicts --network {arguments.network}, which has {fixed}.")
    if asked is not None and asked < 1:
        raise ValueError(f"--agents must be at least 1, got {asked}.")
    return fixed or asked or usual


def _median_distance(X: Array, scale: str) -> float:
    """The median heuristic, on at most a thousand rows: the first ones where nobody may look further ahead."""
    from scipy.spatial.distance import pdist

    rows = data.scale(X[:_SAMPLE], "column") if scale == "running" else X[:: -(-len(X) // _SAMPLE)]
    distances = pdist(rows)
    apart = distances[distances > 0]
    if not len(apart):
        return 1.0
    middle = float(np.median(distances))
    # Where most inputs are equal the median is zero, and the others have to say what is near.
    return float(f"{middle if middle > 0 else float(np.median(apart)):.3g}")
