"""Running one learner: over a stream (``simulate``), or block by block for ever (``stream``)."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from laconic import _extras, _validate
from laconic._timetable import Given, Timetable, read
from laconic._worded import ArgumentError
from laconic.engine import room
from laconic.engine.chunk import Engine, check_state_of
from laconic.engine.errors import Diverged
from laconic.engine.log import Log
from laconic.engine.mapping import engine_for
from laconic.engine.origin import check_origin
from laconic.engine.outcome import advice, attach, bad_input, make_trace
from laconic.engine.samples import Blocks, Samples
from laconic.engine.support import compiles, supports
from laconic.features import OwnFeatures, RandomFeatures
from laconic.features import read as read_features
from laconic.learners import Learner, Speech
from laconic.network import Network
from laconic.trace import State, Trace

_SHARED = 10_000  # agents from which on more than one thread is worth it: a round takes milliseconds


def simulate(
    learner: Learner,
    features: Any,
    network: Given | Timetable,
    X: object,
    y: object = None,
    *,
    engine: str = "auto",
    dtype: str = "float64",
    state: State | None = None,
    collective: bool = False,
    progress: bool = False,
    threads: int | None = None,
    every: int = 1,
) -> Trace:
    """Run a learner at every agent of a network over a stream, and return everything that happened.

    Parameters
    ----------
    learner : Learner
    features : RandomFeatures, or features of one's own
        The feature map that all agents share; or a fitted transformer of scikit-learn's, or any callable with
        ``n_inputs`` and ``n_features``: see ``OwnFeatures``.
    network : Network, or networks that change
        A list with a Network for each round, a list of pairs (first round, Network), or a function of the round,
        counted from 1. Edges come and go as those of running agents do: a share of the dual is set aside with its edge,
        and counts again when that comes back; who meets is told the other's broadcast in full, and
        ``trace.info["greetings"]`` counts these bits, as does ``link_bits``.
    X : array (T, n_agents, n_inputs), list of arrays (T_i, n_inputs), ``Drawn``, or iterable of blocks ``(X, y)``
        The inputs, a row for each round and agent; or the streams of the agents, which need not be equally long: who
        has come to the end of its own sees nothing more to learn from. From an iterable, memory stays constant: each
        block is forgotten once learned, and what the trace must keep goes to a temporary file when it grows beyond
        64 MB.
    y : array (T, n_agents), or list of arrays (T_i,)
        The labels. NaN: this agent saw nothing to learn from in this round; it predicts, mixes and speaks all the same.
    engine : "auto", "compiled", "reference" or "mpi"
        Compiled runs the learners of this package; reference runs any. Auto prefers the compiled one. MPI is the
        compiled one shared by the processes of a job (``mpiexec -n 4 python run.py``), all of which make this call
        and return the same trace: see ``docs/cluster.md``.
    dtype : "float64" or "float32"
    state : State, optional
        Go on from ``trace.state`` of an earlier run: the result has the bits of an uninterrupted one.
    collective : bool
        Also score every agent's model on every agent's sample (``trace.global_mse()``); costs n_agents times more
        predictions.
    progress : bool
        Show a progress bar.
    threads : int, optional
        Threads of the compiled engine, for which the result is the same to the bit. By default one, and for 10,000
        agents and more one a core.
    every : int
        Keep every so many rounds only, and the last: predictions and labels of that round, and in ``sent`` how often
        each agent has spoken since the one that was kept before. ``trace.info["rounds"]`` tells which rounds they are.

    Raises
    ------
    ValueError
        For input that makes no sense; if that shows only after some rounds, ``error.trace`` holds them.
    Diverged
        When predictions leave all bounds; ``error.trace`` holds the rounds before and ``error.advice`` says what to
        change.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 5, 2))
    >>> y = np.sin(4 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=0.5, seed=0)
    >>> trace = lc.simulate(lc.ODKLA(rho=0.2, eta=1.0), features, lc.Network.ring(5), X, y)
    >>> bool(trace.windowed_mse(100)[-1] < 0.1 * trace.mse()[0])
    True
    """
    network, features = read(network), read_features(features, X)
    every = _validate.integer("every", every, least=1, most=2**31)
    if engine == "mpi":
        _check(learner, features, network)
        _check_state(state, learner, features, network)
        if isinstance(features, OwnFeatures):
            raise ValueError("features must be laconic RandomFeatures with engine='mpi', not one's own.")
        together = _extras.need("laconic.engine.mpi", "engine='mpi'").simulate_together

        def bar_of(first: bool, total: int | None, what: str) -> Any:
            return progress_bar(progress and first, total, what)

        found: Trace = together(learner, features, network, X, y, dtype, state, collective, every, bar_of)
        return found
    _check(learner, features, network)
    samples = Samples(learner, features, network, X, y)  # first, since what is wrong with these costs no memory
    runner = make_engine(learner, features, network, engine, dtype, state, collective, threads)
    if every > 1 and learner.speech is Speech.OWN:
        raise ValueError(f"every must be 1 with {learner.name}, whose waves are told by what was sent in each round.")
    log = Log(every, runner.round)
    started = time.perf_counter()

    def trace() -> Trace:
        return make_trace(runner, learner, features, network, log, time.perf_counter() - started, dtype)

    try:
        with progress_bar(progress, samples.n_rounds, learner.name) as bar:
            for X_chunk, y_chunk in samples.chunks():
                chunk = runner.advance(X_chunk, y_chunk)
                log.append({**chunk.columns, "labels": y_chunk[: chunk.n_rounds]})
                bar(chunk.n_rounds)
                if chunk.ending == "diverged":
                    kept = trace()
                    raise Diverged(runner.round + 1, kept, advice(kept, learner))
                if chunk.ending:
                    raise bad_input(runner.round + 1, chunk.agent, X_chunk[chunk.n_rounds, chunk.agent])
    except Diverged:
        raise
    except BaseException as error:  # an interrupted run, too, hands over what it has
        attach(error, trace())
        raise
    return trace()


def stream(
    learner: Learner,
    features: Any,
    network: Given | Timetable,
    blocks: Blocks,
    *,
    engine: str = "auto",
    dtype: str = "float64",
    state: State | None = None,
    collective: bool = False,
) -> Iterator[Trace]:
    """As ``simulate`` over blocks, but yield a trace for each of them and keep none: for streams that never end.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> def sensors():
    ...     rng = np.random.default_rng(0)
    ...     while True:
    ...         x = rng.uniform(size=(100, 4, 1))
    ...         yield x, np.sin(6 * x[..., 0])
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=20, bandwidth=0.3)
    >>> for trace in lc.stream(lc.ODKLA(eta=1.0), features, lc.Network.ring(4), sensors()):
    ...     if trace.mse()[-1] < 0.01:
    ...         break
    >>> trace.state.round
    200
    """
    network, features = read(network), read_features(features)
    for X_block, y_block in blocks:
        trace = simulate(
            learner,
            features,
            network,
            X_block,
            y_block,
            engine=engine,
            dtype=dtype,
            state=state,
            collective=collective,
        )
        state = trace.state
        yield trace


def make_engine(
    learner: Learner,
    features: RandomFeatures,
    network: Network | Timetable,
    engine: str = "auto",
    dtype: str = "float64",
    state: State | None = None,
    collective: bool = False,
    threads: int | None = 1,
) -> Engine:
    """The engine of that name, ready to advance."""
    _check(learner, features, network)
    _check_state(state, learner, features, network)
    _validate.choice("engine", engine, ("auto", "compiled", "reference"))
    _validate.choice("dtype", dtype, ("float64", "float32"))
    made = _make_engine(learner, features, network, engine, dtype, state, collective, threads)
    if state is not None and learner.speech is not Speech.OWN:  # of which the shapes are known to be right now
        check_state_of(learner, state)
    return engine_for(made, features, dtype)


def _make_engine(
    learner: Learner,
    features: RandomFeatures,
    network: Network | Timetable,
    engine: str,
    dtype: str,
    state: State | None,
    collective: bool,
    threads: int | None = 1,
) -> Engine:
    """The engine that learns, from features if these are one's own."""
    if isinstance(network, Timetable) or (isinstance(state, State) and state.edges):
        return _changing(learner, features, network, engine, dtype, state, collective)
    if threads is None:
        threads = 1 if network.n_agents < _SHARED else _cores()
    threads = min(_validate.integer("threads", threads, least=1, most=1024), network.n_agents)
    if learner.speech is Speech.OWN:
        return _waving(learner, features, network, engine, dtype, state, collective)
    kernel = learner.kernel()
    n_matrices = len(kernel.experts.forgetting) if kernel and kernel.experts else 0
    # As many for the first state, for the rows of the engine, and for the state that is handed over.
    room.check(learner.name, network.n_agents, features.n_features, 4 * n_matrices)
    from laconic.engine.reference import Reference

    if engine == "compiled" or (engine == "auto" and compiles(learner)):
        from laconic.engine.native import Compiled

        return Compiled(learner, features, network, dtype, state, collective, threads)
    return Reference(learner, features, network, dtype, state, collective)


def _check(learner: object, features: object, network: object) -> None:
    for name, value, kind in (
        ("learner", learner, Learner),
        ("features", features, RandomFeatures),
    ):
        _validate.instance(name, value, kind, f"a laconic {kind.__name__}")
    _validate.instance("network", network, (Network, Timetable), "a laconic Network")


def _check_state(state: object, learner: Learner, features: RandomFeatures, network: Network | Timetable) -> None:
    if state is not None:
        if not isinstance(state, State):
            raise ArgumentError("state", f"must be the state of a trace, got {type(state).__name__}.")
        check_origin(state, learner, features, network)


def _changing(
    learner: Learner,
    features: RandomFeatures,
    network: Network | Timetable,
    engine: str,
    dtype: str,
    state: State | None,
    collective: bool,
) -> Engine:
    """The engine of a network that changes, or has changed before this run."""
    if learner.speech is Speech.OWN:
        raise ValueError(f"network must stay the same with {learner.name}, whose waves run over one tree.")
    if learner.clips():
        raise ValueError("network must stay the same with robust='clip', which sums up what each neighbour has said.")
    from laconic.engine.changing import Changing

    timetable = network if isinstance(network, Timetable) else Timetable([(1, network)])
    make = partial(_on_one, learner, features, engine, dtype, collective)
    made: Engine = Changing(make, learner, features.n_features, timetable, state)
    return made


def _on_one(
    learner: Learner,
    features: RandomFeatures,
    engine: str,
    dtype: str,
    collective: bool,
    network: Network,
    state: State | None,
) -> Engine:
    """The engine of the rounds in which a network stays what it is."""
    if state is not None:
        state = dataclasses.replace(state, edges={})
    return _make_engine(learner, features, network, engine, dtype, state, collective)


def _waving(
    learner: Learner,
    features: RandomFeatures,
    network: Network,
    engine: str,
    dtype: str,
    state: State | None,
    collective: bool,
) -> Engine:
    """The engine of a learner that has messages of its own."""
    if network.n_parts > 1:
        raise ValueError(f"network must be connected for {learner.name}, but it falls into {network.n_parts} parts.")
    if engine == "compiled" or (engine == "auto" and compiles(learner)):
        if not supports(learner):
            raise ValueError(f"engine must be 'reference' or 'auto' for {learner!r}: its loss has no kernel for waves.")
        from laconic.engine.personal import CompiledPersonal, CompiledWaving

        kind = CompiledWaving if learner.rule().arms is None else CompiledPersonal
        return kind(learner, features, network, dtype, state, collective)
    from laconic.engine.waving import Waving

    return Waving(learner, features, network, dtype, state, collective)


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@contextmanager
def progress_bar(show: bool, total: int | None, what: str) -> Iterator[Any]:
    """A function that is told how many rounds are done and, if ``show``, moves a bar by them."""
    if not show:
        yield lambda n: None
        return
    tqdm = _extras.need("tqdm", "a progress bar").tqdm
    with tqdm(total=total, desc=what, unit=" rounds", unit_scale=True) as bar:
        yield bar.update
