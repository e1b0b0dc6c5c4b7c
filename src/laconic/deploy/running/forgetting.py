"""Starting anew on purpose: checkpoints and learned limits are moved aside, so that an agent does not find them."""

from __future__ import annotations

from pathlib import Path

from laconic.deploy.running.trial import report_of
from laconic.deploy.settings.site import Site
from laconic.protocol.checkpoint import previous


def set_checkpoint_aside(site: Site, name: str) -> tuple[Path, ...]:
    """Rename an agent's checkpoint, the one before and its limits to ``....old``; where they are now."""
    path, limits = site.checkpoint_path(name), site.limits_path(name)
    moved = []
    for file in () if path is None or limits is None else (path, previous(path), limits):
        aside = file.with_name(f"{file.name}.old")
        try:
            file.replace(aside)
        except FileNotFoundError:
            continue
        moved.append(aside)
    if path is not None:
        report_of(path).unlink(missing_ok=True)
    return tuple(moved)
