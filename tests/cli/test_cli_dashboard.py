"""``laconic dashboard`` as people start it."""

import re
import signal
import subprocess
import sys

import httpx
import pytest
from cli_kit import fail, set_terminal
from ports import free_port

SITE = """
[model]
n_inputs = 1
n_frequencies = 5
bandwidth = 0.5
[network]
edges = [["ada", "bob"]]
[source]
kind = "zenoh"
inputs = ["a"]
target = "y"
[agents.ada]
listen = "tcp/127.0.0.1:{}"
[agents.bob]
listen = "tcp/127.0.0.1:{}"
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    set_terminal(monkeypatch, tmp_path)
    path = tmp_path / "site.toml"
    path.write_text(SITE.format(free_port(), free_port()))
    return path


def test_what_makes_no_sense(site, capsys):
    assert "no file" in fail(capsys, "dashboard", "nothing.toml")
    assert "--port must be" in fail(capsys, "dashboard", site, "--port", "70000")


@pytest.mark.slow
@pytest.mark.sockets
def test_it_serves_until_it_is_interrupted(site):
    command = [sys.executable, "-m", "laconic", "dashboard", str(site), "--port", "0", "--token", "word"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=word", said)[0]
        page = httpx.get(address)
        assert page.status_code == 200 and '"names":["ada","bob"]' in page.text
        assert httpx.get(address.replace("word", "guess")).status_code == 403
        process.send_signal(signal.SIGINT)
        _, wrong = process.communicate(timeout=300)
        assert process.returncode == 0 and wrong.strip() == ""  # it is how one leaves a page
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
