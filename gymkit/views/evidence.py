"""What is known of one rollout besides its conversation: how it ended, in words, and what the verifier reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from gymkit.views.entry import NAME_CHARS, Budget, code
from gymkit.views.grid import number
from gymkit.views.html import Html, fold, join, table, tag
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["evidence", "headline", "meaning"]

_SHOWN_FIELDS: Final = 40
_COUNTED: Final = ("steps", "tool_calls", "total_tokens", "input_tokens", "output_tokens")
_PARTS: Final = ("responses_create_params", "response", "reward_components", "agent_ref", "gymkit")
_VERDICT: Final = ("reward", "mask_sample", "failure_kind", "failure_reason", "error")
_KNOWN: Final = frozenset([*_PARTS, *_VERDICT])
"""Fields of a row that are shown elsewhere."""

_ENDINGS: Final = {
    "incomplete": "The agent's service said that its reply was incomplete, and the rollout was verified as it stood.",
    "max_steps": "The rollout was cut at the allowed number of steps and verified as it stood.",
    "deadline": "The rollout was cut at its deadline and verified as it stood.",
}


def headline(row: Mapping[str, Any], budget: Budget) -> Html:
    """Return which rollout it is, its status and its reward, on one line."""
    name = row.get("task_id")
    named = [tag("bdi", budget.name(name), class_="gk-quiet")] if name not in (None, str(row.get("task_index"))) else []
    status = budget.name(row.get("status") or "")
    reward = row.get("reward")
    parts = [
        tag("strong", f"task {row.get('task_index')} · rollout {row.get('rollout_index')}"),
        *named,
        *([tag("span", status, class_=f"gk-badge gk-as-{status}")] if status else []),
        *([tag("span", "reward ", tag("strong", number(reward, 3)))] if reward is not None else []),
    ]
    return tag("span", join(parts, " "), class_="gk-who")


def meaning(row: Mapping[str, Any], record: Mapping[str, Any], budget: Budget) -> list[Html]:
    """Return what the status says, in sentences; nothing for a scored rollout that ended by itself."""
    status, kind, reason = row.get("status"), row.get("failure_kind"), record.get("failure_reason")
    why = f" Kind: {budget.name(kind)}." if kind else ""
    why += f" Reason: {_text(reason, budget)}" if reason else ""
    sentences = {
        "masked": f"Masked: the verifier says that its number{_recorded(record)} is no measurement of the agent, so no "
        f"mean counts it.{why}",
        "failed": f"Failed: there is no result, so there is no reward.{why} {_message(record, budget)}",
        "missing": f"Missing: planned, and no result with a reward is on disk.{why}",
    }
    found = [tag("p", sentences[status], class_=f"gk-note gk-as-{status}")] if status in sentences else []
    ending = _ENDINGS.get(str(row.get("termination_reason")))
    return [*found, tag("p", ending, class_="gk-note gk-quiet")] if ending else found


def evidence(
    row: Mapping[str, Any], record: Mapping[str, Any], failures: pd.DataFrame | None, budget: Budget
) -> list[Html]:
    """Return the costs, what the verifier reported, and the failed attempts of one rollout.

    ``row`` is its row of ``rewards``, ``record`` its row on disk (empty when there is none), ``failures`` its rows of
    that frame.
    """
    parts = [tag("p", " · ".join(_costs(row)), class_="gk-quiet")] if any(_costs(row)) else []
    components = record.get("reward_components")
    if isinstance(components, dict) and components:
        shown = [
            join([f"{budget.name(name)} ", tag("strong", _value(value, budget))])
            for name, value in list(components.items())[:_SHOWN_FIELDS]
        ]
        parts.append(tag("p", "reward components: ", join(shown, " · ")))
    if extra := {name: value for name, value in record.items() if name not in _KNOWN and not name.startswith("_ng_")}:
        rows = [(budget.name(name), _value(value, budget)) for name, value in list(extra.items())[:_SHOWN_FIELDS]]
        parts.append(fold(f"verifier and task: {_names(extra, budget)}", table(["field", "value"], rows)))
    if failures is not None and len(failures):
        parts.append(fold(f"failed attempts: {len(failures)}", *_attempts(failures, budget)))
    return parts


def _costs(row: Mapping[str, Any]) -> Iterator[str]:
    known = {name: _amount(row[name]) for name in _COUNTED if row.get(name) is not None}
    for name, unit in (("steps", "step"), ("tool_calls", "tool call")):
        if name in known:
            yield f"{known[name]} {unit}{'' if known[name] == '1' else 's'}"
    if "total_tokens" in known:
        sides = [f"{known[name]} {name[:-7]}" for name in ("input_tokens", "output_tokens") if name in known]
        yield f"{known['total_tokens']} tokens" + (f" ({', '.join(sides)})" if sides else "")
    if row.get("seconds") is not None:
        yield f"{_amount(row['seconds'])} s"
    if row.get("started_at") is not None:
        yield f"{str(row['started_at'])[:19]} UTC"
    if row.get("attempt"):
        yield f"attempt {_amount(row['attempt'])}"


def _amount(value: Any) -> str:
    return number(value, 3) if isinstance(value, int | float) else str(value)[:NAME_CHARS]


def _recorded(record: Mapping[str, Any]) -> str:
    reward = record.get("reward")
    return f", {number(reward, 3)}," if isinstance(reward, int | float) else ""


def _message(record: Mapping[str, Any], budget: Budget) -> str:
    message = record.get("error") or record.get("_ng_failure_message") or record.get("_ng_failure_judge_error") or ""
    return _text(message, budget)


def _attempts(failures: pd.DataFrame, budget: Budget) -> Iterator[Html]:
    for row in failures.head(10).to_dict("records"):
        head = f"attempt {row.get('attempt')}: {row.get('failure_class')}, {row.get('failure_kind')}"
        yield tag("p", budget.name(head), class_="gk-quiet")
        yield code(*budget.take(str(row.get("message"))))
    if len(failures) > 10:
        yield tag("p", f"… {len(failures) - 10:,} more in the failures frame", class_="gk-cut")


def _names(fields: Mapping[str, Any], budget: Budget) -> str:
    more = len(fields) - 4
    return budget.name(", ".join(list(fields)[:4])) + (f" and {more} more" if more > 0 else "")


def _value(value: Any, budget: Budget) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return _text(value if isinstance(value, str) else codec.dumps(value).decode(), budget)


def _text(text: object, budget: Budget) -> str:
    shown, note = budget.take(str(text))
    return f"{shown} {note}" if note else shown
