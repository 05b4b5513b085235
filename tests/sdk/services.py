"""Agent services for the check: a good one, and one for each rule that breaks that rule and no other."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gymkit.testing.agent import Fault, Received, ScriptedAgent, answer, call, outputs, respond
from gymkit.testing.counter_service import respond as count

Params = dict[str, Any]
Service = Callable[[], ScriptedAgent]


def good() -> ScriptedAgent:
    return ScriptedAgent(count)


def changed(**fields: Any) -> Service:
    """Right, but for these fields of each answer."""
    return lambda: ScriptedAgent(lambda params: {**count(params), **fields})


def failing_if(broken: Callable[[Params], bool], status: int = 500) -> Service:
    """Right, but for requests like this."""
    return lambda: ScriptedAgent(lambda params: Fault(status) if broken(params) else count(params))


def asking_first(odd: dict[str, Any]) -> Service:
    """Right after one odd call."""

    def brain(params: Params) -> Any:
        rest = [item for item in params["input"] if item.get("call_id") != odd["call_id"]]
        return respond([odd]) if len(rest) == len(params["input"]) else count({**params, "input": rest})

    return lambda: ScriptedAgent(brain)


def adding(*items: dict[str, Any]) -> Service:
    """Right, with further items in the final answer."""

    def brain(params: Params) -> Any:
        reply = count(params)
        final = reply["output"][0]["type"] == "message"
        return {**reply, "output": [*items, *reply["output"]]} if final else reply

    return lambda: ScriptedAgent(brain)


def without_usage(when: Callable[[Params], bool]) -> Service:
    def brain(params: Params) -> Any:
        reply = count(params)
        return {key: value for key, value in reply.items() if key != "usage" or not when(params)}

    return lambda: ScriptedAgent(brain)


def html_typed() -> ScriptedAgent:
    return ScriptedAgent(lambda params: Fault(200, json.dumps(count(params)).encode(), {"content-type": "text/html"}))


def same_call_id() -> ScriptedAgent:
    def brain(params: Params) -> Any:
        reply = count(params)
        return {
            **reply,
            "output": [{**item, "call_id": "call"} for item in reply["output"] if "call_id" in item] or reply["output"],
        }

    return ScriptedAgent(brain)


def endless() -> ScriptedAgent:
    return ScriptedAgent(lambda params: [call("get_counter_value", f"call_{len(outputs(params))}")])


def with_cookie(
    brain: Callable[[Params, dict[str, str]], Any], cookie: Callable[[Received], str | None]
) -> ScriptedAgent:
    """A service whose brain sees the cookies too."""
    service = ScriptedAgent(lambda params: brain(params, service.received[-1].cookies), set_cookie=cookie)
    return service


def fresh_cookie() -> Callable[[Received], str | None]:
    """A cookie of its own for each conversation."""
    numbers = itertools.count()
    return lambda received: None if "sid" in received.cookies else f"sid=secret-{next(numbers)}; Path=/; HttpOnly"


def stateful() -> ScriptedAgent:
    """Right, and known by its cookies."""
    return with_cookie(lambda params, cookies: count(params), fresh_cookie())


def refusing_its_cookie() -> ScriptedAgent:
    return with_cookie(
        lambda params, cookies: Fault(400, b"bad signature") if cookies else count(params), fresh_cookie()
    )


def lost_without_cookie() -> ScriptedAgent:
    return with_cookie(
        lambda params, cookies: Fault(409, b"no session") if outputs(params) and not cookies else count(params),
        fresh_cookie(),
    )


def one_cookie_for_all(value: str = "1") -> Service:
    return lambda: with_cookie(lambda params, cookies: count(params), lambda received: f"sid={value}")


def forgetting_at_the_end(then: Callable[[Params], Any]) -> Service:
    """Drops a conversation with its last answer; a request for it gets ``then``."""

    def build() -> ScriptedAgent:
        over: set[str] = set()

        def brain(params: Params, cookies: dict[str, str]) -> Any:
            if cookies.get("sid") in over:
                return then(params)
            reply = count(params)
            if "sid" in cookies and reply["output"][0]["type"] == "message":
                over.add(cookies["sid"])
            return reply

        return with_cookie(brain, fresh_cookie())

    return build


def counting_steps_globally() -> ScriptedAgent:
    """The beginner's ``turn = 0`` at module level."""
    turn = itertools.count()

    def brain(params: Params) -> Any:
        done = [{"type": "function_call_output", "call_id": "x", "output": "1"}] * next(turn)
        return count({**params, "input": [*params["input"][:1], *done]})

    return ScriptedAgent(brain)


def broken_after_one() -> ScriptedAgent:
    openings = itertools.count()
    return ScriptedAgent(lambda params: Fault() if not outputs(params) and next(openings) else count(params))


def sampling() -> ScriptedAgent:
    """Looks at the counter first in every second conversation, as a model might."""
    openings = itertools.count()

    def brain(params: Params) -> Any:
        look = call("get_counter_value", "look")
        looked = [item for item in params["input"] if item.get("call_id") == "look"]
        if not looked and not outputs(params) and next(openings) % 2:
            return respond([look])
        return count({**params, "input": [item for item in params["input"] if item not in looked]})

    return ScriptedAgent(brain)


def last_request_wins() -> ScriptedAgent:
    """Keeps the request in a global while it thinks."""
    latest: list[Params] = [{}]

    async def brain(params: Params) -> Any:
        latest[0] = params
        await asyncio.sleep(0.005)
        return count(latest[0])

    return ScriptedAgent(brain)


def one_history_for_all() -> ScriptedAgent:
    """Answers with all it has ever read."""
    history: list[str] = []

    def brain(params: Params) -> Any:
        history.append(json.dumps(params["input"][-1]))
        reply = count(params)
        return respond([answer("\n".join(history))]) if reply["output"][0]["type"] == "message" else reply

    return ScriptedAgent(brain)


def refusing_two_at_once() -> ScriptedAgent:
    inside = [0]

    async def brain(params: Params) -> Any:
        inside[0] += 1
        try:
            await asyncio.sleep(0.002)
            return count(params) if inside[0] == 1 else Fault(503, b"busy")
        finally:
            inside[0] -= 1

    return ScriptedAgent(brain)


def one_at_a_time(seconds: float = 0.04) -> ScriptedAgent:
    lock = asyncio.Lock()

    async def brain(params: Params) -> Any:
        async with lock:
            await asyncio.sleep(seconds)
            return count(params)

    return ScriptedAgent(brain)


@contextmanager
def silent_after(calls: int) -> Iterator[ScriptedAgent]:
    """Right for so many calls, then silent for the length of a ``with``."""
    over = threading.Event()
    numbers = itertools.count()

    async def brain(params: Params) -> Any:
        silent = next(numbers) >= calls
        while silent and not over.is_set():
            await asyncio.sleep(0.01)
        return count(params)

    try:
        yield ScriptedAgent(brain)
    finally:
        over.set()


def trying_for_ever() -> ScriptedAgent:
    """Asks again and again while the tool fails, and never takes no for an answer."""

    def brain(params: Params) -> Any:
        results = outputs(params)
        if any("Internal" in result for result in results):
            return [call("get_counter_value", f"call_{len(results)}")]
        return count(params)

    return ScriptedAgent(brain)


def reads_every_output_as_json(params: Params) -> bool:
    return not all(_is_json(output) for output in outputs(params))


def reads_its_own_arguments(params: Params) -> bool:
    return not all(_is_json(item["arguments"]) for item in params["input"] if "arguments" in item)


def refuses_parts(params: Params) -> bool:
    return any(isinstance(item.get("content"), list) for item in params["input"] if item.get("role") == "user")


def splits_at_unicode_line_ends(params: Params) -> bool:
    return any("\u2028" in str(item.get("content")) for item in params["input"])


def encodes(params: Params) -> bool:
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
