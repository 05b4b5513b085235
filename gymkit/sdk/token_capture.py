"""The block ``token_id_capture:`` of a configuration: which agents' token ids are recorded, where, and what for.

Its keys are NeMo Gym's. Those that have nothing to set here (sinks of one's own, staging on the workers of a trainer)
are known by name and refused with what to do instead: a run that was meant to record must not end without records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymkit.collect.tokens import TokenRules
from gymkit.config import Config, ServerInstance
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.wire.problems import sentences

KEY: Final = "token_id_capture"
"""The block's name, and that of an agent's own switch."""


class TokenCapture(BaseModel):
    """The block."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = False
    """Whether anything below applies."""
    all_agents: bool = False
    """Whether all agents record, and not only those with ``token_id_capture: true``."""
    dir: str | None = None
    """Where ``<rollout>.tokens.jsonl`` goes, an absolute path; by default ``model_call_capture_dir``."""
    rebuild_response: bool = True
    """Whether rows get their tokens, their response rebuilt where it does not tell all that the model said."""
    allow_unresolved_continuations: bool = False
    """Whether a rebuilt conversation may go on from words that no recorded call wrote."""
    max_mask_fraction: float | None = Field(None, ge=0, le=1)
    """The share of rows masked for want of tokens that ends a run when it is exceeded."""
    mask_fraction_min_samples: int = Field(50, gt=0)
    """Rows that are waited for before."""

    @property
    def rules(self) -> TokenRules:
        """What a collector does about tokens."""
        if not self.enabled:
            return TokenRules(rebuild=True)  # agents that have the switch of their own
        return TokenRules(
            attach=self.rebuild_response,
            rebuild=self.rebuild_response,
            loose=self.allow_unresolved_continuations,
            max_mask_fraction=self.max_mask_fraction,
            min_samples=self.mask_fraction_min_samples,
        )


_ELSEWHERE: Final[Mapping[str, tuple[tuple[Any, ...], str]]] = {
    "sink": ((None,), "tokens are written to files: set dir, and read <rollout>.tokens.jsonl from there"),
    "sink_kwargs": ((None, {}), "there is no sink of one's own to set up: set dir"),
    "lineage_store": ((None,), "which call goes on from which is read off the calls themselves: leave it out"),
    "lineage_store_kwargs": ((None, {}), "there is no lineage store to set up: leave it out"),
    "delta_records": ((None, False), "every record holds its whole prompt: leave it out"),
    "external_staging": ((None, False), "tokens are not staged on a trainer's workers: leave it out and set dir"),
    "external_staging_backend": ((None, "vllm_worker"), "tokens are not staged on a trainer's workers: leave it out"),
    "control_auth_token_env": (
        (None, "NEMO_GYM_TOKEN_CAPTURE_CONTROL_TOKEN"),
        "there is no control route without external staging: leave it out",
    ),
}
"""Keys of NeMo Gym's with nothing to set here: the values that say nothing, and what to do instead."""


def token_capture_of(config: Config) -> TokenCapture:
    """The block of ``config``. Raises ConfigError for a key or a value that cannot be used."""
    given = config.tree.get(KEY)
    if given is None:
        return TokenCapture()
    if not isinstance(given, Mapping):
        raise ConfigError(f"{KEY} must be a block of settings ({KEY}: {{enabled: true, …}}), not {given!r:.80}")
    for key, (silent, remedy) in _ELSEWHERE.items():
        if given.get(key) not in silent:
            raise ConfigError(f"{KEY}.{key} is not supported here: {remedy}")
    own = {key: value for key, value in given.items() if key not in _ELSEWHERE}
    for key in own:
        if key not in TokenCapture.model_fields:
            raise ConfigError(f"{KEY}.{key} is not a setting; {nearest(str(key), list(TokenCapture.model_fields))}")
    try:
        return TokenCapture.model_validate(own)
    except ValidationError as error:
        raise ConfigError(f"{KEY}: {'; '.join(sentences(error, own))}") from None


def directory_of(config: Config, block: TokenCapture) -> str | None:
    """Where tokens are written; None where nowhere. Raises ConfigError where somewhere is needed, or nobody records."""
    if not block.enabled:
        return None
    directory = block.dir or config.tree.get("model_call_capture_dir")
    if not directory and block.rebuild_response:
        raise ConfigError(
            f"{KEY}.enabled needs a directory: set {KEY}.dir or model_call_capture_dir to an absolute path, or "
            f"{KEY}.rebuild_response to false"
        )
    agents = config.of_type("responses_api_agents")
    if agents and not block.all_agents and not any(agent.settings.get(KEY) is True for agent in agents):
        raise ConfigError(
            f"{KEY} is enabled, but no agent records: set {KEY}: true on the agents that are to be trained, or "
            f"{KEY}.all_agents to true"
        )
    return str(directory) if directory else None


def records(agent: ServerInstance, block: TokenCapture) -> bool:
    """Whether the token ids of ``agent`` are recorded: by its own switch, or by the block."""
    return agent.settings.get(KEY) is True or (block.enabled and block.all_agents)


def switched(server: ServerInstance, block: TokenCapture) -> ServerInstance:
    """``server`` with its own switch on, where the block says so and it has one."""
    return turned(server, True) if block.enabled and block.all_agents else server


def turned(server: ServerInstance, on: bool) -> ServerInstance:
    """``server`` with its own switch ``on`` or off, where it has one."""
    settings = server.config
    if settings is None or KEY not in type(settings).model_fields:
        return server
    return replace(server, config=settings.model_copy(update={KEY: on}))
