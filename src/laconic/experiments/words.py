"""Numbers and names as a report says them; what is missing is a dash."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from laconic.experiments.settings import SETTINGS

ABSENT = "–"
_SYMBOLS = {"rho": "ρ", "eta": "η", "step": "μ"}


def known(value: object) -> bool:
    """Whether it is a number that can be shown."""
    return isinstance(value, int | float) and bool(np.isfinite(value))


def number(value: Any, digits: int = 3, keep: bool = False) -> str:
    """So many digits that count; ``keep`` keeps the zeros at the end, for a column.

    >>> number(0.04), number(1.0), number(1.0, keep=True), number(0.1996, 2, keep=True), number(123456.0), number(None)
    ('0.04', '1', '1.00', '0.20', '123456', '–')
    """
    if not known(value):
        return ABSENT
    text = f"{value:{'#' if keep else ''}.{digits}g}"
    if "e" in text and 1 <= abs(value) < 1e6:
        text = f"{value:.0f}"
    return text.rstrip(".").replace("-", "−")


def milli(value: Any, digits: int = 3) -> str:
    """In thousandths; of a pair, mean and spread, the mean.

    >>> milli(0.0031), milli((0.0258, 0.0001))
    ('3.10', '25.8')
    """
    value = value[0] if isinstance(value, tuple | list) else value
    return number(1000 * value, digits, keep=True) if known(value) else ABSENT


def reference(value: Any) -> str:
    """A reference point with the digits that it was given in."""
    return f"{value:.{2 if value < 10 else 1}f}" if known(value) else ABSENT


def spread(value: Sequence[float]) -> str:
    """The spread of a pair in thousandths, with its sign; nothing where one run has none."""
    return f"± {number(1000 * value[1], 2, keep=True)}" if value[1] else ""


def count(value: Any) -> str:
    """A whole number, its thousands apart."""
    return f"{value:,.0f}".replace(",", "\u202f") if known(value) else ABSENT


def percent(value: Any, form: str = ".1f") -> str:
    """A share in percent.

    >>> percent(0.0821), percent(-0.01, "+.1f"), percent(-0.0001, "+.1f")
    ('8.2%', '−1.0%', '0.0%')
    """
    if not known(value):
        return ABSENT
    text = f"{100 * value:{form}}"
    text = text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")
    return f"{text}%"


def bits(value: Any) -> str:
    """Bits in the unit that suits them."""
    if not known(value):
        return ABSENT
    for unit, name in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        if value >= unit:
            return f"{number(value / unit, keep=True)}\u00a0{name}"
    return f"{number(value)}\u00a0bit"


def seconds(value: Any) -> str:
    """A duration in the unit that suits it."""
    if not known(value):
        return ABSENT
    if value >= 90:
        return f"{value // 60:.0f}\u00a0min {value % 60:.0f}\u00a0s"
    return f"{number(value, keep=True)}\u00a0s" if value >= 1 else f"{number(1000 * value, keep=True)}\u00a0ms"


def symbol(step: str) -> str:
    """The paper's letter for a step."""
    return _SYMBOLS.get(step, step)


def steps(chosen: Mapping[str, float]) -> str:
    """Step sizes with their Greek letters."""
    return ", ".join(f"{symbol(name)} = {number(value)}" for name, value in chosen.items())


def title(name: str) -> str:
    """The title of a data set."""
    return SETTINGS[name].title if name in SETTINGS else name


def partition(name: str) -> str:
    """The name of a partition in words.

    >>> partition("sorted-by-feature:0")
    'sorted by feature 0'
    """
    return re.sub("[-:]", " ", name)


def linked(text: str) -> Markup:
    """The text with its DOIs as links."""
    return Markup(re.sub(r"doi:(10\.\S+)", r'<a href="https://doi.org/\1">doi:\1</a>', str(escape(text))))


# --------------------------------------------------------------------------------------------------------------------
# For sentences
# --------------------------------------------------------------------------------------------------------------------


def span(ratios: Iterable[float]) -> str:
    """How far ratios lie from one.

    >>> span([1.001, 1.08]), span([0.95, 1.08]), span([1.08])
    ('0.1% to 8.0% above', 'between 5.0% below and 8.0% above', '8.0% above')
    """
    low, high = _ends(ratios)
    if _side(low) == _side(high):
        return _side(low)
    if (low >= 1) == (high >= 1):
        low, high = sorted((low, high), key=lambda ratio: abs(ratio - 1))
        return f"{abs(low - 1):.1%} to {_side(high)}"
    return f"between {_side(low)} and {_side(high)}"


def times(ratios: Iterable[float]) -> str:
    """The smallest and the largest factor."""
    return f"{_from_to(number(value, keep=True) for value in _ends(ratios))} times"


def shares(values: Iterable[float]) -> str:
    """The smallest and the largest share, in percent."""
    return f"{_from_to(f'{100 * value:.1f}' for value in _ends(values))}%"


def exponents(values: Iterable[float]) -> str:
    """The smallest and the largest exponent."""
    return _from_to(f"{value:.2f}" for value in _ends(values))


def each(total: int) -> str:
    """All sets, of which there are so many."""
    return "the one set" if total == 1 else f"each of {total} sets"


def some(names: Sequence[str], total: int) -> str:
    """How many of the sets, and which."""
    if len(names) == total:
        return "the one set" if total == 1 else f"all {total} sets"
    if not names:
        return "no set" if total == 1 else f"none of {total} sets"
    return f"{len(names)} of {total} sets ({join([title(name) for name in names])})"


def join(parts: Sequence[str]) -> str:
    """A list as a sentence has it.

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _side(ratio: float) -> str:
    return f"{abs(ratio - 1):.1%} {'above' if ratio >= 1 else 'below'}"


def _from_to(pair: Iterable[str]) -> str:
    low, high = pair
    return low if low == high else f"{low} to {high}"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    numbers = list(values)
    return min(numbers), max(numbers)
