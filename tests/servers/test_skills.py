"""A folder of skills: what is read of it, its hash, and its copy for an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymkit.errors import ConfigError
from gymkit.servers.skills import read_skills, stage_skills

COUNT = "---\nname: counting\ndescription: How to count.\nmetadata:\n  version: 1.2\n---\nOne, two, three.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two skills."""
    root = tmp_path / "skills"
    (root / "counting" / "examples").mkdir(parents=True)
    (root / "counting" / "SKILL.md").write_text(COUNT)
    (root / "counting" / "examples" / "one.txt").write_text("1")
    (root / "adding").mkdir()
    (root / "adding" / "SKILL.md").write_text("\ufeff---\nname: adding\n---\n")
    return root


def test_names_descriptions_versions_and_the_hash_that_nemo_gym_gives(folder: Path) -> None:
    """The hash is what NeMo Gym 0.7.0 computes for these files."""
    found = read_skills(folder)
    assert [skill.model_dump() for skill in found.skills] == [
        {"name": "adding", "description": None, "version": None},
        {"name": "counting", "description": "How to count.", "version": "1.2"},
    ]
    assert (found.path, found.hash) == (str(folder), "7936e55e03e7")


def test_the_hash_changes_with_any_file_its_place_and_its_name(folder: Path) -> None:
    def now() -> str:
        return read_skills(folder).hash

    hashes = [now()]
    example = folder / "counting" / "examples" / "one.txt"
    example.write_text("2")
    hashes.append(now())
    example.rename(example.with_name("two.txt"))
    hashes.append(now())
    (folder / "counting" / "examples" / "empty").write_text("")
    hashes.append(now())
    assert len(set(hashes)) == 4
    (folder / "counting" / "examples" / "empty").unlink()
    assert now() == hashes[2]


def test_a_relative_folder_is_looked_up_and_named_as_it_was_given(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_skills("skills").path == "skills"
    monkeypatch.chdir(folder)
    assert read_skills("skills", [tmp_path]).hash == read_skills(folder).hash


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: x", "must begin with a line ---"),
        ("---\nname: x\n", "must begin with a line ---"),
        ("text\n---\nname: x\n---\n", "must begin with a line ---"),
        ("---\nname: [x\n---\n", "is not YAML"),
        ("---\ndescription: x\n---\n", "name is missing"),
        ("---\n- x\n---\n", "name is missing"),
        ("---\nname: counting\n---\n", "two skills called 'counting'"),
    ],
)
def test_a_skill_that_is_none_is_named(text: str, told: str, folder: Path) -> None:
    (folder / "adding" / "SKILL.md").write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_skills(folder)


def test_a_folder_that_is_none_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "adding" / "SKILL.md").unlink()
    with pytest.raises(ConfigError, match=r"adding is no skill: it has no SKILL.md"):
        read_skills(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no skills"):
        read_skills(tmp_path / "empty")
    with pytest.raises(ConfigError, match="is not there: looked for"):
        read_skills(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is a file"):
        read_skills(folder / "counting" / "SKILL.md")


def test_the_stamped_skills_are_copied_for_an_agent_and_only_as_they_were_stamped(folder: Path, tmp_path: Path) -> None:
    row = {"skills_ref": read_skills(folder).model_dump()}
    place = tmp_path / "home" / "skills"
    staged = stage_skills(row, place)
    assert staged is not None
    assert (place / "counting" / "SKILL.md").read_text() == COUNT
    assert (place / "counting" / "examples" / "one.txt").read_text() == "1"
    assert stage_skills({"task": 1}, tmp_path / "none") is None
    assert not (tmp_path / "none").exists()
    (folder / "counting" / "SKILL.md").write_text(COUNT.replace("three", "four"))
    with pytest.raises(ConfigError, match="have changed since the run was planned"):
        stage_skills(row, tmp_path / "again")
    with pytest.raises(ConfigError, match="is no stamp of skills"):
        stage_skills({"skills_ref": {"path": "x"}}, tmp_path / "again")
