"""What a run is handed to a view as: its frames, and callables for what is read one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gymkit.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

    from gymkit.frames.records import Records
    from gymkit.sdk.rollouts import Rollouts
    from gymkit.views.browser import Browser
    from gymkit.views.conversation import Rows
    from gymkit.views.site import Site
    from gymkit.views.transcript import Transcript

_BATCH: Final = 50
"""Conversations that are read at once."""

_BATCH_BYTES: Final = 16 * 2**20
"""Bytes of them at most, unless one alone is longer."""

Key = tuple[int, int]


def browse(rollouts: Rollouts, query: str) -> Browser:
    """The browser of a run."""
    from gymkit.views.browser import Browser

    def failures(task: int, rollout: int) -> pd.DataFrame:
        frame = rollouts.failures
        return frame[(frame["task_index"] == task) & (frame["rollout_index"] == rollout)]

    return Browser(
        rollouts.rewards,
        conversation=rollouts.conversation,
        record=rollouts.record,
        failures=failures,
        title=rollouts.title,
        source=f'gk.Rollouts.read("{rollouts.path}")',
        query=query,
    )


def site(rollouts: Rollouts) -> Site:
    """The pages of a run."""
    from gymkit.views.html import Html
    from gymkit.views.site import Site

    return Site(
        rollouts.rewards,
        conversation=rollouts.conversation,
        record=lambda task, rollout: _record(rollouts, (task, rollout)),
        title=rollouts.title,
        summary=Html(rollouts.summary()._repr_html_()),
    )


def write_report(rollouts: Rollouts, records: Records, path: str | os.PathLike[str]) -> None:
    """Write a run as a complete HTML page. Raises StoreError."""
    page = _report(rollouts, records)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


def _report(rollouts: Rollouts, records: Records) -> str:
    from gymkit.views.html import Html
    from gymkit.views.report import report

    summary = Html(rollouts.summary()._repr_html_())

    def read(keys: Sequence[Key]) -> Iterator[tuple[Key, Transcript, Mapping[str, Any]]]:
        for batch in _batches(records, keys):
            rows = (_record(rollouts, key) for key in batch)
            yield from zip(batch, _conversations(records, batch), rows, strict=True)

    return report(rollouts.rewards, rollouts.failures_by_cause(), read, title=rollouts.title, summary=summary)


def _conversations(records: Records, keys: Sequence[Key]) -> Iterator[Transcript]:
    """The conversations of ``keys``, read at once."""
    from gymkit.frames import tool_calls, trajectories
    from gymkit.views.conversation import rows
    from gymkit.views.transcript import Transcript

    items, calls = (_by_rollout(rows(kind.frame(records, keys))) for kind in (trajectories, tool_calls))
    for key in keys:
        yield Transcript(items.get(key, []), calls.get(key, []))


def _by_rollout(found: Rows) -> dict[Key, Rows]:
    by_key: dict[Key, Rows] = {}
    for row in found:
        by_key.setdefault((row["task_index"], row["rollout_index"]), []).append(row)
    return by_key


def _record(rollouts: Rollouts, key: Key) -> Mapping[str, Any]:
    """The row of a rollout on disk, empty where there is none."""
    try:
        return rollouts.record(*key)
    except StoreError:
        return {}


def _batches(records: Records, keys: Sequence[Key]) -> Iterator[list[Key]]:
    batch: list[Key] = []
    size = 0
    for key in keys:
        place = records.places.get(key)
        more = place.size if place else 0
        if batch and (len(batch) == _BATCH or size + more > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(key)
        size += more
    if batch:
        yield batch
