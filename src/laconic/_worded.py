"""Sentences that know which of their words are names of arguments, and errors made of them.

The library speaks of arguments (``eta``); somebody else may know them by other names: at a terminal they are options
(``--eta``). So an error carries the names that it mentions, and whoever shows it may put others in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final


def printable(text: str) -> str:
    """``text`` with whatever is not printable written out: a terminal obeys control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@final
class Argument(str):
    """The name of an argument within a sentence."""

    __slots__ = ()


@final
class Setting(NamedTuple):
    """The advice to give an argument a value, within a sentence: "pass missing='drop'"."""

    verb: str
    argument: str
    value: object

    def __str__(self) -> str:
        return f"{self.verb} {self.argument}={self.value!r}"


Part = str | Argument | Setting


@final
class Worded(str):
    """A sentence as text, and as the ``parts`` that it is made of.

    >>> advice = Worded("raise ", Argument("eta"), " or ", Setting("pass", "rho", 1))
    >>> advice
    'raise eta or pass rho=1'
    >>> advice.reworded(lambda part: f"<{part}>")
    'raise <eta> or <pass rho=1>'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Worded:
        """Join the parts; sentences among them are taken apart."""
        flat: list[Part] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Worded) else [part])
        sentence = super().__new__(cls, "".join(str(part) for part in flat))
        sentence.parts = tuple(flat)
        return sentence

    def reworded(self, word: Callable[[Argument | Setting], str]) -> str:
        """The sentence with other words for the arguments and settings in it."""
        return "".join(word(part) if isinstance(part, (Argument, Setting)) else part for part in self.parts)

    def __reduce__(self) -> Any:
        return Worded, self.parts


class ArgumentError(ValueError):
    """An argument that makes no sense: "{argument} {problem}".

    Attributes
    ----------
    argument : str
        Its name.
    problem : str
        What is expected of it, and what it is.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(Worded(Argument(argument), " ", problem))
        self.argument = argument
        self.problem = problem

    def __reduce__(self) -> Any:
        return type(self), (self.argument, self.problem)
