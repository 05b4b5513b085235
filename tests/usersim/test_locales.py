"""Tasks in every locale that the package ships: what it can play is prepared, and what it cannot is told."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("usersim")

import gymkit as gk
from gymkit.cli.app import app
from gymkit.errors import ConfigError, InputError
from gymkit.testing import usersim as scripted
from gymkit.usersim.locales import left_out
from gymkit.usersim.people import LANDS
from gymkit.usersim.rows import known_probes
from tests.usersim.house import House

FINANCE = "financial_services"
BANKED = ("en_US", "en_GB", "en_IN", "de_DE", "fr_FR")
"""Locales with banks of their own for finance; each takes seconds to read, so two of them stand for all."""

OTHERS = tuple(sorted(LANDS.keys() - set(BANKED)))
SCRIPTS = {"hi_Deva_IN": "\u0900-\u097f", "ja_JP": "\u3040-\u30ff\u4e00-\u9fff", "ko_KR": "\uac00-\ud7af"}


def test_every_locale_that_the_package_manages_has_people() -> None:
    from data_designer.config.utils.constants import LOCALES_WITH_MANAGED_DATASETS

    assert set(LOCALES_WITH_MANAGED_DATASETS) == LANDS.keys()


@pytest.mark.parametrize("locale", OTHERS)
def test_the_default_is_every_probe_that_the_locale_can_play_and_what_is_left_out_is_told(locale: str) -> None:
    with pytest.warns(UserWarning, match=f"{FINANCE} is left out: User Sim has no bank of tasks for it in {locale}"):
        frame = gk.usersim.prepare(locale=locale, assistant=scripted.MODEL_NAME)
    assert list(frame["probe_type"]) == [name for name in known_probes() if name != FINANCE]
    assert set(frame["locale"]) == {locale}
    assert list(frame.attrs["left_out"]) == [FINANCE]
    assert "site-packages" not in frame.attrs["left_out"][FINANCE]


@pytest.mark.parametrize("locale", ["en_US", "de_DE"])
def test_a_locale_with_all_banks_leaves_nothing_out(locale: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = gk.usersim.prepare(locale=locale, assistant=scripted.MODEL_NAME)
    assert list(frame["probe_type"]) == list(known_probes())
    assert frame.attrs["left_out"] == {}


@pytest.mark.parametrize("locale", BANKED)
def test_the_other_probes_are_there_with_many_rows_each(locale: str) -> None:
    probes = [name for name in known_probes() if name != FINANCE]
    frame = gk.usersim.prepare(probes, locale=locale, rows=39, assistant=scripted.MODEL_NAME)
    assert frame["probe_type"].value_counts().to_dict() == dict.fromkeys(probes, 3)
    assert frame["task_id"].is_unique


def test_a_probe_that_is_named_and_cannot_be_played_is_an_error() -> None:
    with pytest.raises(InputError, match=f"{FINANCE} cannot be played: User Sim has no bank of tasks for it in ja_JP"):
        gk.usersim.prepare(["sov_ai_facts", FINANCE], locale="ja_JP")
    with pytest.raises(ConfigError, match="ja_JP"):
        gk.usersim.prepare(FINANCE, locale="ja_JO")


def test_rows_are_shared_among_the_probes_that_are_left() -> None:
    with pytest.warns(UserWarning, match=FINANCE):
        frame = gk.usersim.prepare("all", locale="ko_KR", rows=26, assistant=scripted.MODEL_NAME)
    assert set(frame["probe_type"].value_counts()) == {2}


def test_languages_of_india_without_banks_of_their_own_go_by_the_english_ones() -> None:
    assert left_out("mr_Deva_IN", ["sov_ai_facts", "sov_ai_dynamic"]) == {}


def test_the_command_says_it_too(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    options = ["--locale", "ja_JP", "--assistant", scripted.MODEL_NAME]
    told = CliRunner().invoke(app, ["usersim", "prepare", "-o", str(file), *options])
    assert told.exit_code == 0, told.output
    assert "13 rows for 13 probes" in told.output
    assert f"left out: {FINANCE}: User Sim has no bank of tasks for it in ja_JP" in told.output
    assert len(file.read_bytes().splitlines()) == 13


@pytest.mark.parametrize("locale", sorted(SCRIPTS))
@pytest.mark.parametrize("probe", ["general_open_ended", "sov_ai_dynamic", "tool_calling"])
def test_episodes_in_other_scripts_are_played_to_a_verified_row(locale: str, probe: str) -> None:
    (row,) = gk.usersim.prepare(probe, locale=locale, max_turns=2).to_dict("records")
    result = House().result({"task_id": row["task_id"], "resolved_row": row["resolved_row"]})
    assert (result["mask_sample"], result["failure_kind"], result["reward"]) == (False, None, 1.0)
    assert result["verification"]["verifier_data"]["user_audit"]["checks"]["language"] == "kept"
    said = [each for each in result["usersim_result"]["conversation_messages"] if each["role"] == "user"]
    assert len(said) == 2
    assert all(re.search(f"[{SCRIPTS[locale]}]", each["content"]) for each in said)


def test_a_user_in_the_wrong_script_is_not_the_assistants_fault() -> None:
    (row,) = gk.usersim.prepare("general_open_ended", locale="ja_JP").to_dict("records")
    house = House(user=lambda _: "Hello, could you please help me with something today?")
    result = house.result({"task_id": row["task_id"], "resolved_row": row["resolved_row"]})
    assert result["mask_sample"] is True
    assert result["failure_kind"].startswith("usersim:user")
