"""Build the core, one C library a processor variant, into src/laconic/native.

hatchling calls ``CoreBuild`` for wheels and editable installs. Run as a script, this builds in place.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, where hatchling need not be installed
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
CORE = ROOT / "core"
TARGET = ROOT / "src" / "laconic" / "native"

#: Translation units. Each includes the files that it is made of.
UNITS = ("double.c", "single.c", "waves.c")
#: Neither fast-math nor contraction: every compiler makes the same bits. The last two promise only that nobody asks
#: for errno or for floating-point exceptions, without which loops with square roots are not vectorised.
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
         "-fvisibility=hidden",
         "-fPIC", "-Wno-psabi")  # fmt: skip
#: Names of variants, and what the compiler is told; the loader takes the last one that the processor can run.
VARIANTS = {
    "x86_64": {
        "v2": ("-march=x86-64-v2",),
        "v3": ("-march=x86-64-v3",),
        "v4": ("-march=x86-64-v4", "-mprefer-vector-width=256"),
    },
}
MISSING = "laconic was installed without a C compiler: its compiled engine is missing. Set CC, or install ziglang."


def compiler() -> list[str] | None:
    """The command of the C compiler: ``$CC``, else ``cc``, else zig's; None where there is none."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    if shutil.which("cc"):
        return ["cc"]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def suffix() -> str:
    """The ending of a shared library."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def build(target: Path = TARGET) -> list[Path]:
    """Compile every variant for this machine into ``target``; returns the libraries, none without a compiler."""
    command = compiler()
    if command is None:
        return []
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    target.mkdir(parents=True, exist_ok=True)

    def compile_one(variant: tuple[str, tuple[str, ...]]) -> Path:
        name, flags = variant
        library = target / f"core-{name}{suffix()}"
        unfinished = library.with_suffix(f".{os.getpid()}.tmp")
        sources = [str(CORE / unit) for unit in UNITS]
        subprocess.run([*command, *FLAGS, *flags, "-shared", "-o", str(unfinished), *sources, "-lm"], check=True)
        unfinished.replace(library)
        return library

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(compile_one, VARIANTS.get(machine, {"generic": ()}).items()))


class CoreBuild(BuildHookInterface):  # type: ignore[misc]
    """hatchling's hook: the libraries go into the wheel, which is then one of this platform and of any Python."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What building needs beyond hatchling: zig's compiler, where there is no other."""
        return [] if os.environ.get("CC") or shutil.which("cc") else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what was made."""
        if self.target_name != "wheel":
            return
        libraries = build()
        if not libraries:
            self.app.display_warning(MISSING)
            return
        build_data["artifacts"] += [f"/{library.relative_to(ROOT)}" for library in libraries]
        build_data["pure_python"] = False
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"


if __name__ == "__main__":
    for built in build() or sys.exit(MISSING):
        if "--quiet" not in sys.argv:
            print(built.relative_to(ROOT))
