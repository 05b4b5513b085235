"""What opens and closes a session of an agent server: who it is for, and what the agent may reach meanwhile."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gymkit.wire.tasks import EpisodeId, TaskId

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _absolute(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https", "app") or not urlsplit(url).netloc:
        raise ValueError("must be an absolute http URL")
    return url


def _unique(accesses: list[ToolAccess]) -> list[ToolAccess]:
    names = [access.name for access in accesses]
    if len(names) != len(set(names)):
        raise ValueError("the names of tool accesses must be unique")
    return accesses


class DirectHttp(BaseModel):
    """Tools behind plain routes: ``POST {base_url}/{tool}`` with JSON arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["direct_http"] = "direct_http"
    """Says which access this is."""
    name: Annotated[str, Field(pattern=_NAME)]
    """Names it within the session."""
    required: bool
    """True: an agent that cannot use it refuses the session."""
    base_url: Annotated[str, AfterValidator(_absolute)]
    """Where the tools are; ``app://name`` for a server in the agent's own process."""
    cookies: dict[str, str] = {}
    """Sent with every call: they hold the environment's session."""
    headers: dict[str, str] = {}
    """Sent with every call."""


class McpConnection(BaseModel):
    """Where an MCP server is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transport: Literal["streamable_http"] = "streamable_http"
    """The only transport there is."""
    url: Annotated[str, AfterValidator(_absolute)]
    """The server's endpoint."""
    headers: dict[str, str] = {}
    """Sent with every request; they hold the session's token."""


class Mcp(BaseModel):
    """Tools behind an MCP server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["mcp"] = "mcp"
    """Says which access this is."""
    name: Annotated[str, Field(pattern=_NAME)]
    """Names it within the session."""
    required: bool
    """True: an agent that cannot use it refuses the session."""
    connection: McpConnection
    """Where it is."""


ToolAccess = Annotated[DirectHttp | Mcp, Field(discriminator="kind")]
"""One way for an agent to reach tools."""

ToolAccesses = Annotated[list[ToolAccess], AfterValidator(_unique)]
"""Accesses whose names differ."""


class SandboxConnection(BaseModel):
    """How a sandbox is reached."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["direct"] = "direct"
    """The only kind there is."""
    provider_config_ref: str
    """The provider's configuration."""
    descriptor: Any
    """What the provider needs to find the sandbox."""


class SandboxAccess(BaseModel):
    """A sandbox that the agent may work in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connection: SandboxConnection
    """How it is reached."""
    workdir: str
    """Folder to work in."""


class SeedAgentSession(BaseModel):
    """Opens a session; the caller chooses its name, so that a lost reply does not lose the session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent_session_id: Annotated[str, Field(min_length=1)]
    """The caller's name for the session."""
    episode_id: EpisodeId
    """The episode it belongs to."""
    task_id: TaskId
    """The task it belongs to."""
    tool_accesses: ToolAccesses = []
    """What the agent may reach; laid over its configured accesses by name."""
    sandbox_access: SandboxAccess | None = None
    """Where the agent may work."""


class CloseAgentSession(BaseModel):
    """Closes a session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent_session_id: Annotated[str, Field(min_length=1)]
    """The session's name."""
    episode_id: EpisodeId
    """The episode that it was opened for."""
