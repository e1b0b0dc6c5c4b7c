"""What could have been known afterwards: the best single model of a whole stream, to measure regret against."""

from laconic.offline.comparator import Comparator, comparator

__all__ = ["Comparator", "comparator"]
