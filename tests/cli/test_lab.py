"""``gymkit lab``: copies that respect what a person changed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from gymkit.cli.lab import copy, lab
from gymkit.errors import ConfigError, MissingExtra
from tests.cli.conftest import COMMAND, environment


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """What we ship."""
    for name in (
        "tutorials/01.ipynb",
        "tutorials/img/a.png",
        "notebooks/work.ipynb",
        "tutorials/.hidden/x",
        "tutorials/results/r.jsonl",
        "other/no",
    ):
        path = tmp_path / "top" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"first {name}")
    return tmp_path / "top"


def test_copies_everything_once(top: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    assert len(list(copy(top, folder))) == 3
    assert (folder / "tutorials/img/a.png").read_text() == "first tutorials/img/a.png"
    assert not (folder / "other").exists()
    assert sorted(path.name for path in (folder / "tutorials").iterdir()) == ["01.ipynb", "img"]
    assert list(copy(top, folder)) == []


def test_a_new_version_replaces_what_nobody_changed(top: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    list(copy(top, folder))
    (top / "tutorials/01.ipynb").write_text("second")
    assert list(copy(top, folder)) == [f"updated {folder / 'tutorials/01.ipynb'}"]
    assert (folder / "tutorials/01.ipynb").read_text() == "second"


def test_a_changed_notebook_is_kept(top: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    list(copy(top, folder))
    mine = folder / "notebooks/work.ipynb"
    mine.write_text("mine")
    (top / "notebooks/work.ipynb").write_text("second")
    assert list(copy(top, folder)) == [f"kept {mine}: it is yours"]
    assert mine.read_text() == "mine"


def test_a_file_that_was_there_before_is_kept(top: Path, tmp_path: Path) -> None:
    mine = tmp_path / "lab/tutorials/01.ipynb"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert f"kept {mine}: it is yours" in list(copy(top, tmp_path / "lab"))


def test_a_folder_that_cannot_be_written(top: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").write_text("a file")
    with pytest.raises(ConfigError, match="cannot hold the notebooks"):
        list(copy(top, tmp_path / "lab"))


def test_without_jupyterlab_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab", None)
    with pytest.raises(
        MissingExtra, match=r"gymkit lab needs the package 'jupyterlab': pip install 'gymkit\[notebook\]'"
    ):
        lab(tmp_path / "lab", [])
    assert not (tmp_path / "lab").exists()


def test_opens_jupyterlab_on_the_copies(tmp_path: Path) -> None:
    """The real JupyterLab, asked for its version so that it ends by itself: the further option is its own."""
    done = subprocess.run(
        [*COMMAND, "lab", "--version"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == version("jupyterlab")
    assert list((tmp_path / "gymkit-lab/tutorials").glob("*.ipynb"))


def test_sigterm_ends_jupyterlab_too(tmp_path: Path) -> None:
    """As a container's stop does; Ctrl-C is JupyterLab's own business."""
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    with subprocess.Popen(
        [*COMMAND, "lab", *options], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as running:
        assert running.stderr is not None
        assert any(b"is running at" in line for line in running.stderr)
        running.terminate()
        running.stderr.read()  # which ends when JupyterLab, that writes there too, has ended
        assert running.wait(timeout=30) is not None
