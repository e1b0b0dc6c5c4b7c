"""Learners by name: the one list that the command line, settings of a site, sweeps and checks go by.

A learner is declared in its own file: its name, parameters, steps, kernel and way of speaking are attributes and
methods of its class. Registering it, here for those of the package and with ``register`` for a person's own, is all
that it takes to be found.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from typing import TypeVar

from laconic.learners.base import Learner

L = TypeVar("L", bound=type[Learner])

_KNOWN: dict[str, type[Learner]] = {}


def normalise(name: str) -> str:
    """A name without its case, hyphens, underscores and blanks: QC-ODKLA, qc_odkla and qcodkla are one.

    >>> normalise("QC-ODKLA")
    'qcodkla'
    """
    return name.lower().translate({ord(letter): None for letter in "-_ "})


def written(learner: type[Learner]) -> str:
    """A learner's name as it is shown where people type it: in options and settings.

    >>> from laconic.learners import QCODKLA
    >>> written(QCODKLA)
    'qc-odkla'
    """
    return learner.name.lower().replace("_", "-").replace(" ", "-")


def register(learner: L) -> L:
    """Let a learner be chosen by its name; to be used as a decorator of its class, or called.

    Examples
    --------
    >>> import laconic as lc
    >>> @lc.learners.register
    ... class Cautious(lc.ODKLA):
    ...     name = "cautious"
    ...
    ...     def __init__(self, rho=0.1, eta=20.0, *, regularization=1e-4, loss="squared", channel=lc.Channel()):
    ...         super().__init__(rho, eta, regularization=regularization, loss=loss, channel=channel)
    >>> lc.learners.get("Cautious")().eta
    20
    >>> lc.learners.unregister("cautious")
    """
    if not isinstance(learner, type) or not issubclass(learner, Learner) or inspect.isabstract(learner):
        raise ValueError(f"learner must be a class of learners with init and step, got {learner!r}.")
    if "name" not in vars(learner) or not normalise(learner.name):
        raise ValueError(f"learner must say its name, as in name = 'ODKLA'; {learner.__qualname__} does not.")
    if ":" in learner.name or "," in learner.name:
        raise ValueError(f"learner must have a name without : and commas, got {learner.name!r}.")
    key, place = normalise(learner.name), (learner.__module__, learner.__qualname__)
    other = _KNOWN.get(key)
    # In a notebook a class is defined again and again, and the last one counts.
    if other is not None and (other.__module__, other.__qualname__) != place:
        raise ValueError(f"learner must have a name of its own, and {learner.name!r} is {other.__qualname__}'s.")
    _KNOWN[key] = learner
    return learner


def unregister(name: str) -> None:
    """Forget a learner that was registered."""
    del _KNOWN[normalise(get(name).name)]


def every() -> tuple[type[Learner], ...]:
    """All registered learners, those of the package first.

    >>> [learner.name for learner in every()][:3]
    ['ODKLA', 'QC-ODKLA', 'DOKL']
    """
    return tuple(_KNOWN.values())


def get(name: str) -> type[Learner]:
    """The learner of that name, in any case, with hyphens, underscores or none; or the class "package.module:Class".

    >>> get("qc_odkla").name
    'QC-ODKLA'
    >>> get("laconic.learners.odkla:ODKLA").name
    'ODKLA'
    """
    if isinstance(name, str) and ":" in name:
        return _imported(name)
    if isinstance(name, str) and normalise(name) in _KNOWN:
        return _KNOWN[normalise(name)]
    near = difflib.get_close_matches(normalise(str(name)), _KNOWN, n=1, cutoff=0.5)
    hint = f" Did you mean {written(_KNOWN[near[0]])!r}?" if near else ""
    known = ", ".join(repr(written(learner)) for learner in every())
    raise ValueError(f"learner must be one of {known}, or 'package.module:Class'; got {name!r}.{hint}")


def _imported(path: str) -> type[Learner]:
    """The class at "package.module:Class", whether it is registered or not."""
    place, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(place), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ValueError(f"learner {path!r} cannot be imported: {error}.") from None
    if not isinstance(found, type) or not issubclass(found, Learner) or inspect.isabstract(found):
        raise ValueError(f"learner {path!r} must be a class of learners with init and step, got {found!r}.")
    return found
