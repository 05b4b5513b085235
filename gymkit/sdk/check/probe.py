"""Trying the service: rollouts by the real agent server, one by one and at once, and single requests.

Rollouts go first and one by one, so that what breaks can be put down to its cause. What comes after them goes at once
where the service has shown that it can be called so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from secrets import choice
from typing import TYPE_CHECKING, Any, Final

from gymkit.agents import remote
from gymkit.sdk.check import oddities
from gymkit.sdk.check.concurrency import parallel_calls, rollouts_apart
from gymkit.sdk.check.evidence import Evidence
from gymkit.sdk.check.exchange import Exchange
from gymkit.sdk.check.played import Played
from gymkit.sdk.check.recorder import Meddler, Recorder, playing

if TYPE_CHECKING:
    from gymkit.sdk.agents import RemoteAgent
    from gymkit.sdk.env import Env

Attempt = Callable[[], Awaitable[None]]

TASKS: Final = 3
"""Tasks that are played, at most."""
STEPS: Final = 16
"""Calls of the service in one rollout, at most."""
DISTURBANCES: Final = ("unknown tool", "malformed arguments", "failing tool")
ODDITIES: Final[Mapping[str, Callable[[oddities.Params], oddities.Params]]] = {
    "extra fields": oddities.with_extra_fields,
    "content shapes": oddities.in_other_shape,
    "odd Unicode": lambda params: oddities.with_text(params, oddities.ODD_TEXT),
    "lone surrogate": oddities.with_lone_surrogate,
    "large input": oddities.large,
}

_LETTERS = "bcdfghjkmpqvwxz"  # no digits and no words: nothing that a task could mean


class Probe:
    """One check of one service. ``run`` fills ``seen``, step by step."""

    def __init__(self, agent: RemoteAgent, env: Env, timeout: float, budget: float) -> None:
        steps = min(agent.config.max_steps or STEPS, STEPS)
        timeout = min(timeout, agent.config.remote_responses_timeout_secs)
        self._rows = env.rows[:TASKS]
        self._server = remote.RemoteAgent(
            agent.name, agent.config.model_copy(update={"max_steps": steps}), Meddler(env.route())
        )
        self._server.service = self._recorder = Recorder(self._server.service, timeout)
        tools = self._rows[0]["responses_create_params"].get("tools") or ()
        self.seen = Evidence(timeout, budget, steps, agent.concurrency, [tool.get("name", "") for tool in tools])

    @property
    def calls(self) -> int:
        """Calls of the service so far."""
        return self._recorder.calls

    async def run(self) -> None:
        """Try everything that the answers so far leave room for."""
        seen = self.seen
        seen.first = Played(0)
        await self._play(seen.first)
        first = seen.first
        if not first.exchanges:
            return  # the environment failed before the service was asked
        if first.broken:
            if first.broken.cookies:
                seen.bare = await self._ask(first.broken.params)
            if len(first.exchanges) > 1:
                await self._at_once(self._odd_requests(), limit=1)
            return
        if first.finished and not await self._rollouts(first):
            return
        if not seen.blame() and seen.starts_clean != "worse":
            mixes = "fail" in (rollouts_apart(seen).result, parallel_calls(seen).result)
            await self._at_once(self._rest(first), limit=1 if mixes else seen.concurrency)

    async def aclose(self) -> None:
        """Let go of all connections."""
        await self._server.aclose()

    async def _rollouts(self, first: Played) -> bool:
        """The same task again, other tasks, all at once; False when the service is not fit for the rest."""
        seen = self.seen
        for _ in range(2):
            seen.again.append(Played(0))
            await self._play(seen.again[-1])
            if seen.starts_clean == "same":
                break
        if seen.starts_clean == "worse":
            return False
        for task in range(1, len(self._rows)):
            seen.others.append(Played(task))
            await self._play(seen.others[-1])
        if seen.blame():
            return False
        if seen.concurrency > 1:
            await self._play_together()
        return True

    async def _play_together(self) -> None:
        """Two of each task as it stands, and one with a marker in its prompt, all in flight at once."""
        tasks = range(len(self._rows))
        self.seen.together = [
            *[Played(task) for task in (*tasks, *tasks)],
            *[Played(task, marker=_marker()) for task in tasks],
        ]
        started = time.perf_counter()
        await asyncio.gather(*[self._play(played) for played in self.seen.together])
        self.seen.together_seconds = time.perf_counter() - started

    def _rest(self, first: Played) -> list[Attempt]:
        last = first.exchanges[-1]
        rest: list[Attempt] = [partial(self._repeat, last), *self._odd_requests()]
        if self.seen.sets_cookies:
            rest.append(partial(self._repeat_bare, last))
        if first.finished and first.asks:
            rest += [partial(self._disturb, rule) for rule in DISTURBANCES]
        return rest

    def _odd_requests(self) -> list[Attempt]:
        return [partial(self._odd, name) for name in ODDITIES]

    async def _repeat(self, exchange: Exchange) -> None:
        self.seen.repeated = await self._ask(exchange.params, exchange.cookies)

    async def _repeat_bare(self, exchange: Exchange) -> None:
        self.seen.bare = await self._ask(exchange.params)

    async def _odd(self, name: str) -> None:
        assert self.seen.first is not None
        self.seen.odd[name] = await self._ask(ODDITIES[name](self.seen.first.exchanges[0].params))

    async def _disturb(self, rule: str) -> None:
        self.seen.disturbed[rule] = Played(0, disturbance=rule)
        await self._play(self.seen.disturbed[rule])

    async def _play(self, played: Played) -> None:
        row = self._rows[played.task]
        if played.marker:
            row = {**row, "responses_create_params": _marked(row["responses_create_params"], played.marker)}
        playing.set(played)
        try:
            played.row = await self._server.run(row)
        finally:
            playing.set(None)

    async def _ask(self, params: dict[str, Any], cookies: Mapping[str, str] | None = None) -> Exchange:
        return await self._recorder.exchange("/v1/responses", params, cookies or {})

    async def _at_once(self, attempts: Sequence[Attempt], limit: int) -> None:
        slots = asyncio.Semaphore(limit)

        async def bounded(attempt: Attempt) -> None:
            async with slots:
                await attempt()

        await asyncio.gather(*map(bounded, attempts))


def _marker() -> str:
    return "".join(choice(_LETTERS) for _ in range(12))


def _marked(params: dict[str, Any], marker: str) -> dict[str, Any]:
    task_input = params["input"]
    if isinstance(task_input, str):
        return {**params, "input": f"{task_input} (reference: {marker})"}
    return oddities.with_text(params, f" (reference: {marker})")
