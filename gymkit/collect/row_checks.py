"""The checks of one row's evidence: what is wrong, and which of them cannot tell. Silence is no health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gymkit.collect.said import said
from gymkit.errors import WireError
from gymkit.wire.trajectory import TRAJECTORY, check_trajectory

Row = Mapping[str, Any]

_MISMATCH: Final = ("unmatched", "ambiguous", "conflict")
_CUT: Final = ("length", "max_tokens", "max_output_tokens")
_FAILED: Final = ("failed", "error", "cancelled")

ROW_CHECKS: Final = (
    *("record_unreadable", "rollout_missing_agent_turns", "rollout_ended_on_failed_model_call", "agent_turn_hollow"),
    *("model_call_zero_completion_tokens", "model_call_missing_token_counts", "trajectory_capture_mismatch"),
    *("model_call_failed", "rollout_token_count_mismatch", "model_call_runaway_generation"),
)
"""The checks that one row is held to."""


class Finding(NamedTuple):
    """Something that is wrong."""

    check: str
    """Which check says so."""
    detail: str
    """What."""
    locator: str | None = None
    """Where: a call, or a turn."""


class Told(NamedTuple):
    """What the checks say of a row."""

    findings: list[Finding]
    """What is wrong."""
    unobserved: list[str]
    """Checks that the evidence does not suffice for."""


def check_row(row: Row) -> Told:
    """Hold the evidence of ``row`` to every check."""
    content = row.get(TRAJECTORY)
    if content is None:
        return Told([], list(ROW_CHECKS[1:]))
    try:
        check_trajectory(content)
    except WireError as error:
        return Told([Finding("record_unreadable", "; ".join(error.problems))], list(ROW_CHECKS[1:]))
    calls, turns = content.get("model_calls") or [], content.get("turns") or []
    findings = [*_turns(turns, calls), *_calls(calls), *_ending(calls), *_joins(content), *_usage(row, content)]
    return Told(findings, _unobserved(row, content, calls, turns))


def failed(call: Row) -> bool:
    """Whether a call of a trajectory came to nothing."""
    told = call.get("response_metadata") or {}
    return (
        (told.get("status_code") or 0) >= 400
        or bool(told.get("error_category"))
        or told.get("response_status") in _FAILED
    )


def _unobserved(row: Row, content: Row, calls: list[Row], turns: list[Row]) -> list[str]:
    codes = {gap["code"] for gap in content.get("gaps") or ()}
    absent: list[str] = []
    if not turns and "turns_unavailable" in codes and not calls:
        absent += ["rollout_missing_agent_turns", "agent_turn_hollow"]
    if not calls or "model_call_capture_incomplete" in codes:
        absent += [name for name in ROW_CHECKS if name.startswith("model_call_") or "model_call" in name]
        absent += ["trajectory_capture_mismatch"]
    if _sums(row, content) is None:
        absent.append("rollout_token_count_mismatch")
    return list(dict.fromkeys(absent))


def _turns(turns: list[Row], calls: list[Row]) -> Iterator[Finding]:
    by_id = {call.get("model_call_id"): call for call in calls}
    if calls and not any(turn.get("model_calls") or turn.get("answer") for turn in turns):
        yield Finding("rollout_missing_agent_turns", "no turn shows a model at work")
    for turn in turns:
        named = [
            by_id[ref["model_call_id"]] for ref in turn.get("model_calls") or () if ref.get("model_call_id") in by_id
        ]
        if not (turn.get("answer") or turn.get("reasoning_content") or any(_content(call) for call in named)):
            where = f"{turn['invocation_id']}, turn {turn['turn_no']}"
            yield Finding("agent_turn_hollow", "it neither says, thinks nor asks for anything", where)


def _calls(calls: list[Row]) -> Iterator[Finding]:
    for index, call in enumerate(calls):
        told, stats = call.get("response_metadata") or {}, call.get("token_stats") or {}
        where = f"call {call.get('model_call_id') or index}"
        if failed(call):
            what = told.get("error_category") or told.get("response_status")
            yield Finding("model_call_failed", f"status {told.get('status_code')}: {what}", where)
            continue
        if stats.get("prompt_tokens") is None or stats.get("completion_tokens") is None:
            yield Finding("model_call_missing_token_counts", "the reply does not say what it cost", where)
        if stats.get("completion_tokens") == 0:
            yield Finding("model_call_zero_completion_tokens", "the model wrote no token", where)
        if told.get("finish_reason") in _CUT and not _content(call):
            yield Finding("model_call_runaway_generation", f"cut ({told['finish_reason']}) with nothing said", where)


def _ending(calls: list[Row]) -> Iterator[Finding]:
    last: dict[str, Row] = {}
    for call in sorted(calls, key=lambda call: call.get("started_at") or 0.0):
        last[str(((call.get("response_metadata") or {}).get("model_ref") or {}).get("name"))] = call
    for server, call in last.items():
        if failed(call):
            yield Finding("rollout_ended_on_failed_model_call", f"the last call of {server} failed", server)


def _joins(content: Row) -> Iterator[Finding]:
    for gap in content.get("gaps") or ():
        if gap["code"].removeprefix("model_call_reference_") in _MISMATCH:
            yield Finding(
                "trajectory_capture_mismatch", f"{gap['code']}: {gap.get('detail')}", gap.get("invocation_id")
            )
    there = {call.get("model_call_id") for call in content.get("model_calls") or ()}
    for turn in content.get("turns") or ():
        for ref in turn.get("model_calls") or ():
            if there and ref.get("model_call_id") is not None and ref["model_call_id"] not in there:
                where = f"{turn['invocation_id']}, turn {turn['turn_no']}"
                yield Finding("trajectory_capture_mismatch", f"call {ref['model_call_id']} is not there", where)


def _usage(row: Row, content: Row) -> Iterator[Finding]:
    if (sums := _sums(row, content)) is not None:
        usage = row["response"]["usage"]
        if (told := (usage["input_tokens"], usage["output_tokens"])) != sums:
            detail = f"the response says {told[0]} and {told[1]}, its calls {sums[0]} and {sums[1]}"
            yield Finding("rollout_token_count_mismatch", detail)


def _sums(row: Row, content: Row) -> tuple[int, int] | None:
    """Tokens read and written by the calls that belong to somebody; None where these or the response do not say."""
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, Mapping) else None
    if not isinstance(usage, Mapping) or None in (usage.get("input_tokens"), usage.get("output_tokens")):
        return None
    by_id = {call.get("model_call_id"): call for call in content.get("model_calls") or ()}
    named = [
        ref.get("model_call_id") for each in content.get("invocations") or () for ref in each.get("model_calls") or ()
    ]
    stats = [by_id[name].get("token_stats") or {} for name in named if name in by_id]
    read: list[Any] = [each.get("prompt_tokens") for each in stats]
    written: list[Any] = [each.get("completion_tokens") for each in stats]
    if not stats or None in read or None in written:
        return None
    return sum(read), sum(written)


def _content(call: Row) -> bool:
    told = said((call.get("response_metadata") or {}).get("dialect") or "", call.get("response"))
    return told is not None and bool(told.text or told.reasoning or told.tool_calls)
