"""Errors carry the names of the arguments that they speak of, so that nobody has to look for them in the text."""

import pickle

import pytest

import laconic as lc
from laconic import _validate
from laconic._worded import Argument, ArgumentError, Setting, Worded
from laconic.cli.options import OPTIONS, at_terminal
from laconic.cli.words import sentence


def test_a_sentence_is_its_text_and_its_parts():
    advice = Worded("raise ", Argument("eta"), " or ", Setting("pass", "missing", "drop"), ".")
    assert advice == "raise eta or pass missing='drop'."
    assert Worded("so: ", advice).parts == ("so: ", *advice.parts)
    assert advice.reworded(at_terminal) == "raise --eta or add --missing drop."
    again = pickle.loads(pickle.dumps(advice))
    assert again == advice
    assert again.parts == advice.parts
    assert [type(part) for part in again.parts] == [str, Argument, str, Setting, str]


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: lc.ODKLA(eta=-1), "eta"),
        (lambda: lc.Quantizer(99), "bits"),
        (lambda: lc.Quantizer(3, range=(2, 1)), "range"),
        (lambda: lc.Censor(1.0, 2.0), "beta"),
        (lambda: lc.Network.ring(0), "n_agents"),
        (lambda: lc.losses.get("absolute"), "loss"),
        (lambda: lc.data.partition([[1.0]], [1.0], 1, how="fairly"), "how"),
        (lambda: lc.data.load("nonsense"), "name"),
        (lambda: lc.data.load("synthetic", n_rows=0), "n_rows"),
    ],
)
def test_an_error_knows_its_argument(call, argument):
    with pytest.raises(ValueError, match=f"^{argument} must ") as caught:
        call()
    error = caught.value
    assert isinstance(error, ArgumentError)
    assert error.argument == argument
    assert str(error) == f"{error.argument} {error.problem}"
    assert sentence(error) == f"{OPTIONS[argument]} {error.problem}"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.argument, again.problem) == (str(error), error.argument, error.problem)


def test_a_text_that_looks_like_an_argument_is_left_alone():
    """A column, a file or a person may be called eta."""
    said = "eta must be in the file; rho (now 3) or pass missing='drop', lower step."
    assert sentence(ValueError(said)) == said


def test_advice_after_divergence_is_worded_for_the_terminal_and_survives_a_pickle(features):
    import numpy as np

    X = np.random.default_rng(0).uniform(size=(2000, 4, 3))
    y = X[..., 0]
    with pytest.raises(lc.Diverged, match="raise eta .now 0.01. or rho .now 0.01.") as caught:
        lc.simulate(lc.ODKLA(rho=0.01, eta=0.01), features, lc.Network.complete(4), X, y)
    error = caught.value
    assert "raise --eta (now 0.01) or --rho (now 0.01)." in sentence(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.round, again.advice, str(again)) == (error.round, error.advice, str(error))
    assert sentence(again) == sentence(error)


def test_values_are_shown_in_one_line():
    import numpy as np

    assert _validate.shown("text") == "'text'"
    assert "\n" not in _validate.shown(np.zeros((50, 50)))
    assert len(_validate.shown("x" * 5000)) < 300
