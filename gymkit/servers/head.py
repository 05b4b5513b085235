"""The discovery endpoint: a client that knows one address learns from it where every server is.

It publishes the configuration with the ports in use and without secrets, in the form that NeMo Gym's clients read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import httpx

from gymkit.config import Config
from gymkit.errors import BadStatus, InvalidReply, Unreachable
from gymkit.servers.app import Handler, ServerApp
from gymkit.servers.http import Answer, Request, json_answer
from gymkit.wire import codec

FETCH_SECONDS = 10.0
"""Seconds that the endpoint may take to answer a client."""


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


def fetch_config(url: str) -> Config:
    """The configuration that the discovery endpoint at ``url`` publishes, ours or NeMo Gym's.

    Raises Unreachable, BadStatus or InvalidReply with a sentence that says how to start one.
    """
    address = f"{url}/global_config_dict_yaml"
    advice = "start the servers with `gymkit env start`, or name the right port with +head_server.port=…"
    try:
        with httpx.Client(trust_env=False, timeout=FETCH_SECONDS) as client:
            reply = client.get(address)
    except httpx.HTTPError as error:
        message = f"no discovery endpoint answers at {url} ({type(error).__name__}): {advice}"
        raise Unreachable(message, server="head_server", url=address) from error
    if reply.status_code != 200:
        message = f"{address} answered {reply.status_code}, so it is no discovery endpoint: {advice}"
        raise BadStatus(message, server="head_server", url=address, status=reply.status_code)
    return _published(reply.content, url, address, advice)


def _published(body: bytes, url: str, address: str, advice: str) -> Config:
    try:
        text = codec.loads(body)
    except ValueError:
        text = None
    if not isinstance(text, str):
        message = f"{address} answered with something other than a configuration: {advice}"
        raise InvalidReply(message, server="head_server", url=address)
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
