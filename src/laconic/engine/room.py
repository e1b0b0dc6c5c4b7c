"""Whether what a run keeps fits into memory: said in one sentence before it is allocated."""

from __future__ import annotations

from pathlib import Path

from laconic._worded import ArgumentError

_MEMINFO = Path("/proc/meminfo")
_SMALL = 2.0**24  # bytes that whoever has loaded this package has; to ask takes a tenth of a millisecond


def available() -> float:
    """Bytes that may still be taken without anybody being stopped; infinite where nobody tells."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return float("inf")


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
