"""What a scripted model says: a list, a generator or a function of replies, and where in it each rollout is."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from gymkit.errors import ConfigError
from gymkit.servers.call import ModelFailed

Reply = Any
"""A text, an item or a list of items, a whole Response, or a Fault."""

_ROLLOUTS = 100_000
"""Rollouts whose place in a script is remembered; the oldest are forgotten first."""


class Script:
    """Gives the reply to each request, in one of four ways.

    - a list: each rollout hears it from its beginning, calls outside a rollout share one place in it;
    - a function of the request's parameters, sync or async: called for each;
    - a generator function of no arguments: started anew for each rollout, ``params = yield reply``;
    - a generator or another iterator: one for all calls, in the order they come.

    Raises ConfigError for anything else.
    """

    def __init__(self, script: object) -> None:
        self._places: OrderedDict[str | None, Iterator[Reply]] = OrderedDict()
        self._start: Callable[[], Iterator[Reply]] | None = None
        self._call: Callable[[dict[str, Any]], Reply] | None = None
        if inspect.isgeneratorfunction(script):
            self._start = script
        elif callable(script):
            self._call = script
        elif isinstance(script, Sequence) and not isinstance(script, str | bytes):
            self._start = lambda: iter(script)
        elif isinstance(script, Iterator):
            self._start = lambda: script
        else:
            raise ConfigError(f"a script is a list, a generator or a function of replies, not {script!r}")

    def next(self, params: dict[str, Any], rollout: str | None) -> Reply:
        """The reply to ``params``, perhaps to be awaited. Raises ModelFailed where the script is at its end."""
        if self._call is not None:
            return self._call(params)
        place = self._place(rollout)
        try:
            if isinstance(place, Generator) and inspect.getgeneratorstate(place) != inspect.GEN_CREATED:
                return place.send(params)
            return next(place)
        except StopIteration:
            where = "the calls outside a rollout" if rollout is None else f"rollout {rollout}"
            raise ModelFailed(500, f"the script has no further reply for {where}", kind="script_ended") from None

    def _place(self, rollout: str | None) -> Iterator[Reply]:
        place = self._places.get(rollout)
        if place is None:
            assert self._start is not None
            place = self._places[rollout] = self._start()
            if len(self._places) > _ROLLOUTS:
                self._places.popitem(last=False)
        return place
