"""What a notebook shows of an agent."""

from __future__ import annotations

from typing import Any

from laconic.plot.html import card


def agent_html(agent: Any) -> str:
    """An ``Agent`` in a few lines: who it is, whom it hears, what it has said. Words of others are escaped."""
    edges = agent.edges
    counters = agent.counters
    heard = ", ".join(f"{name} ({stage})" for name, stage in edges.items()) or "nobody"
    refused = sum(counters["refusals"].values())
    rows = [
        ("round", f"{agent.round:,} ({agent.clock})"),
        ("hears", heard),
        ("waits for", ", ".join(agent.waiting) or "nobody"),
        ("learner", repr(agent.learner)),
        ("features", repr(agent.features)),
        (
            "said",
            f"{counters['sends']:,} messages, {counters['bits']:,} bits; nothing to say {counters['censored']:,} times",
        ),
        ("repairs, refusals", f"{counters['repairs']:,}, {refused:,}"),
    ]
    return card(f"Agent {agent.name}", rows)
