"""What loading gives: inputs, labels, and enough words to say where they come from."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from laconic._validate import Array


class Table(NamedTuple):
    """What a reader makes of a file: numbers and names, before rows are counted and words are added."""

    X: Array
    y: Array
    names: tuple[str, ...]
    target: str
    classes: tuple[str, str] | None = None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set in the order of its file, not yet scaled and not yet dealt to agents.

    Attributes
    ----------
    name : str
        The name or the file that was asked for.
    X : array (n, d), float64
        The inputs.
    y : array (n,), float64
        The labels; -1 and +1 where ``classes`` is given.
    names : tuple of str
        Names of the d inputs.
    target : str
        Name of the label.
    description, citation : str
        What it is, and the paper to cite (empty for a person's own file).
    protocol : "paper", "prepared" or None
        Which rule chose the rows and columns; None where there is only one.
    classes : (str, str) or None
        What -1 and +1 stand for.

    Examples
    --------
    >>> from laconic import data
    >>> data.load("synthetic", n_rows=300)
    Dataset 'synthetic': 300 rows, 5 inputs (x0, x1, x2, x3, x4), target y from -2.104 to 1.44
    """

    name: str
    X: Array
    y: Array
    names: tuple[str, ...]
    target: str
    description: str
    citation: str
    protocol: str | None = None
    classes: tuple[str, str] | None = None

    @property
    def n_rows(self) -> int:
        """Number n of samples."""
        return int(self.X.shape[0])

    @property
    def n_inputs(self) -> int:
        """Number d of inputs."""
        return int(self.X.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        shown = self.names if len(self.names) <= 6 else (*self.names[:4], "...", self.names[-1])
        rows, inputs = _count(self.n_rows, "row"), _count(self.n_inputs, "input")
        if self.classes is None:
            label = f"target {self.target} from {np.min(self.y):.4g} to {np.max(self.y):.4g}"
        else:
            share = float(np.mean(self.y > 0))
            label = f"target {self.target}: {self.classes[0]} (-1) or {self.classes[1]} (+1, {share:.0%} of the rows)"
        rule = f", protocol {self.protocol!r}" if self.protocol else ""
        line = f"Dataset {self.name!r}: {rows}, {inputs} ({', '.join(shown)}), {label}{rule}"
        return "\n".join(textwrap.wrap(line, 118, subsequent_indent="    ", break_long_words=False))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
