"""``single_agent_turn``: one agent has one turn in one environment, which then gives its verdict.

This server and not the agent decides when to verify: it seeds the environment, opens a session of the agent with
access to the environment's tools, gives it the task, closes the session, and has the finished trajectory verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from gymkit.environments.facts import facts_of
from gymkit.errors import WireError
from gymkit.servers.environment import EnvironmentConfig, EnvironmentServer
from gymkit.servers.episode import Episode, EpisodeFailed
from gymkit.servers.participant import Player, Room
from gymkit.servers.route import CookieJar, Route, close_all
from gymkit.wire.agent_sessions import ToolAccess
from gymkit.wire.responses import check_request
from gymkit.wire.tasks import flat_task

Transport = Literal["direct_http", "mcp"]

_PARAMS: Final = "responses_create_params"


class SingleAgentTurnConfig(EnvironmentConfig):
    """Settings, by NeMo Gym's names."""

    resources_tool_transports: tuple[Transport, ...] = ()
    """How the agent reaches the environment's tools; without any, it gets none."""


def _request(params: dict[str, Any]) -> dict[str, Any]:
    """Checked and left as it is: what an agent gets is what the task says."""
    try:
        check_request(params)
    except WireError as error:
        raise ValueError("; ".join(error.problems)) from None
    return params


class SingleAgentTurnTask(BaseModel):
    """The task. A flat one is taken too: its fields, other than the parameters, are the task data."""

    model_config = ConfigDict(extra="forbid")

    responses_create_params: Annotated[dict[str, Any], AfterValidator(_request)]
    """What the agent is asked."""
    task_data: dict[str, Any]
    """The task's fields, for the environment only."""

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get("task_data", {}), Mapping):
            return value
        fields = flat_task({key: field for key, field in value.items() if key != _PARAMS})
        return {"task_data": fields, **{key: value[key] for key in value if key == _PARAMS}}


class SingleAgentTurn(EnvironmentServer[SingleAgentTurnTask]):
    """The server. ``resources`` seeds, serves tools and verifies; ``agent`` is opened, asked once and closed."""

    implementation = "single_agent_turn"
    Task = SingleAgentTurnTask

    def __init__(self, name: str, config: SingleAgentTurnConfig, resources: Route, agent: Route) -> None:
        super().__init__(name, config)
        self.metrics = self.resources = resources
        self.agent = agent
        self._transports = config.resources_tool_transports

    async def play(self, episode: Episode[SingleAgentTurnTask]) -> dict[str, Any]:
        """Seed, let the agent have its turn, verify."""
        task = episode.task
        params = task.responses_create_params
        with episode.stage("seed"):
            room = await Room.open(self.resources, episode, task.task_data)
            accesses = [self._access(room, transport) for transport in self._transports]
        with episode.stage("agent"):
            player = await Player.open(self.agent, episode, accesses, room.seeded.get("sandbox_access"))
            response = await player.respond(params)
        with episode.stage("cleanup", response):
            receipt = await player.close()
        if (cookies := receipt.get("resources_cookies")) is not None:
            room.jar = CookieJar(cookies)
        with episode.stage("verification", response):
            verified = await room.verify({**task.task_data, "responses_create_params": params, "response": response})
            _refuse_failure(verified, response)
        episode.at_end("resources session, first attempt", room.closing.now)
        observations = receipt.get("agent_observations")
        seen = {} if observations is None else {"ng_agent_observations": observations}
        return {**verified, **seen, "gymkit": facts_of(response, observations)}

    async def aclose(self) -> None:
        """Let go of the connections."""
        await close_all([self.resources, self.agent])

    def _access(self, room: Room, transport: Transport) -> ToolAccess:
        return room.direct_http() if transport == "direct_http" else room.mcp()


def _refuse_failure(verified: Mapping[str, Any], response: dict[str, Any]) -> None:
    """A verifier whose judge failed answers 200 and says so in the body: that is no verdict."""
    if "_ng_failure_class" not in verified:
        return
    label = str(verified["_ng_failure_class"])
    raise EpisodeFailed(
        str(verified.get("failure_reason") or verified.get("_ng_failure_judge_error") or label),
        terminal=False,
        kind=str(verified.get("failure_kind") or label),
        stage="verification",
        partial_response=response,
    )
