"""Machine code on disk, under a name that changes whenever the code that it was made of does.

numba keeps what it has compiled beside the file of the function, and makes it anew when that file changes; it does not
notice when a function that was compiled into it, from *another* file, does. Here the name of what is kept contains a
digest of all files of compiled code, so nothing stale is ever loaded, and nobody has to remember anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

#: The files that are compiled.
SOURCES = (
    "budgeting",
    "coding",
    "endings",
    "entropy_coding",
    "least_squares",
    "lifting",
    "personal_rounds",
    "robust",
    "rounds",
    "rows",
    "sincos",
    "single",
    "steps",
    "vectors",
    "voting",
    "wave_describing",
    "wave_kernels",
    "wave_rounds",
    "../channel/entropy",  # whose tables are part of the machine code
)


def digest() -> str:
    """A digest of all compiled code."""
    folder = Path(__file__).parent
    text = b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


_DIGEST = digest()


class _Kept(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in a file whose name says what it was compiled from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}-{_DIGEST}"
        self._cache_file = IndexDataCacheFile(cache_path=self._cache_path, filename_base=name, source_stamp=_DIGEST)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, without any fast-math flag, and keep it on disk."""
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    dispatcher._cache = _Kept(function)
    return dispatcher
