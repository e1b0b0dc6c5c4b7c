"""What is learned: one file an algorithm, each a pair of pure functions over rows; and the registry of all of them."""

from laconic.learners.base import Kernel, Learner, Sample, Speech
from laconic.learners.dokl import DOKL
from laconic.learners.experts import Experts
from laconic.learners.local import Local
from laconic.learners.odkla import ODKLA, QCODKLA
from laconic.learners.personal import Personal
from laconic.learners.registry import every, get, normalise, register, unregister, written
from laconic.learners.rffdokl import RFFDOKL
from laconic.learners.wave import WaveRLS

for _learner in (ODKLA, QCODKLA, DOKL, RFFDOKL, Local, WaveRLS, Experts, Personal):
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
    "Personal",
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
