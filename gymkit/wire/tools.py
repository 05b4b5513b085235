"""The tools that a request declares, and the choice among them."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypedDict


class FunctionTool(TypedDict):
    """A function that the agent may ask for; in a task row, one that the environment serves."""

    type: Literal["function"]
    """Says which tool this is."""
    name: str
    """Name of the function."""
    description: NotRequired[str | None]
    """What the function does, for the model."""
    parameters: NotRequired[dict[str, Any] | None]
    """JSON schema of the arguments."""
    strict: NotRequired[bool | None]
    """Whether the model's arguments must follow the schema."""


class HostedTool(TypedDict):
    """A tool that the agent's provider runs: kept as it is, checked no further than this."""

    type: str
    """One of ``HOSTED_TOOLS``."""


HOSTED_TOOLS = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "custom",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
"""Types of hosted tools."""


def _tool_tag(tool: Any) -> str | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        return None
    return "hosted" if kind in HOSTED_TOOLS else kind


Tool = Annotated[
    Annotated[FunctionTool, Tag("function")] | Annotated[HostedTool, Tag("hosted")],
    Discriminator(_tool_tag),
]
"""A tool."""


class AllowedTools(TypedDict):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    """Says which choice this is."""
    mode: Literal["auto", "required"]
    """Whether one of them must be called."""
    tools: list[dict[str, Any]]
    """The tools, each by type and name."""


class NamedTool(TypedDict):
    """A choice of one function or custom tool."""

    type: Literal["function", "custom"]
    """Says which choice this is."""
    name: str
    """Name of the tool."""


class McpTool(TypedDict):
    """A choice of an MCP server, or of one of its tools."""

    type: Literal["mcp"]
    """Says which choice this is."""
    server_label: str
    """Label of the server."""
    name: NotRequired[str | None]
    """Name of the tool."""


class HostedChoice(TypedDict):
    """A choice of a hosted tool."""

    type: Literal[
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "programmatic_tool_calling",
        "shell",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    ]
    """The tool."""


_ChosenTool = Annotated[AllowedTools | NamedTool | McpTool | HostedChoice, Field(discriminator="type")]


def _choice_tag(choice: Any) -> str:
    return "tool" if isinstance(choice, dict) else "mode"


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("mode")] | Annotated[_ChosenTool, Tag("tool")],
    Discriminator(_choice_tag),
]
"""Whether a tool is called, and which."""
