"""A request as a handler sees it: cookies from any client, bodies that are checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gymkit.servers.http import Refused, Request

NAMES = st.from_regex(r"[A-Za-z_]{1,8}", fullmatch=True)
VALUES = st.from_regex(r"[A-Za-z0-9._=-]{0,12}", fullmatch=True)


class Body(BaseModel):
    """What a handler wants."""

    count: int


def request(*headers: tuple[bytes, bytes], body: bytes = b"") -> Request:
    return Request("POST", "/run", list(headers), body)


@given(st.dictionaries(NAMES, VALUES), st.booleans())
def test_cookies_are_read_quoted_or_not(cookies: dict[str, str], quoted: bool) -> None:
    line = "; ".join(f'{name}="{value}"' if quoted else f"{name}={value}" for name, value in cookies.items())
    found = request((b"cookie", line.encode("latin-1"))) if cookies else request()
    assert found.cookies() == cookies
    for name, value in cookies.items():
        assert found.cookie(name) == value
    assert found.cookie("not there") is None


def test_cookies_may_come_in_several_lines_and_without_spaces() -> None:
    found = request((b"cookie", b"a=1;b=2"), (b"accept", b"c=3"), (b"cookie", b"d=x=y"))
    assert found.cookies() == {"a": "1", "b": "2", "d": "x=y"}


def test_a_body_is_checked_against_a_model() -> None:
    assert request(body=b'{"count": 3}').checked(Body).count == 3


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"count": "many"}', b"\xff"])
def test_a_body_that_does_not_fit_is_refused_without_its_values(body: Any) -> None:
    with pytest.raises(Refused) as caught:
        request(body=body).checked(Body)
    assert caught.value.status == 422
    assert caught.value.detail
