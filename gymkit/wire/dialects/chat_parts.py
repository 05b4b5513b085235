"""The parts of a message: Responses to Chat and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymkit.wire.dialects.dropped import Dropped, Drops, copy_fields

_DETAILS = ("auto", "low", "high")


def to_chat(content: str | Sequence[Mapping[str, Any]], path: str, drops: Drops) -> str | list[dict[str, Any]]:
    """A content in Chat's parts; one part of text becomes plain text, which every chat template takes."""
    if isinstance(content, str):
        return content
    parts = [chat for index, part in enumerate(content) if (chat := _to_chat(part, f"{path}[{index}]", drops))]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def from_chat(
    content: str | Sequence[Mapping[str, Any]], path: str, drops: Drops, *, videos: bool = True
) -> str | list[dict[str, Any]]:
    """A content in the Responses API's input parts; a tool's result has no ``videos``."""
    if isinstance(content, str):
        return content
    made = []
    for index, part in enumerate(content):
        if part["type"] == "video_url" and not videos:
            drops.append(Dropped(f"{path}[{index}]", "the Responses API has no video in a tool's result"))
        elif converted := _from_chat(part, f"{path}[{index}]", drops):
            made.append(converted)
    return made


def _to_chat(part: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any] | None:
    match part["type"]:
        case "input_text" | "output_text":
            return {"type": "text", "text": part["text"]}
        case "refusal":
            return {"type": "refusal", "refusal": part["refusal"]}
        case "input_image":
            return _image_to_chat(part, path, drops)
        case "input_file":
            return _file_to_chat(part, path, drops)
        case "input_video":
            video = part.get("video_url", part.get("video"))
            return {"type": "video_url", "video_url": video if isinstance(video, Mapping) else {"url": video}}
        case kind:
            drops.append(Dropped(path, f"Chat Completions has no part like {kind}"))
            return None


def _image_to_chat(part: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any] | None:
    if part.get("image_url") is None:
        drops.append(Dropped(path, "Chat Completions takes an image by its URL only, not by a file's id"))
        return None
    image = {"url": part["image_url"]}
    detail = part.get("detail")
    if detail in _DETAILS and detail != "auto":
        image["detail"] = detail
    elif detail is not None and detail != "auto":
        drops.append(Dropped(f"{path}.detail", f"Chat Completions has no detail {detail!r}"))
    return {"type": "image_url", "image_url": image}


def _file_to_chat(part: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any] | None:
    file = copy_fields(part, ("file_data", "file_id", "filename"))
    if "file_data" not in file and "file_id" not in file:
        drops.append(Dropped(path, "Chat Completions takes a file by its content or its id, not by its URL"))
        return None
    if part.get("detail") is not None:
        drops.append(Dropped(f"{path}.detail", "Chat Completions has no detail of a file"))
    return {"type": "file", "file": file}


def _from_chat(part: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any] | None:
    match part["type"]:
        case "text":
            return {"type": "input_text", "text": part["text"]}
        case "refusal":
            drops.append(Dropped(f"{path}.refusal", "a refusal in a message to the model is a text like any other"))
            return {"type": "input_text", "text": part["refusal"]}
        case "image_url":
            image = part["image_url"]
            detail = image.get("detail") or "auto"
            if detail not in _DETAILS:
                drops.append(Dropped(f"{path}.image_url.detail", f"the Responses API has no detail {detail!r}"))
                detail = "auto"
            return {"type": "input_image", "image_url": image["url"], "detail": detail}
        case "file":
            return {"type": "input_file", **copy_fields(part.get("file", {}), ("file_data", "file_id", "filename"))}
        case "video_url":
            return {"type": "input_video", "video_url": part.get("video_url")}
        case kind:
            drops.append(Dropped(path, f"the Responses API has no part like {kind}"))
            return None
