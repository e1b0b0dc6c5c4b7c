"""``laconic run big.toml``: what is wrong with the file, with its checkpoints, or with its stream, in one sentence."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_kit import set_terminal

from laconic.cli import main
from laconic.cli.runfile import landscape

TABLES = {
    "run": {"rounds": 20, "checkpoint": "kept", "checkpoint_every": 10},
    "network": {"kind": "grid", "agents": 12},
    "model": {"n_inputs": 2, "n_frequencies": 4, "bandwidth": 0.5},
    "learner": {"algorithm": "qc-odkla", "rho": 0.2, "eta": 1.0},
    "channel": {"alpha": 0.3, "beta": 0.95},
    "stream": {"kind": "drawn"},
}


def write(tables):
    """``big.toml``, with these keys instead of those of ``TABLES``."""
    lines = []
    for name, usual in TABLES.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in {**usual, **tables.get(name, {})}.items()]
    Path("big.toml").write_text("\n".join(lines))


def run(capsys, *arguments):
    """Exit code, and what was said on stderr."""
    code = main(["run", "big.toml", *arguments])
    return code, capsys.readouterr().err


@pytest.fixture
def kept(monkeypatch, tmp_path, capsys):
    """A run of 20 rounds and its checkpoint, in the folder that is worked in."""
    set_terminal(monkeypatch, tmp_path)
    write({})
    assert run(capsys)[0] == 0
    return tmp_path / "kept"


OTHERS = {
    "network": [{"network": {"kind": "ring"}}, {"network": {"agents": 6}}],
    "feature map": [{"model": {"seed": 1}}, {"model": {"bandwidth": 0.1}}, {"model": {"n_frequencies": 5}}],
    "learner": [{"learner": {"rho": 0.3}}, {"learner": {"loss": "hinge"}}, {"channel": {"alpha": 0.1}}],
    "dtype": [{"model": {"dtype": "float32"}}],
    "stream": [{"run": {"seed": 1}}, {"stream": {"noise": 0.2}}],
}


@pytest.mark.parametrize("what", OTHERS)
def test_nobody_goes_on_from_the_checkpoint_of_another_run(what, kept, capsys):
    for tables in OTHERS[what]:
        write({**tables, "run": {"rounds": 30, **tables.get("run", {})}})
        code, said = run(capsys, "--resume")
        sentence = f"laconic: kept holds the checkpoint of another run: its {what} was not what is asked for now.\n"
        assert (code, said) == (2, sentence), tables


def test_more_rounds_and_other_checkpoints_may_be_asked_for(kept, capsys):
    write({"run": {"rounds": 30, "checkpoint_every": 7}})
    assert run(capsys, "--resume") == (0, "")
    longer = (kept / "rounds.csv").read_text()
    shutil.rmtree(kept)
    assert run(capsys) == (0, "")
    assert (kept / "rounds.csv").read_text() == longer
    write({"run": {"rounds": 25}})
    code, said = run(capsys, "--resume")
    assert (code, said) == (
        2,
        "laconic: rounds must be at least 30, which is where the checkpoint in kept stands, got 25.\n",
    )


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES = {
    "part cut": ("round-20/0.npz", halve, "is not a readable part of a checkpoint"),
    "part empty": ("round-20/0.npz", lambda path: path.write_bytes(b""), "is not a readable part of a checkpoint"),
    "no part": ("round-20/0.npz", lambda path: path.unlink(), "is not a readable part of a checkpoint"),
    "index cut": ("checkpoint.json", halve, "is not readable"),
    "index of nothing": (
        "checkpoint.json",
        lambda path: path.write_text('{"round": 20, "parts": 0}'),
        "is not the index of a checkpoint",
    ),
    "rounds cut": ("rounds.csv", halve, "kept/rounds.csv"),
    "rounds missing": (
        "rounds.csv",
        lambda path: path.write_text("\n".join(path.read_text().split("\n")[:9])),
        "does not tell of each of the 20 rounds before the checkpoint",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_one_sentence(name, kept, capsys):
    file, damage, sentence = DAMAGES[name]
    damage(kept / file)
    code, said = run(capsys, "--resume")
    assert code == 2
    assert sentence in said
    assert said.count("\n") == 1
    # And is in nobody's way who begins anew.
    assert run(capsys) == (0, "")


def test_a_folder_that_cannot_be_had_is_told_before_the_run(monkeypatch, tmp_path, capsys):
    set_terminal(monkeypatch, tmp_path)
    (tmp_path / "kept").write_text("")
    write({})
    assert run(capsys) == (2, "laconic: kept: file exists.\n")
    (tmp_path / "kept").unlink()
    (tmp_path / "taken").write_text("")
    assert run(capsys, "--out", "taken") == (2, "laconic: --out must name a folder, and 'taken' is a file.\n")
    assert not (tmp_path / "kept").exists()


NETWORKS = {
    "rnig": "kind must be a file or one of random, ring, path, star, complete, grid, geometric, small-world; "
    "got 'rnig'. Did you mean 'ring'?",
    "geometric:0": "radius must be larger than 0, got 0.0.",
    "grid:5": "kind grid:RxC takes two whole numbers, as in grid:2x3; got 'grid:5'.",
    "small-world:inf": "kind small-world:K takes a whole number of neighbours, got 'small-world:inf'.",
    "grid:2x3": "agents must be 6, as 'grid:2x3' has them.",
}


def test_a_network_that_cannot_be_had_is_told_by_the_keys_of_the_file(monkeypatch, tmp_path, capsys):
    set_terminal(monkeypatch, tmp_path)
    for kind, sentence in NETWORKS.items():
        write({"network": {"kind": kind}})
        assert run(capsys) == (2, f"laconic: big.toml: [network] {sentence}\n")


def test_a_file_of_edges_lies_beside_the_file_that_names_it(monkeypatch, tmp_path, capsys):
    set_terminal(monkeypatch, tmp_path)
    write({"network": {"kind": "village.txt", "agents": 3}})
    (tmp_path / "village.txt").write_text("north south\nsouth west\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "big.toml"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # as editors of Windows may
    assert main(["run", "../big.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["edges"] == 2


def test_files_of_a_stream_must_hold_one_array(monkeypatch, tmp_path, capsys):
    set_terminal(monkeypatch, tmp_path)
    np.save("one.npy", np.array(5.0))
    np.savez("many.npz", a=np.zeros(3))
    Path("text.npy").write_text("no array")
    for name in ("one.npy", "many.npz", "text.npy"):
        write({"stream": {"kind": "files", "X": name, "y": name}})
        sentence = f"X must be a file of NumPy that holds one array, and {name} is none."
        assert run(capsys) == (2, f"laconic: big.toml: [stream] {sentence}\n")


STREAMS = {
    "raises": "function 'drawing:raises' failed when asked for rounds 10 to 20: OSError: gone (drawing.py, line 5).",
    "number": "function must say where one is, as package.module:name; 'drawing:number' is 5.",
}


def test_a_function_that_fails_is_told_with_its_place(monkeypatch, tmp_path, capsys):
    set_terminal(monkeypatch, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    lines = ("from laconic.cli.runfile import landscape", "number = 5", "def raises(agents, first, last):")
    body = (
        "    if first >= 10:",
        "        raise OSError('gone')",
        "    return landscape(2, 0, 0.1, 0.0)(agents, first, last)",
    )
    (tmp_path / "drawing.py").write_text("\n".join((*lines, *body)))
    for name, sentence in STREAMS.items():
        write({"stream": {"kind": "function", "function": f"drawing:{name}"}})
        assert run(capsys) == (2, f"laconic: big.toml: [stream] {sentence}\n")
    (tmp_path / "broken_drawing.py").write_text("1 / 0\n")
    write({"stream": {"kind": "function", "function": "broken_drawing:draw"}})
    code, said = run(capsys)
    assert code == 2
    assert "cannot be had: ZeroDivisionError: division by zero (broken_drawing.py, line 1).\n" in said


@pytest.mark.parametrize("n_inputs", [1, 2, 5])
def test_what_an_agent_draws_does_not_depend_on_who_draws_beside_it(n_inputs):
    draw = landscape(n_inputs, 3, 0.1, 0.01)
    X, y = draw(np.arange(40), 0, 12)
    for agents in ([7], [3, 9], np.arange(17), np.arange(11, 40)):
        for first, last in ((0, 1), (5, 12)):
            inputs, labels = draw(np.asarray(agents), first, last)
            np.testing.assert_array_equal(inputs, X[first:last, agents])
            np.testing.assert_array_equal(labels, y[first:last, agents])


def test_who_begins_anew_removes_no_unfinished_checkpoint(kept, capsys):
    before = json.loads((kept / "checkpoint.json").read_text())
    write({"run": {"rounds": 30}})
    code, said = run(capsys)
    assert code == 2 and "as far as round 20" in said and "--resume" in said
    assert json.loads((kept / "checkpoint.json").read_text()) == before
    assert run(capsys, "--resume")[0] == 0
    assert run(capsys)[0] == 0  # of a finished run nothing is lost: it comes out again
