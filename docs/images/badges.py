"""Draws the badges of README from pyproject.toml, so that what they say is true; nothing is fetched to show them.

python docs/images/badges.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
_WIDTH = 6.6  # of a letter at 11 pixels, in the widest of the usual fonts

_BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{name}: {value}">
<rect width="{whole}" height="20" rx="3" fill="{color}"/>
<path d="M3 0h{inner}v20h-{inner}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#444"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left}" y="14" textLength="{name_length}">{name}</text>
<text x="{right}" y="14" textLength="{value_length}">{value}</text>
</g></svg>
"""


def badges(settings: dict[str, object]) -> dict[str, str]:
    """The files and what is in them, from the settings of a project."""
    project = settings["project"]
    versions = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in project["classifiers"]]
    strict = settings["tool"]["mypy"]["strict"] and "Typing :: Typed" in project["classifiers"]
    return {
        "version.svg": draw("version", project["version"], "#0b3c5d"),
        "python.svg": draw("python", " | ".join(one[1] for one in versions if one), "#0072b2"),
        "license.svg": draw("license", project["license"], "#0072b2"),
        "types.svg": draw("types", "checked, strict" if strict else "some", "#00775a"),
    }


def draw(name: str, value: str, color: str) -> str:
    """One badge: what it is about, and what is true of it."""
    name_length, value_length = round(_WIDTH * len(name)), round(_WIDTH * len(value))
    inner, whole = name_length + 9, name_length + value_length + 24
    return _BADGE.format(
        name=name,
        value=value,
        color=color,
        name_length=name_length,
        value_length=value_length,
        inner=inner,
        whole=whole,
        left=(inner + 3) / 2,
        right=inner + 3 + (whole - inner - 3) / 2,
    )


def main() -> None:
    """Write them all."""
    folder = HERE / "badges"
    folder.mkdir(exist_ok=True)
    for file, text in badges(tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())).items():
        (folder / file).write_text(text)
        print(f"wrote {folder / file}")


if __name__ == "__main__":
    main()
