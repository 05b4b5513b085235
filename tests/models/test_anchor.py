"""NeMo Gym's own classes read what our model servers say, where it is installed (``GYMKIT_ANCHOR_PYTHON``)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gymkit.models.script import Script
from gymkit.models.scripted import ScriptedModel, ScriptedModelConfig
from gymkit.testing.agent import answer, call
from gymkit.wire import codec
from gymkit.wire.dialects.request_from_messages import request_from_messages
from tests.models.doubles import HELLO, ask, completion, service
from tests.models.test_chat import model as chat_model
from tests.models.test_chat import overflow, vllm

pytestmark = pytest.mark.anchor

PYTHON = os.environ.get("GYMKIT_ANCHOR_PYTHON")

READER = """
import json, sys
from nemo_gym.openai_utils import NeMoGymChatCompletion, NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
classes = {"response": NeMoGymResponse, "completion": NeMoGymChatCompletion}
classes["request"] = NeMoGymResponseCreateParamsNonStreaming
for kind, value in json.load(open(sys.argv[1])):
    read = classes[kind].model_validate(value)
    told = read.model_dump(mode="json", exclude_unset=True)
    if kind == "response":
        assert [item["type"] for item in told["output"]] == [item["type"] for item in value["output"]], told
print("all read")
"""


def said() -> list[tuple[str, Any]]:
    turn = [{"type": "reasoning", "id": "rs", "summary": []}, answer("x"), call("f", "c", n=1)]
    scripted = ScriptedModel("policy", ScriptedModelConfig(token_ids=True), script=Script(lambda _: turn))
    blocks = [{"type": "text", "text": "x"}, {"type": "image", "source": {"type": "url", "url": "http://h/a.png"}}]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    used = [thought, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]
    turns = [
        {"role": "user", "content": blocks},
        {"role": "assistant", "content": used},
        {"role": "user", "content": result},
    ]
    found = [
        ("response", ask(scripted, "/v1/responses", {"input": "x"}).json()),
        ("completion", ask(scripted, "/v1/chat/completions", {"messages": HELLO}).json()),
        ("request", request_from_messages({"messages": turns, "max_tokens": 9, "system": "be"}).value),
    ]
    for reply, tokens in ((completion({"reasoning": "hm"}), False), (vllm(), True), (overflow(), True)):
        with service(reply) as (url, _):
            server = chat_model(url, return_token_id_information=tokens)
            found.append(("response", ask(server, "/v1/responses", {"input": "x"}).expect_ok().json()))
    return found


@pytest.mark.skipif(PYTHON is None, reason="GYMKIT_ANCHOR_PYTHON names no Python with nemo-gym")
def test_nemo_gym_reads_our_replies(tmp_path: Path) -> None:
    path = tmp_path / "said.json"
    path.write_bytes(codec.dumps(said()))
    command = [str(PYTHON), "-c", READER, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert run.stdout.strip().endswith("all read"), run.stderr
