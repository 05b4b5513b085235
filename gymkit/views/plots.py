"""Plots of a run: a frame in, a picture out, with its denominators in the picture."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.figure import Inks, Plot, label
from gymkit.views.grid import number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["costs", "forest", "pass_at_k", "rewards", "tasks"]

BARS: Final = 12
"""Up to so many different rewards are drawn one by one, more of them in bins."""

SHOWN_TASKS: Final = 40
_UNSCORED: Final = {"masked": "////", "failed": "xxxx", "missing": "...."}
_LETTERS: Final = {"masked": "M", "failed": "F", "missing": "–"}
_CURVES: Final = {"pass@": ("pass@k: at least one of k passes", "o"), "pass^": ("pass^k: all of k pass", "s")}


def rewards(frame: pd.DataFrame) -> Plot:
    """How the rewards are distributed, and apart from them how many rollouts have none.

    ``frame`` is a ``rewards`` frame, or any with ``reward``, and ``status`` where there are rollouts without.
    """
    scored = frame["reward"].dropna().astype(float)
    without = _without_score(frame)
    heights = _heights(scored)

    def draw(figure: Any, inks: Inks) -> None:
        apart = figure.subplots(1, 2, width_ratios=[4, 1], sharey=True) if without else [figure.subplots()]
        left = apart[0]
        left.bar(
            [at for at, _, _ in heights], [n for _, _, n in heights], [w for _, w, _ in heights], color=inks.series[0]
        )
        left.set(xlabel="reward", ylabel="rollouts")
        left.yaxis.get_major_locator().set_params(integer=True)
        if len(scored):
            mean = float(scored.mean())
            left.axvline(mean, color=inks.series[1], linestyle="--")
            left.set_title(f"mean {number(mean, 3)} over {len(scored):,} scored", loc="left", color=inks.series[1])
        for place, (name, count) in enumerate(without.items()):
            apart[1].bar(place, count, hatch=_UNSCORED[name], color=inks.background, edgecolor=inks.ink)
            apart[1].text(place, count, f"{count:,}", ha="center", va="bottom")
        if without:
            apart[1].set(xlabel="in no mean")
            apart[1].set_xticks(range(len(without)), list(without))
            apart[1].margins(y=0.12)

    mean = f", mean {number(float(scored.mean()), 3)}" if len(scored) else ""
    common = sorted(heights, key=lambda bar: -bar[2])[:5]
    most = ", ".join(f"{count:,} at {number(at, 2)}" for at, _, count in common if count)
    apart = "".join([f"; {count:,} {name}" for name, count in without.items()])
    return Plot(
        draw, f"Rewards of {len(frame):,} rollouts: {len(scored):,} scored{mean}{apart}. Most: {most or 'none'}."
    )


def tasks(frame: pd.DataFrame) -> Plot:
    """Every repeat of every task as a field of a map, the tasks with the lowest mean first.

    ``frame`` has ``task_index``, ``rollout_index``, ``reward``, and ``status`` and ``task_id`` where known.
    """
    means = frame.groupby("task_index")["reward"].mean()
    order = means.sort_values(na_position="last", kind="stable").index[:SHOWN_TASKS]
    chosen = frame[frame["task_index"].isin(order)]
    table = chosen.pivot(index="task_index", columns="rollout_index", values="reward").reindex(order).astype(float)
    status = chosen.pivot(index="task_index", columns="rollout_index", values="status") if "status" in frame else None
    names = dict(zip(frame["task_index"], frame.get("task_id", frame["task_index"]), strict=True))

    def draw(figure: Any, inks: Inks) -> None:
        axes = figure.subplots()
        if table.empty:
            axes.text(0.5, 0.5, "no rollouts", ha="center", transform=axes.transAxes)
            return
        image = axes.imshow(table.to_numpy(), cmap=inks.scale, aspect="auto", interpolation="none", vmin=low, vmax=high)
        axes.set_facecolor(inks.faint)
        axes.set_yticks(range(len(table)), [label(names[task]) for task in table.index], fontsize=8)
        axes.set_xticks(range(table.shape[1]), [str(rollout) for rollout in table.columns])
        axes.set(xlabel="repeat (rollout_index)", ylabel="task, lowest mean first")
        figure.colorbar(image, ax=axes, label="reward")
        if status is not None:
            for row, found in enumerate(status.reindex(order).to_numpy()):
                for column, name in enumerate(found):
                    axes.text(column, row, _LETTERS.get(str(name), ""), ha="center", va="center", fontsize=8)
        if status is not None and status.isin(list(_LETTERS)).any(axis=None):
            axes.set_title("M masked · F failed · – missing: no reward", loc="left", fontsize=9)

    low, high = _range(frame["reward"])
    worst = "; ".join(f"{label(names[task])} {number(means[task], 2)}" for task in order[:5] if means.notna()[task])
    shown = f"{len(order)} of {len(means):,} tasks" if len(order) < len(means) else f"{len(means):,} tasks"
    alt = (
        f"Rewards of {shown} by repeat, up to {table.shape[1]} repeats. Lowest means: {worst or 'no task has a score'}."
    )
    return Plot(draw, alt, size=(7.0, 1.4 + 0.22 * max(len(order), 4)))


def pass_at_k(frame: pd.DataFrame) -> Plot:
    """pass@k and pass^k over k with their intervals.

    ``frame`` is that of a summary: ``metric`` (``pass@1`` …), ``value``, ``low``, ``high``.
    """
    curves = {name: _curve(frame, name) for name in _CURVES}

    def draw(figure: Any, inks: Inks) -> None:
        axes = figure.subplots()
        for (name, points), colour in zip(curves.items(), inks.series, strict=False):
            if points:
                ks, values, lows, highs = zip(*points, strict=True)
                text, marker = _CURVES[name]
                axes.plot(ks, values, color=colour, marker=marker, label=text)
                axes.fill_between(ks, lows, highs, color=colour, alpha=0.2, linewidth=0)
        axes.set(xlabel="k, attempts of one task", ylabel="share of tasks", ylim=(-0.02, 1.02))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        if any(curves.values()):
            axes.legend(frameon=False, labelcolor=inks.ink)

    told = [f"{name}{k} {number(value, 2)}" for name, points in curves.items() for k, value, _, _ in points[:8]]
    return Plot(draw, f"pass@k and pass^k with their intervals: {', '.join(told) or 'no task has a score'}.")


def forest(frame: pd.DataFrame, *, of: str = "the run") -> Plot:
    """Differences with their intervals, one line each, and where there is no difference.

    ``frame`` has ``label``, ``value``, ``low``, ``high``; ``of`` is what the differences are of.
    """
    numbers = frame[["value", "low", "high"]].astype(float).to_numpy().tolist()
    rows = [(label(name), *ends) for name, ends in zip(frame["label"], numbers, strict=True)]

    def draw(figure: Any, inks: Inks) -> None:
        axes = figure.subplots()
        axes.axvline(0, color=inks.ink, linewidth=1)
        for place, (_, value, low, high) in enumerate(rows):
            axes.plot([low, high], [place, place], color=inks.series[0], linewidth=2)
            axes.plot([value], [place], color=inks.series[0], marker="D")
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.invert_yaxis()
        axes.margins(y=0.2)
        axes.set(xlabel=f"mean reward of {label(of)}, minus that of …")
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(rows)), [_span(*row[1:]) for row in rows])
        right.tick_params(length=0)

    told = "; ".join(f"{name} {_span(*ends)}" for name, *ends in rows)
    alt = f"Mean reward of {label(of)} minus that of others, with intervals: {told or 'none'}."
    return Plot(draw, alt, size=(7.0, 1.3 + 0.42 * max(len(rows), 2)))


def costs(frame: pd.DataFrame) -> Plot:
    """How long rollouts took and how many tokens they used, with the median and the slowest twentieth.

    ``frame`` has ``seconds`` and ``total_tokens``, either of which may be without a value.
    """
    panels = {"seconds": "seconds a rollout", "total_tokens": "tokens a rollout"}
    columns = {name: frame[name].dropna().astype(float) for name in panels if name in frame}
    known = {name: values for name, values in columns.items() if len(values)}

    def draw(figure: Any, inks: Inks) -> None:
        for axes, (name, text) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            values = known.get(name)
            axes.set(xlabel=text, ylabel="rollouts")
            if values is None:
                axes.text(0.5, 0.5, "not reported", ha="center", transform=axes.transAxes)
                continue
            axes.hist(values, bins=min(30, max(5, len(values) // 4)), color=inks.series[0])
            axes.yaxis.get_major_locator().set_params(integer=True)
            middle, late = (float(values.quantile(share)) for share in (0.5, 0.95))
            axes.axvline(middle, color=inks.series[1])
            axes.axvline(late, color=inks.series[1], linestyle=":")
            marks = f"median {middle:,.3g} (line), 95 % below {late:,.3g} (dots)"
            axes.set_title(marks, loc="left", fontsize=8.5, color=inks.series[1])

    told = [
        f"{panels[name]}: median {float(values.quantile(0.5)):,.3g}, 95th percentile "
        f"{float(values.quantile(0.95)):,.3g}, {len(values):,} reported"
        for name, values in known.items()
    ]
    return Plot(
        draw, f"Costs of {len(frame):,} rollouts. {'; '.join(told) or 'Neither time nor tokens were reported'}."
    )


def _without_score(frame: pd.DataFrame) -> dict[str, int]:
    counts = {name: int((frame["status"] == name).sum()) for name in _UNSCORED} if "status" in frame else {}
    return {name: count for name, count in counts.items() if count}


def _heights(scored: pd.Series[float]) -> list[tuple[float, float, int]]:
    """Place, width and height of each bar."""
    if not len(scored):
        return []
    places = sorted(set(scored.tolist()))
    gap = min((after - before for before, after in itertools.pairwise(places)), default=0.1)
    if len(places) <= BARS and gap * 2 * BARS >= places[-1] - places[0]:
        return [(at, 0.8 * gap, int((scored == at).sum())) for at in places]
    import numpy as np

    counts, edges = np.histogram(scored, bins=20)
    width = float(edges[1] - edges[0])
    return [(float(left) + width / 2, 0.95 * width, int(count)) for left, count in zip(edges, counts, strict=False)]


def _range(values: pd.Series[Any]) -> tuple[float, float]:
    """Ends of the colour scale: 0 and 1, unless rewards lie outside."""
    known = values.dropna().astype(float)
    return (min(0.0, known.min()), max(1.0, known.max())) if len(known) else (0.0, 1.0)


def _curve(frame: pd.DataFrame, name: str) -> list[tuple[int, float, float, float]]:
    rows = frame[frame["metric"].str.startswith(name) & frame["value"].notna()].astype({"value": float})
    # Where no interval belongs, the band has no width.
    ends = [rows[end].astype("Float64").fillna(rows["value"]).astype(float) for end in ("low", "high")]
    ks = [int(metric.removeprefix(name)) for metric in rows["metric"]]
    return sorted(zip(ks, rows["value"], *ends, strict=True))


def _span(value: float, low: float, high: float) -> str:
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"
