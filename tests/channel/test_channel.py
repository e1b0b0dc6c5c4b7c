"""Censor, quantizer and accounting: for any finite input, and by hand."""

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import quantized, scale_of

import laconic as lc
from laconic.channel.quantizer import upward_float32

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
vectors = st.lists(finite, min_size=1, max_size=40).map(np.array)
bits = st.integers(1, 16)
roundings = st.sampled_from(["rise", "tread"])


@st.composite
def ranges(draw):
    low, high = sorted(draw(st.tuples(finite, finite)))
    if max(-low, high) > 1e300 or not (high - low) / 2**16 > 0:
        low, high = -1.0, 1.0
    return low, high


def compiled_quantize(quantizer, h):
    return quantized(quantizer, h)[0] if np.abs(h).max() > 0 or not quantizer.adaptive else np.zeros_like(h)


def cell_width(quantizer, low, high):
    return (high - low) / (quantizer.cells if quantizer.rounding == "rise" else quantizer.cells - 1)


@settings(max_examples=examples(400))
@given(vectors, bits, roundings)
def test_adaptive_error_is_at_most_half_a_cell(h, b, rounding):
    quantizer = lc.Quantizer(b, rounding=rounding)
    q = quantizer(h)
    codes = quantizer.quantize(h)
    scale = float(codes.scale)
    inside = np.abs(h) <= scale
    assert inside.all() or scale == np.finfo(np.float32).max
    slack = 4 * np.finfo(float).eps * scale
    assert (np.abs(h[inside] - q[inside]) <= cell_width(quantizer, -scale, scale) / 2 + slack).all()
    assert codes.codes.max() < quantizer.cells
    assert np.array_equal(quantizer.dequantize(codes), q)
    assert np.array_equal(compiled_quantize(quantizer, h), q)
    assert int(quantizer.outside(h)) == (~inside).sum()


@settings(max_examples=examples(400))
@given(vectors, bits, ranges(), roundings)
def test_fixed_range_error_is_at_most_half_a_cell_inside_and_saturates_outside(h, b, ends, rounding):
    quantizer = lc.Quantizer(b, range=ends, rounding=rounding)
    low, high = ends
    width = cell_width(quantizer, low, high)
    q = quantizer(h)
    slack = 4 * np.finfo(float).eps * max(abs(low), abs(high))
    inside = (h >= low) & (h <= high)
    assert (np.abs(h[inside] - q[inside]) <= width / 2 + slack).all()
    assert (q >= low - width / 2 - slack).all()
    assert (q <= high + width / 2 + slack).all()
    codes = quantizer.quantize(h)
    assert codes.scale is None
    assert np.array_equal(quantizer.dequantize(codes), q)
    assert np.array_equal(compiled_quantize(quantizer, h), q)
    assert int(quantizer.outside(h)) == (~inside).sum()


@given(finite.map(abs))
def test_the_scale_is_the_least_float32_that_is_not_below(peak):
    scale = upward_float32(np.array(peak))
    assert scale == scale_of(peak)
    if peak <= float(np.finfo(np.float32).max):
        assert float(scale) >= peak
        assert peak == 0 or float(np.nextafter(scale, np.float32(0))) < peak
    else:
        assert scale == np.finfo(np.float32).max


def test_mid_rise_by_hand():
    quantizer = lc.Quantizer(2, range=(-1.0, 1.0))
    h = np.array([-2.0, -1.0, -0.51, -0.5, -0.01, 0.0, 0.49, 0.5, 0.99, 1.0, 7.0])
    assert quantizer.quantize(h).codes.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert quantizer(h).tolist() == [-0.75, -0.75, -0.75, -0.25, -0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75]
    assert int(quantizer.outside(h)) == 2


def test_mid_tread_has_zero_as_a_code_word():
    for b in range(1, 17):
        assert lc.Quantizer(b, rounding="tread")(np.array([0.3, 0.0, -1.0]))[1] == 0.0
        assert lc.Quantizer(b, range=(-0.4, 1.3), rounding="tread")(np.array([0.0]))[0] == 0.0
    assert lc.Quantizer(2, range=(-1.0, 1.0), rounding="tread")(np.array([-1.0, -0.3, 0.4, 1.0])).tolist() == [
        -2 / 3 * 2,
        0.0,
        2 / 3,
        2 / 3,
    ]


def test_nothing_to_say_is_quantized_to_nothing():
    assert not lc.Quantizer(3)(np.zeros((2, 5))).any()
    mixed = lc.Quantizer(3)(np.array([[0.0, 0.0], [1.0, -1.0]]))
    assert not mixed[0].any()
    assert mixed[1].all()


def test_each_row_has_its_own_scale():
    h = np.array([[1.0, -0.5], [100.0, 3.0]])
    codes = lc.Quantizer(3).quantize(h)
    assert codes.scale.tolist() == [1.0, 100.0]
    assert np.array_equal(lc.Quantizer(3)(h), np.stack([lc.Quantizer(3)(row) for row in h]))


def test_equality_sends_and_t_counts_from_one():
    channel = lc.Channel(censor=lc.Censor(2.0, 0.5))
    weights = np.array([[0.6, 0.8], [0.6, 0.799], [0.0, 0.0]])
    round_1 = channel.send(weights, np.zeros((3, 2)), 1)  # threshold 1
    assert round_1.sent.tolist() == [True, False, False]
    assert np.array_equal(round_1.broadcast, [[0.6, 0.8], [0, 0], [0, 0]])
    assert channel.send(weights, np.zeros((3, 2)), 2).sent.tolist() == [True, True, False]
    assert lc.Channel(censor=lc.Censor(0.0, 0.5)).send(weights, weights, 1).sent.all()


def test_bits_by_hand(features):
    """22 numbers a model: dense 704 bits; three bits each 66; with a scale 98; a broadcast counts once."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 4, 3))
    y = X[..., 0]
    star = lc.Network.star(4)
    cases = {
        704: lc.Channel(),
        66: lc.Channel(quantizer=lc.Quantizer(3, range=(-2.0, 2.0))),
        98: lc.Channel(quantizer=lc.Quantizer(3)),
    }
    for engine in ("reference", "compiled"):
        for each, channel in cases.items():
            trace = lc.simulate(lc.ODKLA(channel=channel), features, star, X, y, engine=engine)
            assert trace.bits.tolist() == np.full((30, 4), each).tolist()
            assert trace.link_bits.sum() == 30 * each * (3 + 1 + 1 + 1)
        silent = lc.Channel(lc.Censor(1e6, 1.0), lc.Quantizer(3))
        trace = lc.simulate(lc.ODKLA(channel=silent), features, star, X, y, engine=engine)
        assert trace.bits.sum() == 0
        some = lc.simulate(lc.QCODKLA(alpha=1.0, beta=0.9), features, star, X, y, engine=engine)
        assert 0 < some.sent.sum() < 120
        assert np.array_equal(some.bits, 98 * some.sent)
        local = lc.simulate(lc.Local(), features, star, X, y, engine=engine)
        assert local.bits.sum() == local.sent.sum() == 0


def test_a_range_that_is_too_small_shows_in_the_trace(features):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 4, 3))
    y = 5 + X[..., 0]
    narrow = lc.Channel(quantizer=lc.Quantizer(3, range=(-0.01, 0.01)))
    for engine in ("reference", "compiled"):
        trace = lc.simulate(lc.ODKLA(eta=4.0, channel=narrow), features, lc.Network.ring(4), X, y, engine=engine)
        assert trace.saturated.mean() > 0.5
        wide = lc.Channel(quantizer=lc.Quantizer(3, range=(-50.0, 50.0)))
        trace = lc.simulate(lc.ODKLA(eta=4.0, channel=wide), features, lc.Network.ring(4), X[:3], y[:3], engine=engine)
        assert trace.saturated.sum() == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.Quantizer(16, range=(0.0, 5e-324)), "too narrow"),
        (lambda: lc.Quantizer(0), "bits must be from 1 to 16"),
        (lambda: lc.Quantizer(17), "bits must be from 1 to 16"),
        (lambda: lc.Quantizer(2.0), "bits must be a whole number"),
        (lambda: lc.Quantizer(True), "bits must be a whole number"),
        (lambda: lc.Quantizer(3, range=(1.0, 1.0)), "with u < v"),
        (lambda: lc.Quantizer(3, range=(1.0, -1.0)), "with u < v"),
        (lambda: lc.Quantizer(3, range=(0.0, np.inf)), r"range\[1\] must be finite"),
        (lambda: lc.Quantizer(3, range=(-1e308, 1e308)), "too wide"),
        (lambda: lc.Quantizer(3, range=3.0), "'adaptive' or a pair"),
        (lambda: lc.Quantizer(3, range="wide"), "range must be one of 'adaptive'"),
        (lambda: lc.Quantizer(3, rounding="up"), "rounding must be one of"),
        (lambda: lc.Censor(-1.0, 0.9), "alpha must be at least 0"),
        (lambda: lc.Censor(1.0, 0.0), "beta must be larger than 0"),
        (lambda: lc.Censor(1.0, 1.1), "beta must be at most 1"),
        (lambda: lc.Channel(censor=0.5), "censor must have a method threshold"),
        (lambda: lc.Channel(quantizer=3), "quantizer must be a laconic.Quantizer"),
        (lambda: lc.QCODKLA(bits=0), "bits must be from 1 to 16"),
        (lambda: lc.ODKLA(channel="fast"), "channel must be a laconic.Channel"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class Signs:
    """A quantizer of one's own that works on rows: a bit an entry, of one size."""

    def __call__(self, innovation):
        return 0.01 * np.sign(innovation)

    def message_bits(self, n_features):
        return n_features

    def outside(self, innovation):
        return np.zeros(len(innovation), dtype=int)


class Bytes:
    """A quantizer of one's own that makes bytes."""

    def encode(self, innovation):
        return innovation.astype(np.float16).tobytes()

    def decode(self, data):
        return np.frombuffer(data, dtype=np.float16).astype(float)


class OnlyCalled:
    def __call__(self, innovation):
        return innovation


class OnlyEncodes:
    def encode(self, innovation):
        return b""


@pytest.mark.parametrize("wrong", [3, "3 bits", object(), len, np.zeros(3), OnlyCalled(), OnlyEncodes(), lc.Quantizer])
def test_what_is_no_quantizer_is_refused_when_the_channel_is_made(wrong):
    with pytest.raises(ValueError, match=r"^quantizer must be a laconic.Quantizer or work like one: .*; got .*[.]$"):
        lc.Channel(quantizer=wrong)


@pytest.mark.parametrize("right", [None, lc.Quantizer(3), Signs(), Bytes()])
def test_what_works_like_a_quantizer_is_one(right):
    assert lc.Channel(quantizer=right).quantizer is right


@pytest.mark.parametrize("learner", [lc.ODKLA, lc.DOKL, lc.RFFDOKL])
def test_learners_that_speak_need_a_channel(learner):
    for wrong in (None, "dense", lc.Quantizer(3)):
        with pytest.raises(ValueError, match="channel must be a laconic.Channel"):
            learner(channel=wrong)
