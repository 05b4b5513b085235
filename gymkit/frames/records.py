"""The files of one run, read line by line: nothing is held but the line at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from gymkit.errors import StoreError
from gymkit.frames.cells import integer
from gymkit.frames.decode import load, shape
from gymkit.frames.lines import Place, fetch_lines, read_lines
from gymkit.frames.rows import Stamped
from gymkit.wire.lines import Problem

Narrow = TypeVar("Narrow", bound=Stamped)

Key = tuple[int, int]
"""What names a rollout: its task index and its rollout index."""

_SIDECARS: Final = ("_failures", "_materialized_inputs")


class Records:
    """The artifacts of one run: ``X.jsonl``, ``X_failures.jsonl`` and ``X_materialized_inputs.jsonl``.

    ``path`` is ``X.jsonl``, of gymkit or of NeMo Gym. Any of the three may be missing, but not all: StoreError. Files
    are opened when they are asked for and never changed. What could not be read as it stands is in ``problems``, which
    grows as the files are read. It is a view of one moment: a run that goes on is read with a new one.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.failures_path = self.path.with_name(f"{self.path.stem}_failures.jsonl")
        self.inputs_path = self.path.with_name(f"{self.path.stem}_materialized_inputs.jsonl")
        self._problems: dict[Problem, None] = {}
        self._check()

    @property
    def problems(self) -> list[Problem]:
        """What was wrong with the lines read so far, each once."""
        return list(self._problems)

    def note(self, place: Place, reason: str) -> None:
        """Add to ``problems`` that the line at ``place`` was not read as it stands, for ``reason``."""
        self._problems[Problem(place.path, place.line, reason)] = None

    def rollouts(self, kind: type[Narrow]) -> Iterator[tuple[Key, Narrow, Place]]:
        """Yield each result of the main file, in the order of the file, decoded as ``kind``.

        A rollout that stands there twice is yielded twice (the last counts) and reported.
        """
        found: dict[Key, Place] = {}
        repeats: list[Place] = []
        for key, row, place in self._rows(self.path, kind):
            if row.failure_class is not None:
                self.note(place, "a failed attempt (_ng_failure_class) among the results; skipped")
                continue
            if key in found:
                repeats.append(place)
            found[key] = place
            yield key, row, place
        if repeats:
            which = "1 line repeats" if len(repeats) == 1 else f"{len(repeats)} lines from here on repeat"
            self.note(repeats[0], f"{which} a rollout of an earlier line; the last one counts")
        self.__dict__.setdefault("places", dict(sorted(found.items())))  # whoever reads all need not look for one

    def failures(self, kind: type[Narrow]) -> Iterator[tuple[Key, Narrow, Place]]:
        """Yield each failed attempt, in the order of the file, decoded as ``kind``."""
        return self._rows(self.failures_path, kind)

    def inputs(self, kind: type[Narrow]) -> Iterator[tuple[Key, Narrow, Place]]:
        """Yield each planned rollout, in the order of the plan, decoded as ``kind``."""
        return self._rows(self.inputs_path, kind)

    def results(self, kind: type[Narrow], keys: Iterable[Key] | None = None) -> Iterator[tuple[Key, Narrow, Place]]:
        """Yield the result of each rollout of ``keys`` (None: of all), by task and rollout index, decoded as ``kind``.

        Rollouts without a result are left out.
        """
        wanted = self.places if keys is None else {key: self.places[key] for key in sorted(keys) if key in self.places}
        decoder = msgspec.json.Decoder(kind)
        for key, place, line in fetch_lines(self.path, wanted.items()) if wanted else ():
            row = self._decoded(decoder, line, place)
            if row is not None:
                yield key, row, place

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Yield the planned row of each task, once, whole; of the results where no plan is on disk."""
        firsts: dict[int, Place] = {}
        planned = self.inputs_path.exists()
        for (task, _), _, place in self.inputs(Stamped) if planned else self.rollouts(Stamped):
            firsts.setdefault(task, place)
        path = self.inputs_path if planned else self.path
        for _, place, line in fetch_lines(path, sorted(firsts.items())) if firsts else ():
            row = self._loaded(line, place)
            if row is not None:
                yield row

    def config(self) -> dict[str, Any]:
        """Return the configuration that the run's first planned row carries; empty where it carries none."""
        for line, place in read_lines(self.inputs_path) if self.inputs_path.exists() else ():
            ours = (self._loaded(line, place) or {}).get("gymkit")
            config = ours.get("config") if isinstance(ours, dict) else None
            return config if isinstance(config, dict) else {}
        return {}

    @cached_property
    def places(self) -> dict[Key, Place]:
        """Where the result of each rollout lies in the main file, by task and rollout index in that order."""
        found = {key: place for key, _, place in self.rollouts(Stamped)}
        return dict(sorted(found.items()))

    @cached_property
    def _failure_places(self) -> dict[Key, Place]:
        return {key: place for key, _, place in self.failures(Stamped)}

    def record(self, task_index: int, rollout_index: int) -> dict[str, Any]:
        """Return the whole row of a rollout: its result, or else its last failed attempt.

        Raises StoreError when neither is on disk. The first call reads through the file once to find the places.
        """
        key = task_index, rollout_index
        place = self.places.get(key) or self._failure_places.get(key)
        if place is None:
            raise StoreError(f"rollout {rollout_index} of task {task_index} has no row in {self.path} or its failures")
        for _, _, line in fetch_lines(place.path, [(key, place)]):
            row = self._loaded(line, place)
            if row is not None:
                return row
        raise StoreError(f"{place.path}:{place.line} cannot be read whole; the reason is among the problems")

    def check_planned(self, task_index: int, rollout_index: int) -> None:
        """Raise StoreError for a rollout that is not one of this run's, done or not."""
        key = task_index, rollout_index
        if key in self.places or key in self._failure_places or key in self._planned:
            return
        raise StoreError(f"there is no rollout {rollout_index} of task {task_index} in {self.path}")

    @cached_property
    def _planned(self) -> frozenset[Key]:
        return frozenset(key for key, _, _ in self.inputs(Stamped))

    def _check(self) -> None:
        for suffix in _SIDECARS:
            main = self.path.with_name(f"{self.path.stem.removesuffix(suffix)}.jsonl")
            if self.path.stem.endswith(suffix) and main.exists():
                raise StoreError(f"{self.path} belongs to {main}: read that one, this file is read along with it")
        if self.path.is_dir():
            raise StoreError(f"{self.path} is a folder: give the .jsonl file of the results in it")
        if not any(path.exists() for path in (self.path, self.failures_path, self.inputs_path)):
            raise StoreError(
                f"{self.path} does not exist, nor does {self.failures_path.name} or {self.inputs_path.name}"
            )

    def _rows(self, path: Path, kind: type[Narrow]) -> Iterator[tuple[Key, Narrow, Place]]:
        decoder = msgspec.json.Decoder(kind)
        for line, place in read_lines(path):
            row = self._decoded(decoder, line, place)
            if row is None:
                continue
            task, rollout = integer(row.task_index), integer(row.rollout_index)
            if task is None or rollout is None:
                self.note(place, "no _ng_task_index and _ng_rollout_index, so it belongs to no rollout; skipped")
                continue
            yield (task, rollout), row, place

    def _decoded(self, decoder: msgspec.json.Decoder[Narrow], line: bytes, place: Place) -> Narrow | None:
        try:
            return decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            row = self._loaded(line, place)
            return None if row is None else shape(decoder.type, row)

    def _loaded(self, line: bytes, place: Place) -> dict[str, Any] | None:
        odd: list[str] = []
        try:
            row = load(line, odd)
        except ValueError as error:
            torn = "" if line.endswith(b"\n") else "torn (no line end): "
            self.note(place, f"{torn}{error}; skipped" if line.strip() else "blank; skipped")
            return None
        if odd:
            self.note(place, f"{', '.join(odd[:3])}{' …' * (len(odd) > 3)}: not a number in JSON; read as null")
        if isinstance(row, dict):
            return row
        self.note(place, "not a JSON object; skipped")
        return None
