"""A page that lives: what the agents of a running site say of themselves, in a browser, and nothing said back."""

from laconic.dashboard.board import Board
from laconic.dashboard.serving import Gate, make_app

__all__ = ["Board", "Gate", "make_app"]
