"""A whole house in one process: scripted models, two agents, the resources server and the environment server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any

from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route
from gymkit.testing import usersim as scripted
from gymkit.usersim.environment import NemoUserSim, NemoUserSimConfig, PackageStage, Stage
from gymkit.usersim.evaluation import Evaluator
from gymkit.usersim.package_evaluator import PackageEvaluator
from gymkit.usersim.preparation import prepared_rows
from gymkit.usersim.resources import NemoUserSimResources, NemoUserSimResourcesConfig
from gymkit.usersim.retrieval import Embedder
from gymkit.usersim.task import materialized
from gymkit.wire import codec

NAMES = {"assistant": scripted.MODEL_NAME, "user": "scripted-user", "judge": "judge", "summary": "summary"}


@cache
def all_rows(max_turns: int = 3) -> tuple[bytes, ...]:
    """One row of each probe, as JSON so that no test can change another's."""
    rows = prepared_rows(assistant=scripted.MODEL_NAME, max_turns=max_turns)
    return tuple(codec.dumps(row) for row in rows)


@cache
def _row(probe: str, max_turns: int, locale: str, extra: str) -> bytes:
    given: dict[str, Any] = codec.loads(extra.encode())
    rows = prepared_rows(probe, locale=locale, max_turns=max_turns, assistant=scripted.MODEL_NAME, **given)
    return codec.dumps(rows[0])


def row_of(probe: str, *, max_turns: int = 2, locale: str = "en_US", **extra: Any) -> dict[str, Any]:
    """A fresh copy of a prepared row of ``probe``."""
    row: dict[str, Any] = codec.loads(_row(probe, max_turns, locale, codec.dumps(extra).decode()))
    return row


def model(name: str, brain: Any) -> ScriptedModel:
    return ScriptedModel(name, ScriptedModelConfig(), script=Script(brain))


def agent(name: str, server: ServerApp, receipts: float = 10) -> SimpleAgent:
    config = SimpleAgentConfig(max_steps=1, execute_tools=False, session_close_retry_window_seconds=receipts)
    return SimpleAgent(name, config, Route.to_app(server.name, server))


class House:
    """The servers; every part can be replaced by another app."""

    def __init__(
        self,
        *,
        user: Any = scripted.user,
        assistant: Any = None,
        support: Any = None,
        judge: Any = None,
        user_app: Any = None,
        assistant_app: Any = None,
        config: Mapping[str, Any] | None = None,
        resources_config: Mapping[str, Any] | None = None,
        evaluator: Evaluator | None = None,
        stage: Stage | None = None,
        embedder: Embedder | None = None,
        names: Mapping[str, str] = NAMES,
        roles: Mapping[str, Any] | None = None,
        receipts: float = 10,
    ) -> None:
        helper = model("support_model", support or scripted.support())
        judging = model("judge_model", judge) if judge else helper
        self.resources = NemoUserSimResources(
            "usersim_resources",
            NemoUserSimResourcesConfig(**(resources_config or {})),
            evaluator=evaluator or PackageEvaluator(),
            judge=Route.to_app("judge", judging),
        )
        policy = model("policy", assistant or scripted.assistant())
        user_agent = user_app or agent("user_agent", model("user_model", user), receipts)
        assistant_agent = assistant_app or agent("assistant_agent", policy, receipts)
        self.agents = (user_agent, assistant_agent)
        own = {role: model(f"{role}_model", brain) for role, brain in (roles or {}).items()}
        self.environment = NemoUserSim(
            "usersim_environment",
            NemoUserSimConfig(**(config or {})),
            resources=Route.to_app("resources", self.resources),
            user=Route.to_app("user_agent", user_agent),
            assistant=Route.to_app("assistant_agent", assistant_agent),
            models={
                role: Route.to_app(f"{role}_model", own.get(role, helper))
                for role in ("judge", "summary", "tool_simulation")
            },
            stage=stage or PackageStage(names, embedder=embedder),
        )
        self.route = Route.to_app("environment", self.environment)

    async def arun(self, row: Mapping[str, Any], attempt: int = 0, name: str = "0-0") -> dict[str, Any]:
        task = materialized(row)
        body = {"episode_id": {"rollout_id": name, "attempt": attempt}, "task": task}
        reply = await self.route.post("/run", body)
        told: dict[str, Any] = reply.expect_ok().json_object()
        assert (told["result"] is None) != (told["failure"] is None)
        return told

    def run(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The whole reply."""

        async def go() -> dict[str, Any]:
            try:
                return await self.arun(row)
            finally:
                await self.environment.aclose()

        return asyncio.run(go())

    def result(self, row: Mapping[str, Any]) -> dict[str, Any]:
        told = self.run(row)
        assert told["failure"] is None, told["failure"]
        result: dict[str, Any] = told["result"]
        return result

    def failure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        told = self.run(row)
        assert told["result"] is None, told["result"]
        failure: dict[str, Any] = told["failure"]
        return failure
