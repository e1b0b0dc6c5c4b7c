"""Running many learners on the same data (``sweep``), in threads, processes or on a cluster, with the same bits.

What is handed to a worker may be a copy: a thread changes the very engine that it is given, a process one of its own.
So a worker returns the engine that has learned together with what was recorded, and only what it returns counts.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar, final, overload

import numpy as np

from laconic import _extras, _validate
from laconic._timetable import Given, Timetable, read
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.engine.chunk import Chunk, Engine
from laconic.engine.log import Log
from laconic.engine.mapping import map_own
from laconic.engine.outcome import advice, make_trace
from laconic.engine.run import make_engine, progress_bar
from laconic.engine.samples import Samples
from laconic.engine.seeding import draws
from laconic.features import OwnFeatures, RandomFeatures
from laconic.features import read as read_features
from laconic.learners import Learner
from laconic.network import Network
from laconic.papers import Runs
from laconic.trace import Trace

Key = TypeVar("Key")
Map = TypeVar("Map")

_MOST_LENT = 256 * 2**20  # bytes of features that wait for a pool of processes to end


@overload
def sweep(
    learners: Mapping[Key, Learner],
    features: RandomFeatures,
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    n_jobs: int | None = -1,
    engine: str = "auto",
    dtype: str = "float64",
    collective: bool = False,
    progress: bool = False,
) -> dict[Key, Trace]: ...
@overload
def sweep(
    learners: Sequence[Learner],
    features: RandomFeatures,
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    n_jobs: int | None = -1,
    engine: str = "auto",
    dtype: str = "float64",
    collective: bool = False,
    progress: bool = False,
) -> list[Trace]: ...
@overload
def sweep(
    learners: Mapping[Key, Learner] | Sequence[Learner],
    features: Mapping[Map, RandomFeatures],
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    n_jobs: int | None = -1,
    engine: str = "auto",
    dtype: str = "float64",
    collective: bool = False,
    progress: bool = False,
) -> dict[tuple[Map, Any], Trace]: ...
@overload
def sweep(
    learners: Mapping[Key, Learner] | Sequence[Learner],
    features: RandomFeatures | Mapping[Map, RandomFeatures],
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    seeds: int | Sequence[int],
    vary: Sequence[str] | None = None,
    n_jobs: int | None = -1,
    engine: str = "auto",
    dtype: str = "float64",
    collective: bool = False,
    progress: bool = False,
) -> Any: ...
def sweep(
    learners: Mapping[Key, Learner] | Sequence[Learner],
    features: RandomFeatures | Mapping[Map, RandomFeatures],
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    seeds: int | Sequence[int] | None = None,
    vary: Sequence[str] | None = None,
    n_jobs: int | None = -1,
    engine: str = "auto",
    dtype: str = "float64",
    collective: bool = False,
    progress: bool = False,
) -> Any:
    """Run many learners on the same stream; the features are computed once for all, the learners share the cores.

    Parameters
    ----------
    learners : list or dict of Learner
    features : RandomFeatures, or dict of RandomFeatures
        One map, or several: bandwidths, kernels, numbers of frequencies. Then every learner runs over every map, and X
        and y must be arrays.
    network, X, y, engine, dtype, collective, progress
        As for ``simulate``.
    seeds : int or list of int, optional
        Run everything once for each of 0, 1, ..., or of these: seed s shuffles the rounds of the stream, and draws
        features and network again where these were drawn from a seed. X and y must be arrays.
    vary : some of "order", "features", "network", optional
        What a seed changes; by default all that it can. Leave "order" out where the stream drifts.
    n_jobs : int
        Workers; -1 for one a core, None for what joblib is set to. They are threads, unless ``joblib.parallel_config``
        says otherwise: processes ("loky", "multiprocessing") or a cluster ("dask") give the same bits.

    Returns
    -------
    list or dict of Trace
        As ``learners``; of several maps a dict by (map, learner), a learner of a list by its number. A learner that
        diverged does not stop the others: its trace ends early, ``trace.diverged`` is True, and
        ``trace.about["advice"]`` says what to change. With ``seeds`` a ``Runs`` stands in the place of each trace.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(300, 4, 2))
    >>> y = X[..., 0] * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=0.5)
    >>> grid = {eta: lc.ODKLA(eta=eta) for eta in (0.01, 1.0, 4.0)}
    >>> traces = lc.sweep(grid, features, lc.Network.ring(4), X, y)
    >>> [eta for eta, trace in traces.items() if trace.diverged]
    [0.01]
    >>> widths = {width: lc.RandomFeatures.gaussian(2, 30, bandwidth=width) for width in (0.02, 0.5)}
    >>> traces = lc.sweep({"odkla": lc.ODKLA()}, widths, lc.Network.ring(4), X, y)
    >>> min(traces, key=lambda key: traces[key].mse()[-1])
    (0.5, 'odkla')
    """
    if seeds is not None:
        each: dict[str, Any] = {"n_jobs": n_jobs, "engine": engine, "dtype": dtype, "collective": collective}
        drawn = draws(features, network, X, y, seeds, vary)
        made = [sweep(learners, *parts, **each, progress=progress) for _, *parts in drawn]
        numbers = [seed for seed, *_ in drawn]
        if isinstance(made[0], Mapping):
            return {key: Runs([traces[key] for traces in made], numbers) for key in made[0]}
        return [Runs(traces, numbers) for traces in zip(*made, strict=True)]
    if vary is not None:
        raise ArgumentError("vary", "says what seeds change: pass seeds, too.")
    if isinstance(features, Mapping):
        if y is None:
            raise ArgumentError("y", "must be an array of labels where there are several maps of features.")
        if not features:
            raise ArgumentError("features", "must be a map, or at least one by its name.")
        keyed = learners if isinstance(learners, Mapping) else dict(enumerate(learners))
        options: dict[str, Any] = {"n_jobs": n_jobs, "engine": engine, "dtype": dtype, "collective": collective}
        return {
            (name, key): trace
            for name, one in features.items()
            for key, trace in sweep(keyed, one, network, X, y, **options, progress=progress).items()
        }
    network, features = read(network), read_features(features, X)
    listed = _listed(learners)
    runs = [
        _Run(learner, make_engine(learner, features, network, engine, dtype, None, collective)) for learner in listed
    ]
    # The labels must suit the most demanding of the losses.
    demanding = max(listed, key=lambda learner: learner.loss.binary)
    samples = Samples(demanding, features, network, X, y)
    with _Workers(_checked_jobs(n_jobs)) as workers, progress_bar(progress, samples.n_rounds, "sweep") as bar:
        for X_chunk, y_chunk in samples.chunks():
            phi = _map_chunk(runs, features, _validate.finite("X", X_chunk), dtype)
            going = [run for run in runs if run.ended is None]
            parts = workers([run.engine for run in going], phi, y_chunk)
            for run, part in zip(going, parts, strict=True):
                run.take(part, y_chunk)
            bar(len(y_chunk))
    traces = [run.finish(features, network, dtype) for run in runs]
    return dict(zip(learners, traces, strict=True)) if isinstance(learners, Mapping) else traces


class _Part(NamedTuple):
    """What a worker returns: the engine as it stands after a chunk, what was recorded, and the time it took."""

    engine: Engine
    chunk: Chunk
    seconds: float


def _advance(engine: Engine, phi: Array, y: Array) -> _Part:
    """A worker's work: one learner's rounds of one chunk."""
    started = time.perf_counter()
    chunk = engine.advance(phi, y, mapped=True)
    return _Part(engine, chunk, time.perf_counter() - started)


@final
class _Workers:
    """joblib's workers, as many as are asked for and of the kind that is configured there.

    Processes get large arrays as files in memory, which joblib keeps until its pool ends; so that a long stream does
    not fill the memory, a pool ends when it was lent much and another begins.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs, self._lent = n_jobs, 0
        self._pool = ExitStack()
        self._call: Any = None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()

    def __call__(self, engines: list[Engine], phi: Array, y: Array) -> list[_Part]:
        """Advance each engine by the rounds of one chunk."""
        joblib = _extras.need("joblib", "a sweep")
        if self._call is None or self._lent + phi.nbytes > _MOST_LENT:
            self._pool.close()
            # In mode "c" a worker may write into its copy: for read-only arrays kernels would be compiled again.
            self._call = self._pool.enter_context(joblib.Parallel(n_jobs=self._n_jobs, prefer="threads", mmap_mode="c"))
            self._lent = 0
        self._lent += phi.nbytes
        parts: list[_Part] = self._call(joblib.delayed(_advance)(engine, phi, y) for engine in engines)
        return parts


@final
class _Run:
    """One learner of a sweep, as far as it has come."""

    def __init__(self, learner: Learner, engine: Engine) -> None:
        self.learner, self.engine, self.log = learner, engine, Log()
        self.rounds = 0
        self.seconds = 0.0
        self.ended: Chunk | None = None

    def take(self, part: _Part | None, y: Array) -> None:
        """Take in what a worker returned for the labels ``y``; what is missing is an error, never an empty trace."""
        if not isinstance(part, _Part):
            raise RuntimeError(f"a worker returned {part!r} instead of the rounds of {self.learner!r}.")
        engine, chunk, seconds = part
        self.rounds += chunk.n_rounds
        if engine.round != self.rounds or (chunk.ending is None and chunk.n_rounds != len(y)):
            raise RuntimeError(
                f"a worker returned {chunk.n_rounds} of {len(y)} rounds of {self.learner!r}, with an engine that "
                f"stands at round {engine.round} instead of {self.rounds}."
            )
        self.engine = engine
        self.log.append({**chunk.columns, "labels": y[: chunk.n_rounds]})
        self.seconds += seconds
        self.ended = chunk if chunk.ending else None

    def finish(self, features: RandomFeatures, network: Network | Timetable, dtype: str) -> Trace:
        trace = make_trace(self.engine, self.learner, features, network, self.log, self.seconds, dtype)
        if self.ended is None:
            return trace
        about = {**trace.about, "diverged": True, "advice": advice(trace, self.learner)}
        return dataclasses.replace(trace, about=about)


def _listed(learners: object) -> list[Learner]:
    """The learners in their order, each of them checked."""
    if isinstance(learners, Mapping):
        listed = list(learners.values())
    elif isinstance(learners, Iterable) and not isinstance(learners, (str, bytes)):
        listed = list(learners)
    else:
        raise ArgumentError("learners", f"must be a list or a dict of learners, got {_validate.shown(learners)}.")
    if not listed:
        raise ArgumentError("learners", "must hold at least one learner.")
    for learner in listed:
        if not isinstance(learner, Learner):
            raise ArgumentError("learners", f"must hold laconic Learners only, found {_validate.shown(learner)}.")
    return listed


def _checked_jobs(n_jobs: int | None) -> int | None:
    """``n_jobs`` for joblib: a whole number other than 0, or None for what is configured there."""
    if n_jobs is None:
        return None
    if _validate.integer("n_jobs", n_jobs, least=-(2**31), most=2**31) == 0:
        raise ArgumentError("n_jobs", "must not be 0: 1 runs one learner after the other, -1 uses every core.")
    return n_jobs


def _map_chunk(runs: list[_Run], features: RandomFeatures, X: Array, dtype: str) -> Array:
    """The features of a chunk, once for all learners: by the compiled map if any of them is compiled."""
    if isinstance(features, OwnFeatures):
        return map_own(features, X, dtype, any(run.engine.name != "reference" for run in runs))
    if all(run.engine.name == "reference" for run in runs):
        return features(X.astype(dtype, copy=False))
    from laconic.native.features import map_features

    return map_features(features, X.reshape(-1, X.shape[2]), np.dtype(dtype)).reshape(*X.shape[:2], -1)
