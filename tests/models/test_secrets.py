"""A key never comes back: not in errors, logs, records or reprs, wherever a service puts it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymkit.models.chat import ChatModel, ChatModelConfig
from gymkit.servers.capture import MemoryCapture
from gymkit.servers.fault import Fault
from gymkit.servers.hosting import Hosted, serve
from gymkit.servers.route import Route
from gymkit.testing.agent import ScriptedAgent
from gymkit.wire import codec

KEY = "sk-proj-0123456789abcdef"
TOKEN = "header-token-987654321"

said = st.sampled_from([KEY, TOKEN, f"Bearer {KEY}", f"'{KEY}' and {TOKEN}", f"x{KEY}{KEY}y"])
bodies = st.one_of(
    st.builds(lambda text: {"error": {"message": text, "code": "invalid_api_key"}}, said),
    st.builds(lambda text: {"error": {"message": "no", "code": text, "type": text}}, said),
    st.builds(lambda text: {"error": text}, said),
    st.builds(lambda text: {"message": text, "detail": [text]}, said),
    st.builds(lambda text: [text], said),
    said,
)
statuses = st.sampled_from([302, 400, 401, 403, 404, 422, 429, 500, 503])


class Echo:
    """A service that answers what the test last wrote here."""

    def __init__(self) -> None:
        self.fault = Fault()

    def __call__(self, _: Any) -> Fault:
        return self.fault


@pytest.fixture(scope="module")
def echo() -> Any:
    brain = Echo()
    with serve(ScriptedAgent(brain)) as hosted:
        yield brain, hosted


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies, status=statuses, raw=st.booleans())
def test_whatever_a_service_repeats(
    echo: tuple[Echo, Hosted], caplog: pytest.LogCaptureFixture, body: Any, status: int, raw: bool
) -> None:
    brain, hosted = echo
    brain.fault = Fault(status, str(body).encode() if raw else codec.dumps(body), {"retry-after": "0"})
    capture = MemoryCapture()
    config = ChatModelConfig.model_validate(
        {
            "base_url": f"{hosted.url}/v1",
            "api_key": KEY,
            "model": "m",
            "return_token_id_information": False,
            "uses_reasoning_parser": True,
            "default_headers": {"x-token": TOKEN},
            "max_http_attempts": 2,
        }
    )
    server = ChatModel("policy", config, capture=capture)

    async def scenario() -> list[Any]:
        route = Route.to_app("policy", server)
        paths = ("/v1/responses", "/v1/responses")  # the second may be refused without being sent
        replies = [await route.post(f"/ng-rollout/r1{path}", {"input": "x"}) for path in paths]
        streamed = await route.post("/ng-rollout/r1/v1/responses", {"input": "x", "stream": True})
        await server.aclose()
        return [*replies, streamed]

    with caplog.at_level(logging.DEBUG):
        replies = asyncio.run(scenario())
    shown = f"{replies} {capture.read('r1')} {server!r} {config!r} {config} {caplog.text}"
    assert KEY not in shown
    assert TOKEN not in shown
    assert all(reply.status >= 400 for reply in replies)
