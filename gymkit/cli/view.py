"""``gymkit view``: the pages of a run on this machine, read anew when the files have changed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from threading import Event, Lock
from typing import Final
from urllib.parse import parse_qsl

import typer

from gymkit.collect.artifacts import Artifacts
from gymkit.errors import ConfigError, GymkitError
from gymkit.sdk.reading import site
from gymkit.sdk.rollouts import Rollouts
from gymkit.servers.hosting import LOOPBACK, serve
from gymkit.servers.http import Answer, Receive, Scope, Send
from gymkit.views.document import POLICY, document
from gymkit.views.html import tag
from gymkit.views.site import Site

_ROLLOUT: Final = re.compile(r"/rollout/(\d{1,9})/(\d{1,9})")
_HERE: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
_HEADERS: Final = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def view(path: Path, port: int) -> None:
    """Serve until interrupted. Raises StoreError for a run that is not there, ConfigError for a port that is taken."""
    pages = RunPages(path)
    with serve(pages, LOOPBACK, port) as hosted:
        typer.echo(f"{path} at {hosted.url} (read anew when it has changed); Ctrl-C stops")
        Event().wait()


class RunPages:
    """The pages of the run at ``path``, an ASGI app. Raises StoreError when there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._made: tuple[object, Site] | None = None
        Rollouts.read(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            status, page = await asyncio.to_thread(self._answer, scope)
            await Answer(page.encode("utf-8", "replace"), status, list(_HEADERS))(send)

    def _answer(self, scope: Scope) -> tuple[int, str]:
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not _HERE.fullmatch(host):  # a page elsewhere may have a name of its own for this machine
            return 403, _plain("This is served to this machine alone, under 127.0.0.1 or localhost.")
        if scope["method"] not in ("GET", "HEAD"):
            return 405, _plain("There is nothing to send here.")
        try:
            return 200, self._page(scope["path"], dict(parse_qsl(scope["query_string"].decode("latin-1"), True)))
        except LookupError:
            return 404, _plain("There is no such page.")
        except ConfigError as error:
            return 404, _plain(str(error))
        except (GymkitError, OSError) as error:
            return 500, _plain(str(error))

    def _page(self, path: str, asked_for: dict[str, str]) -> str:
        found = _ROLLOUT.fullmatch(path)
        if path != "/" and not found:
            raise LookupError(path)
        with self._lock:
            site = self._site()
            return site.rollout(int(found[1]), int(found[2]), asked_for) if found else site.index(asked_for)

    def _site(self) -> Site:
        files = Artifacts.of(self._path)
        found = [path.stat() for path in (files.rollouts, files.failures, files.materialized) if path.exists()]
        version = [(stat.st_mtime_ns, stat.st_size) for stat in found]
        if self._made is None or self._made[0] != version:
            self._made = version, site(Rollouts.read(self._path))
        return self._made[1]


def _plain(sentence: str) -> str:
    return document("gymkit", tag("p", sentence), tag("p", tag("a", "all rollouts", href="/")))
