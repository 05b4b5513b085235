"""Where an episode of simulated users differs from NeMo Gym 0.7.0's, on purpose. Everything else is the same."""

from __future__ import annotations

from typing import Final

from tests.usersim.compared import Difference

_TOLD = r"result\.(verification\.)?"
_DATA = r"result\.verification\.verifier_data\."

DIFFERENCES: Final = (
    Difference(
        "rows tell more: how the episode ended, seconds, the assistant's own report, and the audit of the user",
        rf"result\.(gymkit|ng_agent_observations|invocations\[\]\.(seconds|observations\.records\[\]\.duration_ms))"
        rf"|{_DATA}user_audit",
    ),
    Difference(
        "sentences are our own: they name the server, the role and the bound",
        rf"(failure|result(\.verification|\.usersim_result\.simulation_outcome)?)\.failure_(reason|detail)"
        rf"|{_DATA}(scorer_result|assistant_eval)\.(.*\.)?(error|reasoning|skipped_reason)",
    ),
    Difference("a failure has a kind that names the role", r"failure\.failure_kind"),
    Difference(
        "a supporting endpoint's 4xx is terminal, since asking again cannot help",
        r"failure\.terminal",
        ("gate_refuses", "tools_refuse"),
    ),
    Difference(
        "an episode that its user spoiled is masked, with a kind of its own",
        rf"{_TOLD}(reward|mask_sample|failure_kind)",
        ("user_plays_assistant",),
    ),
    Difference(
        "a scorer whose own judge call failed neither passes nor is it an unmasked zero",
        rf"{_TOLD}(reward|mask_sample|failure_kind|reward_components\.scorer_(applied|pass))"
        rf"|result\.verification\.scenario_completed|{_DATA}(scenario_completed|scorer_state|scorer_status_proposal)",
        ("facts_refuse", "dynamic_refuses", "parity_refuses"),
    ),
    Difference(
        "a score outside its scale is a judge failure and no reward above 1",
        rf"{_TOLD}(reward|mask_sample|failure_kind|reward_components\.(assistant_quality|quality\.helpfulness))"
        rf"|{_DATA}normalized_axis_scores\.helpfulness",
        ("judge_exceeds",),
    ),
    Difference(
        "tool calls above the limit are answered with an error, so that the transcript stays valid",
        r"result\.(invocations\[\]\.(request\.input|observations\.records\[\]\.conversation)"
        r"|usersim_result\.conversation_messages)|judged\[\]\.input\[\]\.content",
        ("above_the_limit",),
    ),
    Difference(
        "retrieval that had to go by words says so",
        r"result\.usersim_result\.(retrieval|simulation_outcome\.warnings)",
        ("financial_services", "finance_dynamic", "finance_dynamic_refuses", "above_the_limit"),
    ),
    Difference(
        "a user that never got to speak is a masked zero, as the reference page says, and not a terminal failure",
        r"failure|result",
        ("user_is_silent",),
    ),
    Difference(
        "a reply that holds nothing has no message, and is incomplete where nothing says that it was cut short",
        r"result\.invocations\[\]\.(response\.(output|status)|observations\.records\[\]\.(conversation|status))",
        ("assistant_is_empty", "assistant_overflows"),
    ),
    Difference(
        "an assistant's mistake has the same fields as every verdict",
        rf"result\.usersim_result\.simulation_outcome\.warnings|{_DATA}(probe_type|scorer_state)",
        ("assistant_calls_nothing_offered", "assistant_calls_a_tool_not_offered", "assistant_answers"),
    ),
)
"""The list. A test fails for a difference that is not here, and for an entry that explains nothing."""
