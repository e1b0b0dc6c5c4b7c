"""``laconic compile``: machine code for everything, now, so that no later run has to wait for it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from laconic.cli.options import Commands, add_json, describe, one_of, whole
from laconic.engine.support import TARGETS, has_numba

_ABOUT = """
Compile all kernels, for double and single precision, and keep the machine code
on disk. Without it a first run compiles what it needs, up to half a minute;
with it no run does. Several processes share the work. What is there is not made
again; after an update of laconic, numba or Python, and on another kind of
processor, it is.

With --target the code runs on every processor of a kind, to the same bits, and
is found wherever the installation is copied to: in an image of a container,
say, that is made here and run elsewhere."""

_EXAMPLES = """
examples:
  laconic compile
  laconic compile --dtype float64 --jobs 4
  laconic compile --target x86-64-v3"""


def add(commands: Commands) -> None:
    """Add the command ``compile``."""
    parser = commands.add_parser(
        "compile", help="compile everything now", usage="laconic compile [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    parser.add_argument("--dtype", type=one_of("float64", "float32"), metavar="T", help="this precision only (both)")
    parser.add_argument("--jobs", type=whole, metavar="N", help="processes that work at the same time (cores)")
    parser.add_argument("--demo", action="store_true", help="only what `laconic demo` needs")
    parser.add_argument("--target", type=one_of(*TARGETS), metavar="KIND", help="all processors of a kind (this one)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to put what is for a kind (in the package)")
    add_json(parser, "tell what was not compiled as JSON")
    parser.add_argument("--quiet", action="store_true", help="say nothing unless something is amiss")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile group after group, in as many processes as there are cores."""
    if not has_numba():
        raise ValueError("there is nothing to compile with: install numba, which comes with laconic's dependencies.")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {arguments.jobs}.")
    if arguments.out is not None and arguments.target is None:
        raise ValueError("--out must come with --target: what is for this processor alone lies where it is looked for.")

    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import active_children, get_context

    from laconic.cli.screens import working
    from laconic.cli.specimens import DTYPES, SPECIMENS, compile_group
    from laconic.cli.words import note

    dtypes = DTYPES[:1] if arguments.demo else (arguments.dtype,) if arguments.dtype else DTYPES
    work = [(group, dtype, arguments.demo) for group in SPECIMENS for dtype in dtypes]
    started = time.monotonic()
    jobs = min(arguments.jobs or os.cpu_count() or 1, len(work))
    told: list[str] = []
    prepare = None if arguments.target is None else _preparation(arguments.target, arguments.out)
    # Fresh processes: numba's compiler holds a lock that a fork in the middle of it would never see released.
    with (
        ProcessPoolExecutor(jobs, get_context("spawn"), prepare) as pool,
        working("compiling", not arguments.quiet) as show,
    ):
        with _unheard():
            waiting = [pool.submit(compile_group, *piece) for piece in work]
        try:
            show(f"0 of {len(work)} done")
            for done, future in enumerate(as_completed(waiting), 1):
                told += future.result()
                show(f"{done} of {len(work)} done")
        except KeyboardInterrupt:
            for process in active_children():
                process.terminate()
            raise
    seconds = time.monotonic() - started
    if arguments.json:
        print(json.dumps({"groups": len(work), "seconds": seconds, "not_compiled": told}))
        return 0
    for sentence in told:
        note(f"not compiled: {sentence}")
    if not arguments.quiet:
        print(f"compiled in {seconds:.0f} s")
    return 0


@contextmanager
def _unheard() -> Iterator[None]:
    """Processes that begin meanwhile do not hear Ctrl-C, of which each would tell in thirty lines; we do, for them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _preparation(target: str, folder: Path | None) -> Callable[[], None]:
    """What a process does before it compiles for a kind of processors."""
    from laconic.engine.cache import SHIPPED, check_target, compile_for

    check_target(target)
    folder = SHIPPED if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    return partial(compile_for, target, folder)
