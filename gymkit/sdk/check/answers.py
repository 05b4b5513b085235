"""The rules that one answer keeps or breaks by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any, Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.exchange import LADDER, Exchange, arguments_of
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped
from gymkit.wire.responses import unpaired_calls

_STATUS_FIXES: Final[Mapping[int, str]] = {
    401: "gymkit sends no credential: guard the service by network (VPN, allowlist, tunnel) and not by a key.",
    403: "gymkit sends no credential: guard the service by network (VPN, allowlist, tunnel) and not by a key.",
    404: "gymkit calls <base URL>/v1/responses: serve that path, and give the URL without it.",
    405: "Let the route /v1/responses take POST.",
    413: "Raise the limit on the size of a body, in the service and in the proxy before it.",
    415: "Accept application/json.",
    422: "Take the body as a plain JSON object: a stricter schema refuses requests that the contract allows.",
    429: "Lower concurrency= to what the service can take, or raise the service's limit.",
}
_ANY_STATUS: Final = "Look for the exception in the service's log, and answer 200 with a Responses API object."


def fix_of(exchange: Exchange) -> str:
    """What to change where a call of the service broke."""
    error = exchange.error
    assert error is not None
    match type(error).kind:
        case "unreachable":
            return (
                "Start the service, let it listen on an address that this machine reaches (0.0.0.0 in a container or "
                "on another machine), and compare host and port with the URL."
            )
        case "timeout":
            return (
                "Answer sooner, or allow more: timeout= of this check, and remote_responses_timeout_secs= of the "
                "RemoteAgent for a run."
            )
        case "redirect":
            return "Give the address it points to as the base URL; https instead of http, or no slash, is often all."
        case "http_status":
            assert exchange.reply is not None
            return _STATUS_FIXES.get(exchange.reply.status, _ANY_STATUS)
        case _:
            return (
                'Answer with one JSON object that has id, "object": "response", created_at, model, output (a list of '
                "items), parallel_tool_calls, tool_choice and tools; what came says which field is wrong."
            )


def broke(exchange: Exchange) -> Judgement:
    """A failed rule: this call of the service broke."""
    return Judgement("fail", excerpt.request(exchange), excerpt.answer(exchange), fix_of(exchange))


def _step(name: str, good: Callable[[list[Exchange]], str]) -> Callable[[Evidence], Judgement]:
    """How a step of the ladder is judged: who got past it passes, whoever broke there fails."""

    def judge(seen: Evidence) -> Judgement:
        blame = seen.blame()
        if blame and blame.rule == name:
            return broke(blame.exchange)
        past = [exchange for exchange in seen.exchanges if exchange.rung > LADDER.index(name)]
        return passed(good(past), excerpt.request(past[0])) if past else skipped(seen.unchecked)

    return judge


def _in_time(seen: Evidence) -> Judgement:
    if seen.out_of_time and not seen.exchanges:
        came = f"no answer within the {seen.budget:g} s of the check"
        fix = "Answer sooner, or allow more: timeout= and budget= of this check."
        return Judgement("fail", "POST /v1/responses with the first task", came, fix)
    return _step("in time", _pace)(seen)


def _pace(past: list[Exchange]) -> str:
    seconds = [exchange.seconds for exchange in past]
    half, slowest = excerpt.duration(median(seconds)), excerpt.duration(max(seconds))
    return f"{excerpt.counted(len(past), 'answer')}, half of them within {half}, the slowest in {slowest}"


def _content_type(seen: Evidence) -> Judgement:
    answers = [exchange for exchange in seen.exchanges if exchange.rung > LADDER.index("status")]
    if not answers:
        return skipped(seen.unchecked)
    for exchange in answers:
        kind = _header(exchange, b"content-type")
        name = kind.partition(";")[0].strip().lower()
        if name != "application/json" and not name.endswith("+json"):
            came = f"content-type: {kind}" if kind else "no content-type"
            fix = "Send the header content-type: application/json with each answer."
            return Judgement("warn", excerpt.request(exchange), came, fix)
    return passed("content-type: application/json")


def _header(exchange: Exchange, name: bytes) -> str:
    headers = exchange.reply.headers if exchange.reply else []
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def _usage(seen: Evidence) -> Judgement:
    valid = [exchange for exchange in seen.exchanges if exchange.response]
    whole = (
        "Report input_tokens, output_tokens, total_tokens, input_tokens_details with cached_tokens and "
        "output_tokens_details with reasoning_tokens in each answer, or leave usage out."
    )
    if not valid:
        return skipped(seen.unchecked)
    for exchange in valid:
        if exchange.usage_problem:
            return Judgement("fail", excerpt.request(exchange), exchange.usage_problem, whole)
    usages = [exchange.response["usage"] for exchange in valid if exchange.response and exchange.response.get("usage")]
    if len(usages) < len(valid):
        came = f"{len(usages)} of {len(valid)} answers report usage" if usages else "no answer reports usage"
        return Judgement("warn", excerpt.counted(len(valid), "request"), came, whole)
    odd = next((each for each in usages if each["total_tokens"] != each["input_tokens"] + each["output_tokens"]), None)
    if odd:
        came = f"{odd['input_tokens']} in and {odd['output_tokens']} out, but {odd['total_tokens']} in total"
        return Judgement("warn", excerpt.counted(len(valid), "request"), came, "Make total_tokens the sum of the two.")
    return passed(f"{excerpt.counted(len(valid), 'answer')}, {sum(each['total_tokens'] for each in usages)} tokens")


def _pairs(seen: Evidence) -> Judgement:
    valid = [exchange for exchange in seen.exchanges if exchange.response]
    if not valid:
        return skipped(seen.unchecked)
    for exchange in valid:
        if problem := _pairing_problem(exchange.output):
            fix = (
                "Give each call a call_id of its own, and return the output of a tool that you ran yourself beside its "
                "call, in the same answer and with the same call_id; a call without output is run by gymkit."
            )
            return Judgement("fail", excerpt.request(exchange), problem, fix)
    for played in seen.alone:
        ids = Counter(call["call_id"] for each in played.exchanges for call in unpaired_calls(each.output))
        if again := next((call_id for call_id, times in ids.items() if times > 1), None):
            came = f"call_id {again!r} in {ids[again]} answers of one conversation"
            fix = "Number the call_ids through the whole conversation, for example by the outputs in it so far."
            return Judgement("warn", excerpt.request(played.exchanges[-1]), came, fix)
    own = sum(item["type"] == "function_call_output" for each in valid for item in each.output)
    return passed(f"{sum(len(each.asks) for each in valid)} calls to be run, {own} pairs of its own")


def _pairing_problem(output: Iterable[Mapping[str, Any]]) -> str | None:
    calls = Counter(item["call_id"] for item in output if item["type"] == "function_call")
    outputs = Counter(item["call_id"] for item in output if item["type"] == "function_call_output")
    for call_id, times in calls.items():
        if times > 1:
            return f"{times} calls with the call_id {call_id!r} in one answer"
    for call_id, times in outputs.items():
        if call_id not in calls:
            return f"a function_call_output with call_id {call_id!r}, and no call with it in the same answer"
        if times > 1:
            return f"{times} outputs for the call with call_id {call_id!r}"
    return None


def _asks(seen: Evidence) -> list[tuple[Exchange, dict[str, Any]]]:
    return [(exchange, call) for exchange in seen.exchanges for call in unpaired_calls(exchange.output)]


def _declared(seen: Evidence) -> Judgement:
    asks = _asks(seen)
    if not asks:
        return _no_asks(seen)
    for exchange, call in asks:
        declared = [tool.get("name") for tool in exchange.params.get("tools") or ()]
        if call["name"] not in declared:
            fix = (
                f"Ask only for what the request's tools declare ({', '.join(map(str, declared)) or 'none here'}); if it"
                " is a tool of your own, run it and return its output beside the call, with the same call_id."
            )
            return Judgement("fail", excerpt.request(exchange), excerpt.item(call), fix)
    return passed(f"{excerpt.counted(len(asks), 'call')} of declared tools and no other")


def _arguments(seen: Evidence) -> Judgement:
    asks = _asks(seen)
    if not asks:
        return _no_asks(seen)
    for exchange, call in asks:
        value = arguments_of(call)
        if not isinstance(value, dict):
            reason = f": {value}" if isinstance(value, ValueError) else ""
            fix = "Let arguments be the text of one JSON object: json.dumps of a dict, {} for no arguments."
            return Judgement("fail", excerpt.request(exchange), f"{excerpt.item(call)}{reason}", fix)
    return _refused(seen) or passed(f"{excerpt.counted(len(asks), 'call')} with a JSON object")


def _refused(seen: Evidence) -> Judgement | None:
    """A warning where the environment refused the arguments of a declared tool."""
    for played in seen.alone:
        for call in played.row.get("gymkit", {}).get("calls", ()):
            if call["error"] == "failed":
                exchange = played.exchanges[call["step"] - 1]
                output = played.row["response"]["output"][call["item"]] if not played.failure_kind else {}
                came = f"{excerpt.answer(exchange)}; the environment answered {output.get('output', 'with an error')}"
                fix = "Fill in the arguments as the tool's parameters in the request's tools say."
                return Judgement("warn", excerpt.request(exchange), came, fix)
    return None


def _no_asks(seen: Evidence) -> Judgement:
    valid = any(exchange.response for exchange in seen.exchanges)
    return skipped("it asked for no tool" if valid else seen.unchecked)


RULES: Final = (
    Rule(
        "reachable",
        "Without a connection every rollout ends in the failures file.",
        _step("reachable", lambda past: f"{past[0].reply.url if past[0].reply else 'the service'} takes connections"),
    ),
    Rule("in time", "A call that takes longer than the bound ends its rollout as a failure.", _in_time),
    Rule(
        "no redirect",
        "A redirect is never followed, since it would drop the body or send the task to an address nobody chose.",
        _step("no redirect", lambda past: f"no redirect in {excerpt.counted(len(past), 'answer')}"),
    ),
    Rule(
        "status",
        "Any status but 2xx ends the rollout as a failure.",
        _step("status", lambda past: f"2xx for {excerpt.counted(len(past), 'answer')}"),
    ),
    Rule(
        "content type",
        "gymkit reads JSON whatever the header says, but proxies and other collectors go by it.",
        _content_type,
    ),
    Rule(
        "valid object",
        "An object that is no Responses API response ends the rollout for good: it is not tried again.",
        _step(
            "valid object",
            lambda past: f"{excerpt.counted(len(past), 'valid answer')}, the first: {excerpt.answer(past[0])}",
        ),
    ),
    Rule(
        "usage",
        "Usage that is reported in part makes the whole object invalid; without any, the token columns stay empty.",
        _usage,
    ),
    Rule("pairs", "A call_id is all that says which output belongs to which call.", _pairs),
    Rule(
        "declared tools",
        "The environment serves what is declared: any other name comes back as an error, and the step is lost.",
        _declared,
    ),
    Rule(
        "arguments",
        "Arguments that are no JSON object, or not what the tool takes, come back as an error, and the step is lost.",
        _arguments,
    ),
)
"""In the order of the contract."""
