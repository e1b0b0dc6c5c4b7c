"""Which learners the core computes, and whether there is a core."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from laconic.channel import Budget, EntropyQuantizer, Quantizer, remembers
from laconic.learners import Learner, Speech
from laconic.learners.base import Kernel
from laconic.native.binding import library

#: Losses whose squares the core knows in waves.
WAVING = ("squared", "logistic", "squared-hinge")

_V2 = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
#: Kinds of processors that machine code can be made for, to be taken to others of the kind: what all of them have, in
#: the words of LLVM.
TARGETS = {"x86-64-v3": f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"}


def supports(learner: Learner) -> bool:
    """Whether there are kernels for this very learner, its loss and its channel."""
    if learner.speech is Speech.OWN:
        return learner.loss.kernel in WAVING
    channel = learner.channel
    quantizer, censor = (channel.quantizer, channel.censor) if channel else (None, None)
    return (
        learner.kernel() is not None
        and learner.loss.kernel is not None
        and (quantizer is None or type(quantizer) in (Quantizer, EntropyQuantizer))
        and (not remembers(censor) or type(censor) is Budget)
    )


def compiles(learner: Learner) -> bool:
    """Whether the core computes this learner, and was built."""
    return library() is not None and supports(learner)


@cache
def has_numba() -> bool:
    """Whether numba is installed; it is not imported."""
    return find_spec("numba") is not None


def kernel_of(learner: Learner) -> Kernel:
    """The compiled step of a learner that has one."""
    kernel = learner.kernel()
    assert kernel is not None  # ``supports`` has been asked
    return kernel
