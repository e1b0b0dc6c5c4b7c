"""Samples that cannot be: limits of labels and inputs, given or learned from a stream."""

from laconic.guard.given import LARGEST_LABEL
from laconic.guard.guard import BEYOND, Beyond, Guard, Guarded

__all__ = ["BEYOND", "LARGEST_LABEL", "Beyond", "Guard", "Guarded"]
