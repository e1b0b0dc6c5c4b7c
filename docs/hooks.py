"""What mkdocs needs from us: equations without scripts, the version at the foot of every page, a name for the search.

The pages hold LaTeX between dollar signs, which GitHub shows as it is. Here it becomes MathML, which browsers draw by
themselves: nothing has to be fetched.
"""

from __future__ import annotations

import re
from typing import Any

_FENCE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_MATH = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\w\\$])\$(?P<inline>[^$\n]+?)\$(?!\w)", re.DOTALL)


def on_config(config: Any) -> Any:
    """Say which version the pages describe."""
    from laconic import __version__

    config["copyright"] = f"laconic {__version__}"
    return config


def on_post_page(output: str, **_: Any) -> str:
    """Tell those who listen to a page what the dialogue is that the theme leaves without a name."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn the mathematics of a page into MathML, and leave its code alone."""
    parts = _FENCE.split(markdown)
    return "".join(part if k % 2 else _MATH.sub(_mathml, part) for k, part in enumerate(parts))


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    block = match["block"] is not None
    mathml = convert(match["block"] or match["inline"], display="block" if block else "inline")
    # Markdown would take a line that begins with <math> for a block of its own.
    return f"\n\n<div>{mathml}</div>\n\n" if block else f"<span>{mathml}</span>"
