"""Tools, the choice among them, and the form of the reply: Responses to Chat and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gymkit.wire.dialects.dropped import Dropped, Drops, copy_fields

_FUNCTION = ("name", "description", "parameters", "strict")
_CUSTOM = ("name", "description")
_SCHEMA = ("name", "description", "schema", "strict")

Tool = Mapping[str, Any]


def flat_name(namespace: str | None, name: str) -> str:
    """The name of a tool in a group, for a dialect without groups."""
    return f"{namespace}__{name}" if namespace else name


def tools_to_chat(tools: Iterable[Tool], path: str, drops: Drops) -> list[dict[str, Any]]:
    """The tools as Chat declares them; those of a group come by their flat names."""
    made: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        match tool["type"]:
            case "function":
                made.append({"type": "function", "function": copy_fields(tool, _FUNCTION)})
            case "custom":
                made.append({"type": "custom", "custom": {**copy_fields(tool, _CUSTOM), **_grammar_to_chat(tool)}})
            case "namespace":
                made += tools_to_chat(flattened(tool), f"{path}[{index}].tools", drops)
            case kind:
                drops.append(Dropped(f"{path}[{index}]", f"Chat Completions has no tool like {kind}"))
    return made


def members(group: Tool) -> list[dict[str, Any]]:
    """The tools of a ``namespace``."""
    tools = group.get("tools")
    listed = tools if isinstance(tools, list) else []
    return [tool for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def flattened(group: Tool) -> list[dict[str, Any]]:
    """The tools of a ``namespace`` by their flat names."""
    name = str(group.get("name") or "")
    return [{**tool, "name": flat_name(name, tool["name"])} for tool in members(group)]


def tools_from_chat(tools: Sequence[Tool], path: str, drops: Drops) -> list[dict[str, Any]]:
    """The tools as the Responses API declares them."""
    made: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        match tool.get("type", "function"):
            case "function" if isinstance(tool.get("function"), Mapping):
                made.append({"type": "function", **copy_fields(tool["function"], _FUNCTION)})
            case "custom" if isinstance(tool.get("custom"), Mapping):
                custom = tool["custom"]
                made.append({"type": "custom", **copy_fields(custom, _CUSTOM), **_grammar_from_chat(custom)})
            case kind:
                drops.append(Dropped(f"{path}[{index}]", f"the Responses API has no tool like {kind} of Chat"))
    return made


def choice_to_chat(choice: str | Tool, drops: Drops) -> str | dict[str, Any] | None:
    """``tool_choice`` as Chat says it."""
    if isinstance(choice, str):
        return choice
    match choice["type"]:
        case "function" | "custom" as kind:
            return {"type": kind, kind: {"name": choice["name"]}}
        case "allowed_tools":
            tools = [_reference_to_chat(tool) for tool in choice["tools"]]
            return {"type": "allowed_tools", "allowed_tools": {"mode": choice["mode"], "tools": tools}}
        case kind:
            drops.append(Dropped("tool_choice", f"Chat Completions has no choice like {kind}"))
            return None


def choice_from_chat(choice: str | Tool, drops: Drops) -> str | dict[str, Any] | None:
    """``tool_choice`` as the Responses API says it."""
    if isinstance(choice, str):
        return choice
    kind = choice.get("type")
    named = choice.get(kind) if isinstance(kind, str) else None
    if kind in ("function", "custom") and isinstance(named, Mapping) and "name" in named:
        return {"type": kind, "name": named["name"]}
    if kind == "allowed_tools" and isinstance(named, Mapping) and {"mode", "tools"} <= named.keys():
        tools = [_reference_from_chat(tool) for tool in named["tools"]]
        return {"type": "allowed_tools", "mode": named["mode"], "tools": tools}
    drops.append(Dropped("tool_choice", f"the Responses API has no choice like {kind} of Chat"))
    return None


def format_to_chat(form: Tool) -> dict[str, Any]:
    """``text.format`` as Chat's ``response_format``."""
    if form.get("type") != "json_schema":
        return dict(form)
    return {"type": "json_schema", "json_schema": copy_fields(form, _SCHEMA)}


def format_from_chat(form: Tool) -> dict[str, Any]:
    """Chat's ``response_format`` as ``text.format``."""
    schema = form.get("json_schema")
    if form.get("type") != "json_schema" or not isinstance(schema, Mapping):
        return dict(form)
    return {"type": "json_schema", "name": "reply", **copy_fields(schema, _SCHEMA)}


def _grammar_to_chat(tool: Tool) -> dict[str, Any]:
    form = tool.get("format")
    if not isinstance(form, Mapping):
        return {}
    grammar = copy_fields(form, ("definition", "syntax"))
    return {"format": {"type": "grammar", "grammar": grammar} if form.get("type") == "grammar" else dict(form)}


def _grammar_from_chat(custom: Tool) -> dict[str, Any]:
    form = custom.get("format")
    if not isinstance(form, Mapping):
        return {}
    grammar = form.get("grammar")
    return {"format": {"type": "grammar", **grammar} if isinstance(grammar, Mapping) else dict(form)}


def _reference_to_chat(tool: Tool) -> dict[str, Any]:
    kind = tool.get("type")
    return {"type": kind, kind: {"name": tool["name"]}} if kind in ("function", "custom") else dict(tool)


def _reference_from_chat(tool: Tool) -> dict[str, Any]:
    kind = tool.get("type")
    named = tool.get(kind) if isinstance(kind, str) else None
    return {"type": kind, "name": named["name"]} if isinstance(named, Mapping) and "name" in named else dict(tool)
