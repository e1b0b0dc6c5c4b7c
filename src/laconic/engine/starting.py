"""Starting quickly: what numba imports and laconic's kernels never use is not imported."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any


def spare_scipy() -> None:
    """Let numba believe in SciPy's BLAS without importing it, which would be a sixth of what starting takes.

    numba imports ``scipy.linalg`` when it first compiles or loads anything, only to learn whether products of matrices
    can be compiled; whoever compiles one has it imported then. laconic's kernels have none. Where numba is not as this
    knows it, or has asked already, nothing is done.

    Examples
    --------
    >>> spare_scipy()
    """
    if "numba.np.arraymath" in sys.modules or "scipy.linalg" in sys.modules or find_spec("scipy") is None:
        return
    try:
        linear: Any = importlib.import_module("numba.np.linalg")
        asked = linear.ensure_blas
    except (ImportError, AttributeError):
        return
    linear.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linear.ensure_blas = asked
