"""Whether what a run keeps fits into memory: said in one sentence before it is allocated."""

from __future__ import annotations

from laconic._validate import available
from laconic._worded import ArgumentError

_SMALL = 2.0**24  # bytes that whoever has loaded this package has; to ask takes a tenth of a millisecond


def check(name: str, n_agents: int, n_features: int, n_matrices: int) -> None:
    """Refuse a learner whose agents keep more matrices of D x D numbers than there is room for.

    >>> check("Experts", 10, 100, 2)
    >>> check("Experts", 10**9, 100, 2)
    Traceback (most recent call last):
    ...
    laconic._worded.ArgumentError: network must be smaller for Experts, ... agents take 160,000.0 GB, ... are free.
    """
    needed = 8.0 * n_agents * n_matrices * n_features**2
    if needed > _SMALL and needed > (free := available()):
        raise ArgumentError(
            "network",
            f"must be smaller for {name}, which keeps {n_matrices} x {n_features} x {n_features} numbers an agent: "
            f"{n_agents} agents take {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free.",
        )
