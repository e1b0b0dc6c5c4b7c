"""Starting anew on purpose: checkpoints are moved aside, so that an agent does not find them."""

from __future__ import annotations

from pathlib import Path

from laconic.deploy.settings.site import Site
from laconic.protocol.checkpoint import previous


def set_checkpoint_aside(site: Site, name: str) -> tuple[Path, ...]:
    """Rename an agent's checkpoint and the one before to ``....old``, in place of older ones; where they are now."""
    path = site.checkpoint_path(name)
    moved = []
    for file in () if path is None else (path, previous(path)):
        aside = file.with_name(f"{file.name}.old")
        try:
            file.replace(aside)
        except FileNotFoundError:
            continue
        moved.append(aside)
    return tuple(moved)
