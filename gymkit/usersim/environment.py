"""``nemo_user_sim``, the environment server: a simulated user and an assistant talk until the episode is over.

This server seats the two, lets each role speak when the episode asks for it, runs the tool loop through the episode's
own runtime, dismisses the agents, and has the finished conversation verified. Whose fault a failure was decides what
becomes of it: the assistant's own mistakes are measured, everybody else's are failures without a reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import Field

from gymkit.servers.environment import EnvironmentConfig, EnvironmentServer
from gymkit.servers.episode import Episode, EpisodeFailed
from gymkit.servers.participant import Player, Room
from gymkit.servers.route import CookieJar, Route, close_all
from gymkit.usersim.cast import Cast, participant_failed
from gymkit.usersim.invocation import Listener, mark_end, spread_observations
from gymkit.usersim.package import PackageRuntime
from gymkit.usersim.retrieval import Embedder
from gymkit.usersim.runtime import PARTICIPANTS, PROTOCOL, EpisodeRuntime, Role
from gymkit.usersim.task import UserSimTask
from gymkit.wire.trajectory import OBSERVATIONS

COPIED = ("reward", "mask_sample", "failure_kind", "failure_reason", "reward_components")
"""What the verifier says that is repeated at the top of a row."""


class NemoUserSimConfig(EnvironmentConfig):
    """Settings, by NeMo Gym's names."""

    default_episode_timeout_seconds: float | None = Field(1800.0, gt=0, allow_inf_nan=False)
    """Seconds that an episode may take once it has begun."""
    actor_call_timeout_seconds: float = Field(300.0, gt=0, allow_inf_nan=False)
    """Seconds that one call of one role may take."""


class Stage(Protocol):
    """Opens the runtime of an episode."""

    async def open(self, row: Mapping[str, Any], cast: Cast) -> EpisodeRuntime:
        """The runtime of ``row``, whose roles ``cast`` plays."""

    async def aclose(self) -> None:
        """Let go of connections."""


class PackageStage:
    """Episodes of the package ``usersim``.

    ``names`` are the models' names by role, which identify trajectories and whom ``identity_disclosure`` grades;
    ``budgets`` are their ``max_tokens``; ``embedder`` embeds what ``financial_services`` searches for.
    """

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        *,
        budgets: Mapping[str, int] | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.names = dict(names or {})
        self.budgets = dict(budgets or {})
        self.embedder = embedder

    async def open(self, row: Mapping[str, Any], cast: Cast) -> EpisodeRuntime:
        """See Stage."""
        return await PackageRuntime.open(
            row, names=self.names, budgets=self.budgets, simulate=cast.simulate, embedder=self.embedder
        )

    async def aclose(self) -> None:
        """Let go of the connections to the embeddings endpoint."""
        if self.embedder is not None:
            await self.embedder.aclose()


class NemoUserSim(EnvironmentServer[UserSimTask]):
    """The server. ``user`` and ``assistant`` are agents with sessions, ``models`` the model servers by role.

    All of them are asked under the rollout's name, so that their models record what they are asked, as at NeMo Gym.
    ``observed`` says whether a row has the assistant's own report at its top: a collector then makes the turns of
    ``ng_trajectory`` and the sums of ``ng_perf`` from the assistant's calls, and from nobody else's. ``training`` says
    whether the assistant is asked under ``/training-token-capture/``, so that its model records token ids.
    """

    implementation = "nemo_user_sim"
    Task = UserSimTask

    def __init__(
        self,
        name: str,
        config: NemoUserSimConfig,
        *,
        resources: Route,
        user: Route,
        assistant: Route,
        models: Mapping[Role, Route],
        stage: Stage,
        listener: Listener | None = None,
        observed: bool = False,
        training: bool = False,
    ) -> None:
        super().__init__(name, config)
        self.metrics = self.resources = resources
        self.agents: dict[Role, Route] = {"user": user, "assistant": assistant}
        self.models = dict(models)
        self.stage = stage
        self.listener = listener
        self._observed = observed
        self._training = training
        self._call_timeout = config.actor_call_timeout_seconds

    async def play(self, episode: Episode[UserSimTask]) -> dict[str, Any]:
        """Seat everybody, let them talk, dismiss them, verify."""
        task = episode.task
        with episode.stage("seed"):
            room = await Room.open(self.resources, episode, task.model_dump(exclude_unset=True))
        players = {role: await self._seat(role, episode) for role in PARTICIPANTS}
        path = episode.path("/v1/responses")
        cast = Cast(
            players, self.models, task.role_request_params, self._call_timeout, path, self.listener, self._training
        )
        runtime = await self._open(episode, cast)
        ended = await cast.play(runtime)
        result = await runtime.finalize()
        reason = ended or _how_it_ended(result)
        mark_end(cast.invocations, None if ended else await runtime.evidence(), reason)
        with episode.stage("cleanup"):
            await _dismiss(players, cast, room)
        with episode.stage("verification"):
            verified = await room.verify(_verify_body(episode, task, result, cast))
        episode.at_end("resources session, first attempt", room.closing.now)
        return {**_row(verified, result, cast, reason), **self._seen(players["assistant"])}

    def _seen(self, assistant: Player) -> dict[str, Any]:
        report = assistant.receipt.get("agent_observations") if self._observed else None
        return {} if report is None else {OBSERVATIONS: report}

    async def _seat(self, role: Role, episode: Episode[UserSimTask]) -> Player:
        try:
            return await Player.open(self.agents[role], episode)
        except Exception as error:
            raise participant_failed(role, error) from error

    async def _open(self, episode: Episode[UserSimTask], cast: Cast) -> EpisodeRuntime:
        try:
            runtime = await self.stage.open(episode.task.resolved_row, cast)
        except Exception as error:
            reason = f"the episode cannot be built: {type(error).__name__}: {error}"
            raise EpisodeFailed(reason, terminal=True, kind="usersim:not_playable", stage="agent") from error
        episode.at_end("conversation", runtime.close)
        return runtime

    async def aclose(self) -> None:
        """Let go of the connections."""
        await close_all([self.resources, *self.agents.values(), *self.models.values()])
        await self.stage.aclose()


async def _dismiss(players: Mapping[Role, Player], cast: Cast, room: Room) -> None:
    """Close the agents' sessions, the assistant's first; what they report goes to the invocations."""
    for role in reversed(PARTICIPANTS):
        receipt = await players[role].close()
        spread_observations(cast.invocations, role, players[role].route.name, receipt.get("agent_observations"))
        if (cookies := receipt.get("resources_cookies")) is not None:
            room.jar = CookieJar(cookies)


def _verify_body(
    episode: Episode[UserSimTask], task: UserSimTask, result: Mapping[str, Any], cast: Cast
) -> dict[str, Any]:
    return {
        "episode_id": episode.id.model_dump(),
        "task_id": episode.task_id.model_dump(),
        "verification_input": {
            "resolved_row": task.resolved_row,
            "usersim_result": result,
            "invocations": [each.fields() for each in cast.invocations],
            "episode_interaction_protocol": PROTOCOL,
        },
    }


def _row(verified: Mapping[str, Any], result: dict[str, Any], cast: Cast, reason: str) -> dict[str, Any]:
    said = [each for each in cast.invocations if each.role == "assistant"]
    return {
        **{name: verified.get(name) for name in COPIED},
        "verification": {**verified, "usersim_result": None},
        "usersim_result": result,
        "invocations": [each.fields() for each in cast.invocations],
        "episode_interaction_protocol": PROTOCOL,
        "gymkit": {"steps": len(said), "asked": cast.asked, "termination_reason": reason},
    }


def _how_it_ended(result: Mapping[str, Any]) -> str:
    metadata = result.get("conversation_metadata")
    outcome = result["simulation_outcome"]
    for told in (metadata if isinstance(metadata, Mapping) else {}, outcome):
        if isinstance(reason := told.get("termination_reason"), str) and reason:
            return reason
    if outcome.get("early_stop"):
        return "usersim_early_stop"
    return "usersim_completed" if result["conversation_status"] else "usersim_incomplete"
