"""The live progress of a collection, in a cell or in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gymkit.sdk.collection import Collection


@contextmanager
def watched(collection: Collection) -> Iterator[None]:
    """Show the progress of ``collection`` while the body runs it."""
    yield
