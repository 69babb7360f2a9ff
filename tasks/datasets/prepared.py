"""A prepared dataset: brought up to date by DVC, and opened according to dvc.lock.

reviews = prepare("reviews", root)      # refreshes the pin, runs the steps that are out of date, raises a step's error
reviews.tables["train"], reviews.digests["train"], reviews.labels
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines import errors
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.tables import named_tables, table_aliases
from pipelines.corpora.shards.digests import files_of, read_digests
from pipelines.corpora.shards.held_out import HELD_OUT
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.first_look import look_at_sources
from pipelines.corpora.steps.pin import STEPS, pin
from pipelines.corpora.steps.pinned_sources import pin_path
from pipelines.corpora.steps.step import TABLES, prepared, table_path
from pipelines.errors import CursusError, DataError, QualityError
from pipelines.task_families.labelled_tables import NAMED
from tasks.datasets import dvc_process
from tasks.datasets.checked_data import DataCheck
from tasks.datasets.dvc_lock import keep_copy, locked_stages, restore_torn
from tasks.datasets.looking import look_at_new_sources
from tasks.datasets.step_progress import StepProgress
from tasks.environment import state_folder
from tasks.quality.acceptance import VARIABLE, VERDICT

COLLECT = STEPS[0]
"""The step that reads the sources."""
KEPT = "the last accepted version stays in place"
_MISTAKE = re.compile(r"^(\w+Error): (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Prepared:
    """A dataset that passed its expectations. `digests` are the md5 of the tables, as DVC recorded them."""

    name: str
    language: str
    family: str
    """Name of the task family of the main task."""
    families: dict[str, str]
    """Named task → name of its family."""
    folder: Path
    tables: dict[str, Path]
    digests: dict[str, str]
    outputs: dict[str, str]
    """Output of the last steps in which tables are, relative to `folder` → DVC's digest of it."""
    labels: list[str]
    """The closed set of answers or tags in the training table; empty when answers are free text."""
    summary: dict[str, Any]
    verdict: dict[str, Any]


def prepare(
    dataset: str, root: Path, on_step: Callable[[str], None] | None = None, *, accept: bool = False
) -> Prepared:
    """Bring a dataset up to date, calling `on_step` with the name of each step that runs, when it starts, and with how
    far it is. With `accept`, drift from the last accepted version is intended.

    Raises the CursusError of a failed step: DataError for a source, QualityError for a failed expectation.
    """
    root = root.resolve()
    refresh_pin(dataset, root)
    reproduce(dataset, root, on_step, accept=accept)
    return open_prepared(dataset, root)


def refresh_pin(dataset: str, root: Path) -> None:
    """Check the sources, the code and the installed packages again; the pin changes only if they changed.

    New sources are looked at first, and those that are to be collected anew: a mistake near their beginning is reported
    before the code is hashed and DVC starts.
    """
    restore_torn(root)
    looked = look_at_new_sources(dataset, root)
    pin(dataset, root)
    if not looked and collected_pin(dataset, root) != read_json(pin_path(dataset, root))["steps"][COLLECT]:
        look_at_sources(dataset, root)


def reproduce(dataset: str, root: Path, on_step: Callable[[str], None] | None = None, *, accept: bool = False) -> None:
    """Run the steps of a dataset that are out of date, with `dvc repro` in a separate process; the output is in the
    logs. No process is started where DVC has found exactly this state up to date before.

    Waits for other processes of DVC on the same paths, after passing a message to `on_step`. Raises like `prepare`.
    """
    check = DataCheck(dataset, root)
    if check.is_known():
        return
    log = state_folder(root) / "logs" / f"data-{dataset}.log"
    progress = StepProgress(on_step or (lambda step: None))
    variables = {VARIABLE: dataset} if accept else {}
    lock = root / "dvc.lock"
    accepted = lock.read_text(encoding="utf-8") if _is_accepted(dataset, root) and lock.is_file() else ""
    keep_copy(root)
    status, output = dvc_process.repro(dataset, root, log, progress.read, progress.silent, variables)
    if status:
        mistake = _mistake(output, dataset, log)
        if isinstance(mistake, QualityError) and accepted:
            dvc_process.restore(dataset, root, accepted)
            raise QualityError(f"{mistake}\n{KEPT}")
        raise mistake
    check.remember()


def up_to_date(dataset: str, root: Path) -> bool:
    """Whether preparing the dataset would change nothing. Refreshes the pin."""
    refresh_pin(dataset, root)
    return DataCheck(dataset, root).is_known() or dvc_process.is_current(dataset, root)


def open_prepared(dataset: str, root: Path) -> Prepared:
    """The last prepared state of a dataset, without running anything. Raises DataError when it is incomplete or was
    rejected."""
    root = root.resolve()
    settings = load_dataset(dataset, root)
    home = prepared(dataset, root)
    again = f"run 'cursus data {dataset}'"
    verdict_path = home / VERDICT
    if verdict_path.is_file() and not (verdict := read_json(verdict_path))["success"]:
        raise DataError(f"the dataset {dataset!r} failed its expectations, see {verdict['data_docs']}; {again}")
    recorded = _outputs(dataset, root)
    tables = {name: table_path(home, name) for name in (*TABLES, HELD_OUT)}
    digests = {}
    others = {NAMED: home / NAMED, "summary": home / "summary.json", "verdict": verdict_path}
    for name, path in {**tables, **others}.items():
        entry = recorded.get(path.relative_to(root).as_posix())
        if entry is None or not path.exists():
            raise DataError(f"the dataset {dataset!r} is not prepared: {path.relative_to(root)} is missing; {again}")
        if size_of(path) != entry["size"]:
            raise DataError(f"{path.relative_to(root)} has changed since it was prepared; {again}")
        digests[name] = str(entry["md5"])
    outputs = {path.relative_to(home).as_posix(): digests[name] for name, path in tables.items()} | {
        NAMED: digests[NAMED]
    }
    named = {name: table_path(home, name) for name in named_tables(settings)}
    recorded_digests = read_digests(home / NAMED)
    if missing := [name for name, path in named.items() if name not in recorded_digests or not path.exists()]:
        raise DataError(f"the dataset {dataset!r} is not prepared: the table {missing[0]!r} is missing; {again}")
    tables, digests = tables | named, digests | {name: recorded_digests[name] for name in named}
    for alias, name in table_aliases(settings).items():
        tables[alias], digests[alias] = tables[name], digests[name]
    summary = read_json(home / "summary.json")
    if "family" not in summary:
        raise DataError(f"the dataset {dataset!r} was prepared by a version without task families; {again}")
    return Prepared(
        name=dataset,
        language=summary["language"],
        family=summary["family"],
        families={name: task["family"] for name, task in summary.get("tasks", {}).items()},
        folder=home,
        tables=tables,
        digests={name: digests[name] for name in tables},
        outputs=outputs,
        labels=summary["labels"],
        summary=summary,
        verdict=verdict,
    )


def last_prepared(dataset: str, root: Path) -> Prepared | None:
    """The last prepared state of a dataset, which may be out of date; None when it was never prepared."""
    try:
        return open_prepared(dataset, root)
    except DataError:
        return None


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files under a folder."""
    return sum(file.stat().st_size for file in files_of(path))


def _is_accepted(dataset: str, root: Path) -> bool:
    """Whether the tables that are in place passed their expectations."""
    verdict = prepared(dataset, root) / VERDICT
    return verdict.is_file() and bool(read_json(verdict)["success"])


def collected_pin(dataset: str, root: Path) -> dict[str, Any] | None:
    """What the collected sources were pinned to, according to dvc.lock; None before they are."""
    parameters = locked_stages(root).get(f"{COLLECT}@{dataset}", {}).get("params", {})
    pinned: dict[str, Any] = parameters.get(pin_path(dataset, root).relative_to(root).as_posix(), {})
    return pinned.get(f"steps.{COLLECT}")


def _outputs(dataset: str, root: Path) -> dict[str, dict[str, Any]]:
    """Entries of dvc.lock for the outputs of the last steps, by path."""
    stages = locked_stages(root)
    last = [stages.get(f"{step}@{dataset}", {}) for step in ("split", "validate")]
    return {out["path"]: out for stage in last for out in stage.get("outs", [])}


def _mistake(output: str, dataset: str, log: Path) -> CursusError:
    """The user error that a step printed; for any other failure, a DataError that names the log."""
    match = _MISTAKE.search(output)
    kind = getattr(errors, match[1], None) if match else None
    if match and isinstance(kind, type) and issubclass(kind, CursusError):
        return kind(match[2].replace("\n  ", "\n"))
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no output")
    return DataError(f"preparing {dataset!r} failed: {last.strip()}; the whole output is in {log}")
