"""What may be seeded, and what a session is bound to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.usersim.digest import digest_of
from gymkit.usersim.package import revision
from gymkit.usersim.resources import NemoUserSimResources, NemoUserSimResourcesConfig
from gymkit.wire import codec
from tests.usersim.house import House, row_of
from tests.usersim.test_masking import Broken, _body, _seed

Row = dict[str, Any]


def _post(row: Row, *, change: Callable[[Row], None] | None = None, **config: Any) -> Reply:
    app = NemoUserSimResources("r", NemoUserSimResourcesConfig(**config), evaluator=Broken(), judge=None)
    if change:
        change(row["resolved_row"])
    return asyncio.run(Route.to_app("r", app).post("/seed_session", _seed(row)))


def _provenance(row: Row, **changes: Any) -> None:
    told = codec.loads(row["usersim_provenance"].encode())
    row["usersim_provenance"] = codec.dumps({**told, **changes}).decode()


def test_a_row_made_here_is_taken() -> None:
    reply = _post(row_of("general_open_ended"))
    assert reply.json() == {"resources_session_id": "s1"}
    assert reply.cookies()


@pytest.mark.parametrize("name", ["persona", "probe_type", "conversation_language", "trajectory_id", "usersim_config"])
def test_a_row_without_a_required_field_is_refused(name: str) -> None:
    reply = _post(row_of("general_open_ended"), change=lambda row: row.pop(name))
    assert reply.status == 422
    assert f"resolved_row.{name}: is missing" in reply.text


def test_a_guarded_row_is_refused() -> None:
    reply = _post(row_of("health_therapy_disclosure"), change=lambda row: row.update(probe_variant="guarded"))
    assert reply.status == 422
    assert "guarded" in reply.text


def test_another_revision_is_refused_and_both_are_named() -> None:
    reply = _post(row_of("general_open_ended"), change=lambda row: _provenance(row, code_sha="f" * 40))
    assert reply.status == 422
    assert "f" * 40 in reply.text
    assert revision() in reply.text


def test_rows_made_elsewhere_are_taken_by_a_server_of_their_revision() -> None:
    theirs = "a5f676bf6dc5a73914c8a0860f97c10dd2c214ee"
    row = row_of("general_open_ended")
    _provenance(row["resolved_row"], code_sha=theirs)
    assert _post(row, usersim_revision=theirs).status == 200
    assert House(resources_config={"usersim_revision": theirs}).result(row)["reward"] == 1.0


@pytest.mark.parametrize(("version", "status"), [("0.0.2", 200), ("synthetic", 200), ("0.0.1", 422), (None, 422)])
def test_the_version_of_the_personas(version: str | None, status: int) -> None:
    change = lambda row: _provenance(row, nemotron_personas_version=version)  # noqa: E731
    assert _post(row_of("general_open_ended"), change=change).status == status


@pytest.mark.parametrize("text", ["not json", "[1]", None])
def test_provenance_has_to_be_an_object_in_text(text: str | None) -> None:
    assert _post(row_of("general_open_ended"), change=lambda row: row.update(usersim_provenance=text)).status == 422


def test_the_digest_is_over_sorted_compact_json_with_its_own_letters() -> None:
    import hashlib

    row = {"b": [1, 2.5, None], "a": "é日"}
    expected = hashlib.sha256('{"a":"é日","b":[1,2.5,null]}'.encode()).hexdigest()
    assert digest_of(row) == expected
    assert digest_of({"a": "é日", "b": [1, 2.5, None]}) == expected


def test_seeding_the_same_again_is_the_same_session_and_another_task_is_a_conflict() -> None:
    row = row_of("general_open_ended")

    async def go() -> None:
        app = NemoUserSimResources("r", NemoUserSimResourcesConfig(), evaluator=Broken(), judge=None)
        route, jar = Route.to_app("r", app), CookieJar()
        first = await route.post("/seed_session", _seed(row))
        jar.take(first)
        again = await route.post("/seed_session", _seed(row), cookies=jar)
        assert (again.status, again.cookies()) == (200, first.cookies())
        assert len(app.sessions) == 1
        other = {**_seed(row), "task_id": {"taskset": "t", "task_id": "2"}}
        assert (await route.post("/seed_session", other)).status == 409
        assert (await route.post("/seed_session", {**other, "resources_session_id": "s2"}, cookies=jar)).status == 409

    asyncio.run(go())


def _changed(body: Row, path: str) -> Row:
    changed: Row = codec.loads(codec.dumps(body))
    match path:
        case "episode_id":
            changed["episode_id"]["attempt"] = 1
        case "task_id":
            changed["task_id"]["task_id"] = "other"
        case "resolved_row":
            changed["verification_input"]["resolved_row"]["theme"] = "other"
        case "trajectory_id":
            changed["verification_input"]["usersim_result"]["trajectory_id"] = "other"
    return changed


@pytest.mark.parametrize("path", ["episode_id", "task_id", "resolved_row", "trajectory_id"])
def test_a_verdict_is_given_on_what_was_seeded_or_not_at_all(path: str) -> None:
    row = row_of("general_open_ended")

    async def go() -> Reply:
        app = NemoUserSimResources("r", NemoUserSimResourcesConfig(), evaluator=Broken(), judge=None)
        route, jar = Route.to_app("r", app), CookieJar()
        jar.take(await route.post("/seed_session", _seed(row)))
        return await route.post("/verify", _changed(_body(row), path), cookies=jar)

    reply = asyncio.run(go())
    assert reply.status == 409
    assert path in reply.text


def test_a_verdict_that_got_lost_can_be_asked_for_again_and_is_the_same() -> None:
    row, asked = row_of("general_open_ended"), []

    class Counting(Broken):
        async def evaluate(self, row: Any, result: Any, judge: Any) -> Any:
            asked.append(1)
            return await super().evaluate(row, result, judge)

    async def go() -> list[bytes]:
        app = NemoUserSimResources("r", NemoUserSimResourcesConfig(), evaluator=Counting(), judge=None)
        route, jar = Route.to_app("r", app), CookieJar()
        jar.take(await route.post("/seed_session", _seed(row)))
        return [(await route.post("/verify", _body(row), cookies=jar)).body for _ in range(2)]

    first, second = asyncio.run(go())
    assert first == second
    assert len(asked) == 1


def test_a_close_of_another_episode_is_a_conflict() -> None:
    row = row_of("general_open_ended")

    async def go() -> int:
        app = NemoUserSimResources("r", NemoUserSimResourcesConfig(), evaluator=Broken(), judge=None)
        route = Route.to_app("r", app)
        await route.post("/seed_session", _seed(row))
        close = {"resources_session_id": "s1", "episode_id": {"rollout_id": "9-9", "attempt": 0}}
        return (await route.post("/close_session", close)).status

    assert asyncio.run(go()) == 409
