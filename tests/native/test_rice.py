"""Terms and vectors as bits: beside a reader and a writer of text in Python, and over damaged bytes."""

import numpy as np
import pytest

from laconic.native import rice


def zigzag(k):
    return 2 * k - 1 if k > 0 else -2 * k


def code(u, order):
    """The Rice code of order p, in which u >> p from 6 on grows with its digits only."""
    high, low = u >> order, format(u & (1 << order) - 1, f"0{order}b") if order else ""
    if high < 6:
        return "0" * high + "1" + low
    digits = format(high - 5, "b")
    return "0" * (6 + len(digits) - 1) + digits + low


def vector(codes):
    texts = [format(p, "04b") + "".join(code(zigzag(int(k)), p) for k in codes) for p in range(16)]
    return min(texts, key=len)


def row(codes, head):
    return (vector(codes[:head]) if head else "") + vector(codes[head:])


def body(rows, n_terms, plain):
    n = rows.shape[1] - 2
    head = 0 if plain else min(8, n // 8)
    text = ""
    for sign, step, *codes in rows[:n_terms]:
        text += "1" + ("1" if sign > 0 else "0") + format(step, "08b") + row(codes, head)
    text += "0" + (format(rows[n_terms, 0], "08b") if rows[n_terms, 0] >= 0 else "")
    longer = head + min(n_terms, (head + 1) // 2)
    for _, step, *codes in rows[n_terms:]:
        text += format(step, "08b") + row(codes, longer)
    return text


def rows_for(n, n_terms, n_vectors, scale, shift=-1):
    rng = np.random.default_rng(n)
    rows = np.clip(np.rint(scale * rng.standard_t(3, (n_terms + n_vectors, n + 2))), -(2.0**40), 2.0**40)
    rows = rows.astype(np.int64)
    rows[:, 0], rows[:, 1] = rng.choice([-1, 1], len(rows)), rng.integers(0, 256, len(rows))
    rows[n_terms:, 0] = shift
    return rows


@pytest.mark.parametrize("n", [1, 7, 8, 20, 100])
@pytest.mark.parametrize("scale", [0.0, 0.7, 30.0, 1e6, 1e12])
@pytest.mark.parametrize(
    ("n_terms", "n_vectors", "plain", "shift"), [(0, 1, True, 77), (2, 1, False, -1), (9, 3, False, -1)]
)
def test_bodies_have_the_shortest_codes(n, scale, n_terms, n_vectors, plain, shift):
    rows = rows_for(n, n_terms, n_vectors, scale, shift)
    data = np.full(3 + rice.body_bytes(rows), 255, dtype=np.uint8)
    end, text = rice.write_body(rows, n_terms, plain, data, 3), body(rows, n_terms, plain)
    written = np.unpackbits(data[3 : end + 7 >> 3])
    assert end == 24 + len(text) and "".join(map(str, written)) == text.ljust(len(written), "0")
    back = np.full((n_terms + 4 + n_vectors, n + 2), -1, dtype=np.int64)
    given = data[3 : end + 7 >> 3].copy()
    assert rice.read_body(given, plain, shift >= 0, n_terms + 4, back) == (n_terms, end - 24)
    assert np.array_equal(back[: len(rows)], rows)
    assert rice.read_body(given, plain, shift >= 0, n_terms, back[4:])[0] == n_terms
    if n_terms:  # more than the reader has room for
        assert rice.read_body(given, plain, shift >= 0, n_terms - 1, back[5:])[0] == -1
    for length in range(len(given)):  # too short
        assert rice.read_body(given[:length].copy(), plain, shift >= 0, n_terms + 4, back)[0] == -1
    assert rice.read_body(np.append(given, np.uint8(0)), plain, shift >= 0, n_terms + 4, back)[0] == -1  # too long


@pytest.mark.parametrize(
    ("text", "u"),
    [
        ("1", 0),
        ("000001", 5),
        ("0000001", 6),
        ("00000000001" + "1111", 36),  # 31 in five digits
        ("0" * 47 + "1" * 42, 2**42 + 4),  # the largest that is read
        ("0" * 48 + "1" * 43, None),
        ("0" * 200, None),
        ("", None),
    ],
)
def test_codes_that_a_reader_accepts(text, u):
    bits = "0" + "00000011" + "0000" + text  # no term, and a vector of one code, of order 0
    data, rows = np.packbits(np.array(list(bits), dtype=np.uint8)), np.zeros((1, 3), dtype=np.int64)
    found, end = rice.read_body(data, True, False, 0, rows)
    assert found == (-1 if u is None else 0)
    if u is not None:
        assert end == len(bits) and rows[0, 1] == 3 and zigzag(int(rows[0, 2])) == u


def test_filling_must_be_zeros():
    rows, data = np.array([[-1, 5, 0, 0, 0]]), np.zeros(100, dtype=np.uint8)
    end = rice.write_body(rows, 0, True, data, 0)  # 0, 8 bits, 4 bits, three codes 0
    assert end == 16
    rows[0, 2] = 1
    end = rice.write_body(rows, 0, True, data, 0)
    assert end == 17
    given = data[:3].copy()
    back = np.zeros((1, 5), dtype=np.int64)
    assert rice.read_body(given, True, False, 0, back) == (0, 17)
    given[2] |= 1
    assert rice.read_body(given, True, False, 0, back)[0] == -1


def test_damaged_bytes_are_read_safely():
    rng, n = np.random.default_rng(1), 20
    rows = rows_for(n, 4, 2, 30.0)
    data, back = np.zeros(rice.body_bytes(rows), dtype=np.uint8), np.zeros((10, n + 2), dtype=np.int64)
    given = data[: rice.write_body(rows, 4, False, data, 0) + 7 >> 3]
    outcomes = set()
    for _ in range(3000):
        damaged = np.delete(given, rng.integers(0, len(given), rng.integers(0, 3)))
        damaged[rng.integers(0, len(damaged), 2)] ^= (1 << rng.integers(0, 8, 2)).astype(np.uint8)
        found, end = rice.read_body(damaged, False, False, 8, back)
        outcomes.add(found)
        if found >= 0:  # what is read can be written, and is read again
            assert 0 <= end <= 8 * len(damaged) and np.abs(back[: found + 2, 2:]).max() <= 2**42
            again = np.zeros(rice.body_bytes(back), dtype=np.uint8)
            back[found:, 0] = -1
            length = rice.write_body(back[: found + 2].copy(), found, False, again, 0) + 7 >> 3
            copy = np.zeros_like(back)
            assert rice.read_body(again[:length].copy(), False, False, 8, copy)[0] == found
            assert np.array_equal(copy[: found + 2, 1:], back[: found + 2, 1:])
    assert {-1, 4} <= outcomes
