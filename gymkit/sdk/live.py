"""The live progress of a collection, in a cell or in a terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gymkit.sdk import bridge
from gymkit.sdk.collection import Collection

if TYPE_CHECKING:
    from gymkit.views.progress import Live

log = logging.getLogger("gymkit")


@contextmanager
def watched(collection: Collection) -> Iterator[None]:
    """Show the progress of ``collection`` while the body runs it, unless it is not to be shown."""
    if not collection.shown:
        yield
        return
    from gymkit.views.progress import live

    title = f"{collection.settings.get('environment', collection.output.stem)} × {collection.target.agent}"
    with live(collection.progress, stop=collection.stop, title=title) as display:
        end = bridge.start(_follow(display))
        try:
            yield
        finally:
            end()


async def _follow(display: Live) -> None:
    try:
        await display.follow()
    except Exception:  # a display that breaks must not take the run with it
        log.exception("the live display broke; the run goes on without it")
