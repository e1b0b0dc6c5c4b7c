"""Build sdist and wheels into dist/, install a wheel into a fresh environment, and run the fast tests on that.

Of the wheels one is for every machine, and compiles at first use; the other brings machine code for x86-64-v3 with it,
made in an environment in which the first is installed. Its bits are compared with those of code for this very
processor. The tests are those of the sdist, from a folder with nothing in ``src``: what is tested is what people
install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from machine_wheel import add_machine_code

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TARGET = "x86-64-v3"
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

FIRST_USE = """
import sys, time
started = time.perf_counter()
import numpy as np, laconic as lc
assert lc.__file__.startswith(sys.prefix)
from laconic.engine.compiling import when_compiling
X = np.random.default_rng(0).uniform(size=(2000, 10, 2))
with when_compiling(lambda: sys.exit("the wheel's machine code was not used")):
    lc.simulate(lc.QCODKLA(), lc.RandomFeatures.gaussian(2, 50), lc.Network.ring(10), X, X[..., 0])
print(f"first use in a fresh environment: {time.perf_counter() - started:.1f} s")
"""


def run(*command: object, **options: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, env=CLEAN, text=True, **options).stdout  # type: ignore[call-overload]


def environment(uv: str, folder: Path, what: str) -> Path:
    """The Python of a fresh environment in which ``what`` is installed."""
    python = folder / "bin" / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    run(uv, "pip", "install", "--quiet", "--python", python, what)
    return python


def main() -> int:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    shutil.rmtree(DIST, ignore_errors=True)
    run(uv, "build", "--quiet", "--out-dir", DIST, ROOT)  # the wheel is made from the sdist
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(uv, folder / "plain", f"{wheel}[mpi]")
        code = folder / "code"
        run(python, "-m", "laconic", "compile", "--target", TARGET, "--out", code, cwd=folder)
        fast = add_machine_code(wheel, code, python)

        python = environment(uv, folder / "environment", f"{fast}[test]")
        print(run(python, "-c", FIRST_USE, cwd=folder, stdout=subprocess.PIPE), end="")
        bits = [run(one, ROOT / "tools" / "bits.py", stdout=subprocess.PIPE) for one in (sys.executable, python)]
        if bits[0] != bits[1]:
            sys.exit("machine code for this processor and that of the wheel do not have the same bits")
        print(f"{len(bits[0].splitlines())} runs have the bits of machine code for this very processor")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        tests = folder / sdist.name.removesuffix(".tar.gz")
        shutil.rmtree(tests / "src")
        (tests / "src").mkdir()  # for who only asks whether it is there
        run(python, "-m", "pytest", "--numprocesses", 2, "-m", "not slow", "tests", "docs", cwd=tests)
    print(f"{sdist.name}, {wheel.name} and {fast.name} are in {DIST.name}/")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
