"""Rows as they lie on disk, in NeMo Gym's form (explicit nulls) and in ours, and runs made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gymkit.wire import codec

Row = dict[str, Any]

AGENT = {"name": "remote_agent"}
SERVER = "remote_agent_environment_server"
RUN = "3f9a1c20be77"
STARTED = 1767225600.125

COMMON_NULLS = """
    background conversation instructions max_output_tokens max_tool_calls metadata moderation previous_response_id
    prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier temperature text
    top_logprobs top_p truncation user
"""
REQUEST_NULLS = f"{COMMON_NULLS} include model store context_management stream_options stream".split()
RESPONSE_NULLS = f"{COMMON_NULLS} completed_at error incomplete_details status".split()


def tool(name: str, **arguments: str) -> Row:
    """The schema of a tool whose ``arguments`` have the given types."""
    properties = {key: {"type": kind, "description": ""} for key, kind in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": [*arguments], "additionalProperties": False}
    return {"name": name, "parameters": schema, "strict": True, "type": "function", "description": ""}


TOOLS = [tool("increment_counter", count="integer"), tool("get_counter_value")]


def call(call_id: str, name: str = "increment_counter", arguments: str = '{"count": 7}') -> Row:
    """A function call."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, "id": f"fc_{call_id}"}


def output(call_id: str, text: Any = '{"success":true}') -> Row:
    """The output of a function call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def message(text: str, role: str = "assistant") -> Row:
    """A message in the long form."""
    kind = "output_text" if role == "assistant" else "input_text"
    part = {"type": kind, "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": role, "status": "completed", "content": [part]}


def conversation(calls: int = 3) -> list[Row]:
    """What an agent does with the counter: calls, their outputs, and an answer."""
    pairs = [[call(f"call_{number}"), output(f"call_{number}")] for number in range(calls)]
    return [*(item for pair in pairs for item in pair), message("The count is 24.")]


def usage(read: int = 160, written: int = 20) -> Row:
    """The tokens of a rollout."""
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written, **details}


def stamps(task: int, rollout: int, attempt: int = 0) -> Row:
    """What the collector adds."""
    names = {"agent_ref": AGENT, "_ng_environment_server": SERVER, "_ng_result_type": "legacy_agent"}
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, **names} | (
        {"_ng_attempt_index": attempt} if attempt else {}
    )


def response(items: list[Row]) -> Row:
    """A response with the fields that a service has to send."""
    fixed = {"object": "response", "parallel_tool_calls": False, "tool_choice": "auto", "tools": TOOLS}
    return {"id": "resp_1", "created_at": 0.0, "model": "counter-stub", **fixed, "output": items, "usage": usage()}


def params(prompt: str = "add 7 then add 8 then get the count") -> Row:
    """What the agent is asked first."""
    return {"input": [{"role": "user", "content": prompt}], "tools": TOOLS}


def nemo(task: int, rollout: int = 0, attempt: int = 0, reward: Any = 1.0, **changed: Any) -> Row:
    """A result row as NeMo Gym 0.7.0 writes it."""
    items = [_nemo_item(item) for item in changed.pop("items", conversation())]
    asked = params() | dict.fromkeys(REQUEST_NULLS) | {"parallel_tool_calls": True, "tool_choice": "auto"}
    asked["input"] = [{**item, "type": "message", "phase": None} for item in asked["input"]]
    row = {"responses_create_params": asked, "response": response(items) | dict.fromkeys(RESPONSE_NULLS)}
    verdict = {"reward": reward, "mask_sample": False, "failure_kind": None, "failure_reason": None}
    return row | verdict | stamps(task, rollout, attempt) | changed


def _nemo_item(item: Row) -> Row:
    nulls = {"function_call": ["namespace"], "function_call_output": ["id", "status"], "message": ["phase"]}
    return dict.fromkeys(nulls.get(item["type"], [])) | item


def nemo_failure(task: int, rollout: int = 0, attempt: int = 0, **changed: Any) -> Row:
    """A failed attempt as NeMo Gym 0.7.0 writes it: with a placeholder response and a reward of zero."""
    row = nemo(task, rollout, attempt, reward=0.0, items=[message("")])
    row["response"] |= {"id": "remote_agent_failure", "model": "remote_agent", "tools": [], "usage": None}
    error = "agent loop failed: \"RemoteAgentError('response is not valid JSON')\""
    return row | {"expected_count": 6, "_ng_failure_class": "remote_agent_error", "error": error} | changed


def ours(task: int, rollout: int = 0, attempt: int = 0, reward: Any = 1.0, **changed: Any) -> Row:
    """A result row as gymkit writes it; every call was executed for the agent."""
    items = changed.pop("items", conversation())
    facts = changed.pop("gymkit", facts_of(items))
    row = {"responses_create_params": params(), "response": response(items), "reward": reward, "mask_sample": False}
    return row | stamps(task, rollout, attempt) | {"gymkit": facts} | changed


def facts_of(items: list[Row]) -> Row:
    """The ``gymkit`` object of a rollout in which each output among ``items`` was executed, one a step."""
    outputs = [index for index, item in enumerate(items) if item["type"] == "function_call_output"]
    calls = [{"item": item, "step": step, "error": None, "seconds": 0.0004} for step, item in enumerate(outputs, 1)]
    told = {"steps": len(calls) + 1, "termination_reason": "message", "calls": calls}
    return {"run": RUN, "started_at": STARTED, "seconds": 1.25, **told}


def our_failure(task: int, rollout: int = 0, attempt: int = 0, **changed: Any) -> Row:
    """A failed attempt as gymkit's remote agent writes it."""
    placeholder = response([message("")]) | {"id": "remote_agent_failure", "usage": None}
    facts = {"run": RUN, "started_at": STARTED, "seconds": 0.5, "steps": 0, "termination_reason": "error", "calls": []}
    row = {"responses_create_params": params(), "expected_count": 6, "reward": 0.0, "response": placeholder}
    failed = {"_ng_failure_class": "remote_agent_error", "failure_kind": "unreachable", "error": "no connection"}
    return row | failed | stamps(task, rollout, attempt) | {"gymkit": facts} | changed


def planned(task: int, rollout: int = 0, **changed: Any) -> Row:
    """A row of the plan as gymkit writes it."""
    row = {"responses_create_params": params(), "expected_count": 6, "initial_count": 3}
    return row | stamps(task, rollout) | {"gymkit": {"run": RUN}} | changed


def write_lines(path: Path, lines: Iterable[Row | bytes]) -> Path:
    """Write ``lines``, rows as JSON and bytes as they are; returns ``path``."""
    path.write_bytes(b"".join(line if isinstance(line, bytes) else codec.dumps(line) + b"\n" for line in lines))
    return path


def write_run(
    folder: Path,
    results: Iterable[Row | bytes] = (),
    failures: Iterable[Row | bytes] | None = None,
    plan: Iterable[Row | bytes] | None = None,
) -> Path:
    """Write the files of a run into ``folder``, those that are None not at all; returns the main file's path."""
    if failures is not None:
        write_lines(folder / "rollouts_failures.jsonl", failures)
    if plan is not None:
        write_lines(folder / "rollouts_materialized_inputs.jsonl", plan)
    return write_lines(folder / "rollouts.jsonl", results)
