"""Rollouts scored again by a changed verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.errors import ConfigError, JudgeFailed, ResumeMismatch, StoreError
from gymkit.resources.counter import Counter
from gymkit.resources.weather import Weather
from gymkit.servers.hosting import serve
from gymkit.servers.resources import ResourcesServer
from gymkit.shipped import shipped
from gymkit.wire import codec


class Strict(Weather):
    """Wants the answer to name the weather, too; counts its calls."""

    calls = 0

    def verify(self, state: None, task: Any, response: dict[str, Any]) -> float:
        self.calls += 1
        return super().verify(state, task, response) * ("cold" in str(response["output"][-1]))


def agent(params: dict[str, Any]) -> Any:
    prompt = str(params["input"])
    yield "get_weather", {"city": "Oslo"}
    if "tokyo" in prompt.lower():
        raise RuntimeError("lost")
    return "It is cold." if "snow" in prompt.lower() else "Here you are."


@pytest.fixture
def run(tmp_path: Path) -> gk.Rollouts:
    """Three tasks × 2: one answers as the new verifier wants it, one does not, one fails."""
    tasks = [codec.loads(line) for line in shipped("data/weather.jsonl").read_bytes().splitlines()][:1]
    rows = []
    for words in ("does it snow?", "is it warm?", "in Tokyo?"):
        rows.append(tasks[0] | {"responses_create_params": {**tasks[0]["responses_create_params"], "input": words}})
    env = gk.Env(Weather("weather_server"), tasks=rows)
    return env.rollouts(gk.Agent(agent), output=tmp_path / "run.jsonl", repeats=2, progress=False)


def strict() -> gk.Env:
    return gk.Env(Strict("weather_server"))


def test_new_scores_for_old_rollouts(run: gk.Rollouts) -> None:
    assert run.rewards["reward"].dropna().tolist() == [1.0] * 4
    new = run.reverify(strict())
    assert new.path.name == "run_reverified.jsonl"
    assert new.rewards["reward"].dropna().tolist() == [1.0, 1.0, 0.0, 0.0]
    assert new.rewards["status"].tolist() == run.rewards["status"].tolist(), "what failed stays failed, and counts"
    same = ["steps", "tool_calls", "seconds", "started_at", "agent", "environment", "termination_reason"]
    assert new.rewards[same].equals(run.rewards[same])
    change = new.compare(run)
    assert change["difference"].value == -0.5
    assert change.flips["task"].astype(int).tolist() == [1]
    assert new.config["reverified"] == "run.jsonl"
    (entry,) = codec.loads(new.path.with_name("run_reverified_aggregate_metrics.json").read_bytes())
    assert entry["agent_metrics"]["mean/reward"] == 0.5
    assert "_ng_environment_server" not in entry


def test_a_verifier_elsewhere(run: gk.Rollouts) -> None:
    with serve(Strict("weather_server")) as hosted:
        new = run.reverify(gk.Env(hosted.url))
    assert new.rewards["reward"].dropna().mean() == 0.5


def test_the_first_few_only(run: gk.Rollouts) -> None:
    new = run.reverify(strict(), limit=3)
    assert len(new) == 3
    assert set(new.rewards["status"]) == {"scored"}


def test_an_output_that_is_there_is_left_alone_resumed_or_replaced(run: gk.Rollouts) -> None:
    run.reverify(strict())
    with pytest.raises(ConfigError, match=r"run_reverified\.jsonl is there already: resume"):
        run.reverify(strict())
    path = run.path.with_name("run_reverified.jsonl")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    env = strict()
    assert run.reverify(env, resume=True).rewards["reward"].count() == 4
    assert env._server.calls == 3  # type: ignore[union-attr]
    assert run.reverify(env, overwrite=True).rewards["reward"].count() == 4
    assert env._server.calls == 7  # type: ignore[union-attr]
    with pytest.raises(ResumeMismatch, match=r"num_repeats|tasks"):
        again = gk.Env("weather").rollouts(gk.Agent(agent), output=run.path.with_name("other.jsonl"), progress=False)
        again.reverify(env, output=path, resume=True)
    with pytest.raises(ConfigError, match="is what is scored again"):
        run.reverify(strict(), output=run.path, overwrite=True)


def test_a_run_scored_again_is_not_resumed_as_a_run(run: gk.Rollouts) -> None:
    new = run.reverify(strict())
    env = gk.Env(Weather("weather_server"), tasks=[{"responses_create_params": {"input": "x"}}])
    with pytest.raises(ResumeMismatch, match="reverified"):
        env.rollouts(gk.Agent(agent), output=new.path, resume=True, progress=False)


def test_a_verifier_with_a_state_is_refused_unless_forced(tmp_path: Path) -> None:
    def two(params: dict[str, Any]) -> Any:
        yield "increment_counter", {"count": 1}
        return "done"

    env = gk.Env("counter")
    run = env.rollouts(gk.Agent(two), output=tmp_path / "run.jsonl", limit=2, progress=False)
    with pytest.raises(ConfigError, match="by the state of the rollout, which is gone"):
        run.reverify(env)
    assert not list(tmp_path.glob("*reverified*"))
    new = run.reverify(gk.Env(Counter("counter_server")), force=True)
    assert new.path.name == "unsafe_run_reverified.jsonl"
    assert set(new.rewards["status"]) == {"scored"}


class Forecast(ResourcesServer[None]):
    """Another environment, which needs no state either: what it says of weather means nothing."""

    stateless = True

    def verify(self, state: None, task: Any, response: dict[str, Any]) -> float:
        return 0.0


def test_the_verifier_of_another_environment_is_refused_unless_forced(run: gk.Rollouts) -> None:
    other = gk.Env(Forecast("forecast"))
    sentence = (
        r"run\.jsonl is a run of weather_server, which forecast is not the verifier of: rewards would be wrong\. "
        r"Give weather_server \(--env, --config\); force \(--force\) does it all the same, into unsafe_run_reverified"
    )
    with pytest.raises(ConfigError, match=sentence):
        run.reverify(other)
    assert not list(run.path.parent.glob("*reverified*"))
    new = run.reverify(other, force=True)
    assert new.path.name == "unsafe_run_reverified.jsonl"
    assert new.rewards["reward"].dropna().tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("ran", "scores"),
    [
        ("example_single_tool_call", "weather"),  # NeMo Gym's name is ours
        ("weather", "example_single_tool_call"),
        ("weather", Strict("mine")),  # a changed server of the same kind
        (Weather("mine"), Forecast("mine")),  # the same name: whoever calls it so knows
        (Weather("weather_resources_server"), "weather"),
        (Weather("example_single_tool_call"), "weather"),
    ],
)
def test_an_environment_goes_by_several_names(ran: Any, scores: Any, tmp_path: Path) -> None:
    tasks = shipped("data/weather.jsonl")
    old = gk.Env(ran, tasks=tasks).rollouts(gk.Agent(agent), output=tmp_path / "run.jsonl", limit=1, progress=False)
    assert old.reverify(gk.Env(scores)).rewards["status"].tolist() == ["scored"]


def test_where_either_side_has_no_name_it_goes_on(run: gk.Rollouts) -> None:
    with serve(Forecast("forecast")) as hosted:
        assert run.reverify(gk.Env(hosted.url)).rewards["reward"].count() == 4
    plan = run.path.with_name("run_materialized_inputs.jsonl")
    rows = [codec.loads(line) for line in plan.read_bytes().splitlines()]
    for row in rows:
        del row["gymkit"]  # as NeMo Gym writes it
    plan.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    assert run.reverify(gk.Env(Forecast("forecast")), overwrite=True).rewards["reward"].count() == 4


class Judged(Weather):
    """Has a judge that fails on some."""

    broken = True

    def verify(self, state: None, task: Any, response: dict[str, Any]) -> float:
        if self.broken and "Here" in str(response["output"][-1]):
            raise JudgeFailed("no judge")
        return super().verify(state, task, response)


def test_only_what_wants_a_judge(run: gk.Rollouts) -> None:
    broken = run.reverify(gk.Env(Judged("weather_server")), output=run.path.with_name("broken.jsonl"))
    assert broken.rewards["status"].tolist() == ["scored", "scored", *["failed"] * 4]
    env = gk.Env(Judged("weather_server"))
    env._server.broken = False  # type: ignore[union-attr]
    mended = broken.reverify(env, judge_failed_only=True)
    assert mended.rewards["status"].tolist() == [*["scored"] * 4, "failed", "failed"]
    first = [codec.loads(line) for line in mended.path.read_bytes().splitlines()[:2]]
    assert first == [codec.loads(line) for line in broken.path.read_bytes().splitlines()]


class Crashing(Weather):
    def verify(self, state: None, task: Any, response: dict[str, Any]) -> float:
        raise ValueError("a bug")


def test_a_verifier_that_breaks_costs_rows_not_the_run(run: gk.Rollouts) -> None:
    new = run.reverify(gk.Env(Crashing("weather_server")))
    assert set(new.rewards["status"]) == {"failed"}
    assert new.failures["failure_class"].value_counts()["reverify_failed"] == 4
    assert new.failures["message"].str.contains("a bug").any()


def test_without_its_plan_a_run_cannot_be_scored(run: gk.Rollouts) -> None:
    plan = run.path.with_name("run_materialized_inputs.jsonl")
    lines = plan.read_bytes().splitlines(keepends=True)
    plan.write_bytes(b"".join(lines[1:]))
    with pytest.raises(StoreError, match=r"which .* does not plan: give the plan of this run"):
        run.reverify(strict())
    plan.unlink()
    with pytest.raises(StoreError, match="is not there, and a verifier needs the tasks"):
        run.reverify(strict())
