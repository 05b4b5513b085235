"""The small parts: shapes, schemas, the audit's rules, personas, prepared rows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.errors import ConfigError, InputError
from gymkit.servers.app import ServerApp
from gymkit.servers.http import Request
from gymkit.servers.route import Route
from gymkit.testing.agent import answer, call, respond
from gymkit.usersim import audit, schema
from gymkit.usersim.chat import items_of, message_of, params_of, request_of, usage_of
from gymkit.usersim.judge import Judge, JudgeRefused
from gymkit.usersim.people import LANDS
from gymkit.usersim.personas import read_personas, synthetic_personas
from gymkit.usersim.runtime import Activation, answered
from gymkit.usersim.verdict import kind_of
from gymkit.wire.responses import check_request, check_response

CALLED = {
    "role": "assistant",
    "content": "Let me see.",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}


def test_chat_messages_become_items_and_come_back() -> None:
    messages = [{"role": "user", "content": "hi"}, CALLED, {"role": "tool", "content": "x", "tool_call_id": "c1"}]
    items = items_of(messages)
    check_request({"input": items})
    assert [item["type"] for item in items] == ["message", "message", "function_call", "function_call_output"]
    response = respond([answer("Let me see."), call("look", "c1")])
    check_response(response)
    assert message_of(response) == CALLED
    assert usage_of(response) == (1, 1)
    assert usage_of(respond([], usage=False)) is None


def test_calls_that_an_assistant_answered_itself_are_its_own_affair() -> None:
    own = [call("look", "c1"), {"type": "function_call_output", "call_id": "c1", "output": "x"}, answer("done")]
    assert message_of(respond(own)) == {"role": "assistant", "content": "done"}


def test_reasoning_and_refusals_are_kept_and_parts_are_lines() -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}
    refusal = {**answer(""), "content": [{"type": "refusal", "refusal": "No."}]}
    assert message_of(respond([answer("One."), answer(""), answer("Two.")]))["content"] == "One.\nTwo."
    assert message_of(respond([thought, refusal])) == {
        "role": "assistant",
        "content": "No.",
        "reasoning_content": "hm",
    }


def test_tools_of_a_base_are_never_the_assistants() -> None:
    base = {"tools": [{"type": "function", "name": "spare"}], "temperature": 0.5}
    asked = request_of(Activation("a", "assistant", ()), [], base)
    assert asked == {"temperature": 0.5, "input": []}, "the episode offers none, and nobody would run that one"
    assert request_of(Activation("a", "user", ()), [], base) == {**base, "input": []}


def test_parameters_have_their_counterparts_or_are_refused() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    assert params_of({"max_tokens": 5, "reasoning_effort": "low", "response_format": wanted, "stop": None}) == {
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
    }
    assert params_of({"max_tokens": None, "max_completion_tokens": 7, "store": False}) == {
        "max_output_tokens": 7,
        "store": False,
    }
    with pytest.raises(NotImplementedError, match="logit_bias"):
        params_of({"logit_bias": {}})


def test_the_base_lies_underneath() -> None:
    activation = Activation("a", "assistant", (), {"max_tokens": 9})
    made = request_of(activation, [{"role": "user", "content": "x"}], {"max_output_tokens": 1, "temperature": 0.5})
    assert (made["max_output_tokens"], made["temperature"], len(made["input"])) == (9, 0.5, 1)


def test_every_call_gets_an_output_once_and_in_its_place() -> None:
    messages = [CALLED, {"role": "assistant", "content": "so"}]
    told = answered(messages)
    assert [each["role"] for each in told] == ["assistant", "tool", "assistant"]
    assert answered(told) == told
    assert [each["role"] for each in answered([CALLED])] == ["assistant", "tool"]


SCORE = {
    "type": "object",
    "properties": {"score": {"$ref": "#/$defs/s"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["score", "note"],
    "$defs": {"s": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"score": 9, "note": None}, "not one of"),
        ({"score": "4", "note": None}, "must be integer"),
        ({"score": True, "note": None}, "must be integer"),
        ({"score": 4.0, "note": None}, "must be integer"),
        ({"note": ""}, "score: is missing"),
        ({"score": 4, "note": 1}, "note"),
        ([], "must be object"),
    ],
)
def test_what_is_not_of_its_schema(value: Any, said: str) -> None:
    assert said in "; ".join(schema.problems(SCORE, value))


def test_what_is_of_its_schema() -> None:
    assert schema.problems(SCORE, {"score": 4, "note": None}) == []
    assert schema.problems(SCORE, {"note": "x"}, absent_ok=True) == []
    assert schema.problems({"type": "array", "items": {"type": "integer", "minimum": 1}}, [1, 0]) == [
        "reply[1]: 0 is below 1"
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_no_value_breaks_the_check(value: Any) -> None:
    assert schema.problems(SCORE, value)


ROW = {
    "persona": {"first_name": "Aisha", "last_name": "Brooks", "age": 41, "persona": "Aisha fixes radios."},
    "locale": "en_US",
    "conversation_language": "English",
    "theme": "radios",
}


def _faults(*texts: str, instructions: str = "", **row: Any) -> list[str]:
    written = audit.Written(tuple(enumerate(texts)), instructions)
    return [fault.check for fault in audit.by_rules({**ROW, **row}, written)]


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("Hi, could you help me with my radio?", []),
        ("Are you an AI? Who made you?", []),
        ("My name is Aisha and I am 41 years old.", []),
        ("My name is Brooks.", []),
        ("How can I help you today?", ["role"]),
        ("I'm an AI and cannot do that.", ["role"]),
        ("My name is Bob.", ["persona"]),
        ("I am 25 years old.", ["persona"]),
        ("My system prompt says that I like radios.", ["leak"]),
        ("I am role-playing a customer.", ["leak"]),
    ],
)
def test_the_rules_of_the_audit(text: str, checks: list[str]) -> None:
    assert _faults(text) == checks


def test_reciting_the_instructions_is_a_leak_but_telling_of_oneself_is_none() -> None:
    told = "you always ask two short questions in a row and you never thank anybody for it"
    assert _faults(f"Well, {told}.", instructions=told) == ["leak"]
    assert _faults(f"Well, {told}.", instructions=told, theme=told) == []


@pytest.mark.parametrize(
    ("locale", "text", "checks"),
    [
        ("ja_JP", "これはどうすればいいですか。", []),
        ("ja_JP", "Please tell me how to do this.", ["language"]),
        ("hi_Deva_IN", "मुझे बताइए कि यह कैसे करना है", []),
        ("hi_Latn_IN", "mujhe bataiye yeh kaise karna hai", []),
        ("ko_KR", "OK", []),
        ("de_DE", "Können Sie mir bitte helfen?", []),
        ("de_DE", "Не могли бы вы мне помочь?", ["language"]),
    ],
)
def test_the_script_of_the_user(locale: str, text: str, checks: list[str]) -> None:
    assert _faults(text, locale=locale) == checks


def test_going_on_after_goodbye_is_told_but_does_not_spoil() -> None:
    assert _faults("Thanks, that is all I needed.", "One more thing.") == ["stopping"]
    report = audit.Report((audit.Fault("stopping", 1, "x", "y", "rule"),), False, audit.SPOILING)
    assert report.spoiled is False
    assert report.status("stopping") == "broken"
    assert report.status("facts") == "unknown", "without a judge nobody can tell"


def test_only_what_the_users_model_wrote_is_looked_at() -> None:
    messages = [
        {"role": "user", "content": "How can I help you?"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "Thanks."},
    ]
    request = {"input": [{"role": "system", "content": "You are Aisha."}]}
    invocations = [{"role": "user", "request": request, "response": respond([answer("Thanks.")])}]
    written = audit.Written.of(messages, invocations)
    assert written == audit.Written(((1, "Thanks."),), "You are Aisha.")


class Replying(ServerApp):
    """A model server with one reply."""

    server_type = "responses_api_models"
    implementation = "test"

    def __init__(self, text: str) -> None:
        super().__init__("judge")
        self.text = text

    def handlers(self) -> dict[str, Any]:
        return {"POST /v1/responses": self._responses}

    async def _responses(self, request: Request) -> Any:
        return respond([answer(self.text)])


def _by_judge(text: str) -> list[audit.Fault]:
    written = audit.Written(((0, "I was born on Mars in 1850."),), "")
    judge = Judge(Route.to_app("judge", Replying(text)), "judge", 5.0)
    return asyncio.run(audit.by_judge(ROW, [{"role": "user", "content": "x"}], written, judge))


def test_what_a_judge_cannot_quote_does_not_count() -> None:
    said = '{"faults": [{"check": "facts", "quote": "born on Mars", "reason": "no"},'
    said += ' {"check": "role", "quote": "never said", "reason": "no"}]}'
    assert _by_judge(said) == [audit.Fault("facts", 0, "born on Mars", "no", "judge")]
    with pytest.raises(ValueError, match="not of its schema"):
        _by_judge('{"faults": [{"check": "mood", "quote": "x", "reason": "y"}]}')


def test_a_judge_takes_few_parameters_and_tells_what_it_was_asked_for() -> None:
    judge = Judge(Route.to_app("judge", Replying("fine")), "judge", 5.0)
    with pytest.raises(TypeError, match="tools"):
        asyncio.run(judge.ask([], {"tools": []}))
    asyncio.run(judge.ask([{"role": "user", "content": "x"}], {"temperature": 0}))
    assert judge.calls == ["text"]
    assert judge.faults == {}
    assert issubclass(JudgeRefused, TypeError)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("infrastructure_error", "usersim:infrastructure_error"),
        ("Judge_Parse_Error", "usersim:judge_parse_error"),
        ("judge_failed", "judge_failed"),
        ("No reply (twice)", "usersim:no_reply_twice"),
        ("mine:own", "mine:own"),
        (None, "usersim:simulation_failed"),
    ],
)
def test_kinds_of_failures(name: Any, kind: str) -> None:
    assert kind_of(name) == kind


FIELDS = """
uuid first_name middle_name last_name sex age marital_status postcode city district country street_name street_number
unit bachelors_field education_level occupation locale ethnic_background birth_date phone_number email_address
national_id state persona detailed_persona professional_persona career_goals_and_ambitions cultural_background
arts_persona culinary_persona finance_persona healthcare_persona sports_persona travel_persona hobbies_and_interests
hobbies_and_interests_list skills_and_expertise skills_and_expertise_list openness conscientiousness extraversion
agreeableness neuroticism
"""


@pytest.mark.parametrize("locale", sorted(LANDS))
def test_personas_have_every_field_in_every_locale(locale: str) -> None:
    expected = FIELDS.split()
    for persona in synthetic_personas(locale, 20, 7):
        assert set(expected) <= persona.keys()
        assert 18 <= persona["age"] <= 80
        assert persona["openness"]["t_score"] in range(20, 81)
    assert synthetic_personas(locale, 3, 7) == synthetic_personas(locale, 3, 7)
    assert synthetic_personas(locale, 3, 7) != synthetic_personas(locale, 3, 8)
    assert synthetic_personas(locale, 5, 7)[:3] == synthetic_personas(locale, 3, 7)


def test_an_unknown_locale_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="en_US"):
        synthetic_personas("en_UX", 1, 1)


def test_personas_of_a_file_need_a_known_version(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    people = [{"first_name": f"P{number}", "age": 30, "occupation": "x"} for number in range(5)]
    parquet.write_table(pyarrow.Table.from_pylist(people), tmp_path / "en_US.parquet")
    with pytest.raises(ConfigError, match="personas_version"):
        read_personas(tmp_path, "en_US", 2, 1, None)
    rows, version = read_personas(tmp_path, "en_US", 2, 1, "0.0.2")
    assert (len(rows), version) == (2, "0.0.2")
    assert read_personas(tmp_path, "en_US", 2, 1, "0.0.2")[0] == rows
    with pytest.raises(ConfigError, match="holds 5 personas"):
        read_personas(tmp_path, "en_US", 6, 1, "0.0.2")
    with pytest.raises(ConfigError, match="no personas at"):
        read_personas(tmp_path, "de_DE", 1, 1, None)


def test_prepared_rows_are_the_contracts(tmp_path: Path) -> None:
    pytest.importorskip("usersim")
    import gymkit as gk
    from gymkit.usersim.package import revision
    from gymkit.wire import codec

    frame = gk.usersim.prepare(["general_open_ended", "tool_calling"], rows=3, seed=5, output=tmp_path / "rows.jsonl")
    assert list(frame["probe_type"]) == ["general_open_ended", "tool_calling", "general_open_ended"]
    assert frame["task_id"].is_unique
    lines = [codec.loads(line) for line in (tmp_path / "rows.jsonl").read_bytes().splitlines()]
    for line in lines:
        assert set(line) == {"task_id", "resolved_row"}
        row = line["resolved_row"]
        assert row["trajectory_id"] == line["task_id"]
        told = codec.loads(row["usersim_provenance"].encode())
        assert (told["code_sha"], told["nemotron_personas_version"]) == (revision(), "synthetic")
        assert len(revision()) == 40
        assert "assets_dir" not in row["usersim_config"]
    again = gk.usersim.prepare(["general_open_ended", "tool_calling"], rows=3, seed=5)
    assert list(again["resolved_row"]) == list(frame["resolved_row"])


def test_what_cannot_be_prepared_is_told_row_by_row() -> None:
    pytest.importorskip("usersim")
    import gymkit as gk

    with pytest.raises(InputError, match="general_open_ended"):
        gk.usersim.prepare("general_open_endd")
    with pytest.raises(InputError, match="identity_disclosure"):
        gk.usersim.prepare("identity_disclosure", assistant="nobody-9000")
    with pytest.raises(InputError, match="max_turnz"):
        gk.usersim.prepare("general_open_ended", settings={"max_turnz": 3})
    with pytest.raises(InputError, match="at least 1"):
        gk.usersim.prepare(rows=0)


def test_a_row_can_name_the_task_of_its_bank() -> None:
    pytest.importorskip("usersim")
    import gymkit as gk

    columns = {"safety_agentic": {"action_request_id": "AR-CONSEQ-008"}}
    (row,) = gk.usersim.prepare("safety_agentic", columns=columns)["resolved_row"]
    assert row["action_request_id"] == "AR-CONSEQ-008"
