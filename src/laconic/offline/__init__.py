"""With all the data at hand: what could have been known afterwards, batch learning, and the two ends of the scale.

- ``comparator``: the best single model of a whole stream, to measure regret against.
- ``dkla``, ``coke``: the batch algorithms that ODKLA and QC-ODKLA descend from; ``batch_solution``, what they agree on.
- ``coke_experiment``: both on COKE's synthetic data.
- ``recursive_least_squares``: exact learning sample by sample, each agent alone or all in one place.
"""

from laconic.offline.batch import BatchRun, batch_solution, coke, dkla
from laconic.offline.comparator import Comparator, comparator
from laconic.offline.experiment import CokeExperiment, coke_experiment
from laconic.offline.rls import recursive_least_squares

__all__ = [
    "BatchRun",
    "CokeExperiment",
    "Comparator",
    "batch_solution",
    "coke",
    "coke_experiment",
    "comparator",
    "dkla",
    "recursive_least_squares",
]
