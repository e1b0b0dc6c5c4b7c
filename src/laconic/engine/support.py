"""Which learners the core computes."""

from __future__ import annotations

from laconic.channel import Budget, EntropyQuantizer, Quantizer, remembers
from laconic.learners import Learner, Speech
from laconic.learners.base import Kernel
from laconic.native.binding import library

#: Losses whose squares the kernels of waves know.
WAVING = ("squared", "logistic", "squared-hinge")


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
    """Whether there are kernels for this learner, and the core was built."""
    return library() is not None and supports(learner)


def kernel_of(learner: Learner) -> Kernel:
    """The compiled step of a learner that has one."""
    kernel = learner.kernel()
    assert kernel is not None  # ``supports`` has been asked
    return kernel
