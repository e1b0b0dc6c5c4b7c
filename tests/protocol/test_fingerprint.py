"""The fingerprint is made of values: how they are written, ordered or typed does not matter, a last digit does."""

import dataclasses
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from coders import Largest
from own_learner import Grace, Huber, MomentumDiffusion

import laconic as lc
from laconic.protocol.fingerprint import canonical, fingerprint

FLOAT64 = np.dtype("float64")


def mark(learner, features, n_agents=3):
    return fingerprint(features, learner, n_agents, FLOAT64)


SAME = [
    (0.5, np.float64(0.5)),
    (0.5, np.float32(0.5)),
    (0.5, Fraction(1, 2)),
    (1, 1.0),
    (np.int16(7), 7),
    (0.0, -0.0),
    (True, np.True_),
    ("text", np.str_("text")),
    ((1, 2), [1.0, 2.0]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({3, 1, 2}, frozenset([2, 3, 1])),
    (np.array([0.0, 1.0]), np.array([-0.0, 1.0], dtype=np.float32)),
    (np.asfortranarray(np.eye(3)), np.eye(3)),
    (lambda t: 2.0 * t, lambda round: round + round),
    (partial(pow, 2.0), lambda t: 2.0**t),
    (lc.schedules.SqrtGrowth(0.5), lc.schedules.SqrtGrowth(np.float64(0.5))),
    (lc.losses.get("hinge"), lc.losses.Hinge()),
    (Grace(3, 0.5), Grace(3.0, np.float32(0.5))),
    (float("nan"), np.float64("nan")),
]

OTHER = [
    (0.5, np.nextafter(0.5, 1)),
    (2**60, 2**60 + 1),
    (10**400, 10**400 + 1),
    (0, None),
    (1, True),
    ("1", 1),
    ("ab", b"ab"),
    ((1, 2), (2, 1)),
    ((1, 2), {1, 2}),
    (("a", "bc"), ("ab", "c")),
    ((1, (2,)), (1, 2)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    (np.zeros(2), (0.0, 0.0)),
    (lambda t: 1.0, lambda t: 1.0 + (t == 100)),
    (lc.schedules.SqrtGrowth(0.5), lc.schedules.SqrtDecay(0.5)),
    (lc.losses.get("hinge"), lc.losses.get("squared")),
    (Grace(3, 0.5), Grace(4, 0.5)),
    (Grace(3, 0.5), type("Mercy", (Grace,), {})(3, 0.5)),
    (float("inf"), -float("inf")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_have_equal_bytes(one, other):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_values_have_other_bytes(one, other):
    assert canonical(one) != canonical(other)


def test_the_bytes_of_a_number_by_hand():
    assert canonical(0.5) == b"f" + (8).to_bytes(8, "little") + bytes.fromhex("000000000000e03f")
    assert canonical([None, "é"]) == (
        b"l" + (9 + 11).to_bytes(8, "little") + b"n" + bytes(8) + b"s" + (2).to_bytes(8, "little") + "é".encode()
    )


def test_how_settings_are_printed_does_not_matter(features, monkeypatch):
    learner = lc.QCODKLA(rho=0.1 + 0.2, eta=lc.schedules.SqrtGrowth(1 / 3), alpha=0.5, beta=0.95)
    before = mark(learner, features)
    for kind in (lc.Channel, lc.Censor, lc.Quantizer, lc.schedules.SqrtGrowth, lc.losses.Squared):
        monkeypatch.setattr(kind, "__repr__", lambda self: "something")
    with np.printoptions(precision=2):
        assert mark(learner, features) == before


def test_numpy_numbers_are_numbers(features):
    plain = lc.ODKLA(rho=0.25, eta=2.0, channel=lc.Channel(lc.Censor(0.5, 0.75), lc.Quantizer(3, range=(-1.0, 1.0))))
    numpy = lc.ODKLA(
        rho=np.float64(0.25),
        eta=np.float32(2.0),
        channel=lc.Channel(lc.Censor(np.float64(0.5), np.float32(0.75)), lc.Quantizer(np.int64(3), range=[-1, 1])),
    )
    assert mark(plain, features) == mark(numpy, features, n_agents=np.int64(3))


def test_learners_of_ones_own(features):
    n = features.n_features
    channel = lc.Channel(Grace(10, 0.5), Largest(0.02, n))

    def make(**changes):
        return MomentumDiffusion(**{"channel": channel, "loss": Huber(), "rate": 0.1, **changes})

    assert mark(make(), features) == mark(make(channel=lc.Channel(Grace(10, 0.5), Largest(0.02, n))), features)
    others = [
        make(rate=0.2),
        make(loss="squared"),
        make(channel=lc.Channel(Grace(11, 0.5), Largest(0.02, n))),
        make(channel=lc.Channel(Grace(10, 0.5), Largest(0.03, n))),
        make(channel=lc.Channel(Grace(10, 0.5))),
    ]
    marks = [mark(learner, features) for learner in (make(), *others)]
    assert len(set(marks)) == len(marks)


def test_a_class_of_the_same_name_and_parameters_is_the_same(features):
    """Each agent has a module of its own; what counts is what the classes are called and hold."""

    def make_class(decorate):
        @decorate
        class Doubling:
            least: float = 0.5

            def threshold(self, t):
                return self.least

        return Doubling

    @dataclasses.dataclass
    class Slotted:
        __slots__ = ("least",)
        least: float

        def threshold(self, t):
            return self.least

    one, two = (lc.ODKLA(channel=lc.Channel(make_class(dataclasses.dataclass)())) for _ in range(2))
    assert type(one.channel.censor) is not type(two.channel.censor)
    assert mark(one, features) == mark(two, features)
    slots = [mark(lc.ODKLA(channel=lc.Channel(Slotted(least))), features) for least in (0.1, 0.1, 0.2)]
    assert slots[0] == slots[1] != slots[2]


def test_a_learner_that_keeps_an_argument_under_another_name(features):
    class Renamed(MomentumDiffusion):
        def __init__(self, speed):
            super().__init__(rate=speed)

    assert mark(Renamed(0.1), features) == mark(Renamed(0.1), features) != mark(Renamed(0.2), features)


def test_parameters_that_contain_themselves_are_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="learner must have parameters that do not contain themselves"):
        canonical(endless)
