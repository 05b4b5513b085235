"""The discovery endpoint: a client that knows one address learns from it where every server is.

It publishes the configuration with the ports in use and without secrets, in the form that NeMo Gym's clients read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from gymkit.config import Config
from gymkit.errors import InvalidReply, ServerError
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Request, json_answer
from gymkit.servers.route import Route

FETCH_SECONDS = 10.0
"""Seconds that the endpoint may take to answer a client."""

_ADVICE = "start the servers with `gymkit env start`, or name the right port with +head_server.port=…"


class Head(ServerApp):
    """The endpoint for one placed configuration (``Config.placed``)."""

    server_type = "head_server"
    implementation = "head_server"

    def __init__(self, config: Config) -> None:
        super().__init__("head_server")
        self.ready = False
        """Set it once every server accepts requests."""
        self._yaml = config.to_yaml()
        self._instances = _instances(config)

    def handlers(self) -> Mapping[str, Handler]:
        """Discovery."""
        return {
            **{f"GET {path}": self._readiness for path in ("/readyz", "/healthz", "/health")},
            "GET /global_config_dict_yaml": self._config,
            "GET /server_instances": self._servers,
        }

    async def _readiness(self, _: Request) -> Answer:
        return json_answer({"status": "ok"}) if self.ready else json_answer({"status": "starting"}, 503)

    async def _config(self, _: Request) -> str:
        return self._yaml

    async def _servers(self, _: Request) -> list[dict[str, Any]]:
        return self._instances


async def fetch_config(url: str) -> Config:
    """The configuration that the discovery endpoint at ``url`` publishes, ours or NeMo Gym's.

    Raises ServerError with a sentence that says how to start one, ConfigError for a text that is no configuration.
    """
    route = Route.to_url("head_server", url)
    try:
        text = (await route.get("/global_config_dict_yaml", timeout=FETCH_SECONDS)).expect_ok().json()
    except ServerError as error:
        error.args = (f"{error}; {_ADVICE}",)
        raise
    finally:
        await route.aclose()
    if not isinstance(text, str):
        message = f"{url} publishes something other than a configuration; {_ADVICE}"
        raise InvalidReply(message, server=route.name, url=url)
    return Config.published(text, url)


def _instances(config: Config) -> list[dict[str, Any]]:
    now = time.time()
    return [
        {
            "process_name": server.name,
            "name": server.implementation,
            "server_type": server.server_type,
            "dir_path": f"{server.server_type}/{server.implementation}",
            "entrypoint": "app.py",
            "host": server.host,
            "port": server.port,
            "url": server.url,
            "pid": os.getpid(),
            "config_path": server.name,
            "start_time": now,
        }
        for server in config.servers.values()
    ]
