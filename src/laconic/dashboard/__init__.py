"""A page that lives: a running site or simulation in a browser, and nothing said back."""

from laconic.dashboard.board import Board
from laconic.dashboard.playing import Play, play
from laconic.dashboard.serving import Gate, Lane, make_app

__all__ = ["Board", "Gate", "Lane", "Play", "make_app", "play"]
