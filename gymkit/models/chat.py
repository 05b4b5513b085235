"""``vllm_model``: a service that answers ``/chat/completions``, as vLLM and its many relatives do.

Chat requests go through; Responses and Messages are converted. Where the service returns token ids, they stand on the
last item of a reply (``return_token_id_information``) or in the record (``/training-token-capture/``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, SecretStr, field_validator

from gymkit.errors import WireError
from gymkit.models.foreign import ForeignSettings
from gymkit.models.openai import invalid_reply
from gymkit.models.token_ids import ASKED, MissingTokens, take_tokens
from gymkit.models.upstream import OVERFLOW, Upstream
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.call import ModelCall, ModelFailed
from gymkit.servers.capture import Capture
from gymkit.servers.http import Refused
from gymkit.servers.model import ModelServer
from gymkit.wire import codec
from gymkit.wire.completions import check_completion
from gymkit.wire.dialects.dropped import Dropped
from gymkit.wire.dialects.ids import mint
from gymkit.wire.dialects.messages_to_chat import messages_to_chat
from gymkit.wire.dialects.reply_from_chat import reply_from_chat
from gymkit.wire.dialects.reply_to_messages import reply_to_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat
from gymkit.wire.dialects.tokens import without_tokens

_SIDE_CHANNEL = ("extra_body", "chat_template_kwargs")


class ChatModelConfig(ForeignSettings):
    """The settings; the names are NeMo Gym's ``vllm_model``'s."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, protected_namespaces=())

    base_url: str | list[str]
    """The service's base URL, up to and with ``/v1``; several replicas as a list, of which a session keeps one."""
    api_key: SecretStr
    """The key; empty for a service that wants none."""
    model: str
    """Name of the model; it replaces the one that a client names."""
    return_token_id_information: bool
    """Whether replies carry token ids and logprobs; a service that returns none is then an error."""
    uses_reasoning_parser: bool
    """Whether the service tells reasoning apart; if not, it is looked for in ``<think>…</think>``."""
    uses_interleaved_reasoning: bool = True
    """Whether earlier reasoning is sent back to the model."""
    reasoning_field: Literal["both", "reasoning", "reasoning_content"] = "both"
    """Where earlier reasoning is sent; services read one of the two names, and some refuse both."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Arguments of the chat template, under those of a request."""
    extra_body: dict[str, Any] | None = None
    """Laid under each request: what the client sets wins."""
    sampling_overrides: dict[str, Any] | None = None
    """Laid over each request: the policy's sampling, whatever the client sets."""
    default_headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of each request."""
    replace_developer_role_with_system: bool = False
    """For chat templates that do not know the role ``developer``."""
    propagate_context_overflow_errors: bool = False
    """Whether a request longer than the context is an error; if not, its reply is empty and ends with ``length``."""
    max_http_attempts: int = Field(3, ge=1)
    """How often a call is tried."""
    max_concurrent_requests: int | None = Field(None, ge=1)
    """Calls in flight, at most; null: any number."""
    upstream_timeout_secs: float = Field(1800.0, gt=0, allow_inf_nan=False)
    """Seconds that a call may take, all attempts together."""

    @field_validator("base_url")
    @classmethod
    def _usable(cls, urls: str | list[str]) -> list[str]:
        urls = [urls] if isinstance(urls, str) else urls
        if not urls:
            raise ValueError("must name a URL")
        for url in urls:
            if problem := base_url_problem(url):
                raise ValueError(problem)
        return [url.rstrip("/") for url in urls]


class ChatModel(ModelServer):
    """The server."""

    implementation = "vllm_model"

    def __init__(self, name: str, config: ChatModelConfig, *, capture: Capture | None = None) -> None:
        super().__init__(name, capture=capture)
        self.config = config
        self._upstream = Upstream(
            f"{name} upstream",
            config.base_url,
            api_key=config.api_key,
            headers=config.default_headers,
            attempts=config.max_http_attempts,
            concurrency=config.max_concurrent_requests,
            timeout=config.upstream_timeout_secs,
        )

    async def responses(self, params: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """Answer by way of the service's chat."""
        params, side = _side_channel(params)
        chat = call.converted(request_to_chat(params, think_tags=self._tags))
        return await self._response(params, {**side, **chat}, call)

    async def chat_completions(self, chat: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """Answer with the service's chat completion."""
        chat, side = _side_channel(chat)
        return await self._completion({**side, **chat}, call)

    async def messages(self, body: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        """Answer by way of the service's chat."""
        params, chat, dropped = messages_to_chat(body, think_tags=self._tags)
        call.dropped += dropped
        response = await self._response(params, chat, call)
        return call.converted(reply_to_messages(response))

    async def aclose(self) -> None:
        """Let go of the connections to the service."""
        await self._upstream.aclose()

    @property
    def _tags(self) -> bool:
        return not self.config.uses_reasoning_parser

    async def _response(self, params: dict[str, Any], chat: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        completion = await self._completion(chat, call)
        return call.converted(reply_from_chat(completion, params, think_tags=self._tags))

    async def _completion(self, chat: dict[str, Any], call: ModelCall) -> dict[str, Any]:
        wanted = call.training or self.config.return_token_id_information
        body = self._body(chat, self.asked if wanted else {})
        try:
            completion = await self._upstream.post("/chat/completions", body, call)
            check_completion(completion)
        except ModelFailed as error:
            if error.kind != OVERFLOW or self.config.propagate_context_overflow_errors:
                raise
            call.made_locally(OVERFLOW)
            return _cut_short(self.config.model)
        except WireError as error:
            raise invalid_reply(self._upstream.name, error) from error
        if wanted:
            await self._take_tokens(completion, body, chat, call)
        return completion

    def _body(self, chat: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        config = self.config
        body = {
            **(config.extra_body or {}),
            **asked,
            **chat,
            **(config.sampling_overrides or {}),
            "model": config.model,
        }
        body["messages"] = [self._message(message) for message in chat["messages"]]
        if template := {**(config.chat_template_kwargs or {}), **(chat.get("chat_template_kwargs") or {})}:
            body["chat_template_kwargs"] = template
        return body

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        message = dict(without_tokens(message))
        if message["role"] == "developer" and self.config.replace_developer_role_with_system:
            message["role"] = "system"
        if message["role"] == "assistant":
            thoughts = message.pop("reasoning_content", None)
            thoughts = message.pop("reasoning", None) or thoughts
            if thoughts and self.config.uses_interleaved_reasoning:
                both = self.config.reasoning_field == "both"
                names = ("reasoning_content", "reasoning") if both else (self.config.reasoning_field,)
                message |= dict.fromkeys(names, thoughts)
        return message

    async def _take_tokens(
        self, completion: dict[str, Any], body: Mapping[str, Any], chat: Mapping[str, Any], call: ModelCall
    ) -> None:
        """Move the token fields out of the completion and into ``call``."""
        prompt = completion.pop("prompt_token_ids", None)
        try:
            if prompt is None:
                prompt = await self.prompt_ids(completion, body)
            await self.name_tokens(completion, prompt)
            call.tokens = take_tokens(completion, prompt)
        except MissingTokens as error:
            if self.config.return_token_id_information:
                raise ModelFailed(502, f"{self._upstream.name}: {error}", kind="no_token_ids", final=True) from error
            call.dropped.append(Dropped("token_ids", str(error)))
        if not chat.get("logprobs"):
            for choice in completion["choices"]:
                choice.pop("logprobs", None)

    @property
    def asked(self) -> Mapping[str, Any]:
        """What to lay under a request whose tokens are wanted."""
        return ASKED

    async def prompt_ids(self, completion: Mapping[str, Any], body: Mapping[str, Any]) -> list[int] | None:
        """The token ids of the prompt that ``body`` made, for a service whose completions do not say them."""
        return None

    async def name_tokens(self, completion: dict[str, Any], prompt_ids: list[int] | None) -> None:
        """Add to ``completion`` what its service says elsewhere of the tokens that were written."""


def _side_channel(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request without the two entries of ``metadata`` that are for the service, and those, parsed.

    Raises Refused(422) for an entry that is not a JSON object.
    """
    metadata = body.get("metadata") or {}
    side = {name: _object(metadata[name], name) for name in _SIDE_CHANNEL if name in metadata}
    if not side:
        return body, {}
    body = {name: value for name, value in body.items() if name != "metadata"}
    if rest := {name: value for name, value in metadata.items() if name not in _SIDE_CHANNEL}:
        body["metadata"] = rest
    template = {**(body.pop("chat_template_kwargs", None) or {}), **side.pop("chat_template_kwargs", {})}
    return body, {**side.get("extra_body", {}), **({"chat_template_kwargs": template} if template else {})}


def _object(text: Any, name: str) -> dict[str, Any]:
    try:
        value = codec.loads(str(text).encode())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refused(422, f"metadata.{name}: must be a JSON object as text", kind="invalid")
    return value


def _cut_short(model: str) -> dict[str, Any]:
    """The reply to a request that left no room for one."""
    choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": None}}
    return {"id": mint("chatcmpl"), "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
