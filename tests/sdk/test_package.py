"""A saved environment is the same environment: opened in a notebook, from its YAML, from a shell, and edited."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

import gymkit as gk
from gymkit.errors import ConfigError, ResumeMismatch
from gymkit.resources.defined import Defined
from gymkit.servers.hosting import serve
from gymkit.testing.agent import ScriptedAgent, answer, call, outputs
from tests.cli.conftest import COMMAND, environment
from tests.kernels import start_kernel

TASKS = [{"prompt": "Unscramble: netsil", "word": "listen", "odd": "\ud83d \u2028"}, {"prompt": "dgo", "word": "dog"}]
VOWELS = "aeiou"
BOARD: list[str] = []


class Board:
    """The letters of a rollout."""

    def __init__(self, word: str) -> None:
        self.letters = sorted(word)


def said(response: dict[str, Any]) -> str:
    messages = [item for item in response["output"] if item["type"] == "message"]
    return str(messages[-1]["content"][0]["text"]) if messages else ""


anagram = gk.Env.define("anagram", tasks=TASKS)


@anagram.seed
def start(task: Any) -> Board:
    return Board(task.word)


@anagram.tool
def vowels(state: Board, letters: str, most: int = 9) -> list[str]:
    """Find vowels.

    Args:
        letters: Where.
        most: How many.
    """
    return [letter for letter in letters if letter in VOWELS][:most]


@anagram.tool
async def letters(state: Board) -> list[str]:
    """Tell the letters."""
    return state.letters


@anagram.verify
def check(state: Board, task: Any, response: dict[str, Any]) -> dict[str, Any]:
    return {"reward": said(response) == task["word"], "vowels": len(vowels(state, said(response)))}


def schemas(env: gk.Env) -> list[Any]:
    return [tool for row in env.rows for tool in row["responses_create_params"]["tools"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return anagram.save(tmp_path_factory.mktemp("packages") / "deep" / "anagram")


def play(env: gk.Env) -> list[Any]:
    session = env.session(0)
    return [session.call("vowels", letters="listen", most=1), session.call("letters"), session.verify("listen")]


def test_it_is_opened_by_its_folder_and_by_its_file(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"README.md", "anagram.yaml", "environment.py", "tasks.jsonl"}
    for where in (folder, f"{folder}/", folder / "anagram.yaml", str(folder / "anagram.yaml")):
        env = gk.Env(where)
        assert (env.name, env.rows) == ("anagram", anagram.rows)
        assert (
            play(env) == play(anagram) == [["i"], sorted("listen"), {"reward": 1.0, "mask_sample": False, "vowels": 2}]
        )
    assert gk.Env.from_config(folder / "anagram.yaml").rows == anagram.rows
    assert gk.Env(folder, tasks=anagram.rows[:1]).rows == anagram.rows[:1]


def test_its_module_is_what_somebody_would_have_written(folder: Path) -> None:
    text = (folder / "environment.py").read_text()
    assert text.startswith('"""The environment anagram, saved by gymkit')
    assert "\nVOWELS = 'aeiou'\n" in text
    assert '\nanagram = gk.Env.define("anagram", tasks=Path(__file__).with_name("tasks.jsonl"))\n' in text
    assert (
        text.index("class Board")
        < text.index("@anagram.seed")
        < text.index("@anagram.tool")
        < text.index("@anagram.verify")
    )
    assert text.count("def vowels") == 1, "a tool that the verifier calls is there once"
    assert text.count("@") == 4


def test_its_tasks_are_whole_rows_for_any_collector(folder: Path) -> None:
    lines = (folder / "tasks.jsonl").read_bytes().split(b"\n")
    assert len(lines) == 3
    assert b'"tools":[{"type":"function","name":"vowels"' in lines[0]
    assert gk.Env("counter", tasks=folder / "tasks.jsonl").rows == anagram.rows


def test_its_readme_says_how_and_its_yaml_is_nemo_gyms_shape(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert "2 tasks" in readme
    assert "| `vowels(letters, most)` | Find vowels. |" in readme
    assert "It needs gymkit and nothing else." in readme
    block = yaml.safe_load((folder / "anagram.yaml").read_text())
    assert block == {
        "anagram_resources_server": {
            "resources_servers": {"anagram": {"entrypoint": "environment.py", "domain": "other"}}
        }
    }


def test_it_can_be_edited_and_checked(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "anagram"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    module = copy / "environment.py"
    module.write_text(module.read_text().replace("VOWELS = 'aeiou'", "VOWELS = 'i'"))
    env = gk.Env(copy)
    assert env.session(0).call("vowels", letters="listen") == ["i"]
    report = env.check(solution="word")
    assert report.ok
    assert not [each for each in report.findings if each.result in ("fail", "warn")]


def test_saving_again_replaces_an_earlier_save_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    env = gk.Env.define("mine", tasks=TASKS)
    env.tool(vowels)
    env.verify(check)
    env.save(folder)
    before = gk.Env(folder)
    again = gk.Env.define("mine", tasks=TASKS[:1])
    again.tool(letters)
    again.tool(vowels)
    again.verify(check)
    assert again.save(str(folder)) == folder
    assert gk.Env(folder).rows == again.rows
    assert before.session(0).call("vowels", letters="a") == ["a"], "what was opened before stays what it was"
    other = tmp_path / "other"
    other.mkdir()
    (other / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="holds other things than a saved environment"):
        again.save(other)
    assert [path.name for path in other.iterdir()] == ["README.md"]
    with pytest.raises(ConfigError, match="is a file"):
        again.save(other / "README.md")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    env = gk.Env.define("mine", tasks=TASKS)
    with pytest.raises(ConfigError, match="mine cannot be saved yet: it has no verifier"):
        env.save(tmp_path / "mine")

    @env.verify
    def verdict(state: Any, task: Any, response: Any) -> float:
        return float(len(TASKS))

    with pytest.raises(ConfigError, match="verdict reads TASKS, a list that only this notebook has"):
        env.save(tmp_path / "mine")

    assert list(tmp_path.iterdir()) == []


def test_a_function_called_like_the_environment_keeps_its_name(tmp_path: Path) -> None:
    env = gk.Env.define("check", tasks=TASKS)
    env.verify(check)
    env.save(tmp_path / "check")
    assert "check_env = gk.Env.define" in (tmp_path / "check" / "environment.py").read_text()
    assert gk.Env(tmp_path / "check").session(0).verify("x")["reward"] == 0.0


@pytest.mark.parametrize("name", ["null", "yes", "my-env", "e1"])
def test_odd_names_survive_yaml(name: str, tmp_path: Path) -> None:
    env = gk.Env.define(name, tasks=TASKS)
    env.verify(check)
    assert gk.Env(env.save(tmp_path / "it")).name == name


def test_mcp_is_remembered(tmp_path: Path) -> None:
    env = gk.Env.define("mine", tasks=TASKS, expose_tools_over_mcp=True)
    env.tool(vowels)
    env.verify(check)
    opened = gk.Env(env.save(tmp_path / "mine"))
    assert isinstance(opened._server, Defined)
    assert "POST /mcp" in opened._server.handlers()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("import gymkit", "must define one environment with gymkit.Env.define, not 0"),
        (
            "import gymkit as gk\na, b = (gk.Env.define(n, tasks=[{'prompt': 'x'}]) for n in 'ab')",
            "must define one environment .* not 2",
        ),
        ("def (", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_module_that_defines_no_environment_says_so(text: str, told: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text((folder / "anagram.yaml").read_text())
    (tmp_path / "environment.py").write_text(text)
    with pytest.raises(ConfigError, match=told):
        gk.Env(tmp_path)


def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere does not exist"):
        gk.Env("nowhere/")
    with pytest.raises(ConfigError, match=r"one configuration .*it has none"):
        gk.Env(tmp_path)
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / "b.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"it has a.yaml, b.yaml"):
        gk.Env(tmp_path)


def test_a_wrong_setting_of_it_is_named(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "anagram.yaml").open("a") as file:
        file.write("      exposed: true\n")
    with pytest.raises(ConfigError, match="anagram_resources_server: exposed: is not a field"):
        gk.Env(tmp_path / "anagram.yaml")


# Runs --------------------------------------------------------------------------------------------------------------


def brain(params: dict[str, Any]) -> Any:
    return [answer("listen")] if outputs(params) else [call("vowels", letters="listen")]


def test_a_run_begun_in_the_notebook_goes_on_in_the_package_and_not_with_another_verifier(
    folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "r.jsonl"
    with serve(ScriptedAgent(brain)) as hosted:
        agent = gk.RemoteAgent(hosted.url)
        first = anagram.rollouts(agent, output=output, progress=False)
        assert len(first.config["definition"]) == 12
        again = gk.Env(folder).rollouts(agent, output=output, resume=True, progress=False)
        assert again.outcome is not None
        assert (again.outcome.scored, len(again.rewards)) == (2, 2)

        other = gk.Env.define("anagram", tasks=TASKS)
        other.seed(start)
        other.tool(vowels)
        other.tool(letters)

        @other.verify
        def check(state: Any, task: Any, response: Any) -> float:
            return 1.0

        with pytest.raises(ResumeMismatch, match="definition: "):
            other.rollouts(agent, output=output, resume=True, progress=False)


def test_from_a_shell_it_is_served_and_run(folder: Path, tmp_path: Path) -> None:
    """Another person's folder, process and port; then a run of it with a remote agent, from YAML too."""
    command = [*COMMAND, "env", "start", "--config", str(folder / "anagram.yaml"), "+head_server.port=0"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        url = re.search(r"http://\S+", told)
        assert url is not None
        assert "resources_servers/anagram" in told
        assert "ready" in process.stdout.readline()
        assert play(gk.Env(url[0], tasks=anagram.rows)) == play(anagram)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    with serve(ScriptedAgent(brain)) as hosted:
        (tmp_path / "agent.yaml").write_text(
            "remote_agent:\n  responses_api_agents:\n    remote_agent:\n"
            f"      agent_base_url: {hosted.url}\n"
            "      resources_server: {type: resources_servers, name: anagram_resources_server}\n"
        )
        configs = ["--config", str(folder / "anagram.yaml"), "--config", "agent.yaml"]
        files = ["--input", str(folder / "tasks.jsonl"), "--output", "r.jsonl"]
        done = subprocess.run(
            [*COMMAND, "eval", "run", *configs, *files], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert "mean/reward: 0.5 (2 of 2 rollouts)" in done.stdout, done.stderr
        agent = gk.RemoteAgent(hosted.url)
        resumed = anagram.rollouts(agent, output=tmp_path / "r.jsonl", resume=True, progress=False)
    assert resumed.title == "anagram × remote_agent"
    assert resumed.rewards["reward"].tolist() == [1.0, 0.0]


CELLS = [
    """
import gymkit as gk
LIMIT = 3
class Board:
    def __init__(self, word):
        self.word = word
""",
    """
env = gk.Env.define("mine", tasks=[{"prompt": "x", "word": "listen"}])

@env.seed
def start(task):
    return Board(task.word)

@env.tool
def head(state) -> str:
    return state.word[:LIMIT]
""",
    """
@env.verify
def check(state, task, response):
    return 1.0
print(env.save("{folder}"), gk.Env("{folder}/").session(0).call("head"))
""",
    """
class Board:
    def __init__(self, word):
        self.word = word.upper()
print(env.save("{folder}"), gk.Env("{folder}/").session(0).call("head"))
""",
    "import math, random\n%config Completer.use_jedi = False\nprint(env)",
]


def test_cells_of_a_real_kernel_are_saved_classes_included(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with start_kernel(tmp_path / "ipython") as kernel:
        told = [kernel.cell(cell.replace("{folder}", str(folder))) for cell in CELLS]
    assert told == ["", "", f"{folder} lis\n", f"{folder} LIS\n", "<Env mine: 1 tasks, tools: head>\n"]


def test_a_name_that_the_module_needs_itself_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text("class Path: ...\ndef check(state, task, response):\n    return float(Path is not None)\n")
    space: dict[str, Any] = {"__name__": "mine"}
    exec(compile(source.read_text(), str(source), "exec"), space)
    sys.modules["mine"] = module = types.ModuleType("mine")
    module.__dict__.update(space)
    try:
        env = gk.Env.define("mine", tasks=TASKS)
        env.verify(space["check"])
        with pytest.raises(ConfigError, match="Path is a name that the saved module needs itself: rename yours"):
            env.save(tmp_path / "saved")
    finally:
        del sys.modules["mine"]
    assert not (tmp_path / "saved").exists()
