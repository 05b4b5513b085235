"""What functions need to stand on their own is found, or else refused by name."""

from __future__ import annotations

import asyncio
import functools
import json as jason
import math
import os.path
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError
from gymkit.sdk.sources import Sources, _Collector, digest_of, sources_of
from tests.sdk import parity

LIMIT = 3
NAMES = ("a", 1.5, None, frozenset({2, 1}), ("x",))
PATTERN = re.compile("[a-z]+", re.IGNORECASE)
SEEN: list[str] = []
TABLE = {"a": 1}
FRAME = pd.DataFrame()
RNG = np.random.default_rng(0)
NOWHERE = float("nan")
Size = Literal["small", "large"]


@dataclass
class Board:
    """Cells."""

    cells: list[str]

    def full(self) -> bool:
        return len(self.cells) >= LIMIT


def shout(text: str) -> str:
    return text.upper()


@functools.cache
def loud(text: str) -> str:
    return shout(text) + "!"


def even(number: int) -> bool:
    return number == 0 or odd(number - 1)


def odd(number: int) -> bool:
    return number != 0 and even(number - 1)


def found(*functions: Callable[..., Any]) -> Sources:
    return sources_of(functions)


def rich(state: Any, text: Annotated[str, "words"], how: Literal["a", "b"] = "a") -> str:
    words = PATTERN.findall(text)[:LIMIT]
    board = Board([*words, *map(str, NAMES)])
    return jason.dumps([loud(word) for word in words if even(math.floor(2.5)) and board.full()])


def test_imports_constants_and_helpers_are_followed_and_locals_are_not() -> None:
    sources = found(rich)
    assert sources.imports == {
        "Annotated": "from typing import Annotated",
        "Any": "from typing import Any",
        "Literal": "from typing import Literal",
        "dataclass": "from dataclasses import dataclass",
        "functools": "import functools",
        "jason": "import json as jason",
        "math": "import math",
        "re": "import re",
    }
    assert sources.constants == {
        "LIMIT": "3",
        "NAMES": "('a', 1.5, None, frozenset([1, 2]), ('x',))",
        "PATTERN": f"re.compile('[a-z]+', {int(PATTERN.flags)})",
    }
    assert set(sources.helpers) == {"Board", "even", "odd", "shout", "loud"}
    assert sources.helpers["Board"].startswith("@dataclass\nclass Board:")
    assert sources.helpers["loud"].startswith("@functools.cache\ndef loud")
    assert list(sources.helpers).index("shout") < list(sources.helpers).index("loud")
    assert sources.postponed
    assert not sources.packages


def test_what_was_collected_runs_on_its_own() -> None:
    sources = found(rich)
    text = "\n".join(
        [
            "from __future__ import annotations",
            *sources.imports.values(),
            *(f"{name} = {value}" for name, value in sources.constants.items()),
            *sources.helpers.values(),
            *sources.functions.values(),
        ]
    )
    module = sys.modules["elsewhere"] = types.ModuleType("elsewhere")
    try:
        exec(compile(text, "<elsewhere>", "exec"), module.__dict__)
        assert module.rich(None, "Some more words here") == rich(None, "Some more words here")
    finally:
        del sys.modules["elsewhere"]


def uses_numpy(state: Any) -> float:
    return float(np.mean([1.0, 2.0])) + len(os.path.sep)


def test_packages_of_others_are_named() -> None:
    sources = found(uses_numpy)
    assert sources.packages == {"numpy"}
    assert sources.imports["np"] == "import numpy as np"
    assert sources.imports["os"] == "import os"


def appends(state: Any) -> None:
    SEEN.append("x")


def looks_up(state: Any) -> int:
    return TABLE["a"]


def queries(state: Any) -> int:
    return len(FRAME)


def rolls(state: Any) -> float:
    return float(RNG.random())


def wishes(state: Any) -> float:
    return NOWHERE


def sizes(state: Any, size: Size) -> None: ...


def misses(state: Any) -> Any:
    return nothing_of_that_name  # type: ignore[name-defined]  # noqa: F821


def borrows(state: Any) -> Any:
    return parity.__name__


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (appends, "appends reads SEEN, a list that only this notebook has: put it into the tasks"),
        (looks_up, "looks_up reads TABLE, a dict that"),
        (queries, "queries reads FRAME, a DataFrame that"),
        (rolls, "rolls reads RNG, a Generator that"),
        (wishes, "wishes reads NOWHERE, a float that"),
        (sizes, "sizes reads Size, a "),
        (misses, "misses uses nothing_of_that_name, which is not defined"),
        (borrows, "uses the module tests.sdk.parity, which is no installed package"),
        (lambda state: None, "the text of lambda cannot be had"),
    ],
)
def test_what_only_the_notebook_has_is_refused_by_name(function: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        found(function)


def test_a_closure_a_renamed_function_and_one_without_text_are_refused() -> None:
    count = 3

    def closing(state: Any) -> int:
        return count

    def renamed(state: Any) -> None: ...

    renamed.__name__ = "other"
    space: dict[str, Any] = {}
    exec("def typed(state): return 1", space)
    for function, told in {
        closing: "closing takes count from the function that it was written in",
        renamed: "the text of other cannot be had",
        space["typed"]: "the text of typed cannot be had",
        len: "the text of len cannot be had",
    }.items():
        with pytest.raises(ConfigError, match=told):
            found(function)


def test_decorators_of_an_environment_go_and_others_stay() -> None:
    class env:
        tool = staticmethod(lambda function: function)

    @env.tool
    async def waits(state: Any) -> None:
        await asyncio.sleep(0)

    assert found(waits).functions["waits"].startswith("async def waits(state: Any)")
    assert found(waits).imports["asyncio"] == "import asyncio"


def test_functions_of_one_environment_that_call_each_other_come_once() -> None:
    sources = found(even, odd)
    assert list(sources.functions) == ["even", "odd"]
    assert not sources.helpers


def test_the_digest_changes_with_what_is_done_and_not_with_how_it_is_written(tmp_path: Any) -> None:
    texts = {
        "one": "LIMIT = 3\ndef work(state):\n    return LIMIT + 1\n",
        "commented": "LIMIT = 3\n\n# yes\ndef work(state):\n    return (LIMIT\n            + 1)  # no\n",
        "constant": "LIMIT = 4\ndef work(state):\n    return LIMIT + 1\n",
        "code": "LIMIT = 3\ndef work(state):\n    return LIMIT + 2\n",
        "helper": "LIMIT = 3\ndef work(state):\n    return LIMIT + one()\ndef one():\n    return 1\n",
        "mutable": "LIMIT = [3]\ndef work(state):\n    return LIMIT + 1\n",
    }
    digests = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        space: dict[str, Any] = {"__name__": name}
        exec(compile(text, str(path), "exec"), space)
        digests[name] = digest_of([space["work"]])
    assert digests["one"] == digests["commented"]
    assert len(set(digests.values())) == len(texts) - 1
    assert digest_of([eval("lambda state: None")]) is None


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.binary(max_size=9)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.recursive(SCALARS | NUMBERS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5))
def test_a_constant_is_written_so_that_it_reads_back(value: Any) -> None:
    assert eval(str(_Collector([])._constant(value))) == value


def test_a_name_with_two_meanings_is_refused(tmp_path: Any) -> None:
    spaces = []
    for name, limit in (("first", 1), ("second", 2)):
        path = tmp_path / f"{name}.py"
        path.write_text(f"LIMIT = {limit}\ndef {name}(state):\n    return LIMIT\n")
        space: dict[str, Any] = {"__name__": name}
        exec(compile(path.read_text(), str(path), "exec"), space)
        spaces.append(space[name])
    with pytest.raises(ConfigError, match="LIMIT means one thing in second and another elsewhere"):
        found(*spaces)
