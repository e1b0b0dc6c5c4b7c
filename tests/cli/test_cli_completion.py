"""Shells complete what the parser knows: tried in those that are here."""

import shutil
import subprocess

import pytest
from cli_kit import fail, run

TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_laconic
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")

    def write(capsys, shell):
        path = folder / f"laconic.{shell}"
        if not path.exists():
            path.write_text(run(capsys, "completion", shell)[0])
        return path

    return write


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["da"], {"data", "dashboard"}),
        (["data", ""], {"list", "info", "fetch"}),
        (["run", "--learn"], {"--learner"}),
        (["run", "--learner", "qc"], {"qc-odkla"}),
        (["run", "my.csv", "--task", ""], {"numbers", "classes"}),
        (["up", "site.toml", "--level", "w"], {"warning"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["agent", "--sp"], {""}),  # what is not for people is not offered
    ],
)
def test_bash_completes(script, capsys, words, found):
    path = script(capsys, "bash")
    done = subprocess.run(
        ["bash", "--norc", "-c", TRY, "bash", path, "laconic", *words], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split("\n")) - {""} == found - {""} and done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_takes_its_script(script, capsys, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n", script(capsys, shell)], check=False, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_a_script_names_every_command(script, capsys):
    text = script(capsys, "fish").read_text()
    for words in ("-a dashboard", "-a completion", "-l learner -x -a", "from data; and not", "-l live"):
        assert words in text
    assert "must be one of bash, zsh, fish" in fail(capsys, "completion", "tcsh")
