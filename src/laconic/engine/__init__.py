"""Many agents at once. ``reference`` is to be read, ``compiled`` is to be run; they agree to rounding."""

from laconic.engine.drawn import Drawn, uniforms
from laconic.engine.errors import Diverged
from laconic.engine.run import make_engine, simulate, stream
from laconic.engine.sweeping import sweep

__all__ = ["Diverged", "Drawn", "make_engine", "simulate", "stream", "sweep", "uniforms"]
