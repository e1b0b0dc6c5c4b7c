"""Regions that cannot reach each other, with a router in each: see docs/regions.md."""

import json
import queue

import pytest
from ports import free_port
from zenoh_places import WAIT

from laconic.transport import Connected, Disconnected, Received
from laconic.transport.zenoh import ZenohLink

zenoh = pytest.importorskip("zenoh")
pytestmark = pytest.mark.sockets


def open_router(listen, connect):
    """What ``zenohd`` does with the settings of the page."""
    settings = {
        "mode": "router",
        "listen": {"endpoints": [listen]},
        "connect": {
            "endpoints": connect,
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 50, "period_max_ms": 100, "period_increase_factor": 2},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
    }
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def test_agents_of_two_regions_talk_through_their_routers():
    router_a, router_b, ann_at, dan_at, nowhere = (f"tcp/127.0.0.1:{free_port()}" for _ in range(5))
    heard = {"ann": queue.SimpleQueue(), "dan": queue.SimpleQueue()}
    first, second = open_router(router_a, [ann_at]), open_router(router_b, [router_a, dan_at])
    ann = ZenohLink("ann", listen=ann_at, neighbours={"dan": nowhere}, deliver=heard["ann"].put)
    dan = ZenohLink("dan", listen=dan_at, neighbours={"ann": nowhere}, deliver=heard["dan"].put)
    try:
        assert heard["ann"].get(timeout=WAIT) == Connected("dan")
        assert heard["dan"].get(timeout=WAIT) == Connected("ann")
        ann.send(b"hello", "dan")
        assert heard["dan"].get(timeout=WAIT) == Received("ann", b"hello")
        dan.send(b"and back", "ann")
        assert heard["ann"].get(timeout=WAIT) == Received("dan", b"and back")
        second.close()
        assert heard["ann"].get(timeout=WAIT) == Disconnected("dan")
        assert heard["dan"].get(timeout=WAIT) == Disconnected("ann")
        second = open_router(router_b, [router_a, dan_at])
        assert heard["ann"].get(timeout=WAIT) == Connected("dan")
        assert heard["dan"].get(timeout=WAIT) == Connected("ann")
    finally:
        for one in (ann, dan, first, second):
            one.close()
