"""What gymkit keeps of a rollout that an environment server drove, from whatever an agent observed of itself."""

from __future__ import annotations

from typing import Any

import pytest

from gymkit.agents.observed import Invocation, bundle
from gymkit.agents.trace import Trace
from gymkit.environments.facts import facts_of
from gymkit.testing.agent import answer, call, respond


def traced() -> Trace:
    """Two calls in the first reply, one of them failed, and one call in the second."""
    trace = Trace()
    trace.step(respond([call("a", "c1"), call("b", "c2")]), True)
    trace.executed("c1", "1", None, 0.5)
    trace.executed("c2", "no", "failed", 0.25)
    trace.step(respond([call("a", "c3")]), True)
    trace.executed("c3", "3", None, 0.125)
    trace.step(respond([answer("done")]), False)
    return trace


def test_the_facts_of_an_observed_session_are_those_of_the_same_rollout_on_run() -> None:
    trace = traced()
    observed = bundle("simple_agent", "policy", [Invocation([], trace, 1.0)])
    assert facts_of(trace.response(), observed) == trace.fields()


@pytest.mark.parametrize("observed", [None, {}, {"records": None}, {"records": []}, 5])
def test_without_observations_only_the_end_is_known(observed: Any) -> None:
    assert facts_of(traced().response(), observed) == {"termination_reason": "message"}


@pytest.mark.parametrize(
    ("response", "ended"),
    [
        (respond([answer("x")]), "message"),
        (respond([answer("x")], incomplete_details={"reason": "max_output_tokens"}), "incomplete"),
        (respond([], status="incomplete"), "incomplete"),
        (respond([call("a")]), "max_steps"),
        (respond([]), "max_steps"),
    ],
)
def test_how_it_ended_is_read_off_the_response(response: dict[str, Any], ended: str) -> None:
    assert facts_of(response, None) == {"termination_reason": ended}


def test_a_foreign_agents_records_are_taken_as_far_as_they_go() -> None:
    records = [
        {"kind": "agent_invocation", "invocation_id": "root", "status": "completed", "model_calls": []},
        {"kind": "tool_call", "tool_call_id": "c1", "status": "timeout", "duration_ms": None, "error_type": "slow"},
        {"kind": "tool_call", "tool_call_id": "c2", "status": "failed", "error_type": "http_404"},
        {"kind": "tool_call", "tool_call_id": "elsewhere", "status": "completed"},
        {"kind": "sandbox", "role": "agent", "outcome": "completed"},
    ]
    facts = facts_of(traced().response(), {"source": "other", "records": records})
    assert "steps" not in facts
    assert [(each["item"], each["step"], each["error"]) for each in facts["calls"]] == [(2, 1, None), (3, 1, "failed")]


def test_several_activations_name_their_invocations_and_what_is_unknown_is_a_gap() -> None:
    told = bundle("agent", None, [Invocation([], traced(), 1.0), Invocation([], Trace(), 0.1, "ValueError")])
    assert [record["invocation_id"] for record in told["records"]] == [*["root"] * 4, "activation-2"]
    assert told["records"][-1]["error_type"] == "ValueError"
    assert told["gaps"] == [
        {"code": "model_calls_unavailable", "invocation_id": "root"},
        {"code": "model_calls_unavailable", "invocation_id": "activation-2"},
    ]
