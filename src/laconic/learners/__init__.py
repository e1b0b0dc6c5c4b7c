"""What is learned: one file an algorithm, each a pair of pure functions over rows; and the registry of all of them."""

from laconic.learners.base import Kernel, Learner, Sample, Speech
from laconic.learners.dokl import DOKL
from laconic.learners.experts import Experts
from laconic.learners.local import Local
from laconic.learners.odkla import ODKLA, QCODKLA
from laconic.learners.registry import every, get, normalise, register, unregister, written
from laconic.learners.rffdokl import RFFDOKL
from laconic.learners.wave import WaveRLS

for _learner in (ODKLA, QCODKLA, DOKL, RFFDOKL, Local, WaveRLS, Experts):
    register(_learner)

__all__ = [
    "DOKL",
    "ODKLA",
    "QCODKLA",
    "RFFDOKL",
    "Experts",
    "Kernel",
    "Learner",
    "Local",
    "Sample",
    "Speech",
    "WaveRLS",
    "every",
    "get",
    "normalise",
    "register",
    "unregister",
    "written",
]
