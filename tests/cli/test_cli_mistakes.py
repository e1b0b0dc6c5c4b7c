"""What goes wrong at the command line is one sentence that says what to do."""

import os
import re
import subprocess
import sys

import pytest
from cli_kit import fail, run, set_terminal, write_files


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run nosuch", "data must be a file or one of air-quality, .*; got 'nosuch'"),
        ("run air_quality", "Did you mean 'air-quality'?"),
        ("run missing.csv", "there is no file 'missing.csv'"),
        ("run ~no-such-user/flats.csv", "'~no-such-user/flats.csv' begins with the home of a user that is not known"),
        ("run flats.csv --network ~no-such-user/net", "'~no-such-user/net' begins with the home of a user that is not"),
        ("run flats.csv --target rennt", "--target must be a column of flats.csv.* did you mean 'rent'?"),
        ("run text.csv --rho 1", "must be numbers or two classes, but it holds 3 different words"),
        ("run empty.csv", "empty.csv is empty."),
        ("run header.csv", "has a header and no rows"),
        ("run holes.csv --bits 3", "add --missing drop"),
        ("run holes.csv --missing refuse", "1 row with missing inputs: leave out --missing, or add --missing drop"),
        ("run flats.csv --task classes", "'rent' takes 300 values in 300 rows: no classes"),
        ("run text.csv --task numbers", "--task numbers needs a target of numbers, and 'city' holds words"),
        ("run text.csv --task number", "--task must be one of numbers, classes; got 'number'. Did you mean 'numbers'?"),
        ("run flats.csv --encode hot", "--encode must be one of one-hot, off; got 'hot'"),
        ("run flats.csv --budget none", "--budget must be one of usual, frugal, silent; got 'none'"),
        ("run flats.csv --agent-column d", "--agent-column must be a column of flats.csv"),
        ("run flats.csv --agent-column rent", "its target must be two columns, got 'rent' for both"),
        ("run words.csv --agent-column street --agents 3", "--agents 3 contradicts --agent-column, which names 7"),
        ("run synthetic --agent-column x", "--agent-column is for files of your own"),
        ("run flats.csv --agents 300", "300 agents with one row each, or no label .* leave nothing to predict"),
        ("run flats.csv --rho 1 --task numbers", "--task is for what is chosen and --rho for what is told"),
        ("run words.csv --learner odkla --agent-column street", "--agent-column is for what is chosen and --learner"),
        ("run constant.csv", "the target 'y' is 2 in every row: there is nothing to learn"),
        ("run synthetic --target y", "--target is for files of your own"),
        ("run flats.csv --rows 9999", "--rows must be at most 300"),
        ("run flats.csv --agents 301", "--agents must be at most 300"),
        ("run flats.csv --agents 0", "--agents must be at least 1, got 0"),
        ("run flats.csv --agents x", "--agents must be a whole number, got 'x'"),
        ("run flats.csv --data-dir nowhere", "--data-dir must name a folder"),
        ("run flats.csv --learner odlka", "--learner must be one of .* Did you mean 'odkla'?"),
        ("run flats.csv --learner local --bits 3", "--bits makes no sense with --learner local, which never speaks"),
        ("run flats.csv --learner rff-dokl --rho 1", "--rho makes no sense with --learner rff-dokl"),
        ("run flats.csv --learner odkla --step 1", "--step makes no sense with --learner odkla"),
        ("run flats.csv --loss logistic", "--loss logistic needs a target of two classes, but 'rent' takes 300"),
        ("run flats.csv --network village.txt --agents 5", "--agents 5 contradicts --network village.txt, which has 3"),
        ("run flats.csv --network broken.txt", "broken.txt must hold two names a line"),
        ("run flats.csv --network nofile.txt", "there is no file 'nofile.txt'"),
        ("run flats.csv --network rnig", "--network must be .* Did you mean 'ring'?"),
        ("run flats.csv --network ring:3", "--network ring takes no number"),
        ("run flats.csv --network grid:2", "grid:RxC takes two whole numbers"),
        ("run flats.csv --network grid:2x3 --agents 5", "--agents 5 contradicts --network grid:2x3, which has 6"),
        ("run flats.csv --network random:x", "--network must have a number after the colon"),
        ("run flats.csv --network random:0", "no connected network"),
        ("run flats.csv --network small-world:2.5", "small-world:K takes a whole number"),
        ("run flats.csv --partition sorted", "--partition must be 'time', 'shuffled'"),
        ("run flats.csv --partition sorted-by-feature:7", "--partition must name a feature from 0 to 2"),
        ("run flats.csv --rho -1", "--rho must be at least 0"),
        ("run flats.csv --eta 0", "--eta must be larger than 0"),
        ("run flats.csv --bits 40", "--bits must be from 1 to 16"),
        ("run flats.csv --beta 2", "--beta must be at most 1"),
        ("run flats.csv --range 1,2,3", "--range must be 'adaptive', a number X"),
        ("run flats.csv --range=0.3,0.1", "--range must be a pair"),
        ("run flats.csv --bandwidth 0", "--bandwidth must be larger than 0"),
        ("run flats.csv --bandwidth nan", "--bandwidth must be finite"),
        ("run flats.csv --frequencies 0", "--frequencies must be at least 1"),
        ("run flats.csv --seed -1", "--seed must be at least 0"),
        ("run flats.csv --out flats.csv", "--out must name a folder, and 'flats.csv' is a file"),
        ("run flats.csv --out flats.csv/deeper", "flats.csv/deeper: not a directory"),
        ("run flats.csv --learn odkla", "there is no option '--learn': did you mean '--learner'?"),
        ("run flats.csv more.csv", "there is no place for 'more.csv'. .See `laconic run --help`"),
        ("up", "FILE must be given"),
        ("up .", "'.' is a folder, and a file is needed"),
        ("up shed", "shed is a folder: name the file in it, shed/site.toml"),
        ("tune flats.csv --prefix 2", "--prefix must be a share of the rounds"),
        ("tune flats.csv --seeds 0", "--seeds must be at least 1"),
        ("tune flats.csv --widths 1,x", "--widths must be positive numbers with commas between them, got '1,x'"),
        ("tune flats.csv --budget 60", "--budget must be a time such as 60s, 5m or 1h, got '60'"),
        ("tune flats.csv --algorithm ODKL", "--algorithm must be one of .* Did you mean 'ODKLA'?"),
        ("tune flats.csv --algorithm ,", "--algorithm must name at least one"),
        ("tune text.csv", "must be numbers or two classes"),
        ("data info nope", "data must be a file or one of"),
        ("data fetch flats.csv", "data must be a file or one of"),
        ("data list --data-dir nowhere", "--data-dir must name a folder"),
        ("reproduce --set airquality", "--set must be one of .* Did you mean 'air-quality'?"),
        ("reproduce --algorithm ODKLA Lokal", "--algorithm must be one of .* Did you mean 'Local'?"),
        ("reproduce --seeds 0 --no-progress", "--seeds must be at least 1"),
        ("reproduce --out flats.csv", "--out must name a folder"),
        ("frobnicate", "COMMAND must be one of demo, run, tune, reproduce, data, info"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(files, capsys, words, said):
    assert re.search(said, fail(capsys, *words.split()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--eta 0.01 --rho 0.01", r"diverged in round \d+: .* raise --eta \(now 0.01\) or --rho \(now 0.01\)"),
        ("--learner rff-dokl --step 3", r"diverged in round \d+: the step is too large for this data; lower --step"),
        ("--learner local --step 3", r"diverged in round \d+: .* lower --step"),
        (
            "--range 0.02 --alpha 0 --eta 1 --agents 2",
            r"outside the quantizer's range, .* widen --range or leave it adaptive",
        ),
    ],
)
def test_steps_that_diverge_are_named(capsys, words, said):
    assert re.search(said, fail(capsys, "run", *words.split(), code=1))


def test_missing_rows_are_dropped_when_asked_for(files, capsys):
    screen, err = run(capsys, "run", "holes.csv", "--missing", "drop", "--learner", "odkla")
    assert "3 rows" in screen and err == "laconic: holes.csv: dropped 1 of 4 rows with missing or infinite cells.\n"


@pytest.mark.sockets
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_without_a_connection_it_says_which_file_to_put_where(capsys, monkeypatch, tmp_path):
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    for words in ("run energy", "data fetch energy"):
        said = fail(capsys, *words.split())
        assert "needs the file energydata_complete.csv" in said and "--data-dir or LACONIC_DATA" in said
        assert str(tmp_path / "cache") in said


def test_ctrl_c_is_one_line(files):
    """A real SIGINT, in the very moment in which the command opens its network's file."""
    code = """
import signal, sys
from laconic.cli import main

def interrupt(event, details):
    if event == "open" and str(details[0]).endswith("village.txt"):
        signal.raise_signal(signal.SIGINT)

sys.addaudithook(interrupt)
sys.exit(main(["run", "flats.csv", "--network", "village.txt"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nlaconic: interrupted.\n")


def test_a_reader_who_has_seen_enough_is_no_error():
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "laconic", "data", "list"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_the_terminals_alphabet_lacks_is_a_question_mark(files):
    rows = "\n".join(f"{k % 13},{k % 7 + k % 13}.00 €" for k in range(60))
    (files / "euro.csv").write_text(f"a,price\n{rows}\n", encoding="utf-8")
    code = "import sys; from laconic.cli import main; sys.exit(main(['run', 'euro.csv', '--frequencies', '5']))"
    alphabet = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=alphabet, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"'price' is read as numbers: '0.00 ?', for one." in done.stdout
