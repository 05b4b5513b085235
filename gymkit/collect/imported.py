"""Results of other programs as a run of ours: the same files, so that everything that reads a run reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.fingerprint import fingerprint
from gymkit.collect.lines import read_whole
from gymkit.collect.progress import Key
from gymkit.collect.store import Store
from gymkit.errors import ConfigError
from gymkit.wire.conversations import Message, items_of, response_of
from gymkit.wire.tasks import RESERVED_KEYS, RESULT_KEYS

FAILED = "imported_error"
"""Failure class of a rollout that failed in the other program."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rollout of another program."""

    task_id: str
    """Its task, as it was called there."""
    rollout: int
    """Number of the repeat, from 0."""
    messages: tuple[Message, ...]
    """The conversation."""
    reward: float | None = None
    """What it scored; None when it was not scored."""
    components: Mapping[str, float] = field(default_factory=dict)
    """Rewards by name."""
    error: str | None = None
    """What went wrong; None for a rollout that came to its end."""
    error_kind: str | None = None
    """A name for it."""
    termination: str = "message"
    """Why it ended, by our names."""
    model: str = ""
    """The model that answered."""
    usage: Mapping[str, int] | None = None
    """Tokens: input, output, total, cached, reasoning."""
    seconds: float | None = None
    """Wall clock."""
    started_at: float | None = None
    """Unix seconds."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The task's other fields."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A run of another program."""

    program: str
    """Its name."""
    environment: str
    """What was run."""
    agent: str
    """Who was run."""
    file: Path
    """Where it was read."""
    planned: Iterable[tuple[str, int]]
    """Task and repeat of each rollout that was planned, as far as that is known."""
    attempts: Iterable[Attempt]
    """What came of them, one in memory at a time."""


def write_run(run: Foreign, output: Path) -> Path:
    """Write ``run`` as the run ``output`` and return it.

    Raises ConfigError when ``output`` is there and is not an earlier import of the same file; StoreError.
    """
    config: dict[str, Any] = {
        "environment": run.environment,
        "agent_ref": {"name": run.agent},
        "imported": {"program": run.program, "file": run.file.name},
    }
    _refuse(output, config["imported"])
    plan = _Plan(config, fingerprint(config), run)
    with Store(output) as store:
        store.begin([])
        for attempt in run.attempts:
            row = plan.row(attempt)
            (store.append_result if attempt.error is None else store.append_failure)(row)
        store.rewrite_plan(plan.rows())
    return output


def _refuse(output: Path, imported: Mapping[str, str]) -> None:
    if not output.exists():
        return
    plan = Artifacts.of(output).materialized
    first = next(read_whole(plan), None) if plan.exists() else None
    before = ((first.row.get("gymkit") or {}).get("config") or {}) if first else {}
    if before.get("imported") != imported:
        raise ConfigError(f"{output} holds another run: give output=… another name")


class _Plan:
    """Numbers the tasks in their order and remembers what each was asked."""

    def __init__(self, config: dict[str, Any], run: str, source: Foreign) -> None:
        self._config = config
        self._run = run
        self._source = source
        self._numbers: dict[str, int] = {}
        self._tasks: dict[str, dict[str, Any]] = {}
        self._keys: dict[Key, str] = {}
        for task_id, rollout in source.planned:
            self._key(task_id, rollout)

    def _key(self, task_id: str, rollout: int) -> Key:
        key = self._numbers.setdefault(task_id, len(self._numbers)), rollout
        self._keys[key] = task_id
        return key

    def row(self, attempt: Attempt) -> dict[str, Any]:
        """The result or failure row of ``attempt``."""
        key = self._key(attempt.task_id, attempt.rollout)
        asked, came = items_of(attempt.messages)
        task = {"responses_create_params": {"input": asked}, "task_id": attempt.task_id, **_own(attempt.fields)}
        self._tasks.setdefault(attempt.task_id, task)
        model, incomplete = attempt.model or self._source.agent, attempt.termination == "incomplete"
        row = task | {"response": response_of(came, model=model, usage=attempt.usage, incomplete=incomplete)}
        row |= self._stamps(key) | {"gymkit": self._facts(attempt)}
        if attempt.error is not None:
            failure = {"_ng_failure_class": FAILED, "_ng_failure_message": attempt.error}
            return row | failure | {"failure_kind": attempt.error_kind or "error"}
        row |= {"mask_sample": False} | ({} if attempt.reward is None else {"reward": attempt.reward})
        return row | ({"reward_components": dict(attempt.components)} if attempt.components else {})

    def _facts(self, attempt: Attempt) -> dict[str, Any]:
        steps = sum(message.role == "assistant" for message in attempt.messages)
        facts = {"run": self._run, "started_at": attempt.started_at, "seconds": attempt.seconds, "steps": steps}
        facts["termination_reason"] = "error" if attempt.error is not None else attempt.termination
        return {name: value for name, value in facts.items() if value is not None}

    def _stamps(self, key: Key) -> dict[str, Any]:
        return {
            "_ng_task_index": key[0],
            "_ng_rollout_index": key[1],
            "agent_ref": {"name": self._source.agent},
            "_ng_environment_server": self._source.environment,
            "_ng_result_type": self._source.program,
        }

    def rows(self) -> Iterable[dict[str, Any]]:
        """The plan, tasks in order; a task that was never begun has no prompt."""
        mark: dict[str, Any] = {"run": self._run, "config": self._config}
        for key in sorted(self._keys):
            task_id = self._keys[key]
            task = self._tasks.get(task_id) or {"responses_create_params": {"input": ""}, "task_id": task_id}
            yield task | self._stamps(key) | {"gymkit": mark}
            mark = {"run": self._run}


def _own(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields whose names mean nothing to us."""
    taken = RESERVED_KEYS | RESULT_KEYS | {"task_id", "task_input"}
    return {name: value for name, value in fields.items() if name not in taken and not name.startswith(("_ng_", "ng_"))}
