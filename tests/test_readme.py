"""The README is true: its Python runs, its commands exist, its tree is the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gymkit.sdk.harness_configured import CommandAgentConfig
from gymkit.sdk.token_capture import TokenCapture

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
ROOMS = [
    "sdk",
    "views",
    "stats",
    "frames",
    "collect",
    "resources",
    "agents",
    "models",
    "environments",
    "usersim",
    "testing",
    "servers",
    "config",
    "wire",
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def phrase(path: Path) -> str:
    """The first sentence of a module's docstring, markup and full stop taken off."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return re.split(r"\.\s|\.$|\n\n", text.replace("\n", " "))[0].replace("``", "")


def tree() -> str:
    """The rooms of the house, from the top down, each in the words of its own docstring."""
    lines = ["gymkit/"]
    for room in ["cli", *ROOMS]:
        folder = ROOT / "gymkit" / room
        if folder.is_dir():
            lines.append(f"├── {room + '/':<15}{phrase(folder / '__init__.py')}")
    lines.append(f"└── {'errors.py':<15}{phrase(ROOT / 'gymkit' / 'errors.py')}")
    return "\n".join(lines)


@pytest.mark.parametrize("block", blocks("python"))
def test_its_python_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "rollouts.jsonl").is_file()


def test_its_tree_is_current() -> None:
    assert tree() in README, f"put this into the README:\n{tree()}"


def test_the_gate_runs_its_test_command() -> None:
    command = next(line for block in blocks("bash") for line in block.splitlines() if "[dev]" in line)
    gate = (ROOT / ".ci" / "run").read_text("utf-8")
    for part in ("pip install", "-e '.[dev]'", "-m pytest"):
        assert part in command
        assert part in gate


def test_every_command_and_option_in_it_exists() -> None:
    used = {tuple(words.split()) for words in re.findall(r"gymkit ((?:env|eval) [\w-]+|demo|lab|check|view)\b", README)}
    assert used >= {("demo",), ("lab",), ("check",), ("view",), ("env", "start"), ("eval", "run"), ("eval", "profile")}
    for words in used:
        subprocess.run([sys.executable, "-m", "gymkit", *words, "--help"], check=True, capture_output=True, timeout=60)
    command = [sys.executable, "-m", "gymkit", "eval", "run", "--help"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    sentence = README[README.index("`--agent`") : README.index("are the\nlong forms")]
    for option in re.findall(r"`(--[\w-]+)`", sentence):
        assert option in text


def test_its_yaml_is_the_seeds_shape() -> None:
    [text] = [text for text in blocks("yaml") if "remote_agent:" in text]
    config = yaml.safe_load(text)
    assert config["remote_agent"]["responses_api_agents"]["remote_agent"]["max_steps"] == 8


def test_what_else_it_shows_of_yaml_is_taken() -> None:
    others = [text for text in blocks("yaml") if "remote_agent:" not in text]
    block, program = (yaml.safe_load(text) for text in others)
    assert TokenCapture.model_validate(block["token_id_capture"]).enabled
    [settings] = program["my_program"]["responses_api_agents"].values()
    own = {key: value for key, value in settings.items() if key in CommandAgentConfig.model_fields}
    assert CommandAgentConfig.model_validate(own).argv[1] == "{entrypoint}"
    assert set(settings) - set(own) == {"entrypoint", "resources_server", "model_server"}


def test_the_notebooks_it_names_are_all_there_are() -> None:
    named = set(re.findall(r"\]\(((?:tutorials|notebooks)/[\w.]+)\)", README))
    there = {
        str(path.relative_to(ROOT)) for folder in ("tutorials", "notebooks") for path in (ROOT / folder).glob("*.ipynb")
    }
    assert named == there


def test_no_path_of_a_machine_and_no_registry_is_named() -> None:
    """A path of somebody's machine, or the host of a package registry, says something that is true only there."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    paths = [ROOT / name.decode() for name in files if name]
    hosts = [
        ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))
    ]
    places = [f"/{place}/" for place in ("work", "root", "home/user")]
    for path in paths:
        if path.is_file() and path.suffix not in (".png", ".parquet", ".gz"):
            text = path.read_text("utf-8", "replace")
            for word in (*hosts, *places):
                assert word not in text, f"{path.relative_to(ROOT)} holds {word}"


@pytest.mark.parametrize("folder", ["tutorials", "notebooks"])
def test_saved_notebooks_are_small_and_have_outputs(folder: str) -> None:
    import nbformat

    for path in (ROOT / folder).glob("*.ipynb"):
        assert path.stat().st_size < 300_000, path
        notebook = nbformat.read(path, 4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert len(notebook.cells) <= 30
        assert sum(bool(cell.outputs) for cell in code) >= len(code) / 2, path
        assert not [out for cell in code for out in cell.outputs if out.output_type == "error"], path
