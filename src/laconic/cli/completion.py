"""``laconic completion``: a script that lets a shell complete commands, options and what they take.

It is made from the parser itself, so it knows what this version knows, and nothing is started when Tab is pressed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from laconic.cli.options import Commands, describe, one_of

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "DIR", "PATH", "DATA", "MODEL", "SITE", "TRACE")

_ABOUT = """
Print a script with which a shell completes laconic's commands, options and the
values that they take."""

_EXAMPLES = """
examples:
  eval "$(laconic completion bash)"      in ~/.bashrc
  eval "$(laconic completion zsh)"       in ~/.zshrc
  laconic completion fish > ~/.config/fish/completions/laconic.fish"""


class Option(NamedTuple):
    """An option: its names, the words it takes (None: no value; empty: any), whether these are files, and its help."""

    names: tuple[str, ...]
    words: tuple[str, ...] | None
    files: bool
    help: str


class Command(NamedTuple):
    """A command by its path: its options, the commands below it with their help, and whether it takes files."""

    path: tuple[str, ...]
    options: tuple[Option, ...]
    below: dict[str, str]
    files: bool


def add(commands: Commands) -> None:
    """Add the command ``completion``."""
    parser = commands.add_parser(
        "completion",
        help="let a shell complete these commands",
        usage="laconic completion SHELL",
        **describe(_ABOUT, _EXAMPLES),
    )
    parser.add_argument("shell", type=one_of(*SHELLS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(command=complete)


def complete(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from laconic.cli import make_parser

    found = list(walk(make_parser()))
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](found), end="")
    return 0


def walk(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """All commands, from the whole to its parts."""
    below: dict[str, argparse.ArgumentParser] = {}
    told: dict[str, str] = {}
    options, files = [], False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below |= action.choices
            helps = {part.dest: part.help or "" for part in action._choices_actions}
            told |= {name: helps.get(name, "") for name in action.choices}
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action))
        else:
            files = files or _takes_files(action)
            told |= dict.fromkeys(_words(action), "")
    yield Command(path, tuple(options), told, files)
    for name, part in below.items():
        yield from walk(part, (*path, name))


def _option(action: argparse.Action) -> Option:
    words: tuple[str, ...] | None = None
    if action.nargs != 0:
        words = _words(action)
    help = " ".join((action.help or "").replace("%%", "%").split())
    return Option(tuple(action.option_strings), words, words == () and _takes_files(action), help)


def _words(action: argparse.Action) -> tuple[str, ...]:
    """The words that there are to choose from, if there are."""
    known = action.choices if action.choices is not None else getattr(action.type, "names", ())
    return tuple(str(word) for word in known)


def _takes_files(action: argparse.Action) -> bool:
    return str(action.metavar) in _FILES


def bash(commands: list[Command]) -> str:
    """A script for bash, without anything beyond it."""
    paths = " | ".join(f"'{' '.join(one.path)}'" for one in commands if one.path)
    values, words = [], []
    for one in commands:
        path = " ".join(one.path)
        for option in one.options:
            keys = " | ".join(f"'{path}:{name}'" for name in option.names)
            if option.words:
                values.append(
                    f"    {keys}) COMPREPLY=($(compgen -W '{' '.join(option.words)}' -- \"$cur\")); return ;;"
                )
            elif option.words is not None:
                files = 'COMPREPLY=($(compgen -f -- "$cur"))' if option.files else "COMPREPLY=()"
                values.append(f"    {keys}) {files}; return ;;")
        names = " ".join(name for option in one.options for name in option.names)
        words.append(f"    '{path}') options='{names}'; below='{' '.join(one.below)}'; files={int(one.files)} ;;")
    return "\n".join(
        [
            "_laconic() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local path="" next word options below files',
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '    next="${path:+$path }$word"',
            f'    case "$next" in {paths}) path="$next" ;; esac',
            "  done",
            '  case "$path:$prev" in',
            *values,
            "  esac",
            '  case "$path" in',
            *words,
            "  esac",
            '  if [[ "$cur" == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))',
            '  elif [[ -n "$below" ]]; then COMPREPLY=($(compgen -W "$below" -- "$cur"))',
            '  elif [[ "$files" == 1 ]]; then COMPREPLY=($(compgen -f -- "$cur")); fi',
            "}",
            "complete -o filenames -F _laconic laconic",
            "",
        ]
    )


def zsh(commands: list[Command]) -> str:
    """That of bash, which zsh understands if it is asked to."""
    return "autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n" + bash(commands)


def fish(commands: list[Command]) -> str:
    """A script for fish, with what each option is for beside it."""
    lines = ["complete -c laconic -f"]
    for one in commands:
        if one.path:
            seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in one.path)
        else:
            seen = "__fish_use_subcommand"
        not_yet = f"; and not __fish_seen_subcommand_from {' '.join(one.below)}" if one.path and one.below else ""
        for name, help in one.below.items():
            lines.append(f"complete -c laconic -n '{seen}{not_yet}' -a {name} -d {_quoted(help)}")
        if one.files:
            lines.append(f"complete -c laconic -n '{seen}' -F")
        for option in one.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            takes = ""
            if option.words:
                takes = f" -x -a {_quoted(' '.join(option.words))}"
            elif option.words is not None:
                takes = " -r -F" if option.files else " -x"
            lines.append(f"complete -c laconic -n '{seen}' {names}{takes} -d {_quoted(option.help)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """One word to fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
