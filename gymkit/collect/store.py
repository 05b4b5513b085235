"""A run on disk: the four files that derive from one output path, held by one collector at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.lines import Appender, Line, read, repair
from gymkit.collect.lock import holder, lock
from gymkit.collect.previous import keep
from gymkit.collect.replacement import Replacement
from gymkit.errors import StoreError, StoreLocked
from gymkit.wire import codec
from gymkit.wire.lines import Problem

SET_ASIDE = "set_aside"
"""The failure class of a result that somebody chose to run again."""

_WHY = "a result that was chosen to be run again"


class Store:
    """The artifacts of one output path.

    ``with Store("results/rollouts.jsonl") as store`` holds the output for this collector; StoreLocked says that
    another one does, StoreError that the path cannot be written. Leaving the block keeps what was appended.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.paths = Artifacts.of(output)
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """Lines that hold no row, and repairs, found in these files so far; each once."""
        return list(self._problems)

    def __enter__(self) -> Self:
        rollouts = self.paths.rollouts
        try:
            rollouts.parent.mkdir(parents=True, exist_ok=True)
            self._was_there = rollouts.exists()
            if self._was_there and not rollouts.is_file():
                raise StoreError(f"{rollouts} {_no_file(rollouts)}")
            self._main = Appender(rollouts)
        except OSError as error:
            raise StoreError(f"{rollouts} cannot be written: {error.strerror}") from error
        try:
            self._hold()
            self._failures = Appender(self.paths.failures)
        except OSError as error:
            self._main.close()
            raise StoreError(f"{self.paths.failures} cannot be written: {error.strerror}") from error
        except StoreLocked:
            self._main.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._failures.close()
        self._main.close()

    def _hold(self) -> None:
        path = self.paths.rollouts
        try:
            held = lock(self._main.fd)
        except OSError as error:
            note = f"this file system has no locks ({error.strerror}): let no second collector write here"
            self._problems[Problem(path, None, note)] = None
            return
        if not held:
            pid = holder(self._main.fd)
            who = "this process" if pid == os.getpid() else f"process {pid}" if pid else "another process"
            raise StoreLocked(
                f"{path} is being written by another collector ({who}): wait for it, stop it, or take another path"
            )

    def obstacle(self) -> str | None:
        """Why there is nothing here to resume, or None."""
        if not self._was_there:
            return f"{self.paths.rollouts} is not there"
        if not self.paths.materialized.exists():
            return f"{self.paths.materialized} is not there"
        if next(self.planned(), None) is None:
            return f"{self.paths.materialized} holds no rows"
        return None

    def begin(self, rows: Iterable[dict[str, Any]]) -> None:
        """Start anew: plan ``rows`` and clear what an earlier run left, of which ``previous/`` keeps a copy.

        The plan is written aside first and takes its place last, so that a process killed in between never leaves
        old results beside a new plan.
        """
        with Replacement(self.paths.materialized) as replacement:
            replacement.write_lines(rows)
            keep(self.paths)
            self._main.clear()
            self._failures.clear()
            self.drop_metrics()
            replacement.commit()

    def rewrite_plan(self, rows: Iterable[dict[str, Any]]) -> None:
        """Put ``rows`` in the place of a damaged plan; results stay."""
        with Replacement(self.paths.materialized) as replacement:
            replacement.write_lines(rows)
            replacement.commit()

    def set_aside(self, chosen: Callable[[Mapping[str, Any]], bool]) -> None:
        """Move the chosen results to the sidecar, so that their rollouts can be run again and nothing is lost.

        They are written there first: a process killed in between leaves them in both files, and the result counts.
        """
        with Replacement(self.paths.rollouts) as replacement:
            for line in self.results():
                if chosen(line.row):
                    self.append_failure({**line.row, "_ng_failure_class": SET_ASIDE, "_ng_failure_message": _WHY})
                else:
                    replacement.write_lines([line.row])
            replacement.commit()
        before, self._main = self._main, Appender(self.paths.rollouts)
        try:
            self._hold()
        finally:
            before.close()

    def repair(self) -> None:
        """Mend the last lines that a killed process left; ``problems`` says what was done. Raises StoreError."""
        for path in (self.paths.rollouts, self.paths.failures):
            try:
                problem = repair(path)
            except OSError as error:
                raise StoreError(f"the end of {path} cannot be mended: {error.strerror}") from error
            if problem is not None:
                self._problems[problem] = None

    def planned(self) -> Iterator[Line]:
        """The planned rollouts, in the order of the file."""
        return self._read(self.paths.materialized)

    def results(self, load: Callable[[bytes], Any] = codec.loads) -> Iterator[Line]:
        """The rows of the main file; ``load`` may read less of a line than all of it."""
        return self._read(self.paths.rollouts, load)

    def failed(self) -> Iterator[Line]:
        """The rows of the failures sidecar."""
        return self._read(self.paths.failures)

    def append_result(self, row: dict[str, Any]) -> None:
        """Add a row to the main file. Raises StoreError."""
        self._main.append(row)

    def append_failure(self, row: dict[str, Any]) -> None:
        """Add a row to the failures sidecar. Raises StoreError."""
        self._failures.append(row)

    def write_metrics(self, groups: list[dict[str, Any]]) -> None:
        """Write the aggregate metrics, one object for each environment server."""
        with Replacement(self.paths.metrics) as replacement:
            replacement.write(codec.dumps_indented(groups))
            replacement.commit()

    def drop_metrics(self) -> None:
        """Remove aggregate metrics that no longer describe the rows."""
        self.paths.metrics.unlink(missing_ok=True)

    def _read(self, path: Path, load: Callable[[bytes], Any] = codec.loads) -> Iterator[Line]:
        problems: list[Problem] = []
        yield from read(path, problems, load)
        self._problems.update(dict.fromkeys(problems))


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"is a folder: give a file in it, {path / 'rollouts.jsonl'}"
    return "is a device or a pipe, which keeps no rows: give a file on a disk"
