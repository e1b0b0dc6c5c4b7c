"""Codes and messages: bits by hand, and every message comes back from its bytes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.waves.codes import Reader, Writer, vector_bits
from laconic.waves.message import Said, Term, bfloat16, decode, encode, from_bfloat16, grid, numbered, on_grid


def bits_of(vector):
    writer = Writer()
    writer.vector(np.array(vector))
    data, n_bits = writer.data()
    return format(int.from_bytes(data, "big"), f"0{8 * len(data)}b")[:n_bits]


def test_rice_codes_by_hand():
    # Order 0: as many zeros as the zigzag integer says, and a one; the order takes four bits before them.
    assert bits_of([0, 0, 0, 0, 0, 1, -1, 2, -2]) == "0000" + "11111" + "01" + "001" + "0001" + "00001"
    # Order 2: 3 and 1 in two bits behind the one.
    assert bits_of([2, 2, -3, 4]) == "0010" + "111" + "111" + "0110" + "0111"
    # From six on the digits of (u >> p) - 5 follow six zeros, and one zero less than they are: 9 - 5 = 100.
    assert bits_of([0] * 30 + [5]) == "0000" + "1" * 30 + "000000" + "00" + "100"
    # Order 4, u = 6 * 16 + 3: six zeros, a one, and 0011.
    assert bits_of([8] * 9 + [50]) == "0100" + "11111" * 9 + "000000" + "1" + "0011"


def test_a_vector_takes_the_bits_that_are_counted():
    rng = np.random.default_rng(0)
    for scale in (0.3, 1.0, 5.0, 200.0, 1e9):
        codes = np.rint(scale * rng.standard_normal(50)).astype(np.int64)
        assert len(bits_of(codes)) == vector_bits(codes)
        writer = Writer()
        writer.vector(codes)
        data, n_bits = writer.data()
        reader = Reader(data)
        assert np.array_equal(reader.vector(50), codes)
        assert reader.finish() == n_bits


def lengths_of_all_orders(codes):
    def length(high):
        return high + 1 if high < 6 else 6 + 2 * (high - 5).bit_length() - 1

    unsigned = [2 * k - 1 if k > 0 else -2 * k for k in codes]
    return [sum(length(u >> p) + p for u in unsigned) for p in range(16)]


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=30))
def test_the_cheapest_order_is_taken(codes):
    assert vector_bits(np.array(codes)) == 4 + min(lengths_of_all_orders(codes))


def test_bits_of_a_message_by_hand():
    nothing = Said(1, False, 3.0, 1.0, 0.0, (), 128, np.zeros(4, dtype=np.int64))
    data, n_bits = encode(nothing)
    assert n_bits == 112 + 1 + 8 + (4 + 4)
    assert len(data) == 17
    term = Term(-1, 200, np.array([1, 0, 0, -1]))
    assert encode(nothing._replace(terms=(term,)))[1] == n_bits + 1 + 1 + 8 + (4 + 2 + 1 + 1 + 3)
    down = nothing._replace(thin=0.5)
    assert encode(down)[1] == 64 + 1 + 8 + (4 + 4)
    assert encode(down._replace(flag=True, lift=100))[1] == 64 + 1 + 8 + 8 + (4 + 4)
    # wave 1, flag 0, n = 3 as float32, q = 1 and v, pull, doubt = 0 as bfloat16, end, step 128, order 0, four zeros
    assert data.hex() == "0002" + "40400000" + "3f80" + "0000" * 3 + "400780"
    assert encode(down)[0].hex() == "0002" + "40400000" + "3f00" + "400780"
    # Of two outputs, each has its four numbers and its vector: a step, an order, the codes.
    two = np.array([1.0, -2.0])
    steps, codes = np.array([128, 129]), np.zeros((2, 4), dtype=np.int64)
    both = Said(1, False, 3.0, two, two, (), steps, codes, pull=two, doubt=two)
    assert encode(both)[1] == 48 + 2 * 64 + 1 + 2 * (8 + 4 + 4)


numbers = st.floats(0, 1e30, allow_nan=False)
vectors = st.lists(st.integers(-1000, 1000), min_size=5, max_size=5).map(np.array)
terms = st.builds(Term, st.sampled_from([-1, 1]), st.integers(0, 255), vectors)


@given(
    st.integers(0, 2**15 - 1), st.lists(terms, max_size=4), numbers, numbers, vectors, st.integers(0, 255) | st.none()
)
def test_messages_come_back(wave, terms, n, q, codes, lift):
    n = float(np.float32(n))
    up = Said(wave, False, n, q, 2 * q, tuple(terms), 77, codes, pull=-q, doubt=3 * q)
    down = Said(wave, lift is not None, n, 0.0, 0.0, tuple(terms), 77, codes, lift, thin=0.125)
    for said in (up, down):
        data, n_bits = encode(said)
        back, read = decode(data, 5, down=said is down)
        assert read == n_bits and len(data) == -(-n_bits // 8)
        assert (back.wave, back.flag, back.n, back.step, back.lift) == (wave, said.flag, n, 77, said.lift)
        assert back.thin == said.thin
        sizes = [said.q, said.v, said.pull, said.doubt]
        assert [back.q, back.v, back.pull, back.doubt] == pytest.approx(sizes, rel=2**-8, abs=1e-40)
        assert np.array_equal(back.codes, codes)
        for one, other in zip(back.terms, terms, strict=True):
            assert one[:2] == other[:2] and np.array_equal(one.codes, other.codes)


@given(st.lists(st.tuples(numbers, st.integers(0, 255), vectors), min_size=2, max_size=4), st.lists(terms, max_size=2))
def test_messages_of_several_outputs_come_back(outputs, terms):
    q, steps, codes = (np.array(column) for column in zip(*outputs, strict=True))
    up = Said(3, True, 10.0, q, 2 * q, tuple(terms), steps, codes, pull=-q, doubt=3 * q)
    down = Said(3, False, 10.0, 0.0, 0.0, tuple(terms), steps, codes, thin=1.0)
    for said in (up, down):
        data, n_bits = encode(said)
        back, read = decode(data, 5, down=said is down, outputs=len(q))
        assert read == n_bits and len(data) == -(-n_bits // 8) and len(back.terms) == len(terms)
        assert np.array_equal(back.step, steps) and np.array_equal(back.codes, codes)
        np.testing.assert_allclose(back.pull, said.pull, rtol=2**-8, atol=1e-40)


@given(st.binary(max_size=40))
def test_nonsense_is_refused(data):
    try:
        said, n_bits = decode(data, 5, down=False)
    except ValueError:
        return
    assert len(data) == -(-n_bits // 8)
    again, _ = decode(encode(said)[0], 5, down=False)
    assert np.array_equal(again.codes, said.codes)


def test_what_is_cut_off_or_prolonged_is_refused():
    data, _ = encode(Said(3, False, 10.0, 1.0, 1.0, (), 128, np.arange(6)))
    for wrong in (data[:-1], b"", data + b"\0"):
        with pytest.raises(ValueError, match="message"):
            decode(wrong, 6, down=False)
    with pytest.raises(ValueError, match="not finite"):
        decode(data[:2] + b"\x7f\xc0\0\0" + data[6:], 6, down=False)


def test_the_grid_rounds_down_to_a_fourth_of_a_power_of_two():
    for size in (1e-3, 0.7, 1.0, 2.0, 3.3, 1e5):
        value = on_grid(grid(size))
        assert value <= size < value * 2**0.25 * (1 + 1e-12)
        assert value == pytest.approx(2 ** (math.floor(4 * math.log2(size)) / 4), rel=1e-15)
    assert (grid(0.0), grid(float("nan")), grid(math.inf), grid(1e-300)) == (0, 0, 255, 0)
    assert (on_grid(0), on_grid(255)) == (2.0**-32, 2.0**31 * 1.681792830507429)
    assert all(on_grid(j) == math.ldexp(on_grid(128 + j % 4), j // 4 - 32) for j in range(256))


def test_sixteen_bits_of_a_float():
    for number, kept in ((0.0, 0.0), (1.0, 1.0), (1.00390625, 1.0), (1.01171875, 1.015625)):
        assert from_bfloat16(bfloat16([number, -number])) == (kept, -kept)
    largest, least = from_bfloat16(bfloat16([1e300, -1e300]))
    assert math.isfinite(largest) and least < -1e38


def test_waves_are_numbered_from_one_and_none_is_a_sweep():
    assert [numbered(wave) for wave in (1, 2, 2**15 - 1, 2**15, 2**15 + 1)] == [1, 2, 2**15 - 1, 1, 2]
