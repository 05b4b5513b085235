"""A model as a judge: it is shown something and answers in a form that is checked, or its rollout is masked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from gymkit.errors import ConfigError, JudgeFailed, JudgeUnparseable, ServerError, WireError
from gymkit.sdk import bridge
from gymkit.sdk.judgement import Shape, excerpt, form_of
from gymkit.sdk.models import Model
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.route import Reply, Route
from gymkit.servers.tool import is_strict
from gymkit.wire import codec
from gymkit.wire.responses import check_response, message_text

SERVER: Final = "judge_model"
"""What the judge's model server is called."""

_ATTEMPTS: Final = 3  # to connect
_NO_FORMAT: Final = (400, 422, 501)


class Judge:
    """A judge; ``gk.judge`` makes one. ``await judge.aask(text)`` asks it, and ``judge.ask(text)`` in a plain function.

    Let what they raise through: JudgeFailed and JudgeUnparseable mask the rollout, which was not measured.
    """

    def __init__(
        self,
        model: Model | str | Route,
        instructions: str,
        *,
        answer: Shape | None = None,
        scale: tuple[float, float] | None = None,
        timeout: float = 120.0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(model, str) and (problem := base_url_problem(model)):
            raise ConfigError(f"judge: the model's URL {problem}")
        if not 0 < timeout < math.inf:
            raise ConfigError(f"judge: timeout={timeout!r} must be a number of seconds above 0")
        self.model = model
        self.instructions = instructions
        self.answer = answer
        self.scale = scale
        self.timeout = timeout
        self.params = dict(params or {})
        self._form = form_of(answer, scale)
        self._route = _route(model)
        self._asking = 0
        self._plain = False

    async def aask(self, text: str | list[dict[str, Any]]) -> Any:
        """Show the judge ``text`` (or a list of messages) and return its answer.

        By default a ``Score`` with ``score``, ``reason`` and ``reward`` (the score from 0 to 1); with ``answer=``, an
        instance of that model, or a dict that fits that schema. Raises JudgeFailed when it cannot be asked, or scores
        outside its scale, and JudgeUnparseable when its answer has another form.
        """
        return await bridge.arun(self._ask(text))

    ask = bridge.twin(aask)

    async def _ask(self, text: str | list[dict[str, Any]]) -> Any:
        self._asking += 1
        try:
            reply = await self._called(text)
        finally:
            self._asking -= 1
            if not self._asking:
                await self._route.aclose()  # nobody says when a judge is over: no connection outlives its questions
        return self._read(reply)

    async def _called(self, text: str | list[dict[str, Any]]) -> dict[str, Any]:
        """The judge's response. A service that refuses the form is asked without it: the instructions name it too."""
        if not self._plain:
            reply = await self._post(self._request(text, form=True))
            if reply.status not in _NO_FORMAT:
                return self._envelope(reply)
        response = self._envelope(await self._post(self._request(text, form=False)))
        self._plain = True
        return response

    async def _post(self, request: dict[str, Any]) -> Reply:
        try:
            return await self._route.post("/v1/responses", request, timeout=self.timeout, attempts=_ATTEMPTS)
        except ServerError as error:
            raise JudgeFailed(f"the judge could not be asked: {error}") from error

    def _request(self, text: str | list[dict[str, Any]], *, form: bool) -> dict[str, Any]:
        schema = self._form.schema
        wanted = f"Answer with one JSON object that fits this schema, and nothing else:\n{codec.dumps(schema).decode()}"
        said = [{"role": "user", "content": text}] if isinstance(text, str) else text
        request = {"instructions": f"{self.instructions.strip()}\n\n{wanted}", "input": said, **self.params}
        if form:
            name = {"type": "json_schema", "name": "judgement", "schema": schema, "strict": is_strict(schema)}
            request["text"] = {**(self.params.get("text") or {}), "format": name}
        return request

    def _envelope(self, reply: Reply) -> dict[str, Any]:
        try:
            response = reply.expect_ok().json_object()
            check_response(response)
        except (ServerError, WireError) as error:
            raise JudgeFailed(f"the judge gave no answer: {error}") from error
        if response.get("status") in ("failed", "cancelled"):
            told = (response.get("error") or {}).get("message") or response["status"]
            raise JudgeFailed(f"the judge gave no answer: {told}")
        return response

    def _read(self, response: Mapping[str, Any]) -> Any:
        text = "".join(message_text(item) for item in response["output"] if item["type"] == "message")
        if cut := response.get("incomplete_details"):
            raise JudgeUnparseable(f"the judge's answer was cut short ({cut.get('reason')}): {excerpt(text)}")
        return self._form.read(text)

    def __repr__(self) -> str:
        name = self.model.name if isinstance(self.model, Model) else self._route.url
        return f"<Judge {name}>"


def judge(
    model: Model | str | Route,
    instructions: str,
    *,
    answer: Shape | None = None,
    scale: tuple[float, float] | None = None,
    timeout: float = 120.0,
    params: Mapping[str, Any] | None = None,
) -> Judge:
    """A judge for verifiers: a model that scores what it is shown, and whose failures are never a zero.

    Parameters
    ----------
    model:
        A ``gk.Model``, which holds the key where there is one and tries again; or the URL of a model server that
        answers ``POST {url}/v1/responses``; or a route to one.
    instructions:
        What to judge, and by what.
    answer:
        The form of its answer: a pydantic model, or a JSON schema of an object. By default ``score`` and ``reason``.
    scale:
        Lowest and highest score of the default form, by default 0 and 1; a score outside is no measurement.
    timeout:
        Seconds that one question may take.
    params:
        Further fields of each request, such as ``{"temperature": 0}``.

    ::

        grader = gk.judge(model, "Is the answer polite? 1 is rude, 5 is kind.", scale=(1, 5))

        @env.verify
        async def check(state, task, response):
            return (await grader.aask(said(response))).reward

    Raises ConfigError for a value that cannot be used; MissingExtra for a JSON schema without ``jsonschema``.
    """
    return Judge(model, instructions, answer=answer, scale=scale, timeout=timeout, params=params)


def _route(model: Model | str | Route) -> Route:
    if isinstance(model, Model):
        return Route.to_app(SERVER, model.server(SERVER), owned=True)
    if isinstance(model, str):
        return Route.to_url(SERVER, model.rstrip("/").removesuffix("/v1"))
    return model
