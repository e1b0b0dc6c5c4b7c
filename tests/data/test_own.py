"""A person's own files: whatever separator, header and wrapping they have, and one sentence for what cannot be read."""

import codecs
import contextlib
import csv
import datetime
import gzip
import io
import lzma
import re
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import data
from laconic.data import people, readers


def write(folder, content, name="my.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 4))


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(
    table=st.integers(2, 5).flatmap(
        lambda d: st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=2, max_size=8)
    ),
    separator=st.sampled_from([",", ";", "\t", "|", " "]),
    header=st.booleans(),
    comma=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_of_numbers_comes_back(table, separator, header, comma, quoting, ending):
    comma = comma and separator != ","
    if separator == " ":
        quoting = csv.QUOTE_MINIMAL
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, quoting=quoting, lineterminator=ending)
    if header:
        writer.writerow([f"name_{k}" for k in range(len(table[0]))])
    for row in table:
        writer.writerow([repr(x).replace(".", ",") if comma else repr(x) for x in row])
    with tempfile.TemporaryDirectory() as folder:
        loaded = data.load(write(Path(folder), buffer.getvalue()))
    np.testing.assert_array_equal(np.column_stack([loaded.X, loaded.y]), table)
    assert loaded.names[0] == ("name_0" if header else "x0")


@pytest.mark.parametrize(
    ("content", "X", "y", "names"),
    [
        ("a,b,y\n1,2,3\n4,5,6\n", [[1, 2], [4, 5]], [3, 6], ("a", "b")),
        ("1,2,3\n4,5,6\n", [[1, 2], [4, 5]], [3, 6], ("x0", "x1")),
        ("a;y\n1,5;2\n-2,25;1e3\n", [[1.5], [-2.25]], [2, 1000], ("a",)),
        ("  1.0   2.0  3\n 10.5  -4    5\n", [[1, 2], [10.5, -4]], [3, 5], ("x0", "x1")),
        ('"a","y"\r\n" 2.2e+01"," 6"\r\n"+1","  7 "\r\n', [[22], [1]], [6, 7], ("a",)),
        ("a,y,,\n1,2,,\n3,4,,\n,,,\n,,,\n", [[1], [3]], [2, 4], ("a",)),
        ("\n\na,y\n\n1,2\n\n3,4\n\n\n", [[1], [3]], [2, 4], ("a",)),
        ("a,y\r1,2\r3,4\r", [[1], [3]], [2, 4], ("a",)),
        ("2010,2011,y\n1,2,3\n4,5,6\n", [[1, 2], [4, 5]], [3, 6], ("2010", "2011")),
        ("a,a,y\n1,2,3\n4,5,6\n", [[1, 2], [4, 5]], [3, 6], ("a", "a_duplicated_0")),
        ('"a, b",y\n1,2\n3,4\n', [[1], [3]], [2, 4], ("a, b",)),
        (".5,1.\n-.25,+2\n", [[0.5], [-0.25]], [1, 2], ("x0",)),
        ("on,y\ntrue,1\nfalse,2\n", [[1], [0]], [1, 2], ("on",)),
        ("1,2\n", [[1]], [2], ("x0",)),
        ("a,y\n1,2", [[1]], [2], ("a",)),
        ("n,y\n123456789012345678901234567890,2\n1,3\n", [[1.2345678901234568e29], [1]], [2, 3], ("n",)),
    ],
)
def test_shapes_that_tables_come_in(tmp_path, content, X, y, names):
    loaded = data.load(write(tmp_path, content))
    np.testing.assert_array_equal(loaded.X, X)
    np.testing.assert_array_equal(loaded.y, y)
    assert loaded.names == names
    assert loaded.X.dtype == np.float64 and loaded.X.ndim == 2


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("cp1252"),
        lambda text: gzip.compress(text.encode()),
        lambda text: lzma.compress(text.encode()),
    ],
)
def test_encodings_and_wrappings(tmp_path, encode):
    loaded = data.load(write(tmp_path, encode("größe,y\n1,2\n3,4\n")))
    assert loaded.names == ("größe",)
    np.testing.assert_array_equal(loaded.y, [2, 4])


def test_numbers_that_turn_fractional_or_textual_late(tmp_path):
    rows = ["a,b,y"] + ["1,2,3"] * 3000 + ["1.5,2,3", " 7 ,2,3"]
    loaded = data.load(write(tmp_path, "\n".join(rows)))
    assert loaded.X[-2, 0] == 1.5 and loaded.X[-1, 0] == 7
    rows.append("1,word,3")
    with pytest.warns(UserWarning, match="'b' \\(text: 'word', for one\\)"):
        assert data.load(write(tmp_path, "\n".join(rows))).names == ("a",)


@pytest.mark.parametrize(
    ("target", "name", "y"),
    [
        (None, "c", [3, 6]),
        ("a", "a", [1, 4]),
        (0, "a", [1, 4]),
        (-2, "b", [2, 5]),
        ("1", "b", [2, 5]),
        (np.int64(1), "b", [2, 5]),
    ],
)
def test_target_by_name_or_index(tmp_path, target, name, y):
    loaded = data.load(write(tmp_path, "a,b,c\n1,2,3\n4,5,6\n"), target=target)
    assert loaded.target == name and name not in loaded.names
    np.testing.assert_array_equal(loaded.y, y)


def test_a_column_called_by_a_digit_is_meant_by_it(tmp_path):
    assert data.load(write(tmp_path, "1,x,0\n5,6,7\n8,9,10\n"), target="0").y.tolist() == [7, 10]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("pric", "target must be a column of my.csv, which has none called 'pric': did you mean 'price'"),
        ("zzz", "none called 'zzz': its columns are 'price', 'area'"),
        (2, "target must be an index below 2"),
        (-3, "target must be an index below 2"),
        (1.0, "target must be the name or the index of a column, got 1.0"),
        (True, "target must be the name or the index of a column, got True"),
    ],
)
def test_target_that_is_not_there(tmp_path, target, sentence):
    with pytest.raises(ValueError, match=sentence):
        data.load(write(tmp_path, "price,area\n1,2\n3,4\n"), target=target)


def test_columns_that_are_not_numbers_are_dropped_by_name(tmp_path):
    content = (
        "when,clock,town,a,note,y\n2020-01-01 10:00:00,10:00:00,Rome,1,,5\n2020-01-02 10:00:00,11:30:00,Oslo,2,,6\n"
    )
    expected = (
        "columns that are not numbers: 'when' (dates), 'clock' (dates), 'town' (text: 'Rome', for one), 'note' (empty)."
    )
    with pytest.warns(UserWarning, match=re.escape(expected)) as caught:
        loaded = data.load(write(tmp_path, content))
    assert loaded.names == ("a",)
    assert caught[0].filename == __file__  # the warning points to the caller


@pytest.mark.parametrize(
    ("cells", "classes", "y"),
    [
        (["yes", "no", "yes"], ("no", "yes"), [1, -1, 1]),
        (["true", "false", "true"], ("false", "true"), [1, -1, 1]),
        ([" UP", "DOWN ", "UP"], ("DOWN", "UP"), [1, -1, 1]),
    ],
)
def test_two_words_become_signs(tmp_path, cells, classes, y):
    content = "a,label\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells))
    loaded = data.load(write(tmp_path, content))
    np.testing.assert_array_equal(loaded.y, y)
    assert loaded.classes == classes
    assert f"-1 stands for {classes[0]!r} and +1 for {classes[1]!r}" in loaded.description


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["a", "b", "c"], "must be numbers or two classes, but it holds 3 different words \\('a', 'b', 'c'\\)"),
        (["a", "a", "a"], "but it holds one word \\('a'\\)"),
        (["2020-01-01", "2020-01-02", "2020-01-02"], "but it holds dates"),
        (["", "NA", "?"], "target 'label' of my.csv has no values at all"),
    ],
)
def test_a_target_that_cannot_be_learned(tmp_path, cells, sentence):
    content = "a,label,b\n" + "".join(f"{k},{cell},1\n" for k, cell in enumerate(cells))
    with pytest.raises(ValueError, match=sentence):
        data.load(write(tmp_path, content), target="label")


@pytest.mark.parametrize("cell", ["", "NA", "nan", "?", "null", " N/A "])
def test_missing_cells(tmp_path, cell):
    path = write(tmp_path, f"a,b,y\n1,2,3\n4,{cell},6\n7,8,9\n")
    with pytest.raises(
        ValueError, match="a row with missing .* first is missing, in column 'b', row 2 of the data.*missing='drop'"
    ):
        data.load(path)
    with pytest.warns(UserWarning, match="dropped 1 of 3 rows") as caught:
        loaded = data.load(path, missing="drop")
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(loaded.y, [3, 9])


def test_infinite_cells_and_missing_labels(tmp_path):
    with pytest.raises(ValueError, match="first is infinite, in column 'a', row 1"):
        data.load(write(tmp_path, "a,y\ninf,2\n3,4\n"))
    with pytest.raises(ValueError, match="2 rows with .* first is missing, in column 'y', row 2"):
        data.load(write(tmp_path, "a,y\n1,2\n3,\n5,\n7,8\n"))
    with pytest.raises(ValueError, match="no row without a missing or infinite cell"):
        data.load(write(tmp_path, "a,b,y\n1,,2\n,3,4\n"), missing="drop")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "my.csv is empty"),
        (b" \n\r\n  ", "my.csv is empty"),
        (b"a,b,c\n", "my.csv has a header and no rows"),
        (b"a\n1\n2\n", "must have at least two columns"),
        (b"a,b\n1,2\n3,4,5\n6,7\n", "my.csv: line 3 has 3 cells where 2 are expected"),
        (b"a,b,y\n1,2,3\n4,5\n6,7,8\n", "line 3 has 2 cells where 3 are expected"),
        (b"a;b;y\n1;2;3\n\n4;5;6;7\n", "line 4 has 4 cells where 3 are expected"),
        (b'a,y\n1,2\n"3,4\n5,6\n', "a quotation mark opened in line 3 is never closed"),
        (b'a,y\n"' + b"x" * 200_000 + b'",1\n2,3\n', "line 2 has a cell of more than 100000 characters"),
        (b"a,y\n1,2\n" * 100 + b"y" * 120_000 + b",1\n", "has a cell of more than 100000 characters"),
        (bytes(range(256)) * 20, "is not a table of text: it holds binary data"),
        (np.random.default_rng(0).bytes(5000), "is not a table of text"),
        (b"PK\x03\x04rest", "a zip archive or a spreadsheet"),
        (b"PAR1rest", "a Parquet file: give it the ending .parquet"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"date,name\n2020-01-01,x\n", "must be numbers or two classes"),
        (b"name,y\nfoo,1\nbar,2\n", "no column of numbers besides the target 'y'"),
        (lzma.compress(b"a,y\n1,2\n" * 1000)[:60], "is damaged or incomplete"),
        (gzip.compress(b"a,y\n1,2\n" * 1000, mtime=0)[:40], "is damaged or incomplete"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        data.load(write(tmp_path, content))
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and "my.csv" in message


def test_parquet(tmp_path):
    frame = pl.DataFrame(
        {
            "day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
            "whole": pl.Series([1, 2], dtype=pl.Int16),
            "flag": [True, False],
            "digits": ["1.5", " 2"],
            "word": pl.Series(["u", "v"], dtype=pl.Categorical),
            "y": pl.Series([0.5, 0.25], dtype=pl.Float32),
        }
    )
    frame.write_parquet(tmp_path / "my.parquet")
    with pytest.warns(UserWarning, match="'day' \\(dates\\), 'word' \\(text: 'u', for one\\)"):
        loaded = data.load(tmp_path / "my.parquet")
    assert loaded.names == ("whole", "flag", "digits")
    np.testing.assert_array_equal(loaded.X, [[1, 1, 1.5], [2, 0, 2]])
    np.testing.assert_array_equal(loaded.y, [0.5, 0.25])
    frame.select("whole", "word").write_parquet(tmp_path / "two.parquet")
    assert data.load(tmp_path / "two.parquet").classes == ("u", "v")
    packed = write(tmp_path, gzip.compress((tmp_path / "two.parquet").read_bytes()), "two.parquet.gz")
    assert data.load(packed).y.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"a,y\n1,2\n", "is not a Parquet file"),
        (b"PAR1" + bytes(40) + b"PAR1", "is not a Parquet file"),
    ],
)
def test_bad_parquet(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        data.load(write(tmp_path, content, "my.parquet"))
    assert "\n" not in str(caught.value)


def test_parquet_with_a_label_that_is_a_list(tmp_path):
    pl.DataFrame({"a": [1.0, 2.0], "y": [[1], [2]]}).write_parquet(tmp_path / "my.parquet")
    with pytest.raises(ValueError, match="target 'y' of my.parquet must be numbers or two classes, but it holds List"):
        data.load(tmp_path / "my.parquet")


ARFF = """% a comment
@RELATION 'some thing'

@attribute temp numeric
@Attribute 'the wind' REAL
@attribute outlook {sunny, 'over cast', rain}
@attribute level {1,2,3}
@attribute play {yes, no}
@data
% another
1.5, 2, sunny, 1, yes
?, 4, 'over cast', 3, no

2.5,6,rain,2,no
"""


def test_arff(tmp_path):
    path = write(tmp_path, ARFF, "my.arff")
    with (
        pytest.warns(
            UserWarning, match="dropped the column that is not numbers: 'outlook' \\(text: 'sunny', for one\\)"
        ),
        pytest.warns(UserWarning, match="dropped 1 of 3 rows"),
    ):
        loaded = data.load(path, missing="drop")
    assert loaded.names == ("temp", "the wind", "level")
    np.testing.assert_array_equal(loaded.X, [[1.5, 2, 1], [2.5, 6, 2]])
    assert loaded.classes == ("no", "yes")
    np.testing.assert_array_equal(loaded.y, [1, -1])


def test_arff_sparse_rows_and_numeric_classes(tmp_path):
    content = (
        "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute c {0,1}\n@data\n{0 2.5, 2 1}\n{1 -3}\n{}\n"
    )
    loaded = data.load(write(tmp_path, content, "my.arff"))
    np.testing.assert_array_equal(loaded.X, [[2.5, 0], [0, -3], [0, 0]])
    np.testing.assert_array_equal(loaded.y, [1, -1, -1])
    assert loaded.classes == ("0", "1")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,y\n1,2\n", "line 1 is not a line of an ARFF header: 'a,y'"),
        ("@relation r\n", "is not an ARFF file: it has no @attribute line"),
        ("@relation r\n@attribute a numeric\n", "is not an ARFF file: it has no @data line"),
        ("@relation r\n@attribute a\n@data\n1\n", "line 2 does not declare an attribute"),
        ("@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n", "has a header and no rows"),
        (
            "@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n\n3\n4,5,6\n",
            "line 7 has 1 cells where 2",
        ),
        ("@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,2,3\n", "line 5 has 3 cells where 2"),
        (
            "@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n{5 1}\n",
            "line 5 is not a sparse row of 2 columns",
        ),
        ("@relation r\n@attribute a numeric\n@attribute b {x,y,z}\n@data\n1,x\n2,y\n3,z\n", "3 different words"),
    ],
)
def test_bad_arff(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        data.load(write(tmp_path, content, "my.arff"))
    assert "\n" not in str(caught.value)


def test_a_relative_file_is_also_looked_for_in_data_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", "a,y\n1,2\n")
    assert len(data.load("my.csv", data_dir="below")) == 1
    with pytest.raises(ValueError, match="is a folder"):
        data.load("below")


def test_n_rows_of_a_file(tmp_path):
    path = write(tmp_path, "a,y\n1,2\n3,4\n5,6\n")
    assert data.load(path, n_rows=2).y.tolist() == [2, 4]
    with pytest.raises(ValueError, match="n_rows must be at most 3, the number of rows of 'my.csv'; got 4"):
        data.load(path, n_rows=4)


def test_the_repr_is_short_and_says_what_matters(tmp_path):
    header = ",".join([f"c{k}" for k in range(9)])
    row = ",".join(["1"] * 9)
    assert repr(data.load(write(tmp_path, f"{header}\n{row}\n"))) == (
        "Dataset 'my.csv': 1 row, 8 inputs (c0, c1, c2, c3, ..., c7), target c8 from 1 to 1"
    )


TITANIC = ",class,age,survived\n" + "".join(f"{k},{k % 3 + 1}st,adults,{'yn'[k % 2]}\n" for k in range(20))
BANANAS = "1,2,target\n" + "".join(f"{k / 7:.3f},{k / 3:.3f},{bool(k % 2)}\n" for k in range(20))
YEARS = "2019,2020,2021\n" + "".join(f"{k},{k * k},{3 * k}\n" for k in range(20))


@pytest.mark.filterwarnings("ignore:.*taken for names", "ignore:.*dropped")
@pytest.mark.parametrize(
    ("content", "target"),
    [
        (TITANIC, "survived"),
        (TITANIC, None),
        (BANANAS, "target"),
        (YEARS, "2021"),
        (YEARS.replace("2021", '"y "'), "y"),
    ],
)
def test_a_header_that_looks_like_data_is_seen(tmp_path, content, target):
    path = write(tmp_path, content)
    read = people.read_open(path, target)
    assert len(read.y) == 20 and read.target == (target or "survived")
    if content is not TITANIC:
        assert len(data.load(path, target=target)) == 20


def test_the_name_of_the_target_wins_over_an_index(tmp_path):
    path = write(tmp_path, "3,1,2\n" + "".join(f"{k},{k * k},{7 * k}\n" for k in range(10)))
    with pytest.warns(UserWarning, match="my.csv: its first line is taken for names, since '2' is one of them"):
        assert data.load(path, target="2").y.tolist() == [7.0 * k for k in range(10)]
    assert data.load(path, target=2).y.tolist() == [2.0, *(7.0 * k for k in range(10))]
    assert data.load(path, target="2", header=False).y.tolist() == [2.0, *(7.0 * k for k in range(10))]
    assert data.load(path, header=True).names == ("3", "1")


def test_a_first_line_with_a_hole_is_no_header(tmp_path):
    path = write(tmp_path, ",5.1,3.5\n4.9,3.0,1.4\n4.7,3.2,1.3\n")
    read = people.read_open(path)
    assert len(read.y) == 3 and read.names == ("x0", "x1")


def test_a_header_is_said_of_text_only(tmp_path):
    pl.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]}).write_parquet(tmp_path / "t.parquet")
    for name in (tmp_path / "t.parquet", "synthetic"):
        with pytest.raises(ValueError, match="header is for"):
            data.load(name, header=True)


def test_a_small_file_that_unpacks_to_more_than_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("laconic._validate.available", lambda: 8e6)
    rows = b"1,2\n" * 300_000
    for name, packed in (("my.csv.gz", gzip.compress(rows)), ("my.csv.xz", lzma.compress(rows))):
        with pytest.raises(ValueError, match=r"unpacks to more than 0.001 GB, too much for the memory that is free\.$"):
            data.load(write(tmp_path, packed, name))
        assert len(data.load(write(tmp_path, packed[:0] + gzip.compress(rows[:40]), "small.csv"))) == 10
    frame = pl.select(a=pl.repeat(1.0, 300_000), y=pl.repeat(2.0, 300_000))
    frame.write_parquet(tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"t.parquet unpacks to 0.0048 GB, too much for the memory"):
        data.load(tmp_path / "t.parquet")


@pytest.mark.parametrize("place", [17, 69, 184, 507, 509, 541, 1087, 1715, 1724, 2300])
def test_a_spoiled_parquet_file_prints_no_backtrace(capfd, place):
    buffer = io.BytesIO()
    words = [["x", "y", "zz"][k % 3] for k in range(300)]
    pl.DataFrame({"a": np.arange(300.0), "w": words, "y": np.arange(300)}).write_parquet(buffer)
    for bit in (1, 64):
        spoiled = bytearray(buffer.getvalue())
        spoiled[place] ^= bit
        with contextlib.suppress(ValueError):
            readers.parquet(bytes(spoiled), "t.parquet")
    assert capfd.readouterr().err == ""
