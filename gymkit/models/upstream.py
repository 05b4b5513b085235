"""A service that speaks an OpenAI dialect, asked with patience: retries with a bound, and none that cannot help."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic import SecretStr

from gymkit.errors import CallTimeout, ServerError, Unreachable
from gymkit.servers.call import ModelCall, ModelFailed
from gymkit.servers.route import Reply, Route, close_all
from gymkit.wire import codec

FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long."""

LONGEST_PAUSE = 60.0
"""Seconds that are waited at most; a service that asks for more gets no further attempt."""

OVERFLOW = "context_length_exceeded"
"""Kind of a request that is longer than the model's context."""

_RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 529})
_KEY_OR_QUOTA = (401, 402)
_SPENT = frozenset({"budget_exceeded", "insufficient_quota", "billing_hard_limit_reached", "invalid_api_key"})
_TOO_LONG = re.compile(r"context[ _]length|context[ _]size|max_model_len|maximum model length|prompt is too long", re.I)
_EXCERPT = 500
_SHORTEST_SECRET = 6


class Upstream:
    """One service behind a model server.

    ``urls`` are its base URLs; with several, a session stays with one. ``attempts`` bounds how often a call is tried,
    ``concurrency`` how many are in flight (None: any number), ``timeout`` a call with all its attempts, in seconds.
    """

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        *,
        api_key: SecretStr,
        headers: Mapping[str, SecretStr],
        attempts: int,
        concurrency: int | None,
        timeout: float,
    ) -> None:
        self.name = name
        self.routes = [Route.to_url(name, url) for url in urls]
        self._headers = {name: value.get_secret_value() for name, value in headers.items()}
        if api_key.get_secret_value():
            self._headers.setdefault("authorization", f"Bearer {api_key.get_secret_value()}")
        secrets = [api_key.get_secret_value(), *(value.get_secret_value() for value in headers.values())]
        self._secrets = sorted((each for each in secrets if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._attempts = attempts
        self._slots = asyncio.Semaphore(concurrency) if concurrency else None
        self._timeout = timeout
        self._refused: ModelFailed | None = None

    async def post(self, path: str, body: Mapping[str, Any], call: ModelCall) -> dict[str, Any]:
        """The JSON object that the service answers. Raises ModelFailed with the status it answered instead."""
        if self._refused is not None:
            raise _again(self._refused)
        payload = codec.dumps(body)
        route = self.routes[zlib.crc32(call.session.encode()) % len(self.routes)]
        bound = asyncio.timeout(self._timeout)
        try:
            async with bound:
                return await self._patiently(route, path, payload, call)
        except TimeoutError:
            if not bound.expired():
                raise
            message = f"{self.name} at {route.url}{path} did not answer within {self._timeout:g} s"
            raise ModelFailed(504, message, kind="timeout") from None

    async def aclose(self) -> None:
        """Let go of the connections."""
        await close_all(self.routes)

    async def _patiently(self, route: Route, path: str, payload: bytes, call: ModelCall) -> dict[str, Any]:
        for attempt in range(1, self._attempts + 1):
            try:
                return await self._once(route, path, payload, call)
            except ModelFailed as error:
                pause = _pause(error, attempt)
                if error.final or pause is None or attempt == self._attempts:
                    raise self._settled(error, attempt) from error.__cause__
            await asyncio.sleep(pause)
        raise AssertionError("attempts must be at least 1")

    def _settled(self, error: ModelFailed, attempts: int) -> ModelFailed:
        if error.status in _KEY_OR_QUOTA or error.kind in _SPENT:
            self._refused = error
        if attempts > 1:
            error.detail = f"{error.detail} ({attempts} attempts)"
        return error

    async def _once(self, route: Route, path: str, payload: bytes, call: ModelCall) -> dict[str, Any]:
        call.asked()
        try:
            async with self._slot():
                reply = await route.post(path, payload, headers=self._headers)
        except Unreachable as error:
            call.upstream_status_code = None
            raise ModelFailed(502, self._scrubbed(str(error)), kind="unreachable", category="connection") from error
        except CallTimeout as error:
            raise ModelFailed(504, str(error), kind="timeout") from error
        call.upstream_status_code = reply.status
        if not 200 <= reply.status < 300:
            raise self._failure(reply)
        call.answered(reply.status)
        try:
            return reply.json_object()
        except ServerError as error:
            raise ModelFailed(502, self._scrubbed(str(error)), kind=error.kind, final=True) from error

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._slots is None:
            yield
        else:
            async with self._slots:
                yield

    def _failure(self, reply: Reply) -> ModelFailed:
        told = _told(reply)
        message = told.get("message") if isinstance(told.get("message"), str) else reply.text.strip()
        words = self._scrubbed(str(message))[:_EXCERPT] or "(no body)"
        detail = f"{reply.url} answered {reply.status}: {words}"
        if 300 <= reply.status < 400:
            return ModelFailed(502, f"{detail}; redirects are not followed", kind="redirect", final=True)
        code = next((told[name] for name in ("code", "type") if isinstance(told.get(name), str)), "http_status")
        code = self._scrubbed(code)[:_EXCERPT]
        if reply.status == 400 and _TOO_LONG.search(f"{told.get('code')} {told.get('type')} {words}"):
            return ModelFailed(400, detail, kind=OVERFLOW, category=OVERFLOW, final=True)
        spent = code in _SPENT or told.get("type") in _SPENT
        final = spent or reply.status not in _RETRYABLE
        return ModelFailed(reply.status, detail, kind=code, final=final, retry_after=_retry_after(reply))

    def _scrubbed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "****")
        return text

    def __repr__(self) -> str:
        return f"<Upstream {self.name} {', '.join(route.url for route in self.routes)}>"


def _again(refused: ModelFailed) -> ModelFailed:
    """The refusal of an earlier call, for one that is not sent."""
    detail = f"{refused.detail}; not asked again, because the key or the quota cannot have got better by itself"
    return ModelFailed(refused.status, detail, kind=refused.kind, category=refused.category, final=True)


def _told(reply: Reply) -> dict[str, Any]:
    """The error object of a body: OpenAI's under ``error``, or a flat one as some servers have it."""
    try:
        body = codec.loads(reply.body)
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {"message": error}
    return body if isinstance(body, dict) else {}


def _retry_after(reply: Reply) -> float | None:
    for name, scale in ((b"retry-after-ms", 0.001), (b"retry-after", 1.0)):
        for key, value in reply.headers:
            if key == name:
                with contextlib.suppress(ValueError):  # a date, which no provider of models sends
                    return max(0.0, float(value) * scale)
    return None


def _pause(error: ModelFailed, attempt: int) -> float | None:
    """Seconds before the next attempt; None when the service asks for more than we wait."""
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_PAUSE else None
    pause: float = FIRST_PAUSE * 2 ** (attempt - 1)
    return pause * random.uniform(1.0, 1.25)
