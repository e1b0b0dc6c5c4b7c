"""A function in the space of a Gaussian kernel, drawn when it is asked for."""

from __future__ import annotations

from laconic import _validate
from laconic.data.dataset import Table
from laconic.data.registry import Entry
from laconic.data.synthesis import synthetic

_ROWS, _INPUTS = 10_000, 5


def _draw(n_rows: int | None) -> Table:
    _validate.allocatable("n_rows", n_rows or 1)
    stream = synthetic(n_rows or _ROWS, 1, _INPUTS)
    return Table(stream.X[:, 0], stream.y[:, 0], tuple(f"x{k}" for k in range(_INPUTS)), "y")


ENTRY = Entry(
    name="synthetic",
    title="A known function",
    description=(
        "Drawn, not measured: y = sum_m b_m kappa(c_m, x) + noise with a Gaussian kernel of bandwidth 0.5, 20 "
        "centres and uniform inputs. See laconic.data.synthetic for the truth behind it, for drift and for unlike "
        "agents."
    ),
    citation=(
        "P. Xu, Y. Wang, X. Chen, Z. Tian. COKE: Communication-censored decentralized kernel learning. Journal of "
        "Machine Learning Research 22(196):1-35, 2021 (a function of this form)."
    ),
    n_inputs=_INPUTS,
    place=99,
    draw=_draw,
)
