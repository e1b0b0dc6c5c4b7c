"""Machine code on disk, under a name that changes whenever the code that it was made of does.

numba keeps what it has compiled beside the file of the function, and makes it anew when that file changes; it does not
notice when a function that was compiled into it, from *another* file, does. Here the name of what is kept contains a
digest of all files of compiled code, so nothing stale is ever loaded, and nobody has to remember anything.

numba lists what a function was compiled for in one file that every process reads, adds to and writes; of two that do
so at once, one may find the other's machine code under its own name. Here every signature has a file of its own,
written whole: processes that compile at the same time (of an MPI job, of ``laconic compile``) cannot meet.

Machine code can also come with the package, made elsewhere for all processors of a kind. It is taken where nothing was
compiled for this very processor, if that has all that the kind has, and Python, numba and llvmlite are those that made
it; the bits are the same.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, InTreeCacheLocator
from numba.core.codegen import get_host_cpu_features
from numba.core.runtime.nrt import rtsys

from laconic._worded import ArgumentError
from laconic.engine.support import TARGETS

#: The files that are compiled.
SOURCES = (
    "endings",
    "inner",
    "personal_rounds",
    "rows",
    "steps",
    "vectors",
    "voting",
    "wave_coding",
    "wave_describing",
    "wave_inverting",
    "wave_kernels",
    "wave_lowering",
    "wave_pairs",
    "wave_rounds",
    "wave_spectrum",
    "wave_stepping",
    "wave_sums",
    "wave_turning",
    "wide",
)

#: Machine code that came with the package.
SHIPPED = Path(__file__).parent / "machine_code"

_only: Path | None = None


def compile_for(target: str, folder: Path) -> None:
    """Compile for a kind of processors from now on, and keep it in ``folder``; before kernels are imported.

    Nothing is looked for anywhere else, so that afterwards everything that was called lies there.
    """
    global _only
    numba.config.CPU_NAME, numba.config.CPU_FEATURES, _only = target, TARGETS[target], folder


def check_target(target: str) -> None:
    """Refuse a kind of processors that code cannot be made for here: it is run while it is made."""
    if not suits(target, get_host_cpu_features()):
        raise ArgumentError("target", f"must be a kind that this processor is of, and it is not {target}.")
    if numba.config.USING_SVML:
        raise ArgumentError("target", "must be left out where numba uses Intel's SVML, which others may not have.")


def suits(target: str, features: str) -> bool:
    """Whether a processor with these features, in the words of LLVM, is of the kind ``target``.

    >>> suits("x86-64-v3", "+avx,+sse3,-avx512f")
    False
    """
    return set(TARGETS[target].split(",")) <= set(features.split(","))


def digest() -> str:
    """A digest of all compiled code."""
    folder = Path(__file__).parent
    text = b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


_DIGEST = digest()


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """What one function was compiled to: a file for each signature and machine, and no list of them."""

    def _named(self, key: object) -> tuple[Path, bytes]:
        """The file of ``key``, and the whole key, of which its name is a digest."""
        whole = f"{numba.__version__} {llvmlite.__version__} {key!r}".encode()
        digest = hashlib.blake2b(whole, digest_size=6).hexdigest()
        return Path(self._data_path(self._data_name(int(digest, 16)))), whole

    def save(self, key: object, data: object) -> None:
        """Keep what was compiled for ``key``."""
        path, whole = self._named(key)
        dumped = self._dump(data)
        with self._open_for_write(path) as file:
            file.write(_seal(whole, dumped) + dumped)

    def load(self, key: object) -> Any:
        """What was kept for ``key``; None if nothing was, or something else, or if not a bit of it is to be trusted."""
        path, whole = self._named(key)
        try:
            kept = path.read_bytes()
        except OSError:
            return None
        seal, data = kept[:_SEAL], kept[_SEAL:]
        return pickle.loads(data) if seal == _seal(whole, data) else None


_SEAL = 16  # bytes


def _seal(whole: bytes, data: bytes) -> bytes:
    """What a file begins with: it is damaged, or another's, if this does not fit."""
    return hashlib.blake2b(b"%d " % len(whole) + whole + data, digest_size=_SEAL).digest()


class _Nowhere(InTreeCacheLocator):  # type: ignore[misc]
    """Where nothing can be written: nothing is kept, but what came with the package is found."""

    def ensure_cache_path(self) -> None:
        """Be content."""

    def get_cache_path(self) -> str:
        """Nowhere: who tries to read or write there gets an OSError."""
        return os.devnull


class _Made(CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of a function that was compiled."""

    _locator_classes = [*CompileResultCacheImpl._locator_classes, _Nowhere]

    def reduce(self, result: Any) -> Any:
        """Leave out the listing of types, which is long, names folders of this machine, and helps only its author."""
        return super().reduce(result._replace(type_annotation=""))


class _Kept(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in files whose names say what it was compiled from."""

    _impl_class = _Made

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}-{_DIGEST}"
        own, shipped = (self._cache_path, SHIPPED) if _only is None else (_only, None)
        self._cache_file = _Files(str(own), name, _DIGEST)
        self._shipped = None if shipped is None else _Files(str(shipped), name, _DIGEST)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """What was kept for a signature, or came with the package, or None.

        numba makes ready to compile first: it imports all that it can compile, SciPy's linear algebra too, which takes
        longer than loading. What is loaded needs of that only the counting of references, and who compiles makes ready
        anyway.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            kept = self._load_overload(signature, target_context)
            return self._load_shipped(signature, target_context) if kept is None else kept

    def _load_shipped(self, signature: Any, target_context: Any) -> Any:
        if self._shipped is None:
            return None
        signature, (triple, _, features), code = self._index_key(signature, target_context.codegen())
        for target, needed in TARGETS.items():
            if suits(target, features):
                made = self._shipped.load((signature, (triple, target, needed), code))
                if made is not None:
                    return self._impl.rebuild(target_context, made)
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if there is a place for it."""
        with suppress(OSError):
            super().save_overload(signature, data)


def entry(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that Python calls, without any fast-math flag, and keep it on disk."""
    dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = _Kept(function)
    return dispatcher


def lean_entry(function: Callable[..., Any]) -> Any:
    """``entry`` for a function that allocates nothing, and in which no references are counted."""
    return entry(function, _nrt=False)
