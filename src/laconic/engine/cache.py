"""Machine code on disk, under a name that changes whenever the code that it was made of does.

numba keeps what it has compiled beside the file of the function, and makes it anew when that file changes; it does not
notice when a function that was compiled into it, from *another* file, does. Here the name of what is kept contains a
digest of all files of compiled code, so nothing stale is ever loaded, and nobody has to remember anything.

numba lists what a function was compiled for in one file that every process reads, adds to and writes; of two that do
so at once, one may find the other's machine code under its own name. Here every signature has a file of its own,
written whole: processes that compile at the same time (of an MPI job, of ``laconic compile``) cannot meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

#: The files that are compiled.
SOURCES = (
    "abreast",
    "budgeting",
    "coding",
    "endings",
    "entropy_coding",
    "inner",
    "least_squares",
    "lifting",
    "linearized",
    "moving",
    "parcels",
    "personal_rounds",
    "robust",
    "rounds",
    "rounds_abreast",
    "rows",
    "sincos",
    "single",
    "steps",
    "summing",
    "vectors",
    "voting",
    "wave_describing",
    "wave_kernels",
    "wave_pairs",
    "wave_rounds",
    "wave_spectrum",
    "wave_sums",
    "../channel/entropy",  # whose tables are part of the machine code
    "../waves/codes",  # and whose constants
)


def digest() -> str:
    """A digest of all compiled code."""
    folder = Path(__file__).parent
    text = b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


_DIGEST = digest()


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """What one function was compiled to: a file for each signature and machine, and no list of them."""

    def _named(self, key: object) -> tuple[str, str]:
        """The name of the file of ``key``, and the whole key, which the file repeats."""
        whole = f"{numba.__version__} {key!r}"
        digest = hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()
        return self._data_name_pattern.format(number=int(digest, 16)), whole

    def save(self, key: object, data: object) -> None:
        """Keep what was compiled for ``key``."""
        name, whole = self._named(key)
        self._save_data(name, (whole, data))

    def load(self, key: object) -> Any:
        """What was kept for ``key``, or None."""
        name, whole = self._named(key)
        try:
            kept, data = self._load_data(name)
        except FileNotFoundError:
            return None
        return data if kept == whole else None


class _Kept(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in files whose names say what it was compiled from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}-{_DIGEST}"
        self._cache_file = _Files(cache_path=self._cache_path, filename_base=name, source_stamp=_DIGEST)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """What was kept for a signature, or None.

        numba makes ready to compile first: it imports all that it can compile, SciPy's linear algebra too, which takes
        longer than loading. What is loaded needs of that only the counting of references, and who compiles makes ready
        anyway.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)


def entry(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that Python calls, without any fast-math flag, and keep it on disk."""
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = _Kept(function)
    return dispatcher


def lean_entry(function: Callable[..., Any]) -> Any:
    """``entry`` for a function that allocates nothing, and in which no references are counted."""
    return entry(function, _nrt=False)
