"""The top-level keys of a configuration that are not servers, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gymkit.config.relay import AGENTS, ENVIRONMENTS
from gymkit.config.source import Source, origin
from gymkit.config.tree import Tree, leaves
from gymkit.errors import ConfigError
from gymkit.nearest import closest, nearest

SERVER_TYPES = ("resources_servers", "responses_api_models", AGENTS, ENVIRONMENTS)
"""The four kinds of server, by the key that stands under an instance's name."""

HOUSE = frozenset(
    {
        *("config_paths", "default_host", "head_server"),
        *("model_call_capture_dir", "observability_enabled", "token_id_capture"),
    }
)
"""What every command reads: where servers are, and what they record."""

RUN = frozenset(
    {
        *("agent_map", "agent_name", "allow_partial_rollouts", "count_failure_classes_as_zero"),
        *("count_missing_rollouts_as_zero", "disable_aggregation", "dispatch_budget_s", "dispatch_longest_first"),
        *("drain_margin_s", "environment_routing_mode", "environment_server_name", "environment_server_routes"),
        *("fan_out", "input_jsonl_fpath", "interleave_repeats", "limit", "materialized_inputs_jsonl_fpath"),
        *("num_repeats", "num_repeats_add_seed", "num_samples_in_parallel", "output_jsonl_fpath", "prompt_config"),
        *("require_complete", "responses_create_params", "resume_from_cache", "retry_invalid_judge_responses"),
        *("disable_health_check", "health_check_ignored_checks"),
        *("retry_terminal_timeouts", "rollout_collection_driver", "rollouts_jsonl_fpath"),
        *("route_failures_to_sidecar", "skills", "split"),
        *("input_glob", "merge_shards", "force", "judge_failed_only", "overwrite"),
        *("baseline_rollouts_jsonl_fpath", "candidate_rollouts_jsonl_fpaths", "baseline_agent_name"),
        *("candidate_agent_names", "output_dirpath", "report_format"),
    }
)
"""Settings of the ``eval`` commands. A command says which of them it reads (``Config.settings``)."""

FOREIGN = frozenset(
    {
        *("allow_openai_version_skew", "allow_unsupported_pairing", "cache_dir", "component_name"),
        *("disallowed_ports", "health_check_workers"),
        *("max_resident_rollout_tasks", "retain_results_in_memory", "reuse_existing_data_preparation"),
        *(
            "upload_rollouts",
            "dry_run",
            "entrypoint",
            "error_on_agent_without_environment_server",
            "error_on_almost_servers",
        ),
        *("head_server_deps", "hf_token", "json", "model_endpoint_readiness_timeout_seconds"),
        *("nemo_gym_log_dir", "pip_install_verbose", "policy_api_key", "policy_base_url"),
        *("policy_model_name", "port_range_high", "port_range_low", "python_version", "query", "ray_head_node_address"),
        *("results_dir", "server_spinup_timeout_seconds", "skip_venv_if_present", "telemetry"),
        *("use_absolute_ip", "uv_cache_dir", "uv_lock_timeout_seconds", "uv_pip_set_python", "uv_venv_dir", "verbose"),
    }
)
"""NeMo Gym's settings that have nothing to set here (virtualenvs, Ray); accepted, so that its files work unchanged."""

_INTERPOLATION = re.compile(r"\$\{(?:oc\.select:\s*)?([A-Za-z_]\w*)")


def check_top_level(tree: Tree, raw: Tree, sources: Iterable[Source], lenient: Iterable[Source]) -> None:
    """Refuse a top-level key that is no server, no known setting, and no variable that a ``${…}`` uses.

    ``raw`` is ``tree`` before interpolation; what ``lenient`` sources set (``env.yaml``, shared by many runs) passes.
    Raises ConfigError with the nearest right name.
    """
    used = {name for _, value in leaves(raw) if isinstance(value, str) for name in _INTERPOLATION.findall(value)}
    excused = used | {key for source in lenient for key in source.tree}
    known = HOUSE | RUN | FOREIGN
    for key, value in tree.items():
        if is_server(value) or key in known or key in excused:
            continue
        where = origin(key, sources)
        if near := _meant_server_type(value):
            raise ConfigError(f"{where}: {key} holds no server type; did you mean {near!r}?")
        raise ConfigError(f"{where}: {key} is not a setting; {nearest(key, known | excused | set(tree) - {key})}")


def is_server(value: Any) -> bool:
    """Whether the block under a top-level key is a server instance."""
    return isinstance(value, Mapping) and any(server_type in value for server_type in SERVER_TYPES)


def _meant_server_type(block: Any) -> str | None:
    inner = [closest(key, SERVER_TYPES) for key in block] if isinstance(block, Mapping) else []
    return next((near for near in inner if near), None)
