"""The report of a reproduction: one self-contained page, and a table with a row for each run.

What is absent from the results (a quick run, fewer sets or algorithms) is said to be absent; nothing is made up.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from laconic._files import written_whole
from laconic.experiments import findings, words
from laconic.experiments.batch import PUBLISHED
from laconic.experiments.settings import (
    BEST_CENTRE,
    BITS,
    DEFAULT,
    EDGE_PROBABILITY,
    ENDS,
    LOCAL_RLS,
    METHODS,
    N_FREQUENCIES,
    REGULARIZATION,
    SETTINGS,
    WAVES,
)
from laconic.experiments.tables import MARGINS, REFERENCE, mean_and_spread
from laconic.experiments.tuning import Tuning

Row = Mapping[str, Any]
View = dict[str, Any]

COLUMNS = (
    "set", "partition", "agents", "algorithm", "seed", "mse", "global_mse", "bits", "sends", "seconds", "parameters",
)  # fmt: skip

_PROTOCOLS = {
    "prepared": "prepared: rows, columns and scaling (of the whole matrix) of the sets that the paper's counts fit",
    "paper": "paper: the paper's words, every column scaled to [0, 1] on its own",
}


def write_summary(rows: Iterable[Row], folder: str | Path) -> Path:
    """Write ``summary.csv``: a row for each run, its parameters as JSON; an empty score is that of a diverged run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = [row.get(column) for column in COLUMNS[:-1]]
        writer.writerow([*cells, json.dumps(row.get("parameters", {}))])
    return _write(Path(folder) / "summary.csv", text.getvalue())


def write_report(results: Mapping[str, Any], folder: str | Path) -> Path:
    """Write ``report.html``, one file with its figures inside that asks nothing of the network.

    Parameters
    ----------
    results : dict
        What ``reproduce`` returns; any part may be missing.
    folder : path
        Where to write, and where the figures lie that ``results["figures"]`` names.
    """
    folder = Path(folder)
    environment = Environment(
        loader=PackageLoader("laconic.experiments", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    said = (
        "number", "milli", "spread", "reference", "count", "percent", "bits", "seconds", "steps", "symbol", "linked",
        "partition", "title",
    )  # fmt: skip
    environment.filters |= {name: getattr(words, name) for name in said}
    embed = partial(_embed, folder, results.get("figures") or {})
    page = environment.get_template("report.html.jinja").render(
        about=_about(results),
        constants={"L": N_FREQUENCIES, "ridge": REGULARIZATION, "bits": BITS, "p": EDGE_PROBABILITY},
        shows=findings.shows(results),
        limits=findings.limits(results),
        waves=_waves(results),
        accuracy=_accuracy(results),
        saving=_saving(results),
        times=_times(results),
        heterogeneous=_heterogeneous(results),
        batch=_batch(results),
        theory=_theory(results),
        sets=_sets(results),
        margins=MARGINS,
        figure=embed,
        further=_further(results),
    )
    return _write(folder / "report.html", page)


# --------------------------------------------------------------------------------------------------------------------
# What the sections show
# --------------------------------------------------------------------------------------------------------------------


def _about(results: Mapping[str, Any]) -> View:
    about = dict(results.get("about") or {})
    seeds = about.get("seeds") or []
    sets = list(results.get("sets") or {})
    every = (*METHODS, *WAVES)
    chosen = [name for name in every if name in (about.get("algorithms") or every)]
    command = ["laconic reproduce", f"--protocol {about.get('protocol', 'prepared')}"]
    command += [f"--set {' '.join(sets)}"] if sets and set(sets) != set(SETTINGS) else []
    named = [name.replace(" ", "-") for name in chosen]
    command += [f"--algorithm {' '.join(named)}"] if len(chosen) < len(every) else []
    command += ["--quick"] if about.get("quick") else [f"--seeds {len(seeds)}"] if seeds else []
    command += [f"--first-seed {seeds[0]}"] if seeds and seeds[0] else []
    facts = {
        "version": f"laconic {about['version']}" if about.get("version") else None,
        "protocol": _PROTOCOLS.get(about.get("protocol", ""), about.get("protocol")),
        "data": _cut(about),
        "seeds": ", ".join(map(str, seeds)) or None,
        "algorithms": ", ".join(about.get("algorithms") or []) or None,
        "started": about.get("started"),
        "wall time": words.seconds(about["seconds"]) if about.get("seconds") is not None else None,
        "machine": about.get("machine"),
        "software": ", ".join(
            f"{name} {about[name.lower()]}" for name in ("Python", "NumPy") if about.get(name.lower())
        ),
    }
    return {
        "facts": {name: fact for name, fact in facts.items() if fact},
        "command": " ".join(command),
        "protocol": about.get("protocol"),
        "n_seeds": len(seeds),
        "compared": findings.comparable(results),
    }


def _cut(about: Row) -> str | None:
    """What a quick look leaves out."""
    if not about.get("quick") and about.get("max_rows") is None:
        return None
    rows = f"at most {words.count(about['max_rows'])} rows" if about.get("max_rows") else "not all rows"
    return f"{rows} of each set: a look, not a result"


def _accuracy(results: Mapping[str, Any]) -> View | None:
    """Final MSE of every algorithm on every set, with the reference point and how far it is."""
    rows = [row for row in results.get("rows") or [] if row["partition"] == "shuffled"]
    own, everyone = (mean_and_spread(rows, column) for column in ("mse", "global_mse"))
    gaps = findings.deviations(results)
    sets = list(dict.fromkeys(row["set"] for row in rows))
    cells: dict[str, dict[str, View]] = {}
    for algorithm in _algorithms(rows):
        for name in sets:
            runs = [row for row in rows if (row["set"], row["algorithm"]) == (name, algorithm)]
            if not runs:
                continue
            key = (name, "shuffled", algorithm)
            gap = gaps.get((name, algorithm))
            base = own.get((name, "shuffled", "ODKLA"))
            cells.setdefault(algorithm, {})[name] = {
                "mse": own.get(key),
                "global_mse": everyone.get(key),
                "against": own[key][0] / base[0] - 1 if base and base[0] and key in own else None,
                "reference": REFERENCE.get(algorithm, {}).get(name),
                "deviation": gap,
                "off": gap is not None and not findings.within_tolerance(algorithm, gap),
                "diverged": sum(row["mse"] is None for row in runs),
                "runs": len(runs),
            }
    return {"sets": sets, "cells": cells} if cells else None


def _waves(results: Mapping[str, Any]) -> View | None:
    """Error on everyone's data and bits of waves, of ODKLA and QC-ODKLA, and of the ends of the scale."""
    rows = results.get("rows") or []
    errors, bits = mean_and_spread(rows, "global_mse"), mean_and_spread(rows, "bits")
    shown = ("ODKLA", "QC-ODKLA", LOCAL_RLS, *WAVES, DEFAULT, BEST_CENTRE)
    agents = {row["set"]: row["agents"] for row in rows}
    lines = []
    for name, partition in dict.fromkeys((row["set"], row["partition"]) for row in rows):
        keys = {a: (name, partition, a) for a in shown if (name, partition, a) in errors}
        cells = {a: {"mse": errors[key], "kbit": bits[key][0] / agents[name] / 1e3} for a, key in keys.items()}
        both = {WAVES[0], BEST_CENTRE} <= set(cells)
        ratio = cells[WAVES[0]]["mse"][0] / cells[BEST_CENTRE]["mse"][0] if both else None
        if WAVES[0] in cells:
            lines.append({"set": name, "partition": partition, "cells": cells, "ratio": ratio})
    return {"algorithms": shown, "lines": lines} if lines else None


def _saving(results: Mapping[str, Any]) -> list[View]:
    """A line for each set: what quantization, censoring and both saved, the price, and where the censor is silent."""
    lines = []
    for name, one in (results.get("sets") or {}).items():
        table = {entry["algorithm"]: entry for entry in one.get("communication") or []}
        if "ODKLA" not in table:
            continue
        base = table["ODKLA"]
        line: View = {"set": name, "bits": base["bits"], "silence": (one.get("censoring") or {}).get("QC-ODKLA")}
        for algorithm in ("Q-ODKLA", "C-ODKLA", "QC-ODKLA", *WAVES):
            entry = table.get(algorithm)
            line[algorithm] = entry and {"saved": entry["saved"], "price": entry["mse"] / base["mse"] - 1}
        both, quantized = table.get("QC-ODKLA"), table.get("Q-ODKLA")
        if both and quantized and both["bits"] and quantized["bits"]:
            line["factors"] = (
                base["bits"] / both["bits"],
                base["bits"] / quantized["bits"],
                quantized["bits"] / both["bits"],
            )
        lines.append(line)
    return lines


def _times(results: Mapping[str, Any]) -> View | None:
    table = results.get("times") or []
    if not table:
        return None
    cells: dict[str, dict[str, Row]] = {}
    for entry in table:
        cells.setdefault(entry["title"], {})[entry["algorithm"]] = entry
    partial_sets = {
        entry["title"]: entry["paper_seconds_in_proportion"] / entry["paper_seconds"]
        for entry in table
        if entry["paper_seconds"] and not 0.999 < entry["paper_seconds_in_proportion"] / entry["paper_seconds"] < 1.001
    }
    return {"algorithms": _algorithms(table), "cells": cells, "partial": partial_sets}


def _heterogeneous(results: Mapping[str, Any]) -> View | None:
    rows = [row for row in results.get("rows") or [] if row["partition"] != "shuffled"]
    scores = mean_and_spread(rows, "global_mse")
    algorithms = [a for a in _algorithms(rows) if any(key[2] == a for key in scores)]
    lines = []
    for name, partition in dict.fromkeys((row["set"], row["partition"]) for row in rows):
        cells = {a: scores[name, partition, a] for a in algorithms if (name, partition, a) in scores}
        ratio = cells["Local"][0] / cells["ODKLA"][0] if {"Local", "ODKLA"} <= set(cells) else None
        lines.append({"set": name, "partition": partition, "cells": cells, "ratio": ratio})
    return {"algorithms": algorithms, "lines": lines} if lines else None


def _batch(results: Mapping[str, Any]) -> list[View]:
    online = mean_and_spread([row for row in results.get("rows") or [] if row["partition"] == "shuffled"], "mse")
    lines = []
    for name, one in (results.get("sets") or {}).items():
        if one.get("batch"):
            own = online.get((name, "shuffled", "ODKLA"))
            waves = online.get((name, "shuffled", WAVES[0]))
            more = {"published": PUBLISHED.get(name), "online": own and own[0], "waves": waves and waves[0]}
            lines.append({"set": name, **more, **one["batch"]})
    return lines


def _theory(results: Mapping[str, Any]) -> View:
    """What each erratum's experiment gave, set by set."""
    sets = results.get("sets") or {}
    outcomes = {name: one.get("theory") or {} for name, one in sets.items()}
    own, everyone = (mean_and_spread(results.get("rows") or [], column) for column in ("mse", "global_mse"))
    parted = []
    for name, partition, algorithm in own:
        others = [(name, partition, "ODKLA"), (name, partition, "Local")]
        if algorithm == "Local" and partition != "shuffled" and all(o in own and o in everyone for o in others):
            ratios = [scores[others[1]][0] / scores[others[0]][0] for scores in (own, everyone)]
            parted.append({"set": name, "partition": partition, "own": ratios[0], "everyone": ratios[1]})
    return {
        "steps": {name: t for name, t in outcomes.items() if t.get("printed") and t.get("growing")},
        "tuned": {name: own[name, "shuffled", "ODKLA"][0] for name in sets if (name, "shuffled", "ODKLA") in own},
        "lemma": {name: t["lemma"] for name, t in outcomes.items() if t.get("lemma")},
        "saturation": {name: t["saturation"] for name, t in outcomes.items() if t.get("saturation")},
        "ridge": {name: t["ridge"] for name, t in outcomes.items() if t.get("ridge")},
        "regret": {name: _curves(t["regret"]) for name, t in outcomes.items() if t.get("regret")},
        "parted": parted,
        "censoring": {name: one["censoring"] for name, one in sets.items() if one.get("censoring")},
    }


def _curves(regret: Mapping[str, Any]) -> dict[str, View]:
    """The last regret of each method, with the slopes."""
    return {
        name: {**curve, "last": curve["regret"][-1], "last_collective": curve["collective"][-1]}
        for name, curve in regret.items()
        if isinstance(curve, Mapping)
    }


def _sets(results: Mapping[str, Any]) -> list[View]:
    learners: dict[str, dict[str, str]] = {}
    for row in results.get("rows") or []:
        said = (row.get("parameters") or {}).get("learner")
        if said:
            learners.setdefault(row["set"], {})[row["algorithm"]] = said
    views = []
    for name, one in (results.get("sets") or {}).items():
        tunings = [_tuning(stored) for stored in (one.get("tuning") or {}).values()]
        views.append(
            {
                "name": name,
                "title": one.get("title", name),
                "facts": {
                    "rows": words.count(one.get("rows")),
                    "inputs": words.count(one.get("inputs")),
                    "agents N": one.get("n_agents", words.ABSENT),
                    "rounds T": words.count(one.get("rounds")),
                    "σ": words.number(one.get("bandwidth")),
                    "α, β": f"{words.number(one.get('alpha'))}, {words.number(one.get('beta'))}",
                },
                "description": one.get("description", ""),
                "citation": one.get("citation", ""),
                "tuning": tunings,
                "communication": one.get("communication") or [],
                "edges": one.get("edges") or {},
                "learners": learners.get(name, {}),
            }
        )
    return views


def _tuning(stored: Mapping[str, Any]) -> View:
    tuning = Tuning.from_json(stored)
    near = []
    for point, score in tuning.neighbours().items():
        (step,) = (name for name, value in zip(tuning.axes, point, strict=True) if value != tuning.steps[name])
        value = dict(zip(tuning.axes, point, strict=True))[step]
        near.append({"steps": {step: value}, "above": score / tuning.score - 1 if np.isfinite(score) else None})
    return {
        "method": tuning.method,
        "steps": tuning.steps,
        "score": tuning.score,
        "near": near,
        "axes": tuning.axes,
        "extended": tuning.extended,
        "on_edge": tuning.on_edge(),
        "points": len(tuning.table),
        "diverged": sum(not np.isfinite(score) for score in tuning.table.values()),
    }


def _further(results: Mapping[str, Any]) -> list[str]:
    """Figures that no section above asks for."""
    placed = {"heterogeneous"}
    placed |= {f"{name}{kind}" for name in results.get("sets") or {} for kind in ("", "-tuning", "-regret", "-lemma")}
    return [name for name in results.get("figures") or {} if name not in placed]


# --------------------------------------------------------------------------------------------------------------------
# Order and files
# --------------------------------------------------------------------------------------------------------------------


def _algorithms(rows: Iterable[Row]) -> list[str]:
    """The algorithms of the rows: the paper's order, then ours, the ends of the scale, and others."""
    there = list(dict.fromkeys(row["algorithm"] for row in rows))
    known = [name for name in (*METHODS, *WAVES, DEFAULT, *ENDS) if name in there]
    return known + [name for name in there if name not in known]


def _embed(folder: Path, figures: Mapping[str, str], name: str) -> str | None:
    """The PNG of that name as a data address; None if the folder holds none."""
    path = (folder / figures.get(name, "")).resolve()
    if path.suffix != ".png" or not path.is_relative_to(folder.resolve()) or not path.is_file():
        return None
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(text.encode())
    return path
