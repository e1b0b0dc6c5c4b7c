"""Pictures: what is drawn is what the trace says, nothing global changes, and no display is needed."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import laconic as lc


@pytest.fixture(autouse=True)
def _headless():
    mpl.use("agg")
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def traces():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 4, 2))
    y = np.sin(4 * X[..., 0]) + X[..., 1]
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=0)
    learners = {
        "Local": lc.Local(),
        "ODKLA": lc.ODKLA(),
        "QC-ODKLA": lc.QCODKLA(alpha=1.0, beta=0.98),
    }
    return {name: lc.simulate(learner, features, lc.Network.ring(4), X, y) for name, learner in learners.items()}


def curve(panel, label):
    (line,) = (line for line in panel.lines if line.get_label() == label)
    return line


def test_curves_end_where_the_run_ended(traces):
    for name in ("ODKLA", "QC-ODKLA"):
        trace = traces[name]
        figure = trace.plot()
        for panel, total in zip(figure.axes, (200, trace.sent.sum(), trace.bits.sum()), strict=True):
            x, y = curve(panel, name).get_data()
            assert x[-1] == total
            assert y[-1] == trace.mse()[-1]
            assert (np.diff(x) >= 0).all()


def test_waves_are_drawn_where_they_ran_and_as_high_as_their_bits(traces):
    X = np.random.default_rng(0).uniform(size=(120, 4, 2))
    features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=10, bandwidth=0.5, seed=0)
    trace = lc.simulate(lc.WaveRLS(), features, lc.Network.path(4), X, np.sin(4 * X[..., 0]))
    above, below = trace.plot_waves().axes
    bars = below.patches
    assert [bar.get_x() for bar in bars] == trace.waves["when"].tolist()
    assert [bar.get_height() for bar in bars] == pytest.approx(trace.waves["bits"] / 1e3)
    assert bars[0].get_width() == 2 * trace.waves["depth"][0] == 4
    assert {text.get_text() for text in below.texts} == {str(terms) for terms in trace.waves["terms"] if terms}
    x, y = above.lines[0].get_data()
    assert (x[0], x[-1]) == (1, 120)
    assert y[-1] == pytest.approx(trace.squared_errors()[96:].mean())
    empty = Figure()
    assert trace.plot_waves(empty) is empty
    with pytest.raises(ValueError, match="figure must be empty"):
        trace.plot_waves(empty)
    with pytest.raises(ValueError, match="this run with ODKLA has none"):
        traces["ODKLA"].plot_waves()


def test_every_point_is_a_point_of_the_run(traces):
    trace = traces["QC-ODKLA"]
    x, y = curve(trace.plot().axes[2], "QC-ODKLA").get_data()
    points = set(zip(np.cumsum(trace.bits.sum(axis=1)).tolist(), trace.mse().tolist(), strict=True))
    assert set(zip(x.tolist(), y.tolist(), strict=True)) <= points


def test_passing_the_figure_adds_a_run_in_another_style(traces):
    figure = None
    for name, trace in traces.items():
        figure = trace.plot(figure=figure)
        assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == name
    assert len(figure.axes) == 3
    assert len(figure.legends) == 1
    lines = [curve(figure.axes[0], name) for name in traces]
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_marker() for line in lines}) == 3
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == 3


def test_label_replaces_the_name(traces):
    figure = traces["ODKLA"].plot(label="mine")
    assert curve(figure.axes[0], "mine").get_xdata()[-1] == 200


def test_a_silent_run_is_a_level_in_the_panels_that_count_messages(traces):
    trace = traces["Local"]
    time, messages, bits = trace.plot(figure=traces["ODKLA"].plot()).axes
    assert curve(time, "Local").get_ydata()[-1] == trace.mse()[-1]
    for panel in (messages, bits):
        levels = [line for line in panel.lines if set(line.get_ydata()) == {trace.mse()[-1]}]
        assert len(levels) == 1
        assert [text.get_text() for text in panel.texts] == ["Local: sends nothing"]


def test_axes_say_what_they_are(traces):
    panels = traces["ODKLA"].plot().axes
    assert [panel.get_xlabel() for panel in panels] == [
        "time (rounds)",
        "messages sent (broadcasts)",
        "data sent (bits)",
    ]
    assert panels[0].get_ylabel().startswith("mean squared error")
    assert all(panel.get_xscale() == "log" and panel.get_yscale() == "log" for panel in panels)


def test_draws_into_an_empty_figure_and_no_other(traces, tmp_path):
    figure = Figure(figsize=(9, 3))
    assert traces["ODKLA"].plot(figure=figure) is figure
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000
    foreign = Figure()
    foreign.add_subplot()
    with pytest.raises(ValueError, match="figure must be empty"):
        traces["ODKLA"].plot(figure=foreign)


def test_a_run_without_rounds_is_refused():
    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=2)
    empty = lc.simulate(lc.ODKLA(), features, lc.Network.ring(3), np.empty((0, 3, 1)), np.empty((0, 3)))
    with pytest.raises(ValueError, match="at least one round"):
        empty.plot()


def test_rounds_without_labels_leave_a_gap_not_an_error():
    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5)
    y = np.ones((20, 3))
    y[:5] = np.nan
    trace = lc.simulate(lc.ODKLA(), features, lc.Network.ring(3), np.zeros((20, 3, 1)), y)
    assert curve(trace.plot().axes[0], "ODKLA").get_xdata()[0] == 6


def test_a_long_run_is_thinned_and_a_resumed_one_starts_where_it_was():
    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=5, bandwidth=0.3)
    X = np.random.default_rng(0).uniform(size=(5000, 3, 1))
    first = lc.simulate(lc.ODKLA(), features, lc.Network.ring(3), X, X[..., 0])
    again = lc.simulate(lc.ODKLA(), features, lc.Network.ring(3), X, X[..., 0], state=first.state)
    assert len(curve(first.plot().axes[0], "ODKLA").get_xdata()) < 700
    assert curve(again.plot().axes[0], "ODKLA").get_xdata()[[0, -1]].tolist() == [5001, 10000]


def test_network_has_a_dot_for_each_agent_and_a_line_for_each_edge():
    network = lc.Network.star(7)
    ax = network.draw()
    lines, dots = ax.collections
    assert len(lines.get_segments()) == 6
    assert len(dots.get_offsets()) == 7
    assert [text.get_text() for text in ax.texts] == list("0123456")
    hub = dots.get_offsets()[0]
    assert all(any(np.allclose(end, hub) for end in segment) for segment in lines.get_segments())


def test_more_neighbours_are_darker():
    shades = lc.Network.from_edges(4, [(0, 1), (0, 2), (0, 3), (1, 2)]).draw().collections[1].get_facecolors()
    lightness = [sum(to_rgb(tuple(shade[:3]))) for shade in shades]
    assert lightness[0] < lightness[1] == lightness[2] < lightness[3]


@pytest.mark.parametrize(
    "network",
    [
        lc.Network.from_edges(1, []),
        lc.Network.path(2),
        lc.Network.path(9),
        lc.Network.grid(3, 4),
        lc.Network.geometric(30, radius=0.4),
        lc.Network.small_world(80),
        lc.Network.ring(2500),
    ],
    ids=repr,
)
def test_every_network_fits_its_axes(network):
    figure = Figure()
    ax = figure.add_subplot()
    assert network.draw(ax) is ax
    dots = ax.collections[1].get_offsets()
    assert len(dots) == network.n_agents
    for values, (low, high) in zip(dots.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert low < values.min() <= values.max() < high
    figure.canvas.draw()


def test_names_are_shown():
    network = lc.Network.from_edges(2, [(0, 1)], names=["roof", "cellar"])
    assert [text.get_text() for text in network.draw().texts] == ["roof", "cellar"]


def test_a_path_lies_down():
    dots = lc.Network.path(6).draw().collections[1].get_offsets()
    assert np.ptp(dots[:, 1]) < 0.01 * np.ptp(dots[:, 0])


def test_matplotlib_is_not_imported_before_something_is_drawn():
    code = "import sys, laconic, laconic.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_panels_and_width(traces, tmp_path):
    figure = traces["ODKLA"].plot(panels=["bits", "consensus"], width=3.5)
    assert figure.get_figwidth() == pytest.approx(3.5)
    bits, consensus = figure.axes
    assert bits.get_xlabel() == "data sent (bits)"
    assert curve(consensus, "ODKLA").get_ydata()[-1] == traces["ODKLA"].consensus()[-1]
    assert traces["QC-ODKLA"].plot(figure=figure) is figure
    assert len(figure.axes) == 2
    assert len(traces["ODKLA"].plot(panels="recent").axes) == 1
    with pytest.raises(ValueError, match="figure has the panels bits, consensus"):
        traces["ODKLA"].plot(figure=figure, panels=["rounds"])
    with pytest.raises(ValueError, match="panels must be one of"):
        traces["ODKLA"].plot(panels=["nonsense"])
    with pytest.raises(ValueError, match="panels must not name a panel twice"):
        traces["ODKLA"].plot(panels=["bits", "bits"])
    with pytest.raises(ValueError, match="panels must be names"):
        traces["ODKLA"].plot(panels=[])
    with pytest.raises(ValueError, match="width must be larger than 0"):
        traces["ODKLA"].plot(width=0)
    with pytest.raises(ValueError, match="width is that of a new figure"):
        traces["ODKLA"].plot(figure=figure, width=4)
    with pytest.raises(ValueError, match="collective=True"):
        traces["ODKLA"].plot(panels=["global"])


def test_fonts_are_embedded_as_type_42(traces, tmp_path):
    traces["ODKLA"].plot().savefig(tmp_path / "run.pdf")
    data = (tmp_path / "run.pdf").read_bytes()
    assert b"/CIDFontType2" in data  # how a PDF calls an embedded TrueType font
    assert b"/Type3" not in data


def test_a_band_holds_all_seeds(traces):
    runs = lc.Runs([traces["ODKLA"], traces["QC-ODKLA"]])
    figure = runs.plot(label="both")
    time = figure.axes[0]
    mean = curve(time, "both").get_ydata()
    assert mean[-1] == pytest.approx(np.mean([trace.mse()[-1] for trace in runs]))
    (band,) = time.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == min(trace.mse().min() for trace in runs)
    assert heights.max() == max(trace.mse().max() for trace in runs)
    assert runs.plot().legends[0].get_texts()[0].get_text() == "ODKLA, 2 seeds"


def test_the_legend_hides_nothing_and_no_two_runs_look_alike(traces):
    figure = None
    for number in range(15):
        figure = traces["ODKLA"].plot(
            label=f"a learner with a long name, {number}", figure=figure, panels=["rounds", "bits"]
        )
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.y0 >= 0 and box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    for panel in figure.axes:
        area = panel.get_tightbbox()
        assert area.y0 >= box.y1 - 1
        assert panel.get_window_extent().height > 120  # as high as before there were so many
    lines = [line for line in figure.axes[0].lines if line.get_gid() == "laconic-run"]
    looks = {(line.get_color(), line.get_marker(), str(line._unscaled_dash_pattern)) for line in lines}
    assert len(looks) == 15


def test_notebooks_show_traces_networks_runs_and_agents(traces):
    hostile = "<script>alert('x')</script>"
    runs = lc.Runs([traces["ODKLA"], traces["ODKLA"]])
    network = lc.Network.from_edges(3, [(0, 1), (1, 2)], names=[hostile, "b", "c"])
    features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=2)
    agent = lc.Agent("ann", [hostile], features, lc.ODKLA(), n_agents=2, engine="reference")
    for shown in (traces["ODKLA"], traces["Local"], runs, network, agent, lc.Network.ring(1), lc.Network.ring(2000)):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "http://www.w3.org/2000/svg" in html or "http" not in html  # a namespace, and nothing that is fetched
        assert html.count("<div") == html.count("</div>")
        assert "nan" not in html.lower().replace("finance", "")
    assert "&lt;script&gt;" in network._repr_html_()
    assert "&lt;script&gt;" in agent._repr_html_()
    assert "polyline" in traces["ODKLA"]._repr_html_()
    assert "<circle" not in lc.Network.ring(2000)._repr_html_()
    empty = lc.simulate(lc.ODKLA(), features, lc.Network.ring(3), np.empty((0, 3, 1)), np.empty((0, 3)))
    assert "polyline" not in empty._repr_html_()
