"""From bytes to a sample: JSON, CBOR or a row of a table, with all that can be wrong with them."""

from __future__ import annotations

import codecs
import csv
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laconic import _extras
from laconic._validate import Array

#: Larger numbers are taken for faulty readings. Their squares would leave float32, and with them the model all bounds.
LARGEST = 1e18
_MISSING = frozenset(("", "nan", "na", "n/a", "null", "none", "?"))
_DELIMITERS = (",", ";", "\t")
_LEAST_LIMIT = 65_536
_BYTES_A_NUMBER = 64
_SHOWN, _MOST_SHOWN = 60, 200
_SELF_DESCRIBED = b"\xd9\xd9\xf7"  # CBOR's own mark at its beginning; decoders freeze what comes after it

_Parts = tuple[Array, float, float | None]


class BadSample(ValueError):
    """Some bytes that are no sample; the message says why."""


class Reader:
    """Turns the bytes of one sample into (x, y, time), or raises ``BadSample``.

    A sample is ``{"x": [...], "y": number or null}``, with a ``"time"`` if it has one, or the bare list
    ``[x..., y]``. With names of inputs it is an object, or a row below a header, with an entry for each name.

    Parameters
    ----------
    n_inputs : int
    inputs : sequence of str, optional
        Names of the inputs, in the order of x.
    target : str, optional
        Name of the label; without it, named samples have none.
    binary : bool
        Whether labels must be -1 or +1, as classification losses ask.
    classes : sequence of str or int
        The classes that labels name, if they do: the label of a sample is then the place of its class among them.

    Examples
    --------
    >>> Reader(2)(b'{"x": [0.5, 1], "y": 2}')
    (array([0.5, 1. ]), 2.0, None)
    >>> Reader(2, ["warm", "damp"], "power")(b'{"damp": 0.5, "warm": 20, "power": null}')
    (array([20. ,  0.5]), nan, None)
    >>> Reader(1, classes=["cat", "dog"])(b'{"x": [1], "y": "dog"}')
    (array([1.]), 1.0, None)
    >>> Reader(2)(b"[1, 2]")
    Traceback (most recent call last):
    laconic.deploy.sources.reading.BadSample: a list must hold 2 inputs and a label, got 2 entries
    """

    def __init__(
        self,
        n_inputs: int,
        inputs: Sequence[str] | None = None,
        target: str | None = None,
        binary: bool = False,
        classes: Sequence[str | int] = (),
    ) -> None:
        self.n_inputs, self.target, self.binary = n_inputs, target, binary
        self.inputs = None if inputs is None else tuple(inputs)
        self._classes = {str(one): float(k) for k, one in enumerate(classes)}
        self.limit = max(_LEAST_LIMIT, _BYTES_A_NUMBER * (n_inputs + 1))
        self.new_table()

    def __call__(self, data: bytes) -> _Parts:
        """The sample in ``data``: JSON if it starts with a bracket, else CBOR, whose lists and maps never do."""
        if len(data) > self.limit:
            raise BadSample(f"{len(data)} bytes are more than a sample can need ({self.limit})")
        return self._sample(_decode_json(data) if data.lstrip()[:1] in (b"{", b"[") else _decode_cbor(data))

    # ---- rows of a table ----------------------------------------------------------------------------------------

    def new_table(self) -> None:
        """Forget the header and delimiter: the next row is the first of a table."""
        self._delimiter = ","
        self._columns: list[int] | None = None
        self._header: list[str] | None = None
        self._first = True

    def row(self, line: bytes) -> _Parts | None:
        """The sample in a line of text: JSON, or a row of a table; None for an empty line and for a header."""
        text = (line.removeprefix(codecs.BOM_UTF8) if self._first else line).strip()
        if not text:
            return None
        if len(text) > self.limit:
            raise BadSample(f"a line of {len(text)} bytes is longer than a sample can need ({self.limit})")
        if text[:1] in (b"{", b"["):
            return self._sample(_decode_json(text))
        try:
            words = text.decode()
        except UnicodeDecodeError:
            raise BadSample(f"a row must be text in UTF-8, got {_shown(text)}") from None
        if self._first:
            self._first = False
            self._delimiter = max(_DELIMITERS, key=words.count)
            if self._take_header(self._cells(words)):
                return None
        return self._sample_of_row(self._cells(words))

    def _cells(self, words: str) -> list[str]:
        if '"' not in words:
            return [cell.strip() for cell in words.split(self._delimiter)]
        try:
            cells = next(csv.reader([words], delimiter=self._delimiter, skipinitialspace=True))
        except csv.Error as error:
            raise BadSample(f"this is no row of a table: {_shown(words)} ({error})") from None
        return [cell.strip() for cell in cells]

    def _take_header(self, cells: list[str]) -> bool:
        """Whether the first row names its columns: all that are asked for, or nothing that could be a number."""
        if self.inputs is None:
            return not any(_is_number(cell) for cell in cells)
        self._header = cells
        wanted = [*self.inputs, *([] if self.target is None else [self.target])]
        if set(wanted) <= set(cells):
            self._columns = [cells.index(name) for name in wanted]
            return True
        return not any(_is_number(cell) for cell in cells)

    def missing_columns(self) -> list[str]:
        """Names that were asked for and that the header, once read, does not have."""
        if self.inputs is None or self._columns is not None or self._header is None:
            return []
        return [name for name in (*self.inputs, self.target) if name is not None and name not in self._header]

    def _sample_of_row(self, cells: list[str]) -> _Parts:
        if self.inputs is None:
            if len(cells) != self.n_inputs + 1:
                raise BadSample(f"a row must hold {self.n_inputs} inputs and a label, got {len(cells)} cells")
            chosen = cells
        else:
            if self._columns is None:
                raise BadSample(f"there is no column {self.missing_columns()[0]!r} in the header")
            if self._header is None or len(cells) != len(self._header):
                raise BadSample(f"a row must have as many cells as the header, got {len(cells)}")
            chosen = [cells[k] for k in self._columns]
        inputs, rest = chosen[: self.n_inputs], chosen[self.n_inputs :]
        label: Any = rest[0] if rest and (rest[0] in self._classes or rest[0].lower() not in _MISSING) else None
        try:
            x = [float(cell) for cell in inputs]
            label = label if label is None or self._classes else float(label)
        except ValueError:
            wrong = next(cell for cell in (inputs if self._classes else chosen) if not _is_number(cell))
            raise BadSample(f"a cell must be a number, got {_shown(wrong)}") from None
        return self._checked(x, label, None)

    # ---- what a message or a line of JSON holds -----------------------------------------------------------------

    def _sample(self, value: object) -> _Parts:
        if isinstance(value, Mapping):
            return self._sample_of_object(value)
        if not isinstance(value, list):
            raise BadSample(f"a sample must be an object or a list, got {_shown(value)}")
        if self.inputs is not None:
            raise BadSample("a sample must be an object with named inputs, got a list")
        if len(value) != self.n_inputs + 1:
            raise BadSample(f"a list must hold {self.n_inputs} inputs and a label, got {len(value)} entries")
        return self._checked(value[:-1], value[-1], None)

    def _sample_of_object(self, value: Mapping[Any, Any]) -> _Parts:
        if self.inputs is None:
            x, y = value.get("x"), value.get("y")
            if not isinstance(x, list):
                raise BadSample(f"x must be a list of {self.n_inputs} numbers, got {_shown(x)}")
        else:
            missing = next((name for name in self.inputs if name not in value), None)
            if missing is not None:
                raise BadSample(f"there is no input {missing!r}")
            x = [value[name] for name in self.inputs]
            y = None if self.target is None else value.get(self.target)
        return self._checked(x, y, value.get("time"))

    def _checked(self, x: list[Any], y: Any, time: Any) -> _Parts:
        if len(x) != self.n_inputs:
            raise BadSample(f"x must hold {self.n_inputs} numbers, got {len(x)}")
        # Exact types: a bool is no measurement, and what else CBOR can hold (fractions, dates) is none either.
        if not all(type(number) in (float, int) for number in x):
            wrong = next(number for number in x if type(number) not in (float, int))
            raise BadSample(f"inputs must be numbers, got {_shown(wrong)}")
        # `not <=` catches NaN as well, and huge whole numbers before they are turned into floats.
        if not all(-LARGEST <= number <= LARGEST for number in x):
            wrong = next(number for number in x if not -LARGEST <= number <= LARGEST)
            raise BadSample(f"inputs must be finite and at most {LARGEST:g} in size, got {_shown(wrong)}")
        if y is None or (type(y) is float and math.isnan(y)):
            label = math.nan
        elif self._classes:
            label = self._class(y)
        else:
            if type(y) not in (float, int):
                raise BadSample(f"y must be a number or null, got {_shown(y)}")
            if not -LARGEST <= y <= LARGEST:
                raise BadSample(f"y must be finite and at most {LARGEST:g} in size, got {_shown(y)}")
            if self.binary and y not in (-1, 1):
                raise BadSample(f"y must be -1 or +1 for this loss, got {_shown(y)}")
            label = float(y)
        moment = float(time) if type(time) in (float, int) and -LARGEST <= time <= LARGEST else None
        return np.array(x, dtype=np.float64), label, moment

    def _class(self, y: object) -> float:
        """The place of the class that a label names, as a word or as a number: 1, 1.0 and "1" are the same."""
        # Whole numbers without end, which CBOR can hold, are not written out.
        plain = type(y) in (str, float) or (type(y) is int and -LARGEST <= y <= LARGEST)
        found = self._classes.get(str(y)) if plain else None
        if found is None and type(y) in (str, float):
            try:
                number = float(y)  # type: ignore[arg-type]
            except ValueError:
                number = math.nan
            found = self._classes.get(str(int(number))) if number.is_integer() else None
        if found is None:
            known = ", ".join(self._classes)
            known = known if len(known) <= _MOST_SHOWN else f"{known[:_MOST_SHOWN]}..."
            raise BadSample(f"y must be one of the classes {known}; got {_shown(y)}")
        return found


def _decode_json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadSample(f"this is not JSON: {_shown(data)} ({error})") from None


def _decode_cbor(data: bytes) -> object:
    try:
        loads = _extras.need("cbor2", "CBOR").loads
    except ModuleNotFoundError as error:
        raise BadSample(f"this is not JSON: {_shown(data)} ({str(error).removesuffix('.')})") from None
    try:
        return loads(data.removeprefix(_SELF_DESCRIBED))
    except Exception:  # hostile bytes reach far into a decoder with many types of its own
        raise BadSample(f"this is neither JSON nor CBOR: {_shown(data)}") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shown(value: object) -> str:
    """``value`` in a few letters; nested or endless things are not written out."""
    if isinstance(value, (bytes, str)):
        return repr(value[:_SHOWN]) + ("..." if len(value) > _SHOWN else "")
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if abs(value) < 10**30 else "a number of more than 30 digits"
    return f"a {type(value).__name__}"
