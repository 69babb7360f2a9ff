"""What every later step depends on, by key: sources, settings, code and library versions.

    data/pins/mine.json
      steps.collect      {code, settings, sources, environment}     ─▶ read by the stage `collect@mine`, and so on
      sources            every file with its size and sha256, or the versions of the installed packages

The pin is written anew only when something in it changed. A comment in the code changes nothing here; a changed
default, file or package does.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipelines.corpora.installation import versions
from pipelines.corpora.reading import find_files
from pipelines.corpora.settings import DatasetSettings, FileSource, FileTask, load_dataset
from pipelines.corpora.step import run_step
from pipelines.corpora.writing import read_json, write_json
from pipelines.lineage.fingerprint import digest_file, fingerprint
from pipelines.lineage.source import source_hash

STEPS = ("collect", "clean", "deduplicate", "decontaminate", "split")
DIGESTS_SEEN = ".cursus/source_digests.json"


def pin(dataset: str, root: Path) -> None:
    """Write data/pins/`dataset`.json if what it says has changed. DataError for a source that is not there."""
    path = pin_path(dataset, root)
    content = pinned(dataset, load_dataset(dataset, root), root)
    try:
        if read_json(path) == content:
            return
    except (OSError, ValueError):
        pass  # there is none yet, or a damaged one: write it
    write_json(path, content)


def pin_path(dataset: str, root: Path) -> Path:
    """Where the pin of a dataset stands."""
    return root / "data" / "pins" / f"{dataset}.json"


def pinned(dataset: str, settings: DatasetSettings, root: Path) -> dict[str, Any]:
    """The content of a pin."""
    task = settings.task
    sources: dict[str, Any] = {}
    listed = [*settings.general, *settings.domain, *(task.unlabelled if isinstance(task, FileTask) else [])]
    paths = [source.path for source in listed if isinstance(source, FileSource)]
    if isinstance(task, FileTask):
        paths += [path for path in (task.train, task.validation, task.test) if path]
    if paths:
        sources["files"] = file_digests(paths, root)
    if not isinstance(task, FileTask) or any(not isinstance(source, FileSource) for source in listed):
        sources["packages"] = versions()
    asked: dict[str, dict[str, Any]] = {
        "collect": {
            "general": [source.model_dump() for source in settings.general],
            "domain": [source.model_dump() for source in settings.domain],
            "task": task.model_dump(exclude={"labels_per_class"}),
        },
        "clean": settings.clean.model_dump(),
        "deduplicate": {},
        "decontaminate": settings.decontaminate.model_dump(),
        "split": {"labels_per_class": task.labels_per_class, "language": settings.language},
    }
    libraries = {"python": ".".join(platform.python_version_tuple()[:2]), "pyarrow": version("pyarrow")}
    steps: dict[str, Any] = {
        step: {"code": source_hash(f"pipelines.corpora.{step}"), "settings": asked[step], "environment": libraries}
        for step in STEPS
    }
    steps["collect"]["sources"] = fingerprint(sources)
    steps["validate"] = {
        "code": source_hash("tasks.quality"),
        "settings": {name: getattr(settings, name).model_dump() for name in ("clean", "decontaminate", "quality")},
        "environment": libraries | {"great_expectations": version("great_expectations")},
    }
    return {"dataset": dataset, "sources": sources, "steps": steps}


def file_digests(paths: list[str], root: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Size and sha256 of every file the paths mean; a file whose size and time are unchanged is not read again."""
    try:
        known: dict[str, list[Any]] = read_json(root / DIGESTS_SEEN)
    except (OSError, ValueError):
        known = {}
    before = dict(known)
    digests: dict[str, dict[str, dict[str, Any]]] = {}
    for path in paths:
        digests[path] = {}
        for name, file in find_files(path, root).items():
            state = file.stat()
            stamp = [state.st_size, state.st_mtime_ns, state.st_ino]
            seen = known.get(str(file))
            if seen is None or seen[:3] != stamp:
                seen = [*stamp, digest_file(file)]
                known[str(file)] = seen
            digests[path][name] = {"bytes": state.st_size, "sha256": seen[3]}
    if known != before:
        write_json(root / DIGESTS_SEEN, known)
    return digests


if __name__ == "__main__":
    run_step(pin)
