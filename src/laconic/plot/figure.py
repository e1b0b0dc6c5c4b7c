"""A figure for papers: fonts that publishers take, and a height that leaves room for its legend."""

from __future__ import annotations

from typing import Any, final

import matplotlib as mpl
from matplotlib.figure import Figure

#: Type 42 is TrueType, embedded whole: text can be searched, and submission systems that refuse type 3 are content.
_FONTS = {"pdf.fonttype": 42, "ps.fonttype": 42}


@final
class Picture(Figure):
    """A matplotlib figure that is saved with TrueType fonts; nobody's settings change."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """As ``Figure.savefig``, with fonts embedded as type 42 in PDF and PostScript."""
        with mpl.rc_context(_FONTS):
            super().savefig(*args, **options)


def new(width: float, height: float) -> Picture:
    """An empty figure of that size in inches, which pyplot knows."""
    import matplotlib.pyplot as plt

    made: Picture = plt.figure(figsize=(width, height), layout="constrained", FigureClass=Picture)
    return made
