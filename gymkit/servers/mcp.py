"""``/mcp``: the tools of a resources server for agents that speak MCP (streamable HTTP, stateless, replies in JSON).

Written out here because only five methods are needed; the ``mcp`` package would bring a web framework and threads of
its own into every environment. A call needs the token from its rollout's seed: it opens that one session and the tools
that it names, and neither the verifier nor any other route.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeSerializer

from gymkit import __version__
from gymkit.servers.http import Answer, Request, json_answer
from gymkit.servers.session import Session, Sessions
from gymkit.servers.tool import Tool, ToolAnswer, unknown_tool
from gymkit.wire import codec

TOKEN_HEADER: Final = "X-NeMo-Gym-Session-Token"
"""Carries the token; the name is NeMo Gym's."""

VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions of the protocol in which what is spoken here is the same."""

_SALT: Final = "nemo-gym-mcp-session-token"
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602


class Toolbox(Protocol):
    """The server whose tools these are."""

    tools: dict[str, Tool]
    """By name."""
    sessions: Sessions[Any]
    """Where a call happens."""

    async def call_tool(self, session: Session[Any], name: str, arguments: Any) -> ToolAnswer:
        """Run a tool."""


class _Wrong(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class McpEndpoint(ABC):
    """An endpoint called ``name``: the protocol. A subclass says which tools there are and runs them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._methods: dict[str, Callable[[Request, Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list,
            "tools/call": self._call,
        }

    @abstractmethod
    def declared(self, request: Request) -> list[dict[str, Any]]:
        """The tools as MCP declares them: ``name``, ``description``, ``inputSchema``."""

    @abstractmethod
    async def call_tool(self, request: Request, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool: MCP's result, errors of the tool included (``told``)."""

    async def answer(self, request: Request) -> Answer:
        """One HTTP request. Its replies set no cookie: a cookie would open more than the token does."""
        if request.method != "POST":
            return Answer(b"", 405, [(b"allow", b"POST")])  # no stream of ours, and no session to delete
        if _is_foreign(request):
            return json_answer({"detail": "requests of other origins are refused", "kind": "foreign_origin"}, 403)
        message: Any = None
        try:
            message = _message(request.body)
            if "method" not in message or "id" not in message:
                return Answer(b"", 202)  # a notification, or a reply to a question that nobody asked
            return json_answer(_reply(message, result=await self._result(request, message)))
        except _Wrong as wrong:
            status = 400 if wrong.code in (_PARSE_ERROR, _INVALID_REQUEST) else 200
            return json_answer(_reply(message, error={"code": wrong.code, "message": str(wrong)}), status)

    async def _result(self, request: Request, message: Mapping[str, Any]) -> dict[str, Any]:
        name, params = message["method"], message.get("params") or {}
        method = self._methods.get(name) if isinstance(name, str) else None
        if method is None:
            raise _Wrong(_NO_METHOD, f"there is no method {name!r:.80}; there are {', '.join(self._methods)}")
        if not isinstance(params, dict):
            raise _Wrong(_INVALID_PARAMS, "params must be an object")
        return await method(request, params)

    async def _initialize(self, _: Request, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self.name, "version": __version__},
        }

    async def _ping(self, _: Request, __: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    async def _list(self, request: Request, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"tools": self.declared(request)}

    async def _call(self, request: Request, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str):
            raise _Wrong(_INVALID_PARAMS, "name must be the name of a tool")
        return await self.call_tool(request, name, arguments)


class McpDoor(McpEndpoint):
    """The endpoint of one resources server, ``toolbox``, called ``name``."""

    def __init__(self, name: str, toolbox: Toolbox) -> None:
        super().__init__(name)
        self._toolbox = toolbox

    def metadata(self, session: Session[Any], allowed: list[str] | None) -> dict[str, Any]:
        """What a seed says of it: where, and a token for ``session`` and the tools in ``allowed`` (None: all)."""
        token = self._tokens().dumps({"sid": session.id, "tools": allowed})
        return {
            "server_name": self.name,
            "url_path": "/mcp",
            "transport": "http",
            "headers": {TOKEN_HEADER: token if isinstance(token, str) else token.decode()},
        }

    def declared(self, request: Request) -> list[dict[str, Any]]:
        """All tools, or those that the request's token allows."""
        claims = self._claims(request)
        shown = [tool for name, tool in self._toolbox.tools.items() if claims is None or _is_allowed(name, claims)]
        return [declared(tool.schema()) for tool in shown]

    async def call_tool(self, request: Request, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool in the session of the request's token."""
        if name not in self._toolbox.tools:
            return told(unknown_tool(name, list(self._toolbox.tools)), is_error=True)
        claims = self._claims(request)
        if claims is None:
            return told(f"a call needs the token of its rollout's seed, in the header {TOKEN_HEADER}", is_error=True)
        if not _is_allowed(name, claims):
            return told(f"the tool {name!r} is not allowed in this rollout", is_error=True)
        session = self._toolbox.sessions.by_id(str(claims.get("sid")))
        if session is None:
            return told("the session of this token has expired or was closed", is_error=True)
        return _outcome(name, await self._toolbox.call_tool(session, name, arguments))

    def _claims(self, request: Request) -> dict[str, Any] | None:
        """What the token says; None without one, or for one that is not ours."""
        token = request.header(TOKEN_HEADER.lower().encode())
        try:
            claims = self._tokens().loads(token) if token else None
        except BadSignature:
            return None
        return claims if isinstance(claims, dict) else None

    def _tokens(self) -> URLSafeSerializer:
        return URLSafeSerializer(self._toolbox.sessions.key, salt=_SALT)


def bare_names(response: dict[str, Any], known: Mapping[str, Tool]) -> dict[str, Any]:
    """``response`` for a verifier: a call of ``mcp__<server>__<tool>``, as MCP clients write it, is one of the tool.

    Names whose last part is no tool of this server (``known``) stay, since they are somebody else's.
    """
    return {**response, "output": [_bare(item, known) for item in response["output"]]}


def _bare(item: dict[str, Any], known: Mapping[str, Tool]) -> dict[str, Any]:
    name = item.get("name")
    if item.get("type") != "function_call" or not isinstance(name, str) or not name.startswith("mcp__"):
        return item
    ends = [tool for tool in known if name.endswith(f"__{tool}") and len(name) > len(f"mcp____{tool}")]
    return {**item, "name": max(ends, key=len)} if ends else item


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = codec.loads(body)
    except ValueError as error:
        raise _Wrong(_PARSE_ERROR, f"the body is not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Wrong(_INVALID_REQUEST, 'the body must be one JSON-RPC message ("jsonrpc": "2.0")')
    return message


def _reply(message: Any, **outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id") if isinstance(message, dict) else None, **outcome}


def _is_foreign(request: Request) -> bool:
    """Whether a web page of another host sent it: a browser names the page's origin, and agents name none."""
    origin = request.header(b"origin")
    return origin is not None and urlsplit(origin).netloc != request.header(b"host")


def _is_allowed(name: str, claims: Mapping[str, Any]) -> bool:
    allowed = claims.get("tools")
    return allowed is None or name in allowed


def declared(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A function tool of a request as MCP declares it."""
    parameters = schema.get("parameters") or {"type": "object", "properties": {}}
    return {"name": schema["name"], "description": schema.get("description") or "", "inputSchema": parameters}


def _outcome(name: str, answer: ToolAnswer) -> dict[str, Any]:
    content = codec.loads(answer.body)
    if answer.status >= 400:
        detail = content["detail"]
        text = detail if isinstance(detail, str) else codec.dumps(detail).decode()
        return told(f"HTTP {answer.status} from POST /{name}: {text}", is_error=True)
    said = told(content if isinstance(content, str) else answer.body.decode(), is_error=False)
    return {**said, "structuredContent": content} if isinstance(content, dict) else said


def told(text: str, *, is_error: bool) -> dict[str, Any]:
    """A result that is text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
