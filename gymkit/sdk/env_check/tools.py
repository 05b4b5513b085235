"""Rules for tasks and tools: what agents are told, and what they get when they call it, well or badly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gymkit.sdk.check.excerpt import counted
from gymkit.sdk.check.finding import Judgement, Rule, passed, skipped
from gymkit.sdk.env_check.evidence import Evidence
from gymkit.sdk.env_check.trial import Post
from gymkit.servers.tool import RESERVED, is_tool_name

_NO_TOOLS: Final = "its tasks declare no tools"


def _tasks(seen: Evidence) -> Judgement:
    if not seen.rows:
        return Judgement("fail", came="no tasks", fix="Give it tasks: tasks= of Env or of Env.define.")
    if seen.row_problems:
        more = len(seen.row_problems) - 1
        rest = f" (and {more} more)" if more else ""
        fix = "Correct the rows: responses_create_params as the Responses API has them, and the fields it needs."
        return Judgement("fail", counted(len(seen.rows), "task"), f"{seen.row_problems[0]}{rest}", fix)
    return passed(f"{counted(len(seen.rows), 'task')}, each a valid request")


def _declared(seen: Evidence) -> Judgement:
    declared = seen.declared
    missing = [post for trial in seen.alone for post in trial.calls if post.status == 404]
    if missing:
        fix = "Serve the tool, or take it out of the tasks' responses_create_params.tools."
        return Judgement("fail", missing[0].sent, missing[0].came, fix)
    if seen.served is not None and seen.rows:
        if absent := sorted(declared.keys() - seen.served.keys()):
            fix = "Serve the tool, or take it out of the tasks' responses_create_params.tools."
            return Judgement("fail", "the tasks' tools", f"{', '.join(absent)}: declared, and not served", fix)
        if unused := [name for name in seen.served if name not in declared]:
            fix = "Declare it in responses_create_params.tools of the tasks that need it: agents know no other tools."
            return Judgement("warn", "the tasks' tools", f"{', '.join(unused)}: served, and declared in no task", fix)
        stale = [name for name, tool in declared.items() if _differs(tool, seen.served[name])]
        if stale:
            fix = "Put the schema that is served into the tasks again; a saved environment does when it is saved anew."
            return Judgement(
                "warn", "the tasks' tools", f"{', '.join(stale)}: declared otherwise than it is served", fix
            )
    if not declared:
        return skipped(_NO_TOOLS) if seen.rows else skipped(seen.unchecked)
    return passed(f"{counted(len(declared), 'tool')}, declared as served: {', '.join(declared)}")


def _differs(declared: Mapping[str, Any], served: Mapping[str, Any]) -> bool:
    names, there = ((each.get("parameters") or {}).get("properties") or {} for each in (declared, served))
    return {name: field.get("type") for name, field in names.items()} != {
        name: field.get("type") for name, field in there.items()
    }


def _schemas(seen: Evidence) -> Judgement:
    if not seen.declared:
        return skipped(_NO_TOOLS if seen.rows else seen.unchecked)
    for name, tool in seen.declared.items():
        if problem := _schema_problem(name, tool):
            fix = "Declare the tool as an object schema with a property for each argument; @tool makes one."
            return Judgement("fail", f"the tool {name}", problem, fix)
    return passed(f"{counted(len(seen.declared), 'schema')}, each an object of named arguments")


def _schema_problem(name: str, tool: Mapping[str, Any]) -> str | None:
    parameters = tool.get("parameters")
    if not is_tool_name(name):
        return (
            "its name is a route of the server" if name in RESERVED else "its name has more than letters, digits, _, -"
        )
    if parameters is None:
        return None
    properties = parameters.get("properties", {}) if isinstance(parameters, Mapping) else None
    if not isinstance(properties, Mapping) or parameters.get("type") != "object":
        return "its parameters are no schema of an object"
    if unknown := [each for each in parameters.get("required") or () if each not in properties]:
        return f"it requires {unknown[0]!r}, which is not among its properties"
    return next(
        (f"its argument {each!r} has no schema" for each in properties if not _is_schema(properties[each])), None
    )


def _is_schema(value: Any) -> bool:
    return isinstance(value, Mapping)


def _descriptions(seen: Evidence) -> Judgement:
    if not seen.declared:
        return skipped(_NO_TOOLS if seen.rows else seen.unchecked)
    bare = [name for name, tool in seen.declared.items() if not tool.get("description")]
    arguments = [
        f"{name}({argument})"
        for name, tool in seen.declared.items()
        for argument, schema in ((tool.get("parameters") or {}).get("properties") or {}).items()
        if isinstance(schema, Mapping) and not schema.get("description")
    ]
    if bare or arguments:
        fix = "Write a docstring: a line for the tool, and under Args: a line for each argument."
        return Judgement("warn", "the tasks' tools", f"no description: {', '.join([*bare, *arguments])}", fix)
    return passed("every tool and every argument is described")


def _answers(seen: Evidence) -> Judgement:
    calls = [post for trial in seen.alone for post in trial.calls]
    if not calls:
        return skipped(seen.unchecked if not seen.alone else _NO_TOOLS)
    for post in calls:
        if post.error is not None:
            return Judgement("fail", post.sent, post.came, "Answer within timeout= of this check; agents wait as long.")
        if post.status == 422:
            fix = "Let the schema say what the tool refuses (a type, an enum, a minimum), so that agents can know."
            return Judgement("warn", post.sent, post.came, fix)
        if post.status >= 500:
            fix = "Catch what can go wrong and return a sentence: an agent reads this text and nothing else."
            return Judgement("warn", post.sent, post.came, fix)
    return passed(f"{counted(len(calls), 'call')} with arguments that fit, the first: {calls[0].sent} {calls[0].came}")


def _json(seen: Evidence) -> Judgement:
    posts = [post for trial in seen.alone for post in (trial.seed, *trial.calls) if post and post.reply]
    if not posts:
        return skipped(seen.unchecked)
    for post in posts:
        if post.content is None and post.reply and post.reply.body.strip() != b"null":
            fix = "Answer with JSON; a tool's result is text, a number, a list or an object."
            return Judgement("fail", post.sent, post.came, fix)
        if "is not JSON" in post.came and post.status == 500:
            fix = "Return text, numbers, lists and dicts: what else the tool holds stays in its state."
            return Judgement("fail", post.sent, post.came, fix)
    return passed(f"{counted(len(posts), 'answer')} in JSON")


def _misfits(seen: Evidence) -> Judgement:
    if not seen.misfits:
        return skipped(_NO_TOOLS if seen.after else seen.unchecked)
    for wrong, post in seen.misfits:
        if post.status >= 500 or post.error is not None:
            fix = "Check the arguments before they are used: annotations do that for a tool made with @tool."
            return Judgement("fail", f"{wrong}: {post.sent}", post.came, fix)
    if lost := _lost_afterwards(seen):
        fix = "Leave the session as it was when a call is refused."
        return Judgement("fail", f"{lost.sent}, after calls that were refused", lost.came, fix)
    for wrong, post in seen.misfits:
        if post.ok:
            fix = "Refuse what the schema forbids (422): an agent that is not told goes on with a wrong belief."
            return Judgement("warn", f"{wrong}: {post.sent}", post.came, fix)
    return passed(f"{counted(len(seen.misfits), 'call')} refused with a reason, and the session went on")


def _lost_afterwards(seen: Evidence) -> Post | None:
    """A call that went well on its own and not after refused ones."""
    good = _statuses(seen.alone[0].calls) if seen.alone else {}
    after = seen.after.calls if seen.after else ()
    return next((post for post in after if not post.ok and good.get(post.path, 500) < 300), None)


def _statuses(posts: Iterable[Post]) -> dict[str, int]:
    return {post.path: post.status for post in posts}


def _unknown(seen: Evidence) -> Judgement:
    post = seen.unknown
    if post is None:
        return skipped(seen.unchecked)
    if 400 <= post.status < 500:
        return passed(post.came, post.sent)
    fix = "Answer an unknown name with 404 and a sentence that names the tools there are."
    return Judgement("fail" if post.ok else "warn", post.sent, post.came, fix)


RULES: Final = (
    Rule("tasks", "What is no valid request is refused before a run starts, or by the agent's service.", _tasks),
    Rule(
        "declared tools",
        "Agents see what the task declares and can call what is served: both must be the same.",
        _declared,
    ),
    Rule(
        "schemas",
        "Agents write their arguments by the schema, and providers refuse one that is not well formed.",
        _schemas,
    ),
    Rule(
        "descriptions",
        "A tool that nobody explained is called wrongly, and the reward measures the guess.",
        _descriptions,
    ),
    Rule(
        "tools answer",
        "A call that follows the schema should be answered; what a tool raises costs the agent a step.",
        _answers,
    ),
    Rule("JSON results", "What is no JSON reaches no agent.", _json),
    Rule(
        "bad arguments", "Agents send wrong arguments: they must get a sentence back, and keep their session.", _misfits
    ),
    Rule("unknown tool", "Agents ask for tools that do not exist: that is an answer to them, not the end.", _unknown),
)
"""In the order of the report."""
