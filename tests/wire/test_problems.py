from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from gymkit.wire.problems import sentences, wire_error


class Leaf(TypedDict):
    type: Literal["leaf"]
    leaf: int


class Twig(TypedDict):
    type: Literal["twig"]
    leaves: list[Annotated[Leaf | Twig, Field(discriminator="type")]]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: Annotated[int, Field(ge=0)]
    name: Annotated[str, Field(pattern="^[a-z]+$", max_length=4)] = "a"


def told(schema: Any, data: object) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(schema).validate_python(data)
    return sentences(raised.value, data)


@pytest.mark.parametrize(
    ("schema", "data", "expected"),
    [
        (int, "x", ["the whole: must be a whole number, not 'x'"]),
        (int, 1.5, ["the whole: must be a whole number, not 1.5"]),
        (float, None, ["the whole: must be a number, not null"]),
        (bool, 3, ["the whole: must be true or false, not 3"]),
        (list[int], {"a": 1}, ["the whole: must be a list, not an object"]),
        (list[int], [1, [2], True, "3", None], [
            "[1]: must be a whole number, not a list", "[4]: must be a whole number, not null",
        ]),
        (dict[str, str], {"a b": 1}, ["a b: must be text, not 1"]),
        (str | int, [], ["the whole: must be text or a whole number, not a list"]),
        (str | list[int], ["x"], ["[0]: must be a whole number, not 'x'"]),
        (Literal["a", "b"], "c" * 31, ["the whole: must be 'a' or 'b', not a text of 31 characters"]),
        (Closed, [], ["the whole: must be an object, not a list"]),
        (Closed, {}, ["size: is missing"]),
        (Closed, {"size": 1, "syze": 2}, ["syze: is not a field of this object"]),
        (Closed, {"size": -1, "name": "toolong"}, [
            "size: must be greater than or equal to 0", "name: must have at most 4 characters",
        ]),
        (Closed, {"size": 1, "name": "A"}, ["name: must match pattern '^[a-z]+$'"]),
    ],
)  # fmt: skip
def test_each_problem_is_a_path_and_a_reason(schema: Any, data: object, expected: list[str]) -> None:
    assert told(schema, data) == expected


def test_a_union_member_s_name_is_no_part_of_the_path() -> None:
    data = {
        "type": "twig",
        "leaves": [{"type": "leaf", "leaf": 1}, {"type": "leaf"}, {"type": "twig"}, {"type": "bud"}],
    }
    assert told(Twig, data) == [
        "leaves[1].leaf: is missing",
        "leaves[2].leaves: is missing",
        "leaves[3]: has the unknown type 'bud'",
    ]


def test_a_field_named_like_its_type_is_part_of_the_path() -> None:
    assert told(Twig, {"type": "twig", "leaves": [{"type": "leaf", "leaf": "x"}]}) == [
        "leaves[0].leaf: must be a whole number, not 'x'"
    ]


def test_a_huge_number_is_not_written_out() -> None:
    """The repr of an integer of more than 4,300 digits raises."""
    assert told(str, 10**5_000) == ["the whole: must be text, not a number of more than 64 bits"]
    assert told(int, "9" * 5_000) == ["the whole: must be a whole number, not a text of 5000 characters"]


def test_long_keys_and_values_are_cut() -> None:
    (problem,) = told(dict[str, dict[str, int]], {"k" * 5_000: {"q": 10.5}})
    assert problem == f"{'k' * 39}….q: must be a whole number, not 10.5"


def test_the_first_five_are_told_and_the_rest_counted() -> None:
    data = ["x"] * 7
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(list[int]).validate_python(data)
    error = wire_error("the list", raised.value, data)
    assert len(error.problems) == 6 and error.problems[-1] == "and 2 more"
    assert str(error).startswith("the list is invalid: [0]: must be a whole number, not 'x'; [1]: ")
