"""What is used when nothing is said: one function chooses features, learner and labels, and says why."""

from laconic.defaults.choice import BUDGETS, PREFIX, Choice, choose
from laconic.defaults.labels import TASKS, Labels, recognise

__all__ = ["BUDGETS", "PREFIX", "TASKS", "Choice", "Labels", "choose", "recognise"]
