"""Plays a scenario: the user is just another agent, both sides are recorded, and tools run here."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from gymkit.errors import ConfigError
from gymkit.usersim.cast import Cast
from gymkit.usersim.runtime import (
    Activation,
    ContractError,
    EpisodeRuntime,
    Failure,
    Message,
    Role,
    Spoken,
    answered,
    failed_result,
)
from gymkit.usersim.scenario import DONE, PROBE, Scenario, Talk, environment_check
from gymkit.usersim.toolbox import Toolbox, parsed_arguments
from gymkit.wire import codec

MAX_CALLS: Final = 8
"""Tool calls that are run in one turn; what is asked for beyond is told so, and the assistant has to answer."""

ATTEMPTS: Final = 3
"""How often the user's model is asked for a message that is not empty."""

_OPEN: Final = "Write your first message to the assistant."
_GO_ON: Final = "Write your next message to the assistant."


class ScenarioStage:
    """Episodes of scenarios. Scenarios hold Python functions, so their rows are played where they were made."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = {each.row()["task_id"]: each for each in scenarios}

    async def open(self, row: Mapping[str, Any], cast: Cast) -> EpisodeRuntime:
        """See Stage. Raises ConfigError for a row of a scenario that is not here."""
        scenario = self._scenarios.get(row["trajectory_id"])
        if scenario is None:
            raise ConfigError(f"the scenario of row {row['trajectory_id']!r} is not among those that are played here")
        toolbox = scenario.toolbox()
        await toolbox.open()
        return ScenarioRuntime(scenario, row, toolbox)

    async def aclose(self) -> None:
        """Nothing to let go of: each episode has its own tools."""


class ScenarioRuntime:
    """One episode of a scenario."""

    probe_type: str = PROBE

    def __init__(self, scenario: Scenario, row: Mapping[str, Any], toolbox: Toolbox) -> None:
        self._scenario = scenario
        self._row = row
        self._toolbox = toolbox
        self._messages: list[Message] = []
        self._calls: list[dict[str, Any]] = []
        self._play = self._conversation()
        self._pending: str | None = None
        self._past: tuple[str, Message, Activation | None] | None = None
        self._sequence = 0
        self._turns = 0
        self._counts: Counter[str] = Counter()
        self._tokens: dict[str, Counter[str]] = {"read": Counter(), "written": Counter(), "calls": Counter()}
        self._seconds: dict[str, float] = {}
        self._began = self._asked = time.perf_counter()
        self._early = False
        self._failure: Failure | None = None
        self._failed: dict[str, Any] | None = None

    async def advance(self, spoken: Spoken | None = None) -> Activation | None:
        """See EpisodeRuntime. The same words for the same activation bring the same answer again."""
        if spoken is not None and self._past is not None and spoken.activation == self._past[0]:
            if spoken.message != self._past[1]:
                raise ContractError(f"{spoken.activation} was answered before, and differently")
            return self._past[2]
        if (spoken.activation if spoken else None) != self._pending:
            raise ContractError(
                f"{self._pending or 'the beginning'} is to be answered, not {spoken and spoken.activation}"
            )
        try:
            following = await self._play.asend(spoken)
        except StopAsyncIteration:
            following = None
        self._pending = following.id if following else "the end"
        self._asked = time.perf_counter()
        if spoken is not None:
            self._past = (spoken.activation, spoken.message, following)
        return following

    async def tool_result(self, call_id: str) -> str:
        """See EpisodeRuntime."""
        for call in self._calls:
            if call["tool_call_id"] == call_id:
                return str(call["payload"])
        raise ContractError(f"the tool call {call_id!r} was not run")

    async def evidence(self) -> dict[str, Any]:
        """See EpisodeRuntime."""
        return {
            "probe_type": PROBE,
            "assistant_tools": list(self._toolbox.tools),
            "transcript": list(self._messages),
            "conversation_metadata": {"early_stop": self._early},
            "simulation_traces": [],
            "executed_tool_calls": list(self._calls),
            "result_extras": {},
        }

    async def fail(self, failure: Failure, messages: list[Message]) -> None:
        """See EpisodeRuntime."""
        await self._play.aclose()
        self._failed = failed_result(self._row, failure, messages)

    async def finalize(self) -> dict[str, Any]:
        """See EpisodeRuntime; ``checks`` has what each check says."""
        if self._failed is not None:
            return self._failed
        messages = answered(self._messages)
        calls = tuple((each["tool_name"], each["arguments"], each["payload"]) for each in self._calls)
        checks = {} if self._failure else await self._scenario.checked(Talk(tuple(messages), calls))
        verdict = None if self._failure else await environment_check(self._toolbox, messages)
        return {
            **self._row,
            "conversation_messages": messages,
            "conversation_status": self._failure is None,
            "conversation_metadata": {"early_stop": self._early},
            "simulation_outcome": self._outcome(),
            "simulation_traces": [],
            "user_query": next((each["content"] for each in messages if each["role"] == "user"), ""),
            "num_turns": self._turns,
            "num_tool_calls": len(self._calls),
            "checks": checks if verdict is None else {**checks, "environment": verdict},
        }

    async def close(self) -> None:
        """See EpisodeRuntime."""
        await self._play.aclose()
        await self._toolbox.close()

    async def _conversation(self) -> AsyncGenerator[Activation, Spoken | None]:
        """The whole episode; yields who has to speak and is sent what they said."""
        scenario = self._scenario
        if scenario.opening is not None:
            self._messages.append({"role": "user", "content": scenario.opening})
        while True:
            while scenario.opening is None or self._turns:
                attempt = self._counts["user_attempts_in_turn"] = self._counts["user_attempts_in_turn"] + 1
                spoken = yield self._activation("user", self._seen_by_user(), continues=attempt > 1)
                text = self._heard("user_model", spoken)["content"]
                self._early = DONE in text
                if text := text.replace(DONE, "").strip():
                    self._messages.append({"role": "user", "content": text})
                if text or self._early:
                    break
                if attempt == ATTEMPTS:
                    self._failure = _silent(bool(self._turns))
                    return
            self._counts["user_attempts_in_turn"] = 0
            if self._early:
                return
            done, asked = 0, False
            while True:
                tools = self._toolbox.tools if done < MAX_CALLS else ()
                spoken = yield self._activation("assistant", self._seen_by_assistant(), tools, continues=asked)
                asked = True
                message = self._heard("assistant_model", spoken)
                self._messages.append(message)
                calls = message.get("tool_calls") or ()
                for index, call in enumerate(calls):
                    if done < MAX_CALLS:
                        await self._run(call, index)
                        done += 1
                if not calls:
                    break
            self._turns += 1
            if callable(scenario.stop) and scenario.stop(self._talk()):
                self._early = True
                return
            if self._turns >= scenario.max_turns:
                return

    async def _run(self, call: Mapping[str, Any], index: int) -> None:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        output = await self._toolbox.call(name, arguments)
        self._messages.append({"role": "tool", "content": output, "tool_call_id": call["id"]})
        parsed = parsed_arguments(arguments)
        self._calls.append(
            {
                "tool_call_id": call["id"],
                "tool_name": name,
                "arguments": parsed if isinstance(parsed, dict) else {},
                "payload": output,
                "turn_idx": self._turns,
                "call_idx": index,
            }
        )

    def _talk(self) -> Talk:
        calls = tuple((each["tool_name"], each["arguments"], each["payload"]) for each in self._calls)
        return Talk(tuple(answered(self._messages)), calls)

    def _activation(
        self, role: Role, messages: list[Message], tools: tuple[dict[str, Any], ...] = (), *, continues: bool
    ) -> Activation:
        self._sequence += 1
        handle = f"activation-{self._sequence:06d}"
        return Activation(handle, role, tuple(messages), tools=tools, continues_turn=continues)

    def _seen_by_assistant(self) -> list[Message]:
        told = self._scenario.instructions
        return [*([{"role": "system", "content": told}] if told else []), *answered(self._messages)]

    def _seen_by_user(self) -> list[Message]:
        """The user's own words are its model's, the assistant's are what it hears; tools it does not see."""
        heard = [
            {"role": "assistant" if each["role"] == "user" else "user", "content": each["content"]}
            for each in self._messages
            if each["role"] in ("user", "assistant") and each.get("content")
        ]
        system = {"role": "system", "content": self._scenario.user_prompt()}
        nudge = (
            [] if heard and heard[-1]["role"] == "user" else [{"role": "user", "content": _GO_ON if heard else _OPEN}]
        )
        return [system, *heard, *nudge]

    def _heard(self, alias: str, spoken: Spoken | None) -> Message:
        assert spoken is not None, "an activation is answered"
        read, written = spoken.usage or (0, 0)
        self._tokens["read"][alias] += read
        self._tokens["written"][alias] += written
        self._tokens["calls"][alias] += 1
        self._seconds[alias] = self._seconds.get(alias, 0.0) + time.perf_counter() - self._asked
        return {"role": "assistant", **spoken.message}

    def _outcome(self) -> dict[str, Any]:
        failure = self._failure
        return {
            "status": "failed" if failure else "ok",
            "failure_class": failure.failure_class if failure else None,
            "failure_attribution": failure.attribution if failure else None,
            "failure_detail": failure.detail if failure else "",
            "n_turns": self._turns,
            "n_tool_calls": len(self._calls),
            "warnings": [],
            "early_stop": self._early,
            "per_model_input_tokens": dict(self._tokens["read"]),
            "per_model_output_tokens": dict(self._tokens["written"]),
            "per_model_calls": dict(self._tokens["calls"]),
            "wall_clock_s_by_alias": {alias: round(seconds, 6) for alias, seconds in self._seconds.items()},
            "wall_clock_s": round(time.perf_counter() - self._began, 3),
            "provenance": codec.loads(str(self._row["usersim_provenance"]).encode()),
        }


def _silent(followup: bool) -> Failure:
    name = "user_followup_gate_exhausted" if followup else "user_query_gate_exhausted"
    return Failure(name, "user_model", f"the user's model wrote nothing, {ATTEMPTS} times", "usersim_incomplete")
