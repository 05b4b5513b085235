"""The report as a frame, a line, a page and an exit status, whatever a service wrote into it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymkit.sdk.check import RULES, excerpt
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.exchange import Exchange
from gymkit.sdk.check.finding import Finding, Judgement, Rule
from gymkit.sdk.check.oddities import LARGE_BYTES, ODD_TEXT, in_other_shape, large, with_lone_surrogate, with_text
from gymkit.sdk.check.played import Played
from gymkit.sdk.check.report import Report
from gymkit.servers.route import Reply
from gymkit.testing.agent import answer, call, respond
from gymkit.wire import codec
from gymkit.wire.responses import check_request

HOSTILE = '<script>alert(1)</script>\u202e\x1b[31m\ud83d & "quoted"'
PARAMS: dict[str, Any] = {"input": [{"role": "user", "content": "add 1"}], "tools": [{"type": "function", "name": "t"}]}


def finding(rule: str, result: Any, text: str = "text") -> Finding:
    return Rule(rule, "It matters.", lambda seen: Judgement(result, text, text, text)).find(evidence())


def evidence() -> Evidence:
    return Evidence(timeout=1.0, budget=60.0, max_steps=16, concurrency=32)


def report(*findings: Finding) -> Report:
    return Report("http://127.0.0.1:9000", "counter", findings, calls=61, seconds=1.234)


MIXED = report(
    finding("reachable", "pass"),
    finding("usage", "warn"),
    finding("pairs", "fail"),
    finding("cookies", "skip"),
    finding("status", "pass"),
)


class TestFrame:
    @pytest.mark.parametrize("found", [MIXED, report()], ids=["mixed", "empty"])
    def test_dtypes_are_the_same_when_empty(self, found: Report) -> None:
        texts = dict.fromkeys(["rule", "sent", "came", "why", "fix"], "string")
        kinds = {name: str(dtype) for name, dtype in found.frame.dtypes.items()}
        assert kinds == {**texts, "result": "category"}
        assert list(found.frame.columns) == ["rule", "result", "sent", "came", "why", "fix"]
        assert list(found.frame["result"].cat.categories) == ["fail", "warn", "pass", "skip"]

    def test_one_row_per_rule_in_order(self) -> None:
        assert MIXED.frame["rule"].tolist() == ["reachable", "usage", "pairs", "cookies", "status"]
        assert MIXED.frame["result"].tolist() == ["pass", "warn", "fail", "skip", "pass"]

    def test_what_a_service_wrote_can_be_stored(self) -> None:
        frame = report(finding("pairs", "fail", HOSTILE)).frame
        assert "\ud83d" not in frame.to_csv()
        assert isinstance(frame, pd.DataFrame)


class TestText:
    def test_one_line(self) -> None:
        assert repr(MIXED) == "<Report http://127.0.0.1:9000: 2 pass, 1 warn, 1 fail, 1 skip>"
        assert repr(report(finding("status", "pass"))) == "<Report http://127.0.0.1:9000: 1 pass>"

    def test_failures_come_first_and_in_full(self) -> None:
        blocks = str(MIXED).split("\n\n")
        assert blocks[0].startswith("http://127.0.0.1:9000 with the tasks of counter: 2 pass")
        assert blocks[1].splitlines()[0] == "FAIL  pairs"
        assert [line.split()[0] for line in blocks[1].splitlines()[1:]] == ["sent", "came", "why", "fix"]
        assert blocks[2].splitlines()[0] == "WARN  usage"
        assert [line.split()[1] for line in blocks[3].splitlines()] == ["reachable", "status"]
        assert blocks[4] == "skip  cookies (text)"

    def test_rules_that_were_skipped_for_one_reason_share_a_line(self) -> None:
        text = str(report(finding("a", "skip", "no time"), finding("b", "skip", "no time"), finding("c", "skip", "x")))
        assert text.split("\n\n")[1] == "skip  a, b (no time)\nskip  c (x)"

    def test_no_line_is_wider_than_a_terminal(self) -> None:
        text = str(report(finding("pairs", "fail", "word " * 200), finding("status", "pass", "x" * 300)))
        assert max(map(len, text.splitlines())) <= 110

    def test_it_can_be_printed_whatever_came(self) -> None:
        text = str(report(finding("pairs", "fail", HOSTILE)))
        text.encode()
        assert "\x1b" not in text
        assert "\u202e" not in text


class TestPage:
    def test_everything_that_came_is_escaped(self) -> None:
        page = report(finding("pairs", "fail", HOSTILE), finding("status", "pass", HOSTILE))._repr_html_()
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        assert "\u202e" not in page
        page.encode()

    def test_it_says_the_verdict_first_and_tells_failures_in_full(self) -> None:
        page = texts(MIXED._repr_html_())
        assert page[0] == "1 rule failed:"
        assert page.index("pairs") < page.index("usage") < page.index("3 more rules")
        for label in ("sent", "came", "why", "fix"):
            assert page.count(label) == 2

    def test_a_good_service_gets_its_rules_unfolded(self) -> None:
        page = report(finding("status", "pass"))._repr_html_()
        assert "<details open" in page
        assert texts(page)[0] == "No rule failed:"

    def test_ok_is_no_failure(self) -> None:
        assert not MIXED.ok
        assert report(finding("usage", "warn"), finding("cookies", "skip")).ok


class Texts(HTMLParser):
    """The texts of a page, without its style sheet."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._styled = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._styled = tag == "style"

    def handle_data(self, data: str) -> None:
        if not self._styled and data.strip():
            self.found.append(data.strip())


def texts(page: str) -> list[str]:
    parser = Texts()
    parser.feed(page)
    return parser.found


class TestRules:
    def test_names_are_unique_and_short_and_reasons_are_sentences(self) -> None:
        names = [rule.name for rule in RULES]
        assert len(set(names)) == len(names)
        assert max(map(len, names)) <= 20
        for rule in RULES:
            assert rule.why[0].isupper() or rule.why.startswith("gymkit")
            assert rule.why.endswith(".")

    def test_without_evidence_every_rule_is_skipped(self) -> None:
        assert {rule.find(evidence()).result for rule in RULES} == {"skip"}

    def test_out_of_time_without_an_answer_fails_in_time_alone(self) -> None:
        seen = evidence()
        seen.first, seen.out_of_time = Played(0), True
        failed = [found for rule in RULES if (found := rule.find(seen)).result == "fail"]
        assert [found.rule for found in failed] == ["in time"]


def played(reward: float | None, *asks: str, task: int = 0) -> Played:
    exchange = answered(respond([call(name, f"c{place}") for place, name in enumerate(asks)] or [answer("x")]))
    row = {"gymkit": {"termination_reason": "message"}, "reward": reward}
    return Played(task, exchanges=[exchange], row=row)


def answered(body: Any, status: int = 200) -> Exchange:
    return Exchange.answered(PARAMS, {}, 0.1, Reply("s", "http://s/v1/responses", status, [], codec.dumps(body)))


class TestCleanStart:
    """What a repetition says: chance must not look like state, and state not like chance."""

    @pytest.mark.parametrize(
        ("again", "outcome"),
        [
            ([], ""),
            ([played(1.0, "a")], "same"),
            ([played(1.0, "a", "b"), played(1.0, "a")], "different"),
            ([played(0.0, "a"), played(1.0, "a")], "different"),
            ([played(0.0, "a"), played(0.0)], "worse"),
        ],
    )
    def test_outcomes(self, again: list[Played], outcome: str) -> None:
        seen = evidence()
        seen.first, seen.again = played(1.0, "a"), again
        assert seen.starts_clean == outcome

    def test_a_repetition_that_does_better_is_no_fault(self) -> None:
        seen = evidence()
        seen.first, seen.again = played(0.0), [played(1.0, "a"), played(1.0, "a")]
        assert seen.starts_clean == "different"


class TestExchange:
    @pytest.mark.parametrize(
        ("body", "status", "rung"),
        [(respond([answer("x")]), 200, 5), ({}, 200, 4), ([], 200, 4), ({}, 302, 2), ({}, 500, 3)],
    )
    def test_how_far_an_answer_got(self, body: Any, status: int, rung: int) -> None:
        assert answered(body, status).rung == rung

    def test_a_usage_that_alone_is_wrong_is_taken_out(self) -> None:
        exchange = answered(respond([answer("x")], usage=False) | {"usage": {"input_tokens": 1}})
        assert exchange.error is None
        assert exchange.response is not None
        assert "usage" not in exchange.response
        assert "total_tokens" in str(exchange.usage_problem)

    def test_a_usage_beside_another_mistake_is_an_invalid_object(self) -> None:
        exchange = answered(respond([answer("x")]) | {"usage": {}, "output": 1})
        assert "output" in str(exchange.error)

    def test_calls_are_compared_by_value_and_not_by_spelling(self) -> None:
        one = {**call("t", "c"), "arguments": '{"b": 1, "a": [ 2 ]}'}
        other = {**call("t", "d"), "arguments": '{"a":[2],"b":1}'}
        assert answered(respond([one])).asks == answered(respond([other])).asks == [("t", "a=[2], b=1")]


class TestExcerpt:
    @given(st.text(st.characters(codec=None, categories=None)))
    def test_a_line_is_one_line_and_can_be_printed(self, text: str) -> None:
        line = excerpt.line(text)
        line.encode()
        assert len(line.splitlines()) <= 1
        assert "\x1b" not in line

    def test_what_is_left_out_is_counted(self) -> None:
        assert excerpt.line("x" * 1400).endswith("x … 1,000 more characters, not shown")

    def test_line_ends_that_are_not_newlines_are_shown(self) -> None:
        assert excerpt.line("a\u2028b\nc") == "a⟨U+2028⟩b c"

    def test_values_of_cookies_are_left_out(self) -> None:
        sent = excerpt.request(Exchange({**PARAMS, "input": [*PARAMS["input"], answer("x")]}, {"sid": "secret"}, 0.1))
        assert "1 earlier item, then" in sent
        assert sent.endswith("; tools: t; cookies: sid")

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(0.00123, "1.2 ms"), (0.38, "380 ms"), (1.5, "1.5 s"), (45, "45 s"), (1740, "29 min"), (90_000, "25 h")],
    )
    def test_durations(self, seconds: float, text: str) -> None:
        assert excerpt.duration(seconds) == text


PARTS = [{"type": "input_text", "text": "add 1"}]


class TestOddRequests:
    @pytest.mark.parametrize(
        "params",
        [
            PARAMS,
            {**PARAMS, "input": [{"type": "message", "role": "user", "content": PARTS}]},
            {**PARAMS, "input": [{"role": "system", "content": "x"}, *PARAMS["input"], answer("y")]},
            {**PARAMS, "input": []},
        ],
        ids=["text", "parts", "more", "empty"],
    )
    @pytest.mark.parametrize("make", [in_other_shape, large, with_lone_surrogate, lambda p: with_text(p, ODD_TEXT)])
    def test_each_is_a_request_that_the_contract_allows(self, params: dict[str, Any], make: Any) -> None:
        before = codec.dumps(params)
        check_request(make(params))
        assert codec.dumps(params) == before, "the task itself is left as it was"

    def test_the_large_one_is_a_megabyte_and_ends_with_the_task(self) -> None:
        request = large(PARAMS)
        assert LARGE_BYTES < len(codec.dumps(request)) < 1.1 * LARGE_BYTES
        assert request["input"][-1] == PARAMS["input"][0]

    def test_the_other_shape_of_the_other_shape_is_the_first(self) -> None:
        other = in_other_shape(PARAMS)
        assert other["input"] == [{"type": "message", "role": "user", "content": PARTS}]
        assert in_other_shape(other) == PARAMS

    def test_text_goes_behind_the_last_message_of_the_user(self) -> None:
        items = [{"role": "user", "content": "a"}, {"role": "user", "content": PARTS}, answer("b")]
        changed = with_text({"input": items}, "!")["input"]
        assert changed[0] == items[0]
        assert changed[1]["content"][-1]["text"] == "!"

    def test_half_an_emoji_is_escaped_on_the_wire(self) -> None:
        assert b"\\ud83d" in codec.dumps(with_lone_surrogate(PARAMS))
