"""``laconic predict``: a model's predictions for the rows of a file."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic._files import expanded, written_whole
from laconic._worded import printable
from laconic.cli.options import Commands, add_header, add_json, add_quiet, describe, has_header
from laconic.cli.words import note, number, paragraph, plural

if TYPE_CHECKING:
    from laconic._validate import Array
    from laconic.model import Model

_ABOUT = """
Predict the rows of a file with a model that was taken away. Columns are found
by their names where the model knows them, words and dates as they were when it
was learned. A row with a missing value has no prediction, and is counted. If
the file has the column that is predicted, the error is told, too."""

_EXAMPLES = """
examples:
  laconic predict model.npz new.csv
  laconic predict model.npz new.csv -o predictions.csv
  laconic predict model.npz new.parquet --json"""


def add(commands: Commands) -> None:
    """Add the command ``predict``."""
    parser = commands.add_parser(
        "predict",
        help="predict the rows of a file",
        usage="laconic predict MODEL FILE [option ...]",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("model", metavar="MODEL", help="a model, as `laconic export` writes it (.npz)")
    parser.add_argument("data", metavar="FILE", help="CSV, Parquet or ARFF, with a row for each prediction")
    parser.add_argument("-o", "--out", metavar="FILE", help="write predictions there as CSV (default: to the screen)")
    add_header(parser)
    add_json(parser, "tell everything as JSON")
    add_quiet(parser)
    parser.set_defaults(command=predict)


def predict(arguments: argparse.Namespace) -> int:
    """Read the file, predict, and write."""
    from laconic.data import asked
    from laconic.model import Model

    model = Model.load(expanded(arguments.model))
    path = expanded(arguments.data)
    if not path.is_file():
        raise FileNotFoundError(2, "No such file", str(path))
    rows = asked.read_inputs(path, model.n_inputs, model.inputs, model.target, has_header(arguments))
    good = ~np.isnan(rows.X.sum(axis=1))
    if not good.all():
        row, column = (int(k) for k in np.argwhere(np.isnan(rows.X))[0])
        first = f"the first in column {rows.names[column]!r}, row {row + 1}"
        note(f"{plural(int((~good).sum()), 'row')} of {len(good)} with missing values ({first}): no predictions there.")
    columns = _columns(model, rows.X, good)
    told = {"rows": len(good), "missing": int((~good).sum()), **_error(model, columns, rows.y, good)}
    table = _table(columns)
    if arguments.out is not None:
        with written_whole(expanded(arguments.out)) as file:
            file.write(table.encode())
    if arguments.json:
        print(json.dumps({"model": repr(model), "inputs": rows.names, **told, **columns}))
    elif arguments.out is None:
        sys.stdout.write("".join(map(_line, table.splitlines())) if sys.stdout.isatty() else table)
    else:
        words = "".join(f", {name.replace('_', ' ')} {number(told[name])}" for name in list(told)[2:])
        print(paragraph(f"Wrote {arguments.out}: {plural(int(good.sum()), 'prediction')}{words}."))
    return 0


def _line(text: str) -> str:
    """A line of the table as a terminal may have it: a class of the model can be any text."""
    return f"{printable(text)}\n"


def _columns(model: Model, X: Array, good: Array) -> dict[str, list[Any]]:
    """Predictions by the name of their column, None where there is none; of classes also how likely they are."""
    rows = X[good]
    columns: dict[str, Array] = {}
    if model.classes is not None:
        columns["prediction"] = model.predict(rows)
        if model.loss == "logistic":
            columns["probability"] = model.predict_proba(rows).max(axis=-1)
    elif model.weights.ndim == 1:
        columns["prediction"] = model.predict(rows)
    else:
        several = model.predict(rows)
        columns = {f"prediction_{k}": several[:, k] for k in range(model.n_outputs)}
    places = np.cumsum(good) - 1
    return {
        name: [values[k].item() if there else None for k, there in zip(places, good, strict=True)]
        for name, values in columns.items()
    }


def _error(model: Model, columns: dict[str, list[Any]], y: Array | None, good: Array) -> dict[str, Any]:
    """The error, where labels and predictions are both there."""
    said = columns.get("prediction")
    if y is None or said is None:
        return {}
    if model.classes is not None:
        both = ((_word(one), _word(other)) for one, other in zip(said, y.tolist(), strict=True))
        pairs = [(one, other) for one, other in both if one is not None and other is not None]
        return {"error_rate": sum(one != other for one, other in pairs) / len(pairs)} if pairs else {}
    if y.dtype.kind not in "fiub":
        return {}
    there = good & np.isfinite(y.astype(float))
    if not there.any():
        return {}
    gaps = np.array(said, dtype=object)[there].astype(float) - y[there].astype(float)
    return {"mean_square_error": float((gaps**2).mean())}


def _word(label: object) -> str | None:
    """A label of a file as the model would say it: 1.0 is 1."""
    if label is None or (isinstance(label, float) and not np.isfinite(label)):
        return None
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _table(columns: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()
