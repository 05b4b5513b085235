"""The models of a notebook: what to ask and how to reach it. A run makes the server out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, SecretStr, ValidationError

from gymkit.errors import BadStatus, ConfigError
from gymkit.sdk import bridge
from gymkit.sdk.refused import sentences
from gymkit.servers.capture import Capture
from gymkit.servers.correlation import ROOT, Correlation, current
from gymkit.servers.hosting import LOOPBACK, Hosted, serve
from gymkit.servers.model import ModelServer
from gymkit.servers.refusal import kind_behind
from gymkit.servers.route import Reply, Route
from gymkit.wire.responses import message_text

_HERE = "in this process"

Make = Callable[[str, "Capture | None"], ModelServer]


class Model:
    """A model behind a service: OpenAI's, vLLM's, or any that speaks like them.

    Parameters
    ----------
    url:
        The service's base URL, up to and with ``/v1``.
    name:
        The model's name there.
    api_key:
        The service's key; none by default. It is never shown, logged or recorded.
    api:
        ``"chat"`` asks ``/chat/completions``, which every such service has; ``"responses"`` asks ``/responses``, which
        keeps the reasoning of OpenAI's own models from one step to the next.
    token_ids:
        Ask for token ids and logprobs with each reply, for training; only with ``api="chat"``, and only of services
        that return them, as vLLM does.
    extra_body:
        Laid under each request, such as ``{"temperature": 0}``: what the agent sets wins.
    attempts:
        How often a call is tried, with growing pauses; a bad key or a spent quota is not tried again.
    concurrency:
        Calls in flight, at most; None: any number.
    timeout:
        Seconds that a call may take, all attempts together.

    ``Model.local()`` is a small model on this machine, ``Model.scripted(...)`` one that says what you wrote.
    Raises ConfigError for a value that cannot be used.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        api_key: str = "",
        api: Literal["chat", "responses"] = "chat",
        token_ids: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        attempts: int = 3,
        concurrency: int | None = None,
        timeout: float = 1800.0,
    ) -> None:
        if api == "responses" and token_ids:
            raise ConfigError("Model: token ids come with api='chat' only: the Responses API has no place for them")
        shared = {
            "extra_body": dict(extra_body or {}),
            "max_http_attempts": attempts,
            "max_concurrent_requests": concurrency,
            "upstream_timeout_secs": timeout,
        }
        key = SecretStr(api_key)
        if api == "responses":
            settings = {"openai_base_url": url, "openai_api_key": key, "openai_model": name, **shared}
            self._set(name, "openai_model", settings)
        elif api == "chat":
            tokens = {"return_token_id_information": token_ids, "uses_reasoning_parser": True}
            self._set(name, "vllm_model", {"base_url": url, "api_key": key, "model": name, **tokens, **shared})
        else:
            raise ConfigError(f"Model: api is 'chat' or 'responses', not {api!r}")
        self.url = url

    @classmethod
    def local(cls, *, token_ids: bool = False) -> Model:
        """SmolLM2-135M-Instruct in this process: no key, no network, some 80 tokens a second.

        Good for lessons, for real token ids (``token_ids``) and for failures; too small to be right. Raises
        MissingExtra, with the command that installs it.
        """
        from gymkit.models.local import NAME, require

        require()
        model = cls.__new__(cls)
        model._set(NAME, "local_model", {"return_token_id_information": token_ids})
        model.url = _HERE
        return model

    @classmethod
    def scripted(cls, script: object, *, seconds: float = 0.0, token_ids: bool = False) -> Model:
        """A model that says what ``script`` says.

        Parameters
        ----------
        script:
            A list of replies, which each rollout hears from its beginning; a function of the request's parameters, sync
            or async; a generator function, started anew for each rollout; or a generator, one for all. A reply is a
            text, an item or a list of items (``answer`` and ``call`` of ``gymkit.testing.agent`` make them), a whole
            Response, or a ``Fault``.
        seconds:
            How long it takes to answer.
        token_ids:
            Give replies token ids and logprobs: its tokens are bytes.
        """
        from gymkit.models.script import Script
        from gymkit.models.scripted import ScriptedModel

        told = Script(script)  # what is asked outside of a run goes on where the last such question left it
        model = cls.__new__(cls)
        config = model._set("scripted", "scripted_model", {"seconds": seconds, "token_ids": token_ids})

        def make(name: str, capture: Capture | None, *, place: Script | None = None) -> ModelServer:
            return ScriptedModel(name, config, script=place or Script(script), capture=capture)  # type: ignore[arg-type]

        model._make, model._make_to_ask = make, partial(make, place=told)
        model.url = _HERE
        return model

    def _set(self, name: str, implementation: str, settings: dict[str, Any]) -> BaseModel:
        from gymkit import models

        server, config_type = models.load(implementation)
        try:
            config = config_type.model_validate(settings)
        except ValidationError as error:
            raise ConfigError(f"Model: {sentences(error)}") from None
        self.name = name
        self.implementation = implementation
        self.config = config
        self._make: Make = lambda server_name, capture: server(server_name, config, capture=capture)
        self._make_to_ask = self._make
        return config

    def settings(self) -> dict[str, Any]:
        """What results depend on; a resume with other settings is refused. Keys and bounds are not in it."""
        bounds = {"max_http_attempts", "max_concurrent_requests", "upstream_timeout_secs"}
        secret = {"api_key", "openai_api_key", "default_headers", "openai_default_headers"}
        dumped = self.config.model_dump(mode="json", exclude=bounds | secret, exclude_defaults=True)
        return {"type": self.implementation, "model": self.name, **dumped}

    def server(self, name: str = "policy_model", *, capture: Capture | None = None) -> ModelServer:
        """A fresh model server called ``name``, whose calls of a rollout ``capture`` records; YAML makes the same."""
        return self._make(name, capture)

    def serve(self, port: int = 0, *, host: str = LOOPBACK, capture: Capture | None = None) -> Hosted:
        """Put a model server on a socket, for programs that speak to OpenAI or Anthropic: ``.url`` says where.

        OpenAI's clients want ``{url}/v1`` as their base URL, Anthropic's ``{url}``. Port 0 takes a free one;
        ``.stop()`` ends it. Raises ConfigError for a port that is taken.
        """
        return serve(self.server(capture=capture), host, port)

    async def aask(self, prompt: str, **params: Any) -> str:
        """Ask one thing and return the text of the answer, to see that the model is there.

        ``params`` are further fields of a Responses request (``instructions``, ``max_output_tokens``). Raises BadStatus
        with what the service said, or with what is wrong with ``params``.
        """
        return await bridge.arun(self._ask({"input": prompt, **params}))

    ask = bridge.twin(aask)

    async def _ask(self, params: dict[str, Any]) -> str:
        recorded = current()
        if recorded is not None:  # asked from inside an agent's function, it is a call of that rollout
            reply = await self._ask_for(recorded, params)
        else:
            server = self._make_to_ask("policy_model", None)
            try:
                reply = await Route.to_app(server.name, server).post("/v1/responses", params)
            finally:
                await server.aclose()
        if reply.status != 200:
            told, kind = reply.json_object()["error"]["message"], kind_behind(reply.body)
            raise BadStatus(told, server=self.name, url=self.url, status=reply.status, kind=kind)
        return "".join(message_text(item) for item in reply.json_object()["output"] if item["type"] == "message")

    @property
    def token_ids(self) -> bool:
        """Whether its replies carry token ids and logprobs."""
        return any(getattr(self.config, name, False) for name in ("return_token_id_information", "token_ids"))

    async def _ask_for(self, recorded: Correlation, params: dict[str, Any]) -> Reply:
        """Ask for a rollout, whose servers live as long as it does."""
        recorded.calls += 1
        server = recorded.servers.get(self)
        if server is None:
            server = recorded.servers[self] = self.server(capture=recorded.capture)
        path = recorded.path("/v1/responses", training=self.token_ids)
        return await Route.to_app(server.name, server).post(path, params, headers={"x-session-id": ROOT})

    def __repr__(self) -> str:
        return f"<Model {self.name} {self.url}>"


def route_of(name: str, model: Model | str | Route, capture: Capture | None) -> Route:
    """How ``model`` is reached under ``name``: embedded with its calls recorded, at its URL, or as the route it is."""
    if isinstance(model, Model):
        return Route.to_app(name, model.server(name, capture=capture), owned=True)
    return Route.to_url(name, model) if isinstance(model, str) else model
