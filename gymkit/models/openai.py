"""``openai_model``: a service that answers ``/responses`` (OpenAI's own, or one like it), and ``/chat/completions``.

Requests in either dialect go through as they are; Messages goes by way of Responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from gymkit.errors import WireError
from gymkit.models.upstream import Upstream
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.call import ModelCall, ModelFailed
from gymkit.servers.capture import Capture
from gymkit.servers.model import ModelServer
from gymkit.wire.completions import check_completion
from gymkit.wire.dialects.tokens import without_tokens
from gymkit.wire.responses import check_response


class OpenAIModelConfig(BaseModel):
    """The settings; the names are NeMo Gym's."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    openai_base_url: str
    """The service's base URL, up to and with ``/v1``: http or https, no query string, no credentials."""
    openai_api_key: SecretStr
    """The key; empty for a service that wants none."""
    openai_model: str
    """Name of the model; it replaces the one that a client names."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Laid under each request: what the client sets wins."""
    openai_default_headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of each request."""
    max_http_attempts: int = Field(3, ge=1)
    """How often a call is tried."""
    max_concurrent_requests: int | None = Field(None, ge=1)
    """Calls in flight, at most; null: any number."""
    drop_input_reasoning_items: bool = False
    """Whether earlier reasoning is left out of the input, for services that fail on their own items."""
    upstream_timeout_secs: float = Field(1800.0, gt=0, allow_inf_nan=False)
    """Seconds that a call may take, all attempts together."""

    @field_validator("openai_base_url")
    @classmethod
    def _usable(cls, url: str) -> str:
        if problem := base_url_problem(url):
            raise ValueError(problem)
        return url.rstrip("/")


class OpenAIModel(ModelServer):
    """The server."""

    implementation = "openai_model"

    def __init__(self, name: str, config: OpenAIModelConfig, *, capture: Capture | None = None) -> None:
        super().__init__(name, capture=capture)
        self.config = config
        self._upstream = Upstream(
            f"{name} upstream",
            [config.openai_base_url],
            api_key=config.openai_api_key,
            headers=config.openai_default_headers,
            attempts=config.max_http_attempts,
            concurrency=config.max_concurrent_requests,
            timeout=config.upstream_timeout_secs,
        )

    async def responses(self, params: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """The service's Response. Raises ModelFailed."""
        body = self._body(params)
        if isinstance(params["input"], list):
            body["input"] = [without_tokens(item) for item in params["input"] if self._wanted(item)]
        response = await self._upstream.post("/responses", body, call)
        try:
            check_response(response)
        except WireError as error:
            raise invalid_reply(self._upstream.name, error) from error
        return response

    async def chat_completions(self, chat: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """The service's chat completion. Raises ModelFailed."""
        body = self._body({**chat, "messages": [without_tokens(message) for message in chat["messages"]]})
        completion = await self._upstream.post("/chat/completions", body, call)
        try:
            check_completion(completion)
        except WireError as error:
            raise invalid_reply(self._upstream.name, error) from error
        return completion

    async def aclose(self) -> None:
        """Let go of the connections to the service."""
        await self._upstream.aclose()

    def _body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.config.extra_body, **params, "model": self.config.openai_model}

    def _wanted(self, item: Mapping[str, Any]) -> bool:
        return not (self.config.drop_input_reasoning_items and item.get("type") == "reasoning")


def invalid_reply(upstream: str, error: WireError) -> ModelFailed:
    """The failure of a service whose reply has another shape than it should."""
    return ModelFailed(502, f"{upstream}: {error}", kind="invalid_response", category="exception", final=True)
