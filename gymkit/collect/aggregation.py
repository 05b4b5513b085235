"""``gymkit eval aggregate``: several result files as one, and NeMo Gym's metrics over all of them. Needs no servers.

The metrics leave out what has no score, as always. Whoever wants failures or missing rollouts counted as zero says so:
that enters the metrics and nothing else, no file on disk ever holds a score that no verifier gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gymkit.collect.artifacts import Artifacts
from gymkit.collect.metrics import entry
from gymkit.collect.profile import labels
from gymkit.collect.replacement import Replacement
from gymkit.collect.shards import Gathered, Placed, Row, gather, matching
from gymkit.errors import StoreError
from gymkit.servers.aggregate import aggregate, key_of
from gymkit.wire import codec

_SERVER = "_ng_environment_server"
_IDENTITY = ("_ng_task_index", "_ng_rollout_index", "agent_ref", _SERVER)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """What was put together. ``str()`` says it, denominators included."""

    shards: tuple[Path, ...]
    """The files that were read."""
    results: int
    """Rows in them."""
    failures_as_zero: int
    """Failed rollouts that the metrics count as zero."""
    missing_as_zero: int
    """Rollouts without any row that the metrics count as zero."""
    left_out: Mapping[str, int]
    """Rollouts that are in no mean reward, by failure class; ``masked``, and ``missing``: those without any row."""
    unplanned: tuple[Path, ...]
    """Files without a plan beside them: what they lack cannot be known."""
    written: tuple[Path, ...]
    """The files that were written."""

    def __str__(self) -> str:
        files = "1 file" if len(self.shards) == 1 else f"{len(self.shards)} files"
        lines = [f"{self.results} results in {files}"]
        if self.failures_as_zero or self.missing_as_zero:
            lines.append(f"counted as zero: {self.failures_as_zero} failed, {self.missing_as_zero} missing")
        if self.left_out:
            told = ", ".join(f"{count} {name}" for name, count in self.left_out.items())
            lines.append(f"in no metric: {sum(self.left_out.values())} rollouts ({told})")
        lines += [f"note: {path} has no plan beside it, so what it lacks is not known" for path in self.unplanned]
        return "\n".join([*lines, *map(str, self.written)])


def aggregate_files(
    patterns: str,
    output: Path,
    *,
    merge: bool = True,
    zero_classes: Collection[str] = (),
    zero_missing: bool = False,
) -> Aggregation:
    """Compute the metrics of the files that ``patterns`` match, and write them beside ``output``.

    Parameters
    ----------
    patterns:
        Globs, separated by commas; sidecars among the matches are read along with their own file.
    output:
        Main file of the merged run: ``merge`` writes it, in the order of task and rollout, and its failures and plan.
    zero_classes:
        Failure classes whose rollouts count with reward 0 (or the one their row has) in the metrics.
    zero_missing:
        Whether planned rollouts without any row count with reward 0 in the metrics.

    Raises ConfigError when nothing matches, StoreError for a broken line and for a rollout with two results.
    """
    shards = matching(patterns, output)
    found = gather(shards)
    failures = [_as_zero(row) for row in found.failed.values() if _counts(found, row, zero_classes)]
    missing = [_zero(row) for row in found.unrun.values() if zero_missing and found.owner(row)]
    _fill(found, [*failures, *missing])
    rows = sorted([*(placed.row for placed in found.results), *failures, *missing], key=key_of)
    paths = Artifacts.of(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    written = _merge(found.results, shards, paths) if merge else []
    if rows:
        with Replacement(paths.metrics) as file:
            file.write(codec.dumps_indented(list(_entries(found, rows))))
            file.commit()
        written.append(paths.metrics)
    left = Counter(
        str(row.get("_ng_failure_class", "failed"))
        for row in found.failed.values()
        if not _counts(found, row, zero_classes)
    )
    left["masked"] = sum(bool(placed.row.get("mask_sample")) for placed in found.results)
    left["missing"] = len(found.unrun) - len(missing)
    return Aggregation(
        tuple(shards),
        len(found.results),
        len(failures),
        len(missing),
        dict(+left),
        tuple(found.unplanned),
        tuple(written),
    )


def _counts(found: Gathered, row: Row, classes: Collection[str]) -> bool:
    return row.get("_ng_failure_class") in classes and found.owner(row) is not None


def _as_zero(row: Row) -> Row:
    """A failed attempt for the metrics: what tells of the failure is no measurement, an HTTP status least of all."""
    kept = {
        key: value
        for key, value in row.items()
        if not key.startswith("_ng_failure_") and key not in ("failure_kind", "failure_reason")
    }
    return {"reward": 0.0, **kept, "mask_sample": False}


def _zero(row: Row) -> Row:
    return {key: row[key] for key in _IDENTITY if key in row} | {"reward": 0.0}


def _fill(found: Gathered, added: Sequence[Row]) -> None:
    """Give rows that only the metrics see the fields of their task that the server's results carry too."""
    carried: dict[str | None, set[str]] = {}
    for placed in found.results if added else ():
        carried.setdefault(found.owner(placed.row), set()).update(placed.row)
    for row in added:
        identity = found.identity(row)
        plan = found.plans.get(identity, {})
        for key in carried.get(identity[0], set()) & plan.keys():
            if not key.startswith("_"):
                row.setdefault(key, plan[key])


def _entries(found: Gathered, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    servers: dict[str | None, list[Row]] = {}
    for row in rows:
        servers.setdefault(found.owner(row), []).append(row)
    stamped = [{**own[0], _SERVER: server} for server, own in servers.items() if server is not None]
    label = labels(stamped)
    for server, own in servers.items():
        name = label({_SERVER: server}) if server is not None else None
        has_server = any(isinstance(row.get(_SERVER), str) for row in own)
        yield entry(aggregate(own), agent=name, environment_server=server if has_server else None)


def _merge(results: Sequence[Placed], shards: Sequence[Path], paths: Artifacts) -> list[Path]:
    """Write the rows, byte for byte, and what stands beside them; returns the files."""
    with Replacement(paths.rollouts) as file:
        for line in _whole(results):
            file.write(line)
        file.commit()
    beside = [Artifacts.of(shard) for shard in shards]
    sources = {
        paths.failures: [each.failures for each in beside if each.failures.exists()],
        paths.materialized: [each.materialized for each in beside if each.materialized.exists()],
    }
    for target, files in sources.items():
        if files:
            _join(files, target, once=target == paths.materialized)
    return [paths.rollouts, *(target for target, files in sources.items() if files)]


def _whole(results: Sequence[Placed]) -> Iterator[bytes]:
    files = {path: path.open("rb") for path in {placed.path for placed in results}}
    try:
        for placed in results:
            files[placed.path].seek(placed.offset)
            yield files[placed.path].readline().rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf") + b"\n"
    except OSError as error:
        raise StoreError(f"{placed.path} cannot be read: {error.strerror}") from error
    finally:
        for file in files.values():
            file.close()


def _join(files: Sequence[Path], target: Path, *, once: bool) -> None:
    """The lines of ``files`` one after another; ``once`` leaves out repeats: shards may each have the whole plan."""
    seen: set[bytes] = set()
    with Replacement(target) as joined:
        for path in files:
            with path.open("rb") as file:
                for line in map(bytes.strip, file):
                    digest = blake2b(line, digest_size=16).digest() if once else b""
                    if line and digest not in seen:
                        joined.write(line + b"\n")
                    seen.update([digest] if once else ())
        joined.commit()
