"""What carries messages between agents: a virtual network with seeded faults, and zenoh."""

from laconic.transport.link import Connected, Disconnected, Event, Link, Received

__all__ = ["Connected", "Disconnected", "Event", "Link", "Received"]
