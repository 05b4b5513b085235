from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from gymkit.errors import ConfigError
from gymkit.views.html import Html
from gymkit.views.site import Site
from tests.views.parsed import PAGE, Parsed
from tests.views.runs import Store, rewards

HOSTILE = "<script>window.hacked = 1</script>\"'&#x27;javascript:alert(1)\x1b\u202e"


def pages(frame: pd.DataFrame | None = None, *texts: str, **record: Any) -> Site:
    store = Store(texts or ("hello",), **record)

    def row(task: int, rollout: int) -> dict[str, Any]:
        return {"note": "seen twice", **record}

    frame = rewards(100, 4) if frame is None else frame
    return Site(frame, conversation=store.conversation, record=row, title="counter × agent", summary=Html("<p>0.5</p>"))


def links(page: str) -> dict[str, str]:
    return {
        Parsed(text).text: address.replace("&amp;", "&")
        for address, text in re.findall(r'href="([^"]+)"[^>]*>(.*?)</a>', page)
    }


def test_the_index_is_turned_page_by_page() -> None:
    site = pages()
    first = site.index({})
    assert "1 to 100 of 400 rollouts" in Parsed(first).text
    assert first.count('href="/rollout/') == 100
    assert links(first)["later ›"] == "/?page=2"
    last = site.index({"page": "4", "sort": "-reward"})
    assert "page 4 of 4" in Parsed(last).text
    assert links(last)["‹ earlier"] == "/?sort=-reward&page=3"
    assert "page 4 of 4" in Parsed(site.index({"page": "99"})).text


def test_links_filter_and_sort_and_keep_each_other() -> None:
    site = pages()
    failed = site.index({"status": "failed", "sort": "reward"})
    assert "1 to 100 of 100 rollouts" in Parsed(failed).text
    assert links(failed)["timeout (100)"] == "/?sort=reward&status=failed&failure_kind=timeout"
    assert links(failed)["any status"] == "/?sort=reward"
    assert links(failed)["reward ↑"] == "/?status=failed&sort=-reward"
    assert 'href="/rollout/0/2?sort=reward&amp;status=failed"' in failed
    none = site.index({"failure_kind": ""})
    assert "of 200 rollouts" in Parsed(none).text
    assert Parsed(site.index({"status": "wonderful"})).text.count("no rollouts") == 1


def test_a_rollout_has_its_evidence_its_conversation_and_its_neighbours() -> None:
    site = pages()
    page = site.rollout(1, 2, {"status": "failed"})
    text = Parsed(page).text
    assert "task 1 · rollout 2" in text
    assert "Failed: there is no result" in text
    assert "I am 1, 2" in text
    assert links(page)["‹ previous"] == "/rollout/0/2?status=failed"
    assert links(page)["next ›"] == "/rollout/2/2?status=failed"
    assert links(page)["all rollouts"] == "/?status=failed"
    assert "‹ previous" not in links(site.rollout(0, 0, {}))
    assert "next ›" not in links(site.rollout(1, 0, {"status": "failed"})), "it is not among those"
    raw = site.rollout(1, 2, {"raw": "1"})
    assert '"note": "seen twice"' in Parsed(raw).text
    assert "I am 1, 2" not in raw


def test_a_conversation_is_turned_page_by_page() -> None:
    page = pages(None, *["x" * 10_000] * 10).rollout(0, 0, {"page": "2"})
    assert "entries 4 to 5 of 11" in Parsed(page).text
    assert links(page)["later ›"] == "/rollout/0/0?page=3"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"page": "0"}, "page=0"),
        ({"page": "²"}, "page=²"),
        ({"page": "-1"}, "page=-1"),
        ({"sort": "rewrd"}, "did you mean 'reward'"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_in_a_sentence(asked: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        pages().index(asked)
    with pytest.raises(ConfigError, match="no row with task_index 999"):
        pages().rollout(999, 0, {})


def test_hostile_runs_and_addresses_are_shown_and_never_interpreted() -> None:
    site = pages(rewards(2, 2, task_id=HOSTILE).assign(failure_kind=HOSTILE), HOSTILE, **{HOSTILE: HOSTILE})
    asked = {"status": HOSTILE, "failure_kind": HOSTILE}
    for page in (
        site.index({"failure_kind": HOSTILE}),
        site.index(asked),
        site.rollout(0, 0, asked),
        site.rollout(0, 1, {"raw": HOSTILE}),
    ):
        found = Parsed(page)
        assert set(found.elements) <= PAGE
        assert all(value and value.startswith("/") for name, value in found.attributes if name == "href")
        assert not {name for name, _ in found.attributes} & {"src", "style", "onerror"}
