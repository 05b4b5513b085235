"""Make ``traces.jsonl`` anew, with verifiers 0.4: see README.md. Run it with a Python that has ``verifiers``."""

# mypy: ignore-errors
from __future__ import annotations

from pathlib import Path

from verifiers.v1.configs.agent import WireAgentConfig
from verifiers.v1.episode import EnvInfo, WireEpisode
from verifiers.v1.graph import MessageNode
from verifiers.v1.state import State
from verifiers.v1.task import WireTaskData
from verifiers.v1.trace import AgentInfo, AgentSpan, Error, ModelCall, Reward, TimeSpan, Timing, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from verifiers.v1.utils.trace_store import TRACES_FILE, write_episode

HERE = Path(__file__).parent
START = 1767225600.0


def episode(number: int, messages: list, *, reward: dict, ok: bool = True, **trace) -> WireEpisode:
    data = WireTaskData(idx=number, name=f"sum-{number}", prompt=f"{number}+1?", answer=str(number + 1), level="easy")
    task = TraceTask[WireTaskData](type="Sum", data=data, key=f"key-{number}")
    nodes = [
        MessageNode(
            parent=place - 1 if place else None,
            message=message,
            sampled=message.role == "assistant",
            timestamp=START + place,
        )
        for place, message in enumerate(messages)
    ]
    calls = [
        ModelCall(node=place, model="some-model", usage=Usage(prompt_tokens=10, completion_tokens=5))
        for place, node in enumerate(nodes)
        if node.sampled
    ]
    timing = Timing(
        start=START, agent=AgentSpan(start=START, end=START + 2), scoring=TimeSpan(start=START + 2, end=START + 2.5)
    )
    one = Trace[WireTaskData, State, WireAgentConfig](
        id=f"trace-{number}",
        task=task,
        agent=AgentInfo[WireAgentConfig](config=WireAgentConfig(model="some-model")),
        nodes=nodes,
        calls=calls,
        rewards=reward,
        metrics={"turns": float(len(calls))},
        is_completed=ok,
        ok=ok,
        timing=timing,
        **trace,
    )
    return WireEpisode(id=f"episode-{number}", env=EnvInfo(id="sums"), task=task, ok=ok, traces=[one])


def main() -> None:
    (HERE / TRACES_FILE).unlink(missing_ok=True)
    call = ToolCall(id="call_1", name="add", arguments='{"a": 1, "b": 1}')
    worked = [
        SystemMessage(content="Be brief."),
        UserMessage(content="1+1?"),
        AssistantMessage(reasoning_content="one and one", tool_calls=[call]),
        ToolMessage(tool_call_id="call_1", content="2"),
        AssistantMessage(content="It is 2."),
    ]
    asked = [UserMessage(content="2+1?"), AssistantMessage(content="4\u2028?")]
    right = {"correct": Reward(score=1.0, weight=0.75), "short": Reward(score=1.0, weight=0.25)}
    half = {"correct": Reward(score=0.0, weight=0.75), "short": Reward(score=1.0, weight=0.25)}
    lost = {"errors": [Error(type="ProviderError", message="the provider is gone", status_code=503)]}
    episodes = [
        episode(1, worked, reward=right, stop_condition="agent_completed"),
        episode(2, asked, reward=half, stop_condition="max_turns"),
        episode(1, worked, reward=right),
        episode(2, asked[:1], reward={"correct": None}, ok=False, **lost),
        episode(3, asked, reward={"correct": None}, is_timeout=True),
    ]
    for each in episodes:
        write_episode(HERE, each)


if __name__ == "__main__":
    main()
