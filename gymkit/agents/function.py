"""``function_agent``: a Python function becomes an agent, the smallest adapter there is.

A function is called once a step with the request, as a service would get it, and returns what it does next::

    def agent(params): return "It is cold."                                # text is the answer
    def agent(params): return ("get_weather", {"city": "Rome"})            # or a tool call, or a list of calls

A generator is started once a rollout: it yields tool calls, gets their outputs, and returns the answer::

    def agent(params):
        weather = yield "get_weather", {"city": "Rome"}                    # JSON is parsed; a list gives a list
        return f"It is {weather['weather_description']}."

Both may be ``async``; an async generator yields its answer as the last thing. Plain ones run in threads, so that one
that waits keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from gymkit.agents.bounded import BoundedAgent
from gymkit.agents.failure import RolloutFailed
from gymkit.agents.said import Said
from gymkit.agents.thread import in_thread, place_of
from gymkit.servers.capture import Capture
from gymkit.servers.correlation import Correlation, working_for
from gymkit.servers.route import CookieJar, Route
from gymkit.wire import codec

log = logging.getLogger("gymkit")

CLOSE_SECONDS = 5.0
"""Seconds that an async generator may take to close."""

Function = Callable[[dict[str, Any]], Any]
"""From a request to what is done next; see the module."""


class FunctionAgentConfig(BaseModel):
    """The bounds of a function."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int = Field(32, gt=0)
    """Rollouts in flight, at most."""
    run_timeout_secs: float = Field(2100.0, gt=0, allow_inf_nan=False)
    """Seconds that a whole rollout may take, from the moment it has its concurrency slot."""
    max_steps: int | None = Field(None, gt=0)
    """Steps of one rollout, at most."""


class FunctionAgent(BoundedAgent):
    """The server; in a notebook ``gymkit.Agent`` makes one. ``capture`` records the models that the function asks."""

    implementation = "function_agent"
    failure_class = "agent_run_error"

    def __init__(
        self,
        name: str,
        config: FunctionAgentConfig,
        function: Function,
        resources: Route,
        *,
        capture: Capture | None = None,
    ) -> None:
        super().__init__(
            name,
            resources,
            concurrency=config.concurrency,
            run_timeout_secs=config.run_timeout_secs,
            max_steps=config.max_steps,
        )
        self.function = function
        self._capture = capture

    def converse(self, rollout: str | None, training: bool) -> _FunctionCalls:
        """The function, or a generator of its own."""
        recorded = Correlation(rollout, self._capture) if self._capture is not None and rollout is not None else None
        return _FunctionCalls(self.name, self.function, recorded)


class _FunctionCalls:
    """One rollout's calls of the function, or its generator."""

    def __init__(self, name: str, function: Function, correlation: Correlation | None) -> None:
        self.cookies = CookieJar()
        self._correlation = correlation
        self._name = name
        self._function = function
        self._said = Said(name)
        self._running: _Running | None = None

    @property
    def models_asked(self) -> int:
        """Models that the function asked so far."""
        return self._correlation.calls if self._correlation else 0

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """The next step. Raises RolloutFailed for what the function raises, and for what it gives that is no step."""
        try:
            with working_for(self._correlation):
                given = await self._next(codec.loads(codec.dumps(params)))  # a copy: it may do with it what it likes
        except RolloutFailed:
            raise
        except Exception as error:
            message = f"the function of {self._name} raised {type(error).__name__}: {error}{place_of(error)}"
            raise RolloutFailed(message, kind="agent_error") from error
        return self._said.response(given)

    async def aclose(self) -> None:
        """Let a generator that was not at its end clean up."""
        try:
            if self._running is not None:
                await self._running.aclose()
        finally:
            if self._correlation is not None:
                await self._correlation.aclose()

    async def _next(self, params: dict[str, Any]) -> Any:
        if self._running is None:
            given = await _called(self._function, params)
            if not inspect.isgenerator(given) and not inspect.isasyncgen(given):
                return given
            self._running = _Running(given, self._said)
        return await self._running.step(params)


class _Running:
    """A generator at work."""

    def __init__(self, generator: Generator[Any, Any, Any] | AsyncGenerator[Any, Any], said: Said) -> None:
        self._generator = generator
        self._said = said
        self._asked: list[str] | None = None
        """The ids of the calls that it waits for, None before its first step."""
        self._wants_list = False

    async def step(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Go on until it asks for tools, or to its end: the items of one step."""
        items: list[dict[str, Any]] = []
        sent = self._outputs(params)
        while True:
            given, over = await self._resume(sent)
            if given is None:
                given = "" if over and not items else []
            new = self._said.items(given)
            items += new
            self._asked = [item["call_id"] for item in new if item["type"] == "function_call"]
            self._wants_list = isinstance(given, list)
            if over or self._asked:
                return items
            sent = None  # a remark: it comes before the calls, or the answer, that follow

    async def aclose(self) -> None:
        """End it where it stands, without waiting for one that is in a thread: it may be anywhere."""
        if not isinstance(self._generator, AsyncGenerator):
            threading.Thread(target=_close, args=(self._generator,), name="gymkit-agent", daemon=True).start()
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._generator.aclose()
        except Exception as error:  # noqa: BLE001 - the rollout is over, and how it ended is known
            log.warning("an agent's generator did not close: %r", error)

    async def _resume(self, sent: Any) -> tuple[Any, bool]:
        generator = self._generator
        if isinstance(generator, AsyncGenerator):
            try:
                return await generator.asend(sent), False
            except StopAsyncIteration:
                return None, True
        return await _called(lambda value: _sent(generator, value), sent)  # type: ignore[no-any-return]

    def _outputs(self, params: Mapping[str, Any]) -> Any:
        """What the calls it asked for gave, in their order: one alone, or a list where it yielded a list."""
        if self._asked is None:
            return None
        found = {item["call_id"]: item["output"] for item in params["input"] if item.get("type") == _OUTPUT}
        outputs = [_parsed(found[call_id]) for call_id in self._asked]
        return outputs if self._wants_list else outputs[0]


_OUTPUT = "function_call_output"


def _close(generator: Generator[Any, Any, Any]) -> None:
    try:
        generator.close()
    except Exception as error:  # noqa: BLE001 - as above; one that runs at this moment cannot be closed at all
        log.warning("an agent's generator did not close: %r", error)


def _sent(generator: Generator[Any, Any, Any], value: Any) -> tuple[Any, bool]:
    try:
        return generator.send(value), False
    except StopIteration as end:
        return end.value, True


def _parsed(output: Any) -> Any:
    try:
        return codec.loads(output.encode("utf-8", "surrogatepass"))
    except (ValueError, AttributeError):
        return output


async def _called(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call it: an ``async`` one here, any other in a thread of its own, which nothing has to wait for."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        given = function(argument)
    elif inspect.isgeneratorfunction(function):
        given = function(argument)  # begins nothing yet
    else:
        given = await in_thread(function, argument)
    return await given if inspect.isawaitable(given) else given
