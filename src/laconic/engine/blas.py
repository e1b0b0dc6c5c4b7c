"""One thread of BLAS: a product of matrices shared out among threads has other last bits than one that is not.

From about a hundred features on OpenBLAS shares out even a matrix times a vector. What waves multiply is too small to
gain by that, and a simulation has to have the bits of the agents that it stands for, whatever machines they run on.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS has one thread; without threadpoolctl, as on a thin agent, it has what it had."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """What knows the libraries that are loaded; NumPy's is."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
