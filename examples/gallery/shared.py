"""What the examples of the gallery share: their size, and where pictures go.

``LACONIC_GALLERY=quick`` makes all of them tiny, for tests; ``plain`` only leaves them uncompiled; ``GALLERY_OUT`` is
the folder of the pictures.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib as mpl

from laconic.plot.style import FAINT, INK, QUIET, STYLES

mpl.use("agg")

#: In a hurry nothing is compiled.
ENGINE = "reference" if os.environ.get("LACONIC_GALLERY") else "auto"


def size(usual: int, quick: int) -> int:
    """How large something is, and how large in a hurry."""
    return quick if os.environ.get("LACONIC_GALLERY") == "quick" else usual


def save(figure: Any, name: str) -> Path:
    """Write a picture, and say where it is."""
    folder = Path(os.environ.get("GALLERY_OUT", "gallery"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")
    return path


def axes(width: float = 6.0, height: float = 3.4) -> tuple[Any, Any]:
    """A figure with one empty panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, dress(figure.add_subplot())


def dress(panel: Any) -> Any:
    """A panel in the colours of the house: thin grey axes, quiet numbers, lines that one can tell apart."""
    panel.set_prop_cycle(color=[style.color for style in STYLES], linewidth=[1.8] * len(STYLES))
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(QUIET)
    panel.tick_params(which="both", colors=QUIET, labelsize=9)
    panel.xaxis.label.set(color=INK, fontsize=10)
    panel.yaxis.label.set(color=INK, fontsize=10)
    panel.grid(color=FAINT, linewidth=0.8)
    panel.set_axisbelow(True)
    return panel
