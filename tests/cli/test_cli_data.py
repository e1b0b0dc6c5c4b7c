"""The commands for data: what is at hand, what is in it, and where it is fetched from."""

import pytest
from cli_kit import run, set_terminal, write_files
from raw_data import FOLDER

from laconic import data


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def test_list_says_what_is_at_hand(tmp_path, capsys):
    (tmp_path / "raw" / "plant").mkdir(parents=True)
    (tmp_path / "raw" / "plant" / "Folds5x2_pp.csv").write_text("AT,V,AP,RH,PE\n1,2,3,4,463\n2,3,4,5,450\n")
    screen, _ = run(capsys, "data", "list", "--data-dir", "raw")
    lines = {line.split()[0]: line for line in screen.split("\n\n")[0].split("\n")[1:]}
    assert tuple(lines) == data.names()
    assert "plant/Folds5x2_pp.csv" in lines["power-plant"]
    assert "not at hand (12 MB)" in lines["energy"]
    assert "2 of 12 at hand in raw." in screen
    starts = {line.index(f" {data.info(name).target} ") for name, line in lines.items()}
    assert len(starts) == 1  # the columns are aligned
    assert run(capsys, "data", "fetch", "power-plant", "--data-dir", "raw")[0] == "raw/plant/Folds5x2_pp.csv\n"
    info, _ = run(capsys, "data", "info", "power-plant", "--data-dir", "raw")
    assert "inputs  4: AT, V, AP, RH" in info and "target  PE, from 450.0 to 463.0" in info


def test_info_knows_names_and_files(files, capsys):
    screen, _ = run(capsys, "data", "info", "energy")
    assert "not at hand: energydata_complete.csv, 12 MB to fetch" in screen and "L. M. Candanedo" in screen
    assert "rows    10,000" in run(capsys, "data", "info", "synthetic")[0]
    screen, _ = run(capsys, "data", "info", "words.csv")
    assert "inputs  3: a, b, c" in screen and "target  kind: big (-1, " in screen
    assert "target  a, from " in run(capsys, "data", "info", "flats.csv", "--target", "a")[0]
    assert "nothing to fetch" in run(capsys, "data", "fetch", "synthetic")[0]


@pytest.mark.data
def test_list_counts_inputs_rightly(capsys):
    screen, _ = run(capsys, "data", "list", "--data-dir", FOLDER)
    for line in screen.split("\n\n")[0].split("\n")[1:]:
        name, _, n_inputs = line.split()[:3]
        if "not at hand" not in line:
            assert int(n_inputs) == data.load(name, data_dir=FOLDER, n_rows=50).n_inputs, name
