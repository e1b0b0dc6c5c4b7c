"""Reflections that put what is large into the head of a message: reflections indeed, and the same at both ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.engine.wave_arithmetic import CompiledArithmetic
from laconic.waves import Arithmetic
from laconic.waves.codes import vector_bits
from laconic.waves.message import Said, Term, decode, encode, heads
from laconic.waves.turning import longer, reflections, strongest, turned, turned_back, turned_matrix

SLOW, FAST = Arithmetic(), CompiledArithmetic()


def known_by(rng, n, rank):
    """What a subtree knows: information along a few directions; and a factor by which all is whitened."""
    half = rng.standard_normal((rank, n)) * np.logspace(0, -2, rank)[:, None]
    information = half.T @ half
    information = 0.5 * (information + information.T)
    return information, np.linalg.cholesky(30 * information + 0.3 * np.eye(n))


def matrix_from(known, n):
    """The product of H = I - v v', the plain way."""
    product = np.eye(n)
    for v in known:
        product = (np.eye(n) - np.outer(v, v)) @ product
    return product


@pytest.mark.parametrize("n", [8, 9, 22, 64, 101])
@pytest.mark.parametrize("rank", [0, 1, 3, 30])
def test_reflections_put_the_strongest_directions_first(n, rank):
    information, lower = known_by(np.random.default_rng(n + rank), n, rank)
    known = reflections(information, lower)
    assert len(known) == min(heads(n, 0)[0], rank)
    product = matrix_from(known, n)
    np.testing.assert_allclose(product @ product.T, np.eye(n), atol=1e-12)
    # What is whitened of the columns of a pivoted factor stands in as many coordinates, by any QR.
    columns = np.linalg.solve(lower, strongest(information, len(known)).T)
    np.testing.assert_allclose(
        (product @ columns)[len(known) :], 0.0, atol=1e-9 * max(1.0, abs(columns).max(initial=0))
    )
    np.testing.assert_allclose(abs(np.diag(product @ columns)), abs(np.diag(np.linalg.qr(columns)[1])), rtol=1e-9)
    x = np.random.default_rng(0).standard_normal(n)
    np.testing.assert_allclose(turned(known, x), product @ x, atol=1e-12)
    np.testing.assert_allclose(turned_back(known, turned(known, x)), x, atol=1e-12)
    symmetric = np.outer(x, x)
    np.testing.assert_allclose(turned_matrix(known, symmetric), product @ symmetric @ product.T, atol=1e-11)


def test_the_strongest_columns_are_those_of_a_pivoted_factor():
    information, _ = known_by(np.random.default_rng(1), 40, 12)
    columns, left = strongest(information, 12), information.copy()
    for column in columns:  # by elimination from the whole matrix, the largest left on the diagonal first
        pivot = int(np.argmax(np.diag(left)))
        np.testing.assert_allclose(column, left[pivot] / np.sqrt(left[pivot, pivot]), rtol=1e-6, atol=1e-9)
        left -= np.outer(column, column)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


def test_who_knows_nothing_turns_nothing():
    n = 30
    assert reflections(np.zeros((n, n)), np.eye(n)).shape == (0, n)
    assert longer(np.zeros((0, n)), []).shape == (0, n)
    nothing = np.zeros(n, dtype=np.int64)
    assert not longer(np.zeros((0, n)), [Term(1, 0, nothing)]).any()  # a term of zeros reflects nothing
    assert FAST.turning(np.zeros((n, n)), np.eye(n)).shape == (0, n)


@pytest.mark.parametrize("n", [1, 7, 8, 21, 22, 23, 100])
@pytest.mark.parametrize("outputs", [1, 3])
def test_both_ends_understand_the_same(n, outputs):
    rng = np.random.default_rng(n)
    information, lower = known_by(rng, n, 20)
    assert np.array_equal(SLOW.turning(information, lower), FAST.turning(information, lower))
    for n_terms in (0, 1, 2, 9):
        terms = [Term(1, 120 + k, rng.integers(-9, 9, n) * (np.arange(n) % (k + 2) == 0)) for k in range(n_terms)]
        codes = rng.integers(-2000, 2000, (outputs, n)) if outputs > 1 else rng.integers(-2000, 2000, n)
        steps = np.array([118, 119, 120]) if outputs > 1 else 118
        said = Said(1, False, 30.0, 0.0, 0.0, terms, steps, codes)
        for mine, theirs in zip(
            SLOW.understood(information, lower, said), FAST.understood(information, lower, said), strict=True
        ):
            assert mine.tobytes() == theirs.tobytes()


def test_a_message_means_what_the_plain_way_makes_of_it():
    n, rng = 64, np.random.default_rng(3)
    information, lower = known_by(rng, n, 20)
    terms = [Term(sign, 120, rng.integers(-9, 9, n)) for sign in (1, -1, 1, 1, 1, 1)]
    said = Said(1, False, 30.0, 0.0, 0.0, terms, 118, rng.integers(-50, 50, n))
    made, moments = SLOW.understood(information, lower, said)
    product = matrix_from(reflections(information, lower), n)
    expected = information.copy()
    for term in terms:
        column = lower @ product.T @ (0.25 * term.codes)
        expected += term.sign * np.outer(column, column) / 30.0
    np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-9)
    whole = longer(reflections(information, lower), terms)
    assert len(whole) == heads(n, 0)[0] + 4  # of six terms the first four have one each
    head = matrix_from(whole, n) @ product.T @ np.array([term.codes for term in terms[:4]], dtype=float).T
    np.testing.assert_allclose(head[len(whole) :], 0.0, atol=1e-10)
    np.testing.assert_allclose(
        moments, lower @ matrix_from(whole, n).T @ (2.0**-2.5 * said.codes), rtol=1e-9, atol=1e-9
    )


def test_a_head_has_an_order_of_its_own():
    n = 24
    codes = np.array([500, -300, 400, *21 * [1]])
    said = Said(1, False, 3.0, 1.0, 0.0, (), 128, codes)
    assert heads(n, 0) == (3, 3) and heads(n, 5) == (3, 5)
    assert encode(said)[1] == 112 + 1 + 8 + vector_bits(codes[:3]) + vector_bits(codes[3:])
    term = Term(1, 128, codes)
    both = (
        10 + vector_bits(codes[:3]) + vector_bits(codes[3:]) + 1 + 8 + vector_bits(codes[:4]) + vector_bits(codes[4:])
    )
    assert encode(said._replace(terms=(term,)))[1] == 112 + both
    front = said._replace(wave=0)  # neither a front nor what comes down has heads
    assert encode(front)[1] == 112 + 1 + 8 + vector_bits(codes)
    assert encode(said._replace(thin=1.0))[1] == 64 + 1 + 8 + vector_bits(codes)


vectors = st.lists(st.integers(-1000, 1000), min_size=24, max_size=24).map(np.array)
terms = st.builds(Term, st.sampled_from([-1, 1]), st.integers(0, 255), vectors)


@given(st.integers(0, 2), st.lists(terms, max_size=5), vectors, st.booleans())
def test_messages_with_heads_come_back(wave, terms, codes, down):
    said = Said(wave, False, 3.0, 0.0, 0.0, tuple(terms), 77, codes, thin=0.5 if down else None)
    data, n_bits = encode(said)
    assert FAST.encode(said) == (data, n_bits)
    for arithmetic in (SLOW, FAST):
        back, read = arithmetic.decode(bytes(bytearray(data)), 24, down=down)
        assert read == n_bits and np.array_equal(back.codes, codes) and len(back.terms) == len(terms)
        assert all(np.array_equal(one.codes, other.codes) for one, other in zip(back.terms, terms, strict=True))
    assert decode(data, 24, down=down)[1] == n_bits
