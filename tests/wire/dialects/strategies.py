"""Requests and replies in their canonical forms: what a round trip gives back as it was."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gymkit.wire import codec

Json = dict[str, Any]

texts = st.text(min_size=1, max_size=8)
names = st.text("abcdefgh_", min_size=1, max_size=6)
png = st.sampled_from(["data:image/png;base64,AAAA", "https://host/cat.png", "data:image/webp;base64,BB=="])
objects = st.dictionaries(names, st.integers(-9, 9) | texts, max_size=3)
schemas = st.fixed_dictionaries({"type": st.just("object"), "properties": st.just({"n": {"type": "integer"}})})
counts = st.integers(0, 10**6)


def only(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(fields)


def some(required: Json, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def token_fields(draw: st.DrawFn) -> Json:
    written = draw(st.lists(counts, min_size=1, max_size=3))
    return {
        "prompt_token_ids": draw(st.lists(counts, max_size=3)),
        "generation_token_ids": written,
        "generation_log_probs": [-0.5] * len(written),
    }


# --- Chat Completions ---

chat_text = only(type=st.just("text"), text=texts)
chat_image = st.builds(
    lambda url, detail: {"type": "image_url", "image_url": {"url": url, **detail}},
    png,
    st.sampled_from([{}, {"detail": "high"}, {"detail": "low"}]),
)
chat_file = st.just({"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}})
chat_video = st.just({"type": "video_url", "video_url": {"url": "https://host/v.mp4"}})
chat_parts = st.lists(chat_text | chat_image | chat_file, min_size=2, max_size=3) | st.lists(
    chat_image, min_size=1, max_size=1
)


@st.composite
def chat_calls(draw: st.DrawFn, most: int = 2) -> list[Json]:
    calls = []
    for index in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            function = {"name": draw(names), "arguments": draw(texts | st.just('{"a":1}'))}
            calls.append({"id": f"call_{index}", "type": "function", "function": function})
        else:
            custom = {"name": draw(names), "input": draw(texts)}
            calls.append({"id": f"call_{index}", "type": "custom", "custom": custom})
    return calls


@st.composite
def chat_assistants(draw: st.DrawFn, *, parts: bool = True, tokens: bool = True) -> Json:
    written = st.lists(chat_text, min_size=2, max_size=3) if parts else st.nothing()
    message: Json = {"role": "assistant", "content": draw(st.none() | texts | written)}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(texts)
    if draw(st.booleans()):
        message["refusal"] = draw(texts)
    if calls := draw(chat_calls()):
        message["tool_calls"] = calls
    if message == {"role": "assistant", "content": None}:
        message["content"] = draw(texts)
    return {**message, **(draw(token_fields()) if tokens and draw(st.booleans()) else {})}


@st.composite
def chat_messages(draw: st.DrawFn) -> list[Json]:
    messages = [{"role": draw(st.sampled_from(["system", "developer"])), "content": draw(texts)}]
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts | chat_parts)})
        if draw(st.booleans()):
            assistant = draw(chat_assistants())
            messages.append(assistant)
            for call in assistant.get("tool_calls", ()):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(texts | chat_parts)})
    return messages


@st.composite
def chat_tools(draw: st.DrawFn) -> Json:
    function = {"name": draw(names), "description": draw(texts), "parameters": draw(schemas), "strict": True}
    grammar = {"type": "grammar", "grammar": {"definition": draw(texts), "syntax": "lark"}}
    custom = {
        "name": draw(names),
        "description": draw(texts),
        "format": draw(st.sampled_from([grammar, {"type": "text"}])),
    }
    tool = draw(st.sampled_from([{"type": "function", "function": function}, {"type": "custom", "custom": custom}]))
    reference = {"type": tool["type"], tool["type"]: {"name": tool[tool["type"]]["name"]}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [reference]}}
    fields: Json = {"tools": [tool]}
    if draw(st.booleans()):
        fields["tool_choice"] = draw(st.sampled_from(["none", "required", reference, allowed]))
    if draw(st.booleans()):
        fields["parallel_tool_calls"] = draw(st.booleans())
    return fields


@st.composite
def chat_requests(draw: st.DrawFn) -> Json:
    json_schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}}
    settings = draw(
        some(
            {},
            model=texts,
            temperature=st.floats(0, 2),
            top_p=st.floats(0, 1),
            max_tokens=st.integers(1, 99),
            reasoning_effort=st.sampled_from(["low", "high"]),
            verbosity=st.sampled_from(["low", "high"]),
            response_format=st.sampled_from([{"type": "json_object"}, json_schema]),
            metadata=st.just({"k": "v"}),
            user=texts,
            store=st.booleans(),
            safety_identifier=texts,
            prompt_cache_key=texts,
        )
    )
    logprobs = draw(st.sampled_from([{}, {"logprobs": True}, {"logprobs": True, "top_logprobs": 3}]))
    tools = draw(chat_tools()) if draw(st.booleans()) else {}
    return {"messages": draw(chat_messages()), **settings, **logprobs, **tools}


@st.composite
def logprobs(draw: st.DrawFn) -> Json:
    token = {"token": draw(texts), "bytes": [1], "logprob": -0.5}
    return {"content": [{**token, "top_logprobs": [token]}], "refusal": None}


@st.composite
def completions(draw: st.DrawFn) -> Json:
    message = {"refusal": None, **draw(chat_assistants(parts=False))}
    if message["content"] and draw(st.booleans()):
        citation = {"url": "https://host", "title": "t", "start_index": 0, "end_index": 1}
        message["annotations"] = [{"type": "url_citation", "url_citation": citation}]
    ended = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": draw(st.sampled_from([ended, "length", "content_filter"])),
        "logprobs": draw(logprobs()) if message["content"] and draw(st.booleans()) else None,
    }
    read, written = draw(counts), draw(counts)
    usage = {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": draw(some({}, cached_tokens=counts, cache_write_tokens=counts)),
        "completion_tokens_details": draw(some({}, reasoning_tokens=counts)),
    }
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": draw(st.integers(1, 2**31)),
        "model": draw(texts),
        "choices": [choice],
    }
    extras = draw(some({}, usage=st.just(usage), system_fingerprint=texts, service_tier=st.just("default")))
    return {**completion, **extras}


# --- Anthropic Messages ---

text_block = only(type=st.just("text"), text=texts)
image_block = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/cat.png"}},
    ]
)
document_block = st.sampled_from(
    [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}, "title": "a"},
        {"type": "document", "source": {"type": "url", "url": "https://host/a.pdf"}},
    ]
)
thinking_block = st.one_of(
    only(type=st.just("thinking"), thinking=texts, signature=st.just("") | texts),
    only(type=st.just("redacted_thinking"), data=texts),
)


@st.composite
def assistant_blocks(draw: st.DrawFn) -> list[Json]:
    blocks = draw(st.lists(thinking_block, max_size=1)) + draw(st.lists(text_block, max_size=2))
    for index in range(draw(st.integers(0 if blocks else 1, 2))):
        blocks.append({"type": "tool_use", "id": f"call_{index}", "name": draw(names), "input": draw(objects)})
    return blocks


@st.composite
def turns(draw: st.DrawFn) -> list[Json]:
    made: list[Json] = []
    results: list[Json] = []
    for _ in range(draw(st.integers(1, 3))):
        blocks = draw(st.lists(text_block | image_block | document_block, min_size=1, max_size=3))
        made.append({"role": "user", "content": [*results, *blocks]})
        written = draw(assistant_blocks())
        made.append({"role": "assistant", "content": written})
        output = st.just("") | texts | st.lists(image_block, min_size=1, max_size=2)
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": draw(output)}
            for block in written
            if block["type"] == "tool_use"
        ]
    return made


@st.composite
def messages_requests(draw: st.DrawFn) -> Json:
    body: Json = {"max_tokens": draw(st.integers(1, 99)), "messages": draw(turns())}
    body |= draw(some({}, model=texts, system=texts, temperature=st.floats(0, 1), top_p=st.floats(0, 1)))
    if draw(st.booleans()):
        name = draw(names)
        body["tools"] = [{"name": name, "description": draw(texts), "input_schema": draw(schemas)}]
        choices = [{"type": "any"}, {"type": "none"}, {"type": "tool", "name": name}]
        choices.append({"type": "auto", "disable_parallel_tool_use": True})
        choices.append({"type": "any", "disable_parallel_tool_use": False})
        body |= draw(some({}, tool_choice=st.sampled_from(choices)))
    form = {"type": "json_schema", "schema": {"type": "object"}}
    return body | draw(some({}, output_config=st.sampled_from([{"effort": "max"}, {"effort": "low", "format": form}])))


@st.composite
def messages_replies(draw: st.DrawFn) -> Json:
    blocks = draw(assistant_blocks())
    ended = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = draw(some({"input_tokens": counts, "output_tokens": counts}, cache_read_input_tokens=counts))
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": draw(texts),
        "content": blocks,
        "stop_reason": draw(st.sampled_from([ended, "max_tokens", "refusal"])),
        "stop_sequence": None,
        "usage": usage,
    }


# --- Responses: not canonical, whatever a client may send ---

input_text = only(type=st.just("input_text"), text=texts | st.just(""))
input_parts = st.lists(
    input_text
    | st.builds(lambda url: {"type": "input_image", "image_url": url, "detail": "high"}, png)
    | st.just({"type": "input_image", "file_id": "f", "detail": "original"})
    | st.just({"type": "input_file", "file_url": "https://host/a.pdf", "detail": "low"})
    | st.just({"type": "input_video", "video_url": "https://host/v.mp4"}),
    max_size=3,
)
output_parts = st.lists(
    st.builds(lambda text: {"type": "output_text", "text": text, "annotations": []}, texts | st.just(""))
    | st.builds(lambda text: {"type": "refusal", "refusal": text}, texts),
    min_size=1,
    max_size=3,
)
result_parts = st.lists(input_text | st.just({"type": "input_image", "image_url": "https://host/c.gif"}), max_size=2)
roles = st.sampled_from(["user", "system", "developer", "assistant"])
summaries = st.lists(only(type=st.just("summary_text"), text=texts), max_size=2)
call_ids = st.sampled_from(["a", "b"])
arguments = objects.map(lambda value: codec.dumps(value).decode()) | st.sampled_from(["", "not json", "[1]"])

items = st.one_of(
    st.builds(lambda role, content: {"type": "message", "role": role, "content": content}, roles, texts),
    st.builds(lambda role, content: {"role": role, "content": content}, roles, input_parts),
    st.builds(lambda content: {"type": "message", "id": "m", "role": "assistant", "content": content}, output_parts),
    some({"type": st.just("reasoning"), "id": st.just("r"), "summary": summaries}, encrypted_content=texts),
    some(
        {"type": st.just("function_call"), "call_id": call_ids, "name": names, "arguments": arguments},
        namespace=names,
    ),
    st.builds(
        lambda call_id, output: {"type": "function_call_output", "call_id": call_id, "output": output},
        call_ids,
        texts | result_parts,
    ),
    st.just({"type": "web_search_call", "id": "w", "status": "completed"}),
    st.just({"type": "item_reference", "id": "m"}),
)

responses_tools = st.sampled_from(
    [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {"type": "web_search"},
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "function", "name": "g"}]},
        {"type": "custom", "name": "c"},
    ]
)


@st.composite
def responses_requests(draw: st.DrawFn) -> Json:
    optional = some(
        {},
        instructions=texts | st.none(),
        tools=st.lists(responses_tools, max_size=3),
        tool_choice=st.sampled_from(["auto", "none", "required", {"type": "function", "name": "f"}]),
        parallel_tool_calls=st.booleans() | st.none(),
        temperature=st.floats(0, 2) | st.none(),
        max_output_tokens=st.integers(1, 99),
        reasoning=st.sampled_from([None, {"effort": "high", "summary": "auto"}, {"effort": "minimal"}]),
        text=st.sampled_from([None, {"format": {"type": "text"}}, {"format": {"type": "json_object"}}]),
        include=st.lists(st.sampled_from(["message.output_text.logprobs", "reasoning.encrypted_content"]), max_size=2),
        truncation=st.sampled_from(["auto", "disabled", None]),
        store=st.booleans(),
        top_logprobs=st.integers(0, 3),
    )
    return {"input": draw(texts | st.lists(items, max_size=6)), **draw(optional)}
