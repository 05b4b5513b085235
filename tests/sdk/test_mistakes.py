"""What a newcomer gets wrong in a cell: each is one sentence that says what to write instead, and nothing is begun."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.errors import ConfigError, GymkitError, InputError, StoreError
from gymkit.testing.model import Fault

TASK = [{"prompt": "Say it.", "word": "it"}]


def env(verify: Callable[..., Any] = lambda state, task, response: 1.0) -> gk.Env:
    made = gk.Env.define("mine", tasks=TASK)
    made.verify(verify)
    return made


def silent(params: Any) -> str:
    return "it"


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: gk.Env(None), "a name, a URL, a path or a resources server is needed, not None"),  # type: ignore[arg-type]
    (lambda: gk.Env("countr"), "did you mean 'counter'"),
    (lambda: gk.Env("localhost:8000"), "localhost:8000 is no environment's name; a server's URL begins with http://"),
    (lambda: gk.Env("nope.yaml"), "nope.yaml does not exist"),
    (
        lambda: gk.RemoteAgent("localhost:9000"),
        "agent_base_url must start with http:// or https://, as in http://localhost:9000",
    ),
    (lambda: gk.RemoteAgent("http://h:1/v1/responses"), "the base URL is http://h:1: /v1/responses is added"),
    (lambda: gk.RemoteAgent("http://h:1", concurrency=0), "concurrency must be greater than 0"),
    (lambda: gk.Model("h:1/v1", "m"), "base_url must start with http:// or https://, as in http://h:1/v1"),
    (lambda: env().session(7), "there is no task 7"),
    (lambda: env().session("a"), "there is no task 'a'"),  # type: ignore[arg-type]
    (lambda: env().rollouts("http://h:1"), r"gk\.RemoteAgent\(url\)"),  # type: ignore[arg-type]
    (lambda: env().rollouts(silent), r"gk\.Agent\(function\)"),  # type: ignore[arg-type]
    (lambda: env().rollouts(gk.Model.scripted(["it"])), r"gk\.SimpleAgent\(model\)"),  # type: ignore[arg-type]
    (lambda: env().rollouts(gk.SimpleAgent), "an agent is needed"),  # type: ignore[arg-type]
    (lambda: env().rollouts(gk.Agent(silent), repeat=3), "no option 'repeat'; did you mean 'repeats'"),
    (lambda: env().rollouts(gk.Agent(silent), again=3, agian=4), "no option 'agian'; there are"),
    *(
        (
            lambda name=name, value=value: env().rollouts(gk.Agent(silent), **{name: value}),
            f"{name} must be a whole number",
        )
        for name in ("repeats", "limit", "concurrency")
        for value in (0, -1, 2.5, "3", True)
    ),
]


@pytest.mark.parametrize(("mistake", "said"), MISTAKES, ids=lambda each: each if isinstance(each, str) else "")
def test_it_is_told_in_a_sentence(
    mistake: Callable[[], Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, InputError), match=said):
        mistake()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "make", [lambda path: gk.Env("http://h:1", tasks=path).rows, lambda path: gk.Env.define("mine", tasks=path)]
)
def test_a_task_file_with_broken_lines_names_each(make: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt":\n\n[1]\n')
    with pytest.raises(InputError) as caught:
        make(path)
    first, second = caught.value.problems
    assert first.startswith(f"{path}:2: ") and second.startswith(f"{path}:4: ")


def test_a_rollout_that_is_not_there_is_no_empty_conversation(tmp_path: Path) -> None:
    run = env().rollouts(gk.Agent(silent), output=tmp_path / "r.jsonl", progress=False)
    assert "Say it." in str(run.conversation(0))
    for task, rollout in ((1, 0), (0, 1), (-1, 0)):
        with pytest.raises(StoreError, match=f"no rollout {rollout} of task {task} in"):
            run.conversation(task, rollout)
    with pytest.raises(ConfigError, match=r"gk\.Rollouts\.read"):
        run.compare("other.jsonl")  # type: ignore[arg-type]


def test_lines_that_were_not_read_are_told_beside_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run = env().rollouts(gk.Agent(silent), output=path, progress=False)
    assert "not read" not in repr(run)
    path.write_bytes(path.read_bytes()[:-40])
    torn = gk.Rollouts.read(path)
    assert repr(torn).endswith("; 1 line not read as written: .problems>")
    assert "1 line not read" in gk.Rollouts.read(path)._repr_html_()


def boom(*_: Any) -> Any:
    raise KeyError("word")


def model_failure(model: gk.Model, folder: Path) -> str:
    run = env().rollouts(gk.SimpleAgent(model), output=folder / "r.jsonl", progress=False)
    return str(run.failures["message"][0])


def test_a_wrong_key_is_one_sentence_on_the_row(tmp_path: Path) -> None:
    refusal = Fault(401, b"Incorrect API key provided")
    with gk.Model.scripted(lambda params: refusal).serve() as served:
        message = model_failure(gk.Model(f"{served.url}/v1", "m", api_key="sk-wrong-key"), tmp_path)
    assert "Incorrect API key provided" in message
    assert not any(each in message for each in ("{", "app://", "sk-wrong-key"))


def test_a_model_that_is_not_there_is_one_sentence_on_the_row(tmp_path: Path) -> None:
    message = model_failure(gk.Model("http://127.0.0.1:9/v1", "m", attempts=1), tmp_path)
    assert "at http://127.0.0.1:9/v1/chat/completions cannot be reached" in message
    assert "{" not in message and "app://" not in message


def test_a_seed_that_raises_is_a_sentence_with_its_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = env()
    made.seed(boom)  # type: ignore[attr-defined]
    run = made.rollouts(gk.Agent(silent), repeats=3, output=tmp_path / "r.jsonl", progress=False)
    assert set(run.failures["message"]) == {"seeding failed: mine_resources_server: KeyError: 'word' (line 2 of boom)"}
    assert caplog.text.count("Traceback") == 1


def test_help_and_completions_show_the_options_of_a_run() -> None:
    for verb in (gk.Env.rollouts, gk.Env.arollouts):
        names = list(inspect.signature(verb).parameters)
        assert names[:2] == ["self", "agent"]
        assert {"output", "repeats", "limit", "resume", "concurrency", "progress"} < set(names)
        assert "again" not in names and "options" not in names


def test_all_of_them_are_errors_of_ours() -> None:
    assert issubclass(ConfigError, GymkitError) and issubclass(InputError, GymkitError)


FULL = """
import resource, sys
import gymkit as gk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
tasks = [{"prompt": "Say it.", "word": "it"}] * 20
env = gk.Env.define("mine", tasks=tasks)
env.verify(lambda state, task, response: 1.0)
try:
    env.rollouts(gk.Agent(lambda params: "it"), output=sys.argv[1], progress=False, capture=False)
except gk.GymkitError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("room", "said"), [(500, "cannot be written: "), (9000, "cannot take another row: ")])
def test_a_disk_that_fills_up_ends_the_run_with_a_sentence_and_the_rows_stay(
    room: int, said: str, tmp_path: Path
) -> None:
    """A full disk is, here, a bound on the size of a file: first that of the plan, then that of the rows."""
    path = tmp_path / "r.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL, str(path), str(room)], capture_output=True, text=True)
    assert done.stdout.startswith(f"StoreError {path.with_suffix('')}"), done
    assert said in done.stdout
    if room > 500:
        assert 0 < len(gk.Rollouts.read(path).rewards.query("status == 'scored'")) < 20
