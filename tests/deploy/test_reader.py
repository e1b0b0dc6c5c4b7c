"""Bytes to samples: what is read, what is refused, and that nothing else can happen."""

import json
import math

import cbor2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laconic.deploy.sources import BadSample, Reader

NAMED = Reader(2, ["warm", "damp"], "power")


@pytest.mark.parametrize(
    ("reader", "data", "x", "y"),
    [
        (Reader(2), b'{"x": [1, 2.5], "y": -3}', [1, 2.5], -3),
        (Reader(2), b' \n{"y": null, "x": [1, 2]}', [1, 2], math.nan),
        (Reader(2), b'{"x": [1, 2]}', [1, 2], math.nan),
        (Reader(2), b'{"x": [1, 2], "y": NaN}', [1, 2], math.nan),
        (Reader(2), b"[1, 2, 3]", [1, 2], 3),
        (Reader(2), b"[1, 2, null]", [1, 2], math.nan),
        (Reader(2), cbor2.dumps({"x": [1, 2.5], "y": 3}), [1, 2.5], 3),
        (Reader(2), cbor2.dumps([1, 2, None]), [1, 2], math.nan),
        (Reader(2), b"\xd9\xd9\xf7" + cbor2.dumps([1, 2, 3]), [1, 2], 3),  # CBOR that says that it is CBOR
        (Reader(2), b"\x9f\x01\x02\x03\xff", [1, 2], 3),  # a list of unknown length
        (NAMED, b'{"damp": 0.5, "power": 7, "extra": "x", "warm": 20}', [20, 0.5], 7),
        (NAMED, cbor2.dumps({"damp": 0.5, "warm": 20}), [20, 0.5], math.nan),
        (Reader(1, ["a"]), b'{"a": 1, "y": 5}', [1], math.nan),
        (Reader(1, binary=True), b"[0.5, -1]", [0.5], -1),
        (Reader(1, binary=True), b"[0.5, null]", [0.5], math.nan),
    ],
)
def test_a_sample_is_read(reader, data, x, y):
    got_x, got_y, got_time = reader(data)
    np.testing.assert_array_equal(got_x, x)
    assert got_x.dtype == np.float64 and got_time is None
    assert got_y == y or (math.isnan(got_y) and math.isnan(y))


def test_a_sample_may_have_a_time():
    assert Reader(1)(b'{"x": [1], "y": 2, "time": 1700000000.5}')[2] == 1700000000.5
    assert Reader(1)(b'{"x": [1], "y": 2, "time": "noon"}')[2] is None


@pytest.mark.parametrize(
    ("reader", "data", "why"),
    [
        (Reader(2), b"", "neither JSON nor CBOR"),
        (Reader(2), b"hello", "neither JSON nor CBOR"),
        (Reader(2), b'{"x": [1, 2], "y"', "not JSON"),
        (Reader(2), b'{"x": [1, 2]} {}', "not JSON"),
        (Reader(2), b"\xff\xfe", "neither JSON nor CBOR"),
        (Reader(2), cbor2.dumps({"x": [1, 2], "y": 3})[:-4], "neither JSON nor CBOR"),
        (Reader(2), cbor2.dumps("text"), "must be an object or a list, got 'text'"),
        (Reader(2), b"[1, 2]", "a list must hold 2 inputs and a label, got 2 entries"),
        (Reader(2), b"[1, 2, 3, 4]", "got 4 entries"),
        (Reader(2), b'{"x": [1], "y": 1}', "x must hold 2 numbers, got 1"),
        (Reader(2), b'{"x": 1, "y": 1}', "x must be a list of 2 numbers, got 1"),
        (Reader(2), b'{"y": 1}', "x must be a list of 2 numbers, got None"),
        (Reader(2), b'{"x": [1, NaN], "y": 1}', "inputs must be finite"),
        (Reader(2), b'{"x": [1, 1e400], "y": 1}', "inputs must be finite"),
        (Reader(2), b'{"x": [1, 1' + b"0" * 400 + b'], "y": 1}', "a number of more than 30 digits"),
        (Reader(2), b"[1, 1" + b"0" * 5000 + b", 1]", "not JSON"),  # more digits than Python turns into a number
        (Reader(2), b'{"x": [1, "2"], "y": 1}', "inputs must be numbers, got '2'"),
        (Reader(2), b'{"x": [1, true], "y": 1}', "inputs must be numbers, got True"),
        (Reader(2), b'{"x": [1, null], "y": 1}', "inputs must be numbers, got None"),
        (Reader(2), b'{"x": [1, [2]], "y": 1}', "inputs must be numbers, got a list"),
        (Reader(2), b'{"x": [1, 2], "y": Infinity}', "y must be finite"),
        (Reader(2), b'{"x": [1, 2], "y": 1e30}', "y must be finite and at most 1e.18 in size"),
        (Reader(2), b'{"x": [1, 2], "y": "warm"}', "y must be a number or null, got 'warm'"),
        (Reader(2), b'{"x": [1, 2], "y": false}', "y must be a number or null, got False"),
        (Reader(2), b"[" * 10_000, "not JSON"),
        (Reader(2), b"[" * 100_000, "100000 bytes are more than a sample can need"),
        (Reader(2), b"\x81" * 10_000, "neither JSON nor CBOR"),
        (Reader(2), b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "neither JSON nor CBOR"),  # a list of 2^64 - 1
        (NAMED, b"[1, 2, 3]", "must be an object with named inputs, got a list"),
        (NAMED, b'{"warm": 1, "power": 3}', "there is no input 'damp'"),
        (Reader(1, binary=True), b"[0.5, 0]", "y must be -1 or \\+1 for this loss, got 0"),
    ],
)
def test_a_bad_sample_is_refused(reader, data, why):
    with pytest.raises(BadSample, match=why) as raised:
        reader(data)
    assert len(str(raised.value)) < 300


@given(st.binary(max_size=200))
@example(cbor2.dumps({"x": cbor2.CBORTag(4, [10**9, 1]), "y": 1}))
@example(b'{"x": [1, 2], "y": 1}')
@example(b"1,2,3")
def test_whatever_comes_is_a_sample_or_refused(data):
    for read in (Reader(2), Reader(2).row, NAMED):
        try:
            parts = read(data)
        except BadSample:
            continue
        if parts is not None:
            x, y, _ = parts
            assert x.shape == (2,) and np.isfinite(x).all() and not math.isinf(y)


def test_more_inputs_may_take_more_bytes():
    data = json.dumps([-0.12345678901234567] * 5001).encode()
    assert len(data) > 65_536
    assert len(Reader(5000)(data)[0]) == 5000
    with pytest.raises(BadSample, match="bytes are more than a sample can need"):
        Reader(2)(data)
