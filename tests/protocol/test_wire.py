"""The wire format, byte by byte, and everything that is refused."""

import hashlib
import logging
import struct
import zlib

import numpy as np
import pytest
from agent_kit import carry, deliver, kind_of, make_team, post, puppet, seal, speak
from breadth import crossed
from hypothesis import given
from hypothesis import strategies as st
from probes import call, quantized, run_of

import laconic as lc
from laconic.native.run import RISE
from laconic.protocol import wire
from laconic.protocol.messages import (
    Call,
    Confirm,
    Decide,
    Farewell,
    Hello,
    Kind,
    Offer,
    Refusal,
    Refused,
    Request,
    Statement,
)
from laconic.protocol.varints import read_counts
from laconic.protocol.wire import Envelope, Wire

FLOAT64, FLOAT32 = np.dtype("float64"), np.dtype("float32")
THREE_BITS = lc.Channel(quantizer=lc.Quantizer(3))
TAG = 0x1122334455667788
MARK = 0x01020304
ONES = np.ones(4)


def name_number(name):
    return hashlib.blake2b(name.encode(), digest_size=4).digest()


def start(kind):
    return b"lc" + bytes([0x20 | kind])


def handshake(kind, mark=MARK, sender="ann", to="ben"):
    return start(kind) + struct.pack("<I", mark) + name_number(sender) + name_number(to)


def make_wire(channel=None, n=4, dtype=FLOAT64, mark=MARK, lockstep=False):
    return Wire("ann", mark, n, channel or lc.Channel(), dtype, lockstep)


def encode(letter, follows=False, **options):
    return make_wire(**options).encode(letter, wire.identity("ben"), follows)


# --------------------------------------------------------------------------------------------------------------------
# Layout, computed by hand


def test_statements():
    silence = Statement(TAG, 300, 301, 2, 0xAABBCCDD, Kind.SILENCE, b"")
    digest = struct.pack("<I", 0xAABBCCDD)
    counted = start(3) + struct.pack("<Q", TAG) + b"\xac\x02" + b"\xad\x02" + b"\x02" + digest
    assert encode(silence) == seal(counted)
    in_lockstep = start(3) + struct.pack("<Q", TAG | 1) + b"\xac\x02" + b"\x02" + digest
    assert encode(silence, follows=True, lockstep=True) == seal(in_lockstep)  # no label; and the bit of who follows
    model = np.array([1.0, -2.5, 0.0, 1e-300])
    data = make_wire().model(model)
    assert data == b"\x40" + struct.pack("<4d", *model)
    assert make_wire(dtype=FLOAT32).model(model) == b"\x20" + struct.pack("<4f", *model)
    dense = Statement(TAG, 1, 1, 2, 0, Kind.DENSE, data)
    assert encode(dense) == seal(start(2) + struct.pack("<Q", TAG) + b"\x01\x01\x02" + bytes(4) + data)
    packed = np.array([0x88, 0x0F], dtype=np.uint8)  # 0, 1, 6, 7 in three bits each
    assert make_wire(THREE_BITS).difference(packed, 0.5) == b"\x83" + struct.pack("<f", 0.5) + b"\x88\x0f"


def test_small_messages():
    assert encode(Confirm(TAG)) == seal(start(9) + struct.pack("<Q", TAG))
    assert encode(Farewell(TAG), follows=True) == seal(start(11) + struct.pack("<Q", TAG | 1))
    assert encode(Request(TAG, 300)) == seal(start(10) + struct.pack("<Q", TAG) + b"\xac\x02")
    assert encode(Hello(7, TAG)) == seal(handshake(5) + struct.pack("<QQ", 7, TAG))
    assert encode(Refused(7)) == seal(handshake(12) + struct.pack("<Q", 7))
    call = seal(handshake(6) + struct.pack("<Q", 7) + b"\x01\x05\x02" + struct.pack("<Q", TAG) + b"\x01")
    assert encode(Call(7, 1, 5, 2, TAG, True)) == call
    assert [len(encode(x)) for x in (Confirm(TAG), Hello(7, TAG), Refused(7))] == [15, 35, 27]


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32])
def test_offers_and_decisions(dtype):
    hat, share = np.arange(4, dtype=dtype), np.array([0.5, -1.0, 2.0, 1e-200])
    real, width = ("d", 64) if dtype == FLOAT64 else ("f", 32)
    numbers = struct.pack(f"<4{real}4d", *hat, *share)
    offer = Offer((7, 1), 8, 3, 5, 2, TAG, 1, 4, 6, 5, 2, True, True, hat, share)
    front = struct.pack("<Q", 7) + b"\x01" + struct.pack("<Q", 8) + b"\x03\x05\x02" + struct.pack("<Q", TAG)
    offered = front + b"\x01\x04\x06\x05\x02" + bytes([3, width]) + numbers
    assert encode(offer, dtype=dtype) == seal(handshake(7) + offered)
    decide = Decide((8, 3), 7, 2, 5, 2, 9, False, hat, share)
    front = struct.pack("<Q", 8) + b"\x03" + struct.pack("<Q", 7) + b"\x02\x05\x02\x09"
    decided = front + bytes([0, width]) + numbers
    assert encode(decide, dtype=dtype) == seal(handshake(8) + decided)
    goes_on = Decide((8, 3), 7, 2, 5, 2, 9, True)
    assert encode(goes_on, dtype=dtype) == seal(handshake(8) + front + bytes([1, width]))
    record = struct.pack("<I", MARK) + offered + decided
    tag = int.from_bytes(hashlib.blake2b(record, digest_size=8).digest(), "little") & ~1
    assert make_wire(dtype=dtype).tag_of(offer, decide) == tag


def test_three_bits_take_three_bits(features):
    """The size that the censor and the quantizer are for: 50 frequencies, 100 codes, 38 bytes."""
    assert make_wire(THREE_BITS, n=100).packed_size == 38
    wide = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=50, bandwidth=0.6, seed=4)
    learner = lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.0, beta=0.9, bits=3)
    for clock, label in (("lockstep", 0), ("slotted", 1)):
        agents = make_team(learner, wide, ["ann-ben"], clock=clock)
        agents["ann"].learn(np.array([0.1, 0.2, 0.3]), 1.0)
        [message] = agents["ann"].outgoing()
        assert len(message.data) == 3 + 8 + 1 + label + 1 + 4 + 1 + 4 + 38 + 4


@pytest.mark.parametrize(
    ("bits", "rounding", "limits", "dtype"),
    crossed([1, 3, 8, 11, 16], ["rise", "tread"], ["adaptive", (-0.4, 0.6)], ["float64", "float32"]),
)
def test_codes_on_the_wire_are_the_quantizers(bits, limits, rounding, dtype, features):
    quantizer = lc.Quantizer(bits, range=limits, rounding=rounding)
    agents = make_team(puppet(lc.Channel(quantizer=quantizer)), features, ["ann-ben"], dtype=dtype)
    n = features.n_features
    model = np.random.default_rng(bits).standard_normal(n).astype(dtype)
    speak(agents["ann"], model)
    [message] = agents["ann"].outgoing()
    body = message.data[:-4]
    assert kind_of(body) == "difference"
    codes = quantizer.quantize(model[None])
    at = 18
    assert body[at] == bits | (128 if limits == "adaptive" else 0)
    at += 1
    if limits == "adaptive":
        assert struct.unpack_from("<f", body, at)[0] == codes.scale[0] >= np.abs(model).max()
        at += 4
    # One long whole number of which the first code is the lowest bits.
    whole = sum(int(code) << (bits * k) for k, code in enumerate(codes.codes[0]))
    assert body[at:] == whole.to_bytes((n * bits + 7) // 8, "little")
    agents["ben"].receive(message.data, "ann")
    np.testing.assert_array_equal(agents["ben"].replica("ann"), quantizer(model[None])[0])
    np.testing.assert_array_equal(agents["ben"].replica("ann"), agents["ann"].broadcast)


@given(bits=st.integers(1, 16), data=st.data())
def test_packing(bits, data):
    codes = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=40))
    quantizer = lc.Quantizer(bits, range=(-0.5, 2**bits - 0.5))  # of which code k stands for k
    values, packed = quantized(quantizer, np.array(codes, dtype=np.float64))
    np.testing.assert_array_equal(values, codes)
    whole = sum(code << (bits * k) for k, code in enumerate(codes))
    assert packed.tobytes() == whole.to_bytes(len(packed), "little")
    if 8 * len(packed) - len(codes) * bits:
        packed[-1] |= 1 << 7
        run = run_of(len(codes), rounding=RISE, cells=quantizer.cells, bits=bits, low=-0.5, high=2**bits - 0.5)
        assert not call("unpack", run, packed, 0.0, np.zeros((1, 64)))


# --------------------------------------------------------------------------------------------------------------------
# There and back

counts = st.integers(0, 2**47 - 1)
longs = st.integers(0, 2**64 - 1)
tags = st.integers(0, 2**63 - 1).map(lambda half: 2 * half)
vectors = st.lists(st.floats(-1e15, 1e15), min_size=4, max_size=4).map(np.array)
BEN = wire.identity("ben")


def same(one, two):
    if isinstance(one, tuple):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


@given(tags, counts, counts, counts, st.integers(0, 2**32 - 1), vectors, st.booleans())
def test_statements_there_and_back(tag, n, label, degree, digest, model, follows):
    any_wire = make_wire()
    data = any_wire.model(model)
    for kind in (Kind.DENSE, Kind.FULL):
        said = Statement(tag, n, label, degree, digest, kind, data)
        read = any_wire.decode(any_wire.encode(said, BEN, follows))
        assert same(read, Envelope(said._replace(content=(0.0, model)), follows=follows))
    silence = Statement(tag, n, label, degree, digest, Kind.SILENCE, b"")
    assert any_wire.decode(any_wire.encode(silence, BEN, follows)) == Envelope(silence, follows=follows)


@given(counts, st.binary(min_size=2, max_size=2), st.floats(0, 2.0**49, width=32))
def test_differences_there_and_back(n, codes, scale):
    quantized = make_wire(THREE_BITS)
    packed = np.frombuffer(codes, dtype=np.uint8)
    said = Statement(TAG, n, 1, 1, 0, Kind.DIFFERENCE, quantized.difference(packed, scale))
    read = quantized.decode(quantized.encode(said, BEN, False)).letter
    assert same(read.content, (scale, packed))


@given(longs, longs, tags, counts, counts, counts, st.booleans())
def test_handshakes_there_and_back(inc, other, tag, a, b, c, flag):
    any_wire = make_wire()
    for letter in (
        Hello(inc, tag),
        Call(inc, a, b, c, tag, flag),
        Refused(inc),
        Offer((inc, a), other, b, c, a, tag, b, c, a, b, 8, flag, not flag, ONES, -ONES),
        Decide((inc, a), other, b, c, a, b, False, ONES, -ONES),
        Decide((inc, a), other, b, c, a, b, True),
    ):
        read = any_wire.decode(any_wire.encode(letter, BEN, flag))
        assert same(read, Envelope(letter, wire.identity("ann"), BEN))
    for letter in (Confirm(tag), Farewell(tag), Request(tag, a)):
        assert any_wire.decode(any_wire.encode(letter, BEN, flag)) == Envelope(letter, follows=flag)


# --------------------------------------------------------------------------------------------------------------------
# The fingerprint


def mark_of(features, learner, **options):
    return lc.Agent("ann", [], features, learner, **{"n_agents": 3, **options}).state().about["fingerprint"]


def test_the_fingerprint_tells_settings_apart(features):
    others = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=11, bandwidth=0.6, seed=5)
    one_more = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=12, bandwidth=0.6, seed=4)
    learner = lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.95, bits=3)
    assert mark_of(features, learner) == mark_of(features, lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.5, beta=0.95, bits=3))
    settings = {"rho": 0.3, "eta": 1.0, "alpha": 0.5, "beta": 0.95, "bits": 3}
    changes = [
        {"rho": np.nextafter(0.3, 1)},
        {"eta": np.nextafter(1.0, 2)},
        {"eta": lambda t: 1.0 + t},
        {"eta": lambda t: 2.0 + t},
        {"alpha": 0.6},
        {"beta": 0.96},
        {"bits": 4},
        {"range": (-1.0, 1.0)},
        {"loss": "logistic"},
        {"regularization": 1e-5},
    ]
    marks = [mark_of(features, lc.QCODKLA(**{**settings, **change})) for change in changes]
    marks += [mark_of(other, learner) for other in (features, others, one_more)]
    marks += [mark_of(features, learner, n_agents=4), mark_of(features, learner, dtype="float32")]
    marks += [mark_of(features, learner, clock="slotted")]
    channel = learner.channel
    marks += [mark_of(features, kind(rho=0.3, eta=1.0, channel=channel)) for kind in (lc.ODKLA, lc.DOKL)]
    assert len(set(marks)) == len(marks)


# --------------------------------------------------------------------------------------------------------------------
# Refusals: each under its name, in the log, and without a trace in the agent


class Stage:
    """ben hears ann and cid, some rounds in."""

    def __init__(self, features, channel=None, clock="slotted", dtype="float64"):
        learner = lc.ODKLA(rho=0.3, eta=1.0, channel=channel or lc.Channel())
        self.agents = make_team(learner, features, ["ann-ben", "ben-cid"], clock=clock, dtype=dtype)
        self.random = np.random.default_rng(0)
        for _ in range(6):
            self.learn()
            carry(self.agents)
        self.learn()
        letters = post(self.agents)
        self.old = next(data for sender, _, data in letters if sender == "ann")  # heard by ben, so no longer fresh
        deliver(self.agents, letters)
        self.ben = self.agents["ben"]
        self.wires = {name: agent._wire for name, agent in self.agents.items()}
        self.to = self.wires["ben"].sender
        self.tag = self.ben._dialogue.ends["ann"].tag

    def learn(self):
        for agent in self.agents.values():
            agent.learn(self.random.uniform(size=3), self.random.normal())

    def next(self, name="ann"):
        """The next statement of ``name``."""
        self.agents[name].learn(self.random.uniform(size=3), self.random.normal())
        return self.agents[name].outgoing()[-1].data

    def say(self, letter, follows=False):
        """A letter of ann's to ben."""
        return self.wires["ann"].encode(letter, self.to, follows)

    def statement(self, kind, data, n=8):
        return self.say(Statement(self.tag, n, n, 1, 0, kind, data))

    def refuses(self, caplog, data, reason, sender="ann"):
        ben = self.ben
        ben.outgoing()
        before, edges, waiting = ben.state(), ben.edges, ben.waiting
        counters = {name: value for name, value in ben.counters.items() if not name.endswith("_in")}
        held = {name: len(end.held) for name, end in ben._dialogue.ends.items()}
        earlier = ben.counters["refusals"].get(reason, 0)
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "laconic.protocol"):
            ben.receive(data, sender)
        for end in ben._dialogue.ends.values():
            end.refused = 0  # or the neighbour would be quarantined
        assert ben.counters["refusals"] == {**counters.pop("refusals"), reason: earlier + 1}
        after = ben.counters
        assert all(after[name] == value for name, value in counters.items())
        assert ben.state() == before
        assert (ben.edges, ben.waiting, ben.outgoing()) == (edges, waiting, [])
        assert {name: len(end.held) for name, end in ben._dialogue.ends.items()} == held
        if earlier == 0:
            [record] = caplog.records
            level = "DEBUG" if reason == "replayed" else "WARNING"  # repetitions are part of every repair
            assert (record.name, record.levelname) == ("laconic.protocol", level)
            assert record.getMessage() == f"refused: {reason}"
            assert (record.agent, record.sender, record.count) == ("ben", sender, 1)


@pytest.fixture
def stage(features):
    return Stage(features)


def change(data, at, new):
    """A message with other bytes at ``at``, and the right checksum."""
    body = bytearray(data[:-4])
    body[at : at + len(new)] = new
    return seal(body)


def test_what_is_right_is_taken(stage):
    """The refusals below would mean little if ben refused everything."""
    before = stage.ben.state()
    stage.ben.receive(stage.next(), "ann")
    assert stage.ben.counters["refusals"] == {}
    assert stage.ben.state() != before
    np.testing.assert_array_equal(stage.ben.replica("ann"), stage.agents["ann"].broadcast)
    for kind in (bytearray, memoryview):
        stage.ben.receive(kind(stage.next()))
        np.testing.assert_array_equal(stage.ben.replica("ann"), stage.agents["ann"].broadcast)


@pytest.mark.parametrize("thing", [None, "text", 17, [1, 2], np.zeros(4), object()], ids=lambda thing: str(type(thing)))
def test_not_bytes(stage, caplog, thing):
    stage.refuses(caplog, thing, "not bytes")


def test_truncated(stage, caplog):
    fresh = stage.next()
    for length in range(15):
        stage.refuses(caplog, fresh[:length], "truncated")
    mark = stage.wires["ben"].mark
    for kind, rest in ((5, bytes(15)), (6, bytes(9)), (7, bytes(9)), (8, bytes(20)), (12, bytes(7))):
        stage.refuses(caplog, seal(handshake(kind, mark) + rest), "truncated")
    tag = struct.pack("<Q", stage.tag)
    for kind, rest in ((1, b""), (2, b"\x08\x08\x01" + bytes(3)), (3, b"\x08\x08"), (10, b"")):
        stage.refuses(caplog, seal(start(kind) + tag + rest), "truncated")


def test_a_cut_message_with_its_checksum_made_right(stage, caplog):
    fresh = stage.next()[:-4]
    for length in range(18, len(fresh)):
        stage.refuses(caplog, seal(fresh[:length]), "dimension" if length > 18 else "truncated")


def test_oversized(stage, caplog):
    n = stage.ben.features.n_features
    longest = 3 + 12 + 3 * 8 + 9 * 7 + 2 + n * 2 * 8 + 4
    stage.refuses(caplog, stage.next() + b"\x00" * longest, "oversized")
    stage.refuses(caplog, bytes(longest + 1), "oversized")
    stage.refuses(caplog, bytes(longest), "magic")
    stage.refuses(caplog, bytes(10_000_000), "oversized")


def test_the_longest_message_is_not_oversized(features):
    agents = make_team(puppet(), features, ["ann-ben"])
    most, ones = 2**47 - 1, np.ones(features.n_features)
    offer = Offer((2**64 - 1, most), 2**64 - 1, *[most] * 3, 2**64 - 2, *[most] * 5, True, True, ones, ones)
    data = agents["ann"]._wire.encode(offer, 1, True)
    assert agents["ben"]._wire.decode(data).letter.k == most


def test_magic(stage, caplog):
    fresh = stage.next()
    stage.refuses(caplog, change(fresh, 0, b"LC"), "magic")
    stage.refuses(caplog, change(fresh, 1, b"d"), "magic")


def test_version(stage, caplog):
    """Version 1 among them, which knew no sessions."""
    fresh = stage.next()
    for version in [0, 1, *range(3, 16)]:
        stage.refuses(caplog, change(fresh, 2, bytes([version << 4 | 2])), "version")


# A greeting and a difference, as an agent said them that knew no sessions.
VERSION_1 = (
    "6c63140e8f8fa0eaa8b474000000014addaa0501000000002f424525",
    "6c6311d0c1b20ceaa8b47400c801c80101835a288b3e504ad95cb6aa114beb5fc8af79224ad9964cf1d09cb127c3f654556bb7cf0d3b491deb95"
    "16098508b1e1",
)


@pytest.mark.parametrize("said", VERSION_1)
def test_an_agent_of_version_1_is_refused_in_one_sentence_and_quarantined(said, stage, caplog):
    stage.refuses(caplog, bytes.fromhex(said), "version")
    [record] = caplog.records
    assert record.why == "it speaks another version of the wire format, this agent speaks 2: update the older."
    for _ in range(32):
        stage.ben.receive(bytes.fromhex(said), "ann")
    assert stage.ben.edges["ann"] == "gone"
    assert ("quarantined", "ann") in stage.ben.alerts()


def test_kind(stage, caplog):
    fresh = stage.next()
    for kind in [0, 13, 14, 15]:
        stage.refuses(caplog, change(fresh, 2, bytes([0x20 | kind])), "kind")


def test_corrupt(stage, caplog):
    """Every single bit that flips is noticed."""
    fresh = stage.next()
    for at in range(3, len(fresh)):
        for bit in (0, 3, 7):
            spoiled = bytearray(fresh)
            spoiled[at] ^= 1 << bit
            stage.refuses(caplog, bytes(spoiled), "corrupt")


@pytest.mark.parametrize("other", ["rho", "seed", "bits", "n_agents", "dtype", "clock"])
def test_fingerprint(other, features, caplog):
    stage = Stage(features, THREE_BITS)
    learner, options = stage.ben.learner, {"n_agents": 3, "clock": "slotted"}
    if other == "rho":
        learner = lc.ODKLA(rho=0.31, eta=1.0, channel=THREE_BITS)
    elif other == "seed":
        features = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=11, bandwidth=0.6, seed=5)
    elif other == "bits":
        learner = lc.ODKLA(rho=0.3, eta=1.0, channel=lc.Channel(quantizer=lc.Quantizer(4)))
    elif other == "n_agents":
        options["n_agents"] = 4
    elif other == "clock":
        options["clock"] = "lockstep"
    else:
        options["dtype"] = "float32"
    ann = lc.Agent("ann", ["ben"], features, learner, **options)
    stage.refuses(caplog, ann.outgoing()[-1].data, "fingerprint")


def test_dimension(features, caplog):
    for stage, other in ((Stage(features), THREE_BITS), (Stage(features, THREE_BITS), lc.Channel())):
        mark, n = stage.wires["ben"].mark, features.n_features
        fresh = stage.next()
        for size in (-1, 1):
            body = fresh[:-4][:size] if size < 0 else fresh[:-4] + bytes(size)
            stage.refuses(caplog, seal(body), "dimension")
        # The right fingerprint, but another size, another channel, another precision.
        for n_features, channel in ((n + 8, stage.ben.learner.channel), (n, other)):
            liar = Wire("ann", mark, n_features, channel, FLOAT64, False)
            packed = np.zeros(liar.packed_size, dtype=np.uint8)
            kind = Kind.DIFFERENCE if liar.packed_size else Kind.DENSE
            data = liar.difference(packed, 1.0) if liar.packed_size else liar.model(np.ones(n_features))
            stage.refuses(caplog, stage.statement(kind, data), "dimension")
        liar = Wire("ann", mark, n, stage.ben.learner.channel, FLOAT32, False)
        ones = np.ones(n, dtype=np.float32)
        offer = Offer((1, 1), 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, True, False, ones, np.ones(n))
        stage.refuses(caplog, liar.encode(offer, stage.to, False), "dimension")
        stage.refuses(caplog, stage.statement(Kind.FULL, liar.model(ones)), "dimension")
        for letter in (Confirm(stage.tag), Farewell(stage.tag), Request(stage.tag, 1), Hello(1, 2), Refused(1)):
            stage.refuses(caplog, seal(stage.say(letter)[:-4] + b"\x00"), "dimension")  # a byte too many
        stage.refuses(caplog, stage.statement(Kind.SILENCE, b"\x00"), "dimension")


@pytest.mark.parametrize(
    "number",
    [b"\x80\x00", b"\x81\x80\x00", b"\xff" * 7 + b"\x01", b"\x80" * 6 + b"\x20", b"\xff" * 300 + b"\x01"],
    ids=["zero in two bytes", "one in three", "too large", "2^47", "endless"],
)
def test_malformed_number(number, stage, caplog):
    for place in range(3):
        counts = [b"\x08", b"\x08", b"\x01"]
        counts[place] = number
        body = start(3) + struct.pack("<Q", stage.tag) + b"".join(counts) + bytes(4)
        stage.refuses(caplog, seal(body), "malformed")


def test_flags_and_tags_that_nobody_sends(stage, caplog):
    call = stage.say(Call(1, 1, 1, 1, 2, False))
    stage.refuses(caplog, change(call, len(call) - 5, b"\x02"), "malformed")
    stage.refuses(caplog, change(call, len(call) - 13, b"\x03"), "malformed")  # tags of a session are even


def test_a_number_without_end_is_not_read_to_its_end():
    """Its bytes are looked at seven times and no more, however long the message is."""

    class Bytes(bytes):
        looks = 0

        def __getitem__(self, at):
            Bytes.looks += 1
            return super().__getitem__(at)

    with pytest.raises(Refusal, match="malformed"):
        read_counts(Bytes(b"\xff" * 100_000), 0, 4)
    assert Bytes.looks <= 7


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e15])
def test_not_finite(bad, features, caplog):
    stage = Stage(features)
    ann, n = stage.wires["ann"], features.n_features
    for k in (0, n - 1):
        model = np.ones(n)
        model[k] = bad
        stage.refuses(caplog, stage.statement(Kind.DENSE, ann.model(model)), "not finite")
        stage.refuses(caplog, stage.statement(Kind.FULL, ann.model(model)), "not finite")
    for place in range(2):
        vectors = [np.ones(n), np.ones(n)]
        vectors[place][n // 2] = bad if place == 0 else bad * 1e16
        stage.refuses(caplog, stage.say(Decide((1, 1), 1, 1, 1, 1, 1, False, *vectors)), "not finite")
    quantized = Stage(features, THREE_BITS)
    packed = np.zeros(quantized.wires["ann"].packed_size, dtype=np.uint8)
    for scale in (bad, -1.0):
        data = quantized.wires["ann"].difference(packed, scale)
        quantized.refuses(caplog, quantized.statement(Kind.DIFFERENCE, data), "not finite")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_difference_that_leads_out_of_bounds(dtype, features, caplog):
    """Each below the limit, and their sum not."""
    stage = Stage(features, THREE_BITS, dtype=dtype)
    packed = np.full(stage.wires["ann"].packed_size, 0xFF, dtype=np.uint8)
    packed[-1] = 0x03  # 66 bits
    replica = stage.ben._ledger.said(stage.ben._dialogue.ends["ann"].index)
    replica[:] = 0.9e15
    before = replica.copy()
    data = stage.wires["ann"].difference(packed, 0.5e15)
    stage.refuses(caplog, stage.statement(Kind.DIFFERENCE, data), "not finite")
    np.testing.assert_array_equal(replica, before)


def test_bits_that_are_left_over_must_be_zero(features, caplog):
    stage = Stage(features, THREE_BITS)  # 22 codes, 66 bits, 6 left over
    fresh = stage.next()
    for bit in range(2, 8):
        spoiled = bytearray(fresh[:-4])
        spoiled[-1] |= 1 << bit
        stage.refuses(caplog, seal(spoiled), "not finite")
    stage.ben.receive(fresh, "ann")
    np.testing.assert_array_equal(stage.ben.replica("ann"), stage.agents["ann"].broadcast)


@pytest.mark.parametrize("clock", ["slotted", "lockstep"])
def test_replayed(clock, features, caplog):
    stage = Stage(features, clock=clock)
    stage.refuses(caplog, stage.old, "replayed")
    stage.refuses(caplog, stage.statement(Kind.SILENCE, b"", n=7), "replayed")
    stage.refuses(caplog, stage.statement(Kind.SILENCE, b"", n=1), "replayed")


def test_stranger(stage, caplog):
    dan = Wire("dan", stage.wires["ben"].mark, stage.ben.features.n_features, lc.Channel(), FLOAT64, False)
    ben = stage.wires["ben"]
    for outsider in (dan, ben):  # a message of his own is no neighbour's either
        for sender in ("dan", "ann", None):
            stage.refuses(caplog, outsider.encode(Hello(1, 2), stage.to, True), "stranger", sender=sender)
    stage.refuses(caplog, stage.say(Confirm(12344)), "stranger", sender=None)
    stage.refuses(caplog, stage.next(), "stranger", sender="dan")


def test_spoofed(stage, caplog):
    stage.refuses(caplog, stage.next(), "spoofed", sender="cid")
    stage.refuses(caplog, stage.say(Hello(1, 2)), "spoofed", sender="cid")


def test_reflected(stage, caplog):
    """Ben's own words, sent back to him, are not ann's."""
    stage.ben.learn(np.full(3, 0.5), 1.0)
    own = next(message.data for message in stage.ben.outgoing() if message.to == "ann")
    stage.refuses(caplog, own, "reflected")
    stage.refuses(caplog, own, "reflected", sender=None)


def test_misaddressed(stage, caplog):
    cid, n = stage.wires["cid"].sender, stage.ben.features.n_features
    for letter in (
        Hello(1, 2),
        Call(1, 1, 1, 1, 2, False),
        Decide((1, 1), 1, 1, 1, 1, 1, False, np.ones(n), np.ones(n)),
    ):
        stage.refuses(caplog, stage.wires["ann"].encode(letter, cid, False), "misaddressed")


def test_of_many_refusals_the_log_shows_few(stage, caplog):
    with caplog.at_level(logging.DEBUG, "laconic.protocol"):
        for _ in range(1000):
            stage.ben.receive(b"", "ann")
    assert [record.count for record in caplog.records] == [2**k for k in range(10)]
    assert stage.ben.counters["refusals"] == {"truncated": 1000}
    assert stage.ben.edges["ann"] == "live"  # noise is not ann's fault


def test_decoding_raises_refusals_only(stage):
    """The innermost promise, on bytes that get as far as they can."""
    reader, mark = stage.wires["ben"], stage.wires["ben"].mark
    random = np.random.default_rng(0)
    reasons = set()
    for _ in range(5000):
        kind = int(random.integers(1, 13))
        front = handshake(kind, mark) if kind in (5, 6, 7, 8, 12) else start(kind) + random.bytes(8)
        try:
            reader.decode(seal(front + random.bytes(int(random.integers(0, 300)))))
        except Refusal as refusal:
            reasons.add(refusal.reason)
    assert reasons >= {"truncated", "dimension", "malformed"}


def test_the_checksum_is_the_usual_one():
    data = encode(Confirm(TAG))
    assert struct.unpack("<I", data[-4:])[0] == zlib.crc32(data[:-4])
    assert zlib.crc32(b"123456789") == 0xCBF43926
