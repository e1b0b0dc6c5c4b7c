"""How faults befall hosts: what happens when, on the timeline of a virtual network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laconic.transport.faults import Crash, Fault, Hostile, OneWay, Partition, Rollback, Twice, Unlisted

if TYPE_CHECKING:
    from laconic.transport.wires import Wires

_SET_UP = 0.5  # seconds until a host that was hostile has been set up anew


def arrange(fault: Fault, wires: Wires) -> None:
    """Let a fault begin and end when it is due. What only concerns messages and clocks is asked for where they are."""
    at = wires.timeline.at
    match fault:
        case Crash(start, stop, name, disk, noticed):
            at(start, _go_down, wires, name, None if disk else "wipe", 0.0, noticed)
            at(stop, come_up, wires, name)
        case Rollback(start, stop, name, of):
            at(start, _go_down, wires, name, "roll back", of)
            at(stop, come_up, wires, name)
        case Hostile(_, stop, name, _):
            at(stop, _go_down, wires, name, "wipe", 0.0)
            at(stop + _SET_UP, come_up, wires, name)
        case Partition(start, stop, inside) | OneWay(start, stop, inside):
            for name in sorted(inside):
                at(start, wires.change, name)
                at(stop, wires.change, name)
        case Unlisted(start, stop, name, neighbour):
            at(start, _list, wires, name, neighbour, False)
            at(stop, _list, wires, name, neighbour, True)
        case Twice(start, stop, name, disk, first):
            at(start, _start_second, wires, name, disk)
            at(stop, _stop_one, wires, name, first)


def _go_down(wires: Wires, name: str, disk: str | None, of: float, noticed: bool = True) -> None:
    host = wires.hosts[name]
    host.go_down(noticed)
    if disk == "wipe":
        host.wipe()
    elif disk is not None:
        host.roll_back(of)


def come_up(wires: Wires, name: str) -> None:
    """Start a host again, whichever of that name it is by now."""
    wires.hosts[name].come_up()


def _list(wires: Wires, name: str, neighbour: str, there: bool) -> None:
    for host in wires.processes(name):
        if there:
            host.enlist(neighbour)
        else:
            host.unlist(neighbour)


def _start_second(wires: Wires, name: str, disk: bool) -> None:
    if name not in wires.seconds:
        wires.seconds[name] = wires.second(name, disk)
        wires.seconds[name].start()


def _stop_one(wires: Wires, name: str, first: bool) -> None:
    """Whoever looks after the agents stops one of the two."""
    second = wires.seconds.pop(name, None)
    if second is None:
        return
    kept, stopped = (wires.hosts[name], second) if first else (second, wires.hosts[name])
    wires.hosts[name] = kept
    kept.take_over(stopped)
    wires.change(name)
