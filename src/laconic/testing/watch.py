"""An onlooker of running agents, who reads the checkpoints that they leave and believes nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from laconic._validate import Array
from laconic.protocol.checkpoint import AgentState, read_checkpoint


@dataclass
class Watch:
    """Reads the agents' checkpoints, and compares what they believe of each other with what was said.

    Attributes
    ----------
    states : dict
        The latest checkpoint of each agent.
    wrong : int
        How many times a replica was not what its origin had said.
    cancelled, off : int, float
        How many times the two shares of an edge were compared, and by how much they did not cancel at most, of their
        size: where each end had heard all that the other had said, and both were brought to one edge round.
    """

    folder: Path
    names: tuple[str, ...]
    states: dict[str, AgentState] = field(default_factory=dict)
    wrong: int = 0
    compared: int = 0
    cancelled: int = 0
    off: float = 0.0
    _said: dict[tuple[str, str, int, int], bytes] = field(default_factory=dict)
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def look(self) -> None:
        """Read what is new."""
        for name in self.names:
            path = self.folder / f"{name}.checkpoint"
            try:
                about = path.stat()
                if self._seen.get(name) == (about.st_ino, about.st_mtime_ns):
                    continue
                state = read_checkpoint(path)
            except (FileNotFoundError, ValueError):  # just being replaced
                continue
            if state is None:
                continue
            self._seen[name] = about.st_ino, about.st_mtime_ns
            self.states[name] = state
            for other, known in state.about["neighbours"].items():
                if known["stage"] == "live":  # on an edge that is not, nothing is said, and the model moves on
                    self._said[name, other, known["tag"], known["spoken"]] = state.arrays["said"][0].tobytes()
            for other, known in state.about["neighbours"].items():
                self._compare_shares(name, other, known)
        for name, state in self.states.items():
            for k, (other, known) in enumerate(state.about["neighbours"].items(), 1):
                said = self._said.get((other, name, known["tag"], known["heard"]))
                if said is not None and known["tag"]:
                    self.compared += 1
                    self.wrong += said != state.arrays["said"][k].tobytes()

    def _compare_shares(self, name: str, other: str, mine: dict[str, Any]) -> None:
        if other not in self.states:
            return
        theirs = self.states[other].about["neighbours"][name]
        together = mine["stage"] == theirs["stage"] == "live" and mine["tag"] == theirs["tag"]
        if together and (mine["heard"], mine["spoken"]) == (theirs["spoken"], theirs["heard"]):
            k = max(mine["k"], theirs["k"])
            one, two = self._share(name, other, k), self._share(other, name, k)
            self.cancelled += 1
            self.off = max(self.off, float(np.abs(one + two).max() / (1.0 + np.abs(one).max())))

    def _share(self, name: str, other: str, k: int) -> Array:
        """An edge's share when it has come to edge round ``k``."""
        about, arrays = self.states[name].about["neighbours"], self.states[name].arrays
        at = list(about).index(other)
        share: Array = arrays["shares"][at] + (k - about[other]["k"]) * (arrays["said"][0] - arrays["said"][1 + at])
        return share

    def rounds(self) -> dict[str, int]:
        """The round of each agent."""
        return {name: state.about["round"] for name, state in self.states.items()}

    def stages(self) -> dict[tuple[str, str], str]:
        """Where each edge stands, at either end."""
        return {
            (name, other): known["stage"]
            for name, state in self.states.items()
            for other, known in state.about["neighbours"].items()
        }

    def exact(self, since: dict[str, int] | None = None) -> bool:
        """Whether all edges are live, and each replica is what its origin said last, or said after ``since``."""
        if len(self.states) < len(self.names):
            return False
        for name, state in self.states.items():
            for k, (other, known) in enumerate(state.about["neighbours"].items(), 1):
                said = self._said.get((other, name, known["tag"], known["heard"]))
                if known["stage"] != "live" or said != state.arrays["said"][k].tobytes():
                    return False
                there = self.states[other].about["neighbours"][name]
                latest = (known["tag"], known["heard"]) == (there["tag"], there["spoken"])
                if not latest and not (since and self.states[other].about["round"] > since[other]):
                    return False
        return True

    def wait(self, seconds: float) -> None:
        """Go on looking for so long: there is no event to await in files that other processes replace."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.look()
            time.sleep(0.01)

    def until(self, condition: Callable[[], bool], limit: float) -> float:
        """Seconds until ``condition`` holds; infinite if that takes longer than ``limit``."""
        begun = time.monotonic()
        while time.monotonic() < begun + limit:
            self.look()
            if condition():
                return time.monotonic() - begun
            time.sleep(0.005)
        return np.inf

    def until_exact(self, limit: float, since: dict[str, int] | None = None) -> float:
        """Seconds until all is exact; infinite if that takes longer than ``limit``."""
        return self.until(lambda: self.exact(since), limit)

    def apart(self, group: Iterable[str]) -> bool:
        """Whether all edges between this group and the others are suspended, at both ends."""
        crossing = [stage for (a, b), stage in self.stages().items() if (a in group) != (b in group)]
        return "live" not in crossing
