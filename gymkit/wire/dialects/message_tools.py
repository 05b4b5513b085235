"""Tools, the choice among them, and the form of the reply: Messages to Responses and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gymkit.wire.dialects.chat_tools import flattened
from gymkit.wire.dialects.dropped import Dropped, Drops, copy_fields, drop_fields, settings_of

Tool = Mapping[str, Any]

_ANY = {"auto": "auto", "none": "none", "any": "required"}
_MODE = {responses: messages for messages, responses in _ANY.items()}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def tools_from_messages(tools: Sequence[Tool], drops: Drops) -> list[dict[str, Any]]:
    """The tools as the Responses API declares them; those that the provider runs have no place."""
    made = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if tool.get("type") not in (None, "custom"):
            drops.append(Dropped(path, f"the tool {tool['type']} is run by the provider, and this model has another"))
            continue
        drop_fields(
            tool, ("type", "name", "description", "input_schema", "strict"), f"{path}.", "the Responses API", drops
        )
        function = copy_fields(tool, ("name", "description", "strict"))
        made.append({"type": "function", "parameters": tool.get("input_schema") or {}, **function})
    return made


def tools_to_messages(tools: Iterable[Tool], path: str, drops: Drops) -> list[dict[str, Any]]:
    """The tools as Messages declares them; those of a group come by their flat names."""
    made: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        if tool["type"] == "function":
            schema = tool.get("parameters") or {"type": "object", "properties": {}}
            made.append({"input_schema": schema, **copy_fields(tool, ("name", "description", "strict"))})
        elif tool["type"] == "namespace":
            made += tools_to_messages(flattened(tool), f"{path}[{index}].tools", drops)
        else:
            drops.append(Dropped(f"{path}[{index}]", f"Messages has no tool like {tool['type']}"))
    return made


def choice_from_messages(choice: Tool, params: dict[str, Any], drops: Drops) -> None:
    """Put ``tool_choice`` and what it says of parallel calls into ``params``."""
    kind = choice.get("type")
    if kind in _ANY:
        params["tool_choice"] = _ANY[kind]
    elif kind == "tool" and isinstance(choice.get("name"), str):
        params["tool_choice"] = {"type": "function", "name": choice["name"]}
    else:
        drops.append(Dropped("tool_choice", f"the Responses API has no choice like {kind}"))
    if choice.get("disable_parallel_tool_use") is not None:
        params["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]


def choice_to_messages(params: Mapping[str, Any], drops: Drops) -> dict[str, Any] | None:
    """``tool_choice`` as Messages says it; None for the default."""
    choice, parallel = params.get("tool_choice") or "auto", params.get("parallel_tool_calls")
    made: dict[str, Any] = {"type": "auto"}
    if isinstance(choice, str):
        made = {"type": _MODE[choice]}
    elif choice["type"] == "function":
        made = {"type": "tool", "name": choice["name"]}
    else:
        drops.append(Dropped("tool_choice", f"Messages has no choice like {choice['type']}"))
    if parallel is not None and made["type"] != "none":
        made["disable_parallel_tool_use"] = not parallel
    return None if made == {"type": "auto"} else made


def output_from_messages(config: Tool, params: dict[str, Any], drops: Drops) -> None:
    """Put effort and form of the reply (``output_config``) into ``params``."""
    if config.get("effort") is not None:
        params["reasoning"] = {"effort": config["effort"]}
    form = config.get("format")
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        params["text"] = {"format": {"type": "json_schema", "name": "reply", "schema": form.get("schema") or {}}}
    elif form is not None:
        drops.append(Dropped("output_config.format", "the Responses API has no format like it"))
    drop_fields(config, ("effort", "format"), "output_config.", "the Responses API", drops)


def output_to_messages(params: Mapping[str, Any], drops: Drops) -> dict[str, Any]:
    """``reasoning`` and ``text`` as Messages' ``output_config``."""
    effort = settings_of(params, "reasoning", {"effort": str}, drops).get("effort")
    form = settings_of(params, "text", {"format": dict}, drops).get("format", {})
    config: dict[str, Any] = {}
    if effort in _EFFORTS:
        config["effort"] = effort
    elif effort is not None:
        drops.append(Dropped("reasoning.effort", f"Messages has no effort {effort!r}"))
    if form.get("type") == "json_schema":
        config["format"] = {"type": "json_schema", "schema": form.get("schema") or {}}
        rest = {name: value for name, value in form.items() if (name, value) != ("name", "reply")}
        drop_fields(rest, ("type", "schema"), "text.format.", "Messages", drops)
    elif form.get("type") not in (None, "text"):
        drops.append(Dropped("text.format", f"Messages has no format like {form['type']}"))
    drop_fields(params.get("reasoning") or {}, ("effort",), "reasoning.", "Messages", drops)
    drop_fields(params.get("text") or {}, ("format",), "text.", "Messages", drops)
    return config
