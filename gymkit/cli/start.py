"""``gymkit env start``: the servers of a configuration on sockets, and the discovery endpoint."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

import typer

from gymkit.config import Config
from gymkit.errors import ConfigError
from gymkit.sdk.configured import build
from gymkit.servers.app import ServerApp
from gymkit.servers.head import Head
from gymkit.servers.hosting import bind, serve_all


def start(config: Config) -> None:
    """Serve until interrupted. Raises ConfigError: nothing that we can serve, or a port that is taken."""
    if not config.servers:
        raise ConfigError('there is nothing to start: name a configuration, "+config_paths=[counter_remote.yaml]"')
    apps = build(config)
    listeners = {name: bind(server.host, server.port or 0) for name, server in config.servers.items()}
    door = _bind_head(config)
    placed = config.placed({name: _port(listener) for name, listener in listeners.items()}, _port(door))
    asyncio.run(_serve(placed, apps, listeners, door))


async def _serve(
    config: Config, apps: Mapping[str, ServerApp], listeners: Mapping[str, socket.socket], door: socket.socket
) -> None:
    head = Head(config)

    def ready() -> None:
        head.ready = True
        _announce(config)

    try:
        await serve_all([*((apps[name], listener) for name, listener in listeners.items()), (head, door)], ready)
    finally:
        for app in apps.values():
            await app.aclose()


def _announce(config: Config) -> None:
    width = max(len(name) for name in config.servers)
    for server in config.servers.values():
        note = " (relay, made for an agent without one)" if server.name in config.relays else ""
        typer.echo(f"{server.name:{width}}  {server.url}  {server.server_type}/{server.implementation}{note}")
    typer.echo(f"ready; discovery at {config.head.url}; Ctrl-C stops")


def _bind_head(config: Config) -> socket.socket:
    try:
        return bind(config.head.host, config.head.port)
    except ConfigError as error:
        raise ConfigError(f"the discovery endpoint {error} (+head_server.port=…)") from error


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
