"""A model as one C file: tables of numbers, and loops over them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

import numpy as np

from laconic._validate import Array
from laconic._version import __version__
from laconic._worded import ArgumentError

if TYPE_CHECKING:
    from laconic.model.model import Model

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")
_IN_A_LINE = 6


@final
class CFile:
    """A C file that is being written: its tables, and the lines of the function that predicts.

    Attributes
    ----------
    n_outputs : int
    """

    def __init__(self, name: str, n_outputs: int) -> None:
        self.name, self.n_outputs = name, n_outputs
        self.tables: list[str] = []
        self.lines: list[str] = []

    def table(self, what: str, values: Array) -> str:
        """Write a table of constants, row by row, each number with all the digits that it has; its name."""
        named = f"{self.name}_{what}_{len(self.tables)}"
        flat = np.asarray(values).ravel()
        whole = flat.dtype.kind in "iu"
        cells = [str(int(value)) if whole else repr(float(value)) for value in flat]
        rows = [", ".join(cells[k : k + _IN_A_LINE]) for k in range(0, len(cells), _IN_A_LINE)]
        body = ",\n    ".join(rows)
        kind = "long" if whole else "double"
        self.tables.append(f"static const {kind} {named}[{len(cells)}] = {{\n    {body}\n}};\n")
        return named

    def line(self, text: str) -> None:
        """Write a line of the function."""
        self.lines.append(f"    {text}")


def write(model: Model, name: str) -> str:
    """The C file of a model, whose functions begin with ``name``."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise ArgumentError("name", f"must be made of letters, digits and _, and begin with a letter, got {name!r}.")
    file = CFile(name, model.n_outputs)
    weights = file.table("weights", model.weights)
    vector = "x"
    map = model.feature_map
    for k, size in enumerate(map.sizes[1:]):
        file.line(f"double v{k}[{max(1, size)}];")
    file.line("long i, j, k;")
    file.line("(void)i, (void)j;")
    file.line(f"for (k = 0; k < {model.n_outputs}; k++)")
    file.line("    y[k] = 0;")
    for k, stage in enumerate(map.stages):
        stage.write_c(file, vector, map.sizes[k], f"v{k}")
        vector = f"v{k}"
    first = 0
    for block, width in zip(map.blocks, map.widths, strict=True):
        block.write_c(file, vector, map.sizes[-1], f"({weights} + {first * model.n_outputs}L)")
        first += width
    parts = [_preface(model, name), *file.tables, _decision(file), _faces(model, name), _program(model, name)]
    return "\n".join(parts)


def _preface(model: Model, name: str) -> str:
    upper = name.upper()
    inputs = [] if model.inputs is None else [f" *     x[{k}]  {_plain(word)}" for k, word in enumerate(model.inputs)]
    learned = [f" *     {_plain(key)}: {_plain(value)}" for key, value in model.about.items()]
    words = [
        f"/* {_plain(repr(model))}, written by laconic {_plain(__version__)}.",
        " *",
        f" * void {name}_predict(const double *x, double *y): {model.n_inputs} inputs, {model.n_outputs} output(s).",
        *inputs,
        *([] if model.target is None else [f" *     y     {_plain(model.target)}"]),
        *([" * Learned from:", *learned] if learned else []),
        " *",
        " * C99 and its mathematical library; no memory is allocated, nothing is kept between calls. As a program:",
        f" *     cc -O2 -D{upper}_MAIN model.c -lm -o model && echo '...' | ./model",
        " */",
        "#include <math.h>",
        "",
        f"#define {upper}_INPUTS {model.n_inputs}",
        f"#define {upper}_OUTPUTS {model.n_outputs}",
    ]
    if model.classes is not None:
        words.append(f"#define {upper}_CLASSES {len(model.classes)}")
    return "\n".join(words) + "\n"


def _decision(file: CFile) -> str:
    head = f"/* y = theta.phi(x) */\nvoid {file.name}_decision(const double *x, double *y)\n{{\n"
    return head + "\n".join(file.lines) + "\n}\n"


def _faces(model: Model, name: str) -> str:
    """What the outputs mean: numbers in their own unit, or classes."""
    K = model.n_outputs
    predict = f"void {name}_predict(const double *x, double *y)\n{{\n"
    if model.classes is None:
        unit = f"y[k] = {model.centre!r} + {model.scale!r} * y[k];"
        loop = f"    long k;\n    {name}_decision(x, y);\n    for (k = 0; k < {K}; k++)\n        {unit}\n}}\n"
        return predict + loop
    labels = ", ".join(_literal(str(label)) for label in model.classes)
    words = [f"const char *const {name}_classes[{len(model.classes)}] = {{{labels}}};\n"]
    if model.weights.ndim == 1:
        choose = f"    double y[1];\n    {name}_decision(x, y);\n    return y[0] > 0;\n"
    else:
        choose = (
            f"    double y[{K}];\n    int k, best = 0;\n    {name}_decision(x, y);\n"
            f"    for (k = 1; k < {K}; k++)\n        if (y[k] > y[best])\n            best = k;\n    return best;\n"
        )
    words.append(f"/* the index of the class in {name}_classes */\nint {name}_class(const double *x)\n{{\n{choose}}}\n")
    if model.loss == "logistic":
        words.append(_proba(model, name))
    words.append(f"{predict}    {name}_decision(x, y);\n}}\n")
    return "\n".join(words)


def _proba(model: Model, name: str) -> str:
    K = model.n_outputs
    head = f"/* the probability of each class */\nvoid {name}_proba(const double *x, double *p)\n{{\n"
    if model.weights.ndim == 1:
        return (
            f"{head}    double y[1];\n    {name}_decision(x, y);\n"
            "    p[0] = 1 / (1 + exp(y[0]));\n    p[1] = 1 / (1 + exp(-y[0]));\n}\n"
        )
    return (
        f"{head}    double total = 0;\n    long k;\n    {name}_decision(x, p);\n    for (k = 0; k < {K}; k++)\n"
        f"        total += p[k] = 1 / (1 + exp(-p[k]));\n    for (k = 0; k < {K}; k++)\n"
        f"        p[k] = total > 0 ? p[k] / total : {1 / K!r};\n}}\n"
    )


def _program(model: Model, name: str) -> str:
    """Inputs from standard input, predictions to standard output, with all digits."""
    upper = name.upper()
    if model.classes is None:
        K = model.n_outputs
        tell = (
            f"        {name}_predict(x, y);\n        for (k = 0; k < {K}; k++)\n"
            f"            printf(\"%.17g%c\", y[k], k < {K - 1} ? ' ' : '\\n');\n"
        )
    else:
        tell = f"        {name}_predict(x, y);\n        puts({name}_classes[{name}_class(x)]);\n"
    return f"""#ifdef {upper}_MAIN
#include <stdio.h>

int main(void)
{{
    static double x[{upper}_INPUTS], y[{upper}_OUTPUTS];
    long k;
    for (;;) {{
        for (k = 0; k < {upper}_INPUTS; k++)
            if (scanf(" %lf%*[, \\t]", &x[k]) != 1)
                return k != 0 || !feof(stdin);
{tell}    }}
}}
#endif
"""


def _plain(value: object) -> str:
    """Words that cannot end a comment, whatever somebody has written into a file."""
    return re.sub(r"[^A-Za-z0-9 _.,:;=()<>+-]", "_", " ".join(str(value).split()))[:200]


def _literal(text: str) -> str:
    """A C string; all but the plainest letters as octal numbers."""
    letters = (chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(letters)}"'
