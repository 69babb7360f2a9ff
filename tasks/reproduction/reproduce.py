"""Reproduction of a lineage from its records alone: the steps to compute, known differences, and the comparison of
results.

    remakes = rebuild(root, store, fingerprint)      # parents first; raises, before any compute, if not reproducible
    warnings(remakes, root)                          # known differences: data, code, libraries, device
    compare(remake, artifact, store, seconds)        # identical, or which files differ, and why

Recipes are not read: each record holds the resolved stage, its seed, its parents and its tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from pipelines.corpora.shards.digests import dvc_digest
from pipelines.errors import DataError, StoreError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.judging.samples import TIMINGS
from pipelines.lineage import hardware
from pipelines.lineage.differences import NOTHING, differing_files, reasons
from pipelines.lineage.fingerprint import digest_file, fingerprint
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.lineage.store import Artifact, Store
from pipelines.recipe.checkpoint import resolve_checkpoint
from pipelines.recipe.job import Runtime
from pipelines.recipe.plan import Step, identify_step
from pipelines.recipe.schema import Stage, TokenizerLimits
from pipelines.recipe.starts import HEAD_START, Checkpoint, Untrained
from pipelines.recipe.tables import answered_tasks, judged_tasks
from pipelines.task_families import TaskFamily
from tasks.models.ancestry import ancestry, label
from tasks.reproduction.record import StageComparison
from tasks.stages.conditions import conditions

SUMMARY = "summary.json"
"""File next to the tables of a prepared dataset that holds its language."""


@dataclass(frozen=True)
class Remake:
    """A recorded step, and the step that reproduces it."""

    record: Provenance
    step: Step
    tables: Mapping[str, Path]
    language: str
    contradiction: str | None
    """Why the record must have been changed after publication; None for a consistent record."""

    @property
    def comparison(self) -> StageComparison:
        """The comparison before the step is reproduced."""
        record = self.record
        return StageComparison(stage=label(record), recipe=record.recipe, fingerprint=record.fingerprint)

    @property
    def runtime(self) -> Mapping[str, Any]:
        """The recorded runtime; empty in a record without one."""
        return self.record.environment.runtime

    @property
    def threads(self) -> int:
        """Processor threads of a rank."""
        return int(self.runtime.get("threads", 1))


def rebuild(root: Path, store: Store, model: str) -> list[Remake]:
    """The steps that reproduce `model`, a fingerprint: parents before children.

    Raises DataError for a missing table, RecipeError for a missing checkpoint, StoreError for a record that is missing
    or that this version cannot read.
    """
    remade: dict[str, Remake] = {}
    digests: dict[Path, str] = {}
    records = ancestry(store, model)
    for name, record in records.items():
        tables = {table: _table(root, source, record) for table, source in record.data.items()}
        digests |= {path: dvc_digest(path) for path in tables.values() if path not in digests}
        stage, family, families = _stage(record)
        step = identify_step(
            record.recipe,
            record.stage,
            stage,
            record.seed,
            several="@" in label(record),
            parents={role: remade[parent].step.fingerprint for role, parent in record.parents.items()},
            data={
                table: DataSource(digest=digests[path], path=record.data[table].path) for table, path in tables.items()
            },
            family=family,
            checkpoint=resolve_checkpoint(stage.start.checkpoint) if isinstance(stage.start, Checkpoint) else None,
            families=families,
            judged={
                role: judged_tasks(stage.corpus, answered_tasks(parent, records))
                for role, parent in record.parents.items()
            }
            if stage.kind.judges
            else {},
        )
        remade[name] = Remake(record, step, tables, _language(root, tables, record), _contradiction(name, record))
    return list(remade.values())


def warnings(remakes: Sequence[Remake], root: Path) -> list[str]:
    """Conditions that differ from those recorded for the lineage, each once, with the stages that it concerns."""
    differences: dict[str, tuple[str, list[str]]] = {}
    for remake in remakes:
        environment = conditions(root, Runtime(accelerator=hardware.accelerator())).model_copy(
            update={"runtime": remake.record.environment.runtime}
        )
        here = remake.record.model_copy(update={"identity": dict(remake.step.identity), "environment": environment})
        for reason in reasons(remake.record, here):
            # the part after a colon, for example that of code, varies among stages
            differences.setdefault(reason.partition(":")[0], (reason, []))[1].append(remake.comparison.stage)
    return [f"{reason} ({', '.join(stages)})" for reason, stages in differences.values()]


def datasets(store: Store, model: str) -> list[str]:
    """Names of the datasets whose tables the lineage of `model` reads."""
    sources = (source for record in ancestry(store, model).values() for source in record.data.values())
    return sorted({source.dataset for source in sources})


def generations(remakes: Sequence[Remake]) -> Iterator[list[Remake]]:
    """The steps in groups of mutually independent steps, parents before children."""
    done: set[str] = set()
    waiting = list(remakes)
    while waiting:
        ready = [one for one in waiting if done.issuperset(one.step.parents.values())]
        waiting = [one for one in waiting if one not in ready]
        done |= {one.step.fingerprint for one in ready}
        yield ready


def together(generation: Sequence[Remake]) -> Iterator[list[Remake]]:
    """The steps of a generation in groups that can be computed in parallel: on the same tables, with the same
    runtime."""
    groups: dict[str, list[Remake]] = {}
    for one in generation:
        if one.contradiction is None:
            key = (one.record.recipe, {name: str(path) for name, path in one.tables.items()}, one.language)
            groups.setdefault(json.dumps([*key, one.runtime]), []).append(one)
    for group in groups.values():
        processors = group[0].threads * int(group[0].runtime.get("devices", 1))
        size = max(1, hardware.cores() // processors)
        yield from (group[first : first + size] for first in range(0, len(group), size))


def compare(remake: Remake, made: Artifact | None, store: Store, seconds: float | None) -> StageComparison:
    """Compare `made` with the recorded artifact, which is in `store`.

    A step whose record contradicts itself is not computed, and counts as different.
    """
    record = remake.record
    if made is None:
        why = [remake.contradiction] if remake.contradiction else []
        return remake.comparison.model_copy(update={"outcome": "differs" if why else "not made", "reasons": why})
    files = differing_files(record, made.provenance)
    files.pop(TIMINGS, None)
    original = store.folder(record.fingerprint)
    if EVALUATION in files and _alike(original / EVALUATION, made.folder / EVALUATION, remake.step.stage):
        del files[EVALUATION]
    comparison = remake.comparison.model_copy(update={"seconds": seconds})
    if not files:
        return comparison.model_copy(update={"outcome": "identical"})
    why = [*_tampering(record, made.provenance, original, files), *reasons(record, made.provenance)] or [NOTHING]
    return comparison.model_copy(update={"outcome": "differs", "files": files, "reasons": why})


def _table(root: Path, source: DataSource, record: Provenance) -> Path:
    """The path of a recorded table. Raises StoreError for one outside the project, DataError for a missing one."""
    named = PurePosixPath(source.path)
    if named.is_absolute() or ".." in named.parts:
        raise StoreError(f"the record of {label(record)} names the table {source.path!r}, which is not in the project")
    path = root / named
    if not path.exists():
        raise DataError(
            f"{source.path}: does not exist any more, and {record.recipe}/{label(record)} was trained on it; restore "
            f"it with `cursus data {source.dataset}`, then run again. Nothing was computed"
        )
    return path


def _language(root: Path, tables: Mapping[str, Path], record: Provenance) -> str:
    for table in tables:
        source = record.data[table]
        summary = root / source.folder / SUMMARY
        try:
            return str(json.loads(summary.read_text(encoding="utf-8"))["language"])
        except (OSError, ValueError, KeyError):
            raise DataError(
                f"{summary}: is missing or damaged, so the language of {label(record)}'s training data is unknown; "
                f"run `cursus data {source.dataset}`"
            ) from None
    return "en"


def _stage(record: Provenance) -> tuple[Stage, TaskFamily, dict[str, TaskFamily]]:
    """The resolved stage of a record, the family of its task, and those of several named tasks.

    Raises StoreError if this version cannot read it.
    """
    identity = record.identity
    try:
        stage = Stage.model_validate(identity["stage"])
        family = TaskFamily.model_validate(identity.get("family") or TaskFamily.default_name)
        several = identity.get("families") or {}
        families = {name: TaskFamily.model_validate(one) for name, one in several.items()}
        start: str | Checkpoint | Untrained | None = record.parents.get("start")
        if start is not None and identity.get("untrained"):
            start = Untrained(untrained=start)
        if identity.get("checkpoint"):
            if record.checkpoint is None:
                raise ValueError("it started from an external checkpoint that is not recorded")
            start = Checkpoint.model_validate(record.checkpoint)
    except (KeyError, ValueError, ValidationError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StoreError(
            f"{record.recipe}/{label(record)} ({record.fingerprint[:8]}) cannot be reproduced by this version: {first}"
            f". It was computed at commit {record.environment.commit or 'unknown'}; check that out and run again"
        ) from None
    # limits were checked when the step was first computed, and the teacher is among the parents
    starts = {"start": start, "head_start": record.parents.get(HEAD_START)}
    return stage.model_copy(update={**starts, "limits": TokenizerLimits(unknown=1.0)}), family, families


def _contradiction(name: str, record: Provenance) -> str | None:
    identity = record.identity
    recorded = {
        "seed": record.seed,
        "parents": record.parents,
        "data": {table: source.digest for table, source in record.data.items()},
    }
    for key, value in recorded.items():
        if identity.get(key) != value:
            return f"its record was changed after it was published: its {key} differs from that in its identity"
    if fingerprint(identity) != name or record.fingerprint != name:
        return "its record was changed after it was published: its fingerprint is not that of its identity"
    return None


def _alike(before: Path, after: Path, stage: Stage) -> bool:
    """Whether two evaluation records are equal apart from measured times and other machine-dependent values."""
    clocked = frozenset(key for evaluation in stage.suite for key in evaluation.nondeterministic_keys)
    try:
        then, now = (_without(json.loads(path.read_bytes()), clocked) for path in (before, after))
    except (OSError, ValueError):
        return False
    return bool(then == now)


def _without(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, keys) for key, one in value.items() if key.partition("/")[0] not in keys}
    return [_without(one, keys) for one in value] if isinstance(value, list) else value


def _tampering(before: Provenance, after: Provenance, folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Stored files that do not match their recorded digests: their differences are not the reproduction's."""
    for name in files:
        path, recorded, made = folder / name, before.files.get(name), after.files.get(name)
        if recorded is None or not path.is_file():
            continue
        stored = digest_file(path)
        if made is not None and stored == made.sha256:
            yield f"{name}: the stored file equals the reproduced one, so its recorded digest was changed afterwards"
        elif stored != recorded.sha256:
            yield f"{name}: the stored file does not match its recorded digest either; it was changed afterwards"
