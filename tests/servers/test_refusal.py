"""What an error's body says, as a sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import BadStatus
from gymkit.servers.app import ServerApp
from gymkit.servers.base_url import base_url_problem
from gymkit.servers.http import Refused, Request
from gymkit.servers.refusal import kind_behind, sentence
from gymkit.servers.route import Reply, Route


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"detail": "no such task", "kind": "invalid"}, "no such task"),
        (
            {"detail": [{"loc": ["body", "n"], "msg": "Field required"}, {"loc": [], "msg": "bad"}]},
            "body.n: Field required; bad",
        ),
        ({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, "Incorrect API key"),
        ({"error": "RuntimeError('too busy')"}, "RuntimeError('too busy')"),
        ({"message": "overloaded"}, "overloaded"),
        ({"detail": "", "message": "overloaded"}, "overloaded"),
        ({"detail": ["one", "two"]}, "one; two"),
        ({"detail": {"code": 3}}, None),
        ({"answer": 42}, None),
        (["detail"], None),
    ],
)
def test_the_sentence_is_where_servers_put_it(body: object, said: str | None) -> None:
    assert sentence(json.dumps(body).encode()) == said


@given(
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda each: (
            st.lists(each) | st.dictionaries(st.sampled_from(["detail", "error", "message", "msg", "loc"]), each)
        ),
    ).map(lambda body: json.dumps(body).encode())
)
def test_no_body_breaks_it(body: bytes) -> None:
    said = sentence(body)
    assert said is None or (said and len(said) <= 1000)
    assert kind_behind(body) is None


@pytest.mark.parametrize("kind", ["unreachable", "timeout", "redirect", "not_json", "invalid_response"])
def test_how_a_call_behind_broke_is_the_kind_of_the_whole_chain(kind: str) -> None:
    import asyncio

    class Broken(Refusing):
        async def _go(self, request: Request) -> object:
            raise Refused(502, "nobody there", kind=kind)

    inner = Route.to_app("agent", Behind("agent", Route.to_app("policy", Broken("policy"))))
    outer = Route.to_app("environment", Behind("environment", inner))
    with pytest.raises(BadStatus) as caught:
        asyncio.run(outer.post("/go", {})).expect_ok()
    assert (caught.value.kind, caught.value.status) == (kind, 500)


@pytest.mark.parametrize(
    "body",
    [
        {"detail": "no key", "kind": "invalid_api_key"},  # it answered, and said no
        {"kind": "timeout"},  # somebody else's word
        {"detail": "Internal Server Error"},  # as NeMo Gym's servers say it
        {"detail": "x", "kind": ["timeout"]},
        "RuntimeError('timeout')",
    ],
)
def test_any_other_error_is_a_status(body: object) -> None:
    with pytest.raises(BadStatus) as caught:
        Reply("svc", "http://gpu/run", 500, [], json.dumps(body).encode()).expect_ok()
    assert caught.value.kind == BadStatus.kind == "http_status"


class Behind(ServerApp):
    """Passes a call on, and lets its failure through."""

    server_type, implementation = "responses_api_agents", "behind"

    def __init__(self, name: str, route: Route) -> None:
        super().__init__(name)
        self._route = route

    def handlers(self):  # type: ignore[no-untyped-def]
        return {"POST /go": self._go}

    async def _go(self, request: Request) -> object:
        return (await self._route.post("/go", {})).expect_ok().json()


class Refusing(ServerApp):
    server_type, implementation = "responses_api_models", "refusing"

    def handlers(self):  # type: ignore[no-untyped-def]
        return {"POST /go": self._go}

    async def _go(self, request: Request) -> object:
        raise Refused(502, "http://gpu:8000/v1 answered 401: Incorrect API key", kind="invalid_api_key")


def test_through_servers_in_this_process_a_failure_stays_one_sentence() -> None:
    """As it did not: each server wrapped the body of the one behind it in a string of its own."""
    import asyncio

    inner = Route.to_app("policy", Refusing("policy"))
    outer = Route.to_app("agent", Behind("agent", inner))

    async def call() -> None:
        (await outer.post("/go", {})).expect_ok()

    with pytest.raises(BadStatus) as caught:
        asyncio.run(call())
    assert str(caught.value) == "agent: policy: http://gpu:8000/v1 answered 401: Incorrect API key"


def test_of_a_service_elsewhere_address_and_status_are_told_too() -> None:
    reply = Reply("svc", "http://gpu/v1/responses", 500, [], b'{"error": {"message": "out of memory"}}')
    with pytest.raises(BadStatus, match=r"^http://gpu/v1/responses answered 500 Internal Server Error: out of memory$"):
        reply.expect_ok()


@pytest.mark.parametrize("url", ["localhost:9000", "127.0.0.1:9/v1", "localhost", "gpu-1.local:8000/base"])
def test_an_address_without_a_scheme_is_told_what_to_write(url: str) -> None:
    assert base_url_problem(url) == f"must start with http:// or https://, as in http://{url}"


@pytest.mark.parametrize("url", ["sk-proj-0123456789", "user:secret@host", "", "ftp://host:21"])
def test_what_may_be_a_secret_is_not_repeated(url: str) -> None:
    problem = base_url_problem(url)
    assert problem is not None and problem == "must start with http:// or https://"
