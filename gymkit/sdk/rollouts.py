"""The result of a run, on disk and in frames that are read when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from gymkit.collect.outcome import Outcome
from gymkit.errors import ConfigError
from gymkit.sdk import bridge, reading
from gymkit.sdk.comparison import Comparison
from gymkit.sdk.plots import Plots
from gymkit.sdk.stored import Stored

if TYPE_CHECKING:
    import pandas as pd

    from gymkit.frames.records import Records
    from gymkit.sdk.agents import Agent
    from gymkit.sdk.env import Env
    from gymkit.sdk.health import Health
    from gymkit.sdk.training import Training
    from gymkit.stats import Summary
    from gymkit.views.browser import Browser
    from gymkit.views.transcript import Transcript
    from gymkit.wire.lines import Problem


class Rollouts(Stored):
    """The rollouts of one run, ours or NeMo Gym's; ``Env.rollouts`` returns it and ``Rollouts.read`` opens it.

    Frames begin with ``task_index``, ``rollout_index`` and ``attempt`` (Int64), so that they join. They are read from
    disk on first use and keep their columns and dtypes when empty; conversations stay on disk until asked for.
    ``COLUMNS`` of a frame's module (``gymkit.frames.rewards``) says what each column means; seconds are wall clock.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, outcome: Outcome | None = None, made_by: tuple[Env, Agent] | None = None
    ) -> None:
        super().__init__(path)
        self.outcome = outcome
        """How the run ended, where this process did it; None for one that was read or interrupted."""
        self._made_by = made_by

    @cached_property
    def _records(self) -> Records:
        from gymkit.frames.records import Records  # pandas comes with it: half a second that a run need not wait for

        return Records(self.path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Open the run whose main file is ``path`` (``results/rollouts.jsonl``). Raises StoreError."""
        rollouts = cls(path)
        rollouts._records  # noqa: B018 - what is not there is said at once
        return rollouts

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """One row per planned rollout: ``status`` (scored, masked, failed, missing), ``reward`` (Float64), and costs.

        ``reward`` has a number where ``status`` is scored and nowhere else, so its mean is the mean of what was
        measured. Also ``mask_sample``, ``failure_kind``, ``termination_reason``, ``steps``, ``tool_calls``, tokens,
        ``seconds``, ``started_at``, and a ``reward.<name>`` column per component.

        Columns after the three ids: string ``task_id``, ``agent``, ``environment``, ``run``; category ``status``,
        ``failure_kind``, ``termination_reason``; Float64 ``reward``, ``seconds``; boolean ``mask_sample``; Int64
        ``steps``, ``tool_calls``, ``undeclared_calls``, ``malformed_calls``, ``failed_calls``, ``input_tokens``,
        ``output_tokens``, ``total_tokens``; datetime64[us, UTC] ``started_at``.
        """
        from gymkit.frames import rewards

        return rewards.frame(self._records)

    @cached_property
    def masks(self) -> pd.DataFrame:
        """One row per result: ``mask_sample`` (boolean), ``failure_kind``, ``failure_reason``, recorded ``reward``.

        Columns after the three ids: boolean ``mask_sample``; category ``failure_kind``; string ``failure_reason``;
        Float64 ``reward``.
        """
        from gymkit.frames import masks

        return masks.frame(self._records)

    @cached_property
    def trajectories(self) -> pd.DataFrame:
        """One row per item of every conversation, task first: ``kind``, ``role``, ``name``, ``text``, ``arguments``…

        Columns after the three ids: Int64 ``item_index``, ``step``; category ``origin``, ``kind``, ``role``; string
        ``name``, ``text``, ``arguments``, ``call_id``; boolean ``executed``.
        """
        from gymkit.frames import trajectories

        return trajectories.frame(self._records)

    @cached_property
    def tool_calls(self) -> pd.DataFrame:
        """One row per tool call: ``name``, ``arguments``, ``output``, ``executed`` (by us), ``error``, ``seconds``.

        Columns after the three ids: Int64 ``item_index``, ``step``; string ``name``, ``arguments``, ``call_id``,
        ``output``; boolean ``executed``; category ``error``; Float64 ``seconds``.
        """
        from gymkit.frames import tool_calls

        return tool_calls.frame(self._records)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """One row per failed attempt: ``failure_class``, ``failure_kind``, ``message``, ``terminal``, ``seconds``.

        Columns after the three ids: category ``failure_class``, ``failure_kind``; string ``message``, ``run``; boolean
        ``terminal``; Float64 ``seconds``; datetime64[us, UTC] ``started_at``.
        """
        from gymkit.frames import failures

        return failures.frame(self._records)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """One row per task: Int64 ``task_index``, string ``task_id``, ``prompt``, Int64 ``tools``, its other fields."""
        from gymkit.frames import tasks

        return tasks.frame(self._records.tasks())

    @cached_property
    def conversations(self) -> pd.DataFrame:
        """With simulated users: one row per message: ``turn``, ``role``, ``text``, ``tool``, ``arguments``…

        Columns after the three ids: Int64 ``message_index``, ``turn``; category ``role``; string ``text``, ``tool``,
        ``arguments``, ``call_id``.
        """
        from gymkit.frames import conversations

        return conversations.frame(self._records)

    @cached_property
    def invocations(self) -> pd.DataFrame:
        """One row per activation of an agent, or per time a model spoke to a simulated user: tokens, ``seconds``…

        Columns after the three ids: Int64 ``sequence``, ``input_tokens``, ``output_tokens``, ``model_calls``,
        ``tool_calls``; category ``role``, ``termination_reason``, ``status``, ``error``; string ``model``,
        ``invocation_id``, ``parent_invocation_id``; Float64 ``seconds``.
        """
        from gymkit.frames import invocations

        return invocations.frame(self._records)

    @cached_property
    def model_calls(self) -> pd.DataFrame:
        """One row per recorded call of a model: ``invocation_id``, ``model``, ``status_code``, tokens, ``seconds``…

        Columns after the three ids: Int64 ``call_index``, ``status_code``, ``input_tokens``, ``output_tokens``,
        ``reasoning_tokens``, ``cached_tokens``, ``total_tokens``; string ``invocation_id``, ``server``, ``model``,
        ``model_call_id``, ``response_id``; category ``dialect``, ``error_category``, ``finish_reason``,
        ``response_status``, ``response_source``; Float64 ``seconds``, ``seconds_to_first_token``; datetime64[us, UTC]
        ``started_at``.
        """
        from gymkit.frames import model_calls

        return model_calls.frame(self._records)

    @cached_property
    def turns(self) -> pd.DataFrame:
        """One row per turn of an agent: ``question`` (what stood before the model), ``answer``, ``reasoning``…

        Columns after the three ids: string ``invocation_id``, ``question``, ``answer``, ``reasoning``,
        ``model_call_id``; Int64 ``turn``, ``tool_calls``, ``model_calls``; boolean ``resolved``;
        datetime64[us, UTC] ``started_at``.
        """
        from gymkit.frames import turns

        return turns.frame(self._records)

    @cached_property
    def gaps(self) -> pd.DataFrame:
        """One row per thing that the evidence does not say: ``source``, ``code``, ``invocation_id``, ``detail``.

        Columns after the three ids: category ``source``, ``code``; string ``invocation_id``, ``detail``.
        """
        from gymkit.frames import gaps

        return gaps.frame(self._records)

    def health(self, ignore: Sequence[str] = ()) -> Health:
        """Whether the evidence is sound, by NeMo Gym's checks less ``ignore``: ``.frame``, ``.findings``, ``.write()``.

        A row whose evidence cannot tell is ``unobserved``, never healthy. Raises ConfigError for a check that is none.
        """
        from gymkit.collect.health import examine
        from gymkit.sdk.health import Health

        return Health(examine(self.path, ignore))

    def to_training(self) -> Training:
        """The tokens that the policy wrote, for a trainer: ``.frame``, ``.to_dataset()``, and why others ``.refused``.

        A rollout is refused whole when it has no reward, or when a word of it was not written by the policy or its
        token ids were not recorded (``token_ids=True`` of the model asks for them).
        """
        from gymkit.frames import training
        from gymkit.sdk.training import Training

        return Training(*training.frames(self._records, self.rewards))

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """With simulated users: how each simulation ended, its ``warnings``, its scorer, and the verdict.

        Columns after the three ids: category ``probe_type``, ``locale``, ``status``, ``failure_class``,
        ``failure_attribution``, ``scorer``, ``scorer_state``, ``failure_kind``; string ``persona_name``,
        ``failure_detail``, ``warnings``; Int64 ``turns``, ``tool_calls``; boolean ``early_stop``,
        ``retrieval_degraded``, ``scorer_passed``, ``scenario_completed``, ``mask_sample``; Float64 ``reward``.
        """
        from gymkit.frames import outcomes

        return outcomes.frame(self._records)

    @cached_property
    def audit(self) -> pd.DataFrame:
        """With simulated users: one row per check of the user, ``status`` (kept, broken, unknown) and the evidence.

        Columns after the three ids: category ``check``, ``status``, ``by``; boolean ``masks``; Int64 ``turn``; string
        ``quote``, ``reason``.
        """
        from gymkit.frames import audit

        return audit.frame(self._records)

    @property
    def problems(self) -> list[Problem]:
        """Lines that could not be read as they stand, with file and line; grows as frames are read."""
        return self._records.problems

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration that the run's fingerprint stands for; empty for NeMo Gym's runs, which record none."""
        return self._records.config()

    def record(self, task: int, rollout: int = 0) -> dict[str, Any]:
        """The whole row of one rollout: its result, or else its last failed attempt. Raises StoreError."""
        return self._records.record(int(task), int(rollout))

    def conversation(self, task: int, rollout: int = 0) -> Transcript:
        """One rollout's conversation, readable in the cell and as text. Raises StoreError."""
        from gymkit.frames import tool_calls, trajectories
        from gymkit.views.transcript import Transcript

        self._records.check_planned(int(task), int(rollout))
        keys = [(int(task), int(rollout))]
        return Transcript(trajectories.frame(self._records, keys), tool_calls.frame(self._records, keys))

    def view(self, query: str = "") -> Browser:
        """Look through the rollouts: a table to sort and filter, and beside it the conversation of the open one.

        ``query`` is a filter over the columns of ``rewards``, as ``DataFrame.query`` reads it. The view's
        ``selection`` and ``matches`` are frames for the next cell; ``select(task, rollout)`` moves it. Raises
        ConfigError for a query that cannot be evaluated.
        """
        return reading.browse(self, query)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the run as one HTML file to send around. Raises StoreError when it cannot be written.

        It needs no network and no script, and stays under 5 MB: of more than 1,000 rollouts the worst are listed, and
        long conversations are cut; both are said there.
        """
        reading.write_report(self, self._records, path)

    def summary(self) -> Summary:
        """Denominators first, then means with intervals, pass@k and pass^k; ``.frame`` has them as rows."""
        from gymkit import stats

        return stats.summary(self.rewards)

    def by(self, *columns: str) -> pd.DataFrame:
        """Slice the rewards by ``columns`` (of ``rewards`` or ``tasks``), each with its denominators and interval.

        Returns ``columns``, expected, scored, masked, failed, missing, tasks (Int64), mean, low, high, lower_bound,
        upper_bound (Float64), method, note (string). Raises ConfigError for a column that is not there.
        """
        from gymkit import stats

        own = [name for name in columns if name not in self.rewards and name in self.tasks]
        named = self.tasks[["task_index", *own]]
        return stats.by(self.rewards.merge(named, on="task_index", how="left") if own else self.rewards, *columns)

    def compare(self, baseline: Rollouts, *, cluster: str | None = None) -> Comparison:
        """Compare with ``baseline``, task by task, repeats averaged: difference, interval, test, wins, losses, flips.

        ``cluster`` names a column of ``rewards`` whose groups are the independent units, where tasks are not.
        Raises ConfigError when the runs have no task in common.
        """
        from gymkit import stats

        if not isinstance(baseline, Rollouts):
            raise ConfigError(f"compare needs the Rollouts of a baseline, not {baseline!r:.80}: gk.Rollouts.read(path)")
        names = (self.title, baseline.title) if self.title != baseline.title else (str(self.path), str(baseline.path))
        return Comparison(stats.compare(self.rewards, baseline.rewards, names=names, cluster=cluster), self, baseline)

    @property
    def plot(self) -> Plots:
        """The plots: ``plot.rewards()``, ``tasks()``, ``pass_at_k()``, ``forest(baseline)``, ``costs()``."""
        return Plots(self)

    def failures_by_cause(self) -> pd.DataFrame:
        """Failed attempts grouped by class, kind and cause, the most frequent first, with one example each."""
        from gymkit import stats

        return stats.failures_by_cause(self.failures)

    async def arerun(
        self, chosen: pd.DataFrame | pd.Series[bool], *, env: Env | None = None, agent: Agent | None = None
    ) -> Rollouts:
        """Run the ``chosen`` rollouts again, and no others, and return the run as it then is.

        Parameters
        ----------
        chosen:
            Rows of ``rewards`` (any frame with ``task_index`` and ``rollout_index``), or a boolean mask over
            ``rewards``. Their results, if any, move to the failures sidecar as ``set_aside``, so nothing is lost.
        env, agent:
            Where and whom; needed for a run that was read from disk. Other settings than the run's are refused.

        Raises ConfigError without ``env`` and ``agent``, and what ``Env.rollouts`` raises.
        """
        import pandas as pd

        rows = chosen if isinstance(chosen, pd.DataFrame) else self.rewards[chosen]
        keys = frozenset(zip(map(int, rows["task_index"]), map(int, rows["rollout_index"]), strict=True))
        there, driven = self._made_by or (None, None)
        env, agent = env or there, agent or driven
        if env is None or agent is None:
            raise ConfigError(
                f"{self.path} was read from disk: rerun(chosen, env=…, agent=…) says where and whom to run"
            )
        return await env.arollouts(
            agent,
            output=self.path,
            repeats=self.config.get("num_repeats", 1),
            limit=self.config.get("tasks", {}).get("rows"),
            params=self.config.get("responses_create_params"),
            resume=True,
            again=keys,
        )

    rerun = bridge.twin(arerun)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def title(self) -> str:
        """What was run: environment and agent where the run says so, else the file."""
        environment, agent = self.config.get("environment"), self.config.get("agent_ref", {}).get("name")
        return f"{environment} × {agent}" if environment and agent else str(self.path)

    @property
    def _unread(self) -> str:
        """That lines were left out, for those who look at the numbers only."""
        count = len([problem for problem in self.problems if not problem.blank])
        lines = "1 line" if count == 1 else f"{count} lines"
        return f"; {lines} not read as written: .problems" if count else ""

    def __repr__(self) -> str:
        found = self.summary()
        count = {name: int(found[name].value) for name in ("scored", "expected", "failed", "masked", "missing")}
        missing = f", {count['missing']} missing" if count["missing"] else ""
        counts = (
            f"{count['scored']} of {count['expected']}, {count['failed']} failed, {count['masked']} masked{missing}"
        )
        return f"<Rollouts {self.title}: {counts}, reward {found['mean']}{self._unread}>"

    def _repr_html_(self) -> str:
        from gymkit.views.html import escape

        summary = self.summary()._repr_html_()  # reads the files, which finds their problems
        return f"<p><b>{escape(self.title)}</b> <code>{escape(self.path)}</code>{escape(self._unread)}</p>{summary}"
