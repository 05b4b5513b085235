"""Sessions: bounded in number and time, and not to be forged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.servers.session import Sessions, SessionsFull


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_cookie_finds_its_session_and_no_other() -> None:
    sessions: Sessions[str] = Sessions("s")
    first, second = sessions.open(), sessions.open()
    assert sessions.find(first.cookie) is first
    assert sessions.find(second.cookie) is second
    assert first.cookie != second.cookie


def test_a_cookie_made_up_by_somebody_is_nobodys() -> None:
    sessions: Sessions[str] = Sessions("s")
    cookie = sessions.open().cookie
    forged = cookie[:-3] + ("aaa" if not cookie.endswith("aaa") else "bbb")
    assert sessions.find(forged) is None
    assert not sessions.was_ours(forged)
    assert not Sessions("s").was_ours(cookie), "the key is random: the same name does not open another server's cookies"


def test_an_idle_session_expires_and_is_still_known_as_ours() -> None:
    clock = Clock()
    sessions: Sessions[str] = Sessions("s", ttl=10, clock=clock)
    session = sessions.open()
    clock.now = 9
    assert sessions.find(session.cookie) is session, "use keeps it alive"
    clock.now = 18
    assert sessions.find(session.cookie) is session
    clock.now = 29
    sessions.open()
    assert sessions.find(session.cookie) is None
    assert sessions.was_ours(session.cookie)


def test_a_finished_session_lingers_for_a_repeated_request_then_goes() -> None:
    clock = Clock()
    sessions: Sessions[str] = Sessions("s", linger=5, clock=clock)
    session = sessions.open()
    sessions.finish(session)
    assert sessions.find(session.cookie) is session
    clock.now = 6
    sessions.open()
    assert sessions.find(session.cookie) is None


def test_at_the_limit_finished_sessions_make_room_and_live_ones_do_not() -> None:
    sessions: Sessions[str] = Sessions("s", limit=2)
    live, finished = sessions.open(), sessions.open()
    sessions.finish(finished)
    newest = sessions.open()
    assert sessions.find(finished.cookie) is None
    assert sessions.find(live.cookie) is live
    with pytest.raises(SessionsFull, match="2 rollouts are open"):
        sessions.open()
    assert sessions.find(newest.cookie) is newest


@given(st.lists(st.sampled_from(["open", "finish", "drop", "wait"]), max_size=60))
def test_whatever_happens_the_bound_holds(actions: list[str]) -> None:
    clock = Clock()
    sessions: Sessions[int] = Sessions("s", limit=5, ttl=20, linger=3, clock=clock)
    opened = []
    for action in actions:
        clock.now += 1
        if action == "open":
            try:
                opened.append(sessions.open())
            except SessionsFull:
                assert len(sessions) == 5
        elif action == "wait":
            clock.now += 7
        elif opened:
            getattr(sessions, action)(opened[len(opened) // 2])
        assert len(sessions) <= 5


def test_a_named_session_is_found_until_it_is_dropped_or_has_expired() -> None:
    clock = Clock()
    sessions: Sessions[str] = Sessions("s", ttl=10, clock=clock)
    dropped, idle = sessions.open(), sessions.open()
    sessions.give_name(dropped, "dropped")
    sessions.give_name(idle, "idle")
    assert sessions.named("idle") is idle
    sessions.drop(dropped)
    clock.now = 11
    sessions.open()
    assert sessions.named("dropped") is sessions.named("idle") is None
    assert sessions._named == {}, "names are not kept longer than sessions"
