"""``laconic compile``: machine code for everything, now, so that no later run has to wait for it."""

from __future__ import annotations

import argparse
import json
import os
import time

from laconic.cli.options import Commands, add_json, describe, one_of, whole
from laconic.engine.support import has_numba

_ABOUT = """
Compile all kernels, for double and single precision, and keep the machine code
on disk. Without it a first run compiles what it needs, about a minute; with
it no run does. Several processes share the work. What is there is not made
again; after an update of laconic, numba or Python, and on another kind of
processor, it is."""

_EXAMPLES = """
examples:
  laconic compile
  laconic compile --dtype float64 --jobs 4"""


def add(commands: Commands) -> None:
    """Add the command ``compile``."""
    parser = commands.add_parser(
        "compile", help="compile everything now", usage="laconic compile [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    parser.add_argument("--dtype", type=one_of("float64", "float32"), metavar="T", help="this precision only (both)")
    parser.add_argument("--jobs", type=whole, metavar="N", help="processes that work at the same time (cores)")
    parser.add_argument("--demo", action="store_true", help="only what `laconic demo` needs")
    add_json(parser, "tell what was not compiled as JSON")
    parser.add_argument("--quiet", action="store_true", help="say nothing unless something is amiss")
    parser.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile group after group, in as many processes as there are cores."""
    if not has_numba():
        raise ValueError("there is nothing to compile with: install numba, which comes with laconic's dependencies.")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {arguments.jobs}.")

    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from laconic.cli.screens import working
    from laconic.cli.specimens import DTYPES, SPECIMENS, compile_group
    from laconic.cli.words import note

    dtypes = DTYPES[:1] if arguments.demo else (arguments.dtype,) if arguments.dtype else DTYPES
    work = [(group, dtype, arguments.demo) for group in SPECIMENS for dtype in dtypes]
    started = time.monotonic()
    jobs = min(arguments.jobs or os.cpu_count() or 1, len(work))
    told: list[str] = []
    # Fresh processes: numba's compiler holds a lock that a fork in the middle of it would never see released.
    with (
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
        working("compiling", not arguments.quiet) as show,
    ):
        waiting = [pool.submit(compile_group, *piece) for piece in work]
        show(f"0 of {len(work)} done")
        for done, future in enumerate(as_completed(waiting), 1):
            told += future.result()
            show(f"{done} of {len(work)} done")
    seconds = time.monotonic() - started
    if arguments.json:
        print(json.dumps({"groups": len(work), "seconds": seconds, "not_compiled": told}))
        return 0
    for sentence in told:
        note(f"not compiled: {sentence}")
    if not arguments.quiet:
        print(f"compiled in {seconds:.0f} s")
    return 0
