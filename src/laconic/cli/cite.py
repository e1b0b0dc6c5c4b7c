"""``laconic cite``: what to put into a paper's list of references."""

from __future__ import annotations

import argparse
import json

from laconic._version import __version__
from laconic.cli.options import Commands, add_json, add_quiet, describe

_ABOUT = """
What to cite if laconic was of use: the paper whose algorithms it implements,
and the software, as BibTeX."""

_EXAMPLES = """
examples:
  laconic cite
  laconic cite >> references.bib
  laconic cite --json"""

PAPER = {
    "title": "QC-ODKLA: Quantized and Communication-Censored Online Decentralized Kernel Learning via Linearized ADMM",
    "author": ["Ping Xu", "Yue Wang", "Xiang Chen", "Zhi Tian"],
}
SOFTWARE = {
    "title": "laconic: online decentralized kernel learning",
    "author": ["The laconic developers"],
    "version": __version__,
}


def add(commands: Commands) -> None:
    """Add the command ``cite``."""
    parser = commands.add_parser(
        "cite", help="what to cite, as BibTeX", usage="laconic cite [option ...]", **describe(_ABOUT, _EXAMPLES)
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(command=cite)


def cite(arguments: argparse.Namespace) -> int:
    """Print both references."""
    if arguments.json:
        print(json.dumps({"paper": PAPER, "software": SOFTWARE}))
        return 0
    authors = " and ".join(PAPER["author"])
    print(f"@article{{qcodkla,\n  title = {{{{{PAPER['title']}}}}},\n  author = {{{authors}}}\n}}\n")
    print(
        f"@software{{laconic,\n  title = {{{{{SOFTWARE['title']}}}}},\n  author = {{{{{SOFTWARE['author'][0]}}}}},\n"
        f"  version = {{{SOFTWARE['version']}}}\n}}"
    )
    return 0
