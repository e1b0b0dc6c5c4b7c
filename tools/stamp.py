"""Write the hash of the compiled files into ``engine/kernels.py``, so that no stale machine code survives on disk.

numba keys what it keeps on disk by the file that holds the function, here ``kernels.py``; the files it draws on change
it through this stamp. ``make format`` runs it; a test complains when it was forgotten.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "src" / "laconic" / "engine"


def main() -> None:
    text = b"".join((ENGINE / name).read_bytes() for name in ("vectors.py", "sincos.py", "rows.py"))
    stamp = hashlib.sha256(text).hexdigest()[:16]
    kernels = ENGINE / "kernels.py"
    kernels.write_text(re.sub(r'^STAMP = ".*"$', f'STAMP = "{stamp}"', kernels.read_text(), flags=re.MULTILINE))
    print(f"STAMP = {stamp}")


if __name__ == "__main__":
    main()
