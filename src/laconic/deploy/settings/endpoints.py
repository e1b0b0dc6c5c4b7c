"""Where an agent listens: ``tcp/HOST:PORT``, or ``tls/HOST:PORT`` with security."""

from __future__ import annotations

import re
from typing import final

from laconic.deploy.settings.sections import Section

_FORM = re.compile(r"(?P<protocol>[a-z0-9]+)/(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")
_EVERYWHERE = ("0.0.0.0", "::")
_MOST = 65_535


@final
class Endpoint(str):
    """A place to listen on or to connect to: zenoh's text for it, and its parts.

    >>> place = Endpoint("tls/[::1]:7447")
    >>> place, place.protocol, place.host, place.port, place.everywhere
    ('tls/[::1]:7447', 'tls', '::1', 7447, False)
    """

    __slots__ = ()

    @property
    def protocol(self) -> str:
        """The transport protocol of the endpoint."""
        return self.partition("/")[0]

    @property
    def host(self) -> str:
        """Name or address of the host, without the brackets of an IPv6 address."""
        return self.partition("/")[2].rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port number of the endpoint."""
        return int(self.rpartition(":")[2])

    @property
    def everywhere(self) -> bool:
        """Whether it means all addresses of a host: good to listen on, not to connect to."""
        return self.host in _EVERYWHERE


def read_endpoint(table: Section, key: str, protocol: str) -> Endpoint:
    """The endpoint below ``key``, which must speak ``protocol``."""
    value = table.text(key)
    found = _FORM.fullmatch(value)
    if not found or not 1 <= int(found["port"]) <= _MOST:
        raise table.wrong(f"{key} must be '{protocol}/HOST:PORT' with a port from 1 to {_MOST}, got {value!r}.")
    if found["protocol"] != protocol:
        why = "there is a [security] table" if protocol == "tls" else "there is no [security] table"
        raise table.wrong(f"{key} must begin with '{protocol}/' since {why}, got {value!r}.")
    return Endpoint(value)
