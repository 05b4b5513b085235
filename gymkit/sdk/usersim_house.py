"""The servers behind a ``UserSimEpisode``, all in this process: two agents, model servers, environment, resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from gymkit.agents.loop import LoopAgent
from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.collect.tokens import TokenRules
from gymkit.errors import ConfigError
from gymkit.sdk.agents import RemoteAgent
from gymkit.sdk.models import Model
from gymkit.servers.agent import AgentServer
from gymkit.servers.app import ServerApp
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.usersim.environment import NemoUserSim, NemoUserSimConfig, PackageStage, Stage
from gymkit.usersim.evaluation import Evaluator
from gymkit.usersim.invocation import Listener
from gymkit.usersim.package_evaluator import PackageEvaluator
from gymkit.usersim.resources import NemoUserSimResources, NemoUserSimResourcesConfig
from gymkit.usersim.retrieval import Embedder
from gymkit.usersim.runtime import Role
from gymkit.usersim.scenario import REVISION, Scenario
from gymkit.usersim.scenario_evaluator import ScenarioEvaluator
from gymkit.usersim.scenario_runtime import ScenarioStage

if TYPE_CHECKING:
    from gymkit.sdk.usersim import UserSimEpisode

RETRY_WINDOW = 10.0
"""Seconds that an agent keeps what it told at a session's end: in one process no reply gets lost, so few will do."""

Answering = Model | Callable[[dict[str, Any]], Any]
"""A model, or a function of a Responses request that says what a scripted model may say."""

Assistant = Model | RemoteAgent | AgentServer[Any] | str | Callable[[dict[str, Any]], Any]
"""Whom to evaluate."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Settings of the two servers."""

    episode_timeout: float
    """Seconds that an episode may take."""
    call_timeout: float
    """Seconds that one call of a role may take."""
    audit: Literal["off", "rules", "judge"]
    """Who checks the user."""
    mask_user_faults: bool
    """Whether an episode that its user spoiled is masked."""
    usersim_revision: str | None
    """The revision whose rows are taken."""

    def settings(self) -> dict[str, Any]:
        """What results depend on."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class House:
    """The servers of one run."""

    environment: NemoUserSim
    """Plays episodes."""
    route: Route
    """How it is reached."""
    apps: tuple[ServerApp, ...]
    """All of them, to let go of."""
    tokens: TokenRules
    """What is done about the assistant's token ids where its model servers recorded them."""


def built(
    episode: UserSimEpisode,
    scenarios: Sequence[Scenario],
    listener: Listener | None = None,
    capture: Capture | None = None,
) -> House:
    """The servers of ``episode``. Raises ConfigError for a participant that cannot be one.

    ``capture`` takes the records of what the models are asked.
    """
    bounds = episode.bounds
    support = (
        None if episode.support is None else _model(episode.support, "support").server("support_model", capture=capture)
    )
    judge = None if support is None else Route.to_app("support_model", support)
    own = episode.runtime == "scenario"
    resources = NemoUserSimResources(
        "nemo_user_sim_resources",
        NemoUserSimResourcesConfig(
            usersim_revision=REVISION if own else bounds.usersim_revision,
            user_audit=bounds.audit,
            mask_user_faults=bounds.mask_user_faults,
        ),
        evaluator=_evaluator(own),
        judge=judge,
        judge_name=name_of(episode.support, "judge_model"),
    )
    resources_route = Route.to_app(resources.name, resources)
    user = _agent("nemo_user_sim_user", _model(episode.user, "user"), capture)
    assistant = _assistant(episode.assistant, resources_route, capture)
    roles: tuple[Role, ...] = ("judge", "summary", "tool_simulation")
    environment = NemoUserSim(
        "nemo_user_sim_environment",
        NemoUserSimConfig(
            default_episode_timeout_seconds=bounds.episode_timeout, actor_call_timeout_seconds=bounds.call_timeout
        ),
        resources=resources_route,
        user=Route.to_app(user.name, user),
        assistant=Route.to_app(assistant.name, assistant),
        models={} if judge is None else dict.fromkeys(roles, judge),
        stage=_stage(episode, scenarios),
        listener=listener,
        observed=capture is not None,
    )
    apps = (environment, resources, user, assistant, *([support] if support else []))
    rules = TokenRules.of(episode.assistant, opaque=assistant.opaque)
    return House(environment, Route.to_app(environment.name, environment), apps, rules)


def _evaluator(own: bool) -> Evaluator:
    return ScenarioEvaluator() if own else PackageEvaluator()


def _stage(episode: UserSimEpisode, scenarios: Sequence[Scenario]) -> Stage:
    if episode.runtime == "scenario":
        return ScenarioStage(scenarios)
    supporting = name_of(episode.support, "support")
    names = {
        "user": name_of(episode.user, "user"),
        "assistant": episode.assistant_name,
        **dict.fromkeys(("judge", "summary", "tool_simulation"), supporting),
    }
    return PackageStage(names, embedder=_embedder(episode.embedding))


def _embedder(given: Any) -> Embedder | None:
    if given is None or isinstance(given, Embedder):
        return given
    if not isinstance(given, Model) or "://" not in given.url:
        raise ConfigError("UserSimEpisode: embedding is a Model of a service with /embeddings: Model(url, name)")
    key = getattr(given.config, "api_key", None) or getattr(given.config, "openai_api_key", None)
    secret = key.get_secret_value() if key is not None else ""
    return Embedder(Route.to_url("embedding_model", given.url), given.name, api_key=secret)


def _model(given: Any, role: str) -> Model:
    if isinstance(given, Model):
        return given
    if callable(given):
        return Model.scripted(given)
    raise ConfigError(f"UserSimEpisode: {role} is a Model or a function of a request, not {given!r:.80}")


def _agent(name: str, model: Model, capture: Capture | None) -> SimpleAgent:
    server = model.server(f"{name}_model", capture=capture)
    config = SimpleAgentConfig(max_steps=1, execute_tools=False, session_close_retry_window_seconds=RETRY_WINDOW)
    return SimpleAgent(name, config, Route.to_app(server.name, server, owned=True))


def _assistant(given: Assistant, resources: Route, capture: Capture | None) -> AgentServer[Any]:
    """The assistant as an agent server whose sessions return tool calls unexecuted."""
    name = "nemo_user_sim_assistant"
    if isinstance(given, AgentServer):
        return given
    if isinstance(given, str):
        given = RemoteAgent(given)
    if isinstance(given, Model):
        return _agent(name, given, capture)
    if hasattr(given, "server"):
        return _unexecuting(given.server(resources, capture))
    return _agent(name, _model(given, "assistant"), capture)


def _unexecuting(server: AgentServer[Any]) -> AgentServer[Any]:
    """An agent of ours that would run tools itself, as one that leaves them to the simulation: a reply is a turn."""
    if isinstance(server, LoopAgent):
        server.execute_tools = False
        server.max_steps = 1
    return server


def name_of(given: Any, otherwise: str) -> str:
    """The name of a model or agent."""
    if isinstance(given, str):
        return otherwise
    name = getattr(given, "name", None)
    return name if isinstance(name, str) else otherwise


def settings_of(given: Any, otherwise: str) -> dict[str, Any] | None:
    """What results depend on of a participant."""
    if given is None:
        return None
    told = getattr(given, "settings", None)
    if callable(told):
        return dict(told())
    return (
        {"type": "url", "url": given} if isinstance(given, str) else {"type": type(given).__name__, "name": otherwise}
    )
