"""Runs that are the same in one process and in several; as a program, by all processes of an MPI job."""

import sys

import numpy as np

import laconic as lc

AGENTS, ROUNDS, STOP = 23, 24, 9


def stream():
    random = np.random.default_rng(3)
    X = random.uniform(size=(ROUNDS, AGENTS, 2))
    y = np.sin(4 * X[..., 0]) * X[..., 1] + 0.1 * random.normal(size=(ROUNDS, AGENTS))
    y[4, 3] = np.nan  # a label that is missing
    return X, y


def learners():
    quiet, coarse = lc.Censor(0.2, 0.95), lc.Quantizer(4)
    return {
        "odkla": ("float64", lc.ODKLA(0.2, 1.0)),
        "qc-odkla": ("float64", lc.QCODKLA(0.2, 1.0, alpha=0.3, beta=0.95)),
        "qc-odkla in single precision": ("float32", lc.QCODKLA(0.2, 1.0, alpha=0.3, beta=0.95)),
        "a fixed range": ("float32", lc.QCODKLA(0.2, 1.0, alpha=0.1, bits=5, range=(-0.4, 0.4), rounding="tread")),
        "twelve bits": ("float64", lc.ODKLA(0.2, 1.0, channel=lc.Channel(quiet, lc.Quantizer(12)))),
        "rff-dokl": ("float64", lc.RFFDOKL(0.25)),
        "a budget": (
            "float64",
            lc.RFFDOKL(0.25, order="adapt-then-combine", listen="spoken", channel=lc.Channel(lc.Budget(0.3), coarse)),
        ),
        "dokl": ("float64", lc.DOKL(0.2, 1.0, channel=lc.Channel(quiet))),
        "local": ("float64", lc.Local(0.25)),
        "an entropy code": (
            "float64",
            lc.ODKLA(0.2, 1.0, channel=lc.Channel(lc.Budget(bits_per_round=40.0), lc.EntropyQuantizer(1.4))),
        ),
        "clipped": ("float64", lc.ODKLA(0.2, 1.0, robust="clip")),
    }


def record(trace):
    """Everything that a run leaves, by name."""
    columns = ("predictions", "sent", "bits", "saturated", "consensus_error", "energy", "replica_error")
    found = {name: np.asarray(getattr(trace, name)) for name in columns}
    found |= {f"learner {name}": array for name, array in trace.state.learner.items()}
    found |= {f"channel {name}": array for name, array in trace.state.channel.items()}
    return found | {"broadcast": trace.state.broadcast}


def around():
    """The feature map and the network of all cases."""
    return lc.RandomFeatures.gaussian(2, 9, 0.5, seed=0), lc.Network.random(AGENTS, 0.15, seed=1)


def broken(learner, X, y, options):
    """What is left where one agent meets an input that is no number."""
    X = X.copy()
    X[STOP, 11, 0] = np.nan
    try:
        lc.simulate(learner, *around(), X, y, **options)
    except ValueError as error:
        return error.trace
    raise AssertionError("nobody has noticed")


def run_all(engine):
    """Each case whole, in two pieces, with a thin record, and as far as it comes."""
    features, network = around()
    X, y = stream()
    found = {}
    for name, (dtype, learner) in learners().items():
        options = {"engine": engine, "dtype": dtype}
        whole = lc.simulate(learner, features, network, X, y, **options)
        first = lc.simulate(learner, features, network, X[:STOP], y[:STOP], **options)
        rest = lc.simulate(learner, features, network, X[STOP:], y[STOP:], state=first.state, **options)
        thin = lc.simulate(learner, features, network, X, y, every=5, **options)
        pieces = {"whole": whole, "resumed": rest, "every fifth": thin, "to bad input": broken(learner, X, y, options)}
        for piece, trace in pieces.items():
            found |= {f"{name}: {piece}: {part}": array for part, array in record(trace).items()}
    return found


def main():
    found = run_all("mpi")
    from mpi4py import MPI

    digest = {name: array.tobytes() for name, array in found.items()}
    everywhere = MPI.COMM_WORLD.allgather(digest)
    assert all(other == digest for other in everywhere)  # the same trace in every process
    if MPI.COMM_WORLD.rank == 0:
        np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
