"""Data: the paper's sets and a person's own files, scaled without lies and dealt to agents.

>>> from laconic import data
>>> stream = data.load("synthetic", n_rows=1000)
>>> X, y = data.partition(data.scale(stream.X, "column"), data.scale(stream.y, "column"), n_agents=5)
>>> X.shape, y.shape
((200, 5, 5), (200, 5))
"""

from laconic.data import sets as sets
from laconic.data.dataset import Dataset, Table
from laconic.data.download import fetch
from laconic.data.files import Unavailable
from laconic.data.loading import load, load_open
from laconic.data.partitions import partition
from laconic.data.registry import Entry, info, names, register
from laconic.data.scaling import RunningScaler, scale
from laconic.data.synthesis import Synthetic, Truth, synthetic

__all__ = [
    "Dataset",
    "Entry",
    "RunningScaler",
    "Synthetic",
    "Table",
    "Truth",
    "Unavailable",
    "fetch",
    "info",
    "load",
    "load_open",
    "names",
    "partition",
    "register",
    "scale",
    "synthetic",
]
