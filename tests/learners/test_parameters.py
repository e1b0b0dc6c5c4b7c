"""get_params and set_params: scikit-learn's protocol, with the checks of the constructor."""

import pytest
from sklearn.base import clone

import laconic as lc

EVERY = [learner() for learner in lc.learners.every()]


@pytest.mark.parametrize("learner", EVERY, ids=lambda learner: learner.name)
def test_parameters_make_the_same_learner_again(learner):
    again = type(learner)(**learner.get_params(deep=False))
    assert repr(again) == repr(learner) == repr(clone(learner))
    assert clone(learner) is not learner
    assert set(learner.get_params(deep=False)) == set(learner.arguments())
    name = next(name for name in ("regularization", "ridge", "deviations") if name in learner.arguments())
    before = getattr(learner, name)
    changed = clone(learner).set_params(**{name: 2.5})
    assert (getattr(changed, name), getattr(learner, name)) == (2.5, before)
    assert changed.set_params(**{name: before}).get_params(deep=False).keys() == learner.get_params(False).keys()


def test_numbers_come_back_as_they_went_in():
    learner = lc.QCODKLA(rho=0.2, eta=4.0, alpha=1.0, range=(-1, 2))
    given = learner.get_params()
    assert (given["rho"], given["eta"], given["alpha"], given["range"]) == (0.2, 4.0, 1.0, (-1.0, 2.0))
    assert lc.Local(0.3).get_params(deep=False) == {"step": 0.3, "regularization": 1e-4, "loss": lc.Local().loss}
    growing = lc.ODKLA(eta=lc.schedules.SqrtGrowth(0.5))
    assert growing.get_params()["eta__scale"] == 0.5
    assert growing.set_params(eta__scale=2.0).eta == lc.schedules.SqrtGrowth(2.0)
    assert growing.set_params(eta=3.0).eta(7) == 3.0


def test_parts_of_parts_are_reached():
    learner = lc.ODKLA(channel=lc.Channel(lc.Censor(4.0, 0.99), lc.Quantizer(3)))
    assert learner.get_params()["channel__quantizer__bits"] == 3
    before = learner.channel
    learner.set_params(channel__quantizer__bits=5, channel__censor__alpha=1.0, rho=0.7)
    assert learner.channel == lc.Channel(lc.Censor(1.0, 0.99), lc.Quantizer(5))
    assert before == lc.Channel(lc.Censor(4.0, 0.99), lc.Quantizer(3))
    assert learner.rho == 0.7
    # A whole and a part of it at once: the part is that of the new whole.
    learner.set_params(channel__censor__beta=0.5, channel=lc.Channel(lc.Censor(2.0, 0.9)))
    assert learner.channel == lc.Channel(lc.Censor(2.0, 0.5))


def test_the_channel_of_qc_odkla_follows_its_parameters():
    learner = lc.QCODKLA().set_params(bits=5, alpha=0.5, range=(-1, 1))
    assert learner.channel == lc.Channel(lc.Censor(0.5, 0.99), lc.Quantizer(5, (-1, 1)))
    assert learner.kernel() == lc.QCODKLA().kernel()


def test_mixing_that_was_not_given_follows_the_channel():
    three_bits = lc.Channel(quantizer=lc.Quantizer(3))
    assert lc.RFFDOKL().set_params(channel=three_bits).mixing == 0.5
    assert lc.RFFDOKL(mixing=0.9).set_params(channel=three_bits).mixing == 0.9
    assert clone(lc.RFFDOKL()).set_params(channel=three_bits).mixing == 0.5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rho": -1.0}, "rho must be at least 0"),
        ({"eta": "fast"}, "eta must be a number"),
        ({"step": 1.0}, "step is no parameter of ODKLA, which takes rho, eta, regularization, loss, channel, robust"),
        ({"channel__censor__alpha": 1.0}, "censor__alpha is no parameter of Channel: its censor is None"),
        ({"channel__bits": 3}, "bits is no parameter of Channel, which takes censor, quantizer"),
        ({"rho__x": 3}, "rho__x is no parameter of ODKLA: its rho is 0.5"),
        ({"loss": "nonsense"}, "loss must be one of"),
    ],
)
def test_a_refused_change_changes_nothing(changes, said):
    learner = lc.ODKLA()
    before = repr(learner)
    with pytest.raises(ValueError, match=said):
        learner.set_params(regularization=0.1, **changes)
    assert repr(learner) == before
