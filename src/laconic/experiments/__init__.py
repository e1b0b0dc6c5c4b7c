"""The paper's experiments, done again: ``laconic reproduce``.

``settings`` is what the paper fixes, ``streams`` deals the data, ``methods`` and ``tuning`` find the steps, ``runs``
makes the runs and ``pieces`` keeps them, ``tables``, ``theory`` and ``figures`` conclude, ``report`` writes them
down, and ``reproduce`` does it all in order. Everything is a function of (data, seed, parameters).
"""

from laconic.experiments.reproduce import reproduce
from laconic.experiments.settings import METHODS, SETTINGS, Setting

__all__ = ["METHODS", "SETTINGS", "Setting", "reproduce"]
