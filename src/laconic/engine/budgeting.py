"""A budget over single rows: what ``channel.Budget`` decides, with three numbers of memory from ``at`` on."""

from __future__ import annotations

import math
from typing import NamedTuple

from laconic.engine.vectors import lean

BY_ROUND, BY_MESSAGE, BY_BIT = range(3)
TAU, CREDIT, COST = range(3)
N_REMEMBERED = 3


@lean
def is_wished(memory, at, norm):
    """|h| > 0 and |h| >= tau."""
    return norm > 0 and norm >= memory[at + TAU]


@lean
def spend(memory, at, norm, wish, price, income, burst, gain):
    """Whether to send; the memory is then that of the next round. These lines are ``Budget.spend``'s."""
    if memory[at + TAU] == 0 and norm > 0:
        memory[at + TAU] = norm
    if wish:
        memory[at + COST] = price
    cost = memory[at + COST]
    credit = min(max(burst, cost), memory[at + CREDIT] + income)
    sent = wish and credit >= cost
    memory[at + CREDIT] = credit - cost if sent else credit
    rate = min(1.0, income / cost)
    memory[at + TAU] *= math.exp(gain * ((1.0 if wish else 0.0) - rate))
    return sent


class Purse(NamedTuple):
    """How a censor decides: by the round's threshold, or by a budget of messages or bits; and its numbers."""

    kind: int = BY_ROUND
    income: float = 0.0
    burst: float = 0.0
    gain: float = 0.0


@lean
def admits(norm, threshold, purse, memory, at):
    """Whether an innovation of that norm is to be said; where bits are paid for, if they can be: see ``pays``."""
    kind, income, burst, gain = purse
    if kind == BY_ROUND:
        return not norm < threshold
    wish = is_wished(memory, at, norm)
    if wish and kind == BY_BIT:
        return True
    return spend(memory, at, norm, wish, 1.0, income, burst, gain)


@lean
def pays(norm, bits, purse, memory, at):
    """Whether a message of so many ``bits`` that was admitted is sent."""
    kind, income, burst, gain = purse
    if kind != BY_BIT:
        return True
    return spend(memory, at, norm, True, float(bits), income, burst, gain)
