"""Learners are found by their names, in any spelling; one's own joins them."""

import sys

import pytest

import laconic as lc
from laconic import learners
from laconic.cli import main
from laconic.deploy.settings.site import Site
from laconic.experiments.figures import _ORDER, _STYLED
from laconic.experiments.methods import all_methods, methods
from laconic.experiments.settings import DEFAULT, ENDS, METHODS, SETTINGS, WAVES

SITE = """
[model]
n_inputs = 2
[learner]
algorithm = "{algorithm}"
{more}
[network]
edges = [["a", "b"]]
[source]
kind = "stdin"
[agents.a]
listen = "tcp/127.0.0.1:7450"
[agents.b]
listen = "tcp/127.0.0.1:7451"
"""

OWN = """
import laconic as lc

@lc.learners.register
class Cautious(lc.ODKLA):
    name = "Cautious One"
    grid = {"rho": (0.1, 0.2), "eta": (10.0, 20.0), "zeal": (0.5, 1.0)}

    def __init__(self, rho=0.1, eta=20.0, zeal=1.0, *, regularization=1e-4, loss="squared", channel=lc.Channel()):
        super().__init__(rho, eta, regularization=regularization, loss=loss, channel=channel)
        self.zeal = zeal

    @classmethod
    def usual_steps(cls, loss):
        return {"rho": 0.1, "eta": 20.0}
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of one's own with a registered learner."""
    (tmp_path / "own_cautious.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_cautious:Cautious"
    if "own_cautious" in sys.modules:
        learners.unregister("cautious one")
        del sys.modules["own_cautious"]


@pytest.mark.parametrize("spelling", ["QC-ODKLA", "qc-odkla", "qc_odkla", "qcodkla", "QCODKLA", "Qc Odkla"])
def test_any_spelling_is_understood_wherever_a_learner_is_chosen(spelling, capsys):
    assert learners.get(spelling) is lc.QCODKLA
    assert isinstance(Site.parse(SITE.format(algorithm=spelling, more="")).learner(), lc.QCODKLA)
    assert main(["run", "--rows", "60", "--learner", spelling]) == 0
    assert "QC-ODKLA: rho 0.5" in capsys.readouterr().out


def test_every_learner_is_found_by_its_name():
    assert {"ODKLA", "QC-ODKLA", "DOKL", "RFF-DOKL", "Local"} <= {learner.name for learner in learners.every()}
    for learner in learners.every():
        assert learners.get(learner.name) is learners.get(learners.written(learner)) is learner
        assert isinstance(learner(), learner)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("okdla", "learner must be one of 'odkla', 'qc-odkla', .* got 'okdla'. Did you mean 'odkla'?"),
        (3, "learner must be one of .* got 3"),
        ("nowhere.at.all:Learner", "learner 'nowhere.at.all:Learner' cannot be imported: No module named 'nowhere'"),
        ("laconic.learners:Nobody", "cannot be imported: .* has no attribute 'Nobody'"),
        ("laconic.learners:register", "must be a class of learners with init and step"),
        ("laconic.learners:Learner", "must be a class of learners with init and step"),
    ],
)
def test_unknown_names_are_refused_in_one_sentence(name, said):
    with pytest.raises(ValueError, match=said):
        learners.get(name)


def test_what_cannot_be_registered_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="must be a class of learners"):
        learners.register(lc.ODKLA())
    with pytest.raises(ValueError, match="must be a class of learners"):
        learners.register(lc.Learner)
    with pytest.raises(ValueError, match="must say its name"):
        learners.register(type("Nameless", (lc.ODKLA,), {}))
    with pytest.raises(ValueError, match="a name of its own, and 'odkla' is ODKLA's"):
        learners.register(type("Impostor", (lc.ODKLA,), {"name": "odkla"}))
    with pytest.raises(ValueError, match="without : and commas"):
        learners.register(type("Odd", (lc.ODKLA,), {"name": "a:b"}))
    assert learners.get("ODKLA") is lc.ODKLA


def test_a_class_defined_again_replaces_itself():
    first, second = (type("Again", (lc.ODKLA,), {"name": "again"}) for _ in range(2))
    learners.register(first)
    try:
        assert learners.register(second) is learners.get("again") is second
    finally:
        learners.unregister("again")


def test_a_learner_of_ones_own_runs_from_the_command_line(own, capsys):
    words = ["run", "--rows", "60", "--learner", own, "--parameter", "zeal=0.5", "--rho", "0.3"]
    assert main(words) == 0
    assert "Cautious One: rho 0.3, eta 20, zeal 0.5" in capsys.readouterr().out
    assert main(["run", "--rows", "60", "--learner", "cautious-one"]) == 0  # it has registered itself
    assert main(["run", "--learner", own, "--parameter", "zest=1"]) == 2
    said = capsys.readouterr().err
    assert said == "laconic: --parameter zest makes no sense with --learner cautious-one, which takes zeal.\n"
    assert main(["run", "--learner", own, "--parameter", "rho=1"]) == 2
    assert "--parameter rho must be written --rho" in capsys.readouterr().err


def test_a_learner_of_ones_own_is_tuned(own, capsys):
    learners.get(own)
    assert main(["tune", "--rows", "100", "--seeds", "1", "--algorithm", "cautiousone"]) == 0
    said = capsys.readouterr().out
    assert "--learner cautious-one --rho" in said and "--parameter zeal=" in said


def test_a_learner_of_ones_own_runs_at_a_site(own):
    site = Site.parse(SITE.format(algorithm=own, more="rho = 0.7\nzeal = 0.25"))
    learner = site.learner()
    assert (type(learner).__name__, learner.rho, learner.zeal) == ("Cautious", 0.7, 0.25)
    with pytest.raises(
        ValueError, match=r"\[learner\] step is not for own_cautious:Cautious, which takes rho, eta, zeal,"
    ):
        Site.parse(SITE.format(algorithm=own, more="step = 1"))
    with pytest.raises(ValueError, match=r"\[learner\] learner 'no.such:Thing' cannot be imported"):
        Site.parse(SITE.format(algorithm="no.such:Thing", more=""))


def test_the_papers_methods_are_registered_learners_and_two_halves():
    known = {learner.name for learner in learners.every()}
    assert set(METHODS) - known == {"C-ODKLA", "Q-ODKLA"}
    assert known <= set(all_methods())
    assert set(_STYLED) == set(METHODS) and set(_ORDER) == {*METHODS, *WAVES, *ENDS, DEFAULT}
    for name, method in methods(SETTINGS["energy"]).items():
        made = method.make({step: values[0] for step, values in method.grid.items()})
        assert made.regularization == 1e-4
        if name == "C-ODKLA":
            assert made.channel == lc.Channel(lc.Censor(2.0, 0.9))
        if name == "QC-ODKLA":
            assert made.channel == lc.Channel(lc.Censor(2.0, 0.9), lc.Quantizer(3))


@pytest.mark.parametrize("learner", learners.every(), ids=lambda learner: learner.name)
def test_what_a_learner_says_of_itself_fits_its_constructor(learner):
    assert set(learner.grid) <= set(learner.arguments())
    for loss in lc.losses.LOSSES.values():
        given = {"loss": loss} if "loss" in learner.arguments() else {}  # or it is that of what it is built around
        made = learner(**learner.usual_steps(loss), **given)
        assert made.loss is loss or not given
        assert all(word in made.describe() for word in learner.grid)
        step = made.local_step(lc.Network.ring(4))
        assert step is None or step > 0


def test_losses_register_once():
    with pytest.raises(ValueError, match="a name of its own, and 'hinge' is Hinge's"):
        lc.losses.register(type("Mine", (lc.losses.Squared,), {"name": "hinge"}))
    with pytest.raises(ValueError, match="must say its name"):
        lc.losses.register(type("Mine", (lc.losses.Squared,), {}))
    with pytest.raises(ValueError, match="must be a class of losses"):
        lc.losses.register(lc.losses.Loss)
    assert list(lc.losses.LOSSES)[:3] == ["squared", "logistic", "hinge"]
