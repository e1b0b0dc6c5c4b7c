"""The page of the demonstration: one file with all numbers inside that asks nothing of the network.

What the page draws it computes itself, from the models: a picture of what an agent knows is its weights, and the
features that all agents share.
"""

from __future__ import annotations

import base64
import json
import platform
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from laconic._validate import Array
from laconic._version import __version__
from laconic.demo import landscape
from laconic.demo.running import ALONE, CENTRE, DEFAULT, REFERENCE, SEED, Outcome, Run
from laconic.features import RandomFeatures
from laconic.network import Network
from laconic.waves import Routes

#: Whose models are on the page: those who never speak, then those who do.
VIEWS = (ALONE, "QC-ODKLA", "WaveRLS", DEFAULT)
_WIDE, _HIGH = 125, 50  # points at which a surface is drawn, as wide to high as the tiles are
_MOST = 2**15 - 1


def render(outcome: Outcome) -> str:
    """The page, as one string of HTML.

    Examples
    --------
    >>> from laconic.demo import render, show
    >>> page = render(show(n_rounds=100))
    >>> page.startswith("<!doctype html>"), "http://" in page, "https://" in page
    (True, False, False)
    """
    environment = Environment(
        loader=PackageLoader("laconic.demo", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = {row["name"]: row for row in outcome.rows}
    hero = outcome.hero
    return environment.get_template("page.html.jinja").render(
        data=Markup(_json(page_data(outcome))),
        rows=outcome.rows,
        hero=hero,
        ratio=hero["global_error"] / rows[CENTRE]["global_error"],
        saving=rows[REFERENCE]["bits"] / hero["bits"],
        alone=rows[ALONE],
        reference=REFERENCE,
        n_agents=outcome.network.n_agents,
        n_rounds=outcome.n_rounds,
        noise=landscape.NOISE**2,
        seed=outcome.seed,
        tuned_here=outcome.seed == SEED,
        seconds=outcome.seconds,
        version=__version__,
        machine=f"Python {platform.python_version()}, {platform.machine()}",
    )


def page_data(outcome: Outcome) -> dict[str, Any]:
    """All that the page's own program needs."""
    views = [outcome.runs[name] for name in VIEWS]
    maps: list[RandomFeatures] = []
    for run in views:
        if not any(run.features is known for known in maps):
            maps.append(run.features)
    numbers = {id(known): k for k, known in enumerate(maps)}
    return {
        "rows": landscape.ROWS,
        "columns": landscape.COLUMNS,
        "wide": _WIDE,
        "high": _HIGH,
        "truth": _numbers(landscape.landscape(landscape.grid(_WIDE, _HIGH))[None]),
        "edges": outcome.network.edges.tolist(),
        "moments": outcome.moments,
        "maps": [_map(features) for features in maps],
        "hero": outcome.hero["name"],
        "views": [
            {
                "name": run.name,
                "map": numbers[id(run.features)],
                "centre": run.centre,
                "models": _numbers(run.models.reshape(-1, run.models.shape[2])),
                "errors": _rounded(run.off),
                "traffic": _traffic(run, outcome.network),
            }
            for run in views
        ],
        "curves": [
            {
                "name": run.name,
                "bits": np.cumsum(run.bits.sum(axis=1))[np.array(outcome.moments) - 1].tolist(),
                "errors": _rounded(run.off.mean(axis=1)),
            }
            for run in outcome.runs.values()
        ],
    }


def _map(features: RandomFeatures) -> dict[str, Any]:
    """A feature map for the page, which knows those of two inputs, with a scaling or without."""
    scaling = features.scaling
    return {
        "frequencies": features.frequencies.ravel().tolist(),
        "centre": None if scaling is None else scaling.centre.tolist(),
        "scale": None if scaling is None else scaling.scale.tolist(),
        "most": None if scaling is None or not np.isfinite(scaling.reach) else scaling.reach,
        "linear": features.linear,
    }


def _numbers(rows: Array) -> dict[str, Any]:
    """Rows of numbers as 16 bits each, a scale a row: an eighth of a digit more than a picture can show."""
    scales = np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny) / _MOST
    codes = np.rint(rows / scales[:, None]).astype("<i2")
    return {"codes": base64.b64encode(codes.tobytes()).decode(), "scales": [float(f"{s:.6g}") for s in scales]}


def _traffic(run: Run, network: Network) -> dict[str, Any]:
    """Who spoke when: along a tree each message by itself, else a bit for each agent in each round."""
    if run.tree:
        return {"size": 0, "masks": "", "events": _events(run, network)}
    masks = ((run.bits > 0) << np.arange(run.bits.shape[1])).sum(axis=1).astype("<u2")
    return {"size": int(run.bits.max()), "masks": base64.b64encode(masks.tobytes()).decode(), "events": []}


def _events(run: Run, network: Network) -> list[list[Any]]:
    """Messages along the tree, [round, sender, bits, [receivers]]."""
    told = Routes(network).follow(run.bits > 0)
    return [[t + 1, agent, int(run.bits[t, agent]), list(to)] for t, agent, to in told]


def _rounded(values: Array) -> Any:
    """Three digits that count, of an array of any shape."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [float(f"{value:.3g}") for value in values]


def _json(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
