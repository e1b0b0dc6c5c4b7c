"""Files as people have them."""

import numpy as np
import polars as pl
import pytest

from laconic.data.dressed import undressed
from laconic.data.people import fill_running, read_open


def read(tmp_path, name, lines):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_open(path)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,250.00", "($20.50)", None], [1250.0, -20.5, None]),
        (["20,5 €", "1.250,25 €", "-3 €"], [20.5, 1250.25, -3.0]),
        (["12,000", "7,500", "980"], [12000.0, 7500.0, 980.0]),
        (["1.234.567", "12.000"], [1234567.0, 12000.0]),
        (["1 234,5", "7,25"], [1234.5, 7.25]),
        (["CHF 1'200.50", "chf 3"], [1200.5, 3.0]),
        (["12.5%", "3 %"], [12.5, 3.0]),
        (["-$5", "$-5", "$5.00"], [-5.0, -5.0, 5.0]),
        (["1.5", "2.250"], [1.5, 2.25]),
        (["12 %", "red"], None),
        (["1.2.3", "4.5.6"], None),
        (["1,5", "2.5,1", "1,250.5"], None),
        (["12:30", "13:00"], None),
        (["(5", "6)"], None),
        (["", " "], None),
    ],
)
def test_numbers_are_read_as_people_write_them(cells, numbers):
    found = undressed(pl.Series("a", cells, dtype=pl.String))
    assert (None if found is None else found.to_list()) == numbers


def test_prices_are_inputs_and_labels(tmp_path):
    table = read(tmp_path, "shop.csv", ["price;rate;sold", *(f"{k},50 €;{k} %;1.0{k % 10}0,5 €" for k in range(12))])
    assert table.names == ("price", "rate") and table.X[3].tolist() == [3.5, 3.0] and table.y[4] == 1040.5
    assert table.notes[0] == "'sold' is read as numbers: '1.000,5 €', for one" and len(table.notes) == 3


def test_dates_with_times_are_numbers(tmp_path):
    table = read(tmp_path, "log.csv", ["when,y", *(f"{1 + k:02d}/02/2024 {k:02d}:30,{k}.5" for k in range(20))])
    assert table.names == ("when",) and np.allclose(np.diff(table.X[:, 0]), 1 + 1 / 24)
    american = read(tmp_path, "us.csv", ["when,y", *(f"02/{1 + k:02d}/2024,{k}.5" for k in range(20))])
    assert np.allclose(np.diff(american.X[:, 0]), 1)


def test_a_first_column_without_a_name_that_counts_is_left_out(tmp_path):
    rows = [f"{k},{k * k % 7}.5,{k % 5}.25" for k in range(20)]
    assert read(tmp_path, "index.csv", [",a,y", *rows]).names == ("a",)
    assert read(tmp_path, "named.csv", ["t,a,y", *rows]).names == ("t", "a")


def test_json_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"rows.json is JSON: save it as a table"):
        read(tmp_path, "rows.json", ['[{"a": 1, "y": 2}]'])


def test_holes_of_the_first_rounds_know_nothing_of_the_next():
    X = np.array([[[1.0]], [[np.nan]], [[5.0]], [[np.nan]]])
    assert fill_running(X, 4).ravel().tolist() == [1.0, 1.0, 5.0, 3.0]
    X[0] = np.nan
    assert fill_running(X, 4).ravel().tolist() == [5.0, 5.0, 5.0, 5.0]
