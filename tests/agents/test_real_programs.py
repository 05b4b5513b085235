"""Real command-line agents on a scripted model, where they are installed: nothing but loopback is reached.

With ``npm i @anthropic-ai/claude-code @openai/codex opencode-ai`` and ``pip install mini-swe-agent`` on the PATH.
Each runs a command in a shell of its own, then the environment's tools over MCP where it speaks that, then answers.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gymkit as gk
from gymkit.testing.agent import call
from gymkit.wire import codec

NOWHERE = "http://127.0.0.1:9"
OFFLINE = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE}
ECHO = "echo from-the-shell $((40+2))"
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo done"

PROVIDER = {"baseURL": "{env:OPENAI_BASE_URL}", "apiKey": "gymkit"}
OPENCODE = {
    "model": "gymkit/policy_model",
    "provider": {
        "gymkit": {"npm": "@ai-sdk/openai-compatible", "options": PROVIDER, "models": {"policy_model": {"name": "it"}}}
    },
    "mcp": {"environment": {"type": "remote", "url": "{env:GYMKIT_MCP_URL}", "enabled": True}},
    "autoupdate": False,
    "share": "disabled",
}


class Real(NamedTuple):
    """A program."""

    argv: list[str]
    """How it is run."""
    dialect: str
    """Which dialect it speaks."""
    shell: str
    """Its own tool for commands."""
    argument: str
    """What that takes the command as."""
    mcp: bool = True
    """Whether it takes the environment's tools."""
    fields: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    """What else it is made with."""


CLAUDE_TOOLS = "Bash,mcp__environment__increment_counter,mcp__environment__get_counter_value"
CODEX = {"name": "gymkit", "base_url": "{base_url}", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
CODEX_PROVIDER = ",".join(f'{name}="{value}"' for name, value in CODEX.items())

PROGRAMS = {
    "claude": Real(
        [
            *("claude", "-p", "{prompt}", "--output-format", "json"),
            *("--mcp-config", "{mcp_config}", "--allowedTools", CLAUDE_TOOLS),
        ],
        "messages",
        "Bash",
        "command",
        fields={
            "answer": "result",
            "skills_dir": ".claude/skills",
            "env": {**OFFLINE, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        },
    ),
    "codex": Real(
        [
            *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", 'model_provider="gymkit"', "-c", f"model_providers.gymkit={{{CODEX_PROVIDER}}}"),
            *("-c", 'model="{model}"', "-c", 'mcp_servers.environment.url="{mcp_url}"', "-"),
        ],
        "responses",
        "exec_command",
        "cmd",
        fields={"env": OFFLINE},
    ),
    "opencode": Real(
        ["opencode", "run", "{prompt}"],
        "chat",
        "bash",
        "command",
        fields={
            "files": {"opencode.json": codec.dumps(OPENCODE).decode()},
            "env": {**OFFLINE, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        },
    ),
    "mini": Real(
        [
            *("mini", "-t", "{prompt}", "-y", "--exit-immediately", "-m", "openai/{model}"),
            *("-c", "mini.yaml", "-c", "model.model_kwargs.api_base={base_url}"),
        ],
        "chat",
        "bash",
        "command",
        mcp=False,
        fields={
            "env": {
                **OFFLINE,
                "MSWEA_CONFIGURED": "true",
                "MSWEA_COST_TRACKING": "ignore_errors",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            }
        },
    ),
}


def scripted(real: Real) -> gk.Model:
    """Says what a model would: a command for the shell, then what the task wants, then an answer."""

    def script(params: dict[str, Any]) -> Any:
        tools = [tool.get("name") or "" for tool in params.get("tools") or ()]
        done = sum(item.get("type") == "function_call_output" for item in params["input"])
        if real.shell not in tools:
            return "A title"
        counter = next((name for name in tools if name.endswith("increment_counter")), None)
        told = {"description": "say something"} if real.shell in ("Bash", "bash") and real.mcp else {}
        if done == 0:
            return [call(real.shell, "own", **{real.argument: ECHO}, **told)]
        if counter and done < 3:
            return [call(counter, f"add{done}", count=done)]
        return "I counted." if real.mcp else [call(real.shell, "end", **{real.argument: END})]

    return gk.Model.scripted(script, token_ids=True)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_it_works_on_a_recorded_model_and_can_be_trained_on(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on the PATH")
    real = PROGRAMS[name]
    agent = gk.Agent.command(real.argv, scripted(real), run_timeout_secs=120, **real.fields)
    rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", limit=1, progress=False)
    assert rollouts.failures.empty, rollouts.failures["message"].tolist()
    if real.mcp:
        assert rollouts.rewards["reward"].tolist() == [1.0]
    assert set(rollouts.model_calls["dialect"]) == {real.dialect}
    assert set(rollouts.model_calls["status_code"]) == {200}
    calls = rollouts.tool_calls
    assert calls["name"][0] == real.shell
    assert "from-the-shell 42" in calls["output"][0]
    assert calls["executed"].dropna().tolist() == ([False, True, True] if real.mcp else [False])
    training = rollouts.to_training()
    assert training.refused.empty
    written = sum(int(mask.sum()) for mask in training.frame["completion_mask"])
    assert written == rollouts.model_calls["output_tokens"].sum()
    assert rollouts.record(0)["_ng_token_capture"]["rebuilt"] is True


@pytest.mark.skipif(shutil.which("claude") is None, reason="claude is not on the PATH")
def test_claude_code_finds_the_skills_of_the_run(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "carrying"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: carrying\ndescription: How to carry the one.\n---\nCarry it.\n")
    real = PROGRAMS["claude"]
    agent = gk.Agent.command(real.argv, gk.Model.scripted(["done"]), run_timeout_secs=120, **real.fields)
    rollouts = gk.Env("counter").rollouts(
        agent, output=tmp_path / "r.jsonl", skills=tmp_path / "skills", limit=1, progress=False
    )
    [asked] = rollouts.record(0)["ng_trajectory"]["model_calls"]
    assert "How to carry the one." in str(asked["request"])
