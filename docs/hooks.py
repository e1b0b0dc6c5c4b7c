"""What mkdocs needs from us: equations without scripts, the version at the foot of every page, a name for the search,
and below the gallery its programs.

The pages hold LaTeX between dollar signs, which GitHub shows as it is. Here it becomes MathML, which browsers draw by
themselves: nothing has to be fetched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_EXAMPLES = Path(__file__).parents[1] / "examples"
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


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn the mathematics of a page into MathML, and leave its code alone."""
    if page.file.src_uri == "gallery.md":
        markdown = _with_programs(markdown)
    parts = _FENCE.split(markdown)
    return "".join(part if k % 2 else _MATH.sub(_mathml, part) for k, part in enumerate(parts))


def _with_programs(markdown: str) -> str:
    """The page of the gallery, each program folded up below it; its name leads there, and unfolds it."""
    shown = ["## The programs"]

    def fold(match: re.Match[str]) -> str:
        name = match[1]
        anchor = name.replace(".", "-").replace("/", "-")
        text = (_EXAMPLES.parent / name if "/" in name else _EXAMPLES / "gallery" / name).read_text()
        opened = f'<details markdown="1"><summary markdown="span">`{name}`</summary>'
        shown.append(f'{opened}\n<div id="{anchor}" markdown="1">\n\n```python\n{text}```\n\n</div>\n</details>')
        return f"([`{name}`](#{anchor}){match[2]}"

    return "\n\n".join([re.sub(r"\(`([\w/]+\.py)`([);])", fold, markdown), *shown])


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    block = match["block"] is not None
    mathml = convert(match["block"] or match["inline"], display="block" if block else "inline")
    # Markdown would take a line that begins with <math> for a block of its own.
    return f"\n\n<div>{mathml}</div>\n\n" if block else f"<span>{mathml}</span>"
