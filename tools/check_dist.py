"""Build sdist and wheel into dist/, install the wheel into a fresh environment, and run the fast tests on that.

The tests are those of the sdist, from a folder without ``src``: what is tested is what people install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def run(*command: object, **options: object) -> None:
    subprocess.run([str(word) for word in command], check=True, **options)  # type: ignore[call-overload]


def main() -> int:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    shutil.rmtree(DIST, ignore_errors=True)
    run(uv, "build", "--quiet", "--out-dir", DIST, ROOT)  # the wheel is made from the sdist
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "environment" / "bin" / "python"
        run(uv, "venv", "--quiet", "--python", sys.executable, python.parents[1])
        run(uv, "pip", "install", "--quiet", "--python", python, f"{wheel}[test]")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        tests = Path(folder) / sdist.name.removesuffix(".tar.gz")
        shutil.rmtree(tests / "src")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        where = "import laconic, sys; sys.exit(not laconic.__file__.startswith(sys.prefix))"
        run(python, "-c", where, cwd=tests, env=clean)
        words = ["--numprocesses", 2, "-m", "not slow", "tests", "docs"]
        run(python, "-m", "pytest", *words, cwd=tests, env=clean)
    print(f"{sdist.name} and {wheel.name} are in {DIST.name}/")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
