"""The environments we ship: what their verifiers reward, and their registry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.resources import ALIASES, SHIPPED, canonical, load
from gymkit.resources.counter import Counter, CounterState, CounterTask
from gymkit.resources.synonyms import Synonyms, SynonymsTask
from gymkit.resources.weather import Weather
from gymkit.servers.resources import Verdict
from gymkit.testing.agent import answer, call, respond
from gymkit.wire.tasks import TaskRow

PARAMS = {"input": "x"}
SYNONYMS = {
    "responses_create_params": PARAMS,
    "id": 0,
    "expected_synonyms": ["ab", "c"],
    "expected_synonym_values": [195, 99],
    "minefield_label": "d",
    "minefield_label_value": 100,
}


def synonyms(*values: Any) -> dict[str, Any]:
    server = Synonyms("s")
    calls = [call("extract_synonym_values", f"c{index}", synonym_values=value) for index, value in enumerate(values)]
    verdict = server.verify(None, SynonymsTask.model_validate(SYNONYMS), respond([*calls, answer("done")]))
    assert isinstance(verdict, Verdict)
    return verdict.fields()


@given(st.integers(), st.lists(st.integers(-1000, 1000)), st.integers(-3, 3))
def test_the_counter_rewards_the_expected_count_and_no_other(start: int, adds: list[int], off: int) -> None:
    server = Counter("c")
    task = CounterTask.model_validate(
        {"responses_create_params": PARAMS, "initial_count": start, "expected_count": start + sum(adds) + off}
    )
    state = server.seed(task)
    assert isinstance(state, CounterState)
    for number in adds:
        server.increment_counter(state, number)
    assert server.verify(state, task, respond([])) == float(off == 0)


def test_the_weather_rewards_the_call() -> None:
    server, task = Weather("w"), TaskRow.model_validate({"responses_create_params": PARAMS})
    assert server.verify(None, task, respond([call("get_weather", city="Oslo"), answer("cold")])) == 1.0
    assert server.verify(None, task, respond([answer("cold")])) == 0.0
    assert server.get_weather(None, "Oslo")["city"] == "Oslo"


def test_the_synonyms_reward_the_last_list_in_order() -> None:
    assert synonyms([195, 99])["reward"] == 1.0
    assert synonyms([1], [195, 99])["reward"] == 1.0
    wrong_order = synonyms([99, 195])
    assert (wrong_order["reward"], wrong_order["order_instruction_following_failure"]) == (0.0, True)
    mine = synonyms([195, 100])
    assert (mine["reward"], mine["original_term_minefield_hit"], mine["set_overlap"]) == (0.0, True, 0.5)
    assert synonyms()["parsed_synonym_values"] == []
    assert synonyms(["195", 99])["parsed_synonym_values"] == [99]
    assert Synonyms("s").get_synonym_value(None, "ab") == {"synonym_value": 195}


def test_every_name_loads_and_an_alias_is_the_same_server() -> None:
    for name in SHIPPED:
        assert load(name).implementation == name
    for alias, name in ALIASES.items():
        assert load(alias) is load(name)
    with pytest.raises(ConfigError, match="did you mean 'weather'"):
        canonical("wheather")
