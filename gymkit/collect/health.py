"""The health of a run's evidence: a verdict on each row, and what adds up over tasks; NeMo Gym's checks by name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gymkit.collect.lines import read
from gymkit.collect.replacement import Replacement
from gymkit.collect.resume import key_of
from gymkit.collect.row_checks import ROW_CHECKS, Finding, check_row, failed
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.wire import codec
from gymkit.wire.lines import Problem
from gymkit.wire.trajectory import TRAJECTORY

CHECKS: Final = (
    *ROW_CHECKS,
    "rollout_duplicate_identity",
    "task_consistently_unhealthy",
    "task_no_successful_model_calls",
)
"""Every check."""


@dataclass(slots=True)
class Verdict:
    """What is to be held of one row."""

    task: int | None
    """Number of the task."""
    rollout: int | None
    """Number of the rollout."""
    findings: list[Finding]
    """What is wrong."""
    unobserved: list[str]
    """Checks that cannot tell."""
    calls: int = 0
    """Captured calls."""
    failed: int = 0
    """Of these, failed."""

    @property
    def verdict(self) -> str:
        """``unhealthy`` with any finding, else ``unobserved`` with any check that cannot tell, else ``healthy``."""
        return "unhealthy" if self.findings else "unobserved" if self.unobserved else "healthy"

    def fields(self) -> dict[str, Any]:
        """The line in the file of verdicts."""
        return {
            "_ng_task_index": self.task,
            "_ng_rollout_index": self.rollout,
            "rollout_id": f"{self.task}-{self.rollout}",
            "verdict": self.verdict,
            "findings": [finding._asdict() for finding in self.findings],
            "unobserved": self.unobserved,
        }


@dataclass(slots=True)
class Examined:
    """A run, examined."""

    path: Path
    """Its main file."""
    verdicts: list[Verdict]
    """One for each line, in their order."""
    ignored: tuple[str, ...] = ()
    """Checks that were left out."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Tokens of responses and of captured calls."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Failed calls by status."""

    def write(self, prefix: str = "") -> tuple[Path, Path]:
        """Write ``rollout_verdicts.jsonl`` and ``quality_summary.json`` beside the run. Raises StoreError.

        The names are NeMo Gym's, which keeps one run to a folder; ``prefix`` comes before them where several lie.
        """
        verdicts = self.path.with_name(f"{prefix}rollout_verdicts.jsonl")
        summary = self.path.with_name(f"{prefix}quality_summary.json")
        with Replacement(verdicts) as lines:
            lines.write_lines(each.fields() for each in self.verdicts)
            lines.commit()
        with Replacement(summary) as file:
            file.write(codec.dumps_indented(self.summary()))
            file.commit()
        return verdicts, summary

    def summary(self) -> dict[str, Any]:
        """NeMo Gym's quality summary."""
        issues = Counter(check for each in self.verdicts for check in {finding.check for finding in each.findings})
        tasks = self.tasks()
        issues.update(flag for task in tasks.values() for flag in task["flags"])
        affected = [each for each in self.verdicts if each.failed]
        ended = [each for each in affected if any("ended_on" in finding.check for finding in each.findings)]
        errors = {"total": sum(each.failed for each in affected), "by_status": dict(self.statuses)}
        stats = {
            "model_call_errors": {**errors, "rollouts_affected": len(affected), "ended_on_error": len(ended)},
            "tokens": {name: self.tokens[name] for name in _TOKENS},
        }
        observed = sum(each.calls > 0 for each in self.verdicts)
        run = {
            "ignored_checks": list(self.ignored),
            "artifacts": {"records": len(self.verdicts), "captures": observed, "coverage": self._coverage()},
            "verdicts": dict(Counter(each.verdict for each in self.verdicts)),
            "issues": dict(issues),
            "stats": stats,
        }
        return {"run": run, "tasks": {str(number): task for number, task in sorted(tasks.items())}}

    def tasks(self) -> dict[int, dict[str, Any]]:
        """What adds up by task: repeats, how many of which verdict, and flags."""
        groups: dict[int, list[Verdict]] = defaultdict(list)
        for each in self.verdicts:
            if each.task is not None:
                groups[each.task].append(each)
        return {number: self._task(group) for number, group in groups.items()}

    def _task(self, group: list[Verdict]) -> dict[str, Any]:
        counts = Counter(each.verdict for each in group)
        flags = []
        if counts["unhealthy"] == len(group) >= 2:
            flags.append("task_consistently_unhealthy")
        if all(each.calls for each in group) and all(each.failed == each.calls for each in group):
            flags.append("task_no_successful_model_calls")
        told = {name: counts[name] for name in ("healthy", "unhealthy", "unobserved")}
        return {"repeats": len(group), **told, "flags": [flag for flag in flags if flag not in self.ignored]}

    def _coverage(self) -> dict[str, dict[str, int]]:
        blind = Counter(name for each in self.verdicts for name in each.unobserved)
        count = len(self.verdicts)
        return {
            name: {"evaluated": 0, "unobserved": 0, "ignored": count}
            if name in self.ignored
            else {"evaluated": count - blind[name], "unobserved": blind[name], "ignored": 0}
            for name in ROW_CHECKS
        }


_TOKENS: Final = ("prompt", "completion", "capture_prompt", "capture_completion")


def known_checks(names: Iterable[str]) -> tuple[str, ...]:
    """``names``, every one a check. Raises ConfigError with the nearest."""
    checked = tuple(names)
    for name in checked:
        if name not in CHECKS:
            raise ConfigError(f"there is no check {name!r}; {nearest(name, CHECKS)}")
    return checked


def examine(path: Path, ignored: Iterable[str] = ()) -> Examined:
    """Hold every row of the main file ``path`` to the checks. Raises ConfigError for a check that is none."""
    skip = known_checks(ignored)
    examined = Examined(path, [], skip)
    seen: set[tuple[int, int]] = set()
    problems: list[Problem] = []
    for line in read(path, problems) if path.exists() else ():
        verdict = _verdict(line.row, examined)
        key = key_of(line.row)
        if key in seen:
            verdict.findings.append(Finding("rollout_duplicate_identity", f"line {line.number} repeats a rollout"))
        elif key is not None:
            seen.add(key)
        verdict.findings = [finding for finding in verdict.findings if finding.check not in skip]
        verdict.unobserved = [name for name in verdict.unobserved if name not in skip]
        examined.verdicts.append(verdict)
    examined.verdicts += [_broken(problem) for problem in problems if not problem.blank]
    return examined


def _broken(problem: Problem) -> Verdict:
    return Verdict(None, None, [Finding("record_unreadable", str(problem))], list(ROW_CHECKS[1:]))


def _verdict(row: Mapping[str, Any], examined: Examined) -> Verdict:
    told = check_row(row)
    task, rollout = key_of(row) or (None, None)
    unreadable = any(finding.check == "record_unreadable" for finding in told.findings)
    calls = [] if unreadable else list(_calls(row))
    for call in calls:
        stats = call.get("token_stats") or {}
        examined.tokens["capture_prompt"] += stats.get("prompt_tokens") or 0
        examined.tokens["capture_completion"] += stats.get("completion_tokens") or 0
        if failed(call):
            examined.statuses[str((call.get("response_metadata") or {}).get("status_code"))] += 1
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, Mapping) else None
    if isinstance(usage, Mapping):
        examined.tokens["prompt"] += usage.get("input_tokens") or 0
        examined.tokens["completion"] += usage.get("output_tokens") or 0
    return Verdict(task, rollout, told.findings, told.unobserved, len(calls), sum(map(failed, calls)))


def _calls(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (row.get(TRAJECTORY) or {}).get("model_calls") or ()
