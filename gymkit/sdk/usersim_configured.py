"""Simulated users from a configuration: the two servers, whose models are found by following references."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gymkit.collect.tasks import Tasks
from gymkit.config import Config, Implementation, ServerInstance
from gymkit.errors import ConfigError
from gymkit.sdk.token_capture import records, token_capture_of
from gymkit.servers.app import ServerApp
from gymkit.servers.route import Route
from gymkit.usersim.environment import NemoUserSim, NemoUserSimConfig, PackageStage
from gymkit.usersim.package_evaluator import PackageEvaluator
from gymkit.usersim.resources import NemoUserSimResources, NemoUserSimResourcesConfig
from gymkit.usersim.retrieval import Embedder
from gymkit.usersim.runtime import Role
from gymkit.usersim.task import materialized

NAME: Final = NemoUserSim.implementation

_AGENTS: Final = "responses_api_agents"
_RESOURCES: Final = "resources_servers"
_MODELS: Final = "responses_api_models"
_ENVIRONMENTS: Final = "environment_servers"
_MODEL_FIELDS: Final[Mapping[Role, str]] = {
    "judge": "judge_model",
    "summary": "summary_model",
    "tool_simulation": "tool_simulation_model",
}

IMPLEMENTATIONS: Final = {
    (_RESOURCES, NAME): Implementation(NemoUserSimResourcesConfig, {"probe_scorer_model": _MODELS}),
    (_ENVIRONMENTS, NAME): Implementation(
        NemoUserSimConfig,
        {
            "user_agent": _AGENTS,
            "assistant_agent": _AGENTS,
            "resources_server": _RESOURCES,
            "embedding_model": _MODELS,
            **dict.fromkeys(_MODEL_FIELDS.values(), _MODELS),
        },
    ),
}
"""What the two servers may be set to."""


def users(config: Config) -> frozenset[str]:
    """The agents that play users. Their words are not to be trained on, whatever switch they have.

    Where one of them is the assistant as well, the environment server asks it for tokens in that role alone.
    """
    fronts = [each for each in config.of_type(_ENVIRONMENTS) if each.implementation == NAME]
    return frozenset(front.references["user_agent"].name for front in fronts)


def server_of(
    config: Config,
    server: ServerInstance,
    routes: Mapping[str, Route],
    *,
    observed: bool = False,
    recording: bool = False,
) -> ServerApp:
    """The server that ``server`` describes; ``routes`` are its references. Raises ConfigError.

    ``observed`` says whether rows tell what the assistant saw of its own work, ``recording`` whether model servers
    record anything: the assistant's token ids among it, where its switch or the block ``token_id_capture`` says so.
    """
    if server.server_type == _RESOURCES:
        assert isinstance(server.config, NemoUserSimResourcesConfig)
        settings = server.config
        return NemoUserSimResources(
            server.name,
            settings,
            evaluator=PackageEvaluator(
                tokens=settings.judge_max_output_tokens, tokens_non_ascii=settings.judge_max_output_tokens_non_ascii
            ),
            judge=routes["probe_scorer_model"],
            judge_name=_model_name(config, server, "probe_scorer_model"),
        )
    assert isinstance(server.config, NemoUserSimConfig)
    names: dict[str, str] = {
        "user": _agents_model(config, server, "user_agent"),
        "assistant": _agents_model(config, server, "assistant_agent"),
        **{role: _model_name(config, server, field) for role, field in _MODEL_FIELDS.items()},
    }
    return NemoUserSim(
        server.name,
        server.config,
        resources=routes["resources_server"],
        user=routes["user_agent"],
        assistant=routes["assistant_agent"],
        models={role: routes[field] for role, field in _MODEL_FIELDS.items()},
        stage=PackageStage(names, embedder=_embedder(config, server)),
        observed=observed,
        training=recording and records(_agent(config, server, "assistant_agent"), token_capture_of(config)),
    )


def task_rows(path: Path) -> Path | list[dict[str, Any]]:
    """Prepared rows (``task_id``, ``resolved_row``) of a file as a collector takes them; any other file as it is."""
    with Tasks.from_path(path) as tasks:
        rows = [tasks.at(line.offset) for line in list(tasks.lines())]
    if not any("resolved_row" in row for row in rows):
        return path
    return [materialized(row) if "resolved_row" in row else row for row in rows]


def _embedder(config: Config, server: ServerInstance) -> Embedder:
    """The endpoint of ``embedding_model``: it is asked directly, since a model server has no ``/embeddings``."""
    model = config.server(server.references["embedding_model"].name, _MODELS)
    settings: Any = model.config
    url = getattr(settings, "base_url", None) or getattr(settings, "openai_base_url", None)
    url = url[0] if isinstance(url, list) else url
    if not isinstance(url, str):
        raise ConfigError(f"{server.name}: embedding_model {model.name} ({model.implementation}) has no base_url")
    key = getattr(settings, "api_key", None) or getattr(settings, "openai_api_key", None)
    route = Route.to_url(model.name, url)
    return Embedder(route, _name_in(model), api_key=key.get_secret_value() if key is not None else "")


def _agent(config: Config, server: ServerInstance, field: str) -> ServerInstance:
    return config.server(server.references[field].name, _AGENTS)


def _agents_model(config: Config, server: ServerInstance, field: str) -> str:
    agent = _agent(config, server, field)
    return _model_name(config, agent, "model_server") if "model_server" in agent.references else agent.name


def _model_name(config: Config, server: ServerInstance, field: str) -> str:
    return _name_in(config.server(server.references[field].name, _MODELS))


def _name_in(model: ServerInstance) -> str:
    told = model.settings.get("model") or model.settings.get("openai_model")
    return str(told or model.name)
