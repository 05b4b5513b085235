"""A tool's schema comes from its signature and docstring, its arguments are checked, its result becomes JSON."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, Field, ValidationError

from gymkit.servers.tool import Tool, encoded
from gymkit.wire import codec


class Suit(Enum):
    HEARTS = "hearts"
    SPADES = "spades"


class Card(BaseModel):
    suit: Suit
    rank: int


def google(state: Any, letters: str, times: int = 2) -> str:
    """Mix the letters
    well.

    Mixing is fair.

    Args:
        letters: The letters to mix,
            in any order.
        times (int): How often.

    Returns:
        The same letters.
    """
    return letters * times


def numpy_style(state: Any, letters: str, times: int = 2) -> str:
    """Mix the letters well.

    Parameters
    ----------
    letters : str
        The letters to mix, in any order.
    times
        How often.
    """
    return letters * times


def sphinx(state: Any, letters: str, times: int = 2) -> str:
    """Mix the letters well.

    :param letters: The letters to mix, in any order.
    :param times: How often.
    """
    return letters * times


@pytest.mark.parametrize("function", [google, numpy_style, sphinx])
def test_arguments_are_described_by_the_docstring_in_each_of_the_usual_styles(function: Any) -> None:
    schema = Tool(function).schema()
    assert schema["description"] == "Mix the letters well."
    assert schema["parameters"] == {
        "type": "object",
        "properties": {
            "letters": {"type": "string", "description": "The letters to mix, in any order."},
            "times": {"type": "integer", "default": 2, "description": "How often."},
        },
        "required": ["letters"],
        "additionalProperties": False,
    }


def test_an_annotation_may_describe_and_bound_an_argument() -> None:
    def guess(state: Any, count: Annotated[int, Field(ge=1, le=6, description="Eyes of the die.")]) -> None: ...

    field = Tool(guess).schema()["parameters"]["properties"]["count"]
    assert field == {"type": "integer", "minimum": 1, "maximum": 6, "description": "Eyes of the die."}
    with pytest.raises(ValidationError):
        Tool(guess).checked({"count": 7})


def test_strict_is_claimed_only_where_strict_mode_would_accept_the_schema() -> None:
    def plain(state: Any, count: int) -> None: ...
    def optional(state: Any, count: int = 1) -> None: ...
    def loose(state: Any, count: dict[str, int]) -> None: ...
    def nested(state: Any, card: Card) -> None: ...
    def chosen(state: Any, suit: Literal["hearts", "spades"], cards: list[str]) -> None: ...
    def nothing(state: Any) -> None: ...

    found = {each.__name__: Tool(each).schema()["strict"] for each in (plain, optional, loose, nested, chosen, nothing)}
    assert found == {
        "plain": True,
        "optional": False,
        "loose": False,
        "nested": False,
        "chosen": True,
        "nothing": True,
    }


def test_arguments_may_be_called_like_anything_that_models_have() -> None:
    def odd(state: Any, json: str, copy: int, model_config: str, self_: str = "x", model_fields: int = 3) -> str:
        return f"{json}{copy}{model_config}{self_}{model_fields}"

    tool = Tool(odd)
    assert list(tool.schema()["parameters"]["properties"]) == ["json", "copy", "model_config", "self_", "model_fields"]
    checked = tool.checked({"json": "a", "copy": 1, "model_config": "b"})
    assert asyncio.run(tool(None, checked)) == "a1bx3"
    with pytest.raises(ValidationError) as caught:
        tool.checked({"json": "a", "copy": "many", "model_config": "b"})
    assert caught.value.errors()[0]["loc"] == ("copy",)


def test_a_mutable_default_is_new_for_every_call() -> None:
    def collect(state: Any, word: str, words: list[str] = [], seen: dict[str, int] = {}) -> list[str]:  # noqa: B006
        words.append(word)
        seen[word] = 1
        return [*words, *seen]

    tool = Tool(collect)
    for word in ("a", "b"):
        assert asyncio.run(tool(None, tool.checked({"word": word}))) == [word, word]


def test_arguments_arrive_as_what_their_annotation_says() -> None:
    def play(state: Any, card: Card, suit: Suit) -> str:
        return f"{card.rank} {card.suit.name} {suit.name}"

    tool = Tool(play)
    checked = tool.checked({"card": {"suit": "spades", "rank": 3}, "suit": "hearts"})
    assert asyncio.run(tool(None, checked)) == "3 SPADES HEARTS"


def test_a_plain_function_runs_in_a_thread_where_there_are_some_and_a_coroutine_on_the_loop() -> None:
    def plain(state: Any) -> str:
        return threading.current_thread().name

    async def coroutine(state: Any) -> str:
        return threading.current_thread().name

    async def both(threads: ThreadPoolExecutor | None) -> list[str]:
        return [await Tool(each, threads)(None, {}) for each in (plain, coroutine)]

    here = threading.current_thread().name
    with ThreadPoolExecutor(thread_name_prefix="mine") as threads:
        assert asyncio.run(both(threads)) == ["mine_0", here]
    assert asyncio.run(both(None)) == [here, here]


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": np.int64(3), "b": np.array([1.5, 2.5])}, {"a": 3, "b": [1.5, 2.5]}),
        (np.float64(0.5), 0.5),
        (pd.Series(["a", "b"]), ["a", "b"]),
        ([Card(suit=Suit.HEARTS, rank=2)], [{"suit": "hearts", "rank": 2}]),
        (Point(3), {"x": 3}),
        ({1: "a"}, {"1": "a"}),
        ({"a": np.float64("nan")}, {"a": None}),
        ("half an emoji \ud83d", "half an emoji \ud83d"),
    ],
)
def test_results_that_are_nearly_json_become_json(value: Any, expected: Any) -> None:
    assert codec.loads(encoded(value)) == expected


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, open])
def test_results_that_are_not_say_so(value: Any) -> None:
    with pytest.raises(TypeError, match="is not JSON"):
        encoded(value)
