"""The package ``usersim``: loaded when it is first needed, hosted through its own runtime for episodes of a host."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gymkit.errors import MissingExtra
from gymkit.usersim.retrieval import Embedder, Retrieval
from gymkit.usersim.runtime import (
    Activation,
    ContractError,
    Failure,
    Message,
    RoleUnavailable,
    Spoken,
    answered,
    failed_result,
)
from gymkit.wire import codec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ALIASES = {
    "user_model": "user",
    "assistant_model": "assistant",
    "judge_model": "judge",
    "summary_model": "summary",
}
"""What the package calls the four roles that speak in activations, and what we do."""

_DECODED = ("conversation_messages", "conversation_metadata", "simulation_outcome", "simulation_traces")


@cache
def load() -> Any:
    """The package's module for hosts. It takes seconds: call it in a thread. Raises MissingExtra."""
    try:
        from usersim.engine import external
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "usersim":
            raise
        raise MissingExtra("usersim", "usersim", "NeMo User Sim's simulated users") from None
    return external


@cache
def revision() -> str:
    """The revision of the installed package as 40 hex digits: its commit where that is known, else of its files.

    The package on PyPI records no commit, so rows made with it could not say what made them. Raises MissingExtra.
    """
    load()
    from usersim.engine.core.provenance import get_code_sha

    if commit := get_code_sha():
        return str(commit)
    record = metadata.distribution("usersim").read_text("RECORD") or ""
    lines = sorted(line for line in record.splitlines() if line.startswith("usersim/") and ".pyc" not in line)
    return hashlib.sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()


class PackageRuntime:
    """An episode of the package. Make one with ``await PackageRuntime.open(...)``."""

    def __init__(self, row: Mapping[str, Any], episode: Any, retrieval: Retrieval) -> None:
        self._row = row
        self._episode = episode
        self._retrieval = retrieval
        self._failed: dict[str, Any] | None = None
        self.probe_type: str = episode.probe_type

    @classmethod
    async def open(
        cls,
        row: Mapping[str, Any],
        *,
        names: Mapping[str, str],
        budgets: Mapping[str, int],
        simulate: Callable[[list[Message], Mapping[str, Any]], Awaitable[Spoken]],
        embedder: Embedder | None,
    ) -> PackageRuntime:
        """An episode of the resolved ``row``.

        ``names`` are the names of the models by role and ``budgets`` their ``max_tokens``; ``simulate`` asks the model
        that plays the tools, ``embedder`` embeds. Raises MissingExtra, and what the package raises for a row that it
        cannot play (ValueError, KeyError, …).
        """
        retrieval = Retrieval(embedder, row)
        episode = await asyncio.to_thread(_build, row, names, budgets, simulate, retrieval)
        await retrieval.ready(episode.probe)
        return cls(row, episode, retrieval)

    async def advance(self, spoken: Spoken | None = None) -> Activation | None:
        """See EpisodeRuntime."""
        external = load()
        recorded = None if spoken is None else _recorded(external, spoken)
        try:
            event = await self._episode.advance(recorded)
        except external.EpisodeContractError as error:
            raise ContractError(str(error)) from error
        if isinstance(event, external.EpisodeLifecycleComplete):
            return None
        return Activation(
            id=event.activation_id,
            role=event.role,
            messages=tuple(answered(list(event.messages))),
            parameters=event.parameters,
            tools=event.tools,
            continues_turn=event.continues_turn,
        )

    async def tool_result(self, call_id: str) -> str:
        """See EpisodeRuntime."""
        try:
            return str(await self._episode.tool_result(call_id))
        except load().EpisodeContractError as error:
            raise ContractError(str(error)) from error

    async def evidence(self) -> dict[str, Any]:
        """See EpisodeRuntime."""
        found: dict[str, Any] = await self._episode.evidence()
        return found

    async def fail(self, failure: Failure, messages: list[Message]) -> None:
        """See EpisodeRuntime."""
        await self._episode.close()
        self._failed = failed_result(self._row, failure, messages)

    async def finalize(self) -> dict[str, Any]:
        """See EpisodeRuntime."""
        if self._failed is not None:
            return self._retrieval.told(self._failed)
        row: dict[str, Any] = await self._episode.finalize()
        for name in _DECODED:
            if isinstance(text := row.get(name), str):
                row[name] = codec.loads(text.encode("utf-8", "surrogatepass"))
        row["conversation_messages"] = answered(row["conversation_messages"])
        return self._retrieval.told(row)

    async def close(self) -> None:
        """See EpisodeRuntime."""
        await self._episode.close()


def _build(
    row: Mapping[str, Any],
    names: Mapping[str, str],
    budgets: Mapping[str, int],
    simulate: Callable[[list[Message], Mapping[str, Any]], Awaitable[Spoken]],
    retrieval: Retrieval,
) -> Any:
    external = load()
    models: dict[str, Any] = {
        alias: external.HostRoleModel(names.get(role, alias), budgets.get(role)) for alias, role in ALIASES.items()
    }
    models["api_response_model"] = _ToolModel(names.get("tool_simulation", "api_response_model"), simulate)
    models[retrieval.alias] = retrieval
    return external.ProbeEpisodeRuntime.from_resolved_row(row, models=models)


def _recorded(external: Any, spoken: Spoken) -> Any:
    usage = None if spoken.usage is None else external.ActivationUsage(*spoken.usage)
    return external.ActivationResult(spoken.activation, spoken.message, usage)


class _ToolModel:
    """The model that plays the tools, as the package calls a model of its own."""

    def __init__(self, name: str, ask: Callable[[list[Message], Mapping[str, Any]], Awaitable[Spoken]]) -> None:
        self.model_name = name
        self._ask = ask

    async def acompletion(self, messages: list[Any], **parameters: Any) -> SimpleNamespace:
        """One call. Raises RoleUnavailable."""
        try:
            spoken = await self._ask([plain(message) for message in messages], parameters)
        except Exception as error:
            raise RoleUnavailable("tool_simulation", error) from error
        return completion(spoken)


def plain(message: Any) -> Message:
    """A message object of the package as a chat message."""
    role = getattr(message, "role", "user")
    content = getattr(message, "content", "") or ""
    if not isinstance(content, str):
        content = "".join(part.get("text", "") for part in content)
    return {"role": str(getattr(role, "value", role)), "content": content}


def completion(spoken: Spoken) -> SimpleNamespace:
    """What a model said, in the shape that the package reads."""
    message = SimpleNamespace(
        content=spoken.message["content"],
        reasoning_content=spoken.message.get("reasoning_content"),
        tool_calls=spoken.message.get("tool_calls"),
    )
    read, written = spoken.usage or (0, 0)
    usage = SimpleNamespace(input_tokens=read, output_tokens=written) if spoken.usage else None
    return SimpleNamespace(message=message, usage=usage)
