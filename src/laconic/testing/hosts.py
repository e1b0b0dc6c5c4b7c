"""Hosts of their own for agents: network namespaces on one switch, which can be cut and healed (Linux, as root)."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable

_COUNT = itertools.count()


class Unavailable(RuntimeError):
    """Hosts cannot be made here, and why."""


def run(*command: str) -> str:
    """What a command prints; RuntimeError with its complaint if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def stop_in_order() -> None:
    """Have SIGTERM end this program as an error does, so that the hosts that it made are taken away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def need_tools() -> None:
    """Raise ``Unavailable`` where namespaces cannot be made; nothing is installed."""
    if not sys.platform.startswith("linux"):
        raise Unavailable("network namespaces are Linux's.")
    if os.geteuid():
        raise Unavailable("only root may make network namespaces.")
    for tool, package in (("ip", "iproute2"), ("nft", "nftables")):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool} here: install {package}.")


class Hosts:
    """Hosts on one switch, each a network namespace; all are gone afterwards.

    Parameters
    ----------
    names : iterable of str
    """

    def __init__(self, names: Iterable[str]) -> None:
        need_tools()
        self._prefix = f"laconic{os.getpid()}-{next(_COUNT)}"
        self.names = tuple(names)
        self.addresses = {name: f"10.77.0.{k}" for k, name in enumerate(self.names, 1)}
        self._made: list[str] = []
        try:
            self._make()
        except RuntimeError as error:
            self.close()
            raise Unavailable(f"hosts cannot be made here: {error}") from None
        except BaseException:
            self.close()
            raise

    def space(self, name: str) -> str:
        """The namespace of a host."""
        return f"{self._prefix}-{name}"

    def _make(self) -> None:
        self._switch = self.space("switch")
        for space in (self._switch, *map(self.space, self.names)):
            run("ip", "netns", "add", space)
            self._made.append(space)
        switch = ("ip", "-n", self._switch, "link")
        run(*switch, "add", "bridge0", "type", "bridge")
        run(*switch, "set", "bridge0", "up")
        for k, name in enumerate(self.names):
            host = ("ip", "-n", self.space(name))
            run(*switch, "add", f"port{k}", "type", "veth", "peer", "name", "eth0", "netns", self.space(name))
            run(*switch, "set", f"port{k}", "master", "bridge0", "up")
            run(*host, "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
            run(*host, "link", "set", "eth0", "up")
            run(*host, "link", "set", "lo", "up")
        self._rule("add", "table", "bridge", "laconic")
        self._rule("add", "chain", "bridge", "laconic", "cut", "{ type filter hook forward priority 0 ; }")

    def _rule(self, *words: str) -> None:
        run("ip", "netns", "exec", self._switch, "nft", " ".join(words))

    def command(self, name: str, *words: str) -> list[str]:
        """A command as it runs on a host."""
        return ["ip", "netns", "exec", self.space(name), *words]

    def cut(self, group: Iterable[str], only_ip: bool = False) -> None:
        """Drop all that goes between this group and the others; or only IP, so that they still find each other."""
        kind = "ether type ip " if only_ip else ""
        inside = ", ".join(f'"port{self.names.index(name)}"' for name in group)
        for here, there in (("iifname", "oifname"), ("oifname", "iifname")):
            self._rule("add rule bridge laconic cut", f"{here} {{ {inside} }}", f"{there} != {{ {inside} }} {kind}drop")

    def lose(self, share: float) -> None:
        """Drop this share of all packets, at random."""
        self._rule("add rule bridge laconic cut", f"numgen random mod 10000 < {round(10_000 * share)} drop")

    def heal(self) -> None:
        """Let everything pass."""
        self._rule("flush chain bridge laconic cut")

    def close(self) -> None:
        """Take all of it away."""
        while self._made:
            with contextlib.suppress(RuntimeError):
                run("ip", "netns", "delete", self._made.pop())

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
