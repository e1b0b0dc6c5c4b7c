"""The table of a paper: runs side by side, with mean, spread and a paired test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from laconic import _validate
from laconic._files import written_whole
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.papers import table
from laconic.papers.measures import chosen
from laconic.papers.testing import TESTS, holm, least_p, p_value
from laconic.trace import Trace

_TITLE, _P = "learner", "p"


class Row(NamedTuple):
    """One learner: its values, (n_runs,) of each measure, and the p-value against the one that it is compared with."""

    name: str
    values: tuple[Array, ...]
    p: float
    diverged: int


def compare(
    results: Mapping[Any, Trace | Sequence[Trace]],
    measures: object = ("mse", "messages", "bits"),
    *,
    against: object = None,
    test: str = "t",
) -> Comparison:
    """Set runs beside each other, as a paper does: mean and spread over seeds, and a paired test.

    Parameters
    ----------
    results : dict of Trace, or of sequences of Trace
        As ``sweep`` returns them; with ``seeds`` there are several runs of each learner, and the k-th of one is paired
        with the k-th of another: same data in the same order, same features, same network.
    measures : names, or dict of functions
        Of "mse", "recent" (the last fifth), "global" (needs ``collective=True``), "wrong" (classes), "messages", "bits"
        and "seconds"; or functions of a trace by their titles. Less is better. The first one is tested.
    against : key, optional
        Whom the others are tested against; the first by default. It should be chosen before looking.
    test : "t" or "wilcoxon"
        scipy's ``ttest_rel`` or ``wilcoxon``, two-sided. P-values are Holm's where there are several.

    Returns
    -------
    Comparison
        ``to_latex()``, ``to_markdown()``, ``to_csv()``; ``notes`` says what the numbers are and what the test assumes.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> X = np.random.default_rng(0).uniform(size=(300, 4, 1))
    >>> y = np.sin(6 * X[..., 0])
    >>> features = lc.RandomFeatures.gaussian(n_inputs=1, n_frequencies=10, bandwidth=0.3)
    >>> learners = {"ODKLA": lc.ODKLA(eta=1.0), "QC-ODKLA": lc.QCODKLA(eta=1.0, alpha=0.5)}
    >>> table = lc.compare(lc.sweep(learners, features, lc.Network.ring(4), X, y, seeds=5))
    >>> [row.name for row in table.rows], [len(values) for values in table.rows[0].values]
    (['ODKLA', 'QC-ODKLA'], [5, 5, 5])
    >>> print(table.to_markdown().splitlines()[0])
    | learner | MSE | messages an agent | kbit an agent | p |
    """
    if not isinstance(results, Mapping) or not results:
        raise ArgumentError("results", f"must be a dict of traces, got {_validate.shown(results)}.")
    columns = chosen(measures)
    _validate.choice("test", test, TESTS)
    keyed = {key: _runs(value) for key, value in results.items()}
    if against is None:
        against = next(iter(keyed))
    if against not in keyed:
        raise ArgumentError("against", f"must be one of {', '.join(map(repr, keyed))}, got {_validate.shown(against)}.")
    n = len(keyed[against])
    uneven = [key for key, runs in keyed.items() if len(runs) != n]
    if uneven:
        raise ArgumentError(
            "results", f"must hold as many runs of each: {against!r} has {n}, {uneven[0]!r} another number."
        )
    values = {
        key: tuple(np.array([_measured(c.of, run) for run in runs]) for c in columns) for key, runs in keyed.items()
    }
    others = [key for key in keyed if key != against]
    raw = [p_value(test, values[key][0], values[against][0]) for key in others]
    p = dict(zip(others, holm(raw), strict=True))
    rows = [
        Row(_name(key), values[key], p.get(key, float("nan")), sum(run.diverged for run in runs))
        for key, runs in keyed.items()
    ]
    return Comparison([c.title for c in columns], rows, _name(against), test)


def _runs(value: object) -> Sequence[Trace]:
    if isinstance(value, Trace):
        return (value,)
    if isinstance(value, Sequence) and value and all(isinstance(one, Trace) for one in value):
        return value
    raise ArgumentError("results", f"must hold traces, or sequences of them, got {_validate.shown(value)}.")


def _measured(of: Any, trace: Trace) -> float:
    """A run that was given up has no error that could be set beside another's."""
    return float("nan") if trace.diverged or not trace.n_rounds else float(of(trace))


def _name(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


@final
class Comparison:
    """A table of runs.

    Attributes
    ----------
    titles : list of str
        Of the measures.
    rows : list of Row
        ``name``, ``values`` (an array over the runs for each measure), ``p``, ``diverged``.
    against : str
        Whom the others were tested against.
    """

    def __init__(self, titles: list[str], rows: list[Row], against: str, test: str) -> None:
        self.titles, self.rows, self.against, self._test = titles, rows, against, test
        self.n_runs = len(rows[0].values[0])
        self.tested = any(row.p == row.p for row in rows)

    @property
    def notes(self) -> list[str]:
        """What the numbers are, which test was made, and what that takes for granted: for the caption."""
        said = []
        if self.n_runs > 1:
            said.append(f"Mean ± standard deviation over {self.n_runs} runs; the least mean is bold.")
        if self.tested:
            test, n_tests = TESTS[self._test], sum(row.p == row.p for row in self.rows)
            corrected = f", corrected for {n_tests} tests by Holm" if n_tests > 1 else ""
            said.append(f"p: {self.titles[0]} against {self.against} by the {test.name}{corrected}; it {test.assumes}.")
            said.append("Runs over the same samples speak of this data set, not of others.")
            least = least_p(self._test, self.n_runs)
            if least > 0.01:
                said.append(f"With {self.n_runs} pairs no p can be below {least:.3g}.")
        gone = [f"{row.name} in {row.diverged} of {self.n_runs}" for row in self.rows if row.diverged]
        if gone:
            said.append(f"Diverged: {', '.join(gone)}.")
        return said

    def cells(self) -> tuple[list[str], list[list[table.Cell]]]:
        """The head of the table, and its rows of cells."""
        head = [_TITLE, *self.titles, *([_P] if self.tested else [])]
        best = [self._best(column) for column in range(len(self.titles))]
        body = []
        for number, row in enumerate(self.rows):
            cells = [table.Cell(row.name)]
            for column, values in enumerate(row.values):
                cells.append(table.cell(values, bold=number == best[column]))
            if self.tested:
                cells.append(table.Cell("" if row.p != row.p else table.p_words(row.p)))
            body.append(cells)
        return head, body

    def _best(self, column: int) -> int | None:
        means = [row.values[column].mean() for row in self.rows]
        known = [mean for mean in means if np.isfinite(mean)]
        # Where all are the same none is better.
        return None if len(known) < 2 or min(known) == max(known) else means.index(min(known))

    def to_markdown(self) -> str:
        """A table in Markdown, with its notes."""
        return table.markdown(*self.cells(), self.notes)

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """A tabular for booktabs; with a ``caption`` (which is LaTeX, as it is) a whole floating table."""
        return table.latex(*self.cells(), self.notes, caption, label)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Numbers for a program: a row for each learner, measure and run, as CSV; also written to ``path`` if given."""
        text = table.csv(self.titles, [(row.name, row.values, row.p) for row in self.rows])
        if path is not None:
            with written_whole(_validate.path("path", path)) as file:
                file.write(text.encode())
        return text

    def __repr__(self) -> str:
        return table.plain(*self.cells(), self.notes)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return table.html(*self.cells(), self.notes)
