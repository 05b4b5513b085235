"""Settings of NeMo Gym's ``vllm_model`` that its files spell out and that have nothing to set here."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class ForeignSettings(BaseModel):
    """Accepted so that its files work unchanged; one that would ask for something we do not do is refused."""

    endpoint_file: None = None
    """A file that names the service's address: must be null."""
    endpoint_stale_grace_s: float = 300.0
    """Belongs to ``endpoint_file``."""
    endpoint_connection_retries: int | None = None
    """Belongs to ``endpoint_file``."""
    endpoint_check_interval_s: float = 10.0
    """Belongs to ``endpoint_file``."""
    request_prompt_and_generation_token_ids: bool = False
    """Token ids are always asked for in the completion itself."""
    supply_prefix_token_ids: Literal[False] = False
    """An extension of the service: must be false."""
    use_completions_api: Literal[False] = False
    """For base models without a chat template: must be false."""
    is_responses_native: Literal[False] = False
    """For services with ``/responses``: must be false, use ``openai_model``."""
