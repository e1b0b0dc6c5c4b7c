"""A wheel with machine code in it, made of one that has none."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

INSIDE = "laconic/engine/machine_code"
TAGS = "import importlib.metadata as m; print(m.distribution('numba').read_text('WHEEL'))"


def add_machine_code(wheel: Path, code: Path, python: Path) -> Path:
    """Write a wheel beside ``wheel`` that also has the files of the folder ``code``, and is for machines like this one.

    It can be installed where the numba can be that has compiled them, which is the one of ``python``: so its tags are
    numba's.
    """
    about = subprocess.run([python, "-c", TAGS], check=True, capture_output=True, text=True).stdout
    tags = re.findall(r"^Tag: ([^-]+-[^-]+)-(.+)$", about, re.MULTILINE)
    (first,) = {tag for tag, _ in tags}
    tag = f"{first}-{'.'.join(machine for _, machine in tags)}"
    made = wheel.with_name(f"{'-'.join(wheel.stem.split('-')[:2])}-{tag}.whl")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        files = {entry: old.read(entry) for entry in old.namelist()}
        (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
        del files[record]
        files |= {f"{INSIDE}/{path.name}": path.read_bytes() for path in sorted(code.iterdir())}
        name = record.replace("RECORD", "WHEEL")
        words = re.sub(r"^Root-Is-Purelib: true$", "Root-Is-Purelib: false", files[name].decode(), flags=re.MULTILINE)
        kept = [line for line in words.splitlines() if line and not line.startswith("Tag: ")]
        files[name] = "\n".join([*kept, *(f"Tag: {first}-{machine}" for _, machine in tags), ""]).encode()
        for entry, data in files.items():
            new.writestr(zipfile.ZipInfo(entry), data, zipfile.ZIP_DEFLATED)
        new.writestr(zipfile.ZipInfo(record), "".join(map(_line, files.items())) + f"{record},,\n")
    return made


def _line(file: tuple[str, bytes]) -> str:
    """A file's line in the record of a wheel."""
    name, data = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"
