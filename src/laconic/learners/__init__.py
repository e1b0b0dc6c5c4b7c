"""What is learned: one file an algorithm, each a pair of pure functions over rows."""

from laconic.learners.base import Learner, Sample
from laconic.learners.dokl import DOKL
from laconic.learners.local import Local
from laconic.learners.odkla import ODKLA, QCODKLA
from laconic.learners.rffdokl import RFFDOKL

__all__ = ["DOKL", "ODKLA", "QCODKLA", "RFFDOKL", "Learner", "Local", "Sample"]
