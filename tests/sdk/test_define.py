"""An environment in a cell: what decorators add, what agents see of it, and what goes wrong in it."""

from __future__ import annotations

import asyncio
import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gymkit as gk
from gymkit.errors import BadStatus, ConfigError, InputError
from gymkit.sdk.defined import DefinedEnv
from gymkit.servers.hosting import Hosted, serve
from gymkit.servers.route import Route
from gymkit.testing.agent import ScriptedAgent, answer, call, outputs

TASKS = [
    {"prompt": "Unscramble: netsil", "word": "listen"},
    {"prompt": "Unscramble: dgo", "word": "dog"},
]


def said(response: dict[str, Any]) -> str:
    text: str = response["output"][-1]["content"][0]["text"]
    return text


def anagram(**options: Any) -> DefinedEnv:
    env = gk.Env.define("anagram", tasks=TASKS, **options)

    @env.tool
    def shuffle(state: dict[str, Any], letters: str) -> str:
        """Put letters in order.

        Args:
            letters: The letters.
        """
        state.setdefault("tries", []).append(letters)
        return "".join(sorted(letters))

    @env.tool
    async def tries(state: dict[str, Any]) -> list[str]:
        """Tell what was tried."""
        await asyncio.sleep(0)
        return state.get("tries", [])  # type: ignore[no-any-return]

    @env.verify
    def check(state: dict[str, Any], task: Any, response: dict[str, Any]) -> float:
        return float(said(response) == task.word)

    return env


@contextmanager
def agent(brain: Callable[[dict[str, Any]], Any]) -> Iterator[tuple[gk.RemoteAgent, ScriptedAgent]]:
    service = ScriptedAgent(brain)
    with serve(service) as hosted:
        yield gk.RemoteAgent(hosted.url, concurrency=8), service


def solver(params: dict[str, Any]) -> Any:
    letters = params["input"][0]["content"].removeprefix("Unscramble: ")
    return [answer("listen")] if outputs(params) else [call("shuffle", letters=letters)]


def test_a_task_played_by_hand() -> None:
    env = anagram()
    assert repr(env) == "<Env anagram: 2 tasks, tools: shuffle, tries>"
    session = env.session(0)
    assert session.call("shuffle", letters="netsil") == "eilnst"
    assert session.call("tries") == ["netsil"]
    assert session.verify("listen") == {"reward": 1.0, "mask_sample": False}
    assert env.session(1).verify("listen")["reward"] == 0.0


def test_a_run_of_an_agent_which_sees_the_tools_and_not_the_answer(tmp_path: Path) -> None:
    with agent(solver) as (remote, service):
        rollouts = anagram().rollouts(remote, repeats=3, output=tmp_path / "r.jsonl", progress=False)
    rewards = rollouts.rewards
    assert rewards.groupby("task_index")["reward"].agg(["mean", "count"]).values.tolist() == [[1.0, 3.0], [0.0, 3.0]]
    assert rollouts.tool_calls["output"].dropna().unique().tolist() == ['"eilnst"', '"dgo"']
    sent = [received.params for received in service.received]
    assert [tool["name"] for tool in sent[0]["tools"]] == ["shuffle", "tries"]
    assert sent[0]["tools"][0]["parameters"]["properties"]["letters"]["description"] == "The letters."
    assert not [params for params in sent if "listen" in str(params["input"][0]) or "word" in str(params)]
    assert rollouts.tasks["word"].tolist() == ["listen", "dog"], "the answer key is on this side"
    assert "row.prompt" not in rollouts.tasks, "which would say what prompt says"


def test_tasks_come_as_a_frame_a_list_or_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "prompt": ["a", "b"],
            "count": [1, 2],
            "score": [0.5, None],
            "flag": pd.array([True, None], dtype="boolean"),
            "day": pd.to_datetime(["2026-01-01", None]),
            "words": [["x"], np.array([1, 2])],
            "key": [{"deep": np.int64(3)}, None],
        },
        index=[7, 9],
    )
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"prompt": "a", "count": 1}\n\n{"prompt": "b", "count": 2}\n')
    rows = gk.Env.define("mine", tasks=frame).rows
    assert [{key: row[key] for key in row if key != "responses_create_params"} for row in rows] == [
        {
            "prompt": "a",
            "count": 1,
            "score": 0.5,
            "flag": True,
            "day": "2026-01-01T00:00:00",
            "words": ["x"],
            "key": {"deep": 3},
        },
        {"prompt": "b", "count": 2, "score": None, "flag": None, "day": None, "words": [1, 2], "key": None},
    ]
    for tasks in (path, str(path), [{"prompt": "a", "count": np.int64(1)}, {"prompt": "b", "count": 2}]):
        assert [row["count"] for row in gk.Env.define("mine", tasks=tasks).rows] == [1, 2]  # type: ignore[arg-type]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"prompt": st.text()},
            optional={"n": st.integers(-(2**53), 2**53), "x": st.floats(allow_nan=False, allow_infinity=False)},
        ),
        min_size=1,
    )
)
def test_what_is_given_is_what_functions_read(tasks: list[dict[str, Any]]) -> None:
    env = gk.Env.define("mine", tasks=tasks)
    assert [{key: row[key] for key in row if key != "responses_create_params"} for row in env.rows] == tasks
    assert [row["responses_create_params"]["input"][0]["content"] for row in env.rows] == [
        row["prompt"] for row in tasks
    ]


def test_a_prompt_may_be_a_conversation_and_parameters_may_be_given_whole() -> None:
    items = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    own = {"input": "Hi", "temperature": 0, "tools": []}
    rows = [{"prompt": items}, {"responses_create_params": own}, {"responses_create_params": {"input": "Hi"}}]
    env = gk.Env.define("mine", tasks=rows)

    @env.tool
    def look(state: Any) -> None: ...

    params = [row["responses_create_params"] for row in env.rows]
    assert params[0]["input"] == items
    assert params[1] == own, "a row that declares its tools keeps them"
    assert [tool["name"] for tool in params[2]["tools"]] == ["look"]


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ([{"word": "x"}], r"tasks\[0\]: prompt: is missing; it is what the agent is asked"),
        ([{"prompt": 3}], r"tasks\[0\]: prompt: must be text or a list of messages, not 3"),
        ([{"prompt": "x"}, {"prompt": "x", "response": "y"}], r"tasks\[1\]: response: is the name of a result's field"),
        ([{"prompt": "x", "_ng_task_index": 3}], "call it something else"),
        ([{"prompt": "x", "f": open}], r"tasks\[0\]: is no JSON object"),
        (["x"], r"tasks\[0\]: must be a dict of fields, not 'x'"),
        ([{"responses_create_params": 3}], "must be an object"),
    ],
)
def test_rows_that_are_no_tasks_are_named(tasks: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        gk.Env.define("mine", tasks=tasks)


@pytest.mark.parametrize(
    ("name", "tasks", "told"),
    [
        ("mine", [], "at least one task"),
        ("my env", TASKS, "'my env' cannot be a name"),
        ("../up", TASKS, "cannot be a name"),
        ("counter", TASKS, "comes with gymkit"),
        ("example_multi_step", TASKS, "comes with gymkit"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(name: str, tasks: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        gk.Env.define(name, tasks=tasks)


def test_earlier_results_serve_as_tasks_again() -> None:
    old = {"responses_create_params": {"input": "x"}, "word": "a", "reward": 1.0, "response": {}, "_ng_task_index": 0}
    [row] = gk.Env.define("mine", tasks=[old]).rows
    assert row == {"responses_create_params": {"input": "x"}, "word": "a"}


def test_changing_what_was_given_changes_no_task() -> None:
    rows = [{"prompt": "x", "words": ["a"]}]
    env = gk.Env.define("mine", tasks=rows)
    rows[0]["words"].append("b")  # type: ignore[attr-defined]
    assert env.rows[0]["words"] == ["a"]


def test_a_cell_run_again_replaces_its_tool_in_its_place() -> None:
    env = anagram()
    assert len(env.rows[0]["responses_create_params"]["tools"]) == 2

    @env.tool
    def shuffle(state: Any, letters: str, times: int = 1) -> str:
        """Do it otherwise."""
        return letters * times

    assert [tool["name"] for tool in env.rows[0]["responses_create_params"]["tools"]] == ["shuffle", "tries"]
    assert env.tools["parameters"].tolist() == ["letters: string, times: integer", ""]
    assert env.session(0).call("shuffle", letters="ab", times=2) == "abab"
    assert shuffle(None, "ab") == "ab", "the function stays what it was"


def two(state: Any) -> None: ...


two.__name__ = "two words"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda state: None, "cannot be called '<lambda>'"),
        (two, "cannot be called 'two words'"),
        (3, "must be a function with a name, not 3"),
        (dict, "cannot say what it takes"),
    ],
)
def test_what_cannot_be_named_cannot_be_a_tool(function: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        anagram().tool(function)


def test_a_function_that_agents_could_not_call_is_refused() -> None:
    env = anagram()

    def verify(state: Any) -> None: ...
    def nothing() -> None: ...
    def stateless(letters: str) -> None: ...
    def starred(state: Any, *letters: str) -> None: ...
    def open_ended(state: Any, **options: str) -> None: ...
    def untyped(state: Any, letters) -> None: ...  # type: ignore[no-untyped-def]
    def positional(state: Any, letters: str, /) -> None: ...
    def unsendable(state: Any, lock: threading.Lock) -> None: ...
    def unresolved(state: Any, letters: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    told = {
        verify: "is a route of the server",
        nothing: r"must be state: def nothing\(state, …\)",
        stateless: "the first parameter of the tool stateless must be state",
        starred: r"takes \*letters: agents are told each argument by name",
        open_ended: r"takes \*\*options",
        untyped: r"does not say what letters is; .*def untyped\(state, letters: str\)",
        positional: "by position only",
        unsendable: "the arguments of the tool unsendable have no JSON schema",
        unresolved: "NoSuchType",
    }
    for function, sentence in told.items():
        with pytest.raises(ConfigError, match=sentence):
            env.tool(function)
    assert list(env.tools["name"]) == ["shuffle", "tries"], "nothing of it was added"


def test_a_verifier_or_a_seed_with_other_parameters_is_refused_at_once() -> None:
    env = anagram()
    with pytest.raises(ConfigError, match=r"cannot be the verify .*def check\(state, task, response\)"):
        env.verify(lambda task, response: 1.0)
    with pytest.raises(ConfigError, match=r"cannot be the seed .*def start\(task\) -> state"):
        env.seed(lambda: {"a": 1})
    with pytest.raises(ConfigError, match="dict cannot be the seed"):
        env.seed(dict)
    env.verify(lambda state, task, response, *, strict=False: 0.5)
    assert env.session(0).verify("x")["reward"] == 0.5


def test_without_a_verifier_nothing_starts_and_a_session_says_why(tmp_path: Path) -> None:
    env = gk.Env.define("mine", tasks=TASKS)
    assert repr(env) == "<Env mine: 2 tasks, tools: none yet, no verifier yet>"
    with agent(solver) as (remote, service):
        with pytest.raises(ConfigError, match="add a verifier"):
            env.rollouts(remote, output=tmp_path / "r.jsonl")
        assert not service.received
    with pytest.raises(BadStatus, match="no verifier"):
        env.session(0).verify("x")


def test_every_rollout_starts_with_a_state_of_its_own() -> None:
    shared: dict[str, Any] = {"board": [["a"]]}
    env = gk.Env.define("mine", tasks=TASKS)

    @env.seed
    def start(task: Any) -> dict[str, Any]:
        return shared

    @env.tool
    def put(state: dict[str, Any], mark: str) -> list[list[str]]:
        state["board"][0].append(mark)
        return state["board"]  # type: ignore[no-any-return]

    sessions = [env.session(task) for task in (0, 1, 0)]
    for session, mark in zip(sessions, "xyz", strict=True):
        assert session.call("put", mark=mark) == [["a", mark]]
    assert shared == {"board": [["a"]]}


def test_a_seed_reads_its_task_and_may_wait() -> None:
    env = gk.Env.define("mine", tasks=TASKS)

    @env.seed
    async def start(task: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"letters": sorted(task["word"])}

    @env.tool
    def letters(state: dict[str, Any]) -> list[str]:
        return state["letters"]  # type: ignore[no-any-return]

    assert env.session(1).call("letters") == ["d", "g", "o"]


def test_a_state_that_cannot_be_copied_or_is_none_is_refused_in_words() -> None:
    env = gk.Env.define("mine", tasks=TASKS)
    env.seed(lambda task: {"lock": threading.Lock()})
    with pytest.raises(BadStatus, match=r"cannot be copied .*__deepcopy__"):
        env.session(0)
    env.seed(lambda task: None)
    with pytest.raises(BadStatus, match="returned None: it must return the state"):
        env.session(0)


def test_functions_that_block_do_not_block_each_other(tmp_path: Path) -> None:
    """Eight rollouts meet in one plain tool; on the loop the first would wait for the others for ever."""
    meeting = threading.Barrier(8, timeout=20)
    env = anagram()

    @env.tool
    def shuffle(state: Any, letters: str) -> int:
        return meeting.wait() * 0

    with agent(solver) as (remote, _):
        rollouts = env.rollouts(remote, repeats=4, output=tmp_path / "r.jsonl", progress=False)
    assert rollouts.tool_calls["error"].isna().all()


def test_calls_of_one_rollout_wait_for_each_other() -> None:
    """An agent may ask for several tools at once, over MCP for example; they share a state, and run in threads."""
    env = gk.Env.define("mine", tasks=TASKS)
    meeting = threading.Barrier(2, timeout=0.3)

    @env.tool
    def meet(state: dict[str, Any]) -> int:
        return meeting.wait()

    async def at_once() -> list[str]:
        route = env.route()
        seeded = await route.post("/seed_session", env.rows[0])
        cookies = {name: value for name, value in seeded.cookies().items() if value}
        replies = await asyncio.gather(*[route.post("/meet", {}, cookies=cookies) for _ in range(4)])
        return [reply.text for reply in replies]

    assert all("BrokenBarrierError" in text for text in asyncio.run(at_once())), "no two calls were there at once"


def raising(error: BaseException) -> Callable[..., Any]:
    def shuffle(state: Any, letters: str) -> None:
        raise error

    return shuffle


def araising(error: BaseException) -> Callable[..., Any]:
    async def shuffle(state: Any, letters: str) -> None:
        raise error

    return shuffle


@pytest.mark.parametrize("kind", [raising, araising])
@pytest.mark.parametrize("error", [ValueError("no such letter"), StopIteration("x"), SystemExit(3), BadStatus])
def test_whatever_a_tool_raises_is_an_answer_and_the_run_goes_on(
    kind: Callable[..., Any], error: Any, tmp_path: Path
) -> None:
    """StopIteration would hang the loop, SystemExit would end it."""
    env = anagram()
    made = BadStatus("x answered 500", server="x", url="http://x", status=500) if error is BadStatus else error
    env.tool(kind(made))
    with agent(solver) as (remote, _):
        rollouts = env.rollouts(remote, output=tmp_path / "r.jsonl", progress=False)
    told = rollouts.tool_calls
    assert told["error"].tolist() == ["failed", "failed"]
    assert told["output"].str.contains(type(made).__name__).all()
    assert rollouts.rewards["status"].tolist() == ["scored", "scored"]


NO_WROD = "the task has no field 'wrod', only prompt, word"


@pytest.mark.parametrize(
    ("verify", "reason"),
    [
        (lambda state, task, response: 1 / 0, "ZeroDivisionError: division by zero (line 1 of <lambda>)"),
        (lambda state, task, response: task.wrod, f"AttributeError: {NO_WROD}; did you mean 'word'? (line 1 of"),
        (lambda state, task, response: task["wrod"], f"KeyError: \"{NO_WROD}; did you mean 'word'?\""),
        (lambda state, task, response: task.zebra, "'zebra', only prompt, word (line 1 of"),
        (lambda state, task, response: None, "<lambda> gave None as the reward, which is no number"),
        (lambda state, task, response: float("nan"), "<lambda> gave nan as the reward, which is not finite"),
        (lambda state, task, response: {"reward": 1, "mask": True}, "write 'mask_sample'"),
        (lambda state, task, response: next(iter(())), "StopIteration"),
        (lambda state, task, response: sys.exit(1), "SystemExit"),
    ],
)
def test_a_verifier_that_breaks_masks_its_rollouts_and_never_scores_them(
    verify: Any, reason: str, tmp_path: Path
) -> None:
    env = anagram()
    env.verify(verify)
    with agent(solver) as (remote, _):
        rollouts = env.rollouts(remote, output=tmp_path / "r.jsonl", progress=False)
    assert rollouts.rewards["status"].tolist() == ["masked", "masked"]
    assert rollouts.rewards["reward"].isna().all()
    masks = rollouts.masks
    assert masks["failure_kind"].tolist() == ["verifier_error"] * 2
    assert masks["failure_reason"].str.contains(reason, regex=False).all()
    assert "0 of 2, 0 failed, 2 masked" in repr(rollouts)


def test_a_task_can_be_asked_for_what_it_may_lack_and_copied() -> None:
    env = anagram()

    @env.verify
    def check(state: Any, task: Any, response: Any) -> float:
        assert getattr(task, "zebra", None) is None
        assert not hasattr(task, "zebra")
        with pytest.raises(KeyError):
            task["zebra"]
        return float(copy.deepcopy(task).word == task["word"] == "listen" in repr(task))

    assert env.session(0).verify("listen")["reward"] == 1.0


def test_the_line_of_the_verifier_that_broke_is_told() -> None:
    env = anagram()

    @env.verify
    async def check(state: Any, task: Any, response: Any) -> float:
        words = {"listen": 1.0}
        await asyncio.sleep(0)
        return words[said(response)]

    told = env.session(0).verify("lisen")
    assert told["failure_reason"] == "KeyError: 'lisen' (line 5 of check)"


def test_a_verifier_may_spoil_its_copy_of_the_response() -> None:
    env = anagram()

    @env.verify
    def check(state: Any, task: Any, response: dict[str, Any]) -> float:
        response["output"].clear()
        return 1.0

    async def verified() -> Any:
        route = env.route()
        seeded = await route.post("/seed_session", env.rows[0])
        cookies = {key: value for key, value in seeded.cookies().items() if value}
        body = {**env.rows[0], "response": {**RESPONSE, "output": [answer("x")]}}
        return (await route.post("/verify", body, cookies=cookies)).json()

    assert len(asyncio.run(verified())["response"]["output"]) == 1


RESPONSE = {
    "id": "r",
    "created_at": 0,
    "model": "m",
    "object": "response",
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
}


def test_components_mask_and_reason_reach_the_frames(tmp_path: Path) -> None:
    env = anagram()

    @env.verify
    def check(state: Any, task: Any, response: Any) -> dict[str, Any]:
        right = said(response) == task.word
        if task.word == "dog":
            return {"mask_sample": True, "failure_reason": "no dogs today", "failure_kind": "anagram:dogs"}
        return {"reward": 0.5, "reward_components": {"right": right, "short": np.float64(0.25)}, "length": 6}

    with agent(solver) as (remote, _):
        rollouts = env.rollouts(remote, output=tmp_path / "r.jsonl", progress=False)
    rewards = rollouts.rewards.sort_values("task_index")
    assert rewards["status"].tolist() == ["scored", "masked"]
    assert rewards[["reward", "reward.right", "reward.short"]].iloc[0].tolist() == [0.5, 1.0, 0.25]
    assert rollouts.masks.set_index("task_index").loc[1, "failure_reason"] == "no dogs today"
    assert rollouts.record(0)["length"] == 6


def test_a_defined_environment_on_a_socket_is_the_same_environment() -> None:
    env = anagram()
    with env.serve() as hosted:
        assert isinstance(hosted, Hosted)
        far = gk.Env(hosted.url, tasks=env.rows)
        session = far.session(0)
        assert session.call("shuffle", letters="cab") == "abc"
        assert session.verify("listen")["reward"] == 1.0


def test_an_environment_that_we_ship_offers_its_tools_over_mcp_where_its_yaml_says_so(tmp_path: Path) -> None:
    path = tmp_path / "counter.yaml"
    text = "counter_server:\n  resources_servers:\n    counter:\n      expose_tools_over_mcp: {}\n"
    for said, offered in (("true", {"mcp"}), ("false", set())):
        path.write_text(text.format(said))
        env = gk.Env(path)
        seeded = asyncio.run(env.route().post("/seed_session", env.rows[0]))
        assert seeded.json().keys() == offered


def test_tools_over_mcp_on_request() -> None:
    async def seed(env: DefinedEnv) -> Any:
        route: Route = env.route()
        return (await route.post("/seed_session", env.rows[0])).json()

    assert asyncio.run(seed(anagram())) == {}
    told = asyncio.run(seed(anagram(expose_tools_over_mcp=True)))
    assert told["mcp"]["server_name"] == "anagram_resources_server"
