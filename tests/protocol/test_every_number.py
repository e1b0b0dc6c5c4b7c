"""No number of a checkpoint or of a trace's state crashes, hangs or fails who goes on from it: see ``every_number``."""

import os
import subprocess
import sys
from pathlib import Path

import every_number
import pytest
from breadth import EVERYTHING, each

PROGRAM = Path(every_number.__file__)
WHATS = ("lockstep", "compiled", "slotted", "reference", "compiled moving", "reference moving")
STILL = ("wave", "personal", "robust")  # of learners that need a network that stays what it is
CASES = [
    (learner, what)
    for learner, what in each(every_number.LEARNERS, WHATS)
    if not (what.endswith("moving") and learner.startswith(STILL))
]
ALWAYS = [("personal", "lockstep"), ("personal", "compiled"), ("experts", "slotted"), ("waves", "lockstep")]


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "what"), sorted({*CASES, *ALWAYS}))
def test_every_number_is_refused_or_lived_with(learner, what):
    """A seeded sample of the cases, or all of them: a crash of the process is a failure."""
    share = "1" if EVERYTHING else "0.05"
    tests = Path(__file__).parents[1]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tests)])}
    command = [sys.executable, PROGRAM, learner, what, share]
    run = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    wrong = [line for line in lines if line.startswith("WRONG")]
    assert not wrong, wrong
    assert run.returncode == 0, (lines[-1:], run.stderr[-2000:])
    assert int(lines[-1].removeprefix("tried ")) > 5
