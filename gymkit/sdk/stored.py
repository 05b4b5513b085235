"""What can be done with a run on disk besides reading it; ``Rollouts`` inherits it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gymkit.errors import MissingExtra
from gymkit.sdk import bridge

if TYPE_CHECKING:
    import datasets

    from gymkit.collect.imported import Foreign
    from gymkit.frames.records import Records
    from gymkit.sdk.env import Env
    from gymkit.sdk.restored import Restored

Where = str | os.PathLike[str]


class Stored:
    """A run that lies at ``path``."""

    def __init__(self, path: Where) -> None:
        self.path = Path(path)

    async def areverify(
        self,
        env: Env,
        *,
        output: Where | None = None,
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
            The environment with the changed verifier. It has to be the run's, by its name, and ``stateless``: one that
            judges by a state of its own cannot, unless ``force``d, which goes to ``unsafe_…`` because rewards may be
            wrong.
        output:
            Main file of the new run, by default ``…_reverified.jsonl`` beside this one. If it is there,
            ``overwrite`` starts anew and ``resume`` scores what it lacks.
        limit, concurrency:
            Only the first so many results; verifier calls in flight.
        judge_failed_only:
            Keep the results as they are, and score only the rollouts whose judge failed.

        Raises ConfigError, StoreError, and ServerError for an environment that cannot be reached.
        """
        from gymkit.collect.artifacts import Artifacts
        from gymkit.collect.reverify import Reverification  # brings aiohttp, which reading a run needs not
        from gymkit.sdk.rescoring import default_output, rescore, verifier_of

        source = Artifacts.of(self.path)
        work = Reverification(
            source,
            source.materialized,
            verifier_of(env),
            limit=limit,
            judge_failed_only=judge_failed_only,
            concurrency=concurrency,
        )
        target = default_output(self.path) if output is None else Path(output)
        return type(self)(await bridge.arun(rescore(work, target, force=force, overwrite=overwrite, resume=resume)))

    reverify = bridge.twin(areverify)

    @classmethod
    def from_inspect(cls, log: Where, *, output: Where | None = None, scorer: str | None = None) -> Self:
        """Take in a log of Inspect AI, ``.eval`` or ``.json``, as a run of ours, and open it.

        Samples are tasks and epochs rollouts; a sample with an error is ``failed``, one without a score ``missing``.
        ``reward`` is the score of ``scorer`` (by default the first), letters as C 1, P 0.5, I and N 0; all scores are
        ``reward.<scorer>``. The run is written to ``output``, by default ``results/<name of the log>.jsonl``. Raises
        StoreError for what is no log, ConfigError for a scorer that is not there and an ``output`` that is taken.
        """
        from gymkit.collect.inspect_log import read_log

        return cls._taken_in(read_log(Path(log), scorer=scorer), Path(log).stem, output)

    @classmethod
    def from_verifiers(cls, traces: Where, *, output: Where | None = None) -> Self:
        """Take in a saved run of verifiers (the folder, or its ``traces.jsonl``) as a run of ours, and open it.

        ``reward`` is the weighted sum of a trace's rewards, which are ``reward.<name>`` each; a trace that ended in
        an error is ``failed``. ``output`` and errors are as for ``from_inspect``.
        """
        from gymkit.collect.verifiers_traces import read_traces

        path = Path(traces)
        return cls._taken_in(read_traces(path), path.name if path.is_dir() else path.parent.name or path.stem, output)

    @classmethod
    def _taken_in(cls, run: Foreign, name: str, output: Where | None) -> Self:
        from gymkit.collect.imported import write_run

        return cls(write_run(run, Path("results") / f"{name}.jsonl" if output is None else Path(output)))

    @staticmethod
    def from_parquet(folder: Where) -> Restored:
        """Open the frames that ``to_parquet`` wrote; what needs the rows themselves (``record``) is refused.

        Raises StoreError, and MissingExtra without pyarrow.
        """
        from gymkit.sdk.restored import Restored

        return Restored(folder)

    def to_parquet(self, folder: Where) -> Path:
        """Write every frame into ``folder``, one Parquet file each, and return it. Raises MissingExtra, StoreError."""
        from gymkit.frames import grains
        from gymkit.sdk.restored import write_config

        records = self._read()
        grains.to_parquet(records, Path(folder))
        write_config(records.config(), Path(folder))
        return Path(folder)

    def to_csv(self, folder: Where) -> Path:
        """Write ``tasks``, ``rewards``, ``masks`` and ``failures`` into ``folder`` as CSV, and return it."""
        from gymkit.frames import grains

        grains.to_csv(self._read(), Path(folder))
        return Path(folder)

    def to_dataset(self, frame: str = "rewards") -> datasets.Dataset:
        """One frame (``"trajectories"``, say) as a Dataset of Hugging Face. Raises ConfigError, MissingExtra."""
        if find_spec("datasets") is None:
            raise MissingExtra("datasets", "datasets", "A Dataset of Hugging Face")
        import datasets

        from gymkit.frames import grains, parquet

        return datasets.Dataset(parquet.to_arrow(grains.plain(grains.frame(self._read(), frame))))

    def to_atif(self, folder: Where) -> Path:
        """Write each result as a trajectory of the ATIF format 1.7, ``<task>-<rollout>.json``; returns the folder."""
        from gymkit.wire import codec
        from gymkit.wire.atif import trajectory_of

        records = self._read()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        session = str(records.config().get("environment") or self.path.stem)
        for task, rollout in records.places:
            content: dict[str, Any] = trajectory_of(records.record(task, rollout), session=session)
            (target / f"{task}-{rollout}.json").write_bytes(codec.dumps_indented(content))
        return target

    def _read(self) -> Records:
        from gymkit.frames.records import Records

        return Records(self.path)
