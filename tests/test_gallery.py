"""The gallery: every program runs, tiny, and draws its picture; the page names every one of them."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
PROGRAMS = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "shared")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_draws_its_picture(name, tmp_path, monkeypatch, capsys):
    """In this process, where all is imported, but for the one that starts processes itself."""
    monkeypatch.setenv("LACONIC_GALLERY", "quick")
    monkeypatch.setenv("GALLERY_OUT", str(tmp_path))
    if name == "two_processes":
        done = subprocess.run(
            [sys.executable, str(GALLERY / f"{name}.py")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        monkeypatch.syspath_prepend(GALLERY)
        monkeypatch.delitem(sys.modules, "shared", raising=False)
        runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
        printed = capsys.readouterr().out
    if not printed.startswith("skipped"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_notebook_runs():
    cells = json.loads((GALLERY / "notebook.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            *lines, last = "".join(cell["source"]).splitlines()
            exec("\n".join(lines), names)
            assert "<table" in eval(last, names)._repr_html_()


def test_the_site_shows_every_program_whose_name_leads_to_it():
    hooks = runpy.run_path(str(ROOT / "docs" / "hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="gallery.md"))
    made = hooks["on_page_markdown"]((ROOT / "docs" / "gallery.md").read_text(), page=page)
    for name in PROGRAMS:
        assert f"[`{name}.py`](#{name}-py)" in made and f'<div id="{name}-py"' in made
        assert (GALLERY / f"{name}.py").read_text() in made


def test_the_page_names_every_program():
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert len(PROGRAMS) + 1 >= 10
    for name in PROGRAMS:
        assert f"`{name}.py`" in page
