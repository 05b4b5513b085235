"""Skills as a variable of a run: stamped on its rows, part of what it is, and refused where nobody would read them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

import gymkit as gk
from gymkit.agents.function import FunctionAgent, FunctionAgentConfig
from gymkit.errors import ConfigError, InputError, ResumeMismatch
from gymkit.servers.agent import AgentServer
from gymkit.servers.capture import Capture
from gymkit.servers.route import Route
from gymkit.wire import codec
from tests.cli.conftest import Gymkit, seed_yaml
from tests.cli.conftest import gymkit as gymkit
from tests.cli.conftest import service as service


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "counting"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: counting\n---\nOne, two.\n")
    return folder.parent


class Reader(FunctionAgent):
    """An agent server whose agent reads files."""

    reads_skills = True
    rows: ClassVar[list[dict[str, Any]]] = []

    async def run(self, row: dict[str, Any]) -> dict[str, Any]:
        self.rows.append(row)
        return await super().run(row)


class ReadingAgent:
    """The agent of a notebook for it."""

    name = "reader"
    concurrency = 4
    run_timeout = 60.0

    def settings(self) -> dict[str, Any]:
        return {"type": "reader"}

    def server(self, resources: Route, capture: Capture | None = None) -> AgentServer[Any]:
        return Reader(self.name, FunctionAgentConfig(), lambda params: "done", resources, capture=capture)


def test_every_row_says_which_skills_its_agent_had(skills: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    Reader.rows.clear()
    rollouts = gk.Env("counter").rollouts(ReadingAgent(), output=output, skills=skills, progress=False)
    planned = [codec.loads(line) for line in (tmp_path / "r_materialized_inputs.jsonl").read_bytes().splitlines()]
    results = [codec.loads(line) for line in output.read_bytes().splitlines()]
    stamps = [row["skills_ref"] for row in [*planned, *Reader.rows, *results]]
    assert len(stamps) == 15
    assert all(stamp == stamps[0] for stamp in stamps)
    assert (stamps[0]["path"], stamps[0]["skills"][0]["name"]) == (str(skills), "counting")
    assert rollouts.config["skills"] == stamps[0]["hash"]


def test_a_resume_with_other_skills_or_without_is_another_run(skills: Path, tmp_path: Path) -> None:
    def run(folder: Path | None, **options: Any) -> gk.Rollouts:
        return gk.Env("counter").rollouts(
            ReadingAgent(), output=tmp_path / "r.jsonl", skills=folder, progress=False, **options
        )

    run(skills)
    assert len(run(skills, resume=True)) == 5
    with pytest.raises(ResumeMismatch, match=r"skills: .* on disk, unset asked for"):
        run(None, resume=True)
    (skills / "counting" / "SKILL.md").write_text("---\nname: counting\n---\nOne, two, three.\n")
    with pytest.raises(ResumeMismatch, match="skills: "):
        run(skills, resume=True)


@pytest.mark.parametrize(
    ("agent", "kind"),
    [
        (gk.RemoteAgent("http://127.0.0.1:9"), "remote_agent cannot be given skills: a remote_agent"),
        (gk.SimpleAgent(gk.Model.scripted(["x"])), "simple_agent cannot be given skills: a simple_agent"),
    ],
)
def test_an_agent_that_reads_no_files_is_refused_before_anything_starts(
    agent: Any, kind: str, skills: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"{kind} has no place for files, so it would run without them"):
        gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", skills=skills)
    assert not (tmp_path / "r.jsonl").exists()


LISTS = """
import json, os
print(json.dumps({name: sorted(files) for name, _, files in os.walk(".") if files}))
"""


def test_a_program_finds_them_in_its_working_folder_and_nowhere_after(skills: Path, tmp_path: Path) -> None:
    agent = gk.Agent.command([sys.executable, "-c", LISTS], skills_dir=".claude/skills")
    rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", skills=skills, limit=2, progress=False)
    texts = [codec.loads(rollouts.record(number)["response"]["output"][0]["content"][0]["text"]) for number in (0, 1)]
    assert texts == [{"./.claude/skills/counting": ["SKILL.md"]}] * 2
    assert rollouts.record(0)["skills_ref"]["skills"][0]["name"] == "counting"
    plain = gk.Env("counter").rollouts(agent, output=tmp_path / "p.jsonl", limit=1, progress=False)
    assert plain.record(0)["response"]["output"][0]["content"][0]["text"] == "{}"


def test_skills_that_changed_under_a_run_fail_its_rollouts(skills: Path, tmp_path: Path) -> None:
    file = skills / "counting" / "SKILL.md"
    change = f"open({str(file)!r}, 'a').write('Three.')"
    agent = gk.Agent.command([sys.executable, "-c", change], name="writer", concurrency=1)
    rollouts = gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", skills=skills, limit=2, progress=False)
    assert rollouts.rewards["status"].tolist() == ["scored", "failed"]
    assert "have changed since the run was planned" in rollouts.failures["message"][0]


def test_a_frameworks_agent_is_told_where_they_are(skills: Path, tmp_path: Path) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed")
    seen: list[str] = []

    def build(kit: Any) -> Any:
        from agents import Agent

        seen.extend(path.name for path in kit.skills.iterdir())
        return Agent(name="reader", model=kit.model, tools=kit.tools)

    agent = gk.Agent.adapt("openai-agents", build, gk.Model.scripted(["done"]))
    gk.Env("counter").rollouts(agent, output=tmp_path / "r.jsonl", skills=skills, limit=1, progress=False)
    assert seen == ["counting"]


@pytest.mark.parametrize("place", ["/skills", "../skills", ""])
def test_their_place_is_inside_the_working_folder(place: str) -> None:
    with pytest.raises(ConfigError, match=r"skills_dir.*must be a folder inside the working folder"):
        gk.Agent.command([sys.executable], skills_dir=place)


def test_rows_in_materialized_form_take_none(skills: Path, tmp_path: Path) -> None:
    row = {"task_id": {"taskset": "a", "task_id": "0"}, "task_input": gk.Env("counter").rows[0]}
    env = gk.Env("counter", tasks=[row])
    with pytest.raises(InputError, match="skills: a row in materialized form takes none"):
        env.rollouts(ReadingAgent(), output=tmp_path / "r.jsonl", skills=skills, progress=False)


def test_from_a_shell_the_same_is_refused(gymkit: Gymkit, service: str, skills: Path, tmp_path: Path) -> None:
    (tmp_path / "counter_remote.yaml").write_text(seed_yaml(service))
    ended = gymkit(
        *("eval", "run", "--config", "counter_remote.yaml", "--input", "data/counter.jsonl", "--output", "r.jsonl"),
        f"+skills.path={skills}",
    )
    assert ended.status == 1
    assert "remote_agent cannot be given skills" in ended.err
    assert not (tmp_path / "r.jsonl").exists()
