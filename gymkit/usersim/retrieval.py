"""How a bank's documents are found: by vectors where there is an endpoint, else by words, and the row says so.

The package on PyPI ships no vectors of its documents, so none of its modes ever embeds anything. They are built here
once, through the configured endpoint, and kept in a cache folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymkit.errors import GymkitError, InvalidReply
from gymkit.servers.route import Route
from gymkit.wire import codec

log = logging.getLogger("gymkit")

BATCH = 32
"""Texts in one call of the endpoint."""

_BY_VECTOR = ("hybrid", "dense")


def cache_folder() -> Path:
    """Where vectors are kept: ``$GYMKIT_CACHE`` or a folder of the user's cache."""
    given = os.environ.get("GYMKIT_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "gymkit" / "usersim"


class Embedder:
    """An embeddings endpoint: ``POST {route}/embeddings`` with ``model`` and ``input``, and a bearer key if given."""

    def __init__(
        self, route: Route, model: str, *, api_key: str = "", folder: Path | None = None, timeout: float = 300.0
    ) -> None:
        self.route = route
        self.model = model
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._folder = folder
        self._timeout = timeout
        self._building: dict[str, asyncio.Lock] = {}
        self._kept: dict[str, dict[str, tuple[float, ...]]] = {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order. Raises ServerError."""
        body = {"model": self.model, "input": list(texts)}
        reply = await self.route.post("/embeddings", body, headers=self._headers, timeout=self._timeout)
        try:
            entries = sorted(reply.expect_ok().json_object()["data"], key=lambda entry: entry["index"])
            vectors = [[float(number) for number in entry["embedding"]] for entry in entries]
        except (LookupError, TypeError, ValueError) as error:
            message = f"{reply.url} answered with no embeddings: {error!r}"
            raise InvalidReply(message, server=reply.server, url=reply.url) from error
        if len(vectors) != len(texts):
            message = f"{reply.url} answered with {len(vectors)} vectors for {len(texts)} texts"
            raise InvalidReply(message, server=reply.server, url=reply.url)
        return vectors

    async def documents(self, texts: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
        """A vector for each document by id, built once and then read from the cache. Raises ServerError."""
        name = self._name(texts)
        async with self._building.setdefault(name, asyncio.Lock()):
            if name not in self._kept:
                self._kept[name] = await self._read_or_build(name, texts)
            return self._kept[name]

    async def _read_or_build(self, name: str, texts: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
        path = (self._folder or cache_folder()) / f"{name}.json"
        if path.is_file():
            stored = await asyncio.to_thread(lambda: codec.loads(path.read_bytes()))
            return {key: tuple(vector) for key, vector in stored.items()}
        log.info("embedding %d documents with %s, once; they are kept in %s", len(texts), self.model, path)
        keys, bodies = list(texts), list(texts.values())
        vectors: list[list[float]] = []
        for start in range(0, len(bodies), BATCH):
            vectors += await self.embed(bodies[start : start + BATCH])
        made = dict(zip(keys, vectors, strict=True))
        await asyncio.to_thread(_write, path, made)
        return {key: tuple(vector) for key, vector in made.items()}

    def _name(self, texts: Mapping[str, str]) -> str:
        content = codec.dumps([self.route.url, self.model, dict(texts)])
        return hashlib.sha256(content).hexdigest()[:32]

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self.route.aclose()


def _write(path: Path, vectors: Mapping[str, Sequence[float]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    beside.write_bytes(codec.dumps(vectors))
    beside.replace(path)


class Retrieval:
    """One episode's retrieval, and what became of it. It stands in for an embedding model of the package."""

    def __init__(self, embedder: Embedder | None, row: Mapping[str, Any]) -> None:
        config = row.get("usersim_config")
        settings = config if isinstance(config, Mapping) else {}
        self.alias = str(settings.get("finance_embedding_model_alias") or "embedding_model")
        self._mode = str(settings.get("finance_retrieval_mode") or "hybrid")
        self._wanted = row.get("probe_type") == "financial_services" and self._mode in _BY_VECTOR
        self._embedder = embedder
        self._queries = 0
        self._problem: str | None = None

    async def ready(self, probe: Any) -> None:
        """Give the documents of ``probe`` their vectors, if it retrieves by them and has none."""
        if not self._wanted:
            return
        if self._embedder is None:
            self._problem = "no embedding model is configured"
            return
        institution = probe._institution
        if institution.embeddings:
            return
        try:
            vectors = await self._embedder.documents({each.id: each.body for each in institution.documents})
        except GymkitError as error:
            self._problem = f"the documents could not be embedded: {error}"
            return
        probe._institution = dataclasses.replace(institution, embeddings=vectors)

    async def agenerate_text_embeddings(self, texts: list[str], **_: Any) -> list[list[float]]:
        """Embed a query, as the package asks for it. Raises ServerError, on which the package goes by words."""
        if self._embedder is None:
            raise LookupError("no embedding model is configured")
        try:
            vectors = await self._embedder.embed(texts)
        except GymkitError as error:
            self._problem = f"a query could not be embedded: {error}"
            raise
        self._queries += 1
        return vectors

    def told(self, result: dict[str, Any]) -> dict[str, Any]:
        """``result`` with what there is to say of retrieval; one that had to go by words is warned of."""
        if not self._wanted:
            return result
        degraded = self._problem is not None
        told = {"mode": self._mode, "degraded": degraded, "embedded_queries": self._queries, "reason": self._problem}
        if not degraded:
            return {**result, "retrieval": told}
        outcome = dict(result["simulation_outcome"])
        warning = {"kind": "retrieval_degraded", "turn_idx": None, "detail": f"lexical retrieval: {self._problem}"}
        outcome["warnings"] = [*outcome["warnings"], warning]
        if outcome["status"] == "ok":
            outcome["status"] = "completed_with_warnings"
        return {**result, "simulation_outcome": outcome, "retrieval": told}
