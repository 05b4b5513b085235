"""The task rows that a run is about: each read and checked once, then known by its position only."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Any

from gymkit.collect.checks import index_problems
from gymkit.collect.lines import decode
from gymkit.collect.tasks import Tasks
from gymkit.errors import InputError
from gymkit.wire import codec
from gymkit.wire.lines import Raw
from gymkit.wire.tasks import strip_result_fields

SHOWN = 200
"""Problems told in full; the rest are counted."""

RowCheck = Callable[[Mapping[str, Any]], Iterator[str]]


class Selection:
    """Task rows by position: four numbers each, whatever the size of the row."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._numbers = array("q")
        self._offsets = array("q")
        self.indexes = array("q")
        """Task index of each row."""
        self.copies = array("q")
        """How many rows of the same task come before each row."""
        self._digest = hashlib.sha256()

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def digest(self) -> str:
        """16 hex digits that change with any selected row or its order."""
        return self._digest.hexdigest()[:16]

    def task(self, position: int) -> dict[str, Any]:
        """Read a task row again, without what an earlier run left in it."""
        return strip_result_fields(self._tasks.at(self._offsets[position]))

    def place(self, position: int) -> str:
        """Where a row stands, for messages."""
        return self._tasks.place(self._numbers[position])

    def admit(self, line: Raw, index: int, content: bytes) -> None:
        """Add a checked row, in JSON. A negative ``index`` is a number in waiting, see ``number``."""
        self._numbers.append(line.number)
        self._offsets.append(line.offset)
        self.indexes.append(index)
        self._digest.update(b"%d %b\n" % (index, content))

    def number(self) -> None:
        """Give tasks that brought no index the free numbers in order of appearance, and count copies."""
        taken = {index for index in self.indexes if index >= 0}
        free = (number for number in count() if number not in taken)
        given: dict[int, int] = {}
        seen: defaultdict[int, int] = defaultdict(int)
        for position, index in enumerate(self.indexes):
            if index < 0:
                if index not in given:
                    given[index] = next(free)
                index = self.indexes[position] = given[index]
            self.copies.append(seen[index])
            seen[index] += 1


def select(tasks: Tasks, limit: int | None, check: RowCheck) -> Selection:
    """Read the first ``limit`` task rows and check each. Raises InputError with one sentence for every problem.

    A row's ``_ng_task_index`` is kept unless the row is a result; other rows share an index where their lines are
    the same byte for byte.
    """
    selection = Selection(tasks)
    problems = _Problems()
    waiting: dict[bytes, int] = {}
    for line in islice(tasks.lines(), limit):
        place = tasks.place(line.number)
        try:
            row = decode(line.data)
            task = strip_result_fields(row)
            content = codec.dumps_sorted(task)
        except ValueError as error:
            problems.add(place, str(error))
            continue
        problems.extend(place, check(task))
        index = _own_index(row)
        if index is None:
            index = waiting.setdefault(hashlib.sha256(line.data.rstrip(b"\r\n")).digest(), -1 - len(waiting))
        else:
            problems.extend(place, index_problems(index))
        if not problems:
            selection.admit(line, index, content)
    if not selection and not problems:
        problems.add(tasks.name, "holds no task rows")
    problems.complain()
    selection.number()
    return selection


def _own_index(row: Mapping[str, Any]) -> Any:
    """The task index that a row brings, None if it brings none or is an old result, which is a new task here."""
    is_result = "reward" in row or "response" in row or "_ng_failure_class" in row
    return None if is_result else row.get("_ng_task_index")


class _Problems:
    """Sentences, all told up to a bound."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._more = 0

    def __bool__(self) -> bool:
        return bool(self._told)

    def add(self, place: str, reason: str) -> None:
        if len(self._told) < SHOWN:
            self._told.append(f"{place}: {reason}")
        else:
            self._more += 1

    def extend(self, place: str, reasons: Iterator[str]) -> None:
        for reason in reasons:
            self.add(place, reason)

    def complain(self) -> None:
        if self._told:
            more = [f"and {self._more} more"] if self._more else []
            raise InputError([*self._told, *more])
