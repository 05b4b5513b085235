"""What can be done with a run on disk besides reading it; ``Rollouts`` inherits it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.reverify import Reverification, Verifiers
from gymkit.sdk import bridge
from gymkit.sdk.rescoring import default_output, rescore

if TYPE_CHECKING:
    from gymkit.sdk.env import Env


class Stored:
    """A run that lies at ``path``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    async def areverify(
        self,
        env: Env,
        *,
        output: str | os.PathLike[str] | None = None,
        limit: int | None = None,
        concurrency: int = 32,
        judge_failed_only: bool = False,
        force: bool = False,
        overwrite: bool = False,
        resume: bool = False,
    ) -> Self:
        """Score the rollouts again with the verifier of ``env``, and return the run with the new scores.

        The agent is not asked again, and what failed stays failed: ``new.compare(old)`` is the paired change.

        Parameters
        ----------
        env:
            The environment with the changed verifier. It has to be ``stateless``: one that judges by a state of its
            own cannot, unless ``force``d, which goes to ``unsafe_…`` because rewards may be wrong.
        output:
            Main file of the new run, by default ``…_reverified.jsonl`` beside this one. If it is there,
            ``overwrite`` starts anew and ``resume`` scores what it lacks.
        limit, concurrency:
            Only the first so many results; verifier calls in flight.
        judge_failed_only:
            Keep the results as they are, and score only the rollouts whose judge failed.

        Raises ConfigError, StoreError, and ServerError for an environment that cannot be reached.
        """
        source = Artifacts.of(self.path)
        work = Reverification(
            source,
            source.materialized,
            Verifiers.only(env.route()),
            limit=limit,
            judge_failed_only=judge_failed_only,
            concurrency=concurrency,
        )
        target = default_output(self.path) if output is None else Path(output)
        return type(self)(await bridge.arun(rescore(work, target, force=force, overwrite=overwrite, resume=resume)))

    reverify = bridge.twin(areverify)
