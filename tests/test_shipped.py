"""What comes with gymkit is found, under our paths and under NeMo Gym's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymkit.errors import ConfigError
from gymkit.shipped import PATH_ALIASES, data_file, search_roots, shipped


@pytest.mark.parametrize("theirs", PATH_ALIASES)
def test_their_paths_stand_for_our_files(theirs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_file(theirs) == shipped(PATH_ALIASES[theirs])


def test_a_file_of_the_users_own_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "resources_servers/example_session_state_mgmt/data/example.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    assert data_file(own.relative_to(tmp_path)) == own
    assert data_file(own) == own


def test_search_dirs_come_first(tmp_path: Path) -> None:
    assert search_roots([tmp_path])[0] == tmp_path.resolve()


@pytest.mark.parametrize(
    "wrong", ["data/countr.jsonl", "resources_servers/example_session_state_mgmt/data/exampel.jsonl"]
)
def test_a_wrong_path_gets_the_nearest(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"looked for .*; did you mean"):
        data_file(wrong)


def test_a_wrong_name_of_ours_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"gymkit ships no data/countr.jsonl; did you mean 'data/counter.jsonl'"):
        shipped("data/countr.jsonl")
