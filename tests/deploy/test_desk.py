"""What a running agent answers: from a snapshot, in turn, and not to everybody at once."""

import json
import queue
import threading

import numpy as np
import pytest

import laconic as lc
from laconic.deploy.running import desk as desks
from laconic.deploy.running.desk import Desk, Snapshot
from laconic.deploy.running.metrics import Tally
from laconic.deploy.running.questions import LONGEST, MOST_ROWS, read_inputs

WAIT = 300.0
FEATURES = lc.RandomFeatures.gaussian(2, 10, seed=0)
WEIGHTS = np.linspace(-1.0, 1.0, 20)


class Asked:
    """A question of a test, which keeps its answer."""

    def __init__(self, data=b""):
        self.data, self.size, self.answers = data, len(data), queue.SimpleQueue()

    def payload(self):
        return self.data

    def reply(self, data):
        self.answers.put(("reply", data))

    def refuse(self, why):
        self.answers.put(("refuse", why))

    def result(self):
        return self.answers.get(timeout=WAIT)


class Board:
    """A link of a test: it only knows who answers what."""

    def __init__(self):
        self.takes = {}

    def answer(self, suffix, take):
        self.takes[suffix] = take

    def ask(self, suffix, data=b""):
        question = Asked(data)
        self.takes[suffix](question)
        return question


class Loop:
    """An agent's loop that takes snapshots when it is asked to, unless it is busy."""

    def __init__(self, learner, **names):
        agent = lc.Agent("ann", [], FEATURES, learner, n_agents=1)
        self.time, self.rings, self.busy = 0.0, 0, False
        self.desk = Desk(agent, self.ring, clock=lambda: self.time, **names)
        self.board = Board()
        self.desk.open(self.board)

    def ring(self):
        self.rings += 1
        if not self.busy:
            status = {"agent": "ann", "round": 40 + self.rings, "time": 12.5, "mean_square_error": float("nan")}
            # On a thread of its own, as the loop is: the desk waits for it.
            threading.Thread(target=self.desk.refresh, args=(Snapshot(WEIGHTS, status, 0.25),)).start()


@pytest.fixture
def loop():
    made = []

    def make(learner=None, **names):
        made.append(Loop(learner or lc.Local(), **names))
        return made[-1]

    yield make
    for one in made:
        one.desk.close()


def test_predictions_are_those_of_the_model_with_an_interval(loop):
    board = loop(inputs=("warm", "damp"), target="power").board
    expected = FEATURES([[0.1, 0.2], [0.3, 0.4]]) @ WEIGHTS
    kind, data = board.ask("predict", b'{"warm": 0.1, "damp": 0.2}').result()
    told = json.loads(data)
    assert kind == "reply" and (told["agent"], told["round"], told["time"]) == ("ann", 41, 12.5)
    assert told["prediction"] == pytest.approx(expected[0], abs=1e-12)
    assert told["interval"] == pytest.approx([expected[0] - 0.25, expected[0] + 0.25], abs=1e-12)
    several = json.loads(board.ask("predict", b'{"x": [[0.1, 0.2], [0.3, 0.4]]}').result()[1])
    assert several["prediction"] == pytest.approx(expected, abs=1e-12) and np.shape(several["interval"]) == (2, 2)


def test_models_and_status(loop):
    board = loop(inputs=("warm", "damp"), target="power").board
    model = lc.Model.from_bytes(board.ask("model").result()[1])
    assert model.weights.tolist() == WEIGHTS.tolist() and model.inputs == ("warm", "damp")
    assert (model.target, model.about["agent"], model.about["round"]) == ("power", "ann", 41)
    status = json.loads(board.ask("status").result()[1])
    assert status["mean_square_error"] is None and status["round"] == 41


def test_classes_come_with_what_speaks_for_them(loop):
    board = loop(lc.Local(loss="logistic")).board
    told = json.loads(board.ask("predict", b"[0.1, 0.2]").result()[1])
    margin = float(FEATURES([0.1, 0.2]) @ WEIGHTS)
    assert told["decision"] == pytest.approx(margin, abs=1e-12) and told["prediction"] == (1 if margin > 0 else -1)
    assert told["probability"] == pytest.approx([1 / (1 + np.exp(margin)), 1 / (1 + np.exp(-margin))])
    assert "interval" not in told


def test_one_snapshot_serves_all_who_ask_at_once(loop):
    made = loop()
    for _ in range(20):
        assert made.board.ask("status").result()[0] == "reply"
    assert made.rings == 1
    made.time += desks.FRESH
    made.board.ask("status").result()
    assert made.rings == 2


def test_a_loop_without_time_leaves_the_last_snapshot(loop, monkeypatch):
    monkeypatch.setattr(desks, "PATIENCE", 0.01)
    made = loop()
    made.busy = True
    assert made.board.ask("status").result() == ("refuse", "ann is busy: ask again later.")
    made.busy = False
    made.board.ask("status").result()
    made.busy, made.time = True, 100.0
    assert json.loads(made.board.ask("status").result()[1])["round"] == 42


def test_no_more_questions_than_may_be_are_answered(loop):
    made = loop()
    answers = [made.board.ask("status").result()[0] for _ in range(150)]
    assert answers == ["reply"] * 100 + ["refuse"] * 50  # at once; the clock of this test stands still
    made.time += 0.1
    answers = [made.board.ask("status").result()[0] for _ in range(8)]
    assert answers == ["reply"] * 5 + ["refuse"] * 3  # fifty a second
    assert (made.desk.answered, made.desk.refused) == (105, 53)


def test_no_more_questions_than_may_be_wait(loop):
    made = loop()
    made.busy = True
    questions = [made.board.ask("status") for _ in range(2 * desks.MOST_WAITING)]
    refused = [one for one in questions if not one.answers.empty() and one.result()[1].startswith("too many")]
    assert desks.MOST_WAITING - 1 <= len(refused) <= desks.MOST_WAITING
    made.desk.close()
    left = [one.result() for one in questions if one not in refused]
    assert {kind for kind, _ in left} == {"refuse"}  # nobody is left without a word
    assert made.board.ask("status").result()[0] == "refuse"


BAD = {
    b"": "a question must be JSON",
    b"\xff\xfe": "a question must be JSON",
    b"[" * 5000: "a question must be JSON",
    b"null": "a list of 2 numbers",
    b"[]": "2 numbers, got 0",
    b"[1]": "2 numbers, got 1",
    b'{"x": 3}': "a list of 2 numbers",
    b'{"y": [1, 2]}': "a list of 2 numbers",
    b'["1", "2"]': "finite numbers",
    b"[true, 1]": "finite numbers",
    b"[NaN, 1]": "finite numbers",
    b"[1e999, 1]": "finite numbers",
    b"[" + b"9" * 400 + b", 1]": "finite numbers",
    b"[[1, 2], 3]": "finite numbers",
    b"[[1, 2], [3]]": "2 numbers, got 1",
    json.dumps([[1, 2]] * (MOST_ROWS + 1)).encode(): "at most 256 inputs, got 257",
    b" " * (LONGEST + 1): "at most 65536 bytes",
}


@pytest.mark.parametrize("data", BAD, ids=lambda data: repr(data[:20]))
def test_what_is_no_input_is_refused_in_a_sentence(data, loop):
    kind, why = loop().board.ask("predict", data).result()
    assert kind == "refuse" and BAD[data] in why and why.endswith(".") and "\n" not in why


def test_named_inputs_must_all_be_there():
    with pytest.raises(ValueError, match="an input must have a value for 'damp'"):
        read_inputs(b'{"warm": 1}', 2, ["warm", "damp"])
    assert read_inputs(b'{"x": [1, 2]}', 2, ["warm", "damp"])[0].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "standard_exponential"])
def test_intervals_hold_nine_labels_of_ten_whatever_the_errors(draw):
    """2000 errors: 0.9 is missed by three deviations of a share of 2000, 0.02, at most."""
    tally, inside, asked = Tally(), 0, 0
    for error in getattr(np.random.default_rng(0), draw)(2000).tolist():
        radius = tally.radius()
        if radius is not None:
            asked, inside = asked + 1, inside + (abs(error) <= radius)
        tally.learned(0.0, error)
        if tally.samples < 100:  # from then on a window moves on
            assert tally.radius(before_last=True) == radius
    assert asked == 2000 - 9
    assert inside / asked == pytest.approx(0.9, abs=0.02)
