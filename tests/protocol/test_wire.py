"""The wire format, byte by byte, and everything that is refused."""

import hashlib
import logging
import struct
import zlib

import numpy as np
import pytest
from agent_kit import carry, deliver, kind_of, make_team, post, puppet, seal, speak
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import laconic as lc
from laconic.engine.coding import pack_row, unpack_row
from laconic.protocol import messages, wire
from laconic.protocol.messages import Edge, Kind, Position, Refusal
from laconic.protocol.wire import Wire

FLOAT64, FLOAT32 = np.dtype("float64"), np.dtype("float32")
THREE_BITS = lc.Channel(quantizer=lc.Quantizer(3))
AT = Position(life=3, sequence=300, round=70_000)
COUNTS = b"\x03" + b"\xf0\xa2\x04" + b"\xac\x02" + b"\x02"  # life 3, round 70000, sequence 300, degree 2
ZERO = Position()


def name_number(name):
    return hashlib.blake2b(name.encode(), digest_size=4).digest()


def start(kind, mark=0x01020304, name="ann"):
    return b"lc" + bytes([0x10 | kind]) + struct.pack("<I", mark) + name_number(name)


def make_wire(channel=None, n=4, dtype=FLOAT64, mark=0x01020304):
    return Wire("ann", mark, n, channel or lc.Channel(), dtype)


# --------------------------------------------------------------------------------------------------------------------
# Layout, computed by hand


def test_silence_is_the_smallest_message():
    data = make_wire().silence(AT, 2)
    assert data == seal(start(3) + COUNTS)
    assert len(data) == 11 + 7 + 4


def test_dense_is_a_width_and_the_numbers():
    model = np.array([1.0, -2.5, 0.0, 1e-300])
    assert make_wire().dense(AT, 2, model) == seal(start(2) + COUNTS + b"\x40" + struct.pack("<4d", *model))
    narrow = make_wire(dtype=FLOAT32).dense(AT, 2, model.astype(np.float32))
    assert narrow == seal(start(2) + COUNTS + b"\x20" + struct.pack("<4f", *model))


def test_difference_is_a_format_a_scale_and_the_codes():
    packed = np.array([0x88, 0x0F], dtype=np.uint8)  # 0, 1, 6, 7 in three bits each
    data = make_wire(THREE_BITS).difference(AT, 2, packed, 0.5)
    assert data == seal(start(1) + COUNTS + b"\x83" + struct.pack("<f", 0.5) + b"\x88\x0f")
    fixed = lc.Channel(quantizer=lc.Quantizer(3, range=(-1, 1)))
    assert make_wire(fixed).difference(AT, 2, packed, 0.0) == seal(start(1) + COUNTS + b"\x03" + b"\x88\x0f")


def test_request_and_farewell():
    to = int.from_bytes(name_number("ben"), "little")
    asks = make_wire().request(AT, 2, to, held=Position(1, 2, 129), epoch=200, whole=True, confirm=False)
    assert asks == seal(start(4) + COUNTS + name_number("ben") + b"\x01" + b"\xc8\x01" + b"\x01\x02\x81\x01")
    asks = make_wire().request(AT, 2, to, held=ZERO, epoch=0, whole=False, confirm=True)
    assert asks == seal(start(4) + COUNTS + name_number("ben") + b"\x02" + b"\x00" + b"\x00\x00\x00")
    goes = make_wire().farewell(AT, 2, to, epoch=200)
    assert goes == seal(start(6) + COUNTS + name_number("ben") + b"\xc8\x01")


@pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32])
def test_snapshot(dtype):
    to = int.from_bytes(name_number("ben"), "little")
    own, replica = np.arange(4).astype(dtype), np.arange(4, 8).astype(dtype)
    total, replica_total, vector = (np.arange(4) * factor for factor in (0.1, 0.2, 0.3))
    real = "f" if dtype == FLOAT32 else "d"
    width = 32 if dtype == FLOAT32 else 64
    rest = b"\xc8\x01" + b"\x01\x02\x81\x01" + b"\x01\x02\x03"  # epoch, held, asked
    options = {"position": AT, "degree": 2, "to": to, "held": Position(1, 2, 129), "asked": Position(1, 2, 3)}
    full = make_wire(dtype=dtype).snapshot(
        **options,
        rejoining=True,
        repeated=True,
        own=(own, total),
        other=(replica, replica_total),
        edge=Edge(200, live=True, remembers=True, vector=vector),
    )
    numbers = struct.pack(f"<4{real}4d", *own, *total) + struct.pack(f"<4{real}4d4d", *replica, *replica_total, *vector)
    assert full == seal(start(5) + COUNTS + name_number("ben") + bytes([63, width]) + rest + numbers)
    bare = make_wire(dtype=dtype).snapshot(
        **options,
        rejoining=False,
        repeated=False,
        own=(own, total),
        other=None,
        edge=Edge(200, live=True, remembers=False, vector=None),
    )
    numbers = struct.pack(f"<4{real}4d", *own, *total)
    assert bare == seal(start(5) + COUNTS + name_number("ben") + bytes([2, width]) + rest + numbers)


def test_three_bits_take_three_bits(features):
    """The size that the censor and the quantizer are for: 50 frequencies, 100 codes, 38 bytes."""
    assert make_wire(THREE_BITS, n=100).packed_size == 38
    wide = lc.RandomFeatures.gaussian(n_inputs=3, n_frequencies=50, bandwidth=0.6, seed=4)
    agents = make_team(lc.QCODKLA(rho=0.3, eta=1.0, alpha=0.0, beta=0.9, bits=3), wide, ["ann-ben"])
    agents["ann"].learn(np.array([0.1, 0.2, 0.3]), 1.0)
    [message] = agents["ann"].outgoing()
    assert len(message.data) == 11 + 4 + 1 + 4 + 38 + 4


@pytest.mark.parametrize("rounding", ["rise", "tread"])
@pytest.mark.parametrize("limits", ["adaptive", (-0.4, 0.6)])
@pytest.mark.parametrize("bits", [1, 3, 8, 11, 16])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
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
    at = 15
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


@njit
def pack(code, bits, packed):  # the kernels are for compiled callers only
    pack_row(code, 0, code.shape[1], bits, packed, 0)


@njit
def unpack(packed, bits, code):
    return unpack_row(packed, 0, code.shape[1], bits, code, 0)


@given(bits=st.integers(1, 16), data=st.data())
def test_packing(bits, data):
    codes = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=40))
    cells = np.array([codes], dtype=np.float64)
    packed = np.full((len(codes) * bits + 7) // 8 + 1, 0xAA, dtype=np.uint8)  # and a byte that is not theirs
    pack(cells, bits, packed)
    whole = sum(code << (bits * k) for k, code in enumerate(codes))
    assert packed[:-1].tobytes() == whole.to_bytes(len(packed) - 1, "little")
    assert packed[-1] == 0xAA
    back = np.zeros_like(cells)
    assert unpack(packed, bits, back)
    np.testing.assert_array_equal(back, cells)
    left_over = 8 * (len(packed) - 1) - len(codes) * bits
    if left_over:
        packed[-2] |= 1 << 7
        assert not unpack(packed, bits, back)


# --------------------------------------------------------------------------------------------------------------------
# There and back

counts = st.integers(0, 2**48 - 1)
positions = st.builds(Position, counts, counts, counts)
vectors = st.lists(st.floats(-1e15, 1e15), min_size=4, max_size=4).map(np.array)


def same(one, two):
    if isinstance(one, tuple):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


def header(kind, position, degree):
    return messages.Header(kind, wire.identity("ann"), position, degree)


@given(positions, counts, vectors)
def test_statements_there_and_back(position, degree, model):
    dense = make_wire()
    expected = messages.Statement(header(Kind.DENSE, position, degree), model)
    assert same(dense.decode(dense.dense(position, degree, model)), expected)
    silence = messages.Statement(header(Kind.SILENCE, position, degree))
    assert same(dense.decode(dense.silence(position, degree)), silence)


@given(positions, counts, st.binary(min_size=2, max_size=2), st.floats(0, 2.0**127, width=32))
def test_differences_there_and_back(position, degree, codes, scale):
    quantized = make_wire(THREE_BITS)
    packed = np.frombuffer(codes, dtype=np.uint8)
    expected = messages.Statement(header(Kind.DIFFERENCE, position, degree), packed, scale)
    assert same(quantized.decode(quantized.difference(position, degree, packed, scale)), expected)


@given(positions, counts, st.integers(0, 2**32 - 1), positions, counts, st.booleans(), st.booleans())
def test_requests_and_farewells_there_and_back(position, degree, to, held, epoch, whole, confirm):
    any_wire = make_wire()
    request = any_wire.request(position, degree, to, held, epoch, whole, confirm)
    expected = messages.Request(header(Kind.REQUEST, position, degree), to, held, epoch, whole, confirm)
    assert any_wire.decode(request) == expected
    farewell = any_wire.farewell(position, degree, to, epoch)
    assert any_wire.decode(farewell) == messages.Farewell(header(Kind.FAREWELL, position, degree), to, epoch)


@given(data=st.data())
def test_snapshots_there_and_back(data):
    position, degree, held, asked = (data.draw(s) for s in (positions, counts, positions, positions))
    flags = [data.draw(st.booleans()) for _ in range(6)]
    own = data.draw(vectors), data.draw(vectors)
    other = (data.draw(vectors), data.draw(vectors)) if flags[0] else None
    edge = Edge(data.draw(counts), flags[1], flags[2], data.draw(vectors) if flags[3] else None)
    any_wire = make_wire()
    sent = any_wire.snapshot(position, degree, 77, flags[4], flags[5], own, held, asked, other, edge)
    read = any_wire.decode(sent)
    assert isinstance(read, messages.Snapshot)
    expected = {
        "header": header(Kind.SNAPSHOT, position, degree),
        "to": 77,
        "rejoining": flags[4],
        "repeated": flags[5],
        "broadcast": own[0],
        "total": own[1],
        "held": held,
        "asked": asked,
        "replica": other[0] if other else None,
        "replica_total": other[1] if other else None,
        "edge": edge,
    }
    assert read._asdict().keys() == expected.keys()
    for field, value in expected.items():
        assert same(getattr(read, field), value), field


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
    channel = learner.channel
    marks += [mark_of(features, kind(rho=0.3, eta=1.0, channel=channel)) for kind in (lc.ODKLA, lc.DOKL)]
    assert len(set(marks)) == len(marks)


# --------------------------------------------------------------------------------------------------------------------
# Refusals: each under its name, in the log, and without a trace in the agent


class Stage:
    """ben hears ann and cid, some rounds in; ``fresh`` are messages of ann that he would take."""

    def __init__(self, features, channel=None, clock="slotted", dtype="float64"):
        learner = lc.ODKLA(rho=0.3, eta=1.0, channel=channel or lc.Channel())
        self.agents = make_team(learner, features, ["ann-ben", "ben-cid"], clock=clock, dtype=dtype)
        self.random = np.random.default_rng(0)
        for _ in range(6):
            self.learn()
            carry(self.agents)
        self.learn()
        self.old = self.fresh("ann")  # heard by ben below, so no longer fresh
        deliver(self.agents, post(self.agents))
        self.ben = self.agents["ben"]
        self.wires = {name: agent._wire for name, agent in self.agents.items()}
        self.to = self.wires["ben"].sender

    def learn(self):
        for agent in self.agents.values():
            agent.learn(self.random.uniform(size=3), self.random.normal())

    def fresh(self, name):
        """What ``name`` has just said; it stays in the queue as well."""
        agent = self.agents[name]
        [message] = agent._dialogue.outgoing
        return message.data

    def next(self, name="ann"):
        """The next statement of ``name``."""
        self.agents[name].learn(self.random.uniform(size=3), self.random.normal())
        [message] = self.agents[name].outgoing()
        return message.data

    def refuses(self, caplog, data, reason, sender="ann"):
        ben = self.ben
        ben.outgoing()
        before, edges, waiting = ben.state(), ben.edges, ben.waiting
        counters = {name: value for name, value in ben.counters.items() if not name.endswith("_in")}
        held = {name: len(n.held) for name, n in ben._dialogue.neighbours.items()}
        earlier = ben.counters["refusals"].get(reason, 0)
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "laconic.protocol"):
            ben.receive(data, sender)
        assert ben.counters["refusals"] == {**counters.pop("refusals"), reason: earlier + 1}
        after = ben.counters
        assert all(after[name] == value for name, value in counters.items())
        assert ben.state() == before
        assert (ben.edges, ben.waiting, ben.outgoing()) == (edges, waiting, [])
        assert {name: len(n.held) for name, n in ben._dialogue.neighbours.items()} == held
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
    for length in range(19):
        stage.refuses(caplog, fresh[:length], "truncated")
    stage.refuses(caplog, seal(start(1) + b"\xff\xff\xff\xff"), "fingerprint")  # long enough to be looked at
    mark = stage.wires["ben"].mark
    stage.refuses(caplog, seal(start(3, mark) + b"\x80" * 4), "truncated")
    stage.refuses(caplog, seal(start(2, mark) + b"\x00\x08\x08\x01"), "truncated")  # no width
    stage.refuses(caplog, seal(start(4, mark) + b"\x00\x08\x08\x01" + b"\x01\x02"), "truncated")
    stage.refuses(caplog, seal(start(5, mark) + b"\x00\x08\x08\x01" + struct.pack("<I", stage.to)), "truncated")


def test_a_cut_message_with_its_checksum_made_right(stage, caplog):
    fresh = stage.next()[:-4]
    for length in range(15, len(fresh)):
        stage.refuses(caplog, seal(fresh[:length]), "dimension" if length > 15 else "truncated")


def test_oversized(stage, caplog):
    n = stage.ben.features.n_features
    longest = 11 + 11 * 7 + 6 + n * 5 * 8 + 4
    stage.refuses(caplog, stage.next() + b"\x00" * longest, "oversized")
    stage.refuses(caplog, bytes(longest + 1), "oversized")
    stage.refuses(caplog, bytes(longest), "magic")
    stage.refuses(caplog, bytes(10_000_000), "oversized")


def test_the_longest_message_is_not_oversized(features):
    agents = make_team(puppet(), features, ["ann-ben"])
    most, ones = Position(*[2**48 - 1] * 3), np.ones(features.n_features)
    edge = Edge(2**48 - 1, live=False, remembers=True, vector=ones)
    ann = agents["ann"]._wire
    data = ann.snapshot(most, 2**48 - 1, 1, True, True, (ones, ones), most, most, (ones, ones), edge)
    assert agents["ben"]._wire.decode(data).edge.epoch == 2**48 - 1


def test_magic(stage, caplog):
    fresh = stage.next()
    stage.refuses(caplog, change(fresh, 0, b"LC"), "magic")
    stage.refuses(caplog, change(fresh, 1, b"d"), "magic")


def test_version(stage, caplog):
    fresh = stage.next()
    for version in [0, *range(2, 16)]:
        stage.refuses(caplog, change(fresh, 2, bytes([version << 4 | 2])), "version")


def test_kind(stage, caplog):
    fresh = stage.next()
    for kind in [0, *range(7, 16)]:
        stage.refuses(caplog, change(fresh, 2, bytes([0x10 | kind])), "kind")


def test_corrupt(stage, caplog):
    """Every single bit that flips is noticed."""
    fresh = stage.next()
    for at in range(3, len(fresh)):
        for bit in (0, 3, 7):
            spoiled = bytearray(fresh)
            spoiled[at] ^= 1 << bit
            stage.refuses(caplog, bytes(spoiled), "corrupt")


@pytest.mark.parametrize("other", ["rho", "seed", "bits", "n_agents", "dtype"])
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
    else:
        options["dtype"] = "float32"
    ann = lc.Agent("ann", ["ben"], features, learner, **options)
    for _ in range(8):
        ann.learn(np.full(3, 0.5), 1.0)
    stage.refuses(caplog, ann.outgoing()[-1].data, "fingerprint")


def test_dimension(features, caplog):
    for stage, other in ((Stage(features), THREE_BITS), (Stage(features, THREE_BITS), lc.Channel())):
        mark, n = stage.wires["ben"].mark, features.n_features
        fresh = stage.next()
        for size in (-1, 1):
            body = fresh[:-4][:size] if size < 0 else fresh[:-4] + bytes(size)
            stage.refuses(caplog, seal(body), "dimension")
        # The right fingerprint, but another size, another channel, another precision.
        for n_features, channel, dtype in ((n + 8, stage.ben.learner.channel, FLOAT64), (n, other, FLOAT64)):
            liar = Wire("ann", mark, n_features, channel, dtype)
            position, ones = Position(0, 8, 8), np.ones(n_features)
            packed = np.zeros(liar.packed_size, dtype=np.uint8)
            said = liar.difference(position, 1, packed, 1.0) if liar.packed_size else liar.dense(position, 1, ones)
            stage.refuses(caplog, said, "dimension")
        liar = Wire("ann", mark, n, stage.ben.learner.channel, FLOAT32)
        ones = np.ones(n, dtype=np.float32)
        snapshot = (Position(0, 8, 8), 1, stage.to, False, False, (ones, np.ones(n)), ZERO, ZERO, None)
        stage.refuses(caplog, liar.snapshot(*snapshot, Edge(0, True, True, None)), "dimension")
        stage.refuses(caplog, liar.dense(Position(0, 8, 8), 1, ones), "dimension")
        for kind in (3, 4, 6):  # a byte too many
            counts = b"\x00\x08\x08\x01"
            more = {3: b"", 4: struct.pack("<IB", stage.to, 0) + bytes(4), 6: struct.pack("<I", stage.to) + b"\x00"}
            stage.refuses(caplog, seal(start(kind, mark) + counts + more[kind] + b"\x00"), "dimension")


@pytest.mark.parametrize(
    "number",
    [b"\x80\x00", b"\x81\x80\x00", b"\xff" * 7 + b"\x01", b"\x80" * 6 + b"\x40", b"\xff" * 300 + b"\x01"],
    ids=["zero in two bytes", "one in three", "too large", "2^48", "endless"],
)
def test_malformed_number(number, stage, caplog):
    mark = stage.wires["ben"].mark
    for place in range(4):
        counts = [b"\x00", b"\x08", b"\x08", b"\x01"]
        counts[place] = number
        stage.refuses(caplog, seal(start(3, mark) + b"".join(counts)), "malformed")
    fine = b"\x80" * 6 + b"\x3f"  # 2^48 minus something: as large as they come, in seven bytes
    stage.refuses(caplog, seal(start(6, mark) + b"\x00\x08\x08\x01" + struct.pack("<I", stage.to) + fine), "replayed")


def test_a_number_without_end_is_not_read_to_its_end():
    """Its bytes are looked at seven times and no more, however long the message is."""

    class Bytes(bytes):
        looks = 0

        def __getitem__(self, at):
            Bytes.looks += 1
            return super().__getitem__(at)

    with pytest.raises(Refusal, match="malformed"):
        wire._read_counts(Bytes(b"\xff" * 100_000), 0, 4)
    assert Bytes.looks <= 7


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad, features, caplog):
    stage = Stage(features)
    ann, n = stage.wires["ann"], features.n_features
    for k in (0, n - 1):
        model = np.ones(n)
        model[k] = bad
        stage.refuses(caplog, ann.dense(Position(0, 8, 8), 1, model), "not finite")
    ones = np.ones(n)
    for place in range(5):
        vectors = [ones.copy() for _ in range(5)]
        vectors[place][n // 2] = bad
        b, s, r, rs, v = vectors
        edge = Edge(0, live=True, remembers=True, vector=v)
        position = Position(0, 8, 8)
        spoiled = ann.snapshot(position, 1, stage.to, False, False, (b, s), ZERO, ZERO, (r, rs), edge)
        stage.refuses(caplog, spoiled, "not finite")
    quantized = Stage(features, THREE_BITS)
    packed = np.zeros(quantized.wires["ann"].packed_size, dtype=np.uint8)
    for scale in (bad, -1.0):
        data = quantized.wires["ann"].difference(Position(0, 8, 8), 1, packed, scale)
        quantized.refuses(caplog, data, "not finite")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_that_would_overflow(dtype, features, caplog):
    """Finite numbers whose squares are not: no model of an agent that has not diverged."""
    stage = Stage(features, dtype=dtype)
    model = np.full(features.n_features, 0.9 * np.finfo(dtype).max, dtype=dtype)
    stage.refuses(caplog, stage.wires["ann"].dense(Position(0, 8, 8), 1, model), "not finite")
    quantized = Stage(features, THREE_BITS, dtype=dtype)
    packed = np.full(quantized.wires["ann"].packed_size, 0xFF, dtype=np.uint8)
    packed[-1] = 0x03  # 66 bits
    data = quantized.wires["ann"].difference(Position(0, 8, 8), 1, packed, 3e38)
    if dtype == "float32":
        quantized.refuses(caplog, data, "not finite")
    else:
        quantized.ben.receive(data, "ann")
        assert np.isfinite(quantized.ben.replica("ann")).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("place", ["broadcast", "total", "vector"])
def test_snapshots_that_would_overflow(place, dtype, features, caplog):
    stage = Stage(features, dtype=dtype)
    n, most = features.n_features, 0.9 * np.finfo(dtype).max
    vectors = {"broadcast": np.ones(n, dtype=dtype), "total": np.ones(n), "vector": np.zeros(n)}
    vectors[place] = np.full(n, most, dtype=vectors[place].dtype)
    edge = Edge(1, live=True, remembers=True, vector=vectors["vector"])
    own = vectors["broadcast"], vectors["total"]
    data = stage.wires["ann"].snapshot(Position(0, 8, 9), 1, stage.to, False, False, own, ZERO, ZERO, None, edge)
    stage.refuses(caplog, data, "not finite")


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
    ann, n = stage.wires["ann"], features.n_features
    stage.refuses(caplog, stage.old, "replayed")
    stage.refuses(caplog, ann.silence(Position(0, 7, 7), 1), "replayed")
    stage.refuses(caplog, ann.silence(Position(0, 6, 9), 1), "replayed")
    ones = np.ones(n)
    snapshot = ann.snapshot(
        Position(0, 6, 9), 1, stage.to, False, False, (ones, ones), ZERO, ZERO, None, Edge(0, True, True, None)
    )
    stage.refuses(caplog, snapshot, "replayed")
    stage.refuses(caplog, ann.farewell(Position(0, 6, 6), 1, stage.to, epoch=0), "replayed")
    stage.refuses(caplog, ann.farewell(Position(0, 7, 7), 1, stage.to, epoch=1), "replayed")


def test_stranger(stage, caplog):
    dan = Wire("dan", stage.wires["ben"].mark, stage.ben.features.n_features, lc.Channel(), FLOAT64)
    ben = stage.wires["ben"]
    for outsider in (dan, ben):  # a message of his own is no neighbour's either
        for data in (outsider.silence(Position(0, 8, 8), 1), outsider.farewell(Position(0, 8, 8), 1, stage.to, 0)):
            for sender in ("dan", "ann", None):
                stage.refuses(caplog, data, "stranger", sender=sender)


def test_spoofed(stage, caplog):
    fresh = stage.next()
    for sender in ("cid", "dan", "", "ann "):
        stage.refuses(caplog, fresh, "spoofed", sender=sender)
    stage.ben.receive(fresh, "ann")
    np.testing.assert_array_equal(stage.ben.replica("ann"), stage.agents["ann"].broadcast)


def test_misaddressed(stage, caplog):
    ann, position = stage.wires["ann"], Position(0, 8, 8)
    cid, ones = stage.wires["cid"].sender, np.ones(stage.ben.features.n_features)
    edge = Edge(0, True, True, None)
    for data in (
        ann.request(position, 1, cid, ZERO, 0, True, True),
        ann.farewell(position, 1, cid, 0),
        ann.snapshot(position, 1, cid, False, False, (ones, ones), ZERO, ZERO, None, edge),
    ):
        stage.refuses(caplog, data, "misaddressed")


def test_too_far_ahead(features, caplog):
    stage = Stage(features, clock="lockstep")
    ann, ones = stage.wires["ann"], np.ones(features.n_features)
    assert stage.ben.round == 7
    for round in (72, 10**9, 2**48 - 1):
        stage.refuses(caplog, ann.silence(Position(0, 7, round), 1), "too far ahead")
        stage.refuses(caplog, ann.dense(Position(0, 8, round), 1, ones), "too far ahead")
    stage.ben.receive(ann.silence(Position(0, 7, 71), 1), "ann")  # 64 rounds are held
    assert len(stage.ben._dialogue.neighbours["ann"].held) == 1


def test_of_many_refusals_the_log_shows_few(stage, caplog):
    with caplog.at_level(logging.DEBUG, "laconic.protocol"):
        for _ in range(1000):
            stage.ben.receive(b"", "ann")
    assert [record.count for record in caplog.records] == [2**k for k in range(10)]
    assert stage.ben.counters["refusals"] == {"truncated": 1000}


def test_decoding_raises_refusals_only(stage):
    """The innermost promise, on bytes that get as far as they can."""
    reader, mark = stage.wires["ben"], stage.wires["ben"].mark
    random = np.random.default_rng(0)
    reasons = set()
    for _ in range(5000):
        body = start(int(random.integers(1, 7)), mark) + random.bytes(int(random.integers(0, 300)))
        try:
            reader.decode(seal(body))
        except Refusal as refusal:
            reasons.add(refusal.reason)
    assert reasons >= {"truncated", "dimension", "malformed"}


def test_the_checksum_is_the_usual_one():
    data = make_wire().silence(ZERO, 0)
    assert struct.unpack("<I", data[-4:])[0] == zlib.crc32(data[:-4])
    assert zlib.crc32(b"123456789") == 0xCBF43926
