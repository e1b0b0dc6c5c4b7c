"""The genuine files: parsed as they are, and equal to the prepared sets where these exist.

They are not part of the package. ``raw_data`` says where they are looked for; else these tests skip.
"""

import numpy as np
import pytest
from raw_data import FOLDER, find_raw
from scipy.io import loadmat

from laconic import data

pytestmark = [pytest.mark.data, pytest.mark.slow]


def load(name, **options):
    try:
        return data.load(name, data_dir=FOLDER, download=False, **options)
    except data.Unavailable:
        pytest.skip(f"the raw file of {name!r} is not in {FOLDER}")


@pytest.mark.parametrize(
    ("name", "file", "shape", "tolerance"),
    [
        ("air-quality", "AirData.mat", (7322, 13), 1e-3),
        ("toms-hardware", "TomData.mat", (9725, 96), 1e-9),
        ("energy", "EnergyData.mat", (18604, 25), 1e-9),
        ("twitter", "TwitterData.mat", (13813, 77), 1e-9),
    ],
)
def test_prepared_protocol_scaled_by_matrix_is_the_prepared_set(name, file, shape, tolerance):
    prepared = loadmat(find_raw(file))
    loaded = load(name, protocol="prepared")
    assert loaded.X.shape == shape
    assert loaded.protocol == "prepared"
    np.testing.assert_allclose(data.scale(loaded.X, "matrix"), prepared["X"].T, rtol=0, atol=tolerance)
    np.testing.assert_allclose(data.scale(loaded.y, "matrix"), prepared["y"][:, 0], rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("air-quality", (7320, 13)),
        ("energy", (18600, 28)),
        ("toms-hardware", (11000, 96)),
        ("conductivity", (21260, 81)),
        ("blood", (61000, 2)),
    ],
)
def test_paper_protocol_has_the_rows_and_inputs_that_the_paper_counts(name, shape):
    loaded = load(name)
    assert loaded.X.shape == shape
    assert loaded.y.shape == shape[:1]
    assert len(loaded.names) == len(set(loaded.names)) == shape[1]
    assert loaded.X.dtype == loaded.y.dtype == np.float64
    assert np.isfinite(loaded.X).all() and np.isfinite(loaded.y).all()


def test_air_quality_row_by_row():
    air = load("air-quality")
    assert air.names[:3] == ("hour/24", "PT08.S1(CO)", "NMHC(GT)")
    np.testing.assert_array_equal(air.X[0, :5], [18 / 24, 1360, 150, 11.9, 1046])
    assert air.y[0] == 2.6
    assert air.y.min() > 0  # no -200 among the labels ...
    assert (air.X == -200).any()  # ... but among the inputs, as the paper's counts imply


def test_energy_row_by_row():
    energy = load("energy")
    assert energy.names[0] == "hour/24" and energy.names[-2:] == ("rv1", "rv2")
    np.testing.assert_allclose(energy.X[0, :3], [17 / 24, 30, 19.89], rtol=1e-15)
    np.testing.assert_allclose(energy.X[1, 0], (17 + 1 / 6) / 24, rtol=1e-15)
    assert energy.y.max() == 300
    np.testing.assert_array_equal(load("energy", protocol="prepared").X[:18600], energy.X[:, 1:-2])


def test_blood_has_pressure_as_label_whatever_the_header_says():
    blood = load("blood")
    assert blood.names == ("PPG", "ECG") and blood.target == "ABP"
    np.testing.assert_array_equal(blood.X[0], [1.7595307917888563, -0.06060606060606061])
    assert blood.y[0] == 67.0629551659967
    assert blood.y.min() > 50 and blood.y.max() < 200  # mmHg


def test_n_rows_replaces_the_count_of_the_paper():
    whole = load("toms-hardware", n_rows=28179)
    assert len(whole) == 28179
    np.testing.assert_array_equal(whole.X[:11000], load("toms-hardware").X)
    assert len(load("twitter", n_rows=5)) == 5
    with pytest.raises(ValueError, match="n_rows must be at most 28179"):
        load("toms-hardware", n_rows=28180)


@pytest.mark.parametrize(
    ("name", "shape", "positive"),
    [("twitter-classes", (8000, 77), 1576), ("electricity", (45312, 6), 19237), ("eeg-eye-state", (14980, 14), 6723)],
)
def test_classes_are_minus_and_plus_one(name, shape, positive):
    loaded = load(name)
    if name == "twitter-classes" and len(loaded) != 8000:
        pytest.skip("another sample of the set is at hand")
    assert loaded.X.shape == shape
    assert set(np.unique(loaded.y)) == {-1.0, 1.0}
    assert int((loaded.y > 0).sum()) == positive
    assert loaded.classes is not None and loaded.classes[1] in repr(loaded)


@pytest.mark.parametrize(
    ("name", "shape", "first"),
    [("california-housing", (20640, 8), (-122.23, 452600)), ("power-plant", (9568, 4), (14.96, 463.26))],
)
def test_regression_extras(name, shape, first):
    loaded = load(name)
    assert loaded.X.shape == shape
    assert (loaded.X[0, 0], loaded.y[0]) == first


def test_raw_air_quality_as_a_file_of_ones_own():
    with pytest.warns(UserWarning, match="'Date' \\(dates\\), 'Time' \\(dates\\)"):
        air = data.load(find_raw("AirQualityUCI.csv"), target="CO(GT)")
    assert air.X.shape == (9357, 12)
    assert air.y[0] == 2.6
    assert air.protocol is None and not air.citation
