"""One session of the environment as the check played it: the seed, the calls, the verdict, each with its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymkit.errors import ServerError
from gymkit.sdk.check import excerpt
from gymkit.servers.route import CookieJar, Reply, Route
from gymkit.wire import codec


@dataclass(frozen=True, slots=True)
class Post:
    """One request and what became of it."""

    path: str
    """The route."""
    body: Any
    """What was sent."""
    reply: Reply | None = None
    """The answer; None when there was none."""
    error: ServerError | None = None
    """Why there was no answer."""

    @property
    def status(self) -> int:
        """The status of the answer, 0 without one."""
        return self.reply.status if self.reply else 0

    @property
    def ok(self) -> bool:
        """Whether it was answered with a success."""
        return 200 <= self.status < 300

    @property
    def content(self) -> Any:
        """The answer as JSON; None where it is none."""
        try:
            return codec.loads(self.reply.body) if self.reply else None
        except ValueError:
            return None

    @property
    def kind(self) -> str:
        """What the answer calls the error, empty where it calls it nothing."""
        content = self.content
        return str(content.get("kind", "")) if isinstance(content, Mapping) else ""

    @property
    def sent(self) -> str:
        """The request in a line; a task row is too long for one."""
        if self.path in ("/seed_session", "/verify"):
            return f"POST {self.path}"
        return f"POST {self.path} {excerpt.cut(codec.dumps(self.body).decode())}"

    @property
    def came(self) -> str:
        """The answer in a line."""
        if self.reply is None:
            return str(self.error)
        return f"{self.status}: {excerpt.cut(self.reply.text.strip()) or '(nothing)'}"


@dataclass(slots=True, eq=False)
class Trial:
    """A session of one task."""

    task: int
    """Number of the task."""
    row: dict[str, Any]
    """The task's row."""
    marker: str = ""
    """The text in its arguments, where it has one of its own."""
    seed: Post | None = None
    """How it was seeded."""
    calls: list[Post] = field(default_factory=list)
    """Its tool calls, in order."""
    verdicts: list[Post] = field(default_factory=list)
    """Its verify calls."""
    jar: CookieJar = field(default_factory=CookieJar)
    """Its cookies."""

    async def post(self, route: Route, path: str, body: Any, timeout: float) -> Post:
        """One call in this session."""
        try:
            reply = await route.post(path, body, cookies=self.jar, timeout=timeout)
        except ServerError as error:
            return Post(path, body, error=error)
        self.jar.take(reply)
        return Post(path, body, reply)

    @property
    def seeded(self) -> bool:
        """Whether the environment took the task."""
        return self.seed is not None and self.seed.ok

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """What the verifier said first, None where it said nothing that can be used."""
        content = self.verdicts[0].content if self.verdicts and self.verdicts[0].ok else None
        return content if isinstance(content, Mapping) and _is_number(content.get("reward")) else None

    @property
    def reward(self) -> float | None:
        """The reward, None for a masked rollout or none."""
        said = self.verdict
        return None if said is None or said.get("mask_sample") else float(said["reward"])

    @property
    def told(self) -> list[Any]:
        """What an agent would have read, and the reward: what is compared with another play of the same task."""
        return [*((each.path, each.status, each.content) for each in self.calls), self.reward]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
