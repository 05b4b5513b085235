"""The places that an agent's sessions were granted, each reached over one route while any session uses it."""

from __future__ import annotations

from collections.abc import Iterable

from gymkit.servers.http import Refused
from gymkit.servers.route import Route


class Reach:
    """Routes by base URL. ``neighbours`` are servers in this process, which a grant names by ``app://…``."""

    def __init__(self, neighbours: Iterable[Route] = ()) -> None:
        self._neighbours = {route.url: route for route in neighbours}
        self._routes: dict[str, Route] = {}
        self._users: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def take(self, base_url: str) -> Route:
        """The route to ``base_url``; give it back when the session ends. Raises Refused."""
        url = base_url.rstrip("/")
        if url in self._neighbours:
            return self._neighbours[url]
        if url.startswith("app://"):
            raise Refused(422, f"{url} is not in this process", kind="unsupported_access")
        self._users[url] = self._users.get(url, 0) + 1
        if url not in self._routes:
            self._routes[url] = Route.to_url("granted tools", url)
        return self._routes[url]

    async def give_back(self, route: Route) -> None:
        """A session ended; with the last one, the connections go."""
        if self._routes.get(route.url) is not route:
            return
        self._users[route.url] -= 1
        if not self._users[route.url]:
            del self._users[route.url], self._routes[route.url]
            await route.aclose()
