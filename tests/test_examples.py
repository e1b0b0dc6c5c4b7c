"""The examples run as people run them, and the README's words are true."""

import doctest
import importlib.util
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import laconic as lc

ROOT = Path(__file__).parents[1]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # NamedTuple looks its module up
    spec.loader.exec_module(module)
    return module


def run(*arguments):
    command = [sys.executable, str(ROOT / "examples" / arguments[0]), *arguments[1:]]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.slow
def test_comparison_shows_what_the_package_promises(tmp_path, capsys):
    traces = load("compare_learners").main(["--out", str(tmp_path)])
    odkla, quiet = traces["ODKLA"], traces["QC-ODKLA"]
    assert quiet.bits.sum() < 0.1 * odkla.bits.sum()
    assert quiet.mse()[-1] < 1.1 * odkla.mse()[-1]
    assert quiet.global_mse()[-1] < 1.1 * odkla.global_mse()[-1]
    # Alone, an agent knows its own tile as well as anyone, and nothing of the others.
    assert traces["Local"].mse()[-1] < 1.1 * odkla.mse()[-1]
    assert traces["Local"].global_mse()[-1] > 10 * quiet.global_mse()[-1]
    # Half of the remaining error is noise: nobody beats it.
    for trace in traces.values():
        assert 0.01 < trace.mse()[-1] < 0.1 * trace.mse()[0]

    printed = capsys.readouterr().out
    for name, trace in traces.items():
        (row,) = (line for line in printed.splitlines() if line.startswith(f"{name}  "))
        assert f"{trace.bits.sum():,}" in row
        assert f"{trace.global_mse()[-1]:.4f}" in row
    for picture in ("learning.png", "knowledge.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    again = lc.Trace.load(tmp_path / "qc-odkla.npz")
    np.testing.assert_array_equal(again.predictions, quiet.predictions)


@pytest.mark.slow
def test_comparison_is_a_program(tmp_path):
    printed = run("compare_learners.py", "--rounds", "50", "--out", str(tmp_path / "new" / "folder"))
    assert "compiled kernels" in printed
    assert (tmp_path / "new" / "folder" / "learning.png").exists()


@pytest.mark.slow
def test_own_learner_is_a_program_that_keeps_up_with_odkla(capsys):
    momentum, odkla, local = load("own_learner").main([])
    assert momentum.about["engine"] == "reference"
    assert momentum.bits.sum() == odkla.bits.sum()
    assert momentum.global_mse()[-1] < 1.2 * odkla.global_mse()[-1] < 0.1 * local.global_mse()[-1]
    assert "momentum" in run("own_learner.py", "--rounds", "20", "--agents", "3")


@pytest.mark.slow
def test_stream_goes_on_where_it_stopped(tmp_path, capsys):
    state = tmp_path / "state.npz"
    first = run("stream.py", "--blocks", "3", "--state", str(state))
    program = load("stream")
    program.main(["--blocks", "3", "--state", str(state)])
    second = capsys.readouterr().out
    program.main(["--blocks", "6"])
    whole = capsys.readouterr().out
    assert "going on from round 750" in second
    rows = [line for line in (first + second).splitlines() if line.startswith("round")]
    assert rows == whole.splitlines()
    errors = [float(re.search(r"block (\S+)", row)[1]) for row in rows]
    assert errors[-1] < 0.4 * errors[0]


def test_readme_examples():
    text = (ROOT / "README.md").read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(test.examples) >= 5
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    report = []
    failed = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.append).failed
    assert failed == 0, "".join(report)


def test_badges_say_what_is_true():
    """They are drawn from pyproject.toml; README shows each of them, and each is what would be drawn now."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    made = runpy.run_path(str(ROOT / "docs" / "images" / "badges.py"))["badges"](settings)
    shown = re.findall(r"docs/images/badges/(\w+\.svg)", (ROOT / "README.md").read_text())
    assert sorted(shown) == sorted(made)
    for file, text in made.items():
        assert (ROOT / "docs" / "images" / "badges" / file).read_text() == text
    assert f">{lc.__version__}<" in made["version.svg"]
    assert "Redistribution and use" in (ROOT / "LICENSE").read_text() and ">BSD-3-Clause<" in made["license.svg"]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_local_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()) + re.findall(
        r'src="([^"]+)"', page.read_text()
    )
    for target in targets:
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.slow
def test_a_small_city_is_learned_and_drawn(tmp_path):
    from PIL import Image

    said = run("city.py", "--agents", "200", "--rounds", "30", "--out", str(tmp_path))
    assert "Network(200 agents" in said
    assert (tmp_path / "city.png").read_bytes().startswith(b"\x89PNG")
    # One palette for all frames: what is coldest has the same colour in each of them.
    colours = set()
    with Image.open(tmp_path / "city.gif") as animation:
        for frame in range(animation.n_frames):
            animation.seek(frame)
            colours |= {colour for _, colour in animation.convert("RGB").getcolors(2**16)}
    assert animation.n_frames == 5
    assert 20 < len(colours) <= 96
