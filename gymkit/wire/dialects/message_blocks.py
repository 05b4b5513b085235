"""The blocks of a message: Messages to Responses and back; images and documents among them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gymkit.wire import codec
from gymkit.wire.dialects.dropped import Dropped, Drops, drop_fields

Block = Mapping[str, Any]

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Formats of images that Messages takes in the request itself."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_THERE = "Messages"


def part_from_block(block: Block, path: str, drops: Drops) -> dict[str, Any]:
    """A text, an image or a document as an input part."""
    if block["type"] == "text":
        drop_fields(block, ("type", "text"), f"{path}.", "the Responses API", drops)
        return {"type": "input_text", "text": block["text"]}
    source = block["source"]
    if block["type"] == "image":
        drop_fields(block, ("type", "source"), f"{path}.", "the Responses API", drops)
        return {"type": "input_image", "image_url": _url(source), "detail": "auto"}
    drop_fields(block, ("type", "source", "title"), f"{path}.", "the Responses API", drops)
    title = {"filename": block["title"]} if block.get("title") else {}
    match source["type"]:
        case "base64":
            return {"type": "input_file", "file_data": _url(source), **title}
        case "url":
            return {"type": "input_file", "file_url": source["url"], **title}
        case _:
            drop_fields({"title": block.get("title")}, (), f"{path}.", "an input text", drops)
            return {"type": "input_text", "text": source["data"]}


def block_from_part(part: Block, path: str, drops: Drops) -> dict[str, Any] | None:
    """A part of a message or a tool's result as a block; None when Messages has no place for it, or for no text."""
    match part["type"]:
        case "input_text" | "output_text":
            return {"type": "text", "text": part["text"]} if part["text"] else None
        case "refusal":
            drops.append(Dropped(f"{path}.refusal", f"a refusal is a text like any other in {_THERE}"))
            return {"type": "text", "text": part["refusal"]}
        case "input_image":
            return _image(part, path, drops)
        case "input_file":
            return _document(part, path, drops)
        case kind:
            drops.append(Dropped(path, f"{_THERE} has no block like {kind}"))
            return None


def blocks_from(content: str | Sequence[Block], path: str, drops: Drops) -> list[dict[str, Any]]:
    """A content as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [made for index, part in enumerate(content) if (made := block_from_part(part, f"{path}[{index}]", drops))]


def arguments_object(arguments: str, path: str, drops: Drops) -> dict[str, Any]:
    """A call's arguments as the object that Messages has in their place."""
    try:
        value = codec.loads(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    if arguments.strip():
        drops.append(Dropped(f"{path}.arguments", f"{_THERE} takes a JSON object only, and this is none"))
    return {}


def _url(source: Block) -> str:
    return source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"


def _image(part: Block, path: str, drops: Drops) -> dict[str, Any] | None:
    source = _source(part.get("image_url"))
    if source is None or source.get("media_type", IMAGES[0]) not in IMAGES:
        drops.append(Dropped(path, f"{_THERE} takes an image by its URL or in base64 as PNG, JPEG, GIF or WebP"))
        return None
    if part.get("detail") not in (None, "auto"):
        drops.append(Dropped(f"{path}.detail", f"{_THERE} has no detail of an image"))
    return {"type": "image", "source": source}


def _document(part: Block, path: str, drops: Drops) -> dict[str, Any] | None:
    source = _source(part.get("file_data")) or _source(part.get("file_url"))
    if source is None:
        drops.append(Dropped(path, f"{_THERE} takes a document by its URL or in base64, not by a file's id"))
        return None
    drop_fields({"detail": part.get("detail")}, (), f"{path}.", _THERE, drops)
    title = {"title": part["filename"]} if part.get("filename") else {}
    return {"type": "document", "source": source, **title}


def _source(url: str | None) -> dict[str, Any] | None:
    if not url:
        return None
    if match := _DATA_URL.fullmatch(url):
        return {"type": "base64", "media_type": match[1], "data": match[2]}
    return {"type": "url", "url": url} if url.startswith(("http://", "https://")) else None
