"""Figures and report of a reproduction: they hold the numbers they are given and ask nothing of the network."""

import base64
import copy
import csv
import dataclasses
import json
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from conftest import make_stream

import laconic as lc
from laconic.experiments import figures, findings, tables, words
from laconic.experiments.methods import methods
from laconic.experiments.report import COLUMNS, write_report, write_summary
from laconic.experiments.settings import ENDS, METHODS, SETTINGS, WAVES
from laconic.experiments.tuning import Tuning

SEEDS = (0, 1)
STEPS = {"RFF-DOKL": {"step": 0.3}, "Local": {"step": 0.3}}
HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="module")
def traces():
    """Every method on two seeds of a small stream, with thresholds that censor for a while."""
    setting = dataclasses.replace(SETTINGS["air-quality"], alpha=1.0, beta=0.95)
    learners = {
        name: method.make(STEPS.get(name, {"rho": 0.2, "eta": 1.0})) for name, method in methods(setting).items()
    }
    made = {name: [] for name in METHODS}
    for seed in SEEDS:
        X, y = make_stream(120, 4, seed=seed)
        space = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=8, bandwidth=0.5, seed=seed)
        runs = lc.sweep(learners, space, lc.Network.ring(4), X, y, collective=True)
        for name in METHODS:
            made[name].append(runs[name])
    return made


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were drawn, as they are before they are written."""
    kept = []
    write = figures._save

    def keep(figure, path):
        kept.append(figure)
        return write(figure, path)

    monkeypatch.setattr(figures, "_save", keep)
    return kept


def line(panel, label):
    (found,) = (one for one in panel.lines if one.get_label() == label)
    return found


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


# Figures ------------------------------------------------------------------------------------------------------------


def test_every_figure_is_written_as_png_and_as_pdf(traces, tmp_path):
    before = dict(mpl.rcParams)
    written = figures.draw_set("Air", traces, tmp_path / "new" / "air")
    assert [path.name for path in written] == ["air.png", "air.pdf"]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert written[1].read_bytes().startswith(b"%PDF")
    assert mpl.image.imread(written[0]).shape[1] == 10.5 * 150
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_the_same_numbers_make_the_same_files(traces, tmp_path):
    for first, second in zip(
        figures.draw_set("Air", traces, tmp_path / "a"), figures.draw_set("Air", traces, tmp_path / "b"), strict=True
    ):
        assert first.read_bytes() == second.read_bytes()


def test_curves_end_at_the_means_over_the_seeds(traces, drawn, tmp_path):
    figures.draw_set("Air", traces, tmp_path / "air")
    panels = drawn[0].axes
    for name in set(METHODS) - {"Local"}:
        runs = traces[name]
        costs = (120, np.mean([t.sent.sum() for t in runs]), np.mean([t.bits.sum() for t in runs]))
        for panel, cost in zip(panels, costs, strict=True):
            x, y = line(panel, name).get_data()
            assert x[-1] == cost
            assert y[-1] == pytest.approx(np.mean([t.mse()[-1] for t in runs]), rel=1e-12)
    x, y = line(panels[0], "Local").get_data()
    assert y[-1] == pytest.approx(np.mean([t.mse()[-1] for t in traces["Local"]]), rel=1e-12)
    assert texts(drawn[0]).count("Local: sends nothing") == 2


def test_methods_differ_in_colour_dashes_and_marker_and_look_alike_everywhere(traces, drawn, tmp_path):
    figures.draw_set("Air", traces, tmp_path / "all")
    figures.draw_set("Air", {"QC-ODKLA": traces["QC-ODKLA"]}, tmp_path / "one")
    looks = {name: figures._look(name) for name in METHODS}
    for part in zip(*looks.values(), strict=True):
        assert len(set(part)) == len(METHODS)
    every = {name: figures._look(name) for name in (*METHODS, *WAVES, *ENDS)}
    assert len({look.marker for look in every.values()}) == len({look.dashes for look in every.values()}) + 1 == 12
    both = [line(figure.axes[0], "QC-ODKLA") for figure in drawn]
    assert both[0].get_color() == both[1].get_color() == looks["QC-ODKLA"].color
    assert both[0].get_marker() == both[1].get_marker() == looks["QC-ODKLA"].marker


@pytest.mark.slow
def test_a_set_figure_tells_its_facts(traces, drawn, tmp_path):
    figures.draw_set("Air", traces, tmp_path / "air")
    said = texts(drawn[0])
    for fact in ("Air: N = 4, L = 8, σ = 0.5, α = 1, β = 0.95, 2 seeds", "(a)", "(b)", "(c)", "one standard deviation"):
        assert fact in said
    figures.draw_set("Air", traces, tmp_path / "air", caption="of another kind")
    assert "Air: of another kind" in texts(drawn[1])


@pytest.mark.slow
def test_runs_that_diverged_are_left_out_and_named(traces, drawn, tmp_path):
    lost = dataclasses.replace(traces["DOKL"][0], about={**traces["DOKL"][0].about, "diverged": True})
    figures.draw_set("Air", {**traces, "DOKL": [lost, lost]}, tmp_path / "air")
    assert "Diverged and left out: DOKL" in texts(drawn[0])
    assert "DOKL" not in [one.get_label() for one in drawn[0].axes[0].lines]
    with pytest.raises(ValueError, match="did not diverge"):
        figures.draw_set("Air", {"DOKL": [lost]}, tmp_path / "air")


def test_regret_shows_its_slopes_and_survives_values_below_zero(drawn, tmp_path):
    curve = {"rounds": [1, 10, 100], "regret": [-1.0, 2.0, 6.0], "collective": [1.0, 3.0, 9.0]}
    curves = {"ODKLA": {**curve, "slope": 0.54321, "collective_slope": float("nan")}}
    figures.draw_regret("Air", curves, tmp_path / "regret")
    own, everyone = drawn[0].axes
    assert line(own, "ODKLA: slope 0.54").get_ydata().tolist() == [2.0, 6.0]
    assert line(everyone, "ODKLA: slope not fitted").get_ydata().tolist() == [1.0, 3.0, 9.0]


def test_the_lemma_is_drawn_beside_its_bound(drawn, tmp_path):
    figures.draw_lemma("Air", [1, 2, 3], [0.5, 2.0, 3.0], [4.0, 4.0, 4.0], tmp_path / "lemma", printed=4.0)
    assert line(drawn[0].axes[0], "measured $\\|E_t\\|_F^2$").get_ydata().tolist() == [0.25, 4.0, 9.0]
    assert line(drawn[0].axes[0], "bound on $\\|E_t\\|_F$").get_ydata().tolist() == [4.0, 4.0, 4.0]


def test_heterogeneous_points_are_the_means(drawn, tmp_path):
    every = (*METHODS, *WAVES, *ENDS)
    rows = [row("energy", a, seed, part, global_mse=0.01 * (1 + seed)) for a in every for seed in SEEDS
            for part in ("shuffled", "sorted-by-target")]  # fmt: skip
    figures.draw_heterogeneous([*rows, row("energy", "Local RLS", 0, global_mse=None)], tmp_path / "het")
    assert [panel.get_title(loc="left") for panel in drawn[0].axes] == ["shuffled", "sorted by target"]
    for panel in drawn[0].axes:
        assert [bars.lines[0].get_ydata().tolist() for bars in panel.containers] == [[pytest.approx(0.015)]] * 12
    assert all(path.exists() for path in figures.draw_heterogeneous([], tmp_path / "none"))


def test_tuning_marks_the_winner(drawn, tmp_path):
    figures.draw_tuning(grid("ODKLA"), tmp_path / "one")
    figures.draw_tuning({"ODKLA": grid("ODKLA"), "Local": grid("Local")}, tmp_path / "two")
    said = texts(drawn[0])
    assert "best" in said and "+100" in said and "div." in said
    (frame,) = (patch for patch in drawn[0].axes[0].patches if patch.get_linewidth() > 2)
    assert frame.get_xy() == (0.5, 0.5)  # the cell of eta = 2, rho = 0.5
    assert len(drawn[1].axes) == 2


# Report -------------------------------------------------------------------------------------------------------------


def row(name, algorithm, seed, partition="shuffled", mse=0.003, global_mse=0.004, bits=100):
    return {
        "set": name, "partition": partition, "agents": 5, "algorithm": algorithm, "seed": seed, "mse": mse,
        "global_mse": global_mse, "bits": bits, "sends": 10, "seconds": 0.002,
        "parameters": {"rho": 0.5, "rounds": 1464, "learner": f"Learner of {algorithm}"},
    }  # fmt: skip


def grid(method):
    if method in STEPS:
        return Tuning(method, {"step": 0.2}, 0.003, {(0.1,): 0.004, (0.2,): 0.003, (0.4,): np.inf},
                      {"step": [0.1, 0.2, 0.4]}, 0)  # fmt: skip
    axes = {"rho": [0.2, 0.5, 1.0], "eta": [1.0, 2.0, 3.0]}
    table = {(a, b): 0.003 for a in axes["rho"] for b in axes["eta"]}
    table |= dict.fromkeys(table, 0.006) | {(0.5, 2.0): 0.003, (0.2, 1.0): np.inf, (0.5, 3.0): 0.00315}
    return Tuning(method, {"rho": 0.5, "eta": 2.0}, 0.003, table, axes, 2)


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("drawn") / "lemma"
    return figures.draw_lemma("a", [1, 2], [1, 2], [2, 2], path)[0].read_bytes()


@pytest.fixture
def results(traces, picture, tmp_path):
    """Results of one set as a reproduction makes them, its figures in place."""
    curve = {"regret": [1.0, 7.25], "collective": [1.5, 8.125], "slope": 0.512, "collective_slope": 0.55}
    run = {"mse": 0.00136, "training_mse": 0.0013, "iterations": 347, "converged": True, "sends": 299, "bits": 956800}
    rows = [row("air-quality", a, s, part) for a in METHODS for s in SEEDS for part in ("shuffled", "sorted-by-target")]
    rows += [row("air-quality", a, s, mse=0.0015) for a in ("Local RLS", "Centralised RLS") for s in SEEDS]
    rows += [
        row("air-quality", a, s, part, mse=0.0016, global_mse=error, bits=bits)
        for a, error, bits in (("WaveRLS", 0.0016, 5), ("WaveRLS frugal", 0.0018, 3), ("Best centre", 0.0015, 50))
        for s in SEEDS
        for part in ("shuffled", "sorted-by-target")
    ]
    one = {
        "title": "Air quality", "n_agents": 5, "bandwidth": 0.5, "alpha": 4.0, "beta": 0.99, "rows": 7320, "inputs": 13,
        "rounds": 1464, "edges": {"0": [[0, 1], [1, 2]]}, "description": "Hourly answers.",
        "citation": "De Vito, 2008. doi:10.24432/C59K5F",
        "tuning": {name: grid(name).to_json() for name in METHODS}, "communication": tables.communication(traces),
        "censoring": {name: tables.censored_rounds(traces[name][0]) for name in ("QC-ODKLA", "C-ODKLA")},
        "batch": {"training_share": 0.7, "centralised_mse": 0.00129, "dkla": {**run, "sends": 930},
                  "coke": run | {"v": 1.0, "mu": 0.99}},
        "theory": {
            "printed": {"diverged": True, "round": 5, "mse": None, "eta": 0.0261, "rho": 0.0261},
            "growing": {"diverged": False, "round": None, "mse": 0.0123, "eta": 38.3, "rho": 38.3},
            "regret": {"rounds": [1, 1464], "comparator_mse": 0.001, "ODKLA": curve, "Local": curve},
            "lemma": {"rounds": [1, 2], "measured": [1.0, 3.0], "bound": [5.0, 5.0], "printed_bound": 5.0,
                      "holds": True, "violations_of_print": 17, "range": 2.0},
            "saturation": [{"range": 0.02, "diverged": True, "round": 901, "mse": None, "saturated": 0.98}],
            "ridge": {"matching": 10.74, "batch": 79.12},
        },
    }  # fmt: skip
    (tmp_path / "figures").mkdir()
    for name in ("air-quality", "more"):
        (tmp_path / "figures" / f"{name}.png").write_bytes(picture)
    about = {"version": "0.1.0", "protocol": "prepared", "seeds": [0, 1], "quick": False, "machine": "a machine",
             "python": "3.11", "numpy": "2", "seconds": 161.0, "started": "today"}  # fmt: skip
    return {
        "about": about, "sets": {"air-quality": one}, "rows": rows, "times": tables.running_times(rows),
        "figures": {name: f"figures/{name}.png" for name in ("air-quality", "more")},
    }  # fmt: skip


class Page(HTMLParser):
    """What a browser would make of it: tags in balance, addresses, anchors, tables."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.ids, self.tags, self.tables, self.words = [], [], [], set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        given = dict(attributes)
        assert not [name for name in given if name.startswith("on")]
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag in ("span", "br") and {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += " "

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            assert "url(" not in data and "@import" not in data
            return
        self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def table(self, *header):
        """The table whose first cells are these, as a dict of its lines."""
        (found,) = (t for t in self.tables if [cell.strip() for cell in t[0][: len(header)]] == list(header))
        return {line[0].strip(): [" ".join(cell.split()) for cell in line[1:]] for line in found[1:]}


def page(results, folder):
    return Page(write_report(results, folder).read_text(encoding="utf-8"))


def test_the_report_is_one_file_that_asks_nothing_of_the_network(results, tmp_path):
    found = page(results, tmp_path)
    outside = [a for a in found.addresses if not a.startswith(("data:image/png;base64,", "#"))]
    assert outside == ["https://doi.org/10.24432/C59K5F"]
    assert found.tags.isdisjoint({"script", "link", "iframe", "object", "embed", "form"})
    assert sum(a.startswith("data:") for a in found.addresses) == 2
    assert {a[1:] for a in found.addresses if a.startswith("#")} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_tables_hold_the_numbers_that_were_passed_in(results, traces, tmp_path):
    for one in results["rows"]:
        if (one["algorithm"], one["partition"]) == ("ODKLA", "shuffled"):
            one["mse"] = 0.00312 * (1.06 if one["seed"] else 1.10)
    found = page(results, tmp_path)
    accuracy = found.table("algorithm", "Air quality")
    assert accuracy["ODKLA"] == ["3.37 ± 0.062 3.12, +8.0%"]
    assert found.table("algorithm", "MSE", "against ODKLA")["ODKLA"] == [
        "3.370 ± 0.062", "0.0%", "4.000", "3.12", "+8.0%",
    ]  # fmt: skip
    quiet = results["sets"]["air-quality"]["communication"][METHODS.index("QC-ODKLA")]
    cells = found.table("algorithm", "the whole run")["QC-ODKLA"]
    assert cells[0] == " ".join(f"{words.bits(quiet['bits'])} {words.count(quiet['sends'])} sends".split())
    assert cells[1] == f"{100 * (1 - quiet['bits'] / results_bits(traces)):.1f}%"
    assert found.table("set", "samples")["Air quality"][1] == "2.00 ms 276 ms 138×"
    assert found.table("set", "1/√T")["Air quality"] == ["0.0261", "diverged in round 5", "38.3", "12.3", "3.37"]
    assert found.table("set", "fixed range ±")["Air quality"] == ["2", "3", "in every round", "5", "9", "17"]
    assert found.table("set", "matching comparator")["Air quality"] == ["10.74", "79.12", "+636.7%"]
    assert found.table("set", "algorithm", "regret")["Air quality"] == ["ODKLA", "7.25", "0.51", "8.12", "0.55"]
    assert found.table("set", "θ*")["Air quality"][3:] == ["67.8%", "1.6", "3.37", "1.60"]
    tuned = found.table("algorithm", "winner")["ODKLA"]
    assert tuned[0] == "ρ = 0.5, η = 2"
    assert "η = 3: +5.0%" in tuned[2] and "ρ = 0.2: +100.0%" in tuned[2]
    assert tuned[3].endswith("9 points, 1 diverged")
    assert tuned[4] == "by 2 values"


def results_bits(traces):
    return np.mean([trace.bits.sum() for trace in traces["ODKLA"]])


def test_waves_stand_beside_odkla_and_both_ends_with_their_price(results, tmp_path):
    found = page(results, tmp_path)
    (lines,) = (t for t in found.tables if [cell.strip() for cell in t[0][:4]] == ["set", "rows", "ODKLA", "QC-ODKLA"])
    assert [cell.strip() for cell in lines[0][2:]] == [
        "ODKLA", "QC-ODKLA", "Local RLS", "WaveRLS", "WaveRLS frugal", "Default", "Best centre",
        "WaveRLS over best centre",
    ]  # fmt: skip
    for cells in lines[1:]:
        said = [" ".join(cell.split()) for cell in cells]
        assert said[5] == "1.60 0.001 kbit" and said[-1] == "× 1.07"  # 5 bits, 5 agents
    assert "a spanning tree of the graph; and lockstep, or slots on which all agents agree" in found.text
    assert found.table("set", "samples")["Air quality"][5:] == ["2.00 ms ODKLA’s × 1"] * 2
    assert found.table("algorithm", "Air quality")["WaveRLS"] == ["1.60"]
    said = {finding.about: finding.text for finding in findings.shows(results)}
    assert said["Waves"].startswith(
        "WaveRLS, with its defaults, has 1.00 times the error of the best centre and 0.533 times ODKLA's, and sends "
        "20.0 times fewer bits than ODKLA."
    )
    assert "it is better than they are on no set" in said["Waves"]  # 1.6 against 1.5
    assert "O(D²) work a sample" in said["What waves need that ODKLA does not"]
    results["rows"] = [one for one in results["rows"] if not one["algorithm"].startswith("Wave")]
    assert "This run holds no runs of WaveRLS" in page(results, tmp_path).text


@pytest.mark.slow
def test_a_deviation_beyond_tolerance_is_marked_and_other_protocols_have_no_reference(results, tmp_path):
    text = write_report(results, tmp_path).read_text()
    assert text.count('class="off">−3.8%') == 0 and 'class="off">+13.6%' not in text
    for one in results["rows"]:
        one["mse"] = one["mse"] and one["mse"] * 1.2
    assert 'class="off">+15.4%' in write_report(results, tmp_path).read_text()  # ODKLA: 3.6 against 3.12
    for change in ({"protocol": "paper"}, {"quick": True, "max_rows": 2000}):
        other = {**results, "about": {**results["about"], **change}}
        assert ("at most 2\u202f000 rows" in write_report(other, tmp_path).read_text()) == ("max_rows" in change)
        assert "+15.4%" not in write_report(other, tmp_path).read_text()
        assert findings.deviations(other) == {}


def test_sentences_compute_their_numbers(results):
    said = {finding.about: finding.text for finding in findings.shows(results)}
    assert said["The theorem's steps"].startswith("As printed, η = ρ = 1/√T, they diverge on the one set;")
    assert "at least as accurate as QC-ODKLA on the one set" in said["What no communication would have given"]
    assert "0.51 for ODKLA and 0.51 for Local" in said["The growth of regret"]
    for one in results["rows"]:
        if one["algorithm"] == "Local" and one["partition"] == "shuffled":
            one["mse"] = 0.0033
        if one["algorithm"] == "Local" and one["partition"] == "sorted-by-target":
            one["global_mse"] = 0.02
    results["sets"]["air-quality"]["theory"]["printed"]["diverged"] = False
    said = {finding.about: finding.text for finding in findings.shows(results)}
    assert said["What no communication would have given"] == (
        "Local, which sends nothing, ends 10.0% above ODKLA's error on shuffled data. It is at least as accurate as "
        "QC-ODKLA on no set."
    )
    assert "Local's global error is 5.00 times ODKLA's" in said["Where collaboration matters"]
    assert "diverge on no set;" in said["The theorem's steps"]
    assert "keeps its bound in every round on the one set; the square" in said["Lemma 1"]
    unsaid = {finding.about: finding.text for finding in findings.limits(results)}
    assert "Grids that end too soon" not in unsaid
    stored = results["sets"]["air-quality"]["tuning"]["DOKL"]
    stored |= {"steps": {"rho": 0.5, "eta": 1.0}}
    (edge,) = (f.text for f in findings.limits(results) if f.about == "Grids that end too soon")
    assert edge == "The winner still lies on the edge of its grid for DOKL on Air quality."
    assert "Tom's hardware, Twitter, Energy, Conductivity and Blood" in unsaid["Not the whole paper"]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["about", "sets", "rows", "times", "figures"])
def test_a_missing_part_is_said_to_be_missing(results, tmp_path, part):
    del results[part]
    found = page(results, tmp_path)
    if part != "about":
        assert "This run holds no" in found.text or "This run left no figure" in found.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["tuning", "communication", "censoring", "batch", "theory", "edges", "description", "citation", "rows"]
)
def test_a_missing_part_of_a_set_does_not_break_the_page(results, tmp_path, part):
    for absent in (None, ...):
        one = copy.deepcopy(results)
        if absent is None and part not in ("description", "citation"):
            one["sets"]["air-quality"][part] = None
        else:
            del one["sets"]["air-quality"][part]
        assert "Air quality" in page(one, tmp_path).text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["printed", "growing", "regret", "lemma", "saturation", "ridge"])
def test_a_missing_part_of_the_theory_does_not_break_the_page(results, tmp_path, part):
    del results["sets"]["air-quality"]["theory"][part]
    assert "five errata" in page(results, tmp_path).text


def test_nothing_at_all_still_makes_a_page(tmp_path):
    assert "it shows nothing" in page({}, tmp_path).text


def test_not_a_number_and_diverged_runs_are_shown_as_such(results, tmp_path):
    results["sets"]["air-quality"]["censoring"]["QC-ODKLA"]["after_200"] = float("nan")
    for one in results["rows"]:
        if one["algorithm"] == "DOKL" and one["seed"] == 1:
            one["mse"] = one["global_mse"] = None
        if one["algorithm"] == "C-ODKLA":
            one["mse"] = one["global_mse"] = None
    found = page(json.loads(json.dumps(results)), tmp_path)
    accuracy = found.table("algorithm", "Air quality")
    assert "1 of 2 seeds diverged" in accuracy["DOKL"][0]
    assert accuracy["C-ODKLA"] == ["diverged"]
    assert "nan" not in found.text


def test_hostile_text_is_escaped(results, tmp_path):
    one = results["sets"].pop("air-quality")
    one |= {
        "title": HOSTILE,
        "description": HOSTILE,
        "citation": f'doi:10.1/"{HOSTILE}',
        "edges": {HOSTILE: [[0, HOSTILE]]},
    }
    name = '"><img src=x onerror=alert(1)>'
    results["sets"][name] = one
    results["about"] |= {"machine": HOSTILE, "version": HOSTILE}
    (tmp_path.parent / "outside.png").write_bytes(b"not for the page")
    results["figures"][name] = "../outside.png"
    results["figures"]["<b>"] = "nowhere.png"
    for entry in results["rows"]:
        entry["set"] = name
        entry["parameters"]["learner"] = HOSTILE
    text = write_report(results, tmp_path).read_text()
    found = Page(text)
    assert "<script" not in text and "<img src=x" not in text and "<b>" not in text
    assert found.text.count(HOSTILE) > 5
    assert base64.b64encode(b"not for the page").decode() not in text


def test_the_summary_has_a_row_for_each_run(results, tmp_path):
    results["rows"][0]["mse"] = None
    path = write_summary(results["rows"], tmp_path)
    with path.open(newline="") as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == COLUMNS
    assert path.name == "summary.csv" and len(read) == len(results["rows"])
    assert read[0]["mse"] == "" and float(read[1]["mse"]) == results["rows"][1]["mse"]
    assert json.loads(read[3]["parameters"]) == results["rows"][3]["parameters"]
