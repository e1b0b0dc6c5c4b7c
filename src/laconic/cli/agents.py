"""``laconic agent`` and ``laconic up``: one agent of a site, or all of them on this machine."""

from __future__ import annotations

import argparse
import json
import logging
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic import _validate
from laconic.cli import live
from laconic.cli.live import add_live_options
from laconic.cli.options import Commands, add_json, describe, number, one_of, whole

if TYPE_CHECKING:
    from laconic.deploy.operations.screen import Screen
    from laconic.deploy.settings.site import Site

_ABOUT_AGENT = """
Run one agent of a site: it learns from its samples, talks to its neighbours,
and comes back after a crash where the others are. Log lines go to stderr.
Exit code: 0 when its samples have ended, 3 when it diverged, 4 when they can
no longer be read, 2 when its settings make no sense or it runs here already,
128 and the signal's number when a signal stopped it."""

_EXAMPLES_AGENT = """
examples:
  laconic agent --config site.toml --name kitchen
  laconic agent --config site.toml --name kitchen --rounds 1000 --trace kitchen.npz"""

_ABOUT_UP = """
Run all agents of a site on this machine, for a trial: a process each, started
again when it dies, stopped together by Ctrl-C. On a terminal every agent has a
row, and q stops them, too."""

_EXAMPLES_UP = """
examples:
  laconic up site.toml
  laconic up site.toml --rounds 1000 --trace traces
  laconic up site.toml --fresh             forget what was learned before
  laconic up site.toml --live --open       and show them in a browser"""


def add(commands: Commands) -> None:
    """Add the commands ``agent`` and ``up``."""
    parser = commands.add_parser(
        "agent",
        help="run one agent of a site",
        usage="laconic agent --config FILE --name NAME [option ...]",
        **describe(_ABOUT_AGENT, _EXAMPLES_AGENT),
    )
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="the site's settings, as `laconic init` writes them"
    )
    parser.add_argument("--name", metavar="NAME", help="which of its agents")
    _add_common(parser)
    parser.add_argument("--progress", type=number, default=10.0, metavar="SEC", help="seconds between reports (10)")
    parser.add_argument("--trace", metavar="FILE", help="write what it did to an .npz file when it ends")
    parser.add_argument("--spare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(command=run_one)

    parser = commands.add_parser(
        "up",
        help="run all agents of a site here",
        usage="laconic up FILE [option ...]",
        **describe(_ABOUT_UP, _EXAMPLES_UP),
    )
    parser.add_argument("config", metavar="FILE", help="the site's settings, as `laconic init` writes them")
    _add_common(parser)
    parser.add_argument("--progress", type=number, metavar="SEC", help="seconds between reports (10; on a terminal: 1)")
    parser.add_argument("--trace", metavar="DIR", help="write what each did to DIR/NAME.npz when it ends")
    add_live_options(parser, plays=False)
    parser.set_defaults(command=run_all)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=whole, metavar="N", help="stop after N rounds (default: when the samples end)")
    parser.add_argument("--fresh", action="store_true", help="begin anew: checkpoints are moved aside, to .old")
    parser.add_argument(
        "--predictions", type=number, default=10.0, metavar="HZ", help="publish at most so many a second (10; 0: none)"
    )
    parser.add_argument(
        "--log",
        type=one_of("auto", "json", "text"),
        default="auto",
        metavar="FORM",
        help="of log lines: json, text, or auto: text on a terminal",
    )
    parser.add_argument(
        "--level",
        type=one_of("debug", "info", "warning", "error"),
        default="info",
        metavar="LEVEL",
        help="of log lines (info)",
    )
    add_json(parser, "log lines as JSON: --log json")
    parser.add_argument("--quiet", action="store_true", help="log errors only: --level error, and no screen")


def run_one(arguments: argparse.Namespace) -> int:
    """Run the command ``agent``."""
    from laconic.cli.words import sentence
    from laconic.deploy.running import logs
    from laconic.deploy.settings.site import Site

    _check(arguments)
    site = Site.read(arguments.config)
    name, trace = arguments.name, arguments.trace
    logs.setup(name, form=arguments.log, level=arguments.level)
    if arguments.spare:
        task = _wait_for_task(site)
        if task is None:
            return 0
        name, trace = task["name"], task["trace"]
        logs.setup(name, form=arguments.log, level=arguments.level)
    if name is None:
        raise ValueError(f"--name must say which agent to run: {', '.join(site.names)}.")
    site.agent(name)
    from laconic.deploy.running.locks import Taken, lock_path, only_one
    from laconic.deploy.running.runner import run_agent

    try:
        with only_one(lock_path(site, name), f"agent {name} of {site.file} runs on this machine"):
            if arguments.fresh:
                _forget(site, name)
            return run_agent(
                site,
                name,
                rounds=arguments.rounds,
                trace=None if trace is None else Path(trace),
                predictions=arguments.predictions,
                progress=arguments.progress,
                supervised=arguments.supervised,
            )
    except (OSError, Taken) as error:  # a port that is taken, say, which may be free the next time: not nonsense
        if isinstance(error, Taken) and not arguments.supervised:
            raise
        logging.getLogger("laconic.deploy").error("failed", extra={"agent": name, "why": sentence(error)})
        return 1


def _forget(site: Site, *names: str) -> None:
    """Move the checkpoints of agents aside, and say so."""
    from laconic.deploy.running.forgetting import set_checkpoint_aside

    moved = [str(path) for name in names for path in set_checkpoint_aside(site, name)]
    logging.getLogger("laconic.deploy").info("begins anew", extra={"moved": moved or "nothing was there"})


def _wait_for_task(site: Site) -> dict[str, Any] | None:
    """Load everything, then wait on standard input to be told which agent to be; None if nobody does."""
    from laconic.deploy.running.runner import warm

    warm(site)
    logging.getLogger("laconic.deploy").info("loaded")
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 4096)  # not by sys.stdin, which would read ahead
        if not part:
            return None
        line += part
    task: dict[str, Any] = json.loads(line)
    return task


def run_all(arguments: argparse.Namespace) -> int:
    """Run the command ``up``."""
    import signal
    import sys
    import threading

    from laconic.deploy.operations.keys import heard_keys
    from laconic.deploy.operations.screen import Screen
    from laconic.deploy.operations.supervisor import Spare, Supervisor, command
    from laconic.deploy.running import logs
    from laconic.deploy.running.locks import lock_path, only_one
    from laconic.deploy.settings.site import Site

    _check(arguments)
    live.check(arguments)
    site = Site.read(arguments.config)
    for agent in site.agents:
        if agent.source.kind == "stdin":
            raise ValueError(f"agent {agent.name!r} reads standard input: run it by itself, with `laconic agent`.")
    degrees = {name: len(site.neighbours(name)) for name in site.names}
    watched = sys.stdin.isatty() and sys.stderr.isatty() and not arguments.quiet
    keys = "q, or Ctrl-C, stops them all" if watched else ""
    screen = Screen(site.n_agents, sys.stderr, arguments.log, arguments.level, neighbours=degrees, keys=keys)
    screen.live = screen.live and not arguments.quiet
    # All that the supervisor needs is said at this level; what is not to be seen, the screen leaves out.
    options: list[Any] = ["--level", "debug" if arguments.level == "debug" else "info"]
    options += ["--progress", arguments.progress or (1.0 if screen.live else 10.0)]
    options += ["--predictions", arguments.predictions]
    if arguments.rounds is not None:
        options += ["--rounds", arguments.rounds]
    folder = None if arguments.trace is None else Path(arguments.trace)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in options]
    traces = {name: None if folder is None else str(folder / f"{name}.npz") for name in site.names}
    commands = {}
    for name, trace in traces.items():
        traced = [] if trace is None else ["--trace", trace]
        commands[name] = command(arguments.config, "--name", name, *words, *traced)
    tasks = {name: json.dumps({"name": name, "trace": trace}) for name, trace in traces.items()}
    spare = Spare(command(arguments.config, "--spare", *words), tasks)
    logs.setup(form=screen.form, level=arguments.level, stream=screen)
    with only_one(lock_path(site), f"{site.file} is up on this machine"):
        if arguments.fresh:
            _forget_all(site)
        supervisor, left = Supervisor(commands, screen, spare=spare), threading.Event()

        def pressed(key: str) -> None:
            if key in "qQ":
                left.set()
                supervisor.stop(signal.SIGINT)

        with (
            _live(arguments, site, screen) if arguments.live else nullcontext(),
            heard_keys(pressed) if watched else nullcontext(),
        ):
            code = supervisor.run()
        return 0 if left.is_set() else code


def _live(arguments: argparse.Namespace, site: Site, screen: Screen) -> AbstractContextManager[str]:
    """The page of the site, served by this process."""
    from laconic.cli.dashboard import watched

    return watched(arguments, site, say=(lambda _: None) if arguments.quiet else screen.announce)


def _forget_all(site: Site) -> None:
    """Move all checkpoints aside, unless an agent that runs by itself would write its own again."""
    from contextlib import ExitStack

    from laconic.deploy.running.locks import lock_path, only_one

    with ExitStack() as stack:
        for name in site.names:
            stack.enter_context(only_one(lock_path(site, name), f"agent {name} of {site.file} runs on this machine"))
        _forget(site, *site.names)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.json:
        arguments.log = "json"
    if arguments.quiet:
        arguments.level = "error"
    if arguments.rounds is not None:
        _validate.integer("--rounds", arguments.rounds, least=1)
    _validate.number("--predictions", arguments.predictions, least=0)
    if arguments.progress is not None:
        _validate.number("--progress", arguments.progress, above=0)
