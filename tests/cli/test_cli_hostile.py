"""Files that people really have: each is learned, or refused in one sentence."""

import json
import math
import random
from pathlib import Path

import pytest
from cli_kit import fail, run, set_terminal

from laconic.cli import main


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    set_terminal(monkeypatch, tmp_path)


def rows(n, seed=0):
    """Inputs a and b, and y = 3 sin 2a + b with a little noise."""
    draw = random.Random(seed)
    for _ in range(n):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        yield a, b, 3 * math.sin(2 * a) + b + draw.gauss(0, 0.1)


def learned(capsys, text, *words, encoding="utf-8"):
    Path("file.csv").write_bytes(text.encode(encoding))
    out, _ = run(capsys, "run", "file.csv", *words, "--json")
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


LINES = [f"{a},{b},{y}" for a, b, y in rows(240)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "file.csv is empty."),
        ("   \n\n", "file.csv is empty."),
        ("a,b,y\n", "file.csv has a header and no rows."),
        ("a,b,y\n1,2,3\n", "file.csv has only one row."),
        ("y\n1\n2\n3\n", "at least two columns, inputs and a target; only one was found"),
        ("a,y\n" + "1,2\n" * 50, "the target 'y' is 2 in every row: there is nothing to learn."),
        ("a,y\n" + "1,on\n2,on\n" * 9, "the target 'y' is on in every row: there is nothing to learn."),
        ("a,y\n" + "1,\n2,\n" * 9, "target 'y' of file.csv has no values at all."),
        ("a,b,y\n1,2,3\n1,2,3,4\n5,6,7\n" * 9, "file.csv: line 3 has 4 cells where 3 are expected."),
        ('a,b,y\n1,2,3\n1,"2,3\n' + "1,2,3\n" * 9, "a quotation mark opened in line 3 is never closed."),
        ("a,y\n1,2\0\n3,4\n", "file.csv is not a table of text: it holds binary data."),
        ("name,y\n" + "".join(f"n{k},{k}.5\n" for k in range(99)), "no column besides the target 'y' that could be"),
        ("a,y\n" + "".join(f"{(-1) ** k * 10**305},{k}\n" for k in range(99)), "data holds values too large"),
        ("a,y\n" + "".join(f"{k},w{k}\n" for k in range(99)), "'y' takes 99 values in 99 rows: no classes."),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_sentence(capsys, tmp_path, text, said):
    (tmp_path / "file.csv").write_text(text)
    assert said in fail(capsys, "run", "file.csv")
    assert said in fail(capsys, "run", "file.csv", "--json")


def test_however_it_is_written_it_is_the_same_table(capsys):
    plain = learned(capsys, "\n".join(["a,b,y", *LINES]))
    assert plain["r2_last_tenth"] > 0.8
    for text, encoding in (
        ("\ufeff" + "\r\n".join(["a,b,y", *LINES]), "utf-8"),
        ("\n".join(['"a","b","y"', *('"' + line.replace(",", '","') + '"' for line in LINES)]), "utf-8"),
        ("\n".join(["a;b;y", *(line.replace(",", ";").replace(".", ",") for line in LINES)]), "cp1252"),
        ("\n".join(["a\tb\ty", *(line.replace(",", "\t") for line in LINES)]), "utf-16"),
    ):
        found = learned(capsys, text, encoding=encoding)
        assert {**found, "seconds": 0} == {**plain, "seconds": 0}


def test_lines_that_are_too_short_lack_a_label(capsys):
    short = [line.rpartition(",")[0] if k % 10 == 5 else line for k, line in enumerate(LINES)]
    found = learned(capsys, "\n".join(["a,b,y", *short]))
    notes = " ".join(found["data"]["made_of_it"])
    assert "line 7 has 2 cells where 3 are expected: the rest counts as missing" in notes
    assert "24 rows without 'y' are predicted and not learned from" in notes and found["r2_last_tenth"] > 0.7


def test_inputs_that_never_vary_leave_the_mean(capsys):
    found = learned(capsys, "a,y\n" + "".join(f"1,{y}\n" for *_, y in rows(240)))
    assert "1 of 1 inputs do not vary and are ignored" in " ".join(found["chosen"]["why"])
    assert found["r2_last_tenth"] == pytest.approx(found["baselines"]["mean"]["r2_last_tenth"], abs=0.05)


@pytest.mark.parametrize("where", [0, 300])
def test_one_wild_label_ruins_nothing(capsys, tmp_path, where):
    clean = list(rows(600))
    lines = [f"{a},{b},{1e7 if k == where else y}" for k, (a, b, y) in enumerate(clean)]
    found = learned(capsys, "\n".join(["a,b,y", *lines]), "--partition", "time", "--out", "out")
    said = [float(line.split(",")[-1]) for line in (tmp_path / "out/predictions.csv").read_text().split()[1:]]
    late = range(450, 600)
    error = sum((said[k] - clean[k][2]) ** 2 for k in late) / len(late)
    assert error < 0.4 * 5.5  # which is the variance of y; without the wild label it is 0.05 of it
    assert found["baselines"]["linear"]["r2_last_tenth"] < -1e3  # what it does to who does not clip


def test_one_wild_input_ruins_nothing(capsys):
    lines = ["1e7," + line.partition(",")[2] if k == 100 else line for k, line in enumerate(LINES)]
    assert learned(capsys, "\n".join(["a,b,y", *lines]))["r2_last_tenth"] > 0.8


def test_infinite_cells_are_missing_ones(capsys):
    lines = ["inf," + line.partition(",")[2] if k % 9 == 0 else line for k, line in enumerate(LINES)]
    found = learned(capsys, "\n".join(["a,b,y", *lines]))
    assert "27 missing inputs are filled" in " ".join(found["data"]["made_of_it"]) and found["r2"] > 0


@pytest.mark.parametrize("number", ["{}", "{:.3f} €"])
def test_a_cell_that_is_no_number_is_missing_and_its_column_is_not(capsys, number):
    lines = [f"{number.format(a)},{b},{y}" for a, b, y in rows(200)]
    lines[40] = f"oops,{lines[40].split(',', 1)[1]}"
    lines[90] = f"{lines[90].rsplit(',', 1)[0]},dear"
    found = learned(capsys, "\n".join(["a,b,y", *lines]))
    assert found["data"]["inputs"] == ["a", "b"] and found["r2_last_tenth"] > 0.5
    assert found["data"]["made_of_it"] == [
        "'y' is read as numbers, and 'dear' in row 91 of the data counts as missing",
        "'a' is read as numbers, and 'oops' in row 41 of the data counts as missing",
        "1 missing input is filled by the mean of what came before",
        "1 row without 'y' is predicted and not learned from",
    ]


def test_words_and_codes_stay_what_they_are(capsys):
    lines = [f"{'X' if k % 40 == 7 else k % 5},street {k},{a},{y}" for k, (a, _, y) in enumerate(rows(200))]
    found = learned(capsys, "\n".join(["code,street,a,y", *lines]))
    assert "'code' is one of 6 words: 6 columns of 0 and 1" in found["data"]["made_of_it"]
    assert any("'street' holds 200 different words" in said for said in found["data"]["made_of_it"])


ESCAPES = "\x1b[31mred\x1b]0;pwned\x07"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "names.csv"),
        ("run", "names.csv", "--learner", "local"),
        ("run", "classes.csv", "--task", "classes"),
        ("run", "text.csv"),
        ("run", "names.csv", "--target", "zzz"),
        ("run", "names.csv", "--learner", ESCAPES),
        ("data", "info", "names.csv"),
        ("data", "info", f"{ESCAPES}.csv"),
        ("init", "site", "--data", "classes.csv", "--agents", "2"),
        ("init", "other", "--data", "text.csv", "--agents", "2"),
        ("tune", "names.csv", "--algorithm", "local", "--seeds", "1"),
        ("predict", "names.csv", "names.csv"),
        ("up", f"x{ESCAPES}"),
        (ESCAPES,),
        ("run", f"--{ESCAPES}"),
    ],
)
def test_names_from_files_cannot_speak_to_the_terminal(capsys, tmp_path, words):
    table = [(k % 7 / 7, k % 5 / 5, 7 * k % 11 / 11) for k in range(150)]

    def write(name, header, rows):
        lines = [",".join(str(cell) for cell in row) for row in (header, *rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("names.csv", [f"{ESCAPES}a", "b", f"t{ESCAPES}"], [(a, b, a + b + c) for a, b, c in table])
    write(
        "classes.csv",
        ["a", "b", "t"],
        [(a, b, ("cat", "dog", ESCAPES)[(k % 2) if k % 50 else 2]) for k, (a, b, _) in enumerate(table)],
    )
    write("text.csv", ["a", ESCAPES, "t"], [(a, ("x", ESCAPES)[k % 50 == 0], b) for k, (a, b, _) in enumerate(table)])
    main([*words])
    out, err = capsys.readouterr()
    assert out + err
    assert not {sign for sign in out + err if not sign.isprintable()} - {"\n"}
    for file in tmp_path.glob("*/site.toml"):
        assert "\x1b" not in file.read_text()
