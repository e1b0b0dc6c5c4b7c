"""The entropy code: by hand, by its ideal length, the same bytes compiled, and whatever strangers make of it."""

import math

import numpy as np
import pytest
from breadth import examples
from conftest import NETWORKS, make_stream
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import decoded, encoded

import laconic as lc
from laconic.channel import Undecodable, decode_row, longest_message
from laconic.channel.entropy import LARGEST, PMORE, PNZ, STEPS, nearest_step
from laconic.channel.ranges import RangeDecoder, RangeEncoder

floats = st.one_of(st.floats(-4, 4), st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300]))
vectors = st.lists(floats, min_size=1, max_size=60).map(np.array)
coders = st.builds(lc.EntropyQuantizer, st.floats(0.05, 16), st.floats(0, 0.5))


def test_the_tables_are_those_of_the_rule():
    assert [min(4095, max(1, round(4096 * 0.98 * 0.78**i))) for i in range(16)] == list(PNZ)
    assert [min(4095, max(1, round(4096 * 0.9 * 0.6**m))) for m in range(8)] == list(PMORE)
    np.testing.assert_allclose(STEPS, 2.0 ** ((np.arange(256) - 128) / 4), rtol=1e-15)
    assert [STEPS[j] for j in (0, 128, 130, 132)] == [2.0**-32, 1.0, math.sqrt(2.0), 2.0]


@given(st.floats(0, 1e12))
def test_the_step_is_the_nearest(size):
    assert abs(STEPS[nearest_step(size)] - size) == np.abs(STEPS - size).min()


@pytest.mark.parametrize(
    ("h", "message"),
    [
        # A zero. Step 2^-32; "no" is cheapest where a yes has 97 of 4096: [1048575 * 97 + 1, 2^32), in which 07.. lies.
        ([0.0], "00 78 07"),
        # A one, step 1 (128). Yes with 4014: [0, 4208980050]; no minus: [2104489985, ...]; no more with 103 of 4096:
        # [2157410459, 4208980050], in which 81 00 00 00 lies.
        ([1.0], "80 07 81"),
        # Minus one: [0, 2104489984] after the sign; no more: [52920371, ...], in which 04 00 00 00 lies.
        ([-1.0], "80 07 04"),
    ],
)
def test_messages_by_hand(h, message):
    quantizer = lc.EntropyQuantizer(1.0)
    assert quantizer.encode(np.array(h)).hex(" ") == message
    assert quantizer.decode(bytes.fromhex(message), len(h)).tolist() == h


def test_codes_by_hand():
    """rms 2, so the step is 2 with coarseness 1; what is below 0.6 of a step is zero."""
    h = np.array([4.0, -1.19, 1.21, 0.0, 0.0, 0.0, -0.5])
    h[3] = math.sqrt(4 * 7 - (h**2).sum())
    j, codes = lc.EntropyQuantizer(1.0).quantize(h)
    assert STEPS[j] == 2.0 and codes.tolist() == [2, 0, 1, 1, 0, 0, 0]


@settings(max_examples=examples(300))
@given(vectors, coders)
def test_there_and_back_and_the_same_bytes_compiled(h, quantizer):
    data = quantizer.encode(h)
    j, codes = quantizer.quantize(h)
    assert len(data) <= longest_message(len(h))
    np.testing.assert_array_equal(quantizer.decode(data, len(h)), codes * STEPS[j])
    written, chosen, outside = encoded(quantizer, h)
    assert written == data and chosen.tolist() == codes.tolist()
    assert outside == quantizer.outside(h[None])[0] <= (np.abs(codes) == LARGEST).sum()
    assert decoded(data, len(h)).tolist() == codes.tolist()


@settings(max_examples=examples(500))
@given(st.binary(max_size=40), st.integers(1, 30))
def test_any_bytes_give_numbers_or_a_refusal_and_both_engines_agree(data, n):
    chosen = decoded(data, n)
    try:
        values = lc.EntropyQuantizer().decode(data, n)
    except ValueError:
        assert chosen is None
    else:
        assert np.array_equal(values, chosen * STEPS[data[0]])


@pytest.mark.parametrize("second", [0x00, 0x07, 0x78, 0x7F, 0x3C])
@pytest.mark.parametrize("fill", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_reading_ends(second, fill, monkeypatch):
    """However long a stranger's message is, and whatever it is made of."""
    count, get = [0], RangeDecoder.get
    monkeypatch.setattr(RangeDecoder, "get", lambda self, p: (count.__setitem__(0, count[0] + 1), get(self, p))[1])
    data = bytes((128, second)) + bytes([fill]) * 400
    with pytest.raises(ValueError, match="data must"):
        lc.EntropyQuantizer().decode(data, 100)
    assert 0 < count[0] <= 3 * 100 + 53 * len(data)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4095)), max_size=300))
def test_the_range_coder_wastes_little(decisions):
    encoder = RangeEncoder()
    for yes, p in decisions:
        encoder.put(yes, p)
    data = encoder.end()
    ideal = sum(-math.log2((p if yes else 4096 - p) / 4096) for yes, p in decisions)
    assert 8 * len(data) <= 1.02 * ideal + 10
    decoder = RangeDecoder(data)
    assert [decoder.get(p) for _, p in decisions] == [yes for yes, _ in decisions]
    decoder.end()


def test_nothing_is_carried_and_the_end_is_the_shortest():
    """An interval that straddles a byte for long is narrowed to one number at worst, and still read."""
    decisions = [(True, 2048), *[(False, 1), (True, 4095)] * 400, (False, 2048)]
    encoder = RangeEncoder()
    for yes, p in decisions:
        encoder.put(yes, p)
    decoder = RangeDecoder(encoder.end())
    assert [decoder.get(p) for _, p in decisions] == [yes for yes, _ in decisions]
    decoder.end()
    assert RangeEncoder().end() == b""


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x80", b"\x80\xff\x00", b"\x80\x07\x82", b"\x80\x07\x81\x00"])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(Undecodable):
        decode_row(lc.EntropyQuantizer(1.0), data, 1, np.dtype("float64"))
    assert decoded(data, 1) is None


def test_what_is_too_large_saturates_and_is_counted(features):
    quantizer = lc.EntropyQuantizer()
    h = np.full(8, 1e15)
    assert quantizer.quantize(h)[0] == 255 and quantizer.quantize(h)[1].tolist() == [LARGEST] * 8
    assert quantizer.outside(h[None]).tolist() == [8]
    assert quantizer.decode(quantizer.encode(h), 8).tolist() == [LARGEST * STEPS[255]] * 8
    tiny = quantizer.encode(np.full(8, 1e-250))
    assert tiny[0] == 0 and not quantizer.decode(tiny, 8).any()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_each_message_counts_for_what_it_takes(engine, features, tmp_path):
    star = NETWORKS["star"]
    X, y = make_stream(60, star.n_agents)
    learner = lc.RFFDOKL(0.4, "adapt-then-combine", channel=lc.Channel(lc.Censor(0.4, 0.99), lc.EntropyQuantizer()))
    trace = lc.simulate(learner, features, star, X, y, engine=engine)
    assert trace.about["message_bits"] is None and trace.about["engine"] == engine
    assert (trace.bits[trace.sent] >= 16).all() and not trace.bits[~trace.sent].any()
    assert len(np.unique(trace.bits)) > 3 and (trace.link_bits == trace.bits * star.degrees).all()
    np.testing.assert_array_equal(lc.Trace.load(trace.save(tmp_path / "run.npz")).bits, trace.bits)
    np.testing.assert_array_equal(lc.sweep([learner], features, star, X, y, engine=engine)[0].bits, trace.bits)
    none = lc.simulate(learner, features, star, X[:0], y[:0], engine=engine)
    assert lc.Trace.load(none.save(tmp_path / "none.npz")).bits.shape == (0, 6)
    alone = lc.simulate(learner, features, NETWORKS["alone"], X[:, :1], y[:, :1], engine=engine)
    assert alone.bits.sum() == alone.sent.sum() == 0


def test_a_run_that_diverges_says_so(features):
    X, y = make_stream(300, 6)
    learner = lc.RFFDOKL(step=50.0, channel=lc.Channel(quantizer=lc.EntropyQuantizer()))
    for engine in ("compiled", "reference"):
        with pytest.raises(lc.Diverged):
            lc.simulate(learner, features, NETWORKS["ring"], X, y, engine=engine)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"coarseness": 0.01}, r"coarseness must be at least 0\.05"),
        ({"coarseness": 20}, "coarseness must be at most 16"),
        ({"dead_zone": 0.6}, r"dead_zone must be at most 0\.5"),
        ({"dead_zone": "much"}, "dead_zone must be a number"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lc.EntropyQuantizer(**arguments)
