"""The protocol of an edge as a table: what happens, at which end, in which stage, on what condition; what is done.

Rows are tried from the top; the first that fits is taken. Conditions and actions are methods of ``Conversation`` by
these names; ``then`` is the stage afterwards, None where it stays. Whatever does not fit any row is dropped.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from laconic.protocol import messages as m
from laconic.protocol.session import GONE, LIVE, OPENING, Stage


class Doubted(NamedTuple):
    """The two ends may not agree any more."""


class Disconnected(NamedTuple):
    """The driver says that the other end is gone."""


class Connected(NamedTuple):
    """The driver says that the other end is there."""


class Row(NamedTuple):
    """A line of the table."""

    event: type
    end: str  # "leader", "follower" or "" for both
    stages: tuple[Stage, ...]
    condition: str  # "" for none
    action: str
    then: tuple[Stage | None, ...] = (None,)


ANY, _LIVE, _SHUT, _THERE = (GONE, OPENING, LIVE), (LIVE,), (GONE, OPENING), (OPENING, LIVE)
_SAME_OR_DOUBT = (None, OPENING)

TABLE = (
    # event          end         stage    if                          do                       then
    Row(m.Hello,     "leader",   ANY,     "",                         "call"),
    Row(m.Call,      "follower", ANY,     "is_the_same_session",      "ignore"),
    Row(m.Call,      "follower", ANY,     "",                         "offer"),
    Row(m.Offer,     "leader",   ANY,     "is_decided_already",       "decide_again"),
    Row(m.Offer,     "leader",   ANY,     "is_of_the_decision",       "install_decision",      _LIVE),
    Row(m.Offer,     "leader",   ANY,     "echoes_no_call",           "call"),
    Row(m.Offer,     "leader",   ANY,     "is_of_a_superseded",       "fence"),
    Row(m.Offer,     "leader",   ANY,     "is_too_far",               "refuse_far"),
    Row(m.Offer,     "leader",   ANY,     "is_alone_ahead",           "go_back",               _SAME_OR_DOUBT),
    Row(m.Offer,     "leader",   ANY,     "is_far_ahead",             "call_back",             _SAME_OR_DOUBT),
    Row(m.Offer,     "leader",   ANY,     "",                         "decide",                _SAME_OR_DOUBT),
    Row(m.Decide,    "follower", ANY,     "echoes_no_offer",          "confirm_again"),
    Row(m.Decide,    "follower", ANY,     "is_of_a_superseded",       "fence"),
    Row(m.Decide,    "follower", ANY,     "is_too_far",               "refuse_far"),
    Row(m.Decide,    "follower", ANY,     "is_alone_ahead",           "go_back",               _LIVE),
    Row(m.Decide,    "follower", ANY,     "is_far_behind",            "refuse_to_go_back"),
    Row(m.Decide,    "follower", ANY,     "",                         "install_and_confirm",   _LIVE),
    Row(m.Confirm,   "leader",   ANY,     "is_of_the_decision",       "install_decision",      _LIVE),
    Row(m.Confirm,   "leader",   ANY,     "is_of_an_old_decision",    "call"),
    Row(m.Statement, "leader",   ANY,     "is_of_the_decision",       "install_and_hear",      _THERE),
    Row(m.Statement, "",         _LIVE,   "is_of_another_session",    "seek"),
    Row(m.Statement, "leader",   _LIVE,   "is_frozen",                "ignore"),
    Row(m.Statement, "",         _LIVE,   "is_known",                 "refuse_replayed"),
    Row(m.Statement, "",         _LIVE,   "leaves_a_gap",             "hold_and_request"),
    Row(m.Statement, "",         _LIVE,   "is_too_early",             "hold"),
    Row(m.Statement, "",         _LIVE,   "is_out_of_time",           "doubt",                 (OPENING,)),
    Row(m.Statement, "",         _LIVE,   "",                         "hear",                  _SAME_OR_DOUBT),
    Row(m.Statement, "",         _SHUT,   "",                         "seek"),
    Row(m.Request,   "",         _LIVE,   "is_of_another_session",    "seek"),
    Row(m.Request,   "",         _LIVE,   "has_missed_nothing",       "confirm"),
    Row(m.Request,   "",         _LIVE,   "can_be_answered",          "repeat"),
    Row(m.Request,   "",         _LIVE,   "is_long_answered",         "ignore"),
    Row(m.Request,   "",         _LIVE,   "",                         "doubt",                 (OPENING,)),
    Row(m.Request,   "",         _SHUT,   "",                         "seek"),
    Row(m.Farewell,  "",         ANY,     "is_of_another_session",    "ignore"),
    Row(m.Farewell,  "",         ANY,     "",                         "part",                  (GONE,)),
    Row(m.Refused,   "",         ANY,     "is_meant_for_another",     "report_another"),
    Row(m.Refused,   "",         ANY,     "",                         "shut_refused",          (GONE,)),
    Row(Doubted,     "",         _LIVE,   "",                         "doubt",                 (OPENING,)),
    Row(Disconnected, "",        ANY,     "",                         "suspend",               (GONE,)),
    Row(Connected,   "",         (GONE,), "",                         "open_again",            (OPENING,)),
    Row(Connected,   "",         _LIVE,   "",                         "request"),
    Row(Connected,   "",         (OPENING,), "",                      "seek_again"),
)  # fmt: skip


@cache  # each agent asks for the same
def rows_by_event(table: tuple[Row, ...]) -> dict[tuple[type, bool, Stage], tuple[tuple[str, str], ...]]:
    """(condition, action) of the rows that may fit, by event, whether this end leads, and stage."""
    found: dict[tuple[type, bool, Stage], tuple[tuple[str, str], ...]] = {}
    for row in table:
        for leads in (True, False):
            if row.end in ("", "leader" if leads else "follower"):
                for stage in row.stages:
                    key = row.event, leads, stage
                    found[key] = (*found.get(key, ()), (row.condition, row.action))
    return found
