"""Tables of a settings file, read key by key: each key is checked, and those that nobody asked for are refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from laconic import _validate
from laconic._files import expanded

#: The default of a key that must be there.
REQUIRED: Any = object()

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LONGEST_NAME = 64  # a certificate's common name can hold no more


@final
class Section:
    """A table of a TOML file and where it stands, for one-sentence complaints.

    Parameters
    ----------
    file : Path
        The file; relative paths in it start at its folder.
    name : str
        As people know it: ``[model]``, ``[agents.kitchen] source``.
    values : object
        What the file has there.

    Examples
    --------
    >>> table = Section(Path("site.toml"), "[learner]", {"rho": -1, "etta": 2})
    >>> table.number("rho", 0.5, least=0)
    Traceback (most recent call last):
    ValueError: site.toml: [learner] rho must be at least 0, got -1.
    >>> table.number("eta", 2.0)
    2.0
    >>> table.end()
    Traceback (most recent call last):
    ValueError: site.toml: [learner] has no key 'etta'; did you mean 'eta'?
    """

    def __init__(self, file: Path, name: str, values: object) -> None:
        self.file, self.name = file, name
        if not isinstance(values, dict):
            raise ValueError(f"{file}: {name} must be a table, got {values!r}.")
        self.values: dict[str, Any] = values
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def wrong(self, what: str) -> ValueError:
        """The complaint that ``what`` is wrong here, to be raised."""
        return ValueError(f"{self.file}: {self.name} {what}")

    @contextmanager
    def blame(self) -> Iterator[None]:
        """Say of a ValueError raised meanwhile that it comes from this table."""
        try:
            yield
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def take(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of ``key`` as it stands."""
        self._known.append(key)
        if key not in self.values:
            if default is REQUIRED:
                alike = [other for other in self.values if other not in self._known and near(other, [key]) != "."]
                if alike:
                    raise self.wrong(f"has no key {alike[0]!r}; did you mean {key!r}?")
                raise self.wrong(f"must have a key {key!r}.")
            return default
        return self.values[key]

    def number(self, key: str, default: Any = REQUIRED, **bounds: float) -> Any:
        """A number within bounds; without the key the default, as it is."""
        value = self.take(key, default)
        if key in self.values:
            with self.blame():
                return _validate.number(key, value, **bounds)
        return value

    def integer(self, key: str, default: Any = REQUIRED, *, least: int, most: int | None = None) -> Any:
        """A whole number within bounds."""
        value = self.take(key, default)
        if key in self.values:
            with self.blame():
                return _validate.integer(key, value, least=least, most=most)
        return value

    def choice(self, key: str, allowed: Collection[str], default: Any = REQUIRED) -> Any:
        """The value of a key that must be one of ``allowed``."""
        value = self.take(key, default)
        if key not in self.values:
            return value
        if not isinstance(value, str) or value not in allowed:
            options = ", ".join(repr(word) for word in allowed)
            raise self.wrong(f"{key} must be one of {options}, got {value!r}{near(value, allowed)}")
        return value

    def text(self, key: str, default: Any = REQUIRED) -> Any:
        """Some words, at least one letter."""
        value = self.take(key, default)
        if key in self.values and (not isinstance(value, str) or not value.strip() or "\0" in value):
            raise self.wrong(f"{key} must be a text of at least one letter, got {value!r}.")
        return value

    def identifier(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be a name: see ``check_name``."""
        value = self.take(key, default)
        if key in self.values:
            with self.blame():
                check_name(key, value)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """The boolean value of a key."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} must be true or false, got {value!r}.")
        return value

    def texts(self, key: str, default: Any = REQUIRED) -> Any:
        """The value of a key that must be a list of different strings."""
        value = self.take(key, default)
        if key not in self.values:
            return value
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise self.wrong(f"{key} must be a list of names, got {value!r}.")
        if len(set(value)) < len(value):
            raise self.wrong(f"{key} must be a list of different names, got {value!r}.")
        return tuple(value)

    def path(self, key: str, default: Any = REQUIRED) -> Any:
        """A path; a relative one starts where the file lies."""
        value = self.text(key, default)
        if key not in self.values:
            return value
        try:
            return self.file.parent / expanded(value)
        except ValueError as error:
            raise self.wrong(f"{key} = {error}") from None

    def table(self, key: str, name: str | None = None) -> Section:
        """The table below ``key``, empty if there is none."""
        return Section(self.file, name or f"[{key}]", self.take(key, {}))

    def end(self, elsewhere: Iterable[str] = ()) -> None:
        """Refuse keys that were not asked for; those ``elsewhere`` only serve as hints."""
        for key in self.values:
            if key not in self._known:
                hint = near(key, [*self._known, *elsewhere])
                if hint == ".":
                    hint = f"; its keys are {', '.join(self._known)}."
                raise self.wrong(f"has no key {key!r}{hint}")


def near(word: object, known: Iterable[str]) -> str:
    """The end of a complaint: what was meant, if that can be guessed.

    >>> near("kitchn", ["hall", "kitchen"])
    "; did you mean 'kitchen'?"
    >>> near("cellar", ["hall", "kitchen"])
    '.'
    """
    options, typed = {name.lower(): name for name in known}, str(word).lower()
    found = difflib.get_close_matches(typed, options, n=1, cutoff=0.6)
    found = found or [name for name in options if len(typed) > 2 and name.startswith(typed)]  # an abbreviation
    return f"; did you mean {options[found[0]]!r}?" if found else "."


def check_name(what: str, value: object) -> str:
    """``value`` if it can be part of a zenoh key, a certificate's name and a file's name.

    >>> check_name("name", "room/1")
    Traceback (most recent call last):
    ValueError: name must be made of letters, digits, - and _, and begin with one of the former two, got 'room/1'.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        kind = "letters, digits, - and _, and begin with one of the former two"
        raise ValueError(f"{what} must be made of {kind}, got {value!r}.")
    if len(value) > _LONGEST_NAME:
        raise ValueError(f"{what} must have at most {_LONGEST_NAME} letters, got {len(value)}.")
    return value
