"""Two faces for people who never heard of ADMM: scikit-learn estimators, and river models (``lc.river``).

Each is imported when it is first asked for: scikit-learn is slow to import, and river may not be installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laconic.estimators import river
    from laconic.estimators.scikit import DecentralizedKernelClassifier, DecentralizedKernelRegressor

__all__ = ["DecentralizedKernelClassifier", "DecentralizedKernelRegressor", "river"]


def __getattr__(name: str) -> Any:
    if name == "river":
        return importlib.import_module("laconic.estimators.river")
    if name in __all__:
        return getattr(importlib.import_module("laconic.estimators.scikit"), name)
    raise AttributeError(f"module 'laconic.estimators' has no attribute {name!r}")
