"""The first minute: ten agents learn a landscape of which each sees a tenth; a table, and a page that shows it."""

from laconic.demo.page import render
from laconic.demo.running import Outcome, Run, show

__all__ = ["Outcome", "Run", "render", "show"]
