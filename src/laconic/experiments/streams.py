"""From a data set and a seed to everything a run needs: inputs and labels dealt to agents, features, network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

from laconic import data
from laconic._validate import Array
from laconic.experiments.settings import EDGE_PROBABILITY, N_FREQUENCIES, Setting
from laconic.features import RandomFeatures
from laconic.network import Network

#: How each protocol scales inputs and labels: the prepared sets by the whole matrix, otherwise column by column.
SCALING = {"prepared": "matrix", "paper": "column"}


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """One run's data: inputs (T, N, d), labels (T, N), the shared features and the network."""

    X: Array
    y: Array
    features: RandomFeatures
    network: Network

    def head(self, share: float) -> Stream:
        """The first ``share`` of the rounds."""
        length = max(1, round(share * len(self.y)))
        return Stream(self.X[:length], self.y[:length], self.features, self.network)


def make_stream(
    setting: Setting,
    seed: int,
    *,
    protocol: str = "prepared",
    partition: str = "shuffled",
    data_dir: str | None = None,
    max_rows: int | None = None,
) -> Stream:
    """Everything that one seed decides: who gets which rows, the frequencies, and the graph."""
    X, y = scaled(setting.name, protocol, data_dir, max_rows)
    X_dealt, y_dealt = data.partition(X, y, setting.n_agents, partition, seed)
    features = RandomFeatures.gaussian(X.shape[1], N_FREQUENCIES, bandwidth=setting.bandwidth, seed=seed)
    return Stream(X_dealt, y_dealt, features, Network.random(setting.n_agents, p=EDGE_PROBABILITY, seed=seed))


@lru_cache(maxsize=8)
def scaled(name: str, protocol: str, data_dir: str | None, max_rows: int | None = None) -> tuple[Array, Array]:
    """The set's inputs and labels between 0 and 1, by the protocol's rule; cut to every k-th row where asked."""
    dataset = data.load(name, protocol=protocol, data_dir=data_dir)
    how = SCALING[protocol]
    X, y = data.scale(dataset.X, how), data.scale(dataset.y, how)
    if max_rows is not None and len(y) > max_rows:
        stride = -(-len(y) // max_rows)  # every k-th row keeps the mixture that the whole file has
        X, y = X[::stride], y[::stride]
    return X, y
