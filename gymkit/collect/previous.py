"""What a new run leaves of the one before it: a copy, so that a cell which is run twice loses nothing."""

from __future__ import annotations

import logging
import shutil
from dataclasses import astuple
from pathlib import Path
from typing import Final

from gymkit.collect.artifacts import Artifacts
from gymkit.errors import StoreError

log = logging.getLogger("gymkit")

FOLDER: Final = "previous"
"""The folder beside the output that holds the copy; a run that began before that one is no longer there."""


def keep(paths: Artifacts) -> Path | None:
    """Copy the run at ``paths`` if it has a result, and return the copy's main file. Raises StoreError.

    It is a copy because the files at ``paths`` are held open by the collector that is about to clear them.
    """
    if not paths.rollouts.exists() or not paths.rollouts.stat().st_size:
        return None
    kept = Artifacts.of(paths.rollouts.parent / FOLDER / paths.rollouts.name)
    try:
        kept.rollouts.parent.mkdir(exist_ok=True)
        for source, target in zip(astuple(paths), astuple(kept), strict=True):
            target.unlink(missing_ok=True)
            if source.exists():
                shutil.copyfile(source, target)
    except OSError as error:
        raise StoreError(
            f"{paths.rollouts} holds a run and {kept.rollouts} cannot keep it: {error.strerror}; take another path"
        ) from error
    log.info("%s held a run, which is kept as %s", paths.rollouts, kept.rollouts)
    return kept.rollouts
