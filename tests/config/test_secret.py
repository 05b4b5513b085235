"""No secret leaves a configuration."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymkit.config import redacted
from gymkit.config.secret import is_secret_key


@pytest.mark.parametrize(
    "key", ["policy_api_key", "apikey", "API-KEY", "hf_token", "client_secret", "db_password", "Authorization"]
)
def test_secret_keys(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", ["max_output_tokens", "tokens", "keyboard", "port", "monkey"])
def test_other_keys(key: str) -> None:
    assert not is_secret_key(key)


def test_lists_copies_and_urls_are_masked() -> None:
    tree = {
        "api_key": ["first-secret", "second-secret"],
        "header": "Bearer first-secret",
        "url": "http://user:pw@host:1/path",
        "max_output_tokens": 5,
        "token_id_capture": True,
        "password": "",
    }
    assert redacted(tree) == {
        "api_key": ["****", "****"],
        "header": "Bearer ****",
        "url": "http://****@host:1/path",
        "max_output_tokens": 5,
        "token_id_capture": True,
        "password": "",
    }


@settings(max_examples=50, deadline=None)
@given(secret=st.text(min_size=6, max_size=20), before=st.text(max_size=5), after=st.text(max_size=5))
def test_a_secret_is_found_wherever_it_was_interpolated(secret: str, before: str, after: str) -> None:
    masked = redacted({"a": {"token": secret}, "b": [{"c": before + secret + after}]})
    assert secret not in masked["b"][0]["c"].replace("****", "") or secret in before + after
