"""The same learner, run for several seeds: what ``sweep(..., seeds=5)`` returns for each learner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from laconic import _extras, _late, _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
class Runs(Sequence[Trace]):
    """Traces of one learner, one a seed, in the order of the seeds.

    Parameters
    ----------
    traces : iterable of Trace
    seeds : iterable of int, optional
        What each was drawn with; 0, 1, ... by default.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(300, 4, 1))
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=10, bandwidth=0.3)
    >>> runs = lc.sweep({"odkla": lc.ODKLA()}, features, lc.Network.ring(4), X, np.sin(6 * X[..., 0]), seeds=3)["odkla"]
    >>> len(runs), runs.seeds
    (3, (0, 1, 2))
    >>> runs.mse().shape
    (3, 300)
    """

    def __init__(self, traces: Iterable[Trace], seeds: Iterable[int] | None = None) -> None:
        self.traces = tuple(traces)
        if not self.traces:
            raise ArgumentError("traces", "must hold at least one trace.")
        for trace in self.traces:
            _validate.instance("traces", trace, Trace, "laconic Traces only")
        self.seeds = tuple(range(len(self.traces)) if seeds is None else seeds)
        if len(self.seeds) != len(self.traces):
            raise ArgumentError("seeds", f"must be {len(self.traces)}, one for each trace, got {len(self.seeds)}.")

    @overload
    def __getitem__(self, index: int) -> Trace: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Trace | Runs:
        """A trace by its place, or some of them."""
        if isinstance(index, slice):
            return Runs(self.traces[index], self.seeds[index])
        return self.traces[index]

    def __len__(self) -> int:
        return len(self.traces)

    def __iter__(self) -> Iterator[Trace]:
        return iter(self.traces)

    @property
    def name(self) -> str:
        """The learner's name."""
        return str(self.traces[0].about["name"])

    def mse(self) -> Array:
        """The running mean squared error of each run, (n_seeds, T); NaN after one that diverged has ended."""
        longest = max(trace.n_rounds for trace in self.traces)
        rows: Array = np.full((len(self), longest), np.nan)
        for row, trace in zip(rows, self.traces, strict=True):
            row[: trace.n_rounds] = trace.mse()
        return rows

    def measure(self, of: Callable[[Trace], float]) -> Array:
        """A number of each run, (n_seeds,): ``runs.measure(lambda trace: trace.bits.sum())``."""
        return np.array([float(of(trace)) for trace in self.traces])

    def plot(
        self,
        label: str | None = None,
        figure: Figure | None = None,
        *,
        panels: str | Sequence[str] | None = None,
        width: float | None = None,
    ) -> Figure:
        """As ``Trace.plot``: a line for the mean over the seeds, and a band from the least to the largest."""
        _extras.need("matplotlib", "a picture")
        name = f"{self.name}, {len(self)} seeds" if label is None else label
        drawn: Figure = _late.find("draw traces")(self.traces, name, figure, panels, width)
        return drawn

    def __repr__(self) -> str:
        ends = self.measure(lambda trace: trace.mse()[-1] if trace.n_rounds else np.nan)
        spread = f" (from {ends.min():.4g} to {ends.max():.4g})" if len(self) > 1 else ""
        return f"Runs({self.name}, {len(self)} seeds, mse {ends.mean():.4g}{spread})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = _late.find("show runs")(self.traces, repr(self))
        return shown

    def __eq__(self, other: Any) -> bool:
        return self is other

    __hash__ = object.__hash__
