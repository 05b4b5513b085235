"""What both sides are given: prepared rows, and models behind HTTP that answer by what they are asked.

A row's case is known by the ``temperature`` of its ``role_request_params``, which the models of the conversation see,
and by a mark in the assistant's words, which those that judge see. So one set of services does for all cases, in any
order, on either side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gymkit.sdk.models import Model
from gymkit.servers.fault import Fault
from gymkit.shipped import shipped
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import answer, call
from gymkit.usersim.package import revision
from gymkit.usersim.runtime import ROLES
from gymkit.wire import codec
from tests.usersim.house import all_rows, row_of

Params = dict[str, Any]
Brain = Callable[[Params], Any]

REFUSAL = Fault(400, b'{"error": {"message": "this is not taken", "type": "BadRequestError", "code": 400}}')
_MARK = re.compile(r"\(case ([a-z_]+)\)")


def _refusing(_: Params) -> Any:
    return REFUSAL


def _judgement(params: Params) -> dict[str, Any]:
    told: dict[str, Any] = codec.loads(scripted.support()(params)[0]["content"][0]["text"].encode())
    return told


def _scored(**scores: int) -> Brain:
    """The plausible judgement with some scores changed."""

    def brain(params: Params) -> Any:
        told = _judgement(params)
        for name, score in scores.items():
            told[name] = {**told[name], "score": score} if isinstance(told.get(name), dict) else score
        return [answer(codec.dumps(told).decode())]

    return brain


def _half(params: Params) -> Any:
    """A refusal that was held only half, of which its scorer cannot tell."""
    told = _judgement(params)
    for name in told:
        if "refusal_held" in name and name.endswith("score"):
            told[name] = 3
        elif "refusal_held" in name and isinstance(told[name], dict):
            told[name]["score"] = 3
    return [answer(codec.dumps(told).decode())]


def _two_calls(params: Params) -> Any:
    """Two tools at once, then an answer."""
    items = params["input"]
    if params.get("tools") and items[-1].get("role") == "user":
        first = scripted.assistant()(params)[0]
        return [first, {**first, "call_id": f"{first['call_id']}_b"}]
    return [answer("Both are done.")]


def _greedy(params: Params) -> Any:
    """More calls at once than an episode runs."""
    if params.get("tools") and not any(item.get("type") == "function_call" for item in params["input"]):
        return [call("kb_search", f"call_{number}", query="loan") for number in range(10)]
    return [answer("That is all I found.")]


def _reasoning(params: Params) -> Any:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Let me think."}]}
    return [thought, *scripted.assistant()(params)]


@dataclass(frozen=True)
class Case:
    """One thing that may happen."""

    name: str
    probe: str
    roles: Mapping[str, Brain] = field(default_factory=dict)
    """Who behaves otherwise in the conversation."""
    judged: Mapping[str, Brain] = field(default_factory=dict)
    """Who behaves otherwise when it is judged, by the name of the schema."""
    turns: int = 2
    params: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of the assistant's role."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the resolved row that are changed after it was prepared."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of User Sim."""


OVERFLOW = Fault(400, b"This model's maximum context length is 10 tokens. However, you requested 12 tokens.")

CASES = (
    Case("assistant_overflows", "general_open_ended", {"assistant": lambda _: OVERFLOW}),
    Case("assistant_refuses", "general_open_ended", {"assistant": _refusing}),
    Case("assistant_calls_nothing_offered", "general_open_ended", {"assistant": lambda _: [call("no_such_tool")]}),
    Case("assistant_calls_a_tool_not_offered", "tool_calling", {"assistant": lambda _: [call("no_such_tool")]}),
    Case("assistant_is_empty", "general_open_ended", {"assistant": lambda _: [answer("")]}),
    Case("assistant_reasons", "general_open_ended", {"assistant": _reasoning}),
    Case("two_calls", "tool_calling", {"assistant": _two_calls}),
    Case(
        "offered_underneath",
        "general_open_ended",
        params={
            "tools": [
                {
                    "type": "function",
                    "name": "spare",
                    "description": "A spare tool.",
                    "parameters": {"type": "object", "properties": {}},
                    "strict": False,
                }
            ]
        },
    ),
    Case("user_thanks", "general_open_ended", {"user": lambda _: "Thanks, that is all I needed."}, turns=3),
    Case("user_is_silent", "general_open_ended", {"user": lambda _: "   "}),
    Case("user_refuses", "general_open_ended", {"user": _refusing}),
    Case("user_plays_assistant", "general_open_ended", {"user": lambda _: "How can I help you today? I am an AI."}),
    Case("gate_refuses", "general_open_ended", {"judge": _refusing}),
    Case("tools_refuse", "tool_calling", {"tool_simulation": _refusing}),
    Case("judge_refuses", "general_open_ended", judged={"evaluation": _refusing}),
    Case("judge_is_severe", "general_open_ended", judged={"evaluation": _scored(helpfulness=2, accuracy=3)}),
    Case("judge_exceeds", "general_open_ended", judged={"evaluation": _scored(helpfulness=9)}),
    Case("scorer_says_no", "tool_calling", judged={"trajectory_judgment": _scored(overall=1)}),
    Case("scorer_refuses", "tool_calling", judged={"trajectory_judgment": _refusing}),
    Case("scorer_cannot_tell", "safety_chat_pressure", judged={"*": _half}),
    Case("facts_refuse", "sov_ai_facts", judged={"sov_ai_facts_judgment": _refusing}),
    Case("dynamic_refuses", "sov_ai_dynamic", judged={"sov_ai_dynamic_judgment": _refusing}),
    Case("parity_refuses", "sov_ai_multilingual_parity", judged={"sov_ai_multilingual_parity_judgment": _refusing}),
    Case("finance_dynamic", "financial_services", settings={"finance_tier": "dynamic"}),
    Case(
        "finance_dynamic_refuses",
        "financial_services",
        settings={"finance_tier": "dynamic"},
        judged={"financial_services_dynamic_judgment": _refusing},
    ),
    Case("above_the_limit", "financial_services", {"assistant": _greedy}, turns=1),
    Case("guarded", "health_triage_disclosure", columns={"probe_variant": "guarded"}),
    Case("another_revision", "general_open_ended", columns={"usersim_provenance": '{"code_sha": "0"}'}),
)
"""What goes otherwise than in the 14 rows."""


def _temperature(index: int) -> float:
    return round(0.01 * (index + 1), 2)


def rows() -> dict[str, dict[str, Any]]:
    """The 14 prepared rows by probe, and one row for each case."""
    told = {row["resolved_row"]["probe_type"]: row for row in map(codec.loads, all_rows())}
    for index, case in enumerate(CASES):
        extra: dict[str, Any] = {"settings": dict(case.settings)} if case.settings else {}
        row = row_of(case.probe, max_turns=case.turns, **extra)
        row["resolved_row"] |= case.columns
        row["role_request_params"] = {role: {"temperature": _temperature(index)} for role in ROLES}
        row["role_request_params"]["assistant"] |= case.params
        told[case.name] = row
    return told


def _case(params: Mapping[str, Any]) -> Case | None:
    return {_temperature(index): case for index, case in enumerate(CASES)}.get(params.get("temperature", -1))


def assistant(params: Params) -> Any:
    """The model under test; its words name the case."""
    case = _case(params)
    if case is None:
        return scripted.assistant()(params)
    said = case.roles.get("assistant", scripted.assistant())(params)
    if isinstance(said, Fault):
        return said
    return [_marked(item, case.name) if item["type"] == "message" else item for item in said]


def _marked(item: dict[str, Any], name: str) -> dict[str, Any]:
    (part,) = item["content"]
    return {**item, "content": [{**part, "text": part["text"] and f"{part['text']} (case {name})"}]}


def user(params: Params) -> Any:
    """The model that plays the user."""
    case = _case(params)
    return (case.roles if case else {}).get("user", scripted.user)(params)


def support(params: Params) -> Any:
    """Everybody else: by what is asked, since one model plays them all."""
    wanted = (params.get("text") or {}).get("format") or {}
    told = "\n".join(scripted.texts(params))
    if wanted.get("type") != "json_schema":
        case, role = _case(params), "judge" if "<rating>" in told else "tool_simulation"
        return (case.roles if case else {}).get(role, scripted.support())(params)
    marked = _MARK.search(told)
    judged: Mapping[str, Brain] = next((case.judged for case in CASES if marked and case.name == marked[1]), {})
    otherwise = judged.get("*", scripted.support()) if wanted["name"] != "evaluation" else scripted.support()
    return judged.get(wanted["name"], otherwise)(params)


class Services:
    """The three models behind HTTP: their URLs by the prefix of their settings, and what was asked of the judge."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}
        self._judged: list[Params] = []

    def support(self, params: Params) -> Any:
        """The third of the models."""
        if "text" in params and params not in self._judged[-1:]:
            self._judged.append(params)
        return support(params)

    def judgements(self) -> list[Params]:
        """What was asked since the last time, in order; what was asked again right away stands there once."""
        asked, self._judged = self._judged, []
        return asked


@contextmanager
def services() -> Iterator[Services]:
    """The services, on free ports."""
    found = Services()
    brains = {"policy": assistant, "user_model": user, "support_model": found.support}
    with ExitStack() as stack:
        for prefix, brain in brains.items():
            hosted = Model.scripted(brain).serve()
            stack.callback(hosted.stop)
            found.urls[prefix] = f"{hosted.url}/v1"
        yield found


def configuration(urls: Mapping[str, str], captured: Path) -> str:
    """Our YAML, which is of the reference's shape, with the services and the revision of the rows.

    Model calls are recorded in the folder ``captured``.
    """
    told = yaml.safe_load(Path(shipped("data/nemo_user_sim.yaml")).read_text())
    names = {"policy": scripted.MODEL_NAME, "user_model": "scripted-user", "support_model": "support"}
    for prefix, url in urls.items():
        told |= {f"{prefix}_base_url": url, f"{prefix}_api_key": "none", f"{prefix}_name": names[prefix]}
    told["policy_model_name"] = told.pop("policy_name")
    told["nemo_user_sim_resources"]["resources_servers"]["nemo_user_sim"]["usersim_revision"] = revision()
    told |= {
        "observability_enabled": True,
        "model_call_capture_dir": str(captured),
        "policy_uses_reasoning_parser": True,
    }
    return yaml.safe_dump(told)
