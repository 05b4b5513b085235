"""Programs as agents: real processes, which find their model and their tools where they are told to look."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gymkit.agents.command import Command, CommandConfig
from gymkit.testing.agent import call
from gymkit.testing.model import Fault
from tests.agents.frameworks.world import World, kinds, outputs_of, row

LIBRARY = """
import json, os, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(opener.open(request))
def ask(text):
    reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", model="m",
                 messages=[{"role": "user", "content": text}])
    return reply["choices"][0]["message"]["content"]
def tool(name, **arguments):
    reply = post(os.environ["GYMKIT_MCP_URL"], jsonrpc="2.0", id=1, method="tools/call",
                 params={"name": name, "arguments": arguments})
    return reply["result"]["content"][0]["text"]
"""


@pytest.fixture(autouse=True)
def _private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def program(
    code: str, *arguments: str, script: Any = ("said",), bounds: Mapping[str, Any] = {}, **fields: Any
) -> World:
    files = {"library.py": LIBRARY, "main.py": "from library import *\n" + textwrap.dedent(code)}
    config = CommandConfig(argv=[sys.executable, "main.py", *arguments], **{"files": files, **fields})
    return World(Command(config), list(script) if isinstance(script, tuple) else script, bounds=dict(bounds))


def answer_of(result: dict[str, Any]) -> str:
    assert result.get("error") is None, result["error"]
    return str(result["response"]["output"][-1]["content"][0]["text"])


def test_a_program_asks_its_model_calls_tools_and_answers() -> None:
    world = program(
        """
        prompt = sys.stdin.read()
        told = tool("increment_counter", count=2)
        print(ask(prompt + told))
        """
    )
    result = world.run()
    assert answer_of(result) == "said"
    assert result["reward"] == 1.0
    assert kinds(result) == ["function_call", "function_call_output", "message"]
    assert outputs_of(result) == ['{"success":true}']
    [each] = world.calls()
    assert (each["dialect"], each["status_code"]) == ("chat", 200)
    assert each["request"]["messages"][0]["content"] == 'add 2{"success":true}'


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("{prompt}", "print(sys.argv[1])"),
        ("--text={prompt}", "print(sys.argv[1].removeprefix('--text='))"),
        ("{prompt_file}", "print(open(sys.argv[1]).read())"),
    ],
)
def test_the_prompt_comes_as_an_argument_or_a_file(argument: str, code: str) -> None:
    code = f"assert sys.stdin.read() == ''\n{code}"
    assert answer_of(program(code, argument).run()) == "add 2"


def test_the_prompt_is_a_template_and_what_is_filled_in_stays_as_it_is() -> None:
    world = program("print(sys.argv[1])", "{prompt}", template="Do: {conversation}\nWith: {tools}")
    told = answer_of(world.run(row(input="say {tools} and {folder}"))[0])
    assert told.startswith("Do: say {tools} and {folder}\nWith: [{")
    assert '"increment_counter"' in told


def test_a_conversation_says_who_said_what() -> None:
    earlier = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    world = program("print(sys.stdin.read())")
    told = answer_of(world.run(row(input=[*earlier, {"role": "user", "content": "three"}], instructions="zero"))[0])
    assert told == "[system] zero\n\n[user] one\n\n[assistant] two\n\n[user] three"


def test_the_answer_may_be_a_field_of_what_is_printed() -> None:
    code = """print(json.dumps({"type": "result", "result": {"text": "fünf", "n": 5}}))"""
    assert answer_of(program(code, answer="result.text").run()) == "fünf"
    assert answer_of(program(code, answer="result.n").run()) == "5"
    missing = program(code, answer="result.other").run()
    assert (missing["failure_kind"], "result.other" in missing["error"]) == ("invalid_response", True)
    prose = program("print('well')", answer="result").run()
    assert (prose["failure_kind"], "'well'" in prose["error"]) == ("not_json", True)


def test_an_exit_status_is_a_failure_with_what_was_printed_to_stderr() -> None:
    result = program("print('half'); sys.exit('no good')").run()
    assert (result["_ng_failure_class"], result["failure_kind"]) == ("agent_run_error", "agent_error")
    assert "ended with exit status 1: no good" in result["error"]
    killed = program("import signal; os.kill(os.getpid(), signal.SIGTERM)").run()
    assert "was ended by signal 15" in killed["error"]


def test_a_model_that_fails_is_the_programs_business() -> None:
    code = """
    try:
        ask("x")
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    """
    world = program(code, script=(Fault(429, b"slow down"),))
    assert answer_of(world.run()).startswith("429 ")
    assert "slow down" in answer_of(program(code, script=(Fault(429, b"slow down"),)).run())


def test_output_without_end_is_cut_and_said() -> None:
    result = program("while True: print('x' * 1000)", output_limit=5_000).run()
    assert (result["failure_kind"], "output_limit=5000" in result["error"]) == ("invalid_response", True)
    talkative = program("sys.stderr.write('e' * 1_000_000); print('fine')").run()
    assert answer_of(talkative) == "fine"


def test_it_has_a_home_of_its_own_and_none_of_our_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-real")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    code = """
    files = sorted(name for name in os.listdir() if "." in name)
    print(json.dumps({"env": dict(os.environ), "files": files}))
    """
    from gymkit.wire import codec

    told = codec.loads(answer_of(program(code, env={"MINE": "1"}).run()).encode())
    env = told["env"]
    assert "sk-real" not in str(env)
    assert "proxy:1" not in str(env)
    assert (env["MINE"], env["OPENAI_API_KEY"], env["ANTHROPIC_API_KEY"]) == ("1", "gymkit", "gymkit")
    assert env["OPENAI_BASE_URL"] == f"{env['ANTHROPIC_BASE_URL']}/v1"
    assert env["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert env["OPENAI_BASE_URL"].endswith("/ng-rollout/0-0/v1")
    assert env["HOME"] != os.environ["HOME"]
    assert told["files"] == ["library.py", "main.py"]


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = """
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[1], "w").write(str(child.pid))
    print("done")
    """
    assert answer_of(program(code, str(pid)).run()) == "done"
    assert ended(int(pid.read_text()))


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
def test_a_rollout_that_is_cut_takes_the_whole_process_group_along(how: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = """
    import subprocess, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
    tool("wait")
    """
    world = program(code, str(pids), bounds={"run_timeout_secs": 2.0 if how == "timeout" else 60.0})

    async def cancelled() -> None:
        agent = world.agent()
        rollout = asyncio.create_task(agent.run(row()))
        await asyncio.wait_for(world.room.waits.wait(), 20)
        rollout.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rollout
        await agent.aclose()

    if how == "timeout":
        assert world.run()["failure_kind"] == "timeout"
    else:
        asyncio.run(cancelled())
    assert all(ended(int(pid)) for pid in pids.read_text().split())
    assert list(tmp_path.glob("gymkit-*")) == []


def ended(pid: int) -> bool:
    """Gone, or a zombie that whoever adopted it has not looked at yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_programs_at_once_share_nothing() -> None:
    code = """
    open("mine", "x").close()
    tool("increment_counter", count=1); tool("increment_counter", count=1)
    print(ask(sys.stdin.read()))
    """
    world = program(code)
    results = world.run(*[row(rollout, input=f"task {rollout}") for rollout in range(4)])
    assert [result["reward"] for result in results] == [1.0] * 4
    for rollout in range(4):
        [each] = world.calls(f"0-{rollout}")
        assert each["request"]["messages"][0]["content"] == f"task {rollout}"


def test_an_address_is_of_no_use_to_another_rollout_or_afterwards() -> None:
    code = """
    url = os.environ["OPENAI_BASE_URL"]
    key = url.split("/")[3]
    try:
        post(url.replace(key, "guessed") + "/chat/completions", model="m", messages=[])
    except urllib.error.HTTPError as error:
        print(error.code)
    """
    world = program(code)
    assert answer_of(world.run()) == "410"
    assert world.calls() == []


def test_without_a_model_there_are_tools_and_no_address() -> None:
    code = """
    assert "OPENAI_BASE_URL" not in os.environ
    tool("increment_counter", count=2)
    print("done")
    """
    world = program(code)
    world.harness = Command(world.harness.config, has_model=False)  # type: ignore[attr-defined]
    assert world.run()["reward"] == 1.0


def test_the_client_libraries_of_both_providers_find_their_model_streaming_too() -> None:
    code = """
    import anthropic, openai
    first = openai.OpenAI().responses.create(model="m", input="hello").output_text
    with anthropic.Anthropic().messages.stream(
        model="m", max_tokens=99, messages=[{"role": "user", "content": "hello"}]
    ) as stream:
        second = stream.get_final_text()
    print(first + " " + second)
    """
    world = program(code, script=("one", "two"))
    world.token_ids = True
    result = world.run()
    assert answer_of(result) == "one two"
    assert [each["dialect"] for each in world.calls()] == ["responses", "messages"]
    totals = [each["response"]["usage"] for each in world.calls()]
    assert result["response"]["usage"]["output_tokens"] == sum(each["output_tokens"] for each in totals)


def test_the_mcp_client_finds_the_tools_of_the_task() -> None:
    code = """
    import asyncio
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client
    async def main():
        url = json.load(open(sys.argv[1]))["mcpServers"]["environment"]["url"]
        async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            done = await session.call_tool("increment_counter", {"count": 2})
            broken = await session.call_tool("explode", {})
            return names, done.content[0].text, broken.content[0].text
    print(asyncio.run(main()))
    """
    result = program(code, "{mcp_config}").run()
    told = answer_of(result)
    assert result["reward"] == 1.0
    assert "'get_counter_value'" in told
    assert "boom" in told
    assert [each["error"] for each in result["gymkit"]["calls"]] == [None, "failed"]


def test_a_brain_that_was_asked_for_a_tool_by_the_model_goes_on_with_its_output() -> None:
    code = """
    reply = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", model="m", max_tokens=9,
                 messages=[{"role": "user", "content": sys.stdin.read()}])
    for block in reply["content"]:
        if block["type"] == "tool_use":
            print(tool(block["name"], **block["input"]))
    """
    world = program(code, script=([call("increment_counter", "a", count=2)],))
    result = world.run()
    assert result["reward"] == 1.0
    assert answer_of(result) == '{"success":true}'
