"""Step `pin`: record what every later step depends on: sources, settings, code and library versions.

    data/pins/mine.json
      steps.collect      {code, settings, sources, environment}     ─▶ read by the stage `collect@mine`, and so on
      sources            of every source the number of files, their bytes and one sha256; versions of installed packages

The pin is rewritten only when its content changed: a comment in the code changes nothing, a changed default, file or
package does.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.named_identity import (
    columns_identity,
    families_identity,
    family_identity,
    limits_of,
    named_identity,
    named_licences,
    named_limits,
)
from pipelines.corpora.steps.pinned_sources import pin_path, pinned_sources, text_sources
from pipelines.corpora.steps.selection_identity import mixture_identity, selection_libraries, task_text_identity
from pipelines.corpora.steps.step import run_step
from pipelines.lineage.fingerprint import digest_file, fingerprint
from pipelines.lineage.source import source_hash
from pipelines.shipped import shipped_folder

STEPS = ("collect", "clean", "deduplicate", "decontaminate", "select", "split")
"""Steps of preparation; the pin also covers `validate` and `card`."""


def pin(dataset: str, root: Path) -> None:
    """Write data/pins/`dataset`.json if its content changed. Raises DataError for a missing source."""
    path = pin_path(dataset, root)
    # as it is read again: a tuple is a list then, and would be taken for a change
    content = json.loads(json.dumps(pinned(dataset, load_dataset(dataset, root), root)))
    try:
        if read_json(path) == content:
            return
    except (OSError, ValueError):
        pass  # missing or damaged: write it
    write_json(path, content)


def pinned(dataset: str, settings: DatasetSettings, root: Path) -> dict[str, Any]:
    """Content of a pin."""
    task = settings.main
    sources = pinned_sources(settings, root)
    family = {"family": family_identity(task)} | families_identity(settings)
    columns = columns_identity(settings)
    language = {"language": settings.language}
    label_limits = limits_of(task)
    identities: dict[str, dict[str, Any]] = {
        "collect": {
            "general": [source.model_dump() for source in settings.general],
            "domain": [source.model_dump() for source in settings.domain],
            "task": task.model_dump(exclude=set(label_limits)),
            **named_identity(settings),
            **family,
        },
        "clean": settings.clean.identity(settings.language, root) | family | columns,
        "deduplicate": settings.deduplicate.model_dump()
        | {"inside": settings.decontaminate.inside}
        | language
        | family
        | columns,
        "decontaminate": settings.decontaminate.model_dump() | language | family | columns,
        "select": label_limits | family | task_text_identity(dataset, settings, root),
        "split": label_limits
        | family
        | {"inside": settings.decontaminate.inside}
        | mixture_identity(settings)
        | columns
        | named_limits(settings),
    }
    libraries = {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "pyarrow": version("pyarrow"),
        "rensa": version("rensa"),
    }
    steps: dict[str, Any] = {
        step: {
            "code": source_hash(f"pipelines.corpora.steps.{step}"),
            "settings": identities[step],
            "environment": libraries,
        }
        for step in STEPS
    }
    steps["select"]["environment"] = libraries | selection_libraries(settings)
    steps["collect"]["sources"] = fingerprint(sources)
    steps["validate"] = {
        "code": source_hash("tasks.quality.validate"),
        "settings": {
            name: getattr(settings, name).model_dump(mode="json") for name in ("clean", "decontaminate", "quality")
        }
        | family
        | columns
        | {"language": settings.language, "tokenizer_code": source_hash(type(settings.quality.tokenizer).__module__)},
        "environment": libraries | {"great_expectations": version("great_expectations")},
    }
    listed = text_sources(settings)
    # named, not imported: cards are on a floor above
    cards = files("pipelines.reports.cards")
    pages = sorted(Path(str(page)) for page in cards.joinpath("templates").iterdir())
    steps["card"] = {
        "code": source_hash("pipelines.reports.cards.card"),
        "pages": {page.name: digest_file(page) for page in [*pages, *_sentences()]},
        "settings": {"recipe": settings.recipe, "variants": settings.variants}
        | {"licences": [task.licence, *([source.location, source.licence] for source in listed)]}
        | named_licences(settings),
        "recipes": {path.name: digest_file(path) for path in _recipes(root)},
    }
    return {"dataset": dataset, "sources": sources, "steps": steps}


def _sentences() -> list[Path]:
    """The files of translated sentences, which the pages in other languages show."""
    return sorted(Path(str(files("pipelines.messages"))).glob("*/*.yaml"))


def _recipes(root: Path) -> list[Path]:
    """The recipes that the project in `root` can name; its own are taken before those that come with the code."""
    folders = dict.fromkeys([shipped_folder().resolve() / "recipes", root.resolve() / "recipes"])
    return sorted({path.name: path for folder in folders for path in folder.glob("*.yaml")}.values())


if __name__ == "__main__":
    run_step(pin)
