"""Nothing is lost in silence: for each shape that the client libraries' own types allow, what does not come back from a
round trip stands under a path that was reported."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from gymkit.errors import WireError
from gymkit.wire import chat, messages
from gymkit.wire.dialects.dropped import Converted
from gymkit.wire.dialects.request_from_chat import request_from_chat
from gymkit.wire.dialects.request_from_messages import request_from_messages
from gymkit.wire.dialects.request_to_chat import request_to_chat
from gymkit.wire.dialects.request_to_messages import request_to_messages
from gymkit.wire.responses import check_request
from tests.wire.examples import examples

Json = dict[str, Any]
Convert = Callable[[Json], Converted]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def marked(value: Any, counter: Iterator[int], key: str = "") -> Any:
    """A copy in which every free text is one of a kind, and an address where one is wanted."""
    if isinstance(value, dict):
        return {name: marked(inner, counter, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, counter, key) for inner in value]
    return f"https://text/{next(counter):05d}" if value == "text" and key not in ("type", "modalities") else value


def cases(annotation: Any, check: Callable[[object], None]) -> list[Json]:
    found = []
    for full in (False, True):
        for example in examples(annotation, full=full):
            example = marked(copy.deepcopy(example), iter(range(10**6)))
            try:
                check(example)
            except WireError:
                continue  # refused at the door, loudly
            found.append(example)
    return found


def silent(request: Json, there: Convert, back: Convert) -> list[str]:
    """Paths of free texts that neither came back nor were reported."""
    params, dropped = there(request)
    check_request(params)
    returned, _ = back(params)
    everything = "\n".join(f"{value}\n" for _, value in leaves(returned))
    reported = tuple(drop.path for drop in dropped)
    return [
        path
        for path, value in leaves(request)
        if isinstance(value, str) and value.startswith("https://text/") and value not in everything
        if not path.startswith(reported)
    ]


def test_chat() -> None:
    found = cases(CompletionCreateParamsNonStreaming, chat.check_request)
    assert len(found) > 50
    lost = [(case, paths) for case in found if (paths := silent(case, request_from_chat, request_to_chat))]
    assert lost == []


def test_messages() -> None:
    found = cases(MessageCreateParamsNonStreaming, messages.check_request)
    assert len(found) > 30
    lost = [(case, paths) for case in found if (paths := silent(case, request_from_messages, request_to_messages))]
    assert lost == []
