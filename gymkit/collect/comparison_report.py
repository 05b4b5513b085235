"""``compare_report.json`` and ``compare_report.md``: what ``gymkit eval compare`` leaves on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from gymkit import __version__
from gymkit.collect.comparison import AgentComparison, Candidate, Metric, Value
from gymkit.collect.flips import SHOWN, Flips
from gymkit.collect.metrics_file import MetricsFile
from gymkit.collect.replacement import Replacement
from gymkit.errors import StoreError
from gymkit.wire import codec

Format = Literal["md", "json", "both"]

_NONE = "—"


@dataclass(frozen=True)
class Report:
    """The whole comparison."""

    baseline: MetricsFile
    """What is compared with."""
    candidate: MetricsFile
    """What is compared."""
    comparisons: Sequence[AgentComparison]
    """One for each pair of agents."""
    command: str
    """What was typed."""
    skipped: Mapping[str, list[str]] = field(default_factory=dict)
    """Agents of one run only, by run."""
    paired: Mapping[str, str] = field(default_factory=dict)
    """By agent: the comparison by task, in words."""
    generated_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When, in UTC."""

    @property
    def warnings(self) -> list[str]:
        """What concerns more than one pair."""
        return [f"Only the {run} has {', '.join(names)}: not compared." for run, names in self.skipped.items()]

    def content(self) -> dict[str, Any]:
        """The JSON file: NeMo Gym's keys, and what we add under ``gymkit``."""
        return {
            "schema_version": "1",
            "generated_at": self.generated_at,
            "nemo_gym_version": f"gymkit {__version__}",
            "command": self.command,
            "baseline": _run("baseline", self.baseline),
            "candidates": [_run("candidate", self.candidate)],
            "comparisons": [asdict(each) for each in self.comparisons],
            "skipped_agents": dict(self.skipped),
            "warnings": self.warnings,
            "gymkit": {"paired": dict(self.paired)},
        }

    def markdown(self) -> str:
        """The file to read."""
        lines = ["# gymkit eval compare", ""]
        for each in self.comparisons:
            lines += self._section(each)
        lines += [f"- {text}" for text in self.warnings]
        lines += ["---", f"{self.generated_at}, gymkit {__version__}: `{self.command}`", ""]
        return "\n".join(lines)

    def write(self, folder: Path, chosen: Format = "both") -> list[Path]:
        """Write the files into ``folder``, which is made if need be; returns them. Raises StoreError."""
        contents = {"md": self.markdown().encode(), "json": codec.dumps_indented(self.content())}
        paths = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror}") from error
        for ending in ("md", "json") if chosen == "both" else (chosen,):
            paths.append(folder / f"compare_report.{ending}")
            with Replacement(paths[-1]) as file:
                file.write(contents[ending])
                file.commit()
        return paths

    def _section(self, each: AgentComparison) -> list[str]:
        rows = [
            ["Run", self.baseline.label, self.candidate.label],
            ["Metrics", f"`{self.baseline.path}`", f"`{self.candidate.path}`"],
            ["Agent", each.baseline_agent, each.candidate_agents[0]],
            ["Tasks with a score", str(each.baseline_task_count), str(each.candidate_task_counts[0])],
            ["Rollouts a task", _count(each.baseline_repeat_count), _count(each.candidate_repeat_counts[0])],
        ]
        lines = [f"## {each.candidate_agents[0]}", "", *_table(["", "Baseline", "Candidate"], rows)]
        if told := self.paired.get(each.baseline_agent):
            lines += ["", "### By task", "", *(f"- {line}" for line in told.splitlines())]
        keys = [row for row in each.metrics if row.is_key_metric]
        others = [row for row in each.metrics if not row.is_key_metric]
        lines += ["", "### Key metrics", "", *_metrics(keys), "", _WHICH_INTERVAL, ""]
        if others:
            lines += ["<details>", f"<summary>{len(others)} more metrics</summary>", "", *_metrics(others), ""]
            lines += ["</details>", ""]
        lines += _flips(each.flips[0])
        return [*lines, *(f"- {note}" for note in each.notes), ""]


_WHICH_INTERVAL = (
    "These intervals treat each repeat of the whole task set as one observation: they say how far the numbers would "
    "move if the same tasks were run again, not how far they would on other tasks."
)


def _run(role: str, run: MetricsFile) -> dict[str, Any]:
    return {
        "role": role,
        "index": 0,
        "rollouts_jsonl_fpath": str(run.rollouts),
        "aggregate_metrics_fpath": str(run.path),
        "label": run.label,
        "agent_names": run.names,
    }


def _metrics(rows: Iterable[Metric]) -> list[str]:
    head = ["Metric", "Difference", "95 % over repeats", "Baseline", "95 %", "Candidate", "95 %"]
    return _table(head, [_metric(row) for row in rows])


def _metric(row: Metric) -> list[str]:
    new = row.candidates[0]
    return [f"`{row.metric}`", *_difference(new), *_value(row.baseline), *_value(new)]


def _difference(new: Candidate | None) -> list[str]:
    if new is None or new.delta is None:
        return [_NONE, _NONE]
    percent = f" ({new.delta_pct:+.1f} %)" if new.delta_pct is not None else ""
    return [f"{_number(new.delta, '+')}{percent}", _range(new.delta_ci_low, new.delta_ci_high, "+")]


def _value(value: Value | None) -> list[str]:
    return [_NONE, _NONE] if value is None else [_number(value.point), _range(value.ci_low, value.ci_high)]


def _range(low: float | None, high: float | None, sign: str = "") -> str:
    return _NONE if low is None or high is None else f"[{_number(low, sign)}, {_number(high, sign)}]"


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.4f}" if abs(value) < 10 else f"{value:{sign}.2f}"


def _count(count: int | None) -> str:
    return _NONE if count is None else str(count)


def _flips(found: Flips) -> list[str]:
    if found.mode == "unavailable":
        return ["### Flips", "", f"None to be had: {found.reason}.", ""]
    counts = f"{found.common_task_count} tasks in both"
    if found.mode == "binary":
        counts += (
            f", {found.fail_to_pass_count} gained, {found.pass_to_fail_count} lost, {found.tied_count} half passed"
        )
    else:
        counts += f", {len(found.flips)} changed"
    shown = [flip for flip in found.flips if flip.baseline_rewards or flip.candidate_rewards][: 2 * SHOWN]
    rows = [
        [
            str(flip.task_index),
            flip.direction.replace("_", " "),
            _number(flip.delta, "+"),
            _rewards(flip.baseline_rewards),
            _rewards(flip.candidate_rewards),
        ]
        for flip in shown
    ]
    table = _table(["Task", "Direction", "Difference", "Rewards there", "Rewards here"], rows) if rows else []
    left = len(found.flips) - len(shown)
    more = ["", f"{left} more are in the JSON file."] if left else []
    note = "Tasks are matched by number: right when both runs had the same task rows in the same order."
    return ["### Flips", "", counts, "", *table, *more, "", note, ""]


def _rewards(rewards: Sequence[float] | None) -> str:
    return ", ".join(f"{reward:g}" for reward in rewards) if rewards else _NONE


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        "|" + " --- |" * len(head),
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows),
    ]
