"""Quantizers of one's own, by encode and decode, in the simulator; and the bytes of laconic's own."""

import numpy as np
import pytest
from coders import Largest, Sign
from conftest import NETWORKS, make_stream
from hypothesis import given
from hypothesis import strategies as st

import laconic as lc
from laconic.channel import Undecodable, decode_row, encode_row, longest_message, pack, unpack

FLOAT64 = np.dtype("float64")


@given(bits=st.integers(1, 16), data=st.data())
def test_packing_there_and_back(bits, data):
    codes = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=40))
    packed = pack(np.array(codes, dtype=np.uint16), bits)
    whole = sum(code << (bits * k) for k, code in enumerate(codes))
    assert packed.tobytes() == whole.to_bytes((len(codes) * bits + 7) // 8, "little")
    assert unpack(packed, len(codes), bits).tolist() == codes
    with pytest.raises(ValueError, match="must take"):
        unpack(np.append(packed, np.uint8(0)), len(codes), bits)
    if len(codes) * bits % 8:
        packed[-1] |= 0x80
        with pytest.raises(ValueError, match="left over"):
            unpack(packed, len(codes), bits)


@pytest.mark.parametrize("rounding", ["rise", "tread"])
@pytest.mark.parametrize("limits", ["adaptive", (-0.4, 0.6)])
@pytest.mark.parametrize("bits", [1, 3, 11])
def test_the_bytes_of_laconics_own_quantizer(bits, limits, rounding):
    quantizer = lc.Quantizer(bits, range=limits, rounding=rounding)
    h = np.random.default_rng(bits).standard_normal(22)
    data = quantizer.encode(h)
    assert len(data) == -(-quantizer.message_bits(22) // 8)
    np.testing.assert_array_equal(quantizer.decode(data, 22), quantizer(h))
    with pytest.raises(ValueError, match="must take"):
        quantizer.decode(data + b"\0", 22)


def test_an_adaptive_scale_must_make_sense():
    quantizer = lc.Quantizer(3)
    codes = bytes(9)
    for scale in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match="data must begin with a scale"):
            quantizer.decode(np.array(scale, dtype="<f4").tobytes() + codes, 22)


def test_rows_are_coded_one_by_one(features):
    n = features.n_features
    coder = Largest(0.2, n)
    channel = lc.Channel(lc.Censor(1.0, 0.9), coder)
    weights = np.random.default_rng(0).standard_normal((4, n)) * np.array([[0.01], [1], [1], [0.3]])
    broadcast = 0.1 * np.random.default_rng(1).standard_normal((4, n))
    round_3 = channel.send(weights, broadcast, 3)
    for row in range(4):
        h = weights[row] - broadcast[row]
        sent = np.linalg.norm(h) >= 0.9**3
        assert round_3.sent[row] == sent
        expected = broadcast[row] + np.where(np.abs(h) > 0.2, h.astype(np.float32), 0.0) * sent
        np.testing.assert_allclose(round_3.broadcast[row], expected, rtol=1e-15)
        assert round_3.bits[row] == 48 * (np.abs(h) > 0.2).sum() * sent
    assert round_3.sent.any() and not round_3.sent.all() and round_3.outside.tolist() == [0, 0, 0, 0]


def test_bits_are_counted_by_the_message_where_lengths_vary(features, tmp_path):
    star = NETWORKS["star"]
    X, y = make_stream(120, star.n_agents)
    learner = lc.RFFDOKL(step=0.4, channel=lc.Channel(quantizer=Largest(0.02, features.n_features)))
    trace = lc.simulate(learner, features, star, X, y)
    assert trace.about["engine"] == "reference" and trace.about["message_bits"] is None
    assert (trace.bits % 48 == 0).all() and len(np.unique(trace.bits)) > 5
    assert (trace.link_bits == trace.bits * star.degrees).all()
    assert trace.windowed_mse(20)[-1] < 0.6 * trace.mse()[0]
    loaded = lc.Trace.load(trace.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(loaded.bits, trace.bits)
    again = lc.sweep([learner], features, star, X, y)[0]
    np.testing.assert_array_equal(again.bits, trace.bits)
    nothing = lc.simulate(learner, features, star, X[:0], y[:0])
    assert nothing.bits.shape == (0, 6)
    alone = lc.simulate(learner, features, NETWORKS["alone"], X[:, :1], y[:, :1])
    assert alone.bits.sum() == alone.sent.sum() == 0


def test_a_quantizer_that_knows_its_cost(features):
    X, y = make_stream(10, 6)
    learner = lc.ODKLA(channel=lc.Channel(quantizer=Sign(features.n_features)))
    trace = lc.simulate(learner, features, NETWORKS["ring"], X, y)
    assert trace.message_sizes is None
    assert trace.bits.tolist() == np.full((10, 6), 22 + 64).tolist()


def test_a_run_that_diverges_says_so(features):
    X, y = make_stream(300, 6)
    learner = lc.ODKLA(rho=0.5, eta=1e-3, channel=lc.Channel(quantizer=Sign(features.n_features)))
    with pytest.raises(lc.Diverged):
        lc.simulate(learner, features, NETWORKS["ring"], X, 100 * y)


class Coder:
    def __init__(self, said, read=None):
        self.said, self.read = said, read

    def encode(self, h):
        return self.said

    def decode(self, data):
        if isinstance(self.read, Exception):
            raise self.read
        return self.read


@pytest.mark.parametrize(
    ("coder", "sentence"),
    [
        (Coder("text"), "quantizer.encode must return bytes, got str"),
        (Coder(None), "quantizer.encode must return bytes, got NoneType"),
        (Coder(bytes(longest_message(22) + 1)), "quantizer.encode must return at most 1376 bytes for 22 features"),
        (Coder(b"", KeyError("x")), "quantizer.decode cannot read a message"),
        (Coder(b"", "text"), "quantizer.decode cannot read a message"),
        (Coder(b"", np.zeros(21)), r"quantizer.decode must return shape \(22,\), got \(21,\)"),
        (Coder(b"", np.zeros((1, 22))), r"quantizer.decode must return shape \(22,\)"),
        (Coder(b"", np.full(22, np.inf)), "quantizer.decode must return finite numbers"),
    ],
)
def test_coders_that_do_not_keep_the_rules(coder, sentence, features):
    X, y = make_stream(3, 6)
    with pytest.raises(ValueError, match=sentence):
        lc.simulate(lc.ODKLA(channel=lc.Channel(quantizer=coder)), features, NETWORKS["ring"], X, y)


def test_reading_is_refused_by_one_error():
    with pytest.raises(Undecodable):
        decode_row(Coder(b"", RecursionError()), b"", 4, FLOAT64)
    assert encode_row(Coder(bytearray(b"ab")), np.zeros(4)) == b"ab"


@pytest.mark.parametrize("thing", [lambda h: h, object(), type("Half", (), {"encode": lambda self, h: b""})(), 3])
def test_what_is_no_quantizer_is_refused(thing):
    with pytest.raises(ValueError, match=r"quantizer must be a laconic.Quantizer or work like one"):
        lc.Channel(quantizer=thing)
