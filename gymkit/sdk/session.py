"""One rollout played by hand: call the environment's tools yourself, then verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymkit.errors import InputError
from gymkit.sdk import bridge
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.servers.tool import is_tool_name, unknown_tool
from gymkit.wire import codec

TIMEOUT = 60.0
"""Seconds that one call of the environment may take."""


class Session:
    """A seeded session of one task; ``Env.session`` makes it.

    ``items`` is the trajectory so far, as an agent would have produced it. Every verb has an async twin (``acall``,
    ``averify``).
    """

    def __init__(self, route: Route, row: Mapping[str, Any]) -> None:
        self.task = dict(row)
        self.items: list[dict[str, Any]] = []
        self._route = route
        self._cookies = CookieJar()

    async def _seed(self) -> Session:
        (await self._post("/seed_session", self.task)).expect_ok()
        return self

    async def acall(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return what an agent would read: the parsed JSON, or the text where it is none.

        An error of the tool comes back the same way, since an agent would read it too. Raises Unreachable or
        CallTimeout when the environment does not answer.
        """
        if not is_tool_name(tool):
            raise InputError([unknown_tool(tool)])
        reply = await bridge.arun(self._post(f"/{tool}", arguments))
        call_id = f"call_{len(self.items) // 2}"
        call = {"type": "function_call", "call_id": call_id, "name": tool, "arguments": codec.dumps(arguments).decode()}
        self.items += [call, {"type": "function_call_output", "call_id": call_id, "output": reply.text}]
        try:
            return codec.loads(reply.body)
        except ValueError:
            return reply.text

    async def averify(self, answer: str = "") -> dict[str, Any]:
        """Finish with the message ``answer`` and return the verifier's reply without the echoed request.

        It has ``reward`` and ``mask_sample``, and whatever else this environment reports. Raises BadStatus when the
        verifier failed.
        """
        content = [{"type": "output_text", "text": answer, "annotations": []}]
        message = {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content}
        response = {
            "id": "resp_by_hand",
            "created_at": 0.0,
            "model": "by hand",
            "object": "response",
            "output": [*self.items, message],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
        reply = await bridge.arun(self._post("/verify", {**self.task, "response": response}))
        verdict = reply.expect_ok().json_object()
        return {key: value for key, value in verdict.items() if key not in ("responses_create_params", "response")}

    async def _post(self, path: str, payload: Any) -> Reply:
        """One call. Nobody says when a session played by hand is over, so no connection stays open in between."""
        try:
            reply = await self._route.post(path, payload, cookies=self._cookies, timeout=TIMEOUT)
        finally:
            await self._route.aclose()
        self._cookies.take(reply)
        return reply

    call = bridge.twin(acall)
    verify = bridge.twin(averify)

    def __repr__(self) -> str:
        return f"<Session {self._route.name}: {len(self.items) // 2} calls>"
