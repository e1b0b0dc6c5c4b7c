"""What a paper needs: the same run for several seeds (``Runs``), and a table that sets runs beside each other."""

from laconic.papers.compare import Comparison, compare
from laconic.papers.runs import Runs

__all__ = ["Comparison", "Runs", "compare"]
