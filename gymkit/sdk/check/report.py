"""What a check found: a row for each rule, for a cell, a terminal, a frame, and an exit status."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Final

from gymkit.sdk.check import excerpt
from gymkit.sdk.check.finding import RESULTS, Finding
from gymkit.views.html import Html, fold, framed, join, table, tag

if TYPE_CHECKING:
    import pandas as pd

_WIDTH: Final = 110
_TOP: Final = "vertical-align: top"
_MARKS: Final = {"fail": "✗", "warn": "!", "pass": "✓", "skip": "–"}


@dataclass(frozen=True, repr=False)
class Report:
    """The report on one service or environment; a ``check`` makes it. ``print`` it, or see ``frame`` and ``ok``."""

    url: str
    """The service's base URL, or the environment's name."""
    environment: str
    """The environment whose tasks a service was tried with; empty for the report on an environment."""
    findings: tuple[Finding, ...]
    """One for each rule, in the order of the contract."""
    calls: int
    """How often it was called."""
    seconds: float
    """How long the check took."""

    @property
    def ok(self) -> bool:
        """Whether no rule failed."""
        return not self._with("fail")

    @property
    def frame(self) -> pd.DataFrame:
        """One row per rule: ``rule`` (string), ``result`` (category: fail, warn, pass, skip), ``sent``, ``came``,
        ``why`` and ``fix`` (string; empty where there is nothing to say).
        """
        import pandas as pd

        names = [field.name for field in fields(Finding)]
        frame = pd.DataFrame([astuple(finding) for finding in self.findings], columns=names, dtype="string")
        return frame.astype({"result": pd.CategoricalDtype(list(RESULTS))})

    def _with(self, *results: str) -> list[Finding]:
        return [finding for result in results for finding in self.findings if finding.result == result]

    def _counts(self) -> str:
        counts = Counter(finding.result for finding in self.findings)
        return ", ".join(f"{counts[result]} {result}" for result in ("pass", "warn", "fail", "skip") if counts[result])

    def __repr__(self) -> str:
        return f"<Report {self.url}: {self._counts()}>"

    def __str__(self) -> str:
        head = f"{self.url}{self._tasks(' ')}: {self._counts()} ({self._cost()})"
        told = [_paragraph(finding) for finding in self._with("fail", "warn")]
        quiet = [_cut(f"pass  {finding.rule:<20} {finding.came}") for finding in self._with("pass")]
        return "\n\n".join(filter(None, [head, *told, "\n".join(quiet), "\n".join(self._skipped())]))

    def _repr_html_(self) -> str:
        failed = len(self._with("fail"))
        verdict = "No rule failed" if self.ok else f"{excerpt.counted(failed, 'rule')} failed"
        told = [_section(finding) for finding in self._with("fail", "warn")]
        quiet = self._with("pass", "skip")
        rows = [(_mark(finding), finding.rule, finding.came, finding.why) for finding in quiet]
        rest = fold(
            excerpt.counted(len(quiet), "more rule" if told else "rule"),
            table(("", "rule", "what came", "why it matters"), rows),
            open=not told,
        )
        head = tag("p", tag("strong", f"{verdict}: "), tag("bdi", self.url), f" · {self._counts()}")
        cost = tag("p", f"{self._cost()}{self._tasks(', ')}", class_="gk-quiet")
        return framed(head, cost, join(told), rest, label=f"Check of {self.url}")

    def _skipped(self) -> list[str]:
        """A line for each reason, with the rules that were skipped for it."""
        reasons: dict[str, list[str]] = {}
        for finding in self._with("skip"):
            reasons.setdefault(finding.came, []).append(finding.rule)
        return [_filled(f"skip  {', '.join(rules)} ({reason})", 6) for reason, rules in reasons.items()]

    def _tasks(self, joint: str) -> str:
        return f"{joint}with the tasks of {self.environment}" if self.environment else ""

    def _cost(self) -> str:
        return f"{excerpt.counted(self.calls, 'call')} in {self.seconds:.1f} s"


def _filled(text: str, indent: int) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _paragraph(finding: Finding) -> str:
    parts = [f"{finding.result.upper()}  {finding.rule}"]
    for label, text in _told(finding):
        parts.append(_filled(f"  {label:<5} {text}", 8))
    return "\n".join(parts)


def _section(finding: Finding) -> Html:
    rows = [tag("tr", tag("th", label, scope="row", style=_TOP), _text(text)) for label, text in _told(finding)]
    title = tag("p", tag("strong", _mark(finding), " ", finding.rule), style="margin-top: .6rem")
    return tag("section", title, tag("table", *rows, class_="gk-table"), aria_label=finding.rule)


def _text(text: str) -> Html:
    return tag("td", tag("bdi", text), style="text-align: left; overflow-wrap: anywhere")


def _told(finding: Finding) -> Iterable[tuple[str, str]]:
    told = (("sent", finding.sent), ("came", finding.came), ("why", finding.why), ("fix", finding.fix))
    return [(label, text) for label, text in told if text]


def _mark(finding: Finding) -> Html:
    return tag(
        "span",
        f"{_MARKS[finding.result]}\N{NO-BREAK SPACE}{finding.result}",
        class_="gk-bad" if finding.result == "fail" else None,
    )
