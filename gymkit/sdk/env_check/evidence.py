"""What the trials of an environment showed; the rules judge it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gymkit.sdk.env_check.trial import Post, Trial

IDLE: Final = ("an empty message", "no output at all")
"""Ends of a rollout in which nothing was done."""
CUT: Final = "the output of a tool, as max_steps leaves it"
"""The end of one that was cut while it did something."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A task played by the caller's solution."""

    task: int
    """Number of the task."""
    answer: str
    """What the solution answered."""
    verdict: Mapping[str, Any] | None
    """What the verifier said; None where it said nothing."""
    problem: str = ""
    """Why there is no verdict."""


@dataclass(slots=True)
class Evidence:
    """Everything that was tried, as far as the check came."""

    rows: list[dict[str, Any]]
    """The tasks."""
    row_problems: list[str]
    """What is wrong with them, a sentence each."""
    served: Mapping[str, Mapping[str, Any]] | None
    """The schemas of the tools that are there, by name; None for a server that cannot be asked."""
    budget: float
    """Seconds that the check could take."""
    secret: str | None = None
    """The field that holds the right answer, where the caller named one."""
    unsaveable: str | None = None
    """Why it cannot be saved; empty for one that can, None for one that is not made of functions."""
    seeds: list[Trial] = field(default_factory=list)
    """A session of each task, seeded and no more."""
    alone: list[Trial] = field(default_factory=list)
    """A few tasks, every tool called once and verified twice, one after the other."""
    again: list[Trial] = field(default_factory=list)
    """The same once more."""
    together: list[Trial] = field(default_factory=list)
    """The same at once, each task twice as it was and twice with a marker of its own in the arguments."""
    misfits: list[tuple[str, Post]] = field(default_factory=list)
    """Calls with arguments that do not fit, and what was wrong with them."""
    after: Trial | None = None
    """The session of those calls, in which the tools were then called as they should be."""
    unknown: Post | None = None
    """A call of a tool that is not there."""
    empty: dict[str, Trial] = field(default_factory=dict)
    """Rollouts that did nothing, by how they ended."""
    solved: list[Solved] = field(default_factory=list)
    """Tasks played by the caller's solution."""
    with_solution: bool = False
    """Whether the caller gave one."""
    out_of_time: bool = False
    """Whether the check ended because its seconds were used up."""

    @property
    def declared(self) -> dict[str, Mapping[str, Any]]:
        """The tools in the task rows, by name."""
        found = {}
        for row in self.rows:
            params = row.get("responses_create_params")
            for tool in (params.get("tools") or ()) if isinstance(params, Mapping) else ():
                if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
                    found[tool["name"]] = tool
        return found

    @property
    def played(self) -> list[Trial]:
        """The trials in which something was done."""
        return [*self.alone, *self.again, *self.together]

    @property
    def verdicts(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Every verdict that was given, with the number of its task."""
        yield from ((trial.task, trial.verdict) for trial in (*self.played, *self.empty.values()) if trial.verdict)
        yield from ((each.task, each.verdict) for each in self.solved if each.verdict)

    @property
    def steady(self) -> bool:
        """Whether the same calls had the same answers twice."""
        pairs = list(zip(self.alone, self.again, strict=False))
        return bool(pairs) and all(one.told == other.told for one, other in pairs)

    @property
    def unchecked(self) -> str:
        """Why a rule without evidence has none."""
        if self.out_of_time:
            return f"the {self.budget:g} s of the check were used up: allow more with budget="
        if not self.rows or self.row_problems:
            return "first see to ‘tasks’"
        if self.seeds and not any(trial.seeded for trial in self.seeds):
            return "first see to ‘seeds’"
        return "there was no occasion"
