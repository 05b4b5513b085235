"""Plots without a screen: what is drawn, what is told in words, and that both themes can be read."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gymkit.errors import MissingExtra
from gymkit.views import plots
from gymkit.views.figure import DARK, LIGHT, Plot, label
from tests.views.parsed import Parsed
from tests.views.runs import rewards
from tests.views.test_html import contrast

RUN = rewards(6, 4, seconds=1.5, total_tokens=pd.array(range(24), dtype="Int64"))
CURVE = pd.DataFrame(
    {
        "metric": ["mean", "pass@1", "pass@2", "pass^2", "pass@10"],
        "value": pd.array([0.5, 0.5, 0.75, 0.25, None], dtype="Float64"),
        "low": pd.array([0.4, 0.4, 0.6, None, None], dtype="Float64"),
        "high": pd.array([0.6, 0.6, 0.9, None, None], dtype="Float64"),
    }
)
FOREST = pd.DataFrame({"label": ["− old", "− <b>"], "value": [0.25, -0.5], "low": [0.1, -0.7], "high": [0.4, -0.25]})
ALL = {
    "rewards": plots.rewards(RUN),
    "tasks": plots.tasks(RUN),
    "pass_at_k": plots.pass_at_k(CURVE),
    "forest": plots.forest(FOREST, of="ours"),
    "costs": plots.costs(RUN),
}


def texts(figure: Figure) -> str:
    from matplotlib.text import Text

    return "\n".join(found.get_text() for found in figure.findobj(Text) if isinstance(found, Text))


@pytest.mark.parametrize("name", ALL)
def test_a_plot_is_a_picture_for_each_theme_with_its_facts_in_words(name: str) -> None:
    plot = ALL[name]
    bundle = plot._repr_mimebundle_()
    assert bundle["text/plain"] == f"<Plot: {plot.alt}>"
    parsed = Parsed(bundle["text/html"].replace("<img", "<br"))
    pictures = re.findall(
        r'<img src="data:image/png;base64,[\w+/=]+" class="(gk-when-\w+)" alt="([^"]+)"',
        bundle["text/html"],
    )
    assert [theme for theme, _ in pictures] == ["gk-when-light", "gk-when-dark"]
    assert all(alt and "nan" not in alt for _, alt in pictures)
    assert {("hidden", None), ("width", "0")} <= set(parsed.attributes), "without the style sheet one is shown"
    assert len(bundle["text/html"]) < 60_000, "two of them are saved with the notebook"
    assert all(
        axes.get_xlabel() and (axes.get_ylabel() or name in ("forest", "rewards")) for axes in plot.figure.axes[:1]
    )


def test_rewards_are_told_with_their_denominators() -> None:
    assert ALL["rewards"].alt.startswith("Rewards of 24 rollouts: 6 scored, mean 0.417; 6 masked; 6 failed; 6 missing.")
    shown = texts(ALL["rewards"].figure)
    assert "mean 0.417 over 6 scored" in shown
    assert "in no mean" in shown
    assert "missing" in shown
    assert len(plots.rewards(pd.DataFrame({"reward": [0.0, 1.0, 1.0]})).figure.axes) == 1


def test_bars_that_would_be_hairs_become_bins() -> None:
    close = plots.rewards(pd.DataFrame({"reward": [0.0, 0.001, 1.0]}))
    apart = plots.rewards(pd.DataFrame({"reward": [0.0, 0.5, 1.0]}))
    assert len(close.figure.axes[0].patches) == 20
    assert [patch.get_height() for patch in apart.figure.axes[0].patches] == [1, 1, 1]


def test_the_map_has_the_lowest_tasks_first_and_letters_where_there_is_no_reward() -> None:
    figure = ALL["tasks"].figure
    means = RUN.groupby("task_index")["reward"].mean().sort_values(kind="stable")
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == [f"task/{task}" for task in means.index]
    assert [found.get_text() for found in figure.axes[0].texts].count("M") == 6
    assert "M masked · F failed · – missing: no reward" in texts(figure)
    assert "Lowest means: task/0 0" in ALL["tasks"].alt
    many = plots.tasks(rewards(60, 1))
    assert "Rewards of 40 of 60 tasks" in many.alt


def test_curves_are_in_the_order_of_k_and_leave_out_what_is_not_known() -> None:
    assert ALL["pass_at_k"].alt == "pass@k and pass^k with their intervals: pass@1 0.5, pass@2 0.75, pass^2 0.25."
    [first, second] = ALL["pass_at_k"].figure.axes[0].lines
    assert (list(first.get_xdata()), list(second.get_ydata())) == ([1, 2], [0.25])  # type: ignore[arg-type]


def test_a_forest_names_each_difference_with_its_interval() -> None:
    assert ALL["forest"].alt == (
        "Mean reward of ours minus that of others, with intervals: "
        "− old +0.25 [+0.10, +0.40]; − <b> -0.50 [-0.70, -0.25]."
    )
    assert "+0.25 [+0.10, +0.40]" in texts(ALL["forest"].figure)


def test_costs_say_what_was_not_reported() -> None:
    assert "seconds a rollout: median 1.5, 95th percentile 1.5, 24 reported" in ALL["costs"].alt
    none = plots.costs(RUN.drop(columns="seconds"))
    assert "not reported" in texts(none.figure)
    assert plots.costs(RUN[["status"]]).alt.endswith("Neither time nor tokens were reported.")


@pytest.mark.parametrize("plot", [plots.rewards, plots.tasks, plots.costs])
def test_nothing_scored_is_no_error(plot: Any) -> None:
    nothing = rewards(2, 1).assign(reward=pd.array([None, None], dtype="Float64"), status="failed")
    assert "nan" not in plot(nothing).alt
    assert plot(nothing).figure.axes
    assert plot(rewards(0, 0)).figure.axes


def test_foreign_names_are_shown_as_they_are() -> None:
    """No formula, no markup, no hidden character; and a font without a glyph is no reason to warn."""
    name = "$x^2$ <script> \u202e \x1b[31m 你好"
    plot = plots.tasks(rewards(2, 1, task_id=name))
    assert label(name) == "$x^2$ <script> ⟨U+202E⟩ ⟨ESC⟩[3…"
    assert label(name) in texts(plot.figure)
    assert "<script>" not in plot.html()
    assert "\x1b" not in plot.alt


def test_a_plot_can_be_saved(tmp_path: Path) -> None:
    ALL["forest"].save(tmp_path / "forest.svg")
    assert "<svg" in (tmp_path / "forest.svg").read_text("utf-8")


@pytest.mark.parametrize("inks", [LIGHT, DARK])
def test_inks_can_be_read_on_their_background(inks: Any) -> None:
    assert contrast(inks.ink, inks.background) > 7
    assert all(contrast(colour, inks.background) >= 3 for colour in inks.series)


def test_without_matplotlib_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'gymkit\[notebook\]'"):
        Plot(lambda figure, inks: None, "nothing")


def test_no_global_state_of_matplotlib_is_touched() -> None:
    assert "matplotlib.pyplot" not in sys.modules
