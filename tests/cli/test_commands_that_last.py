"""Commands of README and pages that last until somebody ends them: they are started as they stand there."""

import re
import signal
import subprocess
import sys
import threading

import httpx
import numpy as np
import pytest
from cli_kit import run, set_terminal
from ports import free_port

import laconic as lc
from laconic.deploy.operations.fetching import fetch_model
from laconic.deploy.settings.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.sockets]
WAIT = 120  # seconds that only a mistake reaches


class Started:
    """A command in a process of its own, whose lines are read one by one."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "laconic", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.guard = threading.Timer(WAIT, self.process.kill)
        self.lines = []

    def __enter__(self):
        self.guard.start()
        return self

    def __exit__(self, *_):
        self.guard.cancel()
        self.process.kill()
        self.process.communicate()

    def until(self, pattern):
        """What a line says that has it."""
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found[0]
        raise AssertionError(f"no line with {pattern}: {''.join(self.lines)}")

    def end(self, how):
        """The exit code after a signal, and all that was said until then."""
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=WAIT)
        return self.process.returncode, "".join(self.lines) + rest


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file of rows; the browser that commands open is a program that does nothing."""
    set_terminal(monkeypatch, tmp_path)
    monkeypatch.setenv("BROWSER", "true %s")
    X = np.random.default_rng(0).uniform(size=(120, 2))
    lines = [f"{a:.4f},{b:.4f},{100 + 50 * np.sin(4 * a) + 20 * b:.2f}" for a, b in X]
    (tmp_path / "my.csv").write_text("\n".join(["size,age,price", *lines]))
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "names", "last"),
    [
        ("run my.csv --learner odkla --live --beside qc-odkla", ("ODKLA", "QC-ODKLA"), r"^ODKLA\b.*\d"),
        ("demo --live --open --rounds 100", ("WaveRLS", "QC-ODKLA"), "the page"),
    ],
)
def test_a_run_is_shown_and_then_tells_its_numbers(words, names, last):
    """The first round waits for somebody to look; after the last one the page stays until Ctrl-C, which is no error."""
    with Started(*words.split(), "--pace", "100000", "--port", "0") as started:
        page = httpx.get(started.until(r"http://127\.0\.0\.1:\d+/"))
        assert page.status_code == 200 and all(f'"{name}"' in page.text for name in names)
        started.until(last)
        started.until("the page stays until Ctrl-C")
        code, said = started.end(signal.SIGINT)
        assert code == 0 and "interrupted" not in said


def test_two_commands_of_readme_make_a_site_whose_model_can_be_asked_for(place, capsys):
    """`init` and `up`, with certificates; then what the page of deployment does from a desk, and after the end."""
    run(capsys, "init", "home", "--secure", "--agents", "2")
    file = place / "home" / "site.toml"
    text = re.sub(r":745\d", lambda _: f":{free_port()}", file.read_text())
    file.write_text(text.replace('# guests = ["sensor"]', 'guests = ["desk"]'))
    run(capsys, "certs", "home/site.toml")
    with Started("up", "home/site.toml", "--live", "--open", "--port", "0", "--progress", "0.2") as started:
        assert httpx.get(started.until(r"http://127\.0\.0\.1:\d+/")).status_code == 200
        started.until(r"\"round\": [1-9]")
        out, _ = run(capsys, "export", "home/site.toml", "--agent", "kitchen", "--as", "desk", "-o", "kitchen.npz")
        assert "Wrote kitchen.npz" in out
        assert fetch_model(Site.read(file), "hall", 60.0, "desk").running
        code, _ = started.end(signal.SIGINT)
        assert code in (0, 130)
    _, err = run(capsys, "export", "home/site.toml", "-o", "backup.npz")
    assert "taken from its checkpoint" in err
    asked, kept = lc.Model.load("kitchen.npz"), lc.Model.load("backup.npz")
    x = np.array([[0.5, 0.5]])
    assert asked.inputs == kept.inputs == ("hour", "sunshine") and np.isfinite(asked.predict(x) + kept.predict(x)).all()
