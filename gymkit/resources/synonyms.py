"""``synonyms``: look up the value of several words, then hand in the list of values in the order of the words.

A word's value is the sum of its code points. Each task has a mine: the prompt's own word, whose value does not belong
in the answer. NeMo Gym calls it ``example_multi_step``.
"""

from __future__ import annotations

from typing import Any

from gymkit.servers.resources import ResourcesServer, Verdict
from gymkit.servers.tool import tool
from gymkit.wire import codec
from gymkit.wire.tasks import TaskRow


class SynonymsTask(TaskRow):
    """A task of the synonyms."""

    id: int
    """Number of the task."""
    expected_synonyms: list[str]
    """The words to look up, in order."""
    expected_synonym_values: list[int]
    """Their values, in the same order: the answer."""
    minefield_label: str
    """The word whose value must not be in the answer."""
    minefield_label_value: int
    """The value of that word."""


class Synonyms(ResourcesServer[None]):
    """The synonyms' server: reward 1 when the last list handed in is the expected one, else 0."""

    implementation = "synonyms"
    stateless = True
    Task = SynonymsTask

    @tool
    def get_synonym_value(self, state: None, synonym: str) -> dict[str, int]:
        """Look up the value of one synonym."""
        return {"synonym_value": sum(map(ord, synonym))}

    @tool
    def extract_synonym_values(self, state: None, synonym_values: list[int]) -> dict[str, bool]:
        """Hand in the values of all synonyms, in order."""
        return {"success": True}

    def verify(self, state: None, task: SynonymsTask, response: dict[str, Any]) -> Verdict:
        """1.0 for the expected list in the expected order; extras say how far off an answer was."""
        found = _last_answer(response["output"])
        expected = task.expected_synonym_values
        overlap = len(set(found) & set(expected)) / len(set(expected)) if expected else 1.0
        correct = found == expected
        return Verdict(
            float(correct),
            extras={
                "parsed_synonym_values": found,
                "accuracy": correct,
                "set_overlap": overlap,
                "original_term_minefield_hit": task.minefield_label_value in found,
                "order_instruction_following_failure": not correct and sorted(found) == sorted(expected),
            },
        )


def _last_answer(output: list[dict[str, Any]]) -> list[int]:
    calls = [
        each for each in output if each.get("type") == "function_call" and each["name"] == "extract_synonym_values"
    ]
    if not calls:
        return []
    try:
        arguments = codec.loads(calls[-1]["arguments"].encode("utf-8", "surrogatepass"))
    except ValueError:
        return []
    values = arguments.get("synonym_values") if isinstance(arguments, dict) else None
    return [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
