"""Env and Rollouts as a notebook uses them, against a real service on loopback."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.errors import BadStatus, ConfigError, IncompleteRun, InputError, ResumeMismatch, StoreLocked
from gymkit.resources.counter import Counter
from gymkit.sdk.session import Session
from gymkit.servers.hosting import Hosted, serve
from gymkit.testing.agent import Fault, ScriptedAgent, answer, call, outputs


def adder(params: dict[str, Any]) -> Any:
    """Does what the prompt says: one call a step, then an answer."""
    words = params["input"][0]["content"].split()
    numbers = [int(word) for word in words if word.lstrip("-").isdigit()]
    done = len(outputs(params))
    if done < len(numbers):
        return [call("increment_counter", f"call_{done}", count=numbers[done])]
    return [answer("done")]


@pytest.fixture
def service() -> Iterator[Hosted]:
    with serve(ScriptedAgent(adder)) as hosted:
        yield hosted


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "results" / "rollouts.jsonl"


def test_from_a_url_to_frames(service: Hosted, output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(gk.RemoteAgent(service.url), repeats=2, output=output)
    assert repr(rollouts).startswith("<Rollouts counter × remote_agent: 10 of 10, 0 failed, 0 masked, reward 1")
    assert rollouts.rewards["reward"].tolist() == [1.0] * 10
    assert set(rollouts.rewards["status"]) == {"scored"}
    assert rollouts.rewards["steps"].notna().all()
    assert rollouts.rewards["seconds"].gt(0).all()
    assert rollouts.masks["mask_sample"].sum() == 0
    assert len(rollouts.failures) == 0
    kinds = rollouts.trajectories.query("task_index == 0 and rollout_index == 0")["kind"].tolist()
    assert kinds == ["message", *["function_call", "function_call_output"] * 2, "message"]
    assert rollouts.tool_calls["error"].isna().all()
    assert rollouts.tasks["expected_count"].tolist() == [6, 14, 11, 15, 103]
    names = {path.name for path in output.parent.iterdir()}
    assert names == {
        "rollouts.jsonl",
        "rollouts_failures.jsonl",
        "rollouts_materialized_inputs.jsonl",
        "rollouts_aggregate_metrics.json",
    }


def test_read_gives_what_was_collected(service: Hosted, output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(gk.RemoteAgent(service.url), output=output)
    again = gk.Rollouts.read(output)
    assert again.rewards.equals(rollouts.rewards)
    assert again.config["environment"] == "counter"
    assert again.config["agent"]["agent_base_url"] == service.url
    assert again.record(2)["reward"] == 1.0
    assert len(again) == 5


def test_in_a_running_loop(service: Hosted, output: Path) -> None:
    async def cell() -> gk.Rollouts:
        env = gk.Env("counter")
        session = await env.asession(0)
        await session.acall("increment_counter", count=3)
        assert (await session.averify())["reward"] == 1.0
        return await env.arollouts(gk.RemoteAgent(service.url), output=output)

    assert asyncio.run(cell()).rewards["reward"].mean() == 1.0


def test_a_session_is_played_by_hand() -> None:
    session = gk.Env("counter").session(1)
    assert session.call("increment_counter", count=5) == {"success": True}
    assert session.call("get_counter_value") == {"count": 5}
    assert session.call("increment_counter", count="many")["kind"] == "invalid_arguments"
    assert session.verify() == {"reward": 0.0, "mask_sample": False}
    assert repr(session) == "<Session counter_resources_server: 3 calls>"
    with pytest.raises(InputError, match="unknown tool 'verify'"):
        session.call("verify")


def test_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="tasks 0 to 4"):
        gk.Env("counter").session(5)


def test_names_of_nemo_gym_work_and_a_wrong_one_gets_the_nearest() -> None:
    assert gk.Env("example_session_state_mgmt").name == "counter"
    with pytest.raises(ConfigError, match="did you mean 'counter'"):
        gk.Env("countre")


@pytest.mark.parametrize("name", ["counter", "weather", "synonyms"])
def test_each_environment_ships_tasks_that_it_can_seed(name: str) -> None:
    env = gk.Env(name)
    assert len(env.tasks) == 5
    declared = env.rows[0]["responses_create_params"]["tools"]
    server = env._server
    assert server is not None
    assert [tool["name"] for tool in declared] == list(server.tools)
    for tool in declared:
        ours = server.tools[tool["name"]].schema()
        assert ours["parameters"]["required"] == tool["parameters"]["required"]
    for index, row in enumerate(env.rows):
        assert server.check_task(row) == []
        env.session(index)


def test_a_resources_server_elsewhere_is_the_same_type(service: Hosted, output: Path) -> None:
    near = gk.Env("counter")
    with near.serve() as hosted:
        far = gk.Env(hosted.url, tasks=near.rows)
        assert far.session(0).call("get_counter_value") == {"count": 3}
        rollouts = far.rollouts(gk.RemoteAgent(service.url), output=output)
    assert rollouts.rewards["reward"].tolist() == [1.0] * 5


def test_an_environment_elsewhere_needs_tasks_and_a_usable_url() -> None:
    with pytest.raises(ConfigError, match=r"tasks='tasks\.jsonl'"):
        gk.Env("http://127.0.0.1:9").rows  # noqa: B018
    with pytest.raises(ConfigError) as caught:
        gk.Env("http://me:hunter2@127.0.0.1:9")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="runs elsewhere already"):
        gk.Env("http://127.0.0.1:9").serve()


def test_ones_own_server_and_tasks(service: Hosted, output: Path) -> None:
    class Doubled(Counter):
        implementation = "doubled"

        def verify(self, state: Any, task: Any, response: Any) -> float:
            return 2.0 * super().verify(state, task, response)

    env = gk.Env(Doubled("doubled"), tasks=gk.Env("counter").rows[:2])
    assert env.rollouts(gk.RemoteAgent(service.url), output=output).rewards["reward"].tolist() == [2.0, 2.0]


def test_a_service_that_is_down_gives_failures_and_no_reward(output: Path) -> None:
    rollouts = gk.Env("counter").rollouts(gk.RemoteAgent("http://127.0.0.1:1"), limit=2, output=output)
    assert rollouts.rewards["reward"].isna().all()
    assert set(rollouts.rewards["status"]) == {"failed"}
    assert set(rollouts.failures["failure_kind"]) == {"unreachable"}
    assert "0 of 2, 2 failed" in repr(rollouts)
    with pytest.raises(IncompleteRun):
        gk.Env("counter").rollouts(gk.RemoteAgent("http://127.0.0.1:1"), limit=1, output=output, require_complete=True)


def test_a_resume_runs_only_what_failed(output: Path) -> None:
    broken = [True]

    def brain(params: dict[str, Any]) -> Any:
        return Fault(503) if broken[0] and "add 3" in params["input"][0]["content"] else adder(params)

    service = ScriptedAgent(brain)
    with serve(service) as hosted:
        env, agent = gk.Env("counter"), gk.RemoteAgent(hosted.url)
        first = env.rollouts(agent, output=output)
        assert first.rewards["status"].value_counts()["failed"] == 1
        broken[0] = False
        service.received.clear()
        second = env.rollouts(agent, output=output, resume=True)
        assert second.rewards["reward"].tolist() == [1.0] * 5
        assert {each.params["input"][0]["content"] for each in service.received} == {"add 3 then get the count"}
        assert second.rewards["attempt"].tolist() == [0, 0, 0, 1, 0]
        with pytest.raises(ResumeMismatch, match=r"agent\.max_steps"):
            env.rollouts(gk.RemoteAgent(hosted.url, max_steps=3), output=output, resume=True)


def test_bad_tasks_start_nothing_and_lose_nothing(service: Hosted, output: Path) -> None:
    env = gk.Env("counter")
    before = env.rollouts(gk.RemoteAgent(service.url), output=output).rewards
    bad = gk.Env("counter", tasks=[{"initial_count": 1}, *env.rows])
    with pytest.raises(InputError, match=r"tasks\[0\]"):
        bad.rollouts(gk.RemoteAgent(service.url), output=output)
    assert gk.Rollouts.read(output).rewards.equals(before)


def test_two_collectors_do_not_write_one_file(output: Path) -> None:
    async def both() -> list[Any]:
        started, go = asyncio.Event(), asyncio.Event()

        async def brain(params: dict[str, Any]) -> Any:
            loop.call_soon_threadsafe(started.set)
            while not go.is_set():
                await asyncio.sleep(0.01)
            return adder(params)

        loop = asyncio.get_running_loop()
        with serve(ScriptedAgent(brain)) as hosted:
            env, agent = gk.Env("counter"), gk.RemoteAgent(hosted.url)
            first = asyncio.ensure_future(env.arollouts(agent, output=output))
            await started.wait()
            second = await asyncio.gather(env.arollouts(agent, output=output), return_exceptions=True)
            go.set()
            return [await first, *second]

    first, second = asyncio.run(both())
    assert isinstance(second, StoreLocked)
    assert first.rewards["reward"].tolist() == [1.0] * 5


@pytest.mark.parametrize("owner", [gk.Env, gk.RemoteAgent, Session])
def test_every_verb_has_its_twin(owner: type) -> None:
    """A verb added without its twin works in a script and not in a running loop, or the other way round."""
    asynchronous = {name for name in vars(owner) if inspect.iscoroutinefunction(vars(owner)[name]) and name[0] != "_"}
    assert asynchronous
    for name in asynchronous:
        assert name.startswith("a")
        assert callable(getattr(owner, name[1:])), name[1:]


def test_a_refusal_by_the_environment_is_an_error_with_its_sentence() -> None:
    with pytest.raises(BadStatus, match="initial_count"):
        gk.Env("counter", tasks=[{"responses_create_params": {"input": "x"}}]).session(0)


def test_chosen_rollouts_are_run_again_and_no_others(output: Path) -> None:
    lazy = [True]

    def brain(params: dict[str, Any]) -> Any:
        return [answer("later")] if lazy[0] and "add 3" in params["input"][0]["content"] else adder(params)

    service = ScriptedAgent(brain)
    with serve(service) as hosted:
        env, agent = gk.Env("counter"), gk.RemoteAgent(hosted.url)
        first = env.rollouts(agent, repeats=2, output=output)
        assert first.rewards["reward"].sum() == 8
        lazy[0] = False
        service.received.clear()
        second = first.rerun(first.rewards["reward"] == 0)
        assert second.rewards["reward"].tolist() == [1.0] * 10
        assert {each.params["input"][0]["content"] for each in service.received} == {"add 3 then get the count"}
        assert second.failures["failure_class"].tolist() == ["set_aside"] * 2
        read = gk.Rollouts.read(output)
        with pytest.raises(ConfigError, match="env=…, agent=…"):
            read.rerun(read.rewards.head(1))
        third = read.rerun(read.rewards.head(1), env=env, agent=agent)
    assert third.rewards["attempt"].tolist() == [1, 0, 0, 0, 0, 0, 1, 1, 0, 0]


def test_slices_and_comparison_come_from_the_run(service: Hosted, output: Path) -> None:
    env = gk.Env("counter")
    good = env.rollouts(gk.RemoteAgent(service.url), output=output)
    with serve(ScriptedAgent(lambda params: [answer("no")])) as hosted:
        bad = env.rollouts(gk.RemoteAgent(hosted.url, name="bad"), output=output.with_name("bad.jsonl"))
    assert good.by("initial_count")["mean"].tolist() == [1.0] * 5
    assert good.by("status").loc[0, "scored"] == 5
    comparison = good.compare(bad)
    assert comparison.frame.set_index("metric").loc["difference", "value"] == 1.0
    assert bad.failures_by_cause().empty


SEED_YAML = """
example_session_state_mgmt_resources_server:
  resources_servers:
    example_session_state_mgmt:
      entrypoint: app.py
      domain: agent
remote_agent:
  responses_api_agents:
    remote_agent:
      entrypoint: app.py
      agent_base_url: {url}
      resources_server:
        type: resources_servers
        name: example_session_state_mgmt_resources_server
      concurrency: 4
      max_steps: 8
"""


def test_the_seeds_yaml_is_an_env_with_its_agent(service: Hosted, output: Path, tmp_path: Path) -> None:
    path = tmp_path / "counter_remote.yaml"
    path.write_text(SEED_YAML.format(url=service.url))
    env = gk.Env.from_config(path)
    agent = env.agents["remote_agent"]
    assert isinstance(agent, gk.RemoteAgent)
    assert (agent.url, agent.concurrency, agent.config.max_steps) == (service.url, 4, 8)
    assert env.rollouts(output=output).rewards["reward"].tolist() == [1.0] * 5
    resumed = gk.Env("counter").rollouts(gk.RemoteAgent(service.url, max_steps=8), output=output, resume=True)
    assert len(resumed) == 5, "the same settings in the notebook are the same run"
    short = gk.Env.from_config(path, "++remote_agent.responses_api_agents.remote_agent.max_steps=1")
    assert short.rollouts(output=output).rewards["termination_reason"].tolist() == ["max_steps"] * 5


def test_an_env_without_agents_asks_which(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which agent"):
        gk.Env("counter").rollouts()
    path = tmp_path / "none.yaml"
    path.write_text("limit: 3\n")
    with pytest.raises(ConfigError):
        gk.Env.from_config(path)
