"""Where gymkit and the openai package disagree on what is valid, each with its reason.

A line reads ``<case> <path> <what was done>``; ``test_oracle`` makes the cases. A difference that no case shows any
more fails the tests, and so does one that nothing here explains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

HOSTED = (
    "additional_tools|apply_patch_call|apply_patch_call_output|code_interpreter_call|compaction|computer_call"
    "|computer_call_output|custom_tool_call|custom_tool_call_output|file_search_call|image_generation_call"
    "|local_shell_call|local_shell_call_output|mcp_approval_request|mcp_approval_response|mcp_call|mcp_list_tools"
    "|program|program_output|shell_call|shell_call_output|tool_search_call|tool_search_output|web_search_call"
    "|compaction_trigger|configuration_update|item_reference"
)


@dataclass(frozen=True)
class Difference:
    """One sort of disagreement."""

    gymkit: Literal["accepts", "rejects"]
    """What gymkit does; the package does the opposite."""
    lines: str
    """Regular expression for the whole of the lines it covers."""
    reason: str
    """Why it stays."""

    def covers(self, verdict: str, line: str) -> bool:
        return verdict == self.gymkit and re.fullmatch(self.lines, line) is not None


DIFFERENCES = [
    Difference(
        "accepts",
        rf"(output|input):({HOSTED}) .*",
        "records of hosted tools are kept as they are: nothing here reads them and each release changes them",
    ),
    Difference(
        "accepts",
        r"tool:(?!function ).*",
        "hosted tools are the agent's provider's affair and are passed on unread",
    ),
    Difference(
        "accepts",
        r"(response|request) (access_programs|background_options|context_management|image|input_transformations"
        r"|moderation|prompt_cache_diagnostics|prompt_cache_options|tool_usage)\b.*",
        "settings of one provider that nothing here reads and NeMo Gym does not know: kept like any extra field",
    ),
    Difference(
        "accepts",
        r"(response|request) (conversation|prompt|reasoning|stream_options|text)\b.*",
        "settings that are passed on unread: an object is asked for, its inside is the service's affair",
    ),
    Difference(
        "accepts",
        r"tool:function .*\.(allowed_callers|async|defer_loading|output_schema)\b.*",
        "settings of a declared function that nothing here reads",
    ),
    Difference(
        "accepts",
        r"(output|input):function_call(_output)? .*\.(async|caller|created_by)\b.*",
        "marks of a provider's own programs on a call: nothing here reads them",
    ),
    Difference(
        "accepts",
        r".*\.prompt_cache_breakpoint\b.*",
        "a hint for one provider's cache that nothing here reads",
    ),
    Difference(
        "accepts",
        r"response error\.(code|misalignment)\b.*",
        "the list of error codes grows, and the code that a service gave is worth more in the row than a refusal",
    ),
    Difference(
        "accepts",
        r"request include(\[\])? = .*",
        "the list of what can be included grows, and the service is who knows it",
    ),
    Difference(
        "accepts",
        r"response usage\.input_tokens_details\.cache_write_tokens.*",
        "a count that the contract does not ask for: services report cached_tokens only",
    ),
    Difference(
        "accepts",
        r"response usage\.(input_tokens_details\.cached|output_tokens_details\.reasoning)_tokens = None",
        "NeMo Gym: a service that does not know a detail says null",
    ),
    Difference(
        "accepts",
        r"request (model|user) = None",
        "NeMo Gym: a row that was a result spells every unset setting as null, and may be an input row again",
    ),
    Difference(
        "accepts",
        r"(output|input):message (output|input)\[\]\.status drop",
        "NeMo Gym: a message without a status is a completed one",
    ),
    Difference(
        "accepts",
        r"output:message output\[\]\.content = '.*'",
        "NeMo Gym: a trajectory holds messages in the request's form, whose content may be plain text",
    ),
    Difference(
        "accepts",
        r"output:function_call_output output\[\]\.(id|status) (drop|= None)",
        "NeMo Gym: a trajectory holds the outputs of executed calls in the request's form, which needs no id or status",
    ),
    Difference(
        "rejects",
        r"(output|input):(uncalled_output .*|function_call_output (output|input)\[\]\.call_id (drop|= None))",
        "an output without a call_id answers no call, so a pair could not be told from a question",
    ),
    Difference(
        "rejects",
        r"input:(reference .*|\w+ input\[\]\.type (drop|= None))",
        "an item without a type is a message; the package takes anything with an id for a reference to a stored item",
    ),
    Difference(
        "rejects",
        r"(input:\w+|request) input drop",
        "a task without an input asks nothing; the package leaves room for a stored prompt in its place",
    ),
]
