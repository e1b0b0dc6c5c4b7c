"""What a reproduction shows and what it does not, in sentences. Every number in them is computed from the results.

A sentence whose numbers are missing, because a run was quick or had fewer sets or algorithms, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from laconic.experiments import words
from laconic.experiments.settings import BEST_CENTRE, DEFAULT, LOCAL_RLS, SETTINGS, WAVES
from laconic.experiments.tables import MARGINS, REFERENCE, mean_and_spread
from laconic.experiments.tuning import Tuning
from laconic.experiments.words import each, exponents, join, known, percent, shares, some, span, times, title

Results = Mapping[str, Any]
Scores = dict[tuple[str, str, str], tuple[float, float]]

#: How far from a reference point counts as agreement.
TOLERANCE = {"QC-ODKLA": 0.10}
USUAL_TOLERANCE = 0.05

_SHUFFLED = "shuffled"
_PAPERS = ("RFF-DOKL", "DOKL", "ODKLA")


class Finding(NamedTuple):
    """A heading of a few words, and the sentences."""

    about: str
    text: str


def comparable(results: Results) -> bool:
    """Whether the reference points speak of the same data: the prepared sets, all rows."""
    about = results.get("about", {})
    return about.get("protocol") == "prepared" and not about.get("quick")


def deviations(results: Results) -> dict[tuple[str, str], float]:
    """How far the mean MSE of (set, algorithm) lies from its reference point, as a share of it."""
    if not comparable(results):
        return {}
    scores = mean_and_spread(results.get("rows", []), "mse")
    return {
        (name, algorithm): 1000 * scores[name, _SHUFFLED, algorithm][0] / reference - 1
        for algorithm, by_set in REFERENCE.items()
        for name, reference in by_set.items()
        if (name, _SHUFFLED, algorithm) in scores
    }


def within_tolerance(algorithm: str, deviation: float) -> bool:
    """Whether a deviation is small enough to count as agreement."""
    return abs(deviation) <= TOLERANCE.get(algorithm, USUAL_TOLERANCE)


def shows(results: Results) -> list[Finding]:
    """The conclusions that follow from the results, as sentences."""
    scores = mean_and_spread(results.get("rows", []), "mse")
    found = [
        _agreement(results),
        _closeness(scores),
        _price(scores),
        _alone(scores),
        _ends(scores),
        _waves(results),
        _waves_apart(results),
        _nothing_said(results),
        _needs(results),
        _saving(results),
        _arrival(results),
        _collaboration(results),
        _speed(results),
        _steps(results),
        _lemma(results),
        _slopes(results),
    ]
    return [finding for finding in found if finding is not None]


def limits(results: Results) -> list[Finding]:
    """The limits of the results, as sentences."""
    found = [_hindsight(results), _edges(results), _few(results), _incomplete(results), _unmeasured()]
    return [finding for finding in found if finding is not None]


# --------------------------------------------------------------------------------------------------------------------
# What it shows
# --------------------------------------------------------------------------------------------------------------------


def _agreement(results: Results) -> Finding | None:
    gaps = deviations(results)
    if not gaps:
        return None
    agree = sum(within_tolerance(algorithm, gap) for (_, algorithm), gap in gaps.items())
    name, algorithm = max(gaps, key=lambda key: abs(gaps[key]))
    return Finding(
        "Against the reference points",
        f"{agree} of {len(gaps)} reference points of an unrelated implementation are met within "
        f"{USUAL_TOLERANCE:.0%} ({_tolerances()}). The largest deviation is "
        f"{percent(gaps[name, algorithm], '+.1f')}, "
        f"of {algorithm} on {title(name)}.",
    )


def _tolerances() -> str:
    return ", ".join(f"{name}: {share:.0%}" for name, share in TOLERANCE.items())


def _closeness(scores: Scores) -> Finding | None:
    gaps = {}
    for name in _sets(scores):
        errors = [scores[name, _SHUFFLED, a][0] for a in _PAPERS if (name, _SHUFFLED, a) in scores]
        if len(errors) == len(_PAPERS):
            gaps[name] = max(errors) / min(errors) - 1
    if not gaps:
        return None
    widest = max(gaps, key=gaps.__getitem__)
    most = f"; they differ most on {title(widest)}" if len(gaps) > 1 else ""
    return Finding(
        "The paper's three that speak freely",
        f"RFF-DOKL, DOKL and ODKLA end within {gaps[widest]:.1%} of each other on "
        f"{each(len(gaps))}{most}. The paper calls them very close.",
    )


def _price(scores: Scores) -> Finding | None:
    ratios = _ratios(scores, "QC-ODKLA", "ODKLA")
    if not ratios:
        return None
    return Finding(
        "The price of saying less",
        f"QC-ODKLA ends {span(ratios.values())} ODKLA's mean squared error. The paper calls it comparable.",
    )


def _alone(scores: Scores) -> Finding | None:
    ratios = _ratios(scores, "Local", "ODKLA")
    if not ratios:
        return None
    text = f"Local, which sends nothing, ends {span(ratios.values())} ODKLA's error on shuffled data."
    against = _ratios(scores, "Local", "QC-ODKLA")
    if against:
        better = [name for name, ratio in against.items() if ratio <= 1]
        text += f" It is at least as accurate as QC-ODKLA on {some(better, len(against))}."
    return Finding("What no communication would have given", text)


def _ends(scores: Scores) -> Finding | None:
    ratios = _ratios(scores, "ODKLA", "Centralised RLS")
    if not ratios:
        return None
    text = f"ODKLA's error is {times(ratios.values())} that of recursive least squares in one place."
    alone = _ratios(scores, "Local RLS", "ODKLA")
    if alone:
        better = [name for name, ratio in alone.items() if ratio < 1]
        text += (
            " Recursive least squares by each agent alone, without a message, beats ODKLA on "
            f"{some(better, len(alone))}; it costs O(L²) a sample where ODKLA costs O(L)."
        )
    return Finding("The two ends of the scale", text)


def _waves(results: Results) -> Finding | None:
    """Error and bits of WaveRLS on shuffled rows, beside a centre, ODKLA, and agents that never speak."""
    rows = results.get("rows", [])
    errors, bits = mean_and_spread(rows, "mse"), mean_and_spread(rows, "bits")
    centre, dense = _ratios(errors, WAVES[0], BEST_CENTRE), _ratios(errors, WAVES[0], "ODKLA")
    fewer = _ratios(bits, "ODKLA", WAVES[0])
    if not (centre and dense and fewer):
        return None
    text = (
        f"WaveRLS, with its defaults, has {times(centre.values())} the error of the best centre and "
        f"{times(dense.values())} ODKLA's, and sends {times(fewer.values())} fewer bits than ODKLA."
    )
    alone = _ratios(errors, WAVES[0], LOCAL_RLS)
    if alone:
        better = [name for name, ratio in alone.items() if ratio < 1]
        text += (
            f" The zero bits of agents that do recursive least squares alone are the harder baseline: it is better "
            f"than they are on {some(better, len(alone))}; their error is "
            f"{times(1 / ratio for ratio in alone.values())} its own."
        )
    return Finding("Waves", text)


def _nothing_said(results: Results) -> Finding | None:
    """The default, untuned and with features of its own, beside algorithms whose steps were tuned."""
    rows = results.get("rows", [])
    scores = {kind: mean_and_spread(rows, kind) for kind in ("mse", "bits")}
    tuned, censored = (_ratios(scores["mse"], DEFAULT, name) for name in ("ODKLA", "QC-ODKLA"))
    fewer = _ratios(scores["bits"], "QC-ODKLA", DEFAULT)
    if not (tuned and censored and fewer):
        return None
    text = (
        f"What `laconic run` does where nothing is said, neither the paper's bandwidth nor a step tuned, has "
        f"{times(tuned.values())} the error of tuned ODKLA and {times(censored.values())} that of tuned QC-ODKLA, and "
        f"sends {times(fewer.values())} fewer bits than the latter."
    )
    return Finding("Nothing said", text)


def _waves_apart(results: Results) -> Finding | None:
    """WaveRLS where agents see different data."""
    scores = mean_and_spread(results.get("rows", []), "global_mse")
    parts = []
    for partition in dict.fromkeys(key[1] for key in scores if key[1] != _SHUFFLED):
        centre, alone = (_ratios(scores, *pair, partition) for pair in ((WAVES[0], BEST_CENTRE), (LOCAL_RLS, WAVES[0])))
        if centre and alone:
            parts.append(
                f"with rows {words.partition(partition)} its global error is {times(centre.values())} the best "
                f"centre's, that of agents alone {times(alone.values())} its own"
            )
    return Finding("Waves where agents see different data", f"{'; '.join(parts).capitalize()}.") if parts else None


def _needs(results: Results) -> Finding | None:
    work = [e["work"] for e in results.get("times") or [] if e["algorithm"] == WAVES[0] and known(e.get("work"))]
    if not work:
        return None
    return Finding(
        "What waves need that ODKLA does not",
        f"O(D²) work a sample and O(D²) memory at every agent (here {times(work)} ODKLA's seconds), a spanning tree, "
        "and lockstep or slots that all agents agree on to within a hop.",
    )


def _saving(results: Results) -> Finding | None:
    total, quantizer, censor = [], [], []
    for one in results.get("sets", {}).values():
        bits = {entry["algorithm"]: entry["bits"] for entry in one.get("communication") or []}
        if all(bits.get(name) for name in ("ODKLA", "Q-ODKLA", "QC-ODKLA")):
            total.append(bits["ODKLA"] / bits["QC-ODKLA"])
            quantizer.append(bits["ODKLA"] / bits["Q-ODKLA"])
            censor.append(bits["Q-ODKLA"] / bits["QC-ODKLA"])
    if not total:
        return None
    text = (
        f"QC-ODKLA sends {times(total)} fewer bits than ODKLA. Of that factor the quantizer alone gives "
        f"{times(quantizer)}, the censor {times(censor)}."
    )
    silences = [
        one["censoring"]["QC-ODKLA"]
        for one in results.get("sets", {}).values()
        if (one.get("censoring") or {}).get("QC-ODKLA")
    ]
    if silences:
        early = [entry["first_200"] for entry in silences if known(entry["first_200"])]
        late = [entry["after_200"] for entry in silences if known(entry["after_200"])]
        text += (
            f" The censor is silent early: {shares(early)} of the slots of the first 200 rounds send" if early else ""
        )
        text += f", {shares(late)} of those after." if early and late else "." if early else ""
    return Finding("Where the saving comes from", text)


def _arrival(results: Results) -> Finding | None:
    parts = []
    for algorithm in ("QC-ODKLA", "C-ODKLA", "Q-ODKLA"):
        entries = [
            entry
            for one in results.get("sets", {}).values()
            for entry in one.get("communication") or []
            if entry["algorithm"] == algorithm
        ]
        if entries:
            counts = [sum(entry.get(f"bits_within_{m:.0%}") is not None for entry in entries) for m in MARGINS]
            reached = f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
            parts.append(f"{algorithm} on {reached} of {len(entries)} set{'s' * (len(entries) != 1)}")
    if not parts:
        return None
    margins = ", ".join(f"{m:.0%}" for m in MARGINS[:-1]) + f" and {MARGINS[-1]:.0%}"
    return Finding("Coming near", f"Within {margins} of ODKLA's final error come {join(parts)}, on every seed.")


def _collaboration(results: Results) -> Finding | None:
    scores = mean_and_spread(results.get("rows", []), "global_mse")
    parts = []
    for partition in dict.fromkeys(key[1] for key in scores):
        alone, quiet = (_ratios(scores, name, "ODKLA", partition) for name in ("Local", "QC-ODKLA"))
        if partition != _SHUFFLED and alone:
            said = f"with rows {words.partition(partition)} Local's global error is {times(alone.values())} ODKLA's"
            parts.append(said + (f", QC-ODKLA's {times(quiet.values())}" if quiet else ""))
    if not parts:
        return None
    return Finding("Where collaboration matters", f"Agents that see different data: {'; '.join(parts)}.")


def _speed(results: Results) -> Finding | None:
    table = [entry for entry in results.get("times") or [] if known(entry["ratio"])]
    if not table:
        return None
    least = min(table, key=lambda entry: entry["ratio"])
    return Finding(
        "Running time",
        f"Against the paper's table our runs are {least['ratio']:.0f} to {max(e['ratio'] for e in table):.0f} times "
        f"faster in {len(table)} cells (least: {least['algorithm']} on {least['title']}). The machines differ, so "
        "the ratio is not the merit of the code alone.",
    )


def _steps(results: Results) -> Finding | None:
    printed, growing = (_theory(results, kind) for kind in ("printed", "growing"))
    if not printed or not growing:
        return None
    wild = [name for name, outcome in printed.items() if outcome["diverged"]]
    tame = [name for name, outcome in growing.items() if not outcome["diverged"]]
    return Finding(
        "The theorem's steps",
        f"As printed, η = ρ = 1/√T, they diverge on {some(wild, len(printed))}; η = ρ = √T stay finite on "
        f"{some(tame, len(growing))}.",
    )


def _lemma(results: Results) -> Finding | None:
    outcomes = _theory(results, "lemma")
    if not outcomes:
        return None
    kept = [name for name, outcome in outcomes.items() if outcome["holds"]]
    broken = [name for name, outcome in outcomes.items() if outcome["violations_of_print"]]
    return Finding(
        "Lemma 1",
        f"The norm of the channel's error keeps its bound in every round on {some(kept, len(outcomes))}; the square, "
        f"which is what the paper prints, exceeds the same bound on {some(broken, len(outcomes))}.",
    )


def _slopes(results: Results) -> Finding | None:
    slopes: dict[str, list[float]] = {}
    for outcome in _theory(results, "regret").values():
        for name, curve in outcome.items():
            if isinstance(curve, Mapping) and known(curve.get("slope")):
                slopes.setdefault(name, []).append(float(curve["slope"]))
    if not slopes:
        return None
    parts = [f"{exponents(values)} for {name}" for name, values in slopes.items()]
    return Finding(
        "The growth of regret",
        f"Fitted in log-log, regret grows with an exponent of {join(parts)}. The theorem's is 0.50 for its own steps; "
        "the steps here are constants, tuned for the length of the run, under which regret turns linear in the end.",
    )


# --------------------------------------------------------------------------------------------------------------------
# What it does not show
# --------------------------------------------------------------------------------------------------------------------


def _hindsight(results: Results) -> Finding | None:
    prefix = results.get("about", {}).get("prefix", 1.0)
    seen = (
        "the same streams that are scored" if prefix == 1 else f"the first {prefix:.0%} of the streams that are scored"
    )
    return Finding(
        "Steps in hindsight",
        f"As in the paper, the steps of every method are the best of a grid on {seen}, and scaling to [0, 1] uses all "
        "rows. Nobody in the field has that; all methods have the same advantage.",
    )


def _edges(results: Results) -> Finding | None:
    """Winners that the extensions of the grid did not bring inside."""
    left = [
        f"{stored['method']} on {title(name)}"
        for name, one in results.get("sets", {}).items()
        for stored in (one.get("tuning") or {}).values()
        if Tuning.from_json(stored).on_edge()
    ]
    if not left:
        return None
    return Finding("Grids that end too soon", f"The winner still lies on the edge of its grid for {join(left)}.")


def _few(results: Results) -> Finding | None:
    seeds = results.get("about", {}).get("seeds") or []
    spreads = {key: s / m for key, (m, s) in mean_and_spread(results.get("rows", []), "mse").items() if m}
    own = {key[0]: spread for key, spread in spreads.items() if key[1:] == (_SHUFFLED, "ODKLA")}
    if not seeds or not own:
        return None
    if len(seeds) == 1:
        return Finding("Few draws", "One seed: how far its draws decide the numbers is not known.")
    return Finding(
        "Few draws",
        f"{len(seeds)} seeds: each draws the shuffle, the frequencies and the graph together. "
        f"The standard deviation of ODKLA's error is {shares(own.values())} of its mean, and a difference between "
        "methods that is smaller than that is seen only because all run on the same draws.",
    )


def _incomplete(results: Results) -> Finding | None:
    parts = []
    missing = [setting.title for name, setting in SETTINGS.items() if name not in results.get("sets", {})]
    if missing:
        parts.append(f"Not run: {join(missing)}.")
    for name, one in results.get("sets", {}).items():
        whole = SETTINGS[name].paper_rows if name in SETTINGS else 0
        if whole and one.get("rows") and one["rows"] < 0.99 * whole:
            parts.append(f"{one['title']}: {one['rows']:,} of the paper's {whole:,} rows.")
    if results.get("about", {}).get("quick"):
        parts.append("A quick run is a look, not a result.")
    return Finding("Not the whole paper", " ".join(parts)) if parts else None


def _unmeasured() -> Finding:
    return Finding(
        "Not measured",
        "The paper's figures are not published as numbers, so its curves cannot be laid over ours. Bits are those of "
        "the numbers sent, once for each broadcast; headers, links and losses are not in them. Shuffled rows have no "
        "drift.",
    )


# --------------------------------------------------------------------------------------------------------------------
# Parts of the results
# --------------------------------------------------------------------------------------------------------------------


def _sets(scores: Scores) -> list[str]:
    return list(dict.fromkeys(key[0] for key in scores))


def _ratios(scores: Scores, one: str, other: str, partition: str = _SHUFFLED) -> dict[str, float]:
    """Error of one algorithm over that of another, for each set that has both."""
    return {
        name: scores[name, partition, one][0] / scores[name, partition, other][0]
        for name in _sets(scores)
        if (name, partition, one) in scores and scores.get((name, partition, other), (0.0, 0.0))[0] > 0
    }


def _theory(results: Results, kind: str) -> dict[str, Mapping[str, Any]]:
    found = {name: (one.get("theory") or {}).get(kind) for name, one in results.get("sets", {}).items()}
    return {name: outcome for name, outcome in found.items() if outcome}
