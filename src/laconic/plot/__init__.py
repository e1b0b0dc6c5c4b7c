"""Pictures of networks and of runs."""

from laconic.plot.networks import draw_network
from laconic.plot.traces import draw_traces
from laconic.plot.waves import draw_waves

__all__ = ["draw_network", "draw_traces", "draw_waves"]
