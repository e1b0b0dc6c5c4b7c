"""Tables in the languages of papers and notebooks. All that is not ours is escaped."""

from __future__ import annotations

import csv as csv_module
import html as html_module
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

from laconic._validate import Array

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"$<$", ">": r"$>$", "²": r"$^2$",
    "−": r"$-$", "·": r"$\cdot$",
}  # fmt: skip


class Cell(NamedTuple):
    """The words of a cell, and whether they stand out."""

    text: str
    bold: bool = False


def cell(values: Array, bold: bool = False) -> Cell:
    """Mean and spread of some runs; of one, its value."""
    if len(values) == 1:
        return Cell("diverged" if math.isnan(values[0]) else number(float(values[0])), bold)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if math.isnan(mean):
        return Cell("diverged")
    return Cell(f"{number(mean, spread)} ± {number(spread, spread)}", bold)


def number(value: float, spread: float = 0.0) -> str:
    """A number with as many decimals as its spread has with two digits; of a single one, four digits."""
    if not math.isfinite(value):
        return str(value)
    if spread <= 0:
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    decimals = 1 - math.floor(math.log10(spread))
    if decimals > 8:
        return f"{value:.3e}"
    return f"{round(value, decimals):.{max(0, min(decimals, 8))}f}"


def p_words(p: float) -> str:
    """A p-value, as precise as is sensible."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def markdown(head: list[str], body: list[list[Cell]], notes: Sequence[str]) -> str:
    """A table in Markdown."""

    def clean(text: str) -> str:
        return " ".join(html_module.escape(text, quote=False).split()).replace("|", "\\|")

    lines = [f"| {' | '.join(map(clean, head))} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for row in body:
        words = [f"**{clean(c.text)}**" if c.bold else clean(c.text) for c in row]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join([*lines, *(f"\n{clean(note)}" for note in notes)]) + "\n"


def latex(
    head: list[str], body: list[list[Cell]], notes: Sequence[str], caption: str | None = None, label: str | None = None
) -> str:
    """A tabular in LaTeX, in the manner of booktabs; the notes are comments above it."""

    def clean(text: str) -> str:
        return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))

    lines = [f"% {' '.join(note.split())}" for note in notes]
    floating = caption is not None or label is not None
    if floating:
        lines += [r"\begin{table}", r"\centering", *([rf"\caption{{{caption}}}"] if caption is not None else [])]
        lines += [rf"\label{{{label}}}"] if label is not None else []
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule", " & ".join(map(clean, head)) + r" \\"]
    lines.append(r"\midrule")
    for row in body:
        words = [rf"\textbf{{{clean(c.text)}}}" if c.bold else clean(c.text) for c in row]
        lines.append(" & ".join(words) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", *([r"\end{table}"] if floating else [])]
    return "\n".join(lines) + "\n"


def csv(titles: list[str], rows: Sequence[tuple[str, tuple[Array, ...], float]]) -> str:
    """A row for each learner, measure and run, numbers in full; p beside the measure that was tested."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    writer.writerow(["learner", "measure", "run", "value", "p"])
    for name, values, p in rows:
        for column, (title, runs) in enumerate(zip(titles, values, strict=True)):
            for run, value in enumerate(runs):
                shown = repr(float(p)) if column == 0 and p == p else ""
                writer.writerow([name, title, run, repr(float(value)), shown])
    return out.getvalue()


def plain(head: list[str], body: list[list[Cell]], notes: Sequence[str]) -> str:
    """A table for a terminal; a star is bold."""
    words = [head, *([f"{c.text}*" if c.bold else c.text for c in row] for row in body)]
    widths = [max(len(row[k]) for row in words) for k in range(len(head))]
    lines = ["  ".join(w.ljust(n) if k == 0 else w.rjust(n) for k, (w, n) in enumerate(zip(row, widths, strict=True)))
             for row in words]  # fmt: skip
    return "\n".join([line.rstrip() for line in lines] + list(notes))


def html(head: list[str], body: list[list[Cell]], notes: Sequence[str]) -> str:
    """A table for a notebook, in its colours."""
    side = "text-align:right;padding:.25em .8em;border:0"
    first = "text-align:left;padding:.25em .8em;border:0"

    def row(cells: Sequence[Cell], tag: str, line: str) -> str:
        made = []
        for k, c in enumerate(cells):
            weight = "bold" if c.bold or tag == "th" else "normal"
            made.append(f'<{tag} style="{first if k == 0 else side};font-weight:{weight}">{escape(c.text)}</{tag}>')
        return f'<tr style="background:none;{line}">{"".join(made)}</tr>'

    top = row([Cell(text) for text in head], "th", "border-top:2px solid;border-bottom:1px solid")
    rows = "".join(row(cells, "td", "border-bottom:2px solid" if cells is body[-1] else "") for cells in body)
    said = "".join(f'<div style="opacity:.75;font-size:85%;max-width:50em">{escape(note)}</div>' for note in notes)
    shape = "color:inherit;border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.3em 0"
    return f'<div><table style="{shape}"><thead>{top}</thead><tbody>{rows}</tbody></table>{said}</div>'


def escape(text: str) -> str:
    """Words as HTML."""
    return html_module.escape(text, quote=True)
