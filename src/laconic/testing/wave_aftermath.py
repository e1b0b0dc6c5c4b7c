"""What must hold of agents that run waves when their network is healed, and of the waves that came since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from laconic.protocol import Agent
from laconic.protocol.waving import Waves
from laconic.waves.roving import RovingNode, link_digest


def waves_of(agent: Agent) -> Waves:
    """What an agent holds."""
    waves = agent._ledger
    assert isinstance(waves, Waves)
    return waves


def look_at_waves(agents: Mapping[str, Agent]) -> Iterator[str]:
    """A sentence for everything that is not as it should be: trees, what all know, what two know, what was counted.

    Where somebody else is among them, who is hostile, they may not agree on a tree, since it may lie about who hears
    whom, and samples may be counted that nobody has: then only what two or more know together is looked at, and of
    those who are together without it: it may keep others apart.
    """
    trees: dict[tuple[int, str], dict[str, RovingNode]] = {}
    together = _components(agents)
    for name, agent in agents.items():
        trees.setdefault((waves_of(agent).tree, together[name]), {})[name] = waves_of(agent).node
    for nodes in trees.values():
        yield from _look_at_links(nodes)
        yield from _look_at_what_all_know(nodes)
    if not all(other in agents for agent in agents.values() for other in agent.neighbours):
        return
    if len(trees) > 1:
        yield f"the agents stand in {len(trees)} trees."
    for nodes in trees.values():
        waves = [node.wave for node in nodes.values()]
        if max(waves) - min(waves) > 1:
            yield f"some have finished wave {max(waves) - 1}, and others are in wave {min(waves)}."
        yield from _look_at_counts(nodes)


def _components(agents: Mapping[str, Agent]) -> dict[str, str]:
    """By agent, the first of those whom it can reach through these agents alone."""
    found: dict[str, str] = {}
    for first in sorted(agents):
        near = [first]
        while near:
            name = near.pop()
            if name in agents and name not in found:
                found[name] = first
                near.extend(agents[name].neighbours)
    return found


def _look_at_links(nodes: Mapping[str, RovingNode]) -> Iterator[str]:
    """A parent knows of a subtree what its child knows, to the bit; or it is a message ahead."""
    numbers = {node.place.agent: node for node in nodes.values()}
    for name, node in nodes.items():
        parent = numbers.get(node.place.parent or -1)
        if parent is not None and node.link is not None:
            known = parent.links.get(node.place.agent), parent.links_before.get(node.place.agent)
            if link_digest(node.link) not in [link_digest(link) for link in known if link is not None]:
                yield f"what {name} knows of its subtree is not what its parent knows."


def _look_at_what_all_know(nodes: Mapping[str, RovingNode]) -> Iterator[str]:
    """Who has finished the same wave knows the same, to the bit."""
    by_wave: dict[int, dict[str, RovingNode]] = {}
    for name, node in nodes.items():
        by_wave.setdefault(node.wave, {})[name] = node
    for wave, group in by_wave.items():
        (first, one), *others = group.items()
        for name, other in others:
            same = all(np.array_equal(mine, other.common.parts()[key]) for key, mine in one.common.parts().items())
            if not same or one.standing != other.standing:
                yield f"{first} and {name} have both finished wave {wave - 1}, and know different things."


def _look_at_counts(nodes: Mapping[str, RovingNode]) -> Iterator[str]:
    """The samples behind what all know are those that the agents have put into the last wave, each once.

    Who said nothing in it counts with what it put into an earlier one, and may have forgotten how many these were.
    """
    if len({node.standing for node in nodes.values()}) > 1 or len(nodes) < 2:
        return  # a wave is on its way
    if not all(node.counted for node in nodes.values()):
        return
    (n, *_), counted = {node.n for node in nodes.values()}, sum(node.counted for node in nodes.values())
    if len(nodes) == next(iter(nodes.values())).place.n_agents and n != float(np.float32(counted)):
        yield f"the last wave counted {n:g} samples, and the agents have put {counted:g} into it."
    for name, node in nodes.items():
        if node.counted > node.own.count:
            yield f"{name} has put {node.counted:g} samples into a wave, and has {node.own.count:g}."
