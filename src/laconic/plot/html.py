"""What notebooks show of traces, networks and agents: a small table beside a small drawing, nothing from outside.

Colours are the notebook's own (``currentColor``), so that it looks right in the dark; every word is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from laconic._validate import Array
from laconic.network import Network
from laconic.papers.table import escape
from laconic.plot.networks import layout
from laconic.plot.style import STYLES
from laconic.trace import Trace

_WIDTH, _HEIGHT, _POINTS = 220, 110, 120
_MOST_DRAWN = 400  # agents of a network that is drawn
_MOST_EDGES = 3000


def card(title: str, rows: Iterable[tuple[str, str]], drawing: str = "") -> str:
    """A title, facts, and a drawing (SVG, which is taken as it is) beside them."""
    quiet = "opacity:.7;text-align:left;vertical-align:top;white-space:nowrap;padding:.1em .8em .1em 0;border:0"
    cells = "".join(
        f'<tr style="background:none"><td style="{quiet}">{escape(name)}</td>'
        f'<td style="text-align:left;padding:.1em 0;border:0">{escape(value)}</td></tr>'
        for name, value in rows
    )
    facts = f'<table style="color:inherit;font-size:90%;border-collapse:collapse;margin:.3em 0 0">{cells}</table>'
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:center;border:1px solid #8886;'
        'border-radius:6px;padding:.6em 1em;max-width:56em;width:fit-content">'
        f'<div style="max-width:30em"><b>{escape(title)}</b>{facts}</div>{drawing}</div>'
    )


def trace_html(traces: Sequence[Trace], title: str) -> str:
    """Runs in a few numbers, and how their error fell."""
    first = traces[0]
    about = first.about
    rows = [
        ("learner", str(about.get("learner", about["name"]))),
        ("features", str(about.get("features", "not told"))),
        ("network", str(about.get("network", "not told"))),
        ("rounds, agents", f"{first.n_rounds:,} × {first.n_agents:,}"),
        ("mean squared error", _ranged([t.mse()[-1] if t.n_rounds else np.nan for t in traces], ".4g")),
        ("messages an agent", _ranged([t.sent.sum() / t.n_agents for t in traces], ",.1f")),
        ("bits an agent", _ranged([t.bits.sum() / t.n_agents for t in traces], ",.0f")),
        ("seconds", f"{sum(t.seconds for t in traces):.3g} ({about.get('engine', '?')} engine)"),
    ]
    return card(title, rows, _curves(traces))


def network_html(network: Network) -> str:
    """A network in a few numbers, and its drawing if that is not too large."""
    degrees = network.degrees
    rows = [
        ("agents", f"{network.n_agents:,}"),
        ("edges", f"{len(network.edges):,}"),
        ("neighbours", f"{degrees.min()} to {degrees.max()}, {degrees.mean():.3g} on average"),
    ]
    small = network.n_agents <= _MOST_DRAWN and len(network.edges) <= _MOST_EDGES
    return card("Network", rows, _graph(network) if small else "")


def _ranged(values: Sequence[float], form: str) -> str:
    least, most = min(values), max(values)
    words = format(float(np.mean(values)), form)
    return words if least == most or len(values) == 1 else f"{words} ({least:{form}} to {most:{form}})"


def _curves(traces: Sequence[Trace]) -> str:
    """The running error against rounds, both logarithmic."""
    curves = []
    for trace in traces:
        error = trace.mse()
        shown = np.flatnonzero(np.isfinite(error) & (error > 0))
        if shown.size < 2:
            continue
        kept = shown[np.unique(np.geomspace(1, shown.size, min(_POINTS, shown.size)).astype(int) - 1)]
        curves.append((np.log10(kept + 1.0), np.log10(error[kept])))
    if not curves:
        return ""
    right = max(x[-1] for x, _ in curves)
    low, high = min(y.min() for _, y in curves), max(y.max() for _, y in curves)
    tall = max(high - low, 1e-9)
    stroke = f'stroke="{STYLES[0].color}" stroke-width="1.5" stroke-opacity="{1 / len(curves) ** 0.5:.2f}"'
    lines = "".join(
        f'<polyline fill="none" {stroke}'
        f' points="{_points(10 + 200 * x / max(right, 1e-9), 12 + 74 * (high - y) / tall)}"/>'
        for x, y in curves
    )
    words = (
        f'<text x="10" y="104" font-size="10" fill="currentColor">error, from {10**high:.2g} to {10**low:.2g} '
        "(logarithmic)</text>"
    )
    frame = '<path d="M10 8V90H212" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    return _svg("error against rounds", frame + lines + words)


def _graph(network: Network) -> str:
    places = layout(network)
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    room = np.array([_WIDTH - 24, _HEIGHT - 24])
    scale = float((room / np.maximum(span, 1e-9)).min()) if span.max() > 0 else 0.0
    x, y = ((places - low) * scale + (np.array([_WIDTH, _HEIGHT]) - span * scale) / 2).T
    y = _HEIGHT - y
    lines = "".join(f"M{x[i]:.1f} {y[i]:.1f}L{x[j]:.1f} {y[j]:.1f}" for i, j in network.edges)
    radius = max(1.2, min(5.0, 40 / network.n_agents**0.6))
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:.1f}"><title>{escape(name)}</title></circle>'
        for a, b, name in zip(x, y, network.names, strict=True)
    )
    edges = f'<path d="{lines}" fill="none" stroke="currentColor" stroke-opacity=".35"/>'
    return _svg("the network", edges + f'<g fill="{STYLES[0].color}">{dots}</g>')


def _points(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _svg(what: str, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(what)}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">{inside}</svg>'
    )
